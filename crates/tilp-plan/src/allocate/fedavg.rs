//! FedAvg: a random fraction of the terminals trains the whole model; no resource is decided.

use rand::seq::index;

use super::published::{Planner, Setup};
use crate::round::{Decision, Observation};
use crate::snapshot::Persist;

/// FedAvg (McMahan et al. 2017): a uniform sample of the terminals, an even share of the band for each. How
/// much a terminal trains is part of its training rule.
pub struct FedAvg {
    setup: Setup,
    fraction: f64,
}

impl FedAvg {
    /// FedAvg with this fraction C of the terminals a round.
    pub fn new(setup: Setup, fraction: f64) -> Self {
        Self { setup, fraction }
    }
}

impl Persist for FedAvg {}

impl Planner for FedAvg {
    fn plan(&mut self, seen: &Observation, among: &[usize]) -> Decision {
        let wanted = (self.fraction * seen.terminals.len() as f64).round() as usize;
        let amount = wanted.clamp(1, among.len());
        let mut rng = self.setup.seed.at(seen.round).rng();
        let drawn = index::sample(&mut rng, among.len(), amount);
        let share = self.setup.problem.cost.limits.bandwidth / amount as f64;
        // The terminal trains all layers; a decision can express this only by the deepest cut.
        let cut = self.setup.problem.cost.limits.cuts.last().copied().unwrap_or(1);
        let chosen = drawn.into_iter().map(|index| (among[index], share, cut));
        self.setup.decision(seen, chosen)
    }
}
