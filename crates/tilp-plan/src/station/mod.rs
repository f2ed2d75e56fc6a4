//! The base station: turns reports into observations, asks its method, and remembers the outcomes.
//! It runs unchanged with a simulated cell, a recorded one, or real terminals.

mod memory;
#[cfg(test)]
mod tests;

pub use memory::{StationMemory, TerminalMemory};

use crate::round::{
    Allocator, Budget, BudgetState, BudgetUse, DecideError, Decision, Limits, Observation,
    OracleAccess, Outcome, ProjectedDecision, Rationale, RoundOrder, TerminalReport,
    TerminalSuccess,
};
use crate::snapshot::{Persist, Snapshot, SnapshotError};
use crate::split::rates::RateSchedule;
use crate::split::rule::Rule;

/// How the rounds of a run are trained, unless a method decides it round by round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrainingSchedule {
    /// How the participants of a round train.
    pub rule: Rule,
    /// Rounds between aggregations, F.
    pub aggregate_every: u64,
    /// Learning rates over the rounds.
    pub rates: RateSchedule,
}

/// The base station.
pub struct Station {
    method: Box<dyn Allocator>,
    limits: Limits,
    schedule: TrainingSchedule,
    memory: StationMemory,
    budget: Option<BudgetState>,
    /// The run has ended with its budget: no further round is decided.
    ended: bool,
}

impl Station {
    /// A base station before its first round.
    pub fn new(
        method: Box<dyn Allocator>,
        limits: Limits,
        schedule: TrainingSchedule,
        n_tasks: usize,
    ) -> Self {
        let memory = StationMemory::new(n_tasks);
        Self { method, limits, schedule, memory, budget: None, ended: false }
    }

    /// The same with budgets for the whole run.
    pub fn with_budget(mut self, budget: Budget) -> Self {
        self.budget = (!budget.is_none()).then(|| BudgetState::new(budget));
        self
    }

    /// Ends the run: its next round does not fit inside its budget. A checkpoint contains this, so
    /// a resumed run does not decide that round again.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// Whether the run has ended with its budget.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Budgets of the run and their metered use; `None` without a budget.
    pub fn budget(&self) -> Option<&BudgetState> {
        self.budget.as_ref()
    }

    /// The round to be decided next, counted from 1.
    pub fn round(&self) -> u64 {
        self.memory.round()
    }

    /// The method that decides.
    pub fn method(&self) -> &dyn Allocator {
        &*self.method
    }

    /// How its rounds are trained.
    pub fn schedule(&self) -> &TrainingSchedule {
        &self.schedule
    }

    /// Its memory.
    pub fn memory(&self) -> &StationMemory {
        &self.memory
    }

    /// The state before the next round: the reports of the terminals and the memory of them.
    pub fn observe(&self, reports: &[TerminalReport]) -> Observation {
        let aggregates = self.round().is_multiple_of(self.schedule.aggregate_every);
        let seen = self.memory.observation(reports, aggregates);
        Observation { budget: self.budget.clone(), ..seen }
    }

    /// The order for the observed round.
    pub fn decide(&mut self, seen: &Observation) -> Result<RoundOrder, DecideError> {
        if seen.terminals.is_empty() {
            return Err(DecideError::NoTerminals { round: seen.round });
        }
        let decision = self.method.decide(seen)?;
        decision.check(seen)?;
        Ok(self.order(seen, decision))
    }

    fn order(&self, seen: &Observation, decision: Decision) -> RoundOrder {
        RoundOrder {
            round: seen.round,
            terminals: seen.ids(),
            plan: self.limits.project(decision),
            rule: self.schedule.rule,
            rates: seen.rates(&self.schedule.rates),
            aggregates: seen.aggregates,
        }
    }

    /// The method's reasons for the order just given.
    pub fn rationale(&self, seen: &Observation) -> Option<Rationale> {
        self.method.rationale(seen)
    }

    /// Learns from the outcome of an executed order, and advances to the next round. The method
    /// receives success counts per terminal and, summed, per task.
    pub fn learn(
        &mut self,
        seen: &Observation,
        plan: &ProjectedDecision,
        outcome: &mut Outcome,
        calibration: Option<&[TerminalSuccess]>,
    ) {
        outcome.success = calibration.map(|counts| self.memory.by_task(counts));
        for one in calibration.into_iter().flatten() {
            let own = outcome.terminals.iter_mut().find(|other| other.id == one.id);
            if let Some(own) = own {
                own.success = Some(one.count);
            }
        }
        self.method.learn(seen, plan, outcome);
        self.memory.remember(seen, plan, outcome);
        if let Some(BudgetState { used, .. }) = &mut self.budget {
            let metered = outcome.terminals.iter().map(|one| (one.id, one.energy, one.bytes));
            used.add(outcome.duration, metered);
        }
    }

    /// Access to the truth, which only the references `oracle` and `clairvoyant` have.
    pub fn oracle_access(&mut self) -> Option<&mut dyn OracleAccess> {
        self.method.oracle_access()
    }
}

impl Persist for Station {
    fn save(&self, snapshot: &mut Snapshot) {
        self.memory.save(snapshot);
        if let Some(BudgetState { used, .. }) = &self.budget {
            used.save("station/used", snapshot);
            snapshot.put_u64("station/ended", vec![u64::from(self.ended)]);
        }
        self.method.save(snapshot);
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        self.memory.restore(snapshot)?;
        if let Some(BudgetState { used, .. }) = &mut self.budget {
            *used = BudgetUse::restored("station/used", snapshot)?;
            self.ended = snapshot.u64_up_to("station/ended", 1, 1)?[0] == 1;
        }
        self.method.restore(snapshot)
    }
}
