//! Losses of the deployed policy, which the base station never sees: it hears of copies on minibatches.

use rayon::prelude::*;

use super::Cell;
use crate::round::LossChange;
use crate::split::data::Batch;
use crate::split::model::{SplitModel, Weights};

/// Rounds between two that are looked at. No divisor in common with the usual aggregation intervals,
/// so that all stretches between two aggregations have their turn.
const EVERY: u64 = 7;

/// Samples of each terminal that are looked at, the same ones in every round.
const SAMPLES: usize = 32;

impl Cell {
    /// The losses before the round at hand, if it is one that is looked at.
    pub(super) fn losses_looked_at(&self) -> Option<Vec<f64>> {
        let looked_at = self.state.round.is_multiple_of(EVERY);
        looked_at.then(|| self.deployed_losses(SAMPLES, &self.engine.virtual_mean()))
    }

    /// What has become of the losses after training.
    pub(super) fn loss_changes(&self, before: Vec<f64>) -> Vec<LossChange> {
        let after = self.deployed_losses(SAMPLES, &self.engine.virtual_mean());
        let pairs = before.into_iter().zip(after);
        pairs.map(|(before, after)| LossChange { before, after }).collect()
    }

    /// Loss of a policy over the same samples of each terminal's data every time.
    pub(super) fn deployed_losses(&self, samples: usize, model: &Weights) -> Vec<f64> {
        let policy = self.engine.model();
        let of = |n: usize| {
            let mut batch = Batch::default();
            let mut rng = self.seed.named("truth/samples").at(n as u64).rng();
            self.engine.terminals()[n].data().draw(samples, &mut rng, &mut batch);
            let mut actions = vec![0.0; batch.actions.len()];
            policy.act(model, &batch.observations, &mut actions);
            policy.loss(&actions, &batch.actions, &mut Vec::new())
        };
        (0..self.radio.n_terminals()).into_par_iter().map(of).collect()
    }
}
