//! A look from outside at what a plan reads and how it judges.

use super::Tilp;
use crate::lanes::LANES;
use crate::round::Observation;
use crate::search::sample::{Cell, Choice};
use crate::search::score::Candidates;

impl Tilp {
    /// The numbers that the rollouts of a plan read: see [`crate::twin::Field::numbers`].
    pub fn numbers(&self, seen: &Observation) -> Vec<(&'static str, Vec<f32>)> {
        self.sights(seen, self.options.horizon).field.numbers()
    }

    /// Predicted returns of sequences (step by step, terminal by terminal).
    pub fn returns(&self, seen: &Observation, sequences: &[Vec<Choice>]) -> Vec<f32> {
        let sights = self.sights(seen, self.options.horizon);
        let n_terminals = sights.field.n_terminals();
        let mut cells = vec![Cell::ZERO; n_terminals * self.options.horizon];
        let mut returns = Vec::with_capacity(sequences.len());
        for group in sequences.chunks(LANES) {
            for (lane, sequence) in group.iter().enumerate() {
                cells.iter_mut().zip(sequence).for_each(|(cell, one)| cell.set(lane, one));
            }
            let found = self.score(&sights, Candidates { group: 0, n_terminals, cells: &cells });
            returns.extend_from_slice(&found[..group.len()]);
        }
        returns
    }
}
