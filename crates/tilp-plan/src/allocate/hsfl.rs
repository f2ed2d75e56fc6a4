//! HSFL: cuts and averaging intervals across terminals, edge servers and a cloud.

use super::published::{Planner, Setup};
use super::tiers::{Hierarchy, TierKnobs, TierPlanner};
use crate::round::{Decision, Observation, Outcome, ProjectedDecision};
use crate::snapshot::{Persist, Snapshot, SnapshotError};

/// HSFL (Lin et al. 2025): AdaptSFL with another tier. The base station hosts virtual edge servers,
/// each with copies for its group; a cloud behind a wired backhaul holds the rest. Every tier is
/// averaged at its own interval.
pub struct Hsfl(TierPlanner);

impl Hsfl {
    /// HSFL on a problem. Without a hierarchy there are two tiers, and it is AdaptSFL.
    pub fn new(setup: Setup, hierarchy: Option<Hierarchy>, knobs: TierKnobs) -> Self {
        Self(TierPlanner::new(setup, hierarchy, knobs))
    }
}

impl Persist for Hsfl {
    fn save(&self, snapshot: &mut Snapshot) {
        self.0.save(snapshot);
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        self.0.restore(snapshot)
    }
}

impl Planner for Hsfl {
    fn plan(&mut self, seen: &Observation, among: &[usize]) -> Decision {
        self.0.plan(seen, among)
    }

    fn learn(&mut self, seen: &Observation, plan: &ProjectedDecision, outcome: &Outcome) {
        self.0.learn(seen, plan, outcome);
    }
}
