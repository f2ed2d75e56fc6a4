//! Pending uploads: the one rule for copies of front layers between two aggregations.
//!
//! A terminal that has trained front layers since the last aggregation has a pending upload. It is
//! delivered at the end of a round that aggregates: by a scheduled terminal together with the
//! layers that it trains in this round, by any other terminal over one N-th of the band at full
//! power. After an aggregation no terminal holds current layers and nothing is pending.

use crate::round::TerminalReport;

/// The copies of front layers on one terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrontCopies {
    /// Front layers that it holds in their current version.
    pub held: usize,
    /// Front layers that it has trained since the last aggregation.
    pub pending: usize,
}

impl From<&TerminalReport> for FrontCopies {
    fn from(report: &TerminalReport) -> Self {
        Self { held: report.held_layers, pending: report.owed_layers }
    }
}

impl FrontCopies {
    /// How many front layers the terminal delivers at the end of the round; `cut` is that of a
    /// scheduled terminal.
    #[inline]
    pub fn delivered(self, aggregates: bool, cut: Option<usize>) -> usize {
        if aggregates { cut.unwrap_or(0).max(self.pending) } else { 0 }
    }

    /// Whether the terminal needs a slice of the band of its own to deliver them.
    #[inline]
    pub fn needs_slice(self, aggregates: bool, scheduled: bool) -> bool {
        !scheduled && self.delivered(aggregates, None) > 0
    }

    /// The copies after the round; `cut` is that of a terminal that has trained.
    #[inline]
    pub fn after(self, aggregates: bool, cut: Option<usize>) -> Self {
        let trained = cut.unwrap_or(0);
        match aggregates {
            true => Self::default(),
            false => Self { held: self.held.max(trained), pending: self.pending.max(trained) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COPIES: FrontCopies = FrontCopies { held: 4, pending: 3 };

    #[test]
    fn copies_are_delivered_only_in_a_round_that_aggregates() {
        assert_eq!(COPIES.delivered(false, Some(5)), 0);
        assert_eq!(COPIES.delivered(true, Some(5)), 5);
        assert_eq!(COPIES.delivered(true, Some(2)), 3, "what was trained before counts too");
        assert_eq!(COPIES.delivered(true, None), 3);
    }

    #[test]
    fn only_an_unscheduled_terminal_with_a_pending_upload_needs_a_slice() {
        assert!(COPIES.needs_slice(true, false));
        assert!(!COPIES.needs_slice(true, true));
        assert!(!COPIES.needs_slice(false, false));
        assert!(!FrontCopies { held: 4, pending: 0 }.needs_slice(true, false));
    }

    #[test]
    fn training_deepens_the_copies_and_an_aggregation_ends_them() {
        assert_eq!(COPIES.after(false, Some(5)), FrontCopies { held: 5, pending: 5 });
        assert_eq!(COPIES.after(false, Some(2)), COPIES);
        assert_eq!(COPIES.after(false, None), COPIES);
        assert_eq!(COPIES.after(true, Some(5)), FrontCopies::default());
    }
}
