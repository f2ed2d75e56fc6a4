//! The tables of a study.

use std::collections::{BTreeMap, BTreeSet};

use super::{Finished, Outcome, Plan, RunResult, StudyKind, Subject};
use crate::record::{Summary, wilson_95};
use crate::round::SuccessCount;
use crate::scenario::Seeds;
use crate::statistics::{Estimate, bootstrap_mean, effect_size, mean, sign_flip, student_mean};

/// A value of a summary in tables, under its name in files.
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// Whether more is better, or less; `None` if neither.
    pub more_is_better: Option<bool>,
    /// Its value; `None` if it was not reached or not measured.
    pub value: fn(&Summary) -> Option<f64>,
    /// For a share of successful episodes: the number of all episodes.
    pub episodes: Option<fn(&Episodes) -> u64>,
}

/// Number of final episodes of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Episodes {
    /// Of all terminals.
    pub all: u64,
    /// Of the far third.
    pub far: u64,
}

impl Metric {
    /// The metric with a name that is written in the source.
    pub(super) fn named(name: &str) -> &'static Self {
        METRICS.iter().find(|metric| metric.name == name).expect("one of the metrics")
    }
}

const fn metric(
    name: &'static str,
    more_is_better: Option<bool>,
    value: fn(&Summary) -> Option<f64>,
) -> Metric {
    Metric { name, more_is_better, value, episodes: None }
}

const fn success(
    name: &'static str,
    value: fn(&Summary) -> Option<f64>,
    episodes: fn(&Episodes) -> u64,
) -> Metric {
    Metric { name, more_is_better: Some(true), value, episodes: Some(episodes) }
}

/// All metrics, in the order of the tables.
pub const METRICS: [Metric; 29] = [
    success("success_final", |run| run.success_final, |of| of.all),
    success("success_far", |run| run.success_far, |of| of.far),
    metric("success_worst_task", Some(true), |run| run.success_worst_task),
    metric("success_area", Some(true), |run| run.success_area),
    metric("rta_0.6", Some(false), |run| run.rta.at_60.map(|round| round as f64)),
    metric("rta_0.7", Some(false), |run| run.rta.at_70.map(|round| round as f64)),
    metric("rta_0.8", Some(false), |run| run.rta.at_80.map(|round| round as f64)),
    metric("tta_s_0.6", Some(false), |run| run.tta_s.at_60),
    metric("tta_s_0.7", Some(false), |run| run.tta_s.at_70),
    metric("tta_s_0.8", Some(false), |run| run.tta_s.at_80),
    metric("eta_j_0.6", Some(false), |run| run.eta_j.at_60),
    metric("eta_j_0.7", Some(false), |run| run.eta_j.at_70),
    metric("eta_j_0.8", Some(false), |run| run.eta_j.at_80),
    metric("server_steps_per_round", None, |run| run.server_steps_per_round),
    metric("latency_mean_s", Some(false), |run| run.latency_mean_s),
    metric("latency_p50_s", Some(false), |run| run.latency_p50_s),
    metric("latency_p95_s", Some(false), |run| run.latency_p95_s),
    metric("energy_total_j", Some(false), |run| Some(run.energy_total_j)),
    metric("energy_radio_j", Some(false), |run| Some(run.energy_radio_j)),
    metric("energy_compute_j", Some(false), |run| Some(run.energy_compute_j)),
    metric("volume_total_bytes", Some(false), |run| Some(run.volume_total_bytes as f64)),
    metric("sync_total_bytes", Some(false), |run| Some(run.sync_total_bytes as f64)),
    metric("air_total_bytes", Some(false), |run| Some(run.air_total_bytes as f64)),
    metric("violation_mean", Some(false), |run| run.violation_mean),
    metric("violation_zero_share", Some(true), |run| run.violation_zero_share),
    metric("late_total", Some(false), |run| Some(run.late_total as f64)),
    metric("unfit_total", Some(false), |run| run.unfit_total.map(|times| times as f64)),
    metric("participation_min", Some(true), |run| run.participation_min),
    metric("eval_episodes_total", None, |run| Some(run.eval_episodes_total as f64)),
];

/// Columns of `runs.csv` beside the metrics, with their meanings. `replicate` is written only if
/// there are replicates; the metrics stand between `status` and `reason`.
pub const RUN_COLUMNS: [(&str, &str); 6] = [
    ("point", "Label of the point."),
    ("method", "Name of the method."),
    ("seed", "The seed."),
    ("replicate", "Replicate of the seed."),
    ("status", "`done`, `failed` or `missing`."),
    ("reason", "Why the run failed."),
];

/// Columns of `table.csv`, with their meanings.
pub const TABLE_COLUMNS: [(&str, &str); 15] = [
    ("point", "Label of the point."),
    ("method", "Name of the method."),
    ("metric", "Name of the metric."),
    ("runs", "Complete runs."),
    ("values", "Seeds with a value of the metric."),
    ("mean", "Mean over the seeds; empty if some seed has no value."),
    ("low", "Lower end of its 95 % interval."),
    ("high", "Upper end of its 95 % interval."),
    ("interval", "How the interval was found: `wilson` or `bootstrap`."),
    ("pairs", "Seeds that this row and the reference have in common."),
    ("difference", "Mean of reference minus row, paired by seed."),
    ("difference_low", "Lower end of its 95 % interval after Student."),
    ("difference_high", "Upper end of its 95 % interval after Student."),
    ("effect", "The mean difference in its standard deviations, with Hedges' correction."),
    ("p", "p-value of the exact two-sided sign-flip test; empty below three pairs."),
];

/// One method at one point over its seeds.
#[derive(Clone, Debug)]
pub struct Row {
    /// Point and method.
    pub subject: Subject,
    /// The complete runs with their seeds and replicates.
    pub runs: Vec<(Seeds, Finished)>,
    /// Seeds and reasons of failed runs.
    pub failed: Vec<(Seeds, String)>,
    /// Seeds of missing runs.
    pub missing: Vec<Seeds>,
    /// Final episodes of each run.
    pub episodes: Episodes,
}

/// The comparison of a row with its reference, over the seeds that both have: reference less row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pairing {
    /// Number of seeds.
    pub pairs: usize,
    /// The mean difference, with Student's interval.
    pub difference: Estimate,
    /// The effect in standard deviations of the difference.
    pub effect: Option<f64>,
    /// The p-value of the exact sign-flip test, from three pairs on.
    pub p: Option<f64>,
}

/// The rows of a study.
#[derive(Clone, Debug)]
pub struct Table {
    /// The rows in the order of the plan.
    pub rows: Vec<Row>,
    /// Index of the row that the others are compared with.
    pub reference: usize,
    /// Whether every point is a separate problem, as in a sweep: rows are then compared and ranked
    /// within their point, with the reference's method there.
    pub by_point: bool,
}

impl Row {
    /// The value of a metric for every seed with a run: the mean over its replicates, `None` unless
    /// all of them have a value.
    pub fn by_seed(&self, metric: &Metric) -> BTreeMap<u64, Option<f64>> {
        let mut values: BTreeMap<u64, Vec<Option<f64>>> = BTreeMap::new();
        for (Seeds { seed, .. }, run) in &self.runs {
            values.entry(*seed).or_default().push((metric.value)(&run.summary));
        }
        let pooled = |values: Vec<Option<f64>>| {
            let values: Option<Vec<f64>> = values.into_iter().collect();
            values.and_then(mean)
        };
        values.into_iter().map(|(seed, values)| (seed, pooled(values))).collect()
    }

    /// Number of seeds with a run.
    pub fn n_seeds(&self) -> usize {
        self.runs.iter().map(|(one, _)| one.seed).collect::<BTreeSet<u64>>().len()
    }

    /// The values of a metric, with their seeds; seeds without a value are skipped, replicates are
    /// pooled.
    pub fn values(&self, metric: &Metric) -> Vec<(u64, f64)> {
        let value = |(seed, value): (u64, Option<f64>)| Some((seed, value?));
        self.by_seed(metric).into_iter().filter_map(value).collect()
    }

    /// The mean over seeds with its interval: Wilson's on the episodes of all runs for a success,
    /// the bootstrap over seeds for the rest. `None` unless every complete run has a value: a mean
    /// over only the runs that reached a threshold would favour methods that fail often.
    pub fn estimate(&self, metric: &Metric) -> Option<Estimate> {
        let values: Vec<f64> = self.values(metric).into_iter().map(|(_, value)| value).collect();
        if values.len() < self.n_seeds() {
            return None;
        }
        let estimate = bootstrap_mean(&values)?;
        let Some(of) = metric.episodes else { return Some(estimate) };
        let episodes = of(&self.episodes) * self.runs.len() as u64;
        let successes = (estimate.mean * episodes as f64).round() as u64;
        let interval = wilson_95(SuccessCount { successes, episodes });
        Some(Estimate { mean: estimate.mean, interval })
    }

    /// Final success of each task with every seed, a list for each task.
    pub(super) fn success_by_task(&self) -> Vec<Vec<f64>> {
        let mut tasks: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for (task, success) in self.runs.iter().flat_map(|(_, run)| &run.summary.success_by_task) {
            tasks.entry(task).or_default().extend(success);
        }
        tasks.into_values().collect()
    }

    /// Whether the method gets hidden true values: then it is a reference, not a rival.
    pub(super) fn is_told(&self) -> bool {
        ["clairvoyant", "oracle"].contains(&&self.subject.method[..])
    }

    /// Whether every planned run is complete.
    pub(super) fn is_complete(&self) -> bool {
        !self.runs.is_empty() && self.failed.is_empty() && self.missing.is_empty()
    }

    /// The number of complete runs as text, with the planned number if some are missing; with
    /// replicates as seeds times replicates.
    pub(super) fn seeds(&self) -> String {
        let (done, failed) = (self.runs.len(), self.failed.len());
        let asked = self.asked();
        let replicates = asked.iter().map(|one| one.replicate + 1).max().unwrap_or(1);
        let all = match replicates {
            1 => asked.len().to_string(),
            _ => format!("{} x {replicates}", asked.len() as u64 / replicates),
        };
        match asked.len() {
            n if n == done => all,
            _ if failed > 0 => format!("{done} of {all}, {failed} failed"),
            _ => format!("{done} of {all}"),
        }
    }

    /// All planned seeds and replicates.
    fn asked(&self) -> Vec<Seeds> {
        let done = self.runs.iter().map(|(seed, _)| *seed);
        done.chain(self.failed.iter().map(|(seed, _)| *seed)).chain(self.missing.clone()).collect()
    }

    /// The mean as text, or the number of seeds with a value.
    pub(super) fn cell(&self, metric: &Metric, scale: f64, digits: usize) -> String {
        let reached = self.values(metric).len();
        match self.estimate(metric) {
            Some(Estimate { mean, interval: Some([low, high]) }) => {
                let [mean, low, high] = [mean, low, high].map(|one| one * scale);
                format!("{mean:.digits$} [{low:.digits$}, {high:.digits$}]")
            }
            Some(Estimate { mean, interval: None }) => format!("{:.digits$}", mean * scale),
            None if self.runs.is_empty() => "-".to_owned(),
            None => format!("{reached} of {}", self.n_seeds()),
        }
    }
}

/// Columns of the printed table: title, metric, factor, digits.
const PRINTED: [(&str, &str, f64, usize); 8] = [
    ("success %", "success_final", 1e2, 1),
    ("far third %", "success_far", 1e2, 1),
    ("rounds to 70 %", "rta_0.7", 1.0, 0),
    ("s to 70 %", "tta_s_0.7", 1.0, 0),
    ("J to 70 %", "eta_j_0.7", 1.0, 0),
    ("latency p50 s", "latency_p50_s", 1.0, 2),
    ("volume MB", "volume_total_bytes", 1e-6, 0),
    ("violation", "violation_mean", 1.0, 4),
];

/// Columns of the table for the console: title, metric, factor.
const COMPACT: [(&str, &str, f64); 6] = [
    ("succ %", "success_final", 1e2),
    ("far %", "success_far", 1e2),
    ("s to 70", "tta_s_0.7", 1.0),
    ("J to 70", "eta_j_0.7", 1.0),
    ("p50 s", "latency_p50_s", 1.0),
    ("air MB", "air_total_bytes", 1e-6),
];

/// A number in at most seven characters: large ones in powers of ten.
fn short_number(value: f64) -> String {
    match value.abs() {
        huge if huge >= 1e5 => format!("{value:.1e}"),
        large if large >= 100.0 => format!("{value:.0}"),
        plain if plain >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

impl Table {
    /// The tables of a plan from its runs.
    pub fn new(plan: &Plan, results: &[RunResult]) -> Self {
        let row = |subject: Subject| {
            let (mut runs, mut failed, mut missing) = (Vec::new(), Vec::new(), Vec::new());
            let mut episodes = Episodes::default();
            for result in results.iter().filter(|result| result.subject == subject) {
                episodes = result.episodes;
                match &result.outcome {
                    Outcome::Done(run) => runs.push((result.seed, (**run).clone())),
                    Outcome::Failed(reason) => failed.push((result.seed, reason.clone())),
                    Outcome::Missing => missing.push(result.seed),
                }
            }
            Row { subject, runs, failed, missing, episodes }
        };
        let rows: Vec<Row> = plan.subjects().into_iter().map(row).collect();
        let reference = rows.iter().position(|row| row.subject == plan.reference).unwrap_or(0);
        // Every point has a different budget.
        let by_point = plan.question.is_sweep() || plan.question == StudyKind::EqualBudget;
        Self { rows, reference, by_point }
    }

    /// The row that a row is compared with; `None` for the reference itself, and at a point without
    /// the reference's method.
    pub fn compared_with(&self, row: usize) -> Option<usize> {
        let reference = &self.rows[self.reference].subject.method;
        let is_at = |other: &&Row| {
            let (method, point) = (&other.subject.method, &other.subject.point);
            *point == self.rows[row].subject.point && without_q(method) == without_q(reference)
        };
        let found = match self.by_point {
            true => self.rows.iter().position(|other| is_at(&other)),
            false => Some(self.reference),
        };
        found.filter(|found| *found != row)
    }

    /// The comparison of a row with its reference; `None` without a common seed.
    pub fn pairing(&self, row: usize, metric: &Metric) -> Option<Pairing> {
        let reference = self.compared_with(row)?;
        let (ours, theirs) = (self.rows[reference].values(metric), self.rows[row].values(metric));
        let theirs = |seed: u64| theirs.iter().find(|(other, _)| *other == seed);
        let differences: Vec<f64> = ours
            .iter()
            .filter_map(|(seed, ours)| theirs(*seed).map(|(_, theirs)| ours - theirs))
            .collect();
        Some(Pairing {
            pairs: differences.len(),
            difference: student_mean(&differences)?,
            effect: effect_size(&differences),
            // With two seeds p cannot be below one half.
            p: sign_flip(&differences).filter(|_| differences.len() >= 3),
        })
    }

    /// The note on the kind of scenario, if the runs have one.
    pub fn note(&self) -> Option<&str> {
        let mut runs = self.rows.iter().flat_map(|row| &row.runs);
        runs.find_map(|(_, run)| run.summary.note.as_deref())
    }

    /// Lines as CSV. If there is a note, it is the last column of every line.
    fn csv(&self, mut lines: Vec<Vec<String>>) -> String {
        if let Some(note) = self.note() {
            let notes = std::iter::once("note").chain(std::iter::repeat(note));
            lines.iter_mut().zip(notes).for_each(|(line, note)| line.push(note.to_owned()));
        }
        csv_text(&lines)
    }

    /// The metrics in the files. Metrics that version 1 of the program did not have are left out if
    /// no run has a value, so that tables of old runs do not change.
    fn metrics(&self) -> Vec<&'static Metric> {
        const LATER: [&str; 3] = ["success_area", "server_steps_per_round", "unfit_total"];
        let runs = || self.rows.iter().flat_map(|row| &row.runs);
        let has = |metric: &Metric| runs().any(|(_, run)| (metric.value)(&run.summary).is_some());
        let written = |metric: &&Metric| !LATER.contains(&metric.name) || has(metric);
        METRICS.iter().filter(written).collect()
    }

    /// One line per run: every metric, or the reason for their absence.
    pub fn runs_csv(&self) -> String {
        let replicated = self.rows.iter().flat_map(Row::asked).any(|one| one.replicate > 0);
        let metrics = self.metrics();
        let [point, method, seed, replicate, status, reason] = RUN_COLUMNS.map(|(name, _)| name);
        let mut head = vec![point, method, seed];
        head.extend(replicated.then_some(replicate));
        head.push(status);
        head.extend(metrics.iter().map(|metric| metric.name));
        head.push(reason);
        let none = || vec![String::new(); metrics.len()];
        let mut lines = vec![head.into_iter().map(str::to_owned).collect()];
        for row in &self.rows {
            let values = |run: &Finished| {
                metrics.iter().map(|metric| text((metric.value)(&run.summary))).collect()
            };
            let done = row.runs.iter().map(|(seed, run)| (*seed, "done", values(run), ""));
            let failed = row.failed.iter().map(|(seed, why)| (*seed, "failed", none(), &why[..]));
            let missing = row.missing.iter().map(|seed| (*seed, "missing", none(), ""));
            let mut of_row: Vec<(Seeds, &str, Vec<String>, &str)> =
                done.chain(failed).chain(missing).collect();
            of_row.sort_by_key(|(seed, ..)| *seed);
            for (Seeds { seed, replicate }, status, values, reason) in of_row {
                let Subject { point, method } = &row.subject;
                let mut line = vec![point.clone(), method.clone(), seed.to_string()];
                line.extend(replicated.then(|| replicate.to_string()));
                line.push(status.to_owned());
                line.extend(values);
                line.push(reason.to_owned());
                lines.push(line);
            }
        }
        self.csv(lines)
    }

    /// One line for every row and metric: mean, interval, and the comparison with the reference, in
    /// a sweep with its method at the same point.
    pub fn table_csv(&self) -> String {
        let head = TABLE_COLUMNS.map(|(name, _)| name);
        let mut lines = vec![head.map(str::to_owned).to_vec()];
        for (index, row) in self.rows.iter().enumerate() {
            for metric in self.metrics() {
                let pairing = self.pairing(index, metric);
                let Subject { point, method } = &row.subject;
                let mut line = vec![point.clone(), method.clone(), metric.name.to_owned()];
                line.extend([row.runs.len(), row.values(metric).len()].map(|n| n.to_string()));
                line.extend(numbers(row.estimate(metric)));
                let kind = if metric.episodes.is_some() { "wilson" } else { "bootstrap" };
                line.push(kind.to_owned());
                line.push(pairing.map_or(0, |one| one.pairs).to_string());
                line.extend(numbers(pairing.map(|one| one.difference)));
                line.push(text(pairing.and_then(|one| one.effect)));
                line.push(text(pairing.and_then(|one| one.p)));
                lines.push(line);
            }
        }
        self.csv(lines)
    }

    /// The table in Markdown: means over seeds with 95 % intervals.
    pub fn markdown(&self) -> String {
        let several = self.rows.iter().any(|row| row.subject.point != self.rows[0].subject.point);
        let mut lines = Vec::new();
        let mut head: Vec<String> = PRINTED.iter().map(|(title, ..)| (*title).to_owned()).collect();
        let titles =
            if several { vec!["point", "method", "seeds"] } else { vec!["method", "seeds"] };
        head.splice(0..0, titles.into_iter().map(str::to_owned));
        lines.push(format!("| {} |", head.join(" | ")));
        lines.push(format!("|{}", "---|".repeat(head.len())));
        for row in &self.rows {
            let mut cells = vec![row.subject.method.clone(), row.seeds()];
            if several {
                cells.insert(0, row.subject.point.clone());
            }
            let value = |&(_, name, scale, digits): &(&str, &str, f64, usize)| {
                row.cell(Metric::named(name), scale, digits)
            };
            cells.extend(PRINTED.iter().map(value));
            lines.push(format!("| {} |", cells.join(" | ")));
        }
        lines.extend(self.note().map(|note| format!("\n{note}")));
        lines.extend(self.gaps().iter().map(|gap| format!("\n{gap}")));
        lines.join("\n") + "\n"
    }

    /// The table for the console: means only, in lines of at most 80 characters.
    pub fn compact(&self) -> String {
        let several = self.rows.iter().any(|row| row.subject.point != self.rows[0].subject.point);
        let mut text = format!("{:24}{:>7}", "", "seeds");
        COMPACT.iter().for_each(|(title, ..)| text += &format!("{title:>8}"));
        text.push('\n');
        for row in &self.rows {
            let Subject { point, method } = &row.subject;
            let name = if several { format!("{point} {method}") } else { method.clone() };
            let name: String = name.chars().take(23).collect();
            let seeds: String = row.seeds().chars().take(7).collect();
            text += &format!("{name:24}{seeds:>7}");
            for (_, metric, scale) in COMPACT {
                let mean = row.estimate(Metric::named(metric)).map(|one| scale * one.mean);
                let cell = mean.map_or_else(|| "-".to_owned(), short_number);
                text += &format!("{cell:>8}");
            }
            text.push('\n');
        }
        text += "means over seeds; - if not every seed has a value. Intervals: table.md\n";
        self.gaps().iter().for_each(|gap| text += &format!("{gap}\n"));
        text
    }

    /// Lines of text on failed and missing runs.
    pub(super) fn gaps(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for row in &self.rows {
            let Subject { point, method } = &row.subject;
            for (seed, reason) in &row.failed {
                lines.push(format!("failed: {method} at {point}, seed {seed}: {reason}"));
            }
            if !row.missing.is_empty() {
                let seeds: Vec<String> = row.missing.iter().map(|one| one.folder()).collect();
                lines.push(format!("missing: {method} at {point}, seeds {}", seeds.join(", ")));
            }
        }
        lines
    }
}

/// The name of a method without its compression: a sweep of retention uses one name.
pub(super) fn without_q(method: &str) -> &str {
    method.split_once("+q").map_or(method, |(plain, _)| plain)
}

fn numbers(estimate: Option<Estimate>) -> [String; 3] {
    let interval = estimate.and_then(|one| one.interval);
    let mean = text(estimate.map(|one| one.mean));
    [mean, text(interval.map(|[low, _]| low)), text(interval.map(|[_, high]| high))]
}

fn text(value: Option<f64>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

pub(super) fn csv_text(lines: &[Vec<String>]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    lines.iter().for_each(|line| writer.write_record(line).expect("memory takes every line"));
    let bytes = writer.into_inner().expect("memory takes every line");
    String::from_utf8(bytes).expect("made of text")
}
