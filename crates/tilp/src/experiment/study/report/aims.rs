//! TiLP against its aims (`docs/aims.toml`): compared with the best of the eight published methods
//! with guard, metric by metric, and with the row of the highest success.

use std::cmp::Ordering;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::experiment::study::{Metric, Plan, Row, StudyKind, Table};
use crate::statistics::{Estimate, mean, student_mean};

/// How TiLP is compared with a rival.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Measure {
    /// Difference in points, more is better.
    Points,
    /// Ratio, less is better.
    Ratio,
}

/// One aim: the required difference or ratio.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Aim {
    title: String,
    metric: String,
    measure: Measure,
    /// Against the best of the eight with guard.
    best: f64,
    /// Against the strongest row of all.
    strongest: f64,
}

impl Aim {
    /// The requirement as text.
    fn threshold(&self, asked: f64) -> String {
        match self.measure {
            Measure::Points => format!("at least {asked:+.1} points"),
            Measure::Ratio => format!("at most {asked:.2} times"),
        }
    }

    /// Whether a difference in points, or the logarithm of a ratio, meets the requirement.
    fn is_met(&self, value: f64, asked: f64) -> bool {
        match self.measure {
            Measure::Points => value >= asked,
            Measure::Ratio => value <= asked.ln(),
        }
    }
}

/// All aims.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Aims {
    /// Share of rounds without a violation.
    zero_violation_share: f64,
    /// The first is final success.
    aim: Vec<Aim>,
}

static AIMS: LazyLock<Aims> = LazyLock::new(|| {
    let text = include_str!("../../../../../../docs/aims.toml");
    toml::from_str(text).expect("a test reads the aims")
});

/// The comparison on one seed with a run of both rows, if at least one has a value.
#[derive(Clone, Copy, PartialEq)]
enum Meeting {
    /// Both have a value: the difference in points or the logarithm of the ratio.
    Both(f64),
    /// Only TiLP reached the threshold.
    Ours,
    /// Only the rival reached it.
    Theirs,
}

/// The titles of the columns.
pub(crate) const HEAD: [&str; 9] = [
    "aim",
    "best of the eight with guard",
    "TiLP against it",
    "aimed at",
    "verdict",
    "row of the highest success",
    "TiLP against it",
    "aimed at",
    "verdict",
];

/// Least number of seeds for a verdict.
pub(super) const LEAST_SEEDS: usize = 3;

fn too_few(n_seeds: usize) -> String {
    let seeds = if n_seeds == 1 { "seed" } else { "seeds" };
    format!("none: {n_seeds} {seeds}, needs {LEAST_SEEDS}")
}

/// The verdicts in Markdown; `None` if TiLP was not compared with another row.
pub(crate) fn markdown(plan: &Plan, table: &Table) -> Option<String> {
    let lines = lines(plan, table)?;
    let mut text = format!("| {} |\n|{}\n", HEAD.join(" | "), "---|".repeat(HEAD.len()));
    for line in lines {
        text += &format!("| {} |\n", line.join(" | "));
    }
    Some(text)
}

/// A line for every aim: title; rival, comparison, threshold and verdict twice. `None` without a
/// row to compare with. If none of the eight ran with guard alone, the first half says so.
pub(crate) fn lines(plan: &Plan, table: &Table) -> Option<Vec<[String; 9]>> {
    let ours = table.rows.get(table.reference).filter(|row| row.subject.method == "tilp")?;
    // The aims concern policies that control robots.
    if plan.question != StudyKind::Compare || ours.runs.is_empty() || table.note().is_some() {
        return None;
    }
    let is_guarded = |row: &&Row| row.subject.method.ends_with("+guard") && !row.runs.is_empty();
    let guarded: Vec<&Row> = table.rows.iter().filter(is_guarded).collect();
    let strongest = strongest(table)?;
    let mut lines = Vec::new();
    for aim in &AIMS.aim {
        let [rival, against, verdict] = match best(ours, &guarded, aim) {
            Some(rival) => held(ours, rival, aim, aim.best),
            None => ["none".into(), reached(ours, aim), "-".into()],
        };
        let [strong, beside, other] = held(ours, strongest, aim, aim.strongest);
        let [first, second] = [aim.best, aim.strongest].map(|asked| aim.threshold(asked));
        let title = aim.title.clone();
        lines.push([title, rival, against, first, verdict, strong, beside, second, other]);
    }
    lines.push(violation(ours));
    Some(lines)
}

/// The row with the highest success, except TiLP and the references with hidden true values.
fn strongest(table: &Table) -> Option<&Row> {
    let success = |row: &Row| row.estimate(Metric::named("success_final")).map(|one| one.mean);
    let rivals = table
        .rows
        .iter()
        .enumerate()
        .filter(|(index, row)| *index != table.reference && !row.is_told());
    let rivals = rivals.filter_map(|(_, row)| Some((success(row)?, row)));
    rivals.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, row)| row)
}

/// The best of some rows: first the one that reached the threshold on the largest share of the
/// seeds that it has in common with TiLP; then the one with the best result against TiLP on the
/// seeds where both reached it; then the one with the highest success. A row with fewer seeds is
/// not at a disadvantage.
fn best<'a>(ours: &Row, rows: &[&'a Row], aim: &Aim) -> Option<&'a Row> {
    let key = |row: &Row| {
        let theirs: Vec<_> = paired(ours, row, aim).into_iter().map(|(_, other)| other).collect();
        let share = mean(theirs.iter().map(|other| f64::from(u8::from(other.is_some()))))?;
        let sign = if matches!(aim.measure, Measure::Points) { -1.0 } else { 1.0 };
        let worst = mean(both(&meetings(ours, row, aim))).map_or(f64::NEG_INFINITY, |v| sign * v);
        let success = mean(both(&meetings(ours, row, &AIMS.aim[0]))).unwrap_or(f64::INFINITY);
        Some([share, worst, -success])
    };
    let better = |a: &[f64; 3], b: &[f64; 3]| {
        let orders = a.iter().zip(b).map(|(a, b)| a.total_cmp(b));
        orders.fold(Ordering::Equal, Ordering::then)
    };
    // Of equal rows the first.
    let placed = rows.iter().rev().filter_map(|row| Some((key(row)?, *row)));
    placed.max_by(|(a, _), (b, _)| better(a, b)).map(|(_, row)| row)
}

/// The values of both rows on the seeds with a run of both.
fn paired(ours: &Row, rival: &Row, aim: &Aim) -> Vec<(Option<f64>, Option<f64>)> {
    let metric = Metric::named(&aim.metric);
    let theirs = rival.by_seed(metric);
    let pair = |(seed, own): (u64, Option<f64>)| Some((own, *theirs.get(&seed)?));
    ours.by_seed(metric).into_iter().filter_map(pair).collect()
}

fn meetings(ours: &Row, rival: &Row, aim: &Aim) -> Vec<Meeting> {
    let meeting = |pair: (Option<f64>, Option<f64>)| match (pair, aim.measure) {
        ((Some(own), Some(other)), Measure::Points) => Some(Meeting::Both(100.0 * (own - other))),
        ((Some(own), Some(other)), Measure::Ratio) => Some(Meeting::Both((own / other).ln())),
        ((Some(_), None), Measure::Ratio) => Some(Meeting::Ours),
        ((None, Some(_)), Measure::Ratio) => Some(Meeting::Theirs),
        _ => None,
    };
    let is_number = |meeting: &Meeting| !matches!(meeting, Meeting::Both(v) if !v.is_finite());
    paired(ours, rival, aim).into_iter().filter_map(meeting).filter(is_number).collect()
}

/// The differences or ratios of the seeds on which both have a value.
fn both(meetings: &[Meeting]) -> Vec<f64> {
    let value = |meeting: &Meeting| match meeting {
        Meeting::Both(value) => Some(*value),
        _ => None,
    };
    meetings.iter().filter_map(value).collect()
}

/// On how many seeds a threshold was reached; empty if on all.
fn reached(row: &Row, aim: &Aim) -> String {
    let values = row.values(Metric::named(&aim.metric)).len();
    let all = row.n_seeds();
    if values == all { String::new() } else { format!("{values} of {all}") }
}

/// Rival, comparison and verdict.
fn held(ours: &Row, rival: &Row, aim: &Aim, asked: f64) -> [String; 3] {
    let (meetings, seeds) = (meetings(ours, rival, aim), paired(ours, rival, aim).len());
    let estimate = student_mean(&both(&meetings));
    let of = |kind: Meeting| meetings.iter().filter(|one| **one == kind).count();
    let (only_ours, only_theirs) = (of(Meeting::Ours), of(Meeting::Theirs));
    let counts = [
        (only_ours, "only TiLP got there on"),
        (only_theirs, "only the rival on"),
        (seeds - meetings.len(), "neither on"),
    ];
    let mut parts: Vec<String> =
        estimate.map(|estimate| compared(estimate, aim)).into_iter().collect();
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    parts.extend(counts.map(|(count, text)| format!("{text} {count}")));
    let text = if seeds == 0 { "no seed in common".to_owned() } else { parts.join(", ") };
    let verdict = match estimate {
        _ if (1..LEAST_SEEDS).contains(&meetings.len()) => too_few(meetings.len()),
        _ if only_ours + only_theirs > 0 => counted(&meetings, aim, asked),
        Some(estimate) => verdict(estimate, aim, asked).to_owned(),
        None => "-".to_owned(),
    };
    [rival.subject.method.clone(), text, verdict]
}

fn compared(estimate: Estimate, aim: &Aim) -> String {
    match aim.measure {
        Measure::Points => shown(estimate, |value| format!("{value:+.1}")) + " points",
        Measure::Ratio => shown(estimate, |value| format!("{:.2}", value.exp())) + " times",
    }
}

/// The verdict if on some seed only one of the two reached the threshold, so that there is no
/// ratio: the number of seeds that TiLP won. It wins a seed if the ratio meets the requirement, or
/// if only TiLP reached the threshold.
fn counted(meetings: &[Meeting], aim: &Aim, asked: f64) -> String {
    let is_won = |meeting: &&Meeting| match meeting {
        Meeting::Both(value) => aim.is_met(*value, asked),
        Meeting::Ours => true,
        Meeting::Theirs => false,
    };
    let (won, all) = (meetings.iter().filter(is_won).count(), meetings.len());
    match won {
        0 => "missed on every seed".to_owned(),
        _ if won == all => "met on every seed".to_owned(),
        _ => format!("met on {won} of {all} seeds"),
    }
}

fn shown(estimate: Estimate, text: impl Fn(f64) -> String) -> String {
    let interval = estimate
        .interval
        .map_or(String::new(), |[low, high]| format!(" [{}, {}]", text(low), text(high)));
    text(estimate.mean) + &interval
}

/// Met or missed if the whole interval agrees.
fn verdict(estimate: Estimate, aim: &Aim, asked: f64) -> &'static str {
    let good = |value: f64| aim.is_met(value, asked);
    let Some(ends) = estimate.interval else { return "-" };
    match ends.map(good) {
        [true, true] => "met",
        [false, false] => "missed",
        _ if good(estimate.mean) => "met in the mean, not significant",
        _ => "missed in the mean, not significant",
    }
}

fn violation(ours: &Row) -> [String; 9] {
    let shares = ours.values(Metric::named("violation_zero_share"));
    let least = shares.iter().map(|(_, share)| *share).reduce(f64::min);
    let (text, verdict) = match least.filter(|_| shares.len() == ours.n_seeds()) {
        Some(least) => {
            let is_met = least >= AIMS.zero_violation_share;
            let verdict = match shares.len() {
                few @ 0..LEAST_SEEDS => too_few(few),
                _ => (if is_met { "met" } else { "missed" }).to_owned(),
            };
            (format!("{:.2} % of the rounds in the worst run", 100.0 * least), verdict)
        }
        None => ("not measured in every run".to_owned(), "-".to_owned()),
    };
    let asked = format!("at least {:.1} %", 100.0 * AIMS.zero_violation_share);
    let (title, text, asked) = ("rounds without violation", &text[..], &asked[..]);
    [title, "", text, asked, &verdict, "", text, asked, &verdict].map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_aim_is_about_a_metric_and_the_first_about_final_success() {
        assert_eq!(AIMS.aim[0].metric, "success_final");
        assert_eq!(AIMS.aim.len(), 10);
        for aim in &AIMS.aim {
            assert_eq!(Metric::named(&aim.metric).name, aim.metric);
            // At least level with the strongest row, and further ahead of the best of the eight.
            let is_ahead = match aim.measure {
                Measure::Points => 0.0 <= aim.strongest && aim.strongest <= aim.best,
                Measure::Ratio => 1.0 >= aim.strongest && aim.strongest >= aim.best,
            };
            assert!(is_ahead, "{}", aim.title);
        }
        assert!((0.0..=1.0).contains(&AIMS.zero_violation_share));
    }
}
