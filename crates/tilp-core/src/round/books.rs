//! The experimenter's books: what really happened. They exist around a simulated cell only.

use super::{Limits, Outcome, RoundOrder, TerminalDecision, TerminalOutcome, TerminalSuccess};
use crate::units::{Bytes, Hertz, Joules, Seconds};

/// The experimenter's books of a round: what really happened. No method ever sees them.
#[derive(Clone, Debug, PartialEq)]
pub struct Ledger {
    /// One entry per terminal.
    pub terminals: Vec<TerminalLedger>,
    /// Slowest scheduled terminal, uncut up to the give-up time.
    pub latency: Seconds,
    /// Advance of the clock.
    pub duration: Seconds,
    /// The three parts of the violation.
    pub violation: Violation,
    /// Success per terminal on report episodes, if this round was measured.
    pub report: Option<Vec<TerminalSuccess>>,
    /// Loss of the deployed policy on each terminal's data, in the rounds in which it is measured.
    pub losses: Option<Vec<LossChange>>,
    /// Episodes run in this round for calibration and report.
    pub episodes: u64,
}

impl Ledger {
    /// Books of a real cell, whose truth is unknown: measured values replace true ones, and
    /// all energy counts as computation, since a meter does not separate the parts. Bytes,
    /// violations and episodes are unknown and stay zero.
    pub fn as_measured(order: &RoundOrder, outcome: &Outcome) -> Self {
        let decided = order.plan.decision().terminals.iter().zip(&outcome.terminals);
        let one = |(decision, measured): (&TerminalDecision, &TerminalOutcome)| TerminalLedger {
            delay: measured.delay,
            energy_compute: measured.energy,
            bandwidth: decision.bandwidth,
            ..TerminalLedger::default()
        };
        let scheduled = order.plan.decision().scheduled().map(|n| outcome.terminals[n].delay);
        Self {
            latency: scheduled.fold(Seconds(0.0), Seconds::max),
            duration: outcome.duration,
            terminals: decided.map(one).collect(),
            violation: Violation::default(),
            report: None,
            losses: None,
            episodes: 0,
        }
    }
}

/// A loss before and after a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossChange {
    /// Before the round.
    pub before: f64,
    /// After it.
    pub after: f64,
}

/// True outcome of one terminal in one round.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TerminalLedger {
    /// True delay.
    pub delay: Seconds,
    /// True energy spent on computation.
    pub energy_compute: Joules,
    /// True energy spent on transmission.
    pub energy_radio: Joules,
    /// Bandwidth it really had.
    pub bandwidth: Hertz,
    /// Activation bytes sent up (for full-model methods, the model).
    pub bytes_up: Bytes,
    /// Gradient bytes sent down.
    pub bytes_down: Bytes,
    /// Bytes of model exchange, both ways.
    pub bytes_sync: Bytes,
}

/// Violations of the softened constraints, raw and relative to each limit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Violation {
    /// Seconds beyond the deadline, summed over the terminals.
    pub deadline: Seconds,
    /// Bytes beyond the memory budgets, summed.
    pub memory: Bytes,
    /// Hertz asked for beyond the band.
    pub spectrum: Hertz,
    /// The sum of the three, each divided by its own limit.
    pub relative: f64,
}

impl Violation {
    /// Aggregate constraint violation of a round; each part is divided by its own limit.
    ///
    /// `delays` are those of the scheduled terminals; `memories` pairs need and budget of each.
    ///
    /// Eq. `method-violation`
    pub fn of(
        limits: &Limits,
        delays: impl Iterator<Item = Seconds>,
        memories: impl Iterator<Item = (Bytes, Bytes)>,
        asked: Hertz,
    ) -> Self {
        let deadline: f64 = delays.map(|delay| (delay.0 - limits.deadline.0).max(0.0)).sum();
        let spectrum = (asked.0 - limits.bandwidth.0).max(0.0);
        let (mut memory, mut memory_relative) = (0, 0.0);
        for (need, budget) in memories {
            let excess = need.0.saturating_sub(budget.0);
            memory += excess;
            memory_relative += excess as f64 / budget.0 as f64;
        }
        // The last bits of a sum of bandwidths are no violation.
        let spectrum = if spectrum < 1e-9 * limits.bandwidth.0 { 0.0 } else { spectrum };
        Self {
            deadline: Seconds(deadline),
            memory: Bytes(memory),
            spectrum: Hertz(spectrum),
            relative: deadline / limits.deadline.0
                + memory_relative
                + spectrum / limits.bandwidth.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Watts;

    fn limits() -> Limits {
        Limits {
            deadline: Seconds(5.0),
            bandwidth: Hertz(100.0),
            power: Watts(0.2),
            compression: 0.9,
            cuts: vec![2, 4, 6],
        }
    }

    #[test]
    fn eq_method_violation_divides_each_part_by_its_own_limit() {
        let violation = Violation::of(
            &limits(),
            [Seconds(7.5), Seconds(4.0)].into_iter(),
            [(Bytes(30), Bytes(20)), (Bytes(5), Bytes(20))].into_iter(),
            Hertz(120.0),
        );
        assert_eq!(violation.deadline, Seconds(2.5));
        assert_eq!(violation.memory, Bytes(10));
        assert_eq!(violation.spectrum, Hertz(20.0));
        assert!((violation.relative - (0.5 + 0.5 + 0.2)).abs() < 1e-12);
    }

    #[test]
    fn eq_method_violation_is_zero_inside_the_limits() {
        let violation =
            Violation::of(&limits(), [Seconds(5.0)].into_iter(), std::iter::empty(), Hertz(100.0));
        assert_eq!(violation, Violation::default());
    }
}
