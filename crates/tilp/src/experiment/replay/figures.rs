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
/// More points than this would hide each other: every k-th is drawn.
const MOST_POINTS: usize = 3000;
/// Stretches of rounds that an error over time is shown for.
const STRETCHES: u64 = 40;

/// The figures, each with the name of its file.
pub fn figures(forecasts: &Forecasts, report: &TwinReport) -> Vec<(String, Figure)> {
    let of = |what, unit, factor, samples| Quantity { what, unit, factor, samples };
    let quantities = [
        ("delay.svg", of("delay", "ms", 1e3, &forecasts.delay)),
        ("energy.svg", of("energy", "mJ", 1e3, &forecasts.energy)),
        ("loss.svg", of("loss of a minibatch", "", 1.0, &forecasts.loss)),
        ("success.svg", of("success of a task", "%", 100.0, &forecasts.success)),
    ];
    let run = format!("{} on {}, seed {}", report.method, report.scenario, report.seed);
    let mut figures: Vec<(String, Figure)> = (quantities.iter())
        .map(|(name, quantity)| ((*name).to_owned(), quantity.figure(&run, report.rounds)))
        .collect();
    figures.push(("tasks.svg".to_owned(), tasks(report, &run)));
    figures
}

/// Something that was forecast.
struct Quantity<'a> {
    what: &'static str,
    unit: &'static str,
    /// From the unit of the samples to the one shown.
    factor: f64,
    samples: &'a [Sample],
}

impl Quantity<'_> {
    fn is_share(&self) -> bool {
        self.unit == "%"
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

    /// Predicted against measured; what is forecast without an error lies on the diagonal.
    fn scatter(
        &self,
        name: &str,
        colour: Colour,
        (low, high): (f64, f64),
        pick: fn(&Sample) -> Interval,
    ) -> Panel {
        let every = self.samples.len().div_ceil(MOST_POINTS).max(1);
        let drawn = self.samples.iter().step_by(every);
        // What lies beyond is drawn on the edge, so that nothing is hidden.
        let shown = |value: f64| (self.factor * value).clamp(low, high);
        let points = drawn.map(|one| (shown(pick(one).mid), shown(one.measured))).collect();
        let scale = if self.is_share() { Scale::Linear } else { Scale::Log };
        let mark = if self.is_share() { Mark::Dots(points) } else { Mark::Cloud(points) };
        let unit = if self.unit.is_empty() { String::new() } else { format!(", {}", self.unit) };
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

    /// The same range for all axes. It leaves out the thousandth of the values at either end,
    /// since one wild forecast would press all others into a corner.
    fn range(&self) -> (f64, f64) {
        if self.is_share() {
            return (0.0, 100.0);
        }
        let values = |one: &Sample| [one.before.mid, one.after.mid, one.measured];
        let values: Vec<f64> = self.samples.iter().flat_map(values).collect();
        let ends = quantile(values.clone(), 0.001).zip(quantile(values, 0.999));
        ends.map_or((1.0, 10.0), |(low, high)| (self.factor * low / 1.2, self.factor * high * 1.2))
    }

    /// Median error of each stretch of rounds, and between which errors its middle half lies.
    fn over_time(&self, rounds: u64) -> Panel {
        let before = self.errors(rounds, |one| one.before);
        let after = self.errors(rounds, |one| one.after);
        let line = |errors: &[(f64, [f64; 3])]| {
            errors.iter().map(|(round, [_, median, _])| (*round, *median)).collect()
        };
        let band = after.iter().map(|(round, [low, _, high])| (*round, *low, *high)).collect();
        let unit = if self.is_share() { "percentage points" } else { "% of the measured" };
        Panel {
            title: "median error over time".into(),
            x: Axis::new("round", Scale::Linear).over(0.0, rounds as f64),
            y: Axis::new(&format!("absolute error, {unit}"), Scale::Linear),
            series: vec![
                series("calibrated, middle half of the errors", Colour::Blue, Mark::Band(band)),
                series(BEFORE, Colour::Orange, Mark::Line(line(&before))),
                series(AFTER, Colour::Blue, Mark::Line(line(&after))),
                // An axis of errors begins at no error.
                series("", Colour::Ink, Mark::Line(vec![(0.0, 0.0)])),
            ],
        }
    }

    /// Mean round of each stretch, and quartiles of the errors in it, in percent.
    fn errors(&self, rounds: u64, pick: fn(&Sample) -> Interval) -> Vec<(f64, [f64; 3])> {
        let width = rounds.div_ceil(STRETCHES).max(1);
        let stretches =
            self.samples.chunk_by(|a, b| (a.round - 1) / width == (b.round - 1) / width);
        let of = |stretch: &[Sample]| {
            let error = |one: &Sample| 100.0 * error(&pick(one), one.measured, !self.is_share());
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
