//! Deficit: terminals that fail most are drawn most often.

use rand::RngExt;

use super::problem::DeficitOf;
use super::{Problem, ReferenceKnobs};
use crate::rng::Seed;
use crate::round::{Allocator, DecideError, Decision, Observation, SuccessCount};
use crate::snapshot::Persist;

/// The reference method `deficit`: a part of the weight of a terminal is uniform, the rest is its
/// measured success deficit; equal finishing time, fixed compression.
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

    /// The decision if `success` is the success of each terminal (by its place).
    pub(super) fn decide_by(&self, seen: &Observation, success: &dyn Fn(usize) -> f64) -> Decision {
        let terminals = self.problem.reachable(seen, self.knobs.skip_far_share);
        let weights = weights(&terminals, success, self.knobs.uniform_share);
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

impl Persist for Deficit {}

impl Allocator for Deficit {
    fn decide(&mut self, seen: &Observation) -> Result<Decision, DecideError> {
        let ReferenceKnobs { deficit, deficit_prior, .. } = self.knobs;
        let success = |n: usize| match deficit {
            DeficitOf::Task => of_task(seen, n),
            DeficitOf::Terminal => of_terminal(seen, n, deficit_prior),
        };
        Ok(self.decide_by(seen, &success))
    }
}

/// Measured success of a terminal's task; zero before the first measurement.
fn of_task(seen: &Observation, n: usize) -> f64 {
    let task = seen.terminals[n].report.task;
    let tasks = seen.success.as_ref();
    tasks.and_then(|tasks| tasks.get(task)?.rate()).unwrap_or(0.0)
}

/// A terminal's own measured success: the mean of the Beta posterior whose prior has the success
/// of the terminal's task as its mean and weighs as many episodes as `prior` says.
fn of_terminal(seen: &Observation, n: usize, prior: f64) -> f64 {
    let own = seen.terminals[n].success.map_or(SuccessCount::default(), |one| one.count);
    let weight = own.episodes as f64 + prior;
    if weight <= 0.0 {
        return of_task(seen, n);
    }
    (own.successes as f64 + prior * of_task(seen, n)) / weight
}

/// Partly uniform, the rest by the deficit; uniform if no terminal has a deficit.
fn weights(terminals: &[usize], success: &dyn Fn(usize) -> f64, uniform_share: f64) -> Vec<f64> {
    let deficit = |n: &usize| 1.0 - success(*n);
    let total: f64 = terminals.iter().map(deficit).sum();
    let uniform = 1.0 / terminals.len() as f64;
    let share = |n: &usize| if total > 0.0 { deficit(n) / total } else { uniform };
    let weight = |n| uniform_share * uniform + (1.0 - uniform_share) * share(n);
    terminals.iter().map(weight).collect()
}
