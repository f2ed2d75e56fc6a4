//! The reasons of a decision: the expected outcome of the round, and why each terminal is
//! in or out.

use crate::units::{Bytes, Joules, Seconds};

/// Rationale of a method for its last decision.
#[derive(Clone, Debug, PartialEq)]
pub struct Rationale {
    /// Expected outcome of the round.
    pub expected: ExpectedRound,
    /// One entry per terminal, in the order of the decision.
    pub terminals: Vec<TerminalRationale>,
}

/// Outcome of a round as the method predicts it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpectedRound {
    /// Slowest scheduled terminal, likely.
    pub latency: Seconds,
    /// Advance of the clock.
    pub duration: Seconds,
    /// Energy of all terminals.
    pub energy: Joules,
    /// Mean loss of the terminals, before minus after.
    pub loss_decrease: f64,
    /// Success over all terminals before the round, a rate.
    pub success_before: f64,
    /// The same after the round.
    pub success_after: f64,
    /// Violation by sure delays, relative to the limits.
    pub violation: f64,
    /// First term of the reward.
    pub reward_task: f64,
    /// Second term of the reward.
    pub reward_communication: f64,
    /// Deduction from the reward.
    pub reward_penalty: f64,
    /// Predicted return over the horizon of the plan. None if no search has scored the decision,
    /// or if the plan leaves a later round without a terminal.
    pub planned_return: Option<f64>,
}

/// Predicted outcome of one terminal, and the reason why it is scheduled or not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TerminalRationale {
    /// Likely delay; zero for a terminal that has nothing to do.
    pub delay: Seconds,
    /// Delay that all scheduled terminals keep together as surely as asked for.
    pub sure_delay: Seconds,
    /// Energy it spends.
    pub energy: Joules,
    /// Why it is in or out.
    pub reason: Reason,
}

/// Reason for scheduling a terminal or not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reason {
    /// In, because it increases the return.
    Gain {
        /// Increase of its own success after the round over a round without it.
        own_success: f64,
        /// Return of the plan minus the return without it; `None` if no terminal would be left.
        difference: Option<f64>,
    },
    /// In, because no terminal is surely in time and it has the best channel.
    LeastBad {
        /// Its sure delay.
        sure: Seconds,
    },
    /// Out: not surely in time even alone with the whole band.
    Unreachable {
        /// The least sure delay it could have.
        sure: Seconds,
    },
    /// Out: not even the first cut fits its memory.
    MemoryShort {
        /// Requirement of the first cut.
        need: Bytes,
        /// Available amount.
        budget: Bytes,
    },
    /// Out: with it, some terminal would not surely be in time.
    Crowded {
        /// The least sure delay of a round with it.
        sure: Seconds,
    },
    /// Out: it could have been added, but the return would not be higher.
    WorthLess {
        /// Return with it minus the return of the plan: not positive.
        difference: f64,
    },
    /// Out, though the twin likes the plan better with it: the search did not come across that.
    Overlooked {
        /// Return with it minus the return of the plan: positive.
        difference: f64,
    },
}
