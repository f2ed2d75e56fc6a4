//! Published methods as allocators: a planner, and around it the guard and the fixed compression
//! that make the labelled variants.

mod setup;

pub use setup::Setup;

use crate::cost::Terms;
use crate::round::{Allocator, Conduct, Decision, Feasible, Observation, Outcome};
use crate::snapshot::{Persist, Snapshot, SnapshotError};
use crate::units::Seconds;

/// A decision together with how it is to be trained.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The decision.
    pub decision: Decision,
    /// How it is to be trained.
    pub conduct: Conduct,
}

impl Plan {
    /// A decision trained as the rule says.
    pub fn plain(decision: Decision) -> Self {
        Self { decision, conduct: Conduct::default() }
    }
}

/// What a published method decides.
///
/// A round may be planned several times, each time among fewer terminals; only
/// [`Planner::learn`] says which plan was executed. So planning changes nothing that counts.
pub trait Planner: Persist {
    /// The plan for the round seen, among these terminals only, which are at least one.
    fn plan(&mut self, seen: &Observation, among: &[usize]) -> Plan;
    /// Learns from what was observed of the executed round.
    fn learn(&mut self, _seen: &Observation, _plan: &Feasible, _outcome: &Outcome) {}
}

/// A published method, as published or with the deadline guard.
pub struct Published {
    setup: Setup,
    planner: Box<dyn Planner>,
    guard: Option<f64>,
    conduct: Conduct,
}

impl Published {
    /// A method as an allocator. With a guard, that share of the deadline is what a predicted
    /// delay may use.
    pub fn new(setup: Setup, planner: Box<dyn Planner>, guard: Option<f64>) -> Self {
        Self { setup, planner, guard, conduct: Conduct::default() }
    }

    /// Whoever is predicted late is left out, the worst first, and the method plans again among
    /// the others. If nobody is left, the terminal that would be done first is tried alone.
    fn guarded(&mut self, seen: &Observation, margin: f64) -> Plan {
        let all: Vec<usize> = (0..seen.terminals.len()).collect();
        let usable = |n: &usize| self.setup.fits(seen, *n) && !self.setup.dead(seen, *n);
        let mut among: Vec<usize> = all.iter().copied().filter(usable).collect();
        while !among.is_empty() {
            let plan = self.planner.plan(seen, &among);
            let late = self.late(seen, &plan, margin);
            if late.is_empty() && plan.decision.scheduled().next().is_some() {
                return plan;
            }
            among = self.without_worst(seen, among, late);
        }
        let first = self.setup.fastest(seen, &all);
        let mut plan = self.planner.plan(seen, &[first]);
        plan.decision.fallback = true;
        plan
    }

    /// The scheduled terminals that are predicted to miss the deadline or their memory.
    fn late(&self, seen: &Observation, plan: &Plan, margin: f64) -> Vec<usize> {
        let limits = &self.setup.problem.limits;
        let feasible = limits.project(plan.decision.clone()).conducted(plan.conduct.clone());
        let latest = limits.deadline * margin;
        let terms = self.terms(latest);
        let bill = terms.bill(&feasible, seen);
        let late = |n: &usize| {
            let cut = feasible.decision().terminals[*n].cut;
            bill.delays[*n] > latest || terms.memory(cut) > seen.terminals[*n].memory
        };
        plan.decision.scheduled().filter(late).collect()
    }

    fn terms(&self, closes: Seconds) -> Terms<'_> {
        let Setup { problem, rule, .. } = &self.setup;
        Terms {
            limits: &problem.limits,
            profile: &problem.profile,
            accounting: &problem.accounting,
            hardware: &problem.hardware,
            rate_model: problem.rate_model,
            rule: *rule,
            closes,
        }
    }

    /// Leaves out the worst quarter of the late, judged by an even share for everybody, which is
    /// fair to all methods: where all finish together, all are late together.
    fn without_worst(
        &self,
        seen: &Observation,
        among: Vec<usize>,
        mut late: Vec<usize>,
    ) -> Vec<usize> {
        if late.is_empty() {
            late.clone_from(&among);
        }
        let delay = |n: usize| self.setup.even_delay(seen, n, among.len());
        late.sort_by(|&a, &b| delay(b).total_cmp(&delay(a)).then(a.cmp(&b)));
        late.truncate(late.len().div_ceil(4));
        among.into_iter().filter(|n| !late.contains(n)).collect()
    }
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
    fn decide(&mut self, seen: &Observation) -> Decision {
        let plan = match self.guard {
            Some(margin) => self.guarded(seen, margin),
            None => {
                let all: Vec<usize> = (0..seen.terminals.len()).collect();
                self.planner.plan(seen, &all)
            }
        };
        self.conduct = plan.conduct;
        plan.decision
    }

    fn conduct(&self) -> Conduct {
        self.conduct.clone()
    }

    fn learn(&mut self, seen: &Observation, plan: &Feasible, outcome: &Outcome) {
        self.planner.learn(seen, plan, outcome);
    }
}
