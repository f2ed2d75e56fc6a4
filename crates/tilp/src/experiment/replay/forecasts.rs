//! Two twins are shown a run: one that calibrates, one that never does. Both forecast every round
//! before they see it, so no error is ever of a round that was learned from.

use super::{Replay, ReplayedRound};
use crate::round::SuccessCount;
use crate::twin::{Freeze, Interval, TerminalForecast, Twin, TwinOptions};

/// A measured value and what both twins had forecast.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// The round.
    pub round: u64,
    /// The terminal, or the task group, it was measured of.
    pub whose: usize,
    /// How often it has been measured of it by now, from 1.
    pub nth: u64,
    /// Forecast of the twin that never calibrates.
    pub before: Interval,
    /// Forecast of the twin that does.
    pub after: Interval,
    /// What was measured.
    pub measured: f64,
    /// What it really was, measurement noise aside, where that is known.
    pub truth: Option<f64>,
}

/// All samples of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecasts {
    /// Delay of scheduled terminals, in seconds.
    pub delay: Vec<Sample>,
    /// Their energy, in joules.
    pub energy: Vec<Sample>,
    /// Loss reported by those who took part and had reported before.
    pub loss: Vec<Sample>,
    /// Share of successes per task group.
    pub success: Vec<Sample>,
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
    };
    let mut all = Forecasts {
        delay: Vec::new(),
        energy: Vec::new(),
        loss: Vec::new(),
        success: Vec::new(),
        group_losses: Vec::new(),
        twin,
    };
    for round in replay.rounds() {
        all.add_terminals(&idle, &round, &mut counts);
        all.add_success(&idle, &round, &mut counts);
        let ReplayedRound { seen, plan, outcome, .. } = &round;
        all.twin.calibrate(seen, plan, outcome);
        idle.calibrate(seen, plan, outcome);
        all.add_group_losses(&round);
    }
    all
}

/// How often each was measured.
struct Counts {
    scheduled: Vec<u64>,
    reports: Vec<u64>,
    measurements: Vec<u64>,
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
            let nth = next(&mut counts.scheduled[n]);
            let joules = row.energy_radio_j + row.energy_compute_j;
            let sample = |pick: fn(&TerminalForecast) -> Interval, measured, truth| Sample {
                round: seen.round,
                whose: n,
                nth,
                before: pick(&before),
                after: pick(&after),
                measured,
                truth: Some(truth),
            };
            // Of who was cut off the delay was not measured.
            if !measured.unfinished {
                self.delay.extend(sound(sample(|one| one.delay_s, measured.delay.0, row.delay_s)));
            }
            self.energy.extend(sound(sample(|one| one.energy_j, measured.energy.0, joules)));
            let Some(loss) = measured.loss else { continue };
            let nth = next(&mut counts.reports[n]);
            if let (Some(before), Some(after)) = (before.loss, after.loss) {
                let round = seen.round;
                let sample =
                    Sample { round, whose: n, nth, before, after, measured: loss, truth: None };
                self.loss.extend(sound(sample));
            }
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

    /// The losses that go with the last measurement, after the round.
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

/// Nothing can be said of a delay without an end, nor of a terminal that had nothing to do.
fn sound(sample: Sample) -> Option<Sample> {
    let Sample { before, after, measured, .. } = &sample;
    let values = [*measured, before.mid, after.mid];
    values.iter().all(|value| value.is_finite() && *value > 0.0).then_some(sample)
}
