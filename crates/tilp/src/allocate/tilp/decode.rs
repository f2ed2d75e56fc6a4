//! From the numbers of a candidate to a decision.

use crate::cost::{Accounting, Profile};
use crate::round::{Limits, TerminalDecision};
use crate::search::sample::{Cell, Choice};
use crate::twin::{Nominal, TwinState};
use crate::units::Gain;
use crate::units::{Bytes, Hertz, Watts};
use crate::wireless::{RateModel, rate};

/// Turns choices into decisions.
///
/// With repair, the cut is the deepest up to the chosen one that fits the memory, and the band is
/// shared among the scheduled in proportion to what each needs (bits over spectral efficiency),
/// the sampled number only shifting that share. Without it everything is as sampled: the paper's
/// plain sampling.
pub(super) struct Decoder {
    limits: Limits,
    profile: Profile,
    accounting: Accounting,
    rate_model: RateModel,
    noise_w_per_hz: Vec<f64>,
    aggregate_every: u64,
    repair: bool,
}

impl Decoder {
    pub fn new(nominal: &Nominal, repair: bool) -> Self {
        Self {
            limits: nominal.limits.clone(),
            profile: nominal.profile.clone(),
            accounting: nominal.accounting,
            rate_model: nominal.rate_model,
            noise_w_per_hz: nominal.hardware.iter().map(|one| one.noise_w_per_hz).collect(),
            aggregate_every: nominal.aggregate_every,
            repair,
        }
    }

    /// The decision of one candidate of a group.
    pub fn decode_lane(
        &self,
        state: &TwinState,
        cells: &[Cell],
        lane: usize,
        actions: &mut Vec<TerminalDecision>,
    ) {
        self.decode(state, |n| cells[n].choice(lane), actions);
    }

    /// The decision behind the choices.
    pub fn decode(
        &self,
        state: &TwinState,
        choice: impl Fn(usize) -> Choice,
        actions: &mut Vec<TerminalDecision>,
    ) {
        let n_terminals = state.gain.len();
        actions.clear();
        let mut total = 0.0;
        let mut n_owing = 0;
        let aggregates = state.round.is_multiple_of(self.aggregate_every);
        for n in 0..n_terminals {
            let choice = choice(n);
            let one = self.terminal(state, n, &choice, aggregates);
            total += one.bandwidth.0;
            n_owing += usize::from(aggregates && !one.scheduled && state.owed[n] > 0);
            actions.push(one);
        }
        if self.repair && total > 0.0 {
            // Whoever owes a copy and is not scheduled holds one N-th of the band.
            let share = 1.0 - n_owing as f64 / n_terminals as f64;
            let scale = self.limits.bandwidth.0 * share / total;
            actions.iter_mut().for_each(|one| one.bandwidth.0 *= scale);
        }
    }

    fn terminal(
        &self,
        state: &TwinState,
        n: usize,
        choice: &Choice,
        aggregates: bool,
    ) -> TerminalDecision {
        let [share, power, compression] = choice.reals.map(f64::from);
        let asked = self.limits.cuts[choice.category.min(self.limits.cuts.len() - 1)];
        let cut = if self.repair { self.fitting(asked, state.memory[n]) } else { asked };
        let mut one = TerminalDecision {
            scheduled: choice.flag,
            bandwidth: Hertz(0.0),
            power: Watts(0.0),
            cut,
            compression: self.limits.compression * compression,
        };
        if !choice.flag {
            return one;
        }
        one.power = self.limits.power * power;
        one.bandwidth = if self.repair {
            let deliver = if aggregates { cut.max(state.owed[n]) } else { 0 };
            let held = state.held[n];
            let job = self.accounting.training(&self.profile, cut, one.compression, held, deliver);
            let typical = self.limits.bandwidth / 10.0;
            let (gain, noise) = (Gain(state.gain[n]), self.noise_w_per_hz[n]);
            let fading = state.fading(n).mean();
            let speed = rate(self.rate_model, typical, one.power, gain, fading, noise);
            let need = job.air().0 as f64 / speed.0.max(1.0);
            Hertz(need * (4.0 * (share - 0.5)).exp())
        } else {
            self.limits.bandwidth * share
        };
        one
    }

    fn fitting(&self, asked: usize, memory: Bytes) -> usize {
        let fits = |cut: &&usize| **cut <= asked && self.profile.memory(**cut) <= memory;
        *self.limits.cuts.iter().rev().find(fits).unwrap_or(&self.limits.cuts[0])
    }
}
