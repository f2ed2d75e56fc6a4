//! Whether compression and schedule matter: joules and seconds to the same success with one
//! compression for all terminals or two, and with a few terminals per round or all that are in
//! time.

use serde_json::{Value, json};

use super::Examination;
use super::criteria::{Criterion, Finding, table};
use super::runs::Found;
use crate::experiment::study::{Finished, StudyFolder};
use crate::record::AtThresholds;
use crate::scenario::{Scenario, Seeds};
use crate::statistics::mean;

/// How `deficit` compresses, and how many terminals it schedules.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    /// Compression of the farther half of the terminals.
    pub far: f64,
    /// Compression of the nearer half.
    pub near: f64,
    /// Terminals scheduled per round, at most.
    pub n_scheduled: usize,
    /// Whether all terminals may be scheduled.
    pub everybody: bool,
}

impl Setting {
    /// Whether all terminals have the same compression.
    pub fn is_single(&self) -> bool {
        self.far == self.near
    }

    /// Its name in tables and folders.
    pub fn label(&self) -> String {
        let Self { far, near, n_scheduled, everybody } = self;
        let who = if *everybody { "everybody".to_owned() } else { n_scheduled.to_string() };
        match self.is_single() {
            true => format!("q {far}, {who}"),
            false => format!("q {near} near and {far} far, {who}"),
        }
    }

    /// Its overrides of the scenario.
    pub fn overrides(&self) -> Vec<String> {
        let reference = |key: &str, value: String| format!("methods.reference.{key}={value}");
        let mut set = vec![
            reference("compression", self.far.to_string()),
            reference("n_scheduled", self.n_scheduled.to_string()),
        ];
        set.extend(
            (!self.is_single()).then(|| reference("near_compression", self.near.to_string())),
        );
        set
    }
}

/// Compressions as shares of the largest: one for all, and two for the nearer and the farther half.
const SINGLE: [f64; 3] = [0.5556, 0.8334, 1.0];
const MIXED: [[f64; 2]; 3] = [[0.5556, 1.0], [0.8334, 1.0], [0.0, 0.8334]];

/// The settings that are compared.
pub fn settings(scenario: &Scenario) -> Vec<Setting> {
    let (n, few) = (scenario.n_terminals(), scenario.reference_scheduled());
    // Rounded to two digits, so that 0.9 times a share is 0.5, 0.75 and 0.9.
    let level = |share: f64| (100.0 * share * scenario.most_compression()).round() / 100.0;
    let pairs = SINGLE.iter().map(|&share| [share; 2]).chain(MIXED);
    let pairs: Vec<[f64; 2]> = pairs.map(|pair| pair.map(level)).collect();
    let of = |(n_scheduled, everybody): (usize, bool)| {
        let setting = move |&[near, far]: &[f64; 2]| Setting { far, near, n_scheduled, everybody };
        pairs.iter().map(setting).collect::<Vec<_>>()
    };
    [(few, false), (n, true)].into_iter().flat_map(of).collect()
}

/// The result of one setting.
#[derive(Clone, Debug, PartialEq)]
pub struct SettingRow {
    /// The setting.
    pub setting: Setting,
    /// Mean final success.
    pub success: f64,
    /// Mean seconds and joules to each threshold; `None` unless every seed reached it.
    pub costs: [Option<[f64; 2]>; 3],
}

const THRESHOLDS: [&str; 3] = ["60 %", "70 %", "80 %"];

fn row(setting: Setting, runs: &[(Seeds, Finished)]) -> SettingRow {
    let at = |of: fn(&AtThresholds<f64>) -> Option<f64>| {
        let one =
            |(_, run): &(Seeds, Finished)| Some([of(&run.summary.tta_s)?, of(&run.summary.eta_j)?]);
        let all: Option<Vec<[f64; 2]>> = runs.iter().map(one).collect();
        let all = all.filter(|all| !all.is_empty())?;
        let mean = |index: usize| all.iter().map(|one| one[index]).sum::<f64>() / all.len() as f64;
        Some([mean(0), mean(1)])
    };
    let success = runs.iter().filter_map(|(_, run)| run.summary.success_final);
    SettingRow {
        setting,
        success: mean(success).unwrap_or(f64::NAN),
        costs: [at(|one| one.at_60), at(|one| one.at_70), at(|one| one.at_80)],
    }
}

/// The cost: the geometric mean of seconds and joules.
fn cost([seconds, joules]: [f64; 2]) -> f64 {
    (seconds * joules).sqrt()
}

/// The cheapest of the settings of a kind at a threshold.
fn best(
    rows: &[SettingRow],
    threshold: usize,
    is_of_kind: fn(&Setting) -> bool,
) -> Option<&SettingRow> {
    let value = |row: &&SettingRow| row.costs[threshold].map(cost);
    let of_kind = rows.iter().filter(|row| is_of_kind(&row.setting) && value(row).is_some());
    of_kind.min_by(|a, b| value(a).partial_cmp(&value(b)).unwrap_or(std::cmp::Ordering::Equal))
}

/// The finding; the number of missing runs if not all are complete.
pub(super) fn finding(examined: &Examination, study: &StudyFolder) -> Found<Finding> {
    let criterion = Criterion::Participation;
    let (mut rows, mut missing) = (Vec::new(), 0);
    for setting in settings(&examined.scenario) {
        match examined.finished(criterion, study, &setting.label(), "deficit")? {
            Ok(runs) => rows.push(row(setting, &runs)),
            Err(count) => missing += count,
        }
    }
    Ok(if missing == 0 { Ok(judged(&rows)) } else { Err(missing) })
}

/// The verdict at the highest threshold that some setting of every kind reached on every seed.
fn judged(rows: &[SettingRow]) -> Finding {
    let kinds: [fn(&Setting) -> bool; 4] = [
        Setting::is_single,
        |setting| !setting.is_single(),
        |setting| setting.everybody,
        |setting| !setting.everybody,
    ];
    let at = |threshold: usize| -> Option<[&SettingRow; 4]> {
        let [a, b, c, d] = kinds.map(|kind| best(rows, threshold, kind));
        Some([a?, b?, c?, d?])
    };
    let details = table(&COLUMNS, rows.iter().map(as_json).collect());
    let found = (0..3).rev().find_map(|threshold| Some((threshold, at(threshold)?)));
    let Some((threshold, [single, mixed, everybody, few])) = found else {
        let measured = "no threshold was reached on every seed by every kind of rule".to_owned();
        return Finding::new(Criterion::Participation, measured, None, details);
    };
    let of = |row: &SettingRow| row.costs[threshold].unwrap_or([f64::NAN; 2]);
    let more = |worse: &SettingRow, better: &SettingRow| {
        let (worse, better) = (of(worse), of(better));
        let part = |index: usize| 100.0 * (worse[index] / better[index] - 1.0);
        (cost(worse) / cost(better), part(0), part(1))
    };
    let (q, x) = (more(single, mixed), more(everybody, few));
    let measured = format!(
        "to {}: {} costs {:+.0} % s and {:+.0} % J over {}; {} costs {:+.0} % s and {:+.0} % J over {}",
        THRESHOLDS[threshold],
        single.setting.label(),
        q.1,
        q.2,
        mixed.setting.label(),
        everybody.setting.label(),
        x.1,
        x.2,
        few.setting.label(),
    );
    let holds = Some(q.0 >= 1.1 && x.0 >= 1.1);
    Finding::new(Criterion::Participation, measured, holds, details)
}

/// Columns of the table.
const COLUMNS: [&str; 8] = [
    "deficit_with",
    "success_%",
    "s_to_60 %",
    "J_to_60 %",
    "s_to_70 %",
    "J_to_70 %",
    "s_to_80 %",
    "J_to_80 %",
];

fn as_json(row: &SettingRow) -> Value {
    let mut value =
        json!({ "deficit_with": row.setting.label(), "success_%": 100.0 * row.success });
    for (threshold, costs) in THRESHOLDS.iter().zip(row.costs) {
        value[format!("s_to_{threshold}")] = json!(costs.map(|[seconds, _]| seconds));
        value[format!("J_to_{threshold}")] = json!(costs.map(|[_, joules]| joules));
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(far: f64, near: f64, everybody: bool, costs: [Option<[f64; 2]>; 3]) -> SettingRow {
        let setting =
            Setting { far, near, n_scheduled: if everybody { 50 } else { 10 }, everybody };
        SettingRow { setting, success: 0.7, costs }
    }

    #[test]
    fn the_verdict_is_at_the_highest_threshold_that_every_kind_reached() {
        let mut rows = vec![
            made(0.9, 0.9, false, [Some([100.0, 50.0]), Some([300.0, 160.0]), Some([1.0, 1.0])]),
            made(0.5, 0.5, false, [Some([90.0, 90.0]), None, None]),
            made(0.9, 0.5, false, [Some([80.0, 40.0]), Some([250.0, 150.0]), None]),
            made(0.9, 0.9, true, [Some([200.0, 90.0]), Some([400.0, 200.0]), None]),
        ];
        let finding = judged(&rows);
        assert_eq!(finding.holds, Some(true));
        assert!(
            finding.measured.starts_with("to 70 %: q 0.9, 10 costs +20 % s and +7 % J"),
            "{}",
            finding.measured
        );
        assert!(
            finding.measured.ends_with("over q 0.5 near and 0.9 far, 10"),
            "{}",
            finding.measured
        );
        // With a mixed rule that saves nothing the criterion fails.
        rows[2].costs = rows[0].costs;
        assert_eq!(judged(&rows).holds, Some(false));
        rows.pop();
        assert_eq!(judged(&rows).holds, None, "no run scheduled every terminal");
    }

    #[test]
    fn settings_have_names_of_their_own_and_stay_within_the_limit() {
        let scenario = Scenario::load("default", &[]).unwrap();
        let all = settings(&scenario);
        assert_eq!(all.len(), 12);
        let mut labels: Vec<String> = all.iter().map(Setting::label).collect();
        labels.sort();
        labels.dedup();
        assert_eq!(labels.len(), 12);
        assert!(labels.contains(&"q 0.5 near and 0.9 far, everybody".to_owned()), "{labels:?}");
        for setting in &all {
            assert!(scenario.varied(&setting.overrides()).is_ok(), "{}", setting.label());
        }
    }
}
