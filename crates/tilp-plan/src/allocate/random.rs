//! Random: terminals in random order, as many as are predicted to meet the deadline together.

use rand::seq::SliceRandom;

use super::{Problem, ReferenceKnobs};
use crate::rng::Seed;
use crate::round::{Allocator, DecideError, Decision, Observation};
use crate::snapshot::Persist;

/// The reference method `random`: a feasible round that uses nothing else of the observation.
pub struct Random {
    problem: Problem,
    knobs: ReferenceKnobs,
    seed: Seed,
}

impl Random {
    /// Random scheduling on a problem.
    pub fn new(problem: Problem, knobs: ReferenceKnobs, seed: Seed) -> Self {
        Self { problem, knobs, seed }
    }
}

impl Persist for Random {}

impl Allocator for Random {
    fn decide(&mut self, seen: &Observation) -> Result<Decision, DecideError> {
        let mut order = self.problem.reachable(seen, self.knobs.skip_far_share);
        order.shuffle(&mut self.seed.at(seen.round).rng());
        Ok(self.problem.admit(seen, &order, &self.knobs))
    }
}
