//! TiLP when terminals join or leave. Actor and critic share their weights over terminals and keep
//! them; the twin keeps its estimates of every terminal.

use super::plan::Work;
use super::{Mutex, Tilp};
use crate::lanes::LANES;
use crate::round::Observation;
use crate::search::cem::Planner;
use crate::search::sample::Choice;

/// The choice for a new terminal in a sequence of an earlier plan.
const IDLE: Choice = Choice { reals: [0.5, 1.0, 1.0], category: 0, flag: false };

impl Tilp {
    /// Changes the planned terminals to those of an observation.
    pub(in crate::allocate) fn attend(&mut self, seen: &Observation) {
        let Some(from) = self.twin.attend(seen) else { return };
        // The states before and after the change have different terminals.
        (self.chosen, self.pending) = (None, None);
        let remembered = self.planner.remembered();
        self.planner.forget();
        for sequence in remembered {
            self.planner.suggest(&rearranged(&sequence, &from, self.options.horizon));
        }
        self.rearrange_inner(&from);
        self.resize(from.len());
    }

    /// Allocates memory for `n_terminals`. Transitions with another number of terminals are
    /// dropped, since a batch has one shape.
    pub(super) fn resize(&mut self, n_terminals: usize) {
        self.works = works(n_terminals, self.options.horizon, self.options.cem.samples);
        self.agent.real.resize(n_terminals);
        self.agent.imagined.resize(n_terminals);
    }
}

/// Scratch memory for all groups of candidates that are scored at once.
pub(super) fn works(n_terminals: usize, horizon: usize, samples: usize) -> Vec<Mutex<Work>> {
    let n_groups = samples.div_ceil(LANES) + 2;
    (0..n_groups).map(|_| Mutex::new(Work::new(n_terminals, horizon))).collect()
}

/// A sequence rearranged for other terminals; `from` has the old place of each, or `None`.
fn rearranged(sequence: &[Choice], from: &[Option<usize>], horizon: usize) -> Vec<Choice> {
    let n_before = sequence.len() / horizon.max(1);
    let step = |step: &[Choice]| -> Vec<Choice> {
        from.iter().map(|place| place.map_or(IDLE, |place| step[place])).collect()
    };
    sequence.chunks_exact(n_before.max(1)).flat_map(step).collect()
}

impl Tilp {
    /// Restores the sequences of the last plan from rows of five numbers.
    pub(super) fn restore_planner(&mut self, rows: &[[f32; 5]], n_sequences: usize) {
        self.planner = Planner::default();
        let length = self.twin.members().len() * self.options.horizon;
        if length == 0 || n_sequences.checked_mul(length) != Some(rows.len()) {
            return;
        }
        let n_cuts = self.decoder.limits().cuts.len();
        let choice = |&[b, p, q, category, flag]: &[f32; 5]| Choice {
            reals: [b, p, q],
            category: (category as usize).min(n_cuts - 1),
            flag: flag > 0.5,
        };
        for sequence in rows.chunks_exact(length) {
            let choices: Vec<Choice> = sequence.iter().map(choice).collect();
            self.planner.suggest(&choices);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_follows_its_terminals_and_leaves_the_new_ones_idle() {
        let of = |category: usize| Choice { category, flag: true, ..IDLE };
        let sequence = [of(1), of(2), of(3), of(4), of(5), of(6)];
        let found = rearranged(&sequence, &[Some(2), None], 2);
        assert_eq!(found, [of(3), IDLE, of(6), IDLE]);
    }
}
