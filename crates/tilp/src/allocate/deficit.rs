//! Deficit: terminals whose task fails most are drawn most often.

use rand::RngExt;

use super::{Problem, ReferenceKnobs};
use crate::rng::Seed;
use crate::round::{Allocator, Decision, Observation};
use crate::snapshot::Persist;

/// The reference method `deficit`: half of the weight of a terminal is uniform, half is the
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
    fn decide(&mut self, seen: &Observation) -> Decision {
        let terminals = self.problem.reachable(seen, self.knobs.skip_far_share);
        let weights = weights(seen, &terminals);
        let mut rng = self.seed.at(seen.round).rng();
        // Weighted order without replacement: the smallest of exponentials with these rates first.
        let mut keyed: Vec<(f64, usize)> = (terminals.iter().zip(&weights))
            .map(|(&n, weight)| (-(1.0 - rng.random::<f64>()).ln() / weight, n))
            .collect();
        keyed.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let order: Vec<usize> = keyed.into_iter().map(|(_, n)| n).collect();
        self.problem.admit(seen, &order, &self.knobs)
    }
}

/// Half uniform, half by the deficit of the task; uniform before the first measurement.
fn weights(seen: &Observation, terminals: &[usize]) -> Vec<f64> {
    let deficit = |n: &usize| {
        let success = seen.success.as_ref().and_then(|tasks| tasks[seen.terminals[*n].task].rate());
        1.0 - success.unwrap_or(0.0)
    };
    let total: f64 = terminals.iter().map(deficit).sum();
    let uniform = 1.0 / terminals.len() as f64;
    let share = |n: &usize| if total > 0.0 { deficit(n) / total } else { uniform };
    terminals.iter().map(|n| 0.5 * uniform + 0.5 * share(n)).collect()
}
