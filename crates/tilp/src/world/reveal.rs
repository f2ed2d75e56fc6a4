//! What is hidden, told on request: for the reference `oracle` alone.
//!
//! Everything is read, nothing is changed, and every draw has a stream of its own, so that a world
//! that was asked goes on as one that was not.

use super::Cell;
use crate::round::{NetworkTruth, Question, TrueHardware, Truth};

impl Cell {
    /// What is hidden before the next round.
    pub(super) fn truth(&self, question: &Question) -> Truth {
        let round = self.state.round;
        let mut truth = Truth { round, ..Truth::default() };
        truth.network = question.rounds.map(|rounds| self.true_network(rounds));
        if question.samples.is_none() && question.episodes.is_none() {
            return truth;
        }
        let model = self.engine.virtual_mean();
        truth.losses = question.samples.map(|samples| self.deployed_losses(samples, &model));
        truth.success = question.episodes.and_then(|episodes| {
            self.fleet.true_success(round, episodes, &model, self.engine.model())
        });
        truth
    }

    fn true_network(&self, rounds: usize) -> NetworkTruth {
        let hardware = self.radio.truth.iter().map(|one| TrueHardware {
            noise_w_per_hz: one.noise_w_per_hz,
            operations_per_cycle: one.operations_per_cycle,
            energy_coefficient: one.energy_coefficient,
        });
        NetworkTruth {
            hardware: hardware.collect(),
            fading_powers: self.radio.channel.fading_powers_ahead(self.state.round, rounds),
        }
    }
}
