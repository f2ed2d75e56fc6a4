//! The reward of one round, as the planner predicts it.

use super::{Twin, TwinState};
use crate::round::{Observation, Outcome, ProjectedDecision, Violation};
use crate::units::{Joules, Seconds, Watts};

/// Weights of the reward's terms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RewardWeights {
    /// Weight of the first term; the paper's is 1.
    pub task: f64,
    /// w_delta: weight of the round's latency.
    pub delay: f64,
    /// w_E: weight of the round's energy.
    pub energy: f64,
    /// w_pen: weight of the violation.
    pub penalty: f64,
}

/// Scales of the reward of a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// delta^max.
    pub deadline: Seconds,
    /// E^max = N P^max delta^max.
    pub energy: Joules,
}

impl Scale {
    /// The scale of a cell of `n_terminals`.
    pub fn new(n_terminals: usize, power: Watts, deadline: Seconds) -> Self {
        Self { deadline, energy: power * deadline * n_terminals as f64 }
    }
}

/// Inputs of the reward of a round, imagined or executed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RewardInputs {
    /// Gain in success, or the loss decrease if the reward is not task-driven.
    pub gain: f64,
    /// Its duration.
    pub latency: Seconds,
    /// Energy of all terminals.
    pub energy: Joules,
    /// Relative violation.
    pub violation: f64,
    /// Whether any terminal trained.
    pub trained: bool,
}

/// The terms of one round's reward.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reward {
    /// r_task.
    pub task: f64,
    /// r_comm.
    pub communication: f64,
    /// r_pen.
    pub penalty: f64,
}

impl Reward {
    /// The reward terms of a round. A round without training is lost, not fast: it counts as long
    /// as the deadline.
    pub fn of(weights: &RewardWeights, scale: &Scale, inputs: &RewardInputs) -> Self {
        let RewardInputs { gain, latency, energy, violation, trained } = *inputs;
        let latency = if trained { latency } else { latency.max(scale.deadline) };
        Self {
            task: task_reward(weights, gain),
            communication: communication_reward(weights, scale, latency, energy),
            penalty: penalty(weights, violation),
        }
    }

    /// The reward of a round.
    ///
    /// $$ r\[t\] = r_{task}\[t\] + r_{comm}\[t\] - r_{pen}\[t\] $$
    ///
    /// Eq. `method-reward`
    pub fn total(&self) -> f64 {
        self.task + self.communication - self.penalty
    }
}

impl Twin {
    /// The reward of an executed round, from its outcome and the twin's states before the round and
    /// after the calibration. A round counts as at least as long as `waited`.
    pub fn realised_reward(
        &self,
        seen: &Observation,
        plan: &ProjectedDecision,
        outcome: &Outcome,
        [before, after]: [&TwinState; 2],
        waited: Seconds,
    ) -> Reward {
        let nominal = self.nominal();
        let scheduled = || plan.decision().scheduled();
        let delay = |n: usize| outcome.terminals[n].delay.min(nominal.give_up);
        // A measured delay may exceed the deadline by noise. Which terminals were late is known; how late is predicted.
        let exchanges = self.exchanges(before, plan);
        let likely = |n: usize| match &exchanges[n] {
            Some(exchange) => self.network.predict(n, exchange).delay().min(nominal.give_up),
            None => Seconds(0.0),
        };
        let deadline = nominal.cost.limits.deadline;
        let delays = scheduled().map(|n| match outcome.terminals[n].late {
            true => likely(n).max(deadline),
            false => delay(n).min(deadline),
        });
        let memories = scheduled().map(|n| {
            let need = nominal.cost.profile.memory(plan.decision().terminals[n].cut);
            (need, seen.terminals[n].report.memory)
        });
        let asked = plan.decision().bandwidth();
        let violation = Violation::of(&nominal.cost.limits, delays, memories, asked).relative;
        self.reward(&RewardInputs {
            gain: self.gain(after.success - before.success, before.loss() - after.loss()),
            latency: scheduled().map(delay).fold(waited, Seconds::max),
            energy: outcome.terminals.iter().map(|one| one.energy).sum(),
            violation,
            trained: outcome.terminals.iter().any(|one| one.took_part),
        })
    }
}

/// Task-level improvement.
///
/// $$ r_{task}\[t\] = \Delta\hat\Gamma\[t\] = \hat\Gamma\[t\] - \hat\Gamma\[t-1\] $$
///
/// Eq. `method-r-task`
pub fn task_reward(weights: &RewardWeights, gain: f64) -> f64 {
    weights.task * gain
}

/// Communication efficiency.
///
/// $$ r_{comm}\[t\] = w_\delta (1 - \hat\delta\[t\]/\delta^{max}) + w_E (1 - \sum_n \hat E_n\[t\]/E^{max}) $$
///
/// Eq. `method-r-comm`
pub fn communication_reward(
    weights: &RewardWeights,
    scale: &Scale,
    latency: Seconds,
    energy: Joules,
) -> f64 {
    weights.delay * (1.0 - latency.0 / scale.deadline.0)
        + weights.energy * (1.0 - energy.0 / scale.energy.0)
}

/// Penalty of a violation.
///
/// $$ r_{pen}\[t\] = w_{pen} \mathcal{V}\[t\] $$
///
/// Eq. `method-r-pen`
pub fn penalty(weights: &RewardWeights, violation: f64) -> f64 {
    weights.penalty * violation
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEIGHTS: RewardWeights =
        RewardWeights { task: 1.0, delay: 0.2, energy: 0.1, penalty: 3.0 };

    #[test]
    fn eq_method_r_task_is_the_gain_in_success() {
        assert!((task_reward(&WEIGHTS, 0.7 - 0.6) - 0.1).abs() < 1e-12);
    }

    #[test]
    fn eq_method_r_comm_is_both_weights_for_a_free_round_and_zero_at_the_limits() {
        let scale = Scale::new(50, Watts(0.2), Seconds(5.0));
        assert_eq!(scale.energy, Joules(50.0));
        let of = |latency, energy| {
            communication_reward(&WEIGHTS, &scale, Seconds(latency), Joules(energy))
        };
        assert!((of(0.0, 0.0) - 0.3).abs() < 1e-12);
        assert!(of(5.0, 50.0).abs() < 1e-12);
        assert!((of(2.5, 10.0) - (0.1 + 0.08)).abs() < 1e-12);
    }

    #[test]
    fn eq_method_r_pen_is_the_weighted_violation() {
        assert!((penalty(&WEIGHTS, 0.5) - 1.5).abs() < 1e-12);
    }

    #[test]
    fn a_round_in_which_nobody_trains_counts_as_long_as_the_deadline() {
        let scale = Scale::new(50, Watts(0.2), Seconds(5.0));
        let idle = RewardInputs {
            gain: 0.0,
            latency: Seconds(0.0),
            energy: Joules(0.0),
            violation: 0.0,
            trained: false,
        };
        let busy = RewardInputs { trained: true, ..idle };
        assert!((Reward::of(&WEIGHTS, &scale, &idle).total() - 0.1).abs() < 1e-12);
        assert!((Reward::of(&WEIGHTS, &scale, &busy).total() - 0.3).abs() < 1e-12);
    }

    #[test]
    fn eq_method_reward_adds_the_gains_and_takes_off_the_penalty() {
        let reward = Reward { task: 0.1, communication: 0.25, penalty: 0.3 };
        assert!((reward.total() - 0.05).abs() < 1e-12);
    }
}
