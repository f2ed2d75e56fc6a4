//! Presence of terminals in the cell, by round.

use std::collections::BTreeSet;

use crate::round::TerminalId;

/// Terminals that leave and join at the start of a round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// The round, counted from 1.
    pub round: u64,
    /// Terminals that are absent from this round on.
    pub leave: Vec<TerminalId>,
    /// Terminals that are there from this round on.
    pub join: Vec<TerminalId>,
}

/// Presence of terminals by round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Presence {
    /// Terminals of the first round.
    pub first: Vec<TerminalId>,
    /// Changes, in the order of the rounds.
    pub changes: Vec<Change>,
}

impl Presence {
    /// Terminals 0 to `n_terminals - 1`, for ever.
    pub fn constant(n_terminals: usize) -> Self {
        Self { first: (0..n_terminals as u32).map(TerminalId).collect(), changes: Vec::new() }
    }

    /// The terminals of a round, in the order of their ids.
    pub fn at(&self, round: u64) -> BTreeSet<TerminalId> {
        let mut present: BTreeSet<TerminalId> = self.first.iter().copied().collect();
        for change in self.changes.iter().filter(|change| change.round <= round) {
            for id in &change.leave {
                present.remove(id);
            }
            present.extend(&change.join);
        }
        present
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_are_there_from_the_round_they_join_to_the_round_before_they_leave() {
        let ids = |ids: &[u32]| ids.iter().copied().map(TerminalId).collect::<Vec<_>>();
        let changes = vec![
            Change { round: 3, leave: ids(&[0]), join: ids(&[3]) },
            Change { round: 5, leave: ids(&[3]), join: ids(&[0]) },
        ];
        let presence = Presence { changes, ..Presence::constant(3) };
        let at = |round: u64| presence.at(round).into_iter().collect::<Vec<_>>();
        assert_eq!(at(2), ids(&[0, 1, 2]));
        assert_eq!(at(3), ids(&[1, 2, 3]));
        assert_eq!(at(4), ids(&[1, 2, 3]));
        assert_eq!(at(9), ids(&[0, 1, 2]));
    }
}
