//! Decisions against properties of the terminals, with rank correlations.

use std::collections::BTreeMap;

use super::RunPage;
use crate::plot::{Axis, Colour, Figure, Mark, Panel, Scale, Series, Size};
use crate::record::{EpisodeKind, TerminalRow};
use crate::units::to_db;

/// What the base station knows of a terminal, and its decisions for it, as means over the rounds.
#[derive(Clone, Debug, Default, PartialEq)]
struct Terminal {
    rounds: f64,
    scheduled: f64,
    /// Sums over its rounds.
    gain: f64,
    memory_mb: f64,
    /// Sums over the rounds in which it was scheduled.
    cut: f64,
    power_mw: f64,
    compression: f64,
    /// Nominal operations per second.
    speed: f64,
    successes: f64,
    episodes: f64,
}

impl Terminal {
    fn add(&mut self, row: &TerminalRow) {
        self.rounds += 1.0;
        self.gain += row.gain;
        self.memory_mb += 1e-6 * row.memory_bytes as f64;
        if row.scheduled {
            self.scheduled += 1.0;
            self.cut += row.cut as f64;
            self.power_mw += 1e3 * row.power_w;
            self.compression += row.compression;
        }
    }
}

type Pick = fn(&Terminal) -> f64;

const CAUSES: [(&str, &str, Pick); 4] = [
    ("gain", "mean gain, dB", |one| to_db(one.gain / one.rounds)),
    ("speed", "nominal speed, G operations/s", |one| 1e-9 * one.speed),
    ("memory", "memory, MB", |one| one.memory_mb / one.rounds),
    ("success", "success at calibrations, %", |one| 1e2 * one.successes / one.episodes),
];

const DECISIONS: [(&str, &str, Pick); 4] = [
    ("participation", "scheduled, % of rounds", |one| 1e2 * one.scheduled / one.rounds),
    ("cut", "layers on the robot", |one| one.cut / one.scheduled),
    ("power", "power, mW", |one| one.power_mw / one.scheduled),
    ("compression", "compression q", |one| one.compression / one.scheduled),
];

/// A panel for every decision and every cause; a dot is a terminal.
pub(super) fn figure(page: &RunPage) -> Figure {
    let terminals = terminals(page);
    let panel = |decision: &(&str, &str, Pick), cause: &(&str, &str, Pick)| {
        let at = |one: &Terminal| ((cause.2)(one), (decision.2)(one));
        let points: Vec<(f64, f64)> =
            terminals.iter().map(at).filter(|(x, y)| x.is_finite() && y.is_finite()).collect();
        let r = rank_correlation(&points).map_or("-".into(), |r| format!("{r:+.2}"));
        Panel {
            title: format!("{} by {}: {r}", decision.0, cause.0),
            x: Axis::new(cause.1, Scale::Linear),
            y: Axis::new(decision.1, Scale::Linear),
            series: vec![Series {
                name: String::new(),
                colour: Colour::Blue,
                mark: Mark::Dots(points),
            }],
        }
    };
    let row = |decision| CAUSES.iter().map(move |cause| panel(decision, cause));
    Figure {
        title: "Decisions and what sets robots apart, with rank correlations".into(),
        panels: DECISIONS.iter().flat_map(row).collect(),
        columns: CAUSES.len(),
        panel: Size { width: 260.0, height: 210.0 },
    }
}

fn terminals(page: &RunPage) -> Vec<Terminal> {
    let mut terminals: BTreeMap<u64, Terminal> = BTreeMap::new();
    for row in &page.history.terminals {
        terminals.entry(row.terminal).or_default().add(row);
    }
    for row in page.history.episodes.iter().filter(|row| row.kind == EpisodeKind::Calibration) {
        let one = terminals.entry(row.terminal).or_default();
        one.successes += row.successes as f64;
        one.episodes += row.episodes as f64;
    }
    let sheets = page.replay.as_ref().map(|replay| &replay.twin.nominal.hardware);
    for (id, one) in &mut terminals {
        let sheet = sheets.and_then(|sheets| sheets.get(*id as usize));
        one.speed = sheet.map_or(f64::NAN, |sheet| sheet.operations_per_cycle * sheet.clock.0);
    }
    terminals.into_values().collect()
}

/// Spearman's rank correlation, with the mean rank for equal values. `None` if one side is
/// constant.
fn rank_correlation(points: &[(f64, f64)]) -> Option<f64> {
    let (x, y): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
    let (x, y) = (ranks(&x), ranks(&y));
    let middle = (points.len() as f64 - 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - middle) * (b - middle)).sum()
    };
    let spread = (product(&x, &x) * product(&y, &y)).sqrt();
    (spread > 0.0).then(|| product(&x, &y) / spread)
}

fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| *other < value).count();
        let equal = values.iter().filter(|other| *other == value).count();
        below as f64 + (equal as f64 - 1.0) / 2.0
    };
    values.iter().map(rank).collect()
}

#[cfg(test)]
mod tests {
    use super::{rank_correlation, ranks};

    #[test]
    fn ranks_are_shared_by_equal_values() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 2.0]), [2.5, 0.0, 2.5, 1.0]);
    }

    #[test]
    fn the_rank_correlation_is_that_of_any_growing_function() {
        let grown: Vec<(f64, f64)> = (1..9).map(|n| (f64::from(n), f64::from(n).exp())).collect();
        let fallen: Vec<(f64, f64)> = grown.iter().map(|&(x, y)| (x, -y)).collect();
        assert_eq!(rank_correlation(&grown), Some(1.0));
        assert_eq!(rank_correlation(&fallen), Some(-1.0));
        assert_eq!(rank_correlation(&[(1.0, 2.0), (3.0, 2.0)]), None);
        // By hand: products of the ranks less their mean 2 sum to 7.5, squares to 9.5 on either side.
        let tied = [(1.0, 2.0), (2.0, 1.0), (3.0, 2.0), (4.0, 5.0), (4.0, 3.0)];
        assert!((rank_correlation(&tied).unwrap() - 7.5 / 9.5).abs() < 1e-12);
    }
}
