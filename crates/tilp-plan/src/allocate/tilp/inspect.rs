//! Access to the inputs of a plan and to its scores, for inspection.

use super::Tilp;
use crate::lanes::LANES;
use crate::round::Observation;
use crate::search::sample::{Choice, ChoiceLanes};
use crate::search::score::Candidates;

impl Tilp {
    /// The numbers that the rollouts of a plan read: see [`crate::twin::RolloutTables::numbers`].
    pub fn numbers(&self, seen: &Observation) -> Vec<(&'static str, Vec<f32>)> {
        self.inputs(seen, self.options.horizon).rollout.numbers()
    }

    /// Predicted returns of sequences (step by step, terminal by terminal).
    pub fn returns(&self, seen: &Observation, sequences: &[Vec<Choice>]) -> Vec<f32> {
        let inputs = self.inputs(seen, self.options.horizon);
        let n_terminals = inputs.rollout.n_terminals();
        let mut cells = vec![ChoiceLanes::ZERO; n_terminals * self.options.horizon];
        let mut returns = Vec::with_capacity(sequences.len());
        for group in sequences.chunks(LANES) {
            for (lane, sequence) in group.iter().enumerate() {
                cells.iter_mut().zip(sequence).for_each(|(cell, one)| cell.set(lane, one));
            }
            let found = self.score(&inputs, Candidates { group: 0, n_terminals, cells: &cells });
            returns.extend_from_slice(&found[..group.len()]);
        }
        returns
    }
}
