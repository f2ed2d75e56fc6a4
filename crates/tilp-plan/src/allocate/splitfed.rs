//! SplitFed: every terminal takes part with an even share and one fixed cut, without compression.

use super::published::{Planner, Setup};
use crate::round::{Decision, Observation};
use crate::snapshot::Persist;

/// SplitFed (Thapa et al. 2022): no resource is decided. Its copies are averaged every round. In
/// version 2 the server steps after every terminal, in an order drawn anew each round.
pub struct SplitFed {
    setup: Setup,
}

impl SplitFed {
    /// SplitFed on a problem; its version is its training rule.
    pub fn new(setup: Setup) -> Self {
        Self { setup }
    }
}

impl Persist for SplitFed {}

impl Planner for SplitFed {
    fn plan(&mut self, seen: &Observation, among: &[usize]) -> Decision {
        let share = self.setup.problem.cost.limits.bandwidth / among.len() as f64;
        let cut = self.setup.problem.cut;
        self.setup.decision(seen, among.iter().map(|&n| (n, share, cut)))
    }
}
