//! TiLP against what it set out to reach: the best of the eight with guard, metric by metric, and the
//! row with the highest success of all.

use crate::experiment::study::{Metric, Plan, Row, Table};
use crate::statistics::{Estimate, bootstrap_mean};

/// How TiLP is held against a rival.
#[derive(Clone, Copy)]
enum Measure {
    /// Difference in points, more is better.
    Points,
    /// Ratio, less is better.
    Ratio,
}

/// One aim: the difference or the ratio that is asked for.
struct Aim {
    title: &'static str,
    metric: &'static str,
    measure: Measure,
    /// Against the best of the eight with guard.
    best: f64,
    /// Against the strongest row of all.
    strongest: f64,
}

const fn points(title: &'static str, metric: &'static str, best: f64) -> Aim {
    Aim { title, metric, measure: Measure::Points, best, strongest: 0.0 }
}

const fn ratio(title: &'static str, metric: &'static str, best: f64) -> Aim {
    Aim { title, metric, measure: Measure::Ratio, best, strongest: 1.0 }
}

const AIMS: [Aim; 10] = [
    points("final success", "success_final", 0.0),
    points("success of the far third", "success_far", 15.0),
    ratio("seconds to 60 %", "tta_s_0.6", 0.1),
    ratio("seconds to 70 %", "tta_s_0.7", 0.1),
    ratio("seconds to 80 %", "tta_s_0.8", 0.1),
    ratio("joules to 60 %", "eta_j_0.6", 1.0 / 3.0),
    ratio("joules to 70 %", "eta_j_0.7", 1.0 / 3.0),
    ratio("joules to 80 %", "eta_j_0.8", 1.0 / 3.0),
    ratio("median latency", "latency_p50_s", 0.1),
    ratio("volume", "volume_total_bytes", 0.1),
];

/// Share of rounds without a violation that is asked for.
const ZERO_VIOLATION: f64 = 0.999;

/// The verdicts as text in Markdown; none where TiLP was not compared with one of the eight.
pub fn markdown(plan: &Plan, table: &Table) -> Option<String> {
    let lines = lines(plan, table)?;
    let mut text = String::from(
        "| aim | best of the eight with guard | TiLP against it | verdict | row of the highest \
         success | TiLP against it | verdict |\n|---|---|---|---|---|---|---|\n",
    );
    for line in lines {
        text += &format!("| {} |\n", line.join(" | "));
    }
    Some(text)
}

/// A line for every aim: title; rival, comparison and verdict twice.
pub fn lines(plan: &Plan, table: &Table) -> Option<Vec<[String; 7]>> {
    let ours = table.rows.get(table.reference).filter(|row| row.subject.method == "tilp")?;
    if plan.question != "compare" || ours.runs.is_empty() {
        return None;
    }
    let is_guarded = |row: &&Row| row.subject.method.ends_with("+guard") && !row.runs.is_empty();
    let guarded: Vec<&Row> = table.rows.iter().filter(is_guarded).collect();
    let strongest = strongest(table)?;
    let mut lines = Vec::new();
    for aim in &AIMS {
        let [rival, against, verdict] = match best(&guarded, aim) {
            Some(rival) => held(ours, rival, aim, aim.best),
            None => ["none".into(), reached(ours, aim), "-".into()],
        };
        let [strong, beside, other] = held(ours, strongest, aim, aim.strongest);
        lines.push([aim.title.into(), rival, against, verdict, strong, beside, other]);
    }
    lines.push(violation(ours));
    (!guarded.is_empty()).then_some(lines)
}

/// The row with the highest success, TiLP and the oracle apart.
fn strongest(table: &Table) -> Option<&Row> {
    let success = |row: &Row| row.estimate(Metric::named("success_final")).map(|one| one.mean);
    let rivals = table
        .rows
        .iter()
        .enumerate()
        .filter(|(index, row)| *index != table.reference && row.subject.method != "oracle");
    let rivals = rivals.filter_map(|(_, row)| Some((success(row)?, row)));
    rivals.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, row)| row)
}

/// The best of some rows: what most of the seeds reach counts first, the mean of those then.
fn best<'a>(rows: &[&'a Row], aim: &Aim) -> Option<&'a Row> {
    let metric = Metric::named(aim.metric);
    let sign = if metric.more_is_better == Some(true) { 1.0 } else { -1.0 };
    let place = |row: &Row| {
        let values = row.values(metric);
        let sum: f64 = values.iter().map(|(_, value)| value).sum();
        (!values.is_empty()).then(|| (values.len(), sign * sum / values.len() as f64))
    };
    let placed = rows.iter().filter_map(|row| Some((place(row)?, *row)));
    placed.max_by(|(a, _), (b, _)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))).map(|(_, row)| row)
}

/// In how many runs a threshold was reached, where not in all.
fn reached(row: &Row, aim: &Aim) -> String {
    let values = row.values(Metric::named(aim.metric)).len();
    if values == row.runs.len() { String::new() } else { format!("{values} of {}", row.runs.len()) }
}

/// Rival, comparison and verdict.
fn held(ours: &Row, rival: &Row, aim: &Aim, asked: f64) -> [String; 3] {
    let metric = Metric::named(aim.metric);
    let theirs = rival.values(metric);
    let of = |seed: u64| theirs.iter().find(|(other, _)| *other == seed).map(|(_, value)| *value);
    let pairs = ours.values(metric).into_iter().filter_map(|(seed, own)| Some((own, of(seed)?)));
    let values: Vec<f64> = pairs
        .map(|(own, other)| match aim.measure {
            Measure::Points => 100.0 * (own - other),
            Measure::Ratio => (own / other).ln(),
        })
        .collect();
    let Some(estimate) = bootstrap_mean(&values) else {
        return [rival.subject.method.clone(), "no seed in common".into(), "missed".into()];
    };
    let mut text = match aim.measure {
        Measure::Points => shown(estimate, |value| format!("{value:+.1}")) + " points",
        Measure::Ratio => shown(estimate, |value| format!("{:.2}", value.exp())) + " times",
    };
    let counts = [reached(ours, aim), reached(rival, aim)];
    if counts.iter().any(|count| !count.is_empty()) {
        let all = |row: &Row| format!("{0} of {0}", row.runs.len());
        let [own, other] = [(counts[0].clone(), ours), (counts[1].clone(), rival)]
            .map(|(count, row)| if count.is_empty() { all(row) } else { count });
        text += &format!("; reached in {own} runs against {other}");
    }
    [rival.subject.method.clone(), text, verdict(estimate, aim, asked).into()]
}

fn shown(estimate: Estimate, text: impl Fn(f64) -> String) -> String {
    let interval = estimate
        .interval
        .map_or(String::new(), |[low, high]| format!(" [{}, {}]", text(low), text(high)));
    text(estimate.mean) + &interval
}

/// Met or missed where the whole interval agrees; one pair of runs has none.
fn verdict(estimate: Estimate, aim: &Aim, asked: f64) -> &'static str {
    let good = |value: f64| match aim.measure {
        Measure::Points => value >= asked,
        Measure::Ratio => value <= asked.ln(),
    };
    let Some(ends) = estimate.interval else {
        return if good(estimate.mean) { "met by the one pair" } else { "missed by the one pair" };
    };
    match ends.map(good) {
        [true, true] => "met",
        [false, false] => "missed",
        _ if good(estimate.mean) => "met in the mean, not told apart",
        _ => "missed in the mean, not told apart",
    }
}

fn violation(ours: &Row) -> [String; 7] {
    let shares = ours.values(Metric::named("violation_zero_share"));
    let least = shares.iter().map(|(_, share)| *share).fold(1.0, f64::min);
    let verdict = if least >= ZERO_VIOLATION { "met" } else { "missed" };
    let text = format!("{:.2} % of the rounds in the worst run", 100.0 * least);
    ["rounds without violation", "", &text, verdict, "", &text, verdict].map(str::to_owned)
}
