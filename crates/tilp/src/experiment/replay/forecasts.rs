//! Two twins process a run: one is calibrated, the other never. Both forecast every round
//! before they see it, so every error is out of sample.

use super::{Replay, ReplayedRound};
use crate::record::TerminalRow;
use crate::round::SuccessCount;
use crate::statistics::mean;
use crate::twin::{
    Decrease, Freeze, Interval, Sureness, TerminalForecast, Twin, TwinOptions, TwinState,
};

/// A measured value and what both twins had forecast.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// The round.
    pub round: u64,
    /// The terminal or task group of the measurement.
    pub whose: usize,
    /// Index of this measurement of it, from 1.
    pub nth: u64,
    /// Forecast of the twin that is never calibrated.
    pub before: Interval,
    /// Forecast of the calibrated twin.
    pub after: Interval,
    /// The measured value.
    pub measured: f64,
    /// The true value without measurement noise, if it is known.
    pub truth: Option<f64>,
}

/// The success of one terminal, measured and forecast.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OwnSuccess {
    /// Share of successful episodes; `whose` is the id of the terminal.
    pub sample: Sample,
    /// Its task group.
    pub group: usize,
    /// Its episodes.
    pub episodes: u64,
}

/// Change of the losses of the deployed policy from one measurement to the next: forecast
/// by the calibrated twin at the first measurement with the true participants, and measured. Shares
/// of the loss at the first measurement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Span {
    /// Over all terminals.
    pub total: (f64, f64),
    /// Per task group that has terminals.
    pub groups: Vec<(f64, f64)>,
    /// Per terminal.
    pub terminals: Vec<(f64, f64)>,
}

impl Span {
    pub(super) fn terminals(&self) -> impl Iterator<Item = &(f64, f64)> {
        self.terminals.iter()
    }
}

/// All samples of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecasts {
    /// Delay of scheduled terminals, in seconds.
    pub delay: Vec<Sample>,
    /// Their energy, in joules.
    pub energy: Vec<Sample>,
    /// Loss reported by participants that had reported before.
    pub loss: Vec<Sample>,
    /// Share by which the loss of the deployed policy falls in a round, over all terminals.
    pub decrease: Vec<Sample>,
    /// The same per task group.
    pub group_decrease: Vec<Sample>,
    /// The same per terminal, in the rounds with a measurement of the losses: forecast of the
    /// calibrated twin, and measured value.
    pub terminal_decrease: Vec<Vec<(f64, f64)>>,
    /// The same from one measurement of the losses to the next.
    pub spans: Vec<Span>,
    /// Share of successes per task group.
    pub success: Vec<Sample>,
    /// Share of successes per terminal.
    pub own_success: Vec<OwnSuccess>,
    /// Loss of the group at each measurement of its success.
    pub group_losses: Vec<f64>,
    /// The calibrated twin after the last round.
    pub twin: Twin,
}

/// Shows a run to both twins.
pub fn forecasts(replay: &Replay) -> Forecasts {
    let frozen = Freeze { network: true, training: true, task: true };
    let options = TwinOptions { freeze: frozen, ..replay.twin.options };
    let mut idle = Twin::new(replay.twin.nominal.clone(), options);
    let twin = Twin::new(replay.twin.nominal.clone(), replay.twin.options);
    let n_terminals = replay.n_terminals();
    let mut counts = Counts {
        scheduled: vec![0; n_terminals],
        reports: vec![0; n_terminals],
        measurements: vec![0; replay.twin.nominal.n_tasks],
        looks: 0,
    };
    let mut all = Forecasts {
        delay: Vec::new(),
        energy: Vec::new(),
        loss: Vec::new(),
        decrease: Vec::new(),
        group_decrease: Vec::new(),
        terminal_decrease: Vec::new(),
        spans: Vec::new(),
        success: Vec::new(),
        own_success: Vec::new(),
        group_losses: Vec::new(),
        twin,
    };
    let mut look: Option<Look> = None;
    for round in replay.rounds() {
        idle.attend(&round.seen);
        if all.twin.attend(&round.seen).is_some() {
            // Losses are of other terminals now.
            look = None;
        }
        all.add_span(&round, &mut look);
        all.add_terminals(&idle, &round, &mut counts);
        all.add_decreases(&idle, &round, &mut counts);
        all.add_success(&idle, &round, &mut counts);
        all.add_own_success(&idle, &round);
        let ReplayedRound { seen, plan, outcome, .. } = &round;
        all.twin.calibrate(seen, plan, outcome);
        idle.calibrate(seen, plan, outcome);
        all.add_group_losses(&round);
    }
    all
}

/// A twin at the time of a measurement of the deployed policy's losses, and its rollout
/// since.
struct Look {
    twin: Twin,
    losses: Vec<f64>,
    before: Vec<f64>,
    state: TwinState,
}

impl Look {
    fn new(twin: &Twin, round: &ReplayedRound<'_>) -> Option<Self> {
        let losses: Vec<f64> = round.truth.iter().map(|row| row.deployed_loss_before).collect();
        let is_sound = losses.iter().all(|loss| loss.is_finite() && *loss > 0.0);
        let state = twin.state(&round.seen);
        let before = state.log_loss.clone();
        is_sound.then(|| Self { twin: twin.clone(), losses, before, state })
    }

    /// Its forecast up to the round of these losses.
    fn span(&self, losses: &[f64]) -> Span {
        let (tasks, n) = (&self.twin.nominal().tasks, losses.len());
        let fall = |members: &[usize]| {
            let sum = |of: &dyn Fn(usize) -> f64| members.iter().map(|&n| of(n)).sum::<f64>();
            let forecast = sum(&|n| self.state.log_loss[n].exp()) / sum(&|n| self.before[n].exp());
            (1.0 - forecast, 1.0 - sum(&|n| losses[n]) / sum(&|n| self.losses[n]))
        };
        let of_group = |group: usize| (0..n).filter(|&n| tasks[n] == group).collect::<Vec<_>>();
        let groups = (0..self.twin.nominal().n_tasks).map(of_group);
        Span {
            total: fall(&(0..n).collect::<Vec<_>>()),
            groups: groups.filter(|group| !group.is_empty()).map(|group| fall(&group)).collect(),
            terminals: (0..n).map(|n| fall(&[n])).collect(),
        }
    }
}

/// Number of measurements of each.
struct Counts {
    scheduled: Vec<u64>,
    reports: Vec<u64>,
    measurements: Vec<u64>,
    /// Rounds in which the losses of the deployed policy were measured.
    looks: u64,
}

fn next(count: &mut u64) -> u64 {
    *count += 1;
    *count
}

impl Forecasts {
    fn add_terminals(&mut self, idle: &Twin, round: &ReplayedRound<'_>, counts: &mut Counts) {
        let ReplayedRound { seen, plan, outcome, truth } = round;
        let before = idle.forecast(seen, plan).terminals;
        let after = self.twin.forecast(seen, plan).terminals;
        for (n, pair) in before.into_iter().zip(after).enumerate() {
            let (Some(before), Some(after)) = pair else { continue };
            let (measured, row) = (&outcome.terminals[n], &truth[n]);
            let whose = row.terminal as usize;
            let nth = next(&mut counts.scheduled[whose]);
            let joules = row.energy_radio_j + row.energy_compute_j;
            let sample = |pick: fn(&TerminalForecast) -> Interval, measured, truth| Sample {
                round: seen.round,
                whose,
                nth,
                before: pick(&before),
                after: pick(&after),
                measured,
                truth: Some(truth),
            };
            // The delay of a terminal that was cut off was not measured.
            if !measured.unfinished {
                self.delay.extend(sound(sample(|one| one.delay_s, measured.delay.0, row.delay_s)));
            }
            self.energy.extend(sound(sample(|one| one.energy_j, measured.energy.0, joules)));
            let Some(loss) = measured.loss else { continue };
            let nth = next(&mut counts.reports[whose]);
            if let (Some(before), Some(after)) = (before.loss, after.loss) {
                let round = seen.round;
                let sample =
                    Sample { round, whose, nth, before, after, measured: loss, truth: None };
                self.loss.extend(sound(sample));
            }
        }
    }

    /// The experimenter measures the losses of the deployed policy in some rounds; no twin sees
    /// them.
    fn add_decreases(&mut self, idle: &Twin, round: &ReplayedRound<'_>, counts: &mut Counts) {
        let Some(total) = realised_fall(round.truth, |_| true) else { return };
        let (seen, actions) = (&round.seen, &round.plan.decision().terminals);
        let (before, after) = (idle.decreases(seen, actions), self.twin.decreases(seen, actions));
        let nth = next(&mut counts.looks);
        let sample = |whose, before: &Decrease, after: &Decrease, measured| Sample {
            round: seen.round,
            whose,
            nth,
            before: before.share,
            after: after.share,
            measured,
            truth: Some(measured),
        };
        let of = |row: &TerminalRow| 1.0 - row.deployed_loss_after / row.deployed_loss_before;
        let realised = round.truth.iter().map(of);
        self.terminal_decrease.push(after.terminals.iter().copied().zip(realised).collect());
        self.decrease.push(sample(0, &before.total, &after.total, total));
        for (group, pair) in before.groups.iter().zip(&after.groups).enumerate() {
            let realised = realised_fall(round.truth, |row| row.task == group as u64);
            if let ((Some(before), Some(after)), Some(realised)) = (pair, realised) {
                self.group_decrease.push(sample(group, before, after, realised));
            }
        }
    }

    fn add_span(&mut self, round: &ReplayedRound<'_>, look: &mut Option<Look>) {
        let next = Look::new(&self.twin, round);
        if let (Some(next), Some(look)) = (&next, &look) {
            self.spans.push(look.span(&next.losses));
        }
        if next.is_some() {
            *look = next;
        }
        if let Some(Look { twin, state, .. }) = look {
            let (actions, mut scratch) = (&round.plan.decision().terminals, twin.scratch());
            // Channel errors are excluded here: the participants are the actual ones.
            (state.known, state.fresh) = (twin.state(&round.seen).known, 0.0);
            twin.step(state, actions, Sureness::Likely, &mut scratch);
        }
    }

    fn add_own_success(&mut self, idle: &Twin, round: &ReplayedRound<'_>) {
        let seen = &round.seen;
        for (n, row) in round.truth.iter().enumerate() {
            let Some(count) = round.outcome.terminals[n].success else { continue };
            let Some(measured) = count.rate() else { continue };
            let sample = Sample {
                round: seen.round,
                whose: row.terminal as usize,
                nth: 0,
                before: idle.forecast_own_success(seen, n, count.episodes),
                after: self.twin.forecast_own_success(seen, n, count.episodes),
                measured,
                truth: None,
            };
            let (group, episodes) = (row.task as usize, count.episodes);
            self.own_success.push(OwnSuccess { sample, group, episodes });
        }
    }

    fn add_success(&mut self, idle: &Twin, round: &ReplayedRound<'_>, counts: &mut Counts) {
        let seen = &round.seen;
        for (group, count) in measured_groups(round) {
            let (Some(measured), episodes) = (count.rate(), count.episodes) else { continue };
            self.success.push(Sample {
                round: seen.round,
                whose: group,
                nth: next(&mut counts.measurements[group]),
                before: idle.forecast_success(seen, group, episodes),
                after: self.twin.forecast_success(seen, group, episodes),
                measured,
                truth: None,
            });
        }
    }

    /// The losses at the last measurement, after the round.
    fn add_group_losses(&mut self, round: &ReplayedRound<'_>) {
        let fallback = round.outcome.loss.or(round.seen.loss).unwrap_or(1.0);
        for (group, count) in measured_groups(round) {
            if count.episodes > 0 {
                let log_loss = self.twin.training.group_log_loss(group);
                self.group_losses.push(log_loss.map_or(fallback, f64::exp));
            }
        }
    }
}

fn measured_groups(round: &ReplayedRound<'_>) -> impl Iterator<Item = (usize, SuccessCount)> {
    round.outcome.success.iter().flatten().copied().enumerate()
}

/// Share by which the mean loss of some terminals fell; `None` in a round without a measurement.
fn realised_fall(rows: &[TerminalRow], counts: impl Fn(&TerminalRow) -> bool) -> Option<f64> {
    let mean_of = |pick: fn(&TerminalRow) -> f64| {
        let counted = rows.iter().filter(|row| counts(row));
        mean(counted.map(pick)).filter(|loss| loss.is_finite() && *loss > 0.0)
    };
    let before = mean_of(|row| row.deployed_loss_before)?;
    Some(1.0 - mean_of(|row| row.deployed_loss_after)? / before)
}

/// No forecast of a delay without an end, nor of a terminal without a job.
fn sound(sample: Sample) -> Option<Sample> {
    let Sample { before, after, measured, .. } = &sample;
    let values = [*measured, before.mid, after.mid];
    values.iter().all(|value| value.is_finite() && *value > 0.0).then_some(sample)
}
