//! Deficit: terminals whose task fails most are drawn most often.

use rand::RngExt;

use super::{Problem, ReferenceKnobs};
use crate::rng::Seed;
use crate::round::{Allocator, DecideError, Decision, Observation};
use crate::snapshot::Persist;

/// The reference method `deficit`: a part of the weight of a terminal is uniform, the rest is the
/// measured success deficit of its task; equal finishing time, fixed compression.
pub struct Deficit {
    problem: Problem,
    knobs: ReferenceKnobs,
    seed: Seed,
}

impl Deficit {
    /// Deficit scheduling on a problem.
    pub fn new(problem: Problem, knobs: ReferenceKnobs, seed: Seed) -> Self {
        Self { problem, knobs, seed }
    }
}

impl Persist for Deficit {}

impl Allocator for Deficit {
    fn decide(&mut self, seen: &Observation) -> Result<Decision, DecideError> {
        let terminals = self.problem.reachable(seen, self.knobs.skip_far_share);
        let weights = weights(seen, &terminals, self.knobs.uniform_share);
        let mut rng = self.seed.at(seen.round).rng();
        // Weighted order without replacement: the smallest of exponentials with these rates first.
        let mut keyed: Vec<(f64, usize)> = (terminals.iter().zip(&weights))
            .map(|(&n, weight)| (-(1.0 - rng.random::<f64>()).ln() / weight, n))
            .collect();
        keyed.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let order: Vec<usize> = keyed.into_iter().map(|(_, n)| n).collect();
        Ok(self.problem.admit(seen, &order, &self.knobs))
    }
}

/// Partly uniform, the rest by the deficit of the task; uniform before the first measurement.
fn weights(seen: &Observation, terminals: &[usize], uniform_share: f64) -> Vec<f64> {
    let deficit = |n: &usize| {
        let success =
            seen.success.as_ref().and_then(|tasks| tasks[seen.terminals[*n].report.task].rate());
        1.0 - success.unwrap_or(0.0)
    };
    let total: f64 = terminals.iter().map(deficit).sum();
    let uniform = 1.0 / terminals.len() as f64;
    let share = |n: &usize| if total > 0.0 { deficit(n) / total } else { uniform };
    let weight = |n| uniform_share * uniform + (1.0 - uniform_share) * share(n);
    terminals.iter().map(weight).collect()
}
