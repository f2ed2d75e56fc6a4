//! Published methods as allocators: a planner, and around it the guard and the fixed compression
//! that make the labelled variants.

mod setup;

pub use setup::Setup;

use crate::round::{Allocator, DecideError, Decision, Observation, Outcome, ProjectedDecision};
use crate::snapshot::{Persist, Snapshot, SnapshotError};
use crate::split::rule::Rule;
use crate::units::Seconds;

/// Decisions of a published method.
///
/// A round may be planned several times, each time among fewer terminals; only
/// [`Planner::learn`] says which plan was executed. So planning changes nothing that counts.
pub trait Planner: Persist {
    /// The plan for the round seen, among these terminals only, which are at least one.
    fn plan(&mut self, seen: &Observation, among: &[usize]) -> Decision;
    /// Learns from the observed outcome of the executed round.
    fn learn(&mut self, _seen: &Observation, _plan: &ProjectedDecision, _outcome: &Outcome) {}
}

/// A published method, as published or with the deadline guard.
pub struct Published {
    setup: Setup,
    planner: Box<dyn Planner>,
    guard: Option<f64>,
}

impl Published {
    /// A method as an allocator. With a guard, that share of the deadline is what a predicted
    /// delay may use.
    pub fn new(setup: Setup, planner: Box<dyn Planner>, guard: Option<f64>) -> Self {
        Self { setup, planner, guard }
    }

    /// If some terminals are predicted late, as few as possible are left out, the worst first, and the
    /// method plans again among the others: with fewer terminals to share the band, not all late ones have to
    /// be left out. If none remains, the terminal that would finish first is tried alone.
    fn guarded(&mut self, seen: &Observation, margin: f64) -> Decision {
        let all: Vec<usize> = (0..seen.terminals.len()).collect();
        let usable = |n: &usize| self.setup.fits(seen, *n) && !self.setup.dead(seen, *n);
        let mut among: Vec<usize> = all.iter().copied().filter(usable).collect();
        while !among.is_empty() {
            let mut plan = self.planner.plan(seen, &among);
            let late = self.late(seen, &plan, margin);
            if late.is_empty() {
                return plan;
            }
            let n_scheduled = plan.scheduled().count();
            match self.setup.rule {
                // The late are the last; their turn comes in the next round.
                Rule::Relay if late.len() < n_scheduled => {
                    let idle = Decision::idle(1, self.setup.problem.cut).terminals[0];
                    late.iter().for_each(|&n| plan.terminals[n] = idle);
                    return plan;
                }
                // Other terminals replace those that would be late.
                Rule::Relay if n_scheduled == 1 => among.retain(|n| !late.contains(n)),
                Rule::Whole(_) => among.retain(|n| !late.contains(n)),
                _ => match self.fewer(seen, &among, &plan, margin) {
                    // Planned once more, so that the method's last plan is the one that is executed.
                    Some(fewer) => return self.planner.plan(seen, &fewer),
                    None => break,
                },
            }
        }
        let first = self.setup.fastest(seen, &all);
        let mut plan = self.planner.plan(seen, &[first]);
        plan.fallback = true;
        plan
    }

    /// The largest set without late terminals. Terminals are left out by their delay at an even share of the
    /// band or by that in the plan for all; the order that keeps more is used. The second order carries no
    /// information if all finish together, nor in sequential split learning, where delays add up.
    fn fewer(
        &mut self,
        seen: &Observation,
        among: &[usize],
        plan: &Decision,
        margin: f64,
    ) -> Option<Vec<usize>> {
        let even = |&n: &usize| self.setup.even_delay(seen, n, among.len());
        let even: Vec<f64> = among.iter().map(even).collect();
        let best = self.largest(seen, &ordered(among, &even), margin);
        if self.setup.rule == Rule::Relay {
            return best;
        }
        let (_, delays) = self.predicted(seen, plan, margin);
        let own = |&n: &usize| match plan.terminals[n].scheduled {
            true => delays[n].0,
            false => f64::INFINITY,
        };
        let own: Vec<f64> = among.iter().map(own).collect();
        let other = self.largest(seen, &ordered(among, &own), margin);
        // Of two as large the last, that at an even share.
        [other, best].into_iter().flatten().max_by_key(Vec::len)
    }

    /// The longest prefix of an order without a late terminal.
    fn largest(&mut self, seen: &Observation, order: &[usize], margin: f64) -> Option<Vec<usize>> {
        let (mut good, mut bad, mut best) = (0, order.len(), None);
        while bad - good > 1 {
            let middle = (good + bad) / 2;
            let mut fewer = order[..middle].to_vec();
            fewer.sort_unstable();
            let plan = self.planner.plan(seen, &fewer);
            if self.late(seen, &plan, margin).is_empty() {
                (good, best) = (middle, Some(fewer));
            } else {
                bad = middle;
            }
        }
        best
    }

    /// A plan as it would be executed, and every terminal's predicted delay.
    fn predicted(
        &self,
        seen: &Observation,
        plan: &Decision,
        margin: f64,
    ) -> (ProjectedDecision, Vec<Seconds>) {
        let limits = &self.setup.problem.cost.limits;
        let projected = limits.project(plan.clone());
        let delays = self.setup.delays(seen, &projected, limits.deadline * margin);
        (projected, delays)
    }

    /// The scheduled terminals that are predicted to miss the deadline or their memory.
    fn late(&self, seen: &Observation, plan: &Decision, margin: f64) -> Vec<usize> {
        let latest = self.setup.problem.cost.limits.deadline * margin;
        let (projected, delays) = self.predicted(seen, plan, margin);
        let Setup { problem, rule, .. } = &self.setup;
        let late = |n: &usize| {
            let need = problem.cost.memory(*rule, projected.decision().terminals[*n].cut);
            delays[*n] > latest || need > seen.terminals[*n].report.memory
        };
        plan.scheduled().filter(late).collect()
    }
}

/// Terminals by these delays.
fn ordered(terminals: &[usize], delays: &[f64]) -> Vec<usize> {
    let mut order: Vec<(f64, usize)> =
        delays.iter().copied().zip(terminals.iter().copied()).collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    order.into_iter().map(|(_, n)| n).collect()
}

impl Persist for Published {
    fn save(&self, snapshot: &mut Snapshot) {
        self.planner.save(snapshot);
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        self.planner.restore(snapshot)
    }
}

impl Allocator for Published {
    fn decide(&mut self, seen: &Observation) -> Result<Decision, DecideError> {
        Ok(match self.guard {
            Some(margin) => self.guarded(seen, margin),
            None => {
                let all: Vec<usize> = (0..seen.terminals.len()).collect();
                self.planner.plan(seen, &all)
            }
        })
    }

    fn learn(&mut self, seen: &Observation, plan: &ProjectedDecision, outcome: &Outcome) {
        self.planner.learn(seen, plan, outcome);
    }
}
