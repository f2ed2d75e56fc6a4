//! Greedy: the best channels of the round.

use super::{Problem, ReferenceKnobs};
use crate::round::{Allocator, DecideError, Decision, Observation};
use crate::snapshot::Persist;

/// The reference method `greedy`: best channels first, equal finishing time, fixed compression.
pub struct Greedy {
    problem: Problem,
    knobs: ReferenceKnobs,
}

impl Greedy {
    /// Greedy scheduling on a problem.
    pub fn new(problem: Problem, knobs: ReferenceKnobs) -> Self {
        Self { problem, knobs }
    }
}

impl Persist for Greedy {}

impl Allocator for Greedy {
    fn decide(&mut self, seen: &Observation) -> Result<Decision, DecideError> {
        let mut order = self.problem.reachable(seen, self.knobs.skip_far_share);
        let channel =
            |n: &usize| seen.terminals[*n].report.gain.0 * seen.terminals[*n].report.fading_power;
        order.sort_by(|a, b| channel(b).total_cmp(&channel(a)).then(a.cmp(b)));
        Ok(self.problem.admit(seen, &order, &self.knobs))
    }
}
