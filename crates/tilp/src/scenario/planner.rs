//! The planner alone: the inputs of a base station, without a simulated cell.

use super::assemble::{cost_model, known, nominal, rates};
use super::raw;
use super::registry::{Method, method};
use super::robots::{deal_tasks, suite};
use super::{Scenario, ScenarioError};
use crate::allocate::{Clock, Tilp, TilpOptions};
use crate::cost::Hardware;
use crate::rng::Seed;
use crate::round::Limits;
use crate::split::rates::Rates;
use crate::split::rule::Rule;
use crate::station::TrainingSchedule;
use crate::tasks::Suite;

/// TiLP as a run of this scenario and seed would start with it, for terminals with these tasks.
/// It gets the clock only if plans have a budget.
pub fn planner(
    scenario: &Scenario,
    seed: u64,
    tasks: Vec<usize>,
    clock: Option<Clock>,
) -> Result<Tilp, ScenarioError> {
    let (raw, seed) = (&scenario.raw, Seed::new(seed));
    let cost = cost_model(scenario)?;
    let hardware = nominal(raw, tasks.len(), seed);
    let schedule = TrainingSchedule {
        rule: Rule::Parallel,
        aggregate_every: raw.learning.aggregate_every,
        rates: rates(raw, &method("tilp")?),
    };
    let nominal = known(raw, &cost, &hardware, &schedule, tasks);
    let options = tilp(raw);
    let clock = clock.filter(|_| options.budget_ms.is_some());
    Ok(Tilp::new(nominal, options, seed.named("allocator")).with_clock(clock))
}

/// Settings of TiLP in a scenario.
pub fn tilp_options(scenario: &Scenario) -> TilpOptions {
    tilp(&scenario.raw)
}

/// Hardware of the terminals in a run of this scenario and seed, by data sheet.
pub fn data_sheets(scenario: &Scenario, seed: u64) -> Vec<Hardware> {
    nominal(&scenario.raw, scenario.n_terminals(), Seed::new(seed))
}

/// The limits of every round.
pub fn limits_of(scenario: &Scenario) -> Result<Limits, ScenarioError> {
    Ok(cost_model(scenario)?.limits)
}

/// Learning rates of a method in its first round.
pub fn rates_of(scenario: &Scenario, method: &Method) -> Rates {
    rates(&scenario.raw, method).start
}

/// Layers of the scenario's model.
pub fn n_layers(scenario: &Scenario) -> Result<usize, ScenarioError> {
    Ok(cost_model(scenario)?.profile.cuts.len())
}

/// The tasks of the terminals in a run of this scenario and seed.
pub fn tasks(scenario: &Scenario, seed: u64) -> Vec<usize> {
    deal_tasks(&scenario.raw, Seed::new(seed).named("fleet"))
}

/// The suite of tasks of a scenario.
pub fn suite_of(scenario: &Scenario) -> &'static Suite {
    suite(&scenario.raw)
}

/// Settings of TiLP.
pub(super) fn tilp(raw: &raw::Raw) -> TilpOptions {
    // The base station knows how well its meters measure.
    raw.methods.tilp.options(raw.hardware.measurement_noise)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::CellDescription;
    use crate::units::Seconds;
    use crate::wireless::correlation;

    #[test]
    fn what_a_cell_description_leaves_out_is_as_in_the_default_scenario() {
        let scenario = Scenario::load("default", &[]).unwrap();
        let raw = &scenario.raw;
        let cost = cost_model(&scenario).unwrap();
        let found = CellDescription::new(cost.limits.clone(), cost.profile.clone(), 8);
        let training = TrainingSchedule {
            rule: Rule::Parallel,
            aggregate_every: raw.learning.aggregate_every,
            rates: rates(raw, &method("tilp").unwrap()),
        };
        let expected = CellDescription {
            cost,
            training,
            closes: Seconds(raw.limits.deadline_s),
            give_up: Seconds(raw.limits.give_up_s),
            fading_correlation: correlation(raw.cell.doppler_hz, raw.cell.round_interval_s),
            measurement_noise: raw.hardware.measurement_noise,
            n_tasks: 8,
            planner: raw.methods.tilp.clone(),
        };
        assert_eq!(found, expected);
    }
}
