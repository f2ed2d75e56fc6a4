//! The figures of a study.

use std::collections::BTreeMap;

use crate::experiment::study::table::without_q;
use crate::experiment::study::{Axis as SweepAxis, Finished, Metric, Plan, Row, Sample, Table};
use crate::plot::{Axis, Colour, Figure, Mark, Panel, Scale, Series, Size};
use crate::scenario::Seeds;
use crate::statistics::{bootstrap_mean, mean, stratified_shares_above};

/// The methods that are drawn first if a study has more rows than there are colours, in this order.
/// Those of the highest success follow while there are colours.
const DRAWN: [&str; 7] = [
    "tilp",
    "hsfl+guard",
    "asfl+guard",
    "fedsl+guard",
    "deficit",
    "splitnn+guard",
    "splitfed+guard",
];
const COLOURS: [Colour; 7] = [
    Colour::Blue,
    Colour::Vermilion,
    Colour::Orange,
    Colour::Green,
    Colour::Purple,
    Colour::Sky,
    Colour::Ink,
];

/// A value that a figure takes from a sample.
type Pick = fn(&Sample) -> f64;

/// A row of the table that is drawn, with its name and its colour.
pub(super) struct Drawn<'a> {
    pub row: &'a Row,
    /// The names of all rows with the same runs.
    pub name: String,
    pub colour: Colour,
}

/// A line through the means over seeds and a band of their 95 % intervals; the horizontal position
/// is a mean over seeds, too. Success starts at that of the base policy.
fn averaged(row: &Row, x: Pick, y: Pick, is_success: bool) -> [Mark; 2] {
    let curves: Vec<(u64, Vec<Sample>)> = row
        .runs
        .iter()
        .map(|(seed, run)| {
            let base = run.base().filter(|_| is_success);
            (seed.seed, base.into_iter().chain(run.curve.iter().copied()).collect())
        })
        .collect();
    // Replicates of a seed are pooled.
    let mut seeds: BTreeMap<u64, Vec<&[Sample]>> = BTreeMap::new();
    for (seed, curve) in &curves {
        seeds.entry(*seed).or_default().push(curve);
    }
    let n = seeds.values().flatten().map(|run| run.len()).min().unwrap_or(0);
    let (mut line, mut band) = (Vec::new(), Vec::new());
    for at in 0..n {
        let pooled =
            |runs: &Vec<&[Sample]>, value: Pick| mean(runs.iter().map(|run| value(&run[at])));
        let of = |value: Pick| seeds.values().filter_map(|runs| pooled(runs, value)).collect();
        let (xs, ys): (Vec<f64>, Vec<f64>) = (of(x), of(y));
        let place = xs.iter().sum::<f64>() / xs.len() as f64;
        let Some(estimate) = bootstrap_mean(&ys) else { continue };
        line.push((place, estimate.mean));
        band.extend(estimate.interval.map(|[low, high]| (place, low, high)));
    }
    [Mark::Band(band), Mark::Line(line)]
}

/// Largest number of bands that can be read in a panel.
const MOST_BANDS: usize = 3;

/// Puts the bands behind the lines. If there are too many, only that of the first line stays.
pub(super) fn bands_readable(panel: &mut Panel) {
    let is_band = |series: &Series| matches!(series.mark, Mark::Band(_));
    let bands: Vec<Colour> =
        panel.series.iter().filter(|one| is_band(one)).map(|one| one.colour).collect();
    if bands.len() > MOST_BANDS {
        panel.series.retain(|one| !is_band(one) || one.colour == bands[0]);
    }
    panel.series.sort_by_key(|series| !is_band(series));
}

/// The rows to draw, with their colours. The row of the highest success is always drawn. Rows with
/// the same runs are merged.
pub(super) fn drawn(table: &Table) -> Vec<Drawn<'_>> {
    let mut rows: Vec<(&Row, String)> = Vec::new();
    for row in table.rows.iter().filter(|row| !row.runs.is_empty()) {
        match rows.iter_mut().find(|(other, _)| are_same(other, row)) {
            Some((_, name)) => *name += &format!(" = {}", row.subject.method),
            None => rows.push((row, row.subject.method.clone())),
        }
    }
    if rows.len() > COLOURS.len() {
        let success =
            |row: &Row| row.estimate(Metric::named("success_final")).map_or(0.0, |e| e.mean);
        rows.sort_by(|a, b| success(b.0).total_cmp(&success(a.0)));
        let best = rows[0].0.subject.clone();
        // The sort is stable: methods that are not in `DRAWN` stay ordered by success.
        let place = |row: &Row| DRAWN.iter().position(|name| *name == row.subject.method);
        rows.sort_by_key(|(row, _)| place(row).unwrap_or(DRAWN.len()));
        let last = COLOURS.len() - 1;
        let at = rows.iter().position(|(row, _)| row.subject == best).unwrap_or(last);
        rows[last..=at.max(last)].rotate_right(1);
    }
    let coloured = rows.into_iter().zip(COLOURS);
    coloured.map(|((row, name), colour)| Drawn { row, name, colour }).collect()
}

/// Whether the lines of two rows coincide: the same success on the same seeds, and costs within a
/// hundredth.
fn are_same(a: &Row, b: &Row) -> bool {
    let samples = |row: &Row| -> Vec<(Seeds, Sample)> {
        let of_run = |(seed, run): &(Seeds, Finished)| -> Vec<(Seeds, Sample)> {
            run.curve.iter().map(|sample| (*seed, *sample)).collect()
        };
        row.runs.iter().flat_map(of_run).collect()
    };
    let near = |a: f64, b: f64| (a - b).abs() <= 0.01 * a.abs().max(b.abs());
    let same = |((seed, a), (other, b)): (&(Seeds, Sample), &(Seeds, Sample))| {
        let costs = [
            (a.latency_s, b.latency_s),
            (a.clock_s, b.clock_s),
            (a.energy_j, b.energy_j),
            (a.volume_bytes as f64, b.volume_bytes as f64),
        ];
        let measured = (seed, a.round, a.success) == (other, b.round, b.success);
        measured && costs.iter().all(|(a, b)| near(*a, *b))
    };
    let (a, b) = (samples(a), samples(b));
    !a.is_empty() && a.len() == b.len() && a.iter().zip(&b).all(same)
}

/// Success, latency and volume over the rounds, and success over seconds, joules and bytes.
pub(crate) fn convergence(table: &Table) -> Figure {
    let mut panels = [
        panel("success over rounds", "round", "success, %", Scale::Linear, Scale::Linear),
        panel("latency of a round", "round", "latency, s", Scale::Linear, Scale::Log),
        panel("uplink volume so far", "round", "volume, MB", Scale::Linear, Scale::Log),
        panel("success over time", "simulated time, s", "success, %", Scale::Log, Scale::Linear),
        panel("success over energy", "energy, J", "success, %", Scale::Log, Scale::Linear),
        panel("success over volume", "volume, MB", "success, %", Scale::Log, Scale::Linear),
    ];
    let percent: Pick = |one| 1e2 * one.success;
    let megabytes: Pick = |one| 1e-6 * one.volume_bytes as f64;
    let axes: [(Pick, Pick); 6] = [
        (|one| one.round as f64, percent),
        (|one| one.round as f64, |one| one.latency_s),
        (|one| one.round as f64, megabytes),
        (|one| one.clock_s, percent),
        (|one| one.energy_j, percent),
        (megabytes, percent),
    ];
    for Drawn { row, name, colour } in drawn(table) {
        for (panel, (x, y)) in panels.iter_mut().zip(axes) {
            for mark in averaged(row, x, y, panel.y.label.starts_with("success")) {
                let name = match mark {
                    Mark::Band(_) => String::new(),
                    _ => name.clone(),
                };
                panel.series.push(Series { name, colour, mark });
            }
        }
    }
    panels.iter_mut().for_each(bands_readable);
    Figure {
        title: "Convergence: means over seeds, 95 % intervals".into(),
        panels: panels.to_vec(),
        columns: 3,
        panel: Size { width: 340.0, height: 280.0 },
    }
}

pub(super) fn panel(title: &str, x: &str, y: &str, across: Scale, up: Scale) -> Panel {
    Panel { title: title.into(), x: Axis::new(x, across), y: Axis::new(y, up), series: Vec::new() }
}

/// The share of all tasks and seeds above each success: a performance profile, with the band of
/// seeds resampled within each task.
pub(crate) fn profile(table: &Table) -> Figure {
    let mut panel = panel(
        "tasks and seeds above a final success",
        "final success of a task with a seed, %",
        "share of tasks and seeds, %",
        Scale::Linear,
        Scale::Linear,
    );
    panel.x = panel.x.over(0.0, 100.0);
    panel.y = panel.y.over(0.0, 100.0);
    for Drawn { row, name, colour } in drawn(table) {
        let (line, band) = steps(&row.success_by_task());
        panel.series.push(Series { name: String::new(), colour, mark: Mark::Band(band) });
        panel.series.push(Series { mark: Mark::Line(line), name, colour });
    }
    bands_readable(&mut panel);
    Figure {
        title: "Performance profiles, 95 % bands".into(),
        panels: vec![panel],
        columns: 1,
        panel: Size { width: 560.0, height: 340.0 },
    }
}

/// A line and a band.
type Steps = (Vec<(f64, f64)>, Vec<(f64, f64, f64)>);

/// Line and band of a profile in percent. A share changes only at a score, by a step: each value
/// holds from its score to the next.
fn steps(scores: &[Vec<f64>]) -> Steps {
    let mut places: Vec<f64> = scores.concat();
    places.push(0.0);
    places.sort_by(f64::total_cmp);
    places.dedup();
    let shares = stratified_shares_above(scores, &places);
    places.push(1.0);
    let (mut line, mut band) = (Vec::new(), Vec::new());
    for (ends, share) in places.windows(2).zip(shares) {
        for place in [ends[0], ends[1]] {
            line.push((100.0 * place, 100.0 * share.mean));
            let interval = share.interval.map(|ends| ends.map(|end| 100.0 * end));
            band.extend(interval.map(|[low, high]| (100.0 * place, low, high)));
        }
    }
    (line, band)
}

/// The panels of a sweep: title, metric, label, factor, scale.
const SWEPT: [(&str, &str, &str, f64, Scale); 6] = [
    ("final success", "success_final", "success, %", 1e2, Scale::Linear),
    ("success of the far third", "success_far", "success, %", 1e2, Scale::Linear),
    ("latency, mean of the rounds", "latency_mean_s", "latency, s", 1.0, Scale::Log),
    ("energy of the terminals", "energy_total_j", "energy, J", 1.0, Scale::Log),
    ("uplink volume", "volume_total_bytes", "volume, MB", 1e-6, Scale::Log),
    ("violation, mean of the rounds", "violation_mean", "violation", 1.0, Scale::Linear),
];

/// Metrics along the axis of a sweep, a line for each method.
pub(crate) fn swept(plan: &Plan, table: &Table, axis: SweepAxis) -> Figure {
    let value = |index: usize| plan.points[index].label.parse::<f64>().ok();
    let is_numeric = (0..plan.points.len()).all(|index| value(index).is_some());
    let place = |index: usize| value(index).filter(|_| is_numeric).unwrap_or(index as f64 + 1.0);
    let across = if is_numeric {
        Axis::new(axis.title(), Scale::Linear)
    } else {
        Axis::of_names(axis.title(), plan.points.iter().map(|point| point.label.clone()).collect())
    };
    // Along retention a method has a different q at every point; elsewhere `+q` is a separate
    // method.
    let plain = |method: &str| match axis {
        SweepAxis::Retention => without_q(method).to_owned(),
        _ => method.to_owned(),
    };
    let mut methods: Vec<String> = Vec::new();
    for row in &table.rows {
        if !methods.contains(&plain(&row.subject.method)) {
            methods.push(plain(&row.subject.method));
        }
    }
    let panels = SWEPT.iter().map(|&(title, name, unit, factor, scale)| {
        let mut panel = panel(title, "", unit, Scale::Linear, scale);
        panel.x = across.clone();
        for (method, colour) in methods.iter().zip(COLOURS.into_iter().cycle()) {
            let (mut line, mut band) = (Vec::new(), Vec::new());
            for (index, point) in plan.points.iter().enumerate() {
                let row = table.rows.iter().find(|row| {
                    row.subject.point == point.label && plain(&row.subject.method) == *method
                });
                let Some(estimate) = row.and_then(|row| row.estimate(Metric::named(name))) else {
                    continue;
                };
                line.push((place(index), factor * estimate.mean));
                let ends = estimate.interval.unwrap_or([estimate.mean; 2]);
                band.push((place(index), factor * ends[0], factor * ends[1]));
            }
            let of = |name: String, mark: Mark| Series { name, colour, mark };
            panel.series.push(of(String::new(), Mark::Band(band)));
            panel.series.push(of(method.clone(), Mark::Line(line.clone())));
            panel.series.push(of(String::new(), Mark::Dots(line)));
        }
        bands_readable(&mut panel);
        panel
    });
    Figure {
        title: format!("{}: means over seeds, 95 % intervals", axis.title()),
        panels: panels.collect(),
        columns: 3,
        panel: Size { width: 340.0, height: 280.0 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_holds_its_value_from_score_to_score() {
        let (line, band) = steps(&[vec![0.5], vec![0.8]]);
        let expected = [0.0, 50.0, 50.0, 80.0, 80.0, 100.0].into_iter();
        let shares = [100.0, 100.0, 50.0, 50.0, 0.0, 0.0];
        assert_eq!(line, expected.zip(shares).collect::<Vec<_>>());
        assert!(band.is_empty(), "one seed has no band");
        let (line, band) = steps(&[vec![0.5, 0.6, 0.7], vec![0.8, 0.9, 0.9]]);
        assert_eq!(line.len(), band.len());
        assert!(band.iter().any(|(_, low, high)| low < high));
        assert_eq!(steps(&[]).0, []);
    }

    #[test]
    fn too_many_bands_leave_the_first_and_few_stay_behind_the_lines() {
        let series = |colour, mark| Series { name: String::new(), colour, mark };
        let mut one = panel("", "", "", Scale::Linear, Scale::Linear);
        for colour in &COLOURS[..3] {
            one.series.push(series(*colour, Mark::Line(vec![])));
            one.series.push(series(*colour, Mark::Band(vec![])));
        }
        let bands = |panel: &Panel| {
            let is_band = |one: &&Series| matches!(one.mark, Mark::Band(_));
            panel.series.iter().take_while(is_band).count()
        };
        bands_readable(&mut one);
        assert_eq!((bands(&one), one.series.len()), (3, 6));
        one.series.push(series(COLOURS[3], Mark::Band(vec![])));
        bands_readable(&mut one);
        assert_eq!((bands(&one), one.series.len()), (1, 4));
        assert_eq!(one.series[0].colour, COLOURS[0]);
    }
}
