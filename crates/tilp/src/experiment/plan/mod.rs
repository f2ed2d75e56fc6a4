//! One plan for one observation of an external cell, with its reasons.

mod report;
mod server;

pub use crate::exchange::{Expected, MOST_BYTES, read_observation, write_observation};
pub use report::{
    LossDecreaseRow, PlanReport, PredictedRow, ReasonRow, RunnerUpRow, SearchRow, TerminalPlanRow,
};
pub use server::PlanServer;

use crate::allocate::Clock;
use crate::exchange::ExchangeError;
use crate::record::{Checkpoint, RecordError};
use crate::round::{Cell, CellError, Observation};
use crate::scenario::{
    Cache, Parts, Scenario, ScenarioError, World, assemble_world, data_sheets, method, n_layers,
    planner, suite_of, tasks,
};
use crate::snapshot::{Persist, SnapshotError};
use crate::world::Learner;

/// Inputs of a plan other than the observation.
#[derive(Clone, Debug)]
pub struct PlanSpec {
    /// Limits, policy and nominal hardware.
    pub scenario: Scenario,
    /// Seed of the nominal hardware and of the search.
    pub seed: u64,
    /// What a run of the same scenario and seed has learned.
    pub learned: Option<Checkpoint>,
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The scenario cannot be put together.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The run folder cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The checkpoint does not fit.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The simulated cell cannot report.
    #[error(transparent)]
    Cell(#[from] CellError),
    /// The observation was refused.
    #[error(transparent)]
    Observation(#[from] ExchangeError),
}

impl PlanSpec {
    /// Properties that an observation must agree with.
    pub fn expected(&self) -> Result<Expected, ScenarioError> {
        Ok(Expected {
            hardware: data_sheets(&self.scenario, self.seed),
            n_layers: n_layers(&self.scenario)?,
            aggregate_every: self.scenario.aggregate_every(),
            suite: suite_of(&self.scenario),
            tasks: self.learned.as_ref().map(|_| tasks(&self.scenario, self.seed)),
        })
    }

    /// The plan for an observation in untrusted bytes.
    pub fn plan(&self, bytes: &[u8], clock: Option<Clock>) -> Result<PlanReport, PlanError> {
        let seen = read_observation(bytes, &self.expected()?)?;
        let tasks = seen.terminals.iter().map(|view| view.report.task).collect();
        let mut tilp = planner(&self.scenario, self.seed, tasks, clock)?;
        if let Some(checkpoint) = &self.learned {
            tilp.restore(&checkpoint.state)?;
        }
        let plan = tilp.explain(&seen);
        let has_learned = self.learned.as_ref().is_some_and(|checkpoint| checkpoint.round > 0);
        let (note, on_priors) = (self.scenario.note(), on_priors(&seen, has_learned));
        let report = PlanReport::new(&seen, &plan, suite_of(&self.scenario));
        Ok(PlanReport { note, on_priors, ..report })
    }

    /// Observation of the first round of a run, or of the round after the learned state,
    /// as JSON. `progress` is called with the number of terminals whose demonstrations are complete.
    pub fn example(
        &self,
        cache: Option<&Cache>,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<String, PlanError> {
        let tilp = method("tilp")?;
        match assemble_world(&self.scenario, tilp, self.seed.into(), None, cache, progress)? {
            World::Robots(parts) => self.observation(*parts),
            World::Profile(parts) => self.observation(*parts),
        }
    }

    /// Observation of the next round.
    fn observation<L: Learner, X, V>(&self, parts: Parts<L, X, V>) -> Result<String, PlanError> {
        let Parts { mut cell, mut station, .. } = parts;
        if let Some(checkpoint) = &self.learned {
            cell.restore(&checkpoint.state)?;
            station.restore(&checkpoint.state)?;
        }
        Ok(write_observation(&station.observe(&cell.sense()?), suite_of(&self.scenario)))
    }
}

/// Predictions from priors alone: before its first calibration the twin has no
/// measured delay, energy or decrease of the loss, and success only if the observation has counts.
fn on_priors(seen: &Observation, has_learned: bool) -> Vec<&'static str> {
    if has_learned {
        return Vec::new();
    }
    let counts = seen.terminals.iter().any(|view| view.success.is_some());
    let measured = seen.success.is_some() || counts;
    let success = (!measured).then_some("success");
    ["delay", "energy", "loss"].into_iter().chain(success).collect()
}
