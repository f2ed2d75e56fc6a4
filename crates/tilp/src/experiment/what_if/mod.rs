//! What the planner of a recorded run would have decided, and what the twin expects, if something
//! were changed before a round.
//!
//! The planner is repeated from the record: it decides every round anew and learns from the recorded
//! outcome. No robot moves and nothing is trained, so this takes the time of the plans alone.

mod prospect;

pub use prospect::{Change, Edit, OtherPlan, Prospect, Prospects, RoundAhead, TerminalAhead};

use super::RunError;
use super::replay::{Replay, ReplayedRound};
use crate::allocate::Tilp;
use crate::record::{Checkpoint, History};
use crate::round::{Allocator, BudgetState, DecideError, Observation};
use crate::scenario::{Scenario, ScenarioError, method, planner, tasks};
use crate::snapshot::{Persist, Snapshot, SnapshotError};

/// The method that has a planner to ask.
pub const ASKED: &str = "tilp";

/// A recorded run of TiLP, to be shown to its planner.
#[derive(Clone, Debug)]
pub struct RecordedPlanner {
    replay: Replay,
}

/// What the planner has learned after some rounds.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannerState {
    /// Rounds that were executed.
    pub done: u64,
    /// Repeated rounds in which it decided otherwise than the record says: zero on the same type of
    /// processor and with the same version of the program.
    pub differing: u64,
    state: Snapshot,
}

/// Why there is no prospect.
#[derive(Debug, thiserror::Error)]
pub enum WhatIfError {
    /// The record is no run of this scenario.
    #[error(transparent)]
    Record(#[from] RunError),
    /// The scenario cannot be put together, or not with the change.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The state does not fit.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The planner found no decision.
    #[error(transparent)]
    Decide(#[from] DecideError),
    /// The round is not in the record.
    #[error("round {found} is not there, expected 1 to {last}")]
    NoRound {
        /// The round.
        found: u64,
        /// The last one of the record.
        last: u64,
    },
    /// The change is impossible.
    #[error("{field} = {value}, expected {expected}")]
    Change {
        /// What was to be changed.
        field: String,
        /// To what.
        value: String,
        /// What is possible.
        expected: String,
    },
}

impl RecordedPlanner {
    /// The run of TiLP with these rows.
    pub fn new(scenario: Scenario, seed: u64, history: History) -> Result<Self, WhatIfError> {
        let replay = Replay::of_events(scenario, method(ASKED)?, seed, history)?;
        Ok(Self { replay })
    }

    /// Rounds of the record.
    pub fn n_rounds(&self) -> u64 {
        self.replay.n_rounds()
    }

    /// The planner before the first round.
    pub fn start(&self) -> Result<PlannerState, WhatIfError> {
        let mut state = Snapshot::default();
        self.planner_of(&self.replay.scenario)?.save(&mut state);
        Ok(PlannerState { done: 0, differing: 0, state })
    }

    /// The planner as a checkpoint of the run has it.
    pub fn at(&self, checkpoint: Checkpoint) -> PlannerState {
        PlannerState { done: checkpoint.round, differing: 0, state: checkpoint.state }
    }

    /// Shows the rounds that follow to the planner, up to round `until` or until `goes_on` says no.
    pub fn advance(
        &self,
        from: &PlannerState,
        until: u64,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<PlannerState, WhatIfError> {
        let mut tilp = self.restored(&self.replay.scenario, from)?;
        let PlannerState { mut done, mut differing, .. } = *from;
        let limits = &self.replay.twin.nominal.cost.limits;
        for round in self.rounds().skip_while(|round| round.seen.round <= from.done) {
            if done >= until || !goes_on() {
                break;
            }
            let decision = limits.project(tilp.decide(&round.seen)?);
            differing +=
                u64::from(decision.decision().terminals != round.plan.decision().terminals);
            tilp.learn(&round.seen, &round.plan, &round.outcome);
            done = round.seen.round;
        }
        let mut state = Snapshot::default();
        tilp.save(&mut state);
        Ok(PlannerState { done, differing, state })
    }

    /// What the base station saw before a round.
    fn seen(&self, round: u64) -> Result<Observation, WhatIfError> {
        let found = self.rounds().find(|one| one.seen.round == round).map(|one| one.seen);
        found.ok_or(WhatIfError::NoRound { found: round, last: self.n_rounds() })
    }

    /// The rounds with what was used of a budget before each.
    fn rounds(&self) -> impl Iterator<Item = ReplayedRound<'_>> {
        let budget = self.replay.scenario.budget();
        let mut so_far = BudgetState::new(budget);
        self.replay.rounds().map(move |mut round| {
            round.seen.budget = (!budget.is_none()).then(|| so_far.clone());
            let metered = round.outcome.terminals.iter();
            let metered = metered.map(|one| (one.id, one.energy, one.bytes));
            so_far.used.add(round.outcome.duration, metered);
            round
        })
    }

    fn planner_of(&self, scenario: &Scenario) -> Result<Tilp, ScenarioError> {
        let seed = self.replay.seed;
        planner(scenario, seed, tasks(scenario, seed), None)
    }

    fn restored(&self, scenario: &Scenario, from: &PlannerState) -> Result<Tilp, WhatIfError> {
        let mut tilp = self.planner_of(scenario)?;
        tilp.restore(&from.state)?;
        Ok(tilp)
    }
}

#[cfg(test)]
mod tests;
