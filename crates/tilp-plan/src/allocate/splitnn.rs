//! SplitNN: terminals train one after another, each with the whole band, the front handed on.

use rand::seq::SliceRandom;

use super::published::{Planner, Setup};
use crate::round::{Decision, Observation, Outcome, ProjectedDecision, TerminalId, TrainingPlan};
use crate::snapshot::{Persist, Snapshot, SnapshotError};

/// SplitNN (Vepakomma et al. 2018): one fixed random walk over the terminals. A round admits
/// terminals as long as their predicted times add up to no more than the deadline; the next round
/// continues where it stopped. Terminals that join later are appended to the walk; absent ones are
/// skipped.
pub struct SplitNn {
    setup: Setup,
    /// The walk; empty before the first round.
    walk: Vec<TerminalId>,
    /// Place in the walk where the next round begins.
    next: usize,
}

impl SplitNn {
    /// SplitNN on a problem.
    pub fn new(setup: Setup) -> Self {
        Self { setup, walk: Vec::new(), next: 0 }
    }

    fn walk(&self, seen: &Observation) -> Vec<TerminalId> {
        let (ids, mut walk) = (seen.ids(), self.walk.clone());
        if walk.is_empty() {
            walk = ids;
            walk.shuffle(&mut self.setup.seed.named("walk").rng());
        } else {
            walk.extend(ids.into_iter().filter(|id| !self.walk.contains(id)));
        }
        walk
    }

    fn time_s(&self, seen: &Observation, n: usize) -> f64 {
        let job = self.setup.job(seen, n, self.setup.problem.cut, true);
        self.setup.cost(seen, n, &job, self.setup.problem.cost.limits.bandwidth).delay().0
    }
}

impl Persist for SplitNn {
    fn save(&self, snapshot: &mut Snapshot) {
        snapshot.put_u64("splitnn/next", vec![self.next as u64]);
        snapshot.put_u64("splitnn/walk", self.walk.iter().map(|id| id.0.into()).collect());
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        self.next = snapshot.count("splitnn/next", 0, u32::MAX.into())? as usize;
        const WALK: &str = "splitnn/walk";
        let walk = snapshot.u64_up_to(WALK, snapshot.len_of(WALK), u32::MAX.into())?;
        let is_again = |(place, id): &(usize, &u64)| walk[..*place].contains(id);
        if let Some((_, id)) = walk.iter().enumerate().find(is_again) {
            return Err(SnapshotError::value(WALK, id, "every terminal once"));
        }
        self.walk = walk.iter().map(|&id| TerminalId(id as u32)).collect();
        Ok(())
    }
}

impl Planner for SplitNn {
    fn plan(&mut self, seen: &Observation, among: &[usize]) -> Decision {
        let (walk, ids) = (self.walk(seen), seen.ids());
        let (done, ahead) = walk.split_at(self.next % walk.len());
        let present =
            ahead.iter().chain(done).filter_map(|id| ids.iter().position(|one| one == id));
        let waiting = present.filter(|n| among.contains(n));
        let deadline = self.setup.problem.cost.limits.deadline.0;
        let (mut order, mut clock, mut alone_late) = (Vec::new(), 0.0, false);
        for n in waiting {
            clock += self.time_s(seen, n);
            if clock > deadline && !order.is_empty() {
                break;
            }
            alone_late = clock > deadline;
            order.push(n);
        }
        let (band, cut) = (self.setup.problem.cost.limits.bandwidth, self.setup.problem.cut);
        let mut decision = self.setup.decision(seen, order.iter().map(|&n| (n, band, cut)));
        // A terminal that cannot meet the deadline alone is visited too: the walk skips no terminal.
        decision.fallback = alone_late;
        decision.training = TrainingPlan { order, tiers: None };
        decision
    }

    fn learn(&mut self, seen: &Observation, plan: &ProjectedDecision, _outcome: &Outcome) {
        self.walk = self.walk(seen);
        let last = plan.training().order.last().map(|&last| seen.terminals[last].report.id);
        let place = last.and_then(|last| self.walk.iter().position(|id| *id == last));
        self.next = place.map_or(self.next, |place| (place + 1) % self.walk.len());
    }
}
