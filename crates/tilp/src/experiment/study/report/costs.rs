//! Figures of the cost of success in seconds, joules and bytes, of latencies, and of participation.

use std::collections::BTreeMap;

use super::figures::{Drawn, bands_readable, drawn, panel};
use crate::experiment::study::{Finished, LATENCY_STEP, Metric, Row, Table};
use crate::plot::{Figure, Mark, Panel, Scale, Series, Size};
use crate::statistics::{bootstrap_mean, mean};

/// The costs of the panels: title, metric, label, factor.
const COSTS: [(&str, &str, &str, f64); 3] = [
    ("success against time", "clock_total_s", "simulated time, s", 1.0),
    ("success against energy", "energy_total_j", "energy, J", 1.0),
    ("success against bytes", "air_total_bytes", "on the air, MB", 1e-6),
];

/// Final success against the cost of the whole run: means over seeds with their 95 % intervals. A
/// row to the upper left of another is better in both.
pub(super) fn pareto(table: &Table) -> Figure {
    let rows = drawn(table);
    let of_cost = |&(title, name, label, factor): &(&str, &str, &str, f64)| {
        let mut panel = panel(title, label, "final success, %", Scale::Log, Scale::Linear);
        for one in &rows {
            panel.series.extend(placed(one, name, factor));
        }
        panel
    };
    Figure {
        title: "Final success against its cost: means over seeds, 95 % intervals".into(),
        panels: COSTS.iter().map(of_cost).collect(),
        columns: 3,
        panel: Size { width: 340.0, height: 280.0 },
    }
}

/// The dot of a row and its intervals.
fn placed(one: &Drawn<'_>, cost: &str, factor: f64) -> Vec<Series> {
    let values: Vec<f64> = match cost {
        // Not a metric of the tables.
        "clock_total_s" => by_seed(one.row, |run| Some(run.summary.clock_total_s)),
        _ => one.row.values(Metric::named(cost)).into_iter().map(|(_, value)| value).collect(),
    };
    let success = one.row.estimate(Metric::named("success_final"));
    let (Some(x), Some(y)) = (bootstrap_mean(&values), success) else { return Vec::new() };
    let (at, height) = (factor * x.mean, 1e2 * y.mean);
    let of = |name: &str, mark| Series { name: name.to_owned(), colour: one.colour, mark };
    let across = x.interval.map(|ends| ends.map(|end| (factor * end, height)).to_vec());
    let up = y.interval.map(|ends| ends.map(|end| (at, 1e2 * end)).to_vec());
    let whiskers = [across, up].into_iter().flatten().map(|line| of("", Mark::Whisker(line)));
    whiskers.chain([of(&one.name, Mark::Dots(vec![(at, height)]))]).collect()
}

/// A value for each seed: the mean over its replicates.
fn by_seed(row: &Row, value: impl Fn(&Finished) -> Option<f64>) -> Vec<f64> {
    let mut seeds: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for (seed, run) in &row.runs {
        seeds.entry(seed.seed).or_default().extend(value(run));
    }
    seeds.into_values().filter_map(mean).collect()
}

/// The share of rounds up to a latency; `None` if no run has stored its latencies.
pub(super) fn latencies(table: &Table) -> Option<Figure> {
    let mut panel = panel(
        "rounds up to a latency",
        "latency of a round, s",
        "share of rounds, %",
        Scale::Log,
        Scale::Linear,
    );
    panel.y = panel.y.over(0.0, 100.0);
    for one in drawn(table) {
        let quantile = |at: usize| {
            let of_run = |run: &Finished| run.latency_quantiles_s.get(at).copied();
            mean(by_seed(one.row, of_run)).map(|latency| (latency, (at * LATENCY_STEP) as f64))
        };
        let line: Vec<(f64, f64)> = (0..=100 / LATENCY_STEP).filter_map(quantile).collect();
        push(&mut panel, &one, line, Vec::new());
    }
    single(panel, "Latency of the rounds: means of quantiles over seeds")
}

/// The share of rounds in which each robot takes part, from the best channel to the worst; `None`
/// if no run has stored it.
pub(super) fn participation(table: &Table) -> Option<Figure> {
    let mut panel = panel(
        "participation of the robots",
        "robot, from the best channel to the worst",
        "share of rounds, %",
        Scale::Linear,
        Scale::Linear,
    );
    panel.y = panel.y.over(0.0, 100.0);
    for one in drawn(table) {
        let n = one.row.runs.iter().map(|(_, run)| run.participation.len()).max().unwrap_or(0);
        let (mut line, mut band) = (Vec::new(), Vec::new());
        for at in 0..n {
            let shares = by_seed(one.row, |run| run.participation.get(at).copied());
            let Some(share) = bootstrap_mean(&shares) else { continue };
            let x = at as f64 + 1.0;
            line.push((x, 1e2 * share.mean));
            band.extend(share.interval.map(|[low, high]| (x, 1e2 * low, 1e2 * high)));
        }
        push(&mut panel, &one, line, band);
    }
    bands_readable(&mut panel);
    single(panel, "Participation: means over seeds")
}

fn push(panel: &mut Panel, one: &Drawn<'_>, line: Vec<(f64, f64)>, band: Vec<(f64, f64, f64)>) {
    if line.is_empty() {
        return;
    }
    let of = |name: &str, mark| Series { name: name.to_owned(), colour: one.colour, mark };
    panel.series.push(of("", Mark::Band(band)));
    panel.series.push(of(&one.name, Mark::Line(line)));
}

fn single(panel: Panel, title: &str) -> Option<Figure> {
    let is_empty = panel.series.is_empty();
    let size = Size { width: 560.0, height: 340.0 };
    (!is_empty).then(|| Figure {
        title: title.into(),
        panels: vec![panel],
        columns: 1,
        panel: size,
    })
}
