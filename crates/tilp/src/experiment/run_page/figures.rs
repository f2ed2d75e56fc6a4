//! The figures of a run.

use std::collections::BTreeMap;

use super::RunPage;
use super::causes;
use super::tables::robots_of;
use crate::plot::{Axis, Colour, Figure, Mark, Panel, Scale, Series, Size};
use crate::record::event::{Decided, RationaleLine};
use crate::record::{RoundRow, TerminalRow};

/// Every figure with the name of its files.
pub(super) fn all(page: &RunPage) -> Vec<(&'static str, Figure)> {
    let mut figures = vec![
        ("success", success(page)),
        ("latency", latency(page)),
        ("participation", participation(page)),
        ("violations", violations(page)),
        ("decisions", decisions(page)),
        ("causes", causes::figure(page)),
    ];
    if !page.predictions.is_empty() {
        figures.push(("twin", twin(page)));
    }
    figures
}

fn series(name: &str, colour: Colour, mark: Mark) -> Series {
    Series { name: name.into(), colour, mark }
}

fn panel(title: &str, x: Axis, y: Axis, series: Vec<Series>) -> Panel {
    Panel { title: title.into(), x, y, series }
}

fn figure(title: &str, panels: Vec<Panel>) -> Figure {
    let columns = panels.len().min(3);
    let width = if columns == 1 { 680.0 } else { 350.0 };
    Figure { title: title.into(), panels, columns, panel: Size { width, height: 280.0 } }
}

fn linear(label: &str) -> Axis {
    Axis::new(label, Scale::Linear)
}

fn rounds(page: &RunPage) -> Axis {
    linear("round").over(0.0, page.history.last_round().max(1) as f64)
}

/// Success over the rounds: on report episodes from the base policy on, and as the method saw it.
fn success(page: &RunPage) -> Figure {
    let rows = &page.history.rounds;
    let over = |pick: fn(&RoundRow) -> Option<f64>| -> Vec<(f64, f64)> {
        rows.iter().filter_map(|row| Some((row.round as f64, 1e2 * pick(row)?))).collect()
    };
    let base = page.summary.as_ref().and_then(|summary| summary.success_curve.first());
    let base = base.filter(|(round, _)| *round == 0).map(|(_, success)| (0.0, 1e2 * success));
    let curve: Vec<(f64, f64)> = base.into_iter().chain(over(|row| row.report_success)).collect();
    let seen = over(|row| row.calibration_success);
    let y = linear("success, %").over(0.0, 100.0);
    let shown = vec![
        series("calibration episodes, seen by the method", Colour::Orange, Mark::Dots(seen)),
        series("report episodes", Colour::Blue, Mark::Line(curve)),
    ];
    figure("Success", vec![panel("success over rounds", rounds(page), y, shown)])
}

/// The share of rounds up to each latency, and latency over the rounds.
fn latency(page: &RunPage) -> Figure {
    let rows = &page.history.rounds;
    let mut sorted: Vec<f64> = rows.iter().map(|row| row.latency_s).collect();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len().max(1) as f64;
    let share = |(place, latency): (usize, &f64)| (*latency, 1e2 * (place as f64 + 1.0) / n);
    let shares: Vec<(f64, f64)> = sorted.iter().enumerate().map(share).collect();
    let over: Vec<(f64, f64)> = rows.iter().map(|row| (row.round as f64, row.latency_s)).collect();
    let deadline = page.scenario.deadline().0;
    let last = page.history.last_round().max(1) as f64;
    let log = |label: &str| Axis::new(label, Scale::Log);
    let up_to = panel(
        "rounds up to a latency",
        log("latency, s"),
        linear("share of rounds, %").over(0.0, 100.0),
        vec![
            series("deadline", Colour::Ink, Mark::Dashes(vec![(deadline, 0.0), (deadline, 100.0)])),
            series("rounds", Colour::Blue, Mark::Line(shares)),
        ],
    );
    let each = panel(
        "latency over rounds",
        rounds(page),
        log("latency, s"),
        vec![
            series("rounds", Colour::Blue, Mark::Cloud(over)),
            series("deadline", Colour::Ink, Mark::Dashes(vec![(0.0, deadline), (last, deadline)])),
        ],
    );
    figure("Latency of the rounds", vec![up_to, each])
}

/// How often each robot took part, was scheduled, and succeeded in the end.
fn participation(page: &RunPage) -> Figure {
    let robots = robots_of(page);
    let at = |pick: fn(&super::tables::Robot) -> Option<f64>| -> Vec<(f64, f64)> {
        let places = robots.iter().enumerate();
        places.filter_map(|(place, robot)| Some((place as f64 + 1.0, 1e2 * pick(robot)?))).collect()
    };
    let x = || linear("robot, from the best channel to the worst");
    let y = || linear("share, %").over(0.0, 100.0);
    let rounds = panel(
        "rounds of each robot",
        x(),
        y(),
        vec![
            series("scheduled", Colour::Sky, Mark::Dots(at(|one| Some(one.scheduled_share())))),
            series("took part", Colour::Blue, Mark::Dots(at(|one| Some(one.part_share())))),
        ],
    );
    let ended = at(|one| one.success);
    let success = panel(
        "final success of each robot",
        x(),
        y(),
        vec![series("final success", Colour::Green, Mark::Dots(ended))],
    );
    figure("Participation", vec![rounds, success])
}

/// Rounds with a violation of each kind, counted up.
fn violations(page: &RunPage) -> Figure {
    let counted = |is_violated: fn(&RoundRow) -> bool| -> Vec<(f64, f64)> {
        let mut count = 0.0;
        let row = |row: &RoundRow| {
            count += f64::from(u8::from(is_violated(row)));
            (row.round as f64, count)
        };
        std::iter::once((0.0, 0.0)).chain(page.history.rounds.iter().map(row)).collect()
    };
    let shown = vec![
        series(
            "deadline",
            Colour::Vermilion,
            Mark::Line(counted(|row| row.violation_deadline_s > 0.0)),
        ),
        series("memory", Colour::Purple, Mark::Line(counted(|row| row.violation_memory_bytes > 0))),
        series(
            "spectrum",
            Colour::Orange,
            Mark::Line(counted(|row| row.violation_spectrum_hz > 0.0)),
        ),
    ];
    let y = linear("rounds with a violation so far");
    figure("Violations by kind", vec![panel("violations over rounds", rounds(page), y, shown)])
}

/// Cut, power and compression of each robot in the rounds in which it was scheduled: every value, and the
/// means.
fn decisions(page: &RunPage) -> Figure {
    let order = robots_of(page);
    let places: BTreeMap<u64, f64> =
        order.iter().enumerate().map(|(place, robot)| (robot.id, place as f64 + 1.0)).collect();
    let of = |title: &str, label: &str, pick: fn(&TerminalRow) -> f64| {
        let scheduled = page.history.terminals.iter().filter(|row| row.scheduled);
        let mut values: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for row in scheduled {
            values.entry(row.terminal).or_default().push(pick(row));
        }
        let (mut cloud, mut means) = (Vec::new(), Vec::new());
        for (id, values) in &values {
            let Some(place) = places.get(id) else { continue };
            means.push((*place, values.iter().sum::<f64>() / values.len() as f64));
            let mut values = values.clone();
            values.sort_by(f64::total_cmp);
            values.dedup();
            cloud.extend(values.into_iter().map(|value| (*place, value)));
        }
        let shown = vec![
            series("values", Colour::Sky, Mark::Cloud(cloud)),
            series("mean", Colour::Blue, Mark::Dots(means)),
        ];
        panel(title, linear("robot, best channel first"), linear(label), shown)
    };
    figure(
        "Decisions for each robot when it was scheduled",
        vec![
            of("cut", "layers on the robot", |row| row.cut as f64),
            of("power", "power, mW", |row| 1e3 * row.power_w),
            of("compression", "compression q", |row| row.compression),
        ],
    )
}

/// The prediction of each decision against the outcome of the round.
fn twin(page: &RunPage) -> Figure {
    let rows: BTreeMap<u64, &RoundRow> =
        page.history.rounds.iter().map(|row| (row.round, row)).collect();
    let pairs = |predicted: fn(&RationaleLine) -> f64, real: fn(&RoundRow) -> Option<f64>| {
        let pair = |decided: &Decided| {
            let row = rows.get(&decided.id.0)?;
            Some((predicted(decided.rationale.as_ref()?), real(row)?))
        };
        page.predictions.iter().filter_map(pair).collect::<Vec<(f64, f64)>>()
    };
    let of = |title: &str, unit: &str, scale: Scale, points: Vec<(f64, f64)>| {
        let all = points.iter().flat_map(|(a, b)| [*a, *b]);
        let all = all.filter(|one| one.is_finite() && (scale == Scale::Linear || *one > 0.0));
        let (low, high) = all
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
        let level = if low < high { vec![(low, low), (high, high)] } else { Vec::new() };
        panel(
            title,
            Axis::new(&format!("predicted, {unit}"), scale),
            Axis::new(&format!("realised, {unit}"), scale),
            vec![
                series("equal", Colour::Ink, Mark::Dashes(level)),
                series("rounds", Colour::Blue, Mark::Cloud(points)),
            ],
        )
    };
    let latency = pairs(|one| one.latency_s.value(), |row| Some(row.latency_s));
    let energy = pairs(|one| one.energy_j.value(), |row| Some(row.energy_j));
    let success =
        pairs(|one| 1e2 * one.success_after.value(), |row| row.report_success.map(|one| 1e2 * one));
    figure(
        "Twin against outcome",
        vec![
            of("latency", "s", Scale::Log, latency),
            of("energy", "J", Scale::Log, energy),
            of("success", "%", Scale::Linear, success),
        ],
    )
}
