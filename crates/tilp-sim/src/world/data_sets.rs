//! The private data of the terminals over the rounds.

use std::sync::Arc;

use crate::round::TerminalId;
use crate::split::data::Dataset;

/// Demonstrations that arrive at a terminal at the start of a round.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrival {
    /// The round, counted from 1.
    pub round: u64,
    /// The terminal.
    pub terminal: TerminalId,
    /// All samples that the terminal has from then on, earlier ones included.
    pub data: Arc<Dataset>,
}

/// The data of every terminal that is ever there, as a function of the round.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DataSets {
    /// Before the first round; entry `n` belongs to the terminal with id `n`.
    first: Vec<Arc<Dataset>>,
    /// Arriving data, in the order of the rounds.
    arrivals: Vec<Arrival>,
}

impl DataSets {
    /// Data that never changes.
    pub fn constant(first: Vec<Arc<Dataset>>) -> Self {
        Self { first, arrivals: Vec::new() }
    }

    /// These samples arrive at a terminal at the start of a round, beside those that it has.
    /// Arrivals come in the order of their rounds.
    pub fn add(&mut self, round: u64, terminal: TerminalId, samples: &Dataset) {
        let mut data = self.at(terminal, round).as_ref().clone();
        data.append(samples);
        self.arrivals.push(Arrival { round, terminal, data: Arc::new(data) });
    }

    /// The data of every terminal before the first round.
    pub fn first(&self) -> &[Arc<Dataset>] {
        &self.first
    }

    /// The data of a terminal over the rounds: each set with its first round.
    pub fn of(&self, terminal: TerminalId) -> Vec<(u64, Arc<Dataset>)> {
        let first = (0, self.first[terminal.0 as usize].clone());
        let later = self.arrivals.iter().filter(|one| one.terminal == terminal);
        std::iter::once(first).chain(later.map(|one| (one.round, one.data.clone()))).collect()
    }

    /// Whether any data arrives.
    pub fn changes(&self) -> bool {
        !self.arrivals.is_empty()
    }

    /// The data of a terminal in a round.
    pub fn at(&self, terminal: TerminalId, round: u64) -> &Arc<Dataset> {
        let arrived = |one: &&Arrival| one.terminal == terminal && one.round <= round;
        let latest = self.arrivals.iter().rev().find(arrived).map(|one| &one.data);
        latest.unwrap_or(&self.first[terminal.0 as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(values: &[f32]) -> Dataset {
        let mut data = Dataset::new(1, 1);
        values.iter().for_each(|value| data.push(&[*value], &[-value]));
        data
    }

    #[test]
    fn samples_are_there_from_the_round_of_their_arrival_beside_the_earlier_ones() {
        let mut data = DataSets::constant(vec![Arc::new(set(&[1.0])), Arc::new(set(&[2.0, 3.0]))]);
        assert!(!data.changes());
        data.add(4, TerminalId(1), &set(&[5.0]));
        data.add(6, TerminalId(1), &set(&[7.0, 8.0]));
        assert!(data.changes());
        let lengths = |round| [0, 1].map(|n| data.at(TerminalId(n), round).len());
        assert_eq!(
            [1, 3, 4, 5, 6, 9].map(lengths),
            [[1, 2], [1, 2], [1, 3], [1, 3], [1, 5], [1, 5]]
        );
        assert_eq!(data.at(TerminalId(1), 6).observation(2), [5.0]);
        assert_eq!(data.at(TerminalId(1), 6).action(4), [-8.0]);
    }
}
