//! The twin of a scenario's cell on its own, without world, robots or demonstrations: to show it
//! a run that is over.

use super::assemble::{cost_model, hardware_range, known, nominal, rates};
use super::planner::tilp;
use super::robots::deal_tasks;
use super::{Method, Scenario, ScenarioError};
use crate::cost::Hardware;
use crate::rng::Seed;
use crate::split::rule::Rule;
use crate::station::TrainingSchedule;
use crate::twin::{Nominal, TwinOptions};
use crate::world::draw_truth;

/// Initial values of a twin, and the quantities it has to estimate.
#[derive(Clone, Debug, PartialEq)]
pub struct TwinParts {
    /// What the base station knew before the first round.
    pub nominal: Nominal,
    /// Assumptions and switches, as `[methods.tilp]` has them.
    pub options: TwinOptions,
    /// The hidden truth about the hardware, for the experimenter to compare with.
    pub truth: Vec<Hardware>,
}

/// The parts of the twin that a run of this method had, or would have had. The twin knows rounds in
/// which terminals exchange activations with the server side by side; of a method that trains in
/// another way it could forecast nothing.
pub fn assemble_twin(
    scenario: &Scenario,
    method: &Method,
    seed: u64,
) -> Result<TwinParts, ScenarioError> {
    let (raw, seed) = (&scenario.raw, Seed::new(seed));
    let rule = method.training(scenario)?;
    if !matches!(rule, Rule::Parallel | Rule::Sequential) {
        return Err(ScenarioError::Range {
            field: "method".into(),
            value: method.name().into(),
            expected: "one whose terminals train side by side on activations".into(),
            place: scenario.place.clone(),
        });
    }
    let cost = cost_model(scenario)?;
    let range = hardware_range(raw);
    let hardware = nominal(raw, raw.cell.n_terminals, seed);
    let tasks = deal_tasks(raw, seed.named("fleet"));
    let aggregate_every = method.aggregate_every.unwrap_or(raw.learning.aggregate_every);
    let schedule = TrainingSchedule { rule, aggregate_every, rates: rates(raw, method) };
    Ok(TwinParts {
        nominal: known(raw, &cost, &hardware, &schedule, tasks),
        options: tilp(raw).twin,
        truth: draw_truth(&hardware, &range, seed.named("hardware")),
    })
}
