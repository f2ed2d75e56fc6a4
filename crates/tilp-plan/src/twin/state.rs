//! One imagined round: the compact state of a candidate's future, and the effect of a step on it.

use std::sync::Arc;

use super::fading::FadingAhead;
use super::network::Exchange;
use super::reward::{Reward, RewardInputs};
use super::task::Outlook;
use super::training::{Part, Tally, Tempo};
use super::truth::Foresight;
use super::{LearningCurve, Twin};
use crate::cost::{FrontCopies, Grant};
use crate::round::{Observation, TerminalDecision, TerminalView, Violation};
use crate::units::{Bytes, Gain, Hertz, Joules, Seconds};

/// State of the twin at the start of a rollout; one entry per terminal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TwinState {
    /// The round to decide.
    pub round: u64,
    /// Rounds since the observation that it started from.
    pub lead: u32,
    /// Mean power of the part of the fading that is new since then, 1 - rho^{2 lead}.
    pub fresh: f64,
    /// G_n.
    pub gain: Vec<f64>,
    /// Remaining part of the observed fading power, rho^{2 lead} |h_n|^2.
    pub known: Vec<f64>,
    /// Copies of front layers.
    pub copies: Vec<FrontCopies>,
    /// Memory budgets.
    pub memory: Vec<Bytes>,
    /// Samples of a minibatch.
    pub samples: Vec<f64>,
    /// Squared gradient norm over the mean of all, minus one; zero if unknown.
    pub push: Vec<f64>,
    /// b_n of the round before.
    pub bandwidth: Vec<Hertz>,
    /// Logarithm of the loss of each terminal.
    pub log_loss: Vec<f64>,
    /// Its variance: a terminal may have forgotten during a long time without reports.
    pub variance: Vec<f64>,
    /// Advantage of each terminal from its own samples: see [`super::TrainingTwin::advantage`].
    pub advantage: Vec<f64>,
    /// Speed of training, the same in all rounds of a plan.
    pub tempo: Tempo,
    /// Predicted change of log-losses until the end of training.
    pub outlook: Outlook,
    /// Success at the end, over all terminals, reduced by the uncertainty of these losses.
    pub success: f64,
    /// Future fading, where it was received.
    pub foresight: Option<Arc<Foresight>>,
}

impl TwinState {
    /// Mean loss of the terminals.
    pub fn loss(&self) -> f64 {
        self.log_loss.iter().map(|one| one.exp()).sum::<f64>() / self.log_loss.len() as f64
    }

    /// The law of a terminal's fading power in the round to decide.
    pub fn fading(&self, n: usize) -> FadingAhead {
        let law = FadingAhead { known: self.known[n], fresh: self.fresh };
        self.foreseen(n, 0).unwrap_or(law)
    }

    /// The same some steps later, if `kept` of the power known is left after each.
    pub fn fading_after(&self, n: usize, steps: usize, kept: f64) -> FadingAhead {
        let left = kept.powi(steps as i32);
        let fresh = 1.0 - left * (1.0 - self.fresh);
        let law = FadingAhead { known: self.known[n] * left, fresh };
        self.foreseen(n, steps).unwrap_or(law)
    }

    fn foreseen(&self, n: usize, steps: usize) -> Option<FadingAhead> {
        self.foresight.as_ref()?.at(self.round + steps as u64, n)
    }
}

/// Memory for steps, one per thread; after a step it holds the prediction of each terminal.
#[derive(Clone, Debug)]
pub struct Scratch {
    /// Uncut delay; zero if it is not involved.
    pub delays: Vec<Seconds>,
    /// Delay with the requested safety margin; the expected delay without one.
    pub safe_delays: Vec<Seconds>,
    /// Energy spent until the round closes.
    pub energies: Vec<Joules>,
    /// Scheduled and expected to count in learning.
    pub trains: Vec<bool>,
    tally: Tally,
}

impl Scratch {
    /// Terminals that train in the last rollout round.
    pub(super) fn tally(&self) -> &Tally {
        &self.tally
    }
}

/// The safety margin of a predicted violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sureness {
    /// Expected delays.
    Likely,
    /// Delays that all scheduled terminals together meet with the chosen probability, given the
    /// calibration.
    Safe,
}

/// Prediction of a round.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StepPrediction {
    /// Slowest scheduled terminal, at most the give-up time.
    pub latency: Seconds,
    /// Advance of the clock.
    pub duration: Seconds,
    /// Energy of all involved terminals.
    pub energy: Joules,
    /// Violation, with safe delays if requested.
    pub violation: Violation,
    /// Scheduled terminals.
    pub n_scheduled: usize,
    /// Scheduled terminals that miss the deadline (with safe delays if requested) or do not fit
    /// their memory.
    pub n_late: usize,
    /// Mean loss of the terminals, before minus after.
    pub loss_decrease: f64,
    /// Success at the end of training, predicted after the round.
    pub success: f64,
    /// Terms of the reward.
    pub reward: Reward,
}

/// Division of the band in a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Band {
    aggregates: bool,
    slice: Hertz,
    scale: f64,
    asked: Hertz,
    n_scheduled: usize,
}

impl Twin {
    /// The state from which candidates start. The observation must be of the terminals that the
    /// twin plans for: see [`Twin::attend`].
    pub fn state(&self, seen: &Observation) -> TwinState {
        let terminals = &seen.terminals;
        let norms = || terminals.iter().filter_map(|one| one.gradient_norm).map(|g| g * g);
        let mean_square = norms().sum::<f64>() / norms().count().max(1) as f64;
        let [least, most] = self.options.training.push_bounds;
        let push = |norm: Option<f64>| match norm {
            Some(norm) if mean_square > 0.0 => (norm * norm / mean_square).clamp(least, most) - 1.0,
            _ => 0.0,
        };
        let split = |(n, one): (usize, &TerminalView)| {
            self.channels.split(n, one.report.gain.0, one.report.fading_power)
        };
        let channels: Vec<(f64, f64)> = terminals.iter().enumerate().map(split).collect();
        let profile = &self.nominal.cost.profile;
        let minibatch = |one: &TerminalView| profile.samples(one.report.n_samples) as f64;
        let log_loss = self.training.log_losses(seen.loss);
        let variance = self.training.variances();
        let outlook = self.outlook(seen);
        TwinState {
            round: seen.round,
            lead: 0,
            fresh: 0.0,
            gain: channels.iter().map(|(gain, _)| *gain).collect(),
            known: channels.iter().map(|(_, power)| *power).collect(),
            copies: terminals.iter().map(|one| FrontCopies::from(&one.report)).collect(),
            memory: terminals.iter().map(|one| one.report.memory).collect(),
            samples: terminals.iter().map(minibatch).collect(),
            push: terminals.iter().map(|one| push(one.gradient_norm)).collect(),
            bandwidth: terminals.iter().map(|one| one.previous_bandwidth).collect(),
            success: self.cautious_success(&log_loss, &variance, outlook),
            log_loss,
            variance,
            advantage: self.training.advantage().to_vec(),
            tempo: self.tempo(seen),
            outlook,
            foresight: self.told.foresight.clone(),
        }
    }

    /// Advances a state to a later round, which the observation names: speed of training, expected
    /// change of losses until the end, and predicted success are those of that round. For futures
    /// that are longer than a plan.
    pub fn move_to(&self, state: &mut TwinState, seen: &Observation) {
        state.round = seen.round;
        state.tempo = self.tempo(seen);
        state.outlook = self.outlook(seen);
        state.success = self.cautious_success(&state.log_loss, &state.variance, state.outlook);
    }

    /// Memory for steps.
    pub fn scratch(&self) -> Scratch {
        let n = self.nominal.hardware.len();
        Scratch {
            delays: vec![Seconds(0.0); n],
            safe_delays: vec![Seconds(0.0); n],
            energies: vec![Joules(0.0); n],
            trains: vec![false; n],
            tally: self.tally(),
        }
    }

    /// Imagines one round: predicts it and advances the state. Nothing in the twin changes and no
    /// memory is allocated.
    pub fn step(
        &self,
        state: &mut TwinState,
        actions: &[TerminalDecision],
        sureness: Sureness,
        scratch: &mut Scratch,
    ) -> StepPrediction {
        let band = self.band(state, actions);
        let mut prediction = StepPrediction { n_scheduled: band.n_scheduled, ..Default::default() };
        scratch.tally.begin(state.tempo, &state.advantage);
        for n in 0..actions.len() {
            self.step_terminal(state, actions, &band, sureness, n, scratch, &mut prediction);
        }
        prediction.latency = prediction.latency.min(self.nominal.give_up);
        prediction.duration = prediction.duration.min(self.nominal.closes);
        prediction.violation = self.violation(state, actions, &band, scratch);
        self.step_learning(state, scratch, &mut prediction);
        let gain = self.gain(prediction.success - state.success, prediction.loss_decrease);
        prediction.reward = self.reward(&RewardInputs {
            gain,
            latency: prediction.latency,
            energy: prediction.energy,
            violation: prediction.violation.relative,
            trained: scratch.trains.contains(&true),
        });
        self.move_on(state, actions, &band, scratch);
        state.success = prediction.success;
        prediction
    }

    /// Division of the band: the scheduled terminals share what pending uploads leave.
    pub(super) fn band(&self, state: &TwinState, actions: &[TerminalDecision]) -> Band {
        let limits = &self.nominal.cost.limits;
        let aggregates = self.aggregates(state.round);
        let slice = limits.bandwidth / actions.len() as f64;
        let (mut asked, mut n_scheduled, mut n_slices) = (0.0, 0, 0);
        for (n, one) in actions.iter().enumerate() {
            if one.scheduled {
                asked += one.bandwidth.0;
                n_scheduled += 1;
            } else if state.copies[n].needs_slice(aggregates, false) {
                n_slices += 1;
            }
        }
        let free = (limits.bandwidth - slice * f64::from(n_slices)).0;
        let scale = if asked > free { free / asked } else { 1.0 };
        Band { aggregates, slice, scale, asked: Hertz(asked), n_scheduled }
    }

    /// A terminal's task in the round and its link; `None` if it is not involved.
    #[inline]
    pub(super) fn exchange(
        &self,
        state: &TwinState,
        one: &TerminalDecision,
        band: &Band,
        n: usize,
    ) -> Option<Exchange> {
        let (cost, copies) = (&self.nominal.cost, state.copies[n]);
        let (job, grant) = if one.scheduled {
            let (samples, q) = (state.samples[n] as usize, one.compression);
            let job = cost.training_job(copies, samples, one.cut, q, band.aggregates);
            (job, Grant { bandwidth: one.bandwidth * band.scale, power: one.power })
        } else if copies.needs_slice(band.aggregates, false) {
            let grant = Grant { bandwidth: band.slice, power: cost.limits.power };
            (cost.delivery_job(copies, band.aggregates), grant)
        } else {
            return None;
        };
        let fading_power = state.fading(n).mean();
        let link = cost.link(Gain(state.gain[n]), fading_power);
        Some(Exchange { job, link, grant })
    }

    #[inline]
    #[expect(clippy::too_many_arguments)]
    fn step_terminal(
        &self,
        state: &TwinState,
        actions: &[TerminalDecision],
        band: &Band,
        sureness: Sureness,
        n: usize,
        scratch: &mut Scratch,
        prediction: &mut StepPrediction,
    ) {
        let one = &actions[n];
        let Some(exchange) = self.exchange(state, one, band, n) else {
            (scratch.delays[n], scratch.safe_delays[n]) = (Seconds(0.0), Seconds(0.0));
            (scratch.energies[n], scratch.trains[n]) = (Joules(0.0), false);
            return;
        };
        let cost = self.network.predict(n, &exchange);
        let spent = self.network.spent(n, &exchange, &cost);
        let delay = cost.delay();
        let safe = match sureness {
            Sureness::Likely => delay,
            Sureness::Safe => self.network.safe_delay(n, &exchange, self.z[band.n_scheduled]),
        };
        let fits = self.nominal.cost.profile.memory(one.cut) <= state.memory[n];
        scratch.delays[n] = delay;
        scratch.safe_delays[n] = safe;
        scratch.energies[n] = spent.energy_compute + spent.energy_radio;
        scratch.trains[n] = one.scheduled && fits && delay <= self.nominal.closes;
        prediction.energy += scratch.energies[n];
        prediction.duration = prediction.duration.max(delay);
        if one.scheduled {
            prediction.latency = prediction.latency.max(delay);
            let in_time = fits && safe <= self.nominal.cost.limits.deadline;
            prediction.n_late += usize::from(!in_time);
        }
        if scratch.trains[n] {
            scratch.tally.add(&self.part(state, one, n));
        }
    }

    pub(super) fn part(&self, state: &TwinState, one: &TerminalDecision, n: usize) -> Part {
        Part {
            terminal: n,
            group: self.nominal.tasks[n],
            samples: state.samples[n],
            compression: one.compression,
            depth: one.cut as f64 / self.nominal.cost.profile.cuts.len() as f64,
            push: state.push[n],
        }
    }

    fn violation(
        &self,
        state: &TwinState,
        actions: &[TerminalDecision],
        band: &Band,
        scratch: &Scratch,
    ) -> Violation {
        let scheduled = || actions.iter().enumerate().filter(|(_, one)| one.scheduled);
        let profile = &self.nominal.cost.profile;
        Violation::of(
            &self.nominal.cost.limits,
            scheduled().map(|(n, _)| scratch.safe_delays[n].min(self.nominal.give_up)),
            scheduled().map(|(n, one)| (profile.memory(one.cut), state.memory[n])),
            band.asked,
        )
    }

    /// Losses after the round, and the predicted success.
    fn step_learning(
        &self,
        state: &mut TwinState,
        scratch: &Scratch,
        prediction: &mut StepPrediction,
    ) {
        let share = 1.0 / state.log_loss.len() as f64;
        for (n, log_loss) in state.log_loss.iter_mut().enumerate() {
            let after = *log_loss - self.training.predict(&scratch.tally, n);
            prediction.loss_decrease += share * (log_loss.exp() - after.exp());
            *log_loss = after;
            state.advantage[n] += scratch.tally.gained(n);
            let variance = &mut state.variance[n];
            *variance = self.training.next_variance(*variance, scratch.trains[n]);
        }
        prediction.success = self.cautious_success(&state.log_loss, &state.variance, state.outlook);
    }

    /// Expected change of log-losses from a round to the last, by the power law of learning curves.
    fn outlook(&self, seen: &Observation) -> Outlook {
        let LearningCurve { earliest, spread } = self.options.curve;
        let round = seen.round.max(earliest) as f64;
        let rounds = seen.expected_rounds(self.nominal.rates.rounds);
        let fall = self.options.outlook * (rounds / round).ln().max(0.0);
        Outlook { fall, sd: spread * fall }
    }

    /// Success at the end over all terminals, reduced by the uncertainty of each loss.
    fn cautious_success(&self, log_loss: &[f64], variance: &[f64], outlook: Outlook) -> f64 {
        let caution = self.options.caution;
        let all = log_loss.iter().zip(variance).enumerate();
        let one = |(n, (log_loss, variance)): (usize, (&f64, &f64))| {
            let (start, slope) = self.task.line_ahead(n, outlook);
            let logit = start - slope * (log_loss + caution * variance.sqrt());
            1.0 / (1.0 + (-logit).exp())
        };
        all.map(one).sum::<f64>() / log_loss.len() as f64
    }

    /// Copies, fading and the count of rounds.
    fn move_on(
        &self,
        state: &mut TwinState,
        actions: &[TerminalDecision],
        band: &Band,
        scratch: &Scratch,
    ) {
        let kept = self.rho() * self.rho();
        for (n, one) in actions.iter().enumerate() {
            let trained = scratch.trains[n].then_some(one.cut);
            state.copies[n] = state.copies[n].after(band.aggregates, trained);
            state.known[n] *= kept;
            state.bandwidth[n] = if one.scheduled { one.bandwidth } else { Hertz(0.0) };
        }
        state.fresh = 1.0 - kept * (1.0 - state.fresh);
        state.lead += 1;
        state.round += 1;
    }
}
