//! AdaptSFL: a cut per terminal and one averaging interval, for the least time to a bound.

use super::published::{Planner, Setup};
use super::tiers::{TierKnobs, TierPlanner};
use crate::round::{Decision, Observation, Outcome, ProjectedDecision};
use crate::snapshot::{Persist, Snapshot, SnapshotError};

/// AdaptSFL (Lin et al. 2025): rates are given, cuts and the averaging interval are decided. The
/// layers above the deepest cut are in step every round; the terminals' copies below it, and those
/// that the server keeps for them, are averaged at the interval.
pub struct AdaptSfl(TierPlanner);

impl AdaptSfl {
    /// AdaptSFL on a problem.
    pub fn new(setup: Setup, knobs: TierKnobs) -> Self {
        Self(TierPlanner::new(setup, None, knobs))
    }
}

impl Persist for AdaptSfl {
    fn save(&self, snapshot: &mut Snapshot) {
        self.0.save(snapshot);
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        self.0.restore(snapshot)
    }
}

impl Planner for AdaptSfl {
    fn plan(&mut self, seen: &Observation, among: &[usize]) -> Decision {
        self.0.plan(seen, among)
    }

    fn learn(&mut self, seen: &Observation, plan: &ProjectedDecision, outcome: &Outcome) {
        self.0.learn(seen, plan, outcome);
    }
}
