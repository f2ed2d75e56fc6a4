//! SplitFed: everybody takes part, an even share each, one fixed cut, nothing compressed.

use super::Problem;
use crate::round::{Allocator, Decision, Observation, TerminalDecision};
use crate::snapshot::Persist;

/// SplitFed V1 as published: no resource is decided. Its copies are averaged every round.
pub struct SplitFed {
    problem: Problem,
}

impl SplitFed {
    /// SplitFed on a problem.
    pub fn new(problem: Problem) -> Self {
        Self { problem }
    }
}

impl Persist for SplitFed {}

impl Allocator for SplitFed {
    fn decide(&mut self, seen: &Observation) -> Decision {
        let n_terminals = seen.terminals.len();
        let everybody = TerminalDecision {
            scheduled: true,
            bandwidth: self.problem.limits.bandwidth / n_terminals as f64,
            power: self.problem.limits.power,
            cut: self.problem.cut,
            compression: 0.0,
        };
        Decision { terminals: vec![everybody; n_terminals], fallback: false }
    }
}
