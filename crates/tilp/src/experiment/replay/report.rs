//! Summary of the forecasts of a run.

use serde::Serialize;

use super::contest::{ContestReport, contests};
use super::score::{brier, centred_ranks, correlation, median};
use super::{Forecasts, Replay, Sample};
use crate::cost::Hardware;
use crate::round::TerminalId;
use crate::scenario::suite_of;
use crate::statistics::mean;
use crate::tasks::Suite;
use crate::twin::{Belief, Calibration, Interval};

/// Number of measurements after which a terminal counts as known.
const FIRST_ROUNDS: u64 = 30;
/// The same for measurements of the losses of the deployed policy.
const FIRST_LOOKS: u64 = 10;
/// The same for a task group, whose success is measured rarely.
const FIRST_MEASUREMENTS: u64 = 2;

/// The twin of a run, predicted against realised.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TwinReport {
    /// Name of the scenario.
    pub scenario: String,
    /// Note on the kind of scenario, for profile scenarios.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<&'static str>,
    /// The method that decided in the run.
    pub method: String,
    /// Seed of the run.
    pub seed: u64,
    /// Rounds of the run.
    pub rounds: u64,
    /// Calibration loops that the scenario switches off.
    pub frozen: Vec<&'static str>,
    /// Delay, energy, loss, loss decrease and success.
    pub sub_twins: Vec<SubTwinReport>,
    /// Every forecast against the naive rules.
    pub contests: Vec<ContestReport>,
    /// The one-round loss decrease of the deployed policy: in total, then per task group.
    pub decreases: Vec<DecreaseReport>,
    /// Rank correlation of forecast and realised decrease between the terminals of a round: whether the
    /// twin predicts which terminals a round helps.
    pub decrease_within_rounds: Option<f64>,
    /// Hidden values, and the error of the twin's estimates.
    pub hidden: Vec<FactorReport>,
    /// Whether loss predicts success within a task group.
    pub curve: CurveReport,
}

/// Errors of the forecasts of one quantity.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SubTwinReport {
    /// The quantity.
    pub name: &'static str,
    /// Whether errors are shares of the measured value, else differences.
    pub relative: bool,
    /// Forecasts.
    pub n: usize,
    /// Median absolute error without calibration.
    pub error_before: Option<f64>,
    /// With calibration.
    pub error_after: Option<f64>,
    /// Share of measured values inside the 90 % interval, without calibration.
    pub coverage_before: Option<f64>,
    /// With calibration.
    pub coverage_after: Option<f64>,
    /// Measurements of a terminal (or a task group) that count as its first.
    pub first: u64,
    /// Median absolute error, calibrated, among the first.
    pub error_first: Option<f64>,
    /// Among the later ones.
    pub error_later: Option<f64>,
}

/// Errors of the forecasts of the one-round loss decrease of all terminals, or of those of one
/// task. Decreases are shares of the loss before the round.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DecreaseReport {
    /// Name of the task; null for all terminals together.
    pub task: Option<&'static str>,
    /// Rounds with a measurement.
    pub n: usize,
    /// Mean of the measured values.
    pub realised: Option<f64>,
    /// Mean of the calibrated twin's forecasts.
    pub forecast: Option<f64>,
    /// Root mean square of the measured values: the error of a forecast of no change.
    pub rms_unchanged: Option<f64>,
    /// Root mean square error without calibration.
    pub rmse_before: Option<f64>,
    /// With calibration.
    pub rmse_after: Option<f64>,
    /// Rank correlation of forecast and realised decrease, calibrated.
    pub spearman: Option<f64>,
    /// Share of the rounds inside the 90 % interval, calibrated.
    pub coverage: Option<f64>,
}

/// Error of a twin's estimate of a hidden quantity: median over the terminals that were scheduled
/// often enough.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FactorReport {
    /// The hidden quantity.
    pub name: &'static str,
    /// Terminals scheduled more often than the first rounds.
    pub n_terminals: usize,
    /// Relative error by the data sheet.
    pub error_before: Option<f64>,
    /// Relative error after calibration.
    pub error_after: Option<f64>,
}

/// Whether loss predicts success within a task group over time: the twin predicts success from
/// losses.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CurveReport {
    /// One entry per measured task group.
    pub groups: Vec<GroupReport>,
    /// Rank correlation of loss and success, ranks taken within each group.
    pub spearman: Option<f64>,
    /// Measurements that the scores below are means of: all but the first of each group.
    pub n: usize,
    /// Brier score of the calibrated curve.
    pub brier_curve: Option<f64>,
    /// Of each group's mean success, known only in hindsight.
    pub brier_constant: Option<f64>,
    /// Of the success measured last.
    pub brier_last: Option<f64>,
    /// Share of the constant's score that the curve saves.
    pub skill_to_constant: Option<f64>,
    /// Share of the last measurement's score that the curve saves.
    pub skill_to_last: Option<f64>,
}

/// Success of one task group over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupReport {
    /// Name of the task.
    pub task: &'static str,
    /// Rank correlation of its loss with its success.
    pub spearman: Option<f64>,
    /// Rounds at whose end success was measured.
    pub rounds: Vec<u64>,
    /// Its loss at these rounds.
    pub loss: Vec<f64>,
    /// Share of successes measured.
    pub measured: Vec<f64>,
    /// Forecast of the twin without calibration.
    pub before: Vec<f64>,
    /// Forecast of the calibrated twin.
    pub after: Vec<f64>,
    /// Lower ends of its 90 % intervals.
    pub low: Vec<f64>,
    /// Upper ends.
    pub high: Vec<f64>,
}

/// Sums up the forecasts of a run.
pub fn report(replay: &Replay, forecasts: &Forecasts) -> TwinReport {
    let freeze = replay.twin.options.freeze;
    let loops = [("network", freeze.network), ("training", freeze.training), ("task", freeze.task)];
    TwinReport {
        scenario: replay.scenario.name().to_owned(),
        note: replay.scenario.note(),
        method: replay.method.name().to_owned(),
        seed: replay.seed,
        rounds: replay.n_rounds(),
        frozen: loops.iter().filter(|(_, frozen)| *frozen).map(|(name, _)| *name).collect(),
        sub_twins: vec![
            sub_twin("network delay", true, &forecasts.delay, FIRST_ROUNDS),
            sub_twin("network energy", true, &forecasts.energy, FIRST_ROUNDS),
            sub_twin("training loss", true, &forecasts.loss, FIRST_ROUNDS),
            sub_twin("training decrease", false, &forecasts.decrease, FIRST_LOOKS),
            sub_twin("decrease by task", false, &forecasts.group_decrease, FIRST_LOOKS),
            sub_twin("task success", false, &forecasts.success, FIRST_MEASUREMENTS),
        ],
        contests: contests(forecasts),
        decreases: decreases(forecasts, suite_of(&replay.scenario)),
        decrease_within_rounds: within_rounds(forecasts),
        hidden: hidden(replay, forecasts),
        curve: curve(forecasts, suite_of(&replay.scenario)),
    }
}

/// Absolute error of a forecast, relative to the measured value if requested.
pub(super) fn error(forecast: &Interval, measured: f64, relative: bool) -> f64 {
    let error = (forecast.mid - measured).abs();
    if relative { error / measured } else { error }
}

fn sub_twin(name: &'static str, relative: bool, samples: &[Sample], first: u64) -> SubTwinReport {
    let error_of = |pick: fn(&Sample) -> Interval, counts: &dyn Fn(&Sample) -> bool| {
        let counted = samples.iter().filter(|one| counts(one));
        median(counted.map(|one| error(&pick(one), one.measured, relative)))
    };
    let coverage = |pick: fn(&Sample) -> Interval| {
        mean(samples.iter().map(|one| f64::from(pick(one).holds(one.measured))))
    };
    SubTwinReport {
        name,
        relative,
        n: samples.len(),
        error_before: error_of(|one| one.before, &|_| true),
        error_after: error_of(|one| one.after, &|_| true),
        coverage_before: coverage(|one| one.before),
        coverage_after: coverage(|one| one.after),
        first,
        error_first: error_of(|one| one.after, &|one| one.nth <= first),
        error_later: error_of(|one| one.after, &|one| one.nth > first),
    }
}

fn decreases(forecasts: &Forecasts, suite: &Suite) -> Vec<DecreaseReport> {
    let total: Vec<&Sample> = forecasts.decrease.iter().collect();
    let groups = suite.tasks.iter().enumerate().map(|(group, task)| {
        let own = forecasts.group_decrease.iter().filter(|one| one.whose == group);
        decrease(Some(task), &own.collect::<Vec<_>>())
    });
    std::iter::once(decrease(None, &total)).chain(groups).filter(|one| one.n > 0).collect()
}

fn decrease(task: Option<&'static str>, samples: &[&Sample]) -> DecreaseReport {
    let of = |pick: fn(&Sample) -> f64| samples.iter().map(move |one| pick(one));
    let rms = |pick| mean(of(pick).map(|error: f64| error * error)).map(f64::sqrt);
    let ranks = |pick| centred_ranks(&of(pick).collect::<Vec<_>>());
    let pairs = ranks(|one| one.after.mid).into_iter().zip(ranks(|one| one.measured));
    DecreaseReport {
        task,
        n: samples.len(),
        realised: mean(of(|one| one.measured)),
        forecast: mean(of(|one| one.after.mid)),
        rms_unchanged: rms(|one| one.measured),
        rmse_before: rms(|one| one.measured - one.before.mid),
        rmse_after: rms(|one| one.measured - one.after.mid),
        spearman: correlation(&pairs.collect::<Vec<_>>()),
        coverage: mean(of(|one| f64::from(one.after.holds(one.measured)))),
    }
}

fn within_rounds(forecasts: &Forecasts) -> Option<f64> {
    let ranks = |round: &Vec<(f64, f64)>| {
        let (forecast, realised): (Vec<f64>, Vec<f64>) = round.iter().copied().unzip();
        centred_ranks(&forecast).into_iter().zip(centred_ranks(&realised)).collect::<Vec<_>>()
    };
    correlation(&forecasts.terminal_decrease.iter().flat_map(ranks).collect::<Vec<_>>())
}

fn hidden(replay: &Replay, forecasts: &Forecasts) -> Vec<FactorReport> {
    let often: Vec<usize> = (0..replay.n_terminals())
        .filter(|&n| forecasts.delay.iter().any(|one| one.whose == n && one.nth > FIRST_ROUNDS))
        .collect();
    let factor = |name, value: fn(&Hardware) -> f64, belief: fn(&Calibration) -> Belief| {
        let ratio =
            |n: &usize| value(&replay.twin.nominal.hardware[*n]) / value(&replay.twin.truth[*n]);
        let calibrated = |n: &usize| {
            let known = forecasts.twin.calibration(TerminalId(*n as u32));
            ratio(n) * known.map_or(1.0, |known| belief(&known).mean.exp())
        };
        FactorReport {
            name,
            n_terminals: often.len(),
            error_before: median(often.iter().map(|n| (ratio(n) - 1.0).abs())),
            error_after: median(often.iter().map(|n| (calibrated(n) - 1.0).abs())),
        }
    };
    vec![
        true_error("delay without measurement noise", &forecasts.delay, &often),
        true_error("energy without measurement noise", &forecasts.energy, &often),
        factor("noise of the receiver", |h| h.noise_w_per_hz, |c| c.noise),
        factor("operations per cycle", |h| h.operations_per_cycle, |c| c.speed),
        factor("energy per operation", |h| h.energy_coefficient, |c| c.compute),
    ]
}

/// Error against the truth after the first rounds: median of each terminal, median over them.
fn true_error(name: &'static str, samples: &[Sample], often: &[usize]) -> FactorReport {
    let over_terminals = |pick: fn(&Sample) -> Interval| {
        let of = |n: &usize| {
            let later = samples.iter().filter(|one| one.whose == *n && one.nth > FIRST_ROUNDS);
            median(later.filter_map(|one| Some(error(&pick(one), one.truth?, true))))
        };
        median(often.iter().filter_map(of))
    };
    FactorReport {
        name,
        n_terminals: often.len(),
        error_before: over_terminals(|one| one.before),
        error_after: over_terminals(|one| one.after),
    }
}

fn curve(forecasts: &Forecasts, suite: &Suite) -> CurveReport {
    let tasks = suite.tasks.iter().enumerate();
    let groups: Vec<GroupReport> = tasks
        .map(|(group, task)| group_report(forecasts, group, task))
        .filter(|group| !group.rounds.is_empty())
        .collect();
    let ranks: Vec<(f64, f64)> = groups.iter().flat_map(rank_pairs).collect();
    // All forecasts for which a last measurement exists.
    let scores: Vec<[f64; 3]> = groups.iter().flat_map(scores).collect();
    let score = |idx: usize| mean(scores.iter().map(|one| one[idx]));
    let skill = |rival: Option<f64>| {
        let (own, rival) = (score(0)?, rival.filter(|rival| *rival > 0.0)?);
        Some(1.0 - own / rival)
    };
    CurveReport {
        spearman: correlation(&ranks),
        n: scores.len(),
        brier_curve: score(0),
        brier_constant: score(1),
        brier_last: score(2),
        skill_to_constant: skill(score(1)),
        skill_to_last: skill(score(2)),
        groups,
    }
}

fn group_report(forecasts: &Forecasts, group: usize, task: &'static str) -> GroupReport {
    let own: Vec<(&Sample, f64)> = (forecasts.success.iter())
        .zip(forecasts.group_losses.iter().copied())
        .filter(|(sample, _)| sample.whose == group)
        .collect();
    let of = |pick: fn(&Sample) -> f64| own.iter().map(|(sample, _)| pick(sample)).collect();
    let mut report = GroupReport {
        task,
        spearman: None,
        rounds: own.iter().map(|(sample, _)| sample.round).collect(),
        loss: own.iter().map(|(_, loss)| *loss).collect(),
        measured: of(|sample| sample.measured),
        before: of(|sample| sample.before.mid),
        after: of(|sample| sample.after.mid),
        low: of(|sample| sample.after.low),
        high: of(|sample| sample.after.high),
    };
    report.spearman = correlation(&rank_pairs(&report));
    report
}

fn rank_pairs(group: &GroupReport) -> Vec<(f64, f64)> {
    centred_ranks(&group.loss).into_iter().zip(centred_ranks(&group.measured)).collect()
}

/// Brier scores of curve, constant and last measurement, for each measurement but the first.
fn scores(group: &GroupReport) -> Vec<[f64; 3]> {
    let constant = mean(group.measured.iter().copied()).unwrap_or(0.5);
    let later = 1..group.measured.len();
    later
        .map(|idx| {
            let forecasts = [group.after[idx], constant, group.measured[idx - 1]];
            forecasts.map(|forecast| brier(forecast, group.measured[idx]))
        })
        .collect()
}
