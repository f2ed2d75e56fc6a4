//! The forecasts of a run as figures: predicted against realised, error over time, success per
//! task group.

use super::report::{GroupReport, TwinReport, error};
use super::score::quantile;
use super::{Forecasts, Sample};
use crate::plot::{Axis, Colour, Figure, Mark, Panel, Scale, Series, Size};
use crate::statistics::mean;
use crate::twin::Interval;

const BEFORE: &str = "without calibration";
const AFTER: &str = "calibrated";
/// Largest number of points: with more, every k-th is drawn.
const MOST_POINTS: usize = 3000;
/// Number of stretches of rounds for errors over time.
const STRETCHES: u64 = 40;

/// The figures, each with the name of its file.
pub fn figures(forecasts: &Forecasts, report: &TwinReport) -> Vec<(String, Figure)> {
    let of = |what, kind, samples| Quantity { what, kind, samples };
    let thousandths = |unit| Kind::Amount { unit, factor: 1e3 };
    let loss = Kind::Amount { unit: "", factor: 1.0 };
    let quantities = [
        ("delay", of("delay", thousandths("ms"), &forecasts.delay)),
        ("energy", of("energy", thousandths("mJ"), &forecasts.energy)),
        ("loss", of("loss of a minibatch", loss, &forecasts.loss)),
        ("decrease", of("loss decrease of a round", Kind::Change, &forecasts.decrease)),
        (
            "decrease-tasks",
            of("loss decrease of a task in a round", Kind::Change, &forecasts.group_decrease),
        ),
        ("success", of("success of a task", Kind::Share, &forecasts.success)),
    ];
    let run = format!("{} on {}, seed {}", report.method, report.scenario, report.seed);
    let mut figures: Vec<(String, Figure)> = (quantities.iter())
        .map(|(name, quantity)| ((*name).to_owned(), quantity.figure(&run, report.rounds)))
        .collect();
    figures.push(("tasks".to_owned(), tasks(report, &run)));
    figures
}

/// How values are shown.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Positive, over decades; errors are relative. The factor leads from the unit of the samples to the
    /// one shown.
    Amount { unit: &'static str, factor: f64 },
    /// A share from nothing to all, in percent; errors are in percentage points.
    Share,
    /// A change in percent, either way; errors are in percentage points.
    Change,
}

/// A forecast quantity.
struct Quantity<'a> {
    what: &'static str,
    kind: Kind,
    samples: &'a [Sample],
}

impl Quantity<'_> {
    fn unit(&self) -> &'static str {
        if let Kind::Amount { unit, .. } = self.kind { unit } else { "%" }
    }

    fn factor(&self) -> f64 {
        if let Kind::Amount { factor, .. } = self.kind { factor } else { 100.0 }
    }

    fn is_amount(&self) -> bool {
        matches!(self.kind, Kind::Amount { .. })
    }

    fn figure(&self, run: &str, rounds: u64) -> Figure {
        let range = self.range();
        Figure {
            title: format!("Twin: {} ({run})", self.what),
            panels: vec![
                self.scatter(BEFORE, Colour::Orange, range, |one| one.before),
                self.scatter(AFTER, Colour::Blue, range, |one| one.after),
                self.over_time(rounds),
            ],
            columns: 3,
            panel: Size { width: 340.0, height: 310.0 },
        }
    }

    /// Predicted against measured; forecasts without error are on the diagonal.
    fn scatter(
        &self,
        name: &str,
        colour: Colour,
        (low, high): (f64, f64),
        pick: fn(&Sample) -> Interval,
    ) -> Panel {
        let every = self.samples.len().div_ceil(MOST_POINTS).max(1);
        let drawn = self.samples.iter().step_by(every);
        // Points outside the range are drawn on the edge.
        let shown = |value: f64| (self.factor() * value).clamp(low, high);
        let points = drawn.map(|one| (shown(pick(one).mid), shown(one.measured))).collect();
        let scale = if self.is_amount() { Scale::Log } else { Scale::Linear };
        let mark = if self.is_amount() { Mark::Cloud(points) } else { Mark::Dots(points) };
        let unit =
            if self.unit().is_empty() { String::new() } else { format!(", {}", self.unit()) };
        Panel {
            title: name.into(),
            x: Axis::new(&format!("predicted{unit}"), scale).over(low, high),
            y: Axis::new(&format!("measured{unit}"), scale).over(low, high),
            series: vec![
                series("", colour, mark),
                series("", Colour::Ink, Mark::Dashes(vec![(low, low), (high, high)])),
            ],
        }
    }

    /// The same range for all axes. It omits a thousandth of the values at either end (a twentieth of
    /// changes, which have heavy tails), so that outliers do not compress the rest of the figure.
    fn range(&self) -> (f64, f64) {
        let values = |one: &Sample| [one.before.mid, one.after.mid, one.measured];
        let values: Vec<f64> = self.samples.iter().flat_map(values).collect();
        let rare = if self.kind == Kind::Change { 0.05 } else { 0.001 };
        let ends = quantile(values.clone(), rare).zip(quantile(values, 1.0 - rare));
        let ends = ends.map(|(low, high)| (self.factor() * low, self.factor() * high));
        match self.kind {
            Kind::Share => (0.0, 100.0),
            Kind::Amount { .. } => ends.map_or((1.0, 10.0), |(low, high)| (low / 1.2, 1.2 * high)),
            Kind::Change => ends.map_or((-1.0, 1.0), |(low, high)| {
                let margin = 0.05 * (high - low).max(0.1);
                (low - margin, high + margin)
            }),
        }
    }

    /// Median error of each stretch of rounds, and the interval of the middle half of the errors.
    fn over_time(&self, rounds: u64) -> Panel {
        let before = self.errors(rounds, |one| one.before);
        let after = self.errors(rounds, |one| one.after);
        let line = |errors: &[(f64, [f64; 3])]| {
            errors.iter().map(|(round, [_, median, _])| (*round, *median)).collect()
        };
        let band = after.iter().map(|(round, [low, _, high])| (*round, *low, *high)).collect();
        let unit = if self.is_amount() { "% of the measured" } else { "percentage points" };
        // Changes shrink by decades during training; the axes of all other errors start at zero.
        let decades = self.kind == Kind::Change;
        let scale = if decades { Scale::Log } else { Scale::Linear };
        let mut shown = vec![
            series("calibrated, middle half of the errors", Colour::Blue, Mark::Band(band)),
            series(BEFORE, Colour::Orange, Mark::Line(line(&before))),
            series(AFTER, Colour::Blue, Mark::Line(line(&after))),
        ];
        if !decades {
            shown.push(series("", Colour::Ink, Mark::Line(vec![(0.0, 0.0)])));
        }
        Panel {
            title: "median error over time".into(),
            x: Axis::new("round", Scale::Linear).over(0.0, rounds as f64),
            y: Axis::new(&format!("absolute error, {unit}"), scale),
            series: shown,
        }
    }

    /// Mean round of each stretch, and quartiles of the errors in it, in percent.
    fn errors(&self, rounds: u64, pick: fn(&Sample) -> Interval) -> Vec<(f64, [f64; 3])> {
        let width = rounds.div_ceil(STRETCHES).max(1);
        let stretches =
            self.samples.chunk_by(|a, b| (a.round - 1) / width == (b.round - 1) / width);
        let of = |stretch: &[Sample]| {
            let error = |one: &Sample| 100.0 * error(&pick(one), one.measured, self.is_amount());
            let errors: Vec<f64> = stretch.iter().map(error).collect();
            let [low, middle, high] =
                [0.25, 0.5, 0.75].map(|share| quantile(errors.clone(), share));
            let round = mean(stretch.iter().map(|one| one.round as f64))?;
            Some((round, [low?, middle?, high?]))
        };
        stretches.filter_map(of).collect()
    }
}

/// Measured and forecast success of each task over the rounds.
fn tasks(report: &TwinReport, run: &str) -> Figure {
    let panel = |group: &GroupReport| {
        let over = |values: &[f64]| -> Vec<(f64, f64)> {
            let rounds = group.rounds.iter().map(|&round| round as f64);
            rounds.zip(values.iter().map(|value| 100.0 * value)).collect()
        };
        let ends = over(&group.low).into_iter().zip(over(&group.high));
        let band = ends.map(|((round, low), (_, high))| (round, low, high)).collect();
        Panel {
            title: group.task.into(),
            x: Axis::new("round", Scale::Linear).over(0.0, report.rounds as f64),
            y: Axis::new("success, %", Scale::Linear).over(0.0, 100.0),
            series: vec![
                series("90 % interval of what is measured", Colour::Blue, Mark::Band(band)),
                series(BEFORE, Colour::Orange, Mark::Dashes(over(&group.before))),
                series(AFTER, Colour::Blue, Mark::Line(over(&group.after))),
                series("measured", Colour::Ink, Mark::Dots(over(&group.measured))),
            ],
        }
    };
    Figure {
        title: format!("Twin: success per task, forecast and measured ({run})"),
        panels: report.curve.groups.iter().map(panel).collect(),
        columns: 4,
        panel: Size { width: 260.0, height: 230.0 },
    }
}

fn series(name: &str, colour: Colour, mark: Mark) -> Series {
    Series { name: name.into(), colour, mark }
}
