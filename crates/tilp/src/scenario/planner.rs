//! The planner by itself: what a base station needs to plan, and no world.

use super::assemble::{cost_model, hardware_range, known, rates, untrained};
use super::raw;
use super::registry::method;
use super::robots::{deal_tasks, suite};
use super::{Scenario, ScenarioError};
use crate::allocate::{Clock, Parts as TilpParts, Tilp, TilpOptions};
use crate::cost::Hardware;
use crate::datasheet::draw_nominal;
use crate::rng::Seed;
use crate::split::rule::Rule;
use crate::station::TrainingSchedule;
use crate::tasks::Suite;
use crate::twin::{Freeze, RewardWeights, TwinOptions};

/// TiLP as a run of this scenario and seed would start with it, for terminals with these tasks.
/// It gets the clock only if plans have a budget.
pub fn planner(
    scenario: &Scenario,
    seed: u64,
    tasks: Vec<usize>,
    clock: Option<Clock>,
) -> Result<Tilp, ScenarioError> {
    let (raw, seed) = (&scenario.raw, Seed::new(seed));
    let cost = cost_model(raw, &untrained(scenario)?);
    let hardware = draw_nominal(tasks.len(), &hardware_range(raw), seed.named("hardware"));
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

/// How TiLP plans and learns in a scenario.
pub fn tilp_options(scenario: &Scenario) -> TilpOptions {
    tilp(&scenario.raw)
}

/// Hardware of the terminals in a run of this scenario and seed, by data sheet.
pub fn data_sheets(scenario: &Scenario, seed: u64) -> Vec<Hardware> {
    let raw = &scenario.raw;
    draw_nominal(raw.cell.n_terminals, &hardware_range(raw), Seed::new(seed).named("hardware"))
}

/// The tasks of the terminals in a run of this scenario and seed.
pub fn tasks(scenario: &Scenario, seed: u64) -> Vec<usize> {
    deal_tasks(&scenario.raw, Seed::new(seed).named("fleet"))
}

/// The suite of tasks of a scenario.
pub fn suite_of(scenario: &Scenario) -> &'static Suite {
    suite(&scenario.raw)
}

/// How TiLP plans and learns.
pub(super) fn tilp(raw: &raw::Raw) -> TilpOptions {
    let tilp = &raw.methods.tilp;
    let (samples, elites, iterations) = (tilp.samples, tilp.elites, tilp.iterations);
    let cem = if tilp.plain_search {
        tilp.search.plain(samples, elites, iterations)
    } else {
        tilp.search.improved(samples, elites, iterations)
    };
    let freeze = Freeze {
        network: !tilp.calibrate_network,
        training: !tilp.calibrate_training,
        task: !tilp.calibrate_task,
    };
    let weights = RewardWeights {
        task: tilp.weight_task,
        delay: tilp.weight_delay,
        energy: tilp.weight_energy,
        penalty: tilp.weight_penalty,
    };
    TilpOptions {
        cem,
        horizon: tilp.horizon,
        discount: tilp.discount,
        imagined: tilp.imagined,
        updates: tilp.updates,
        warm_up: tilp.warm_up,
        reward_unit: tilp.reward_unit,
        start_scheduled: tilp.start_scheduled,
        budget_ms: tilp.plan_budget_ms.is_finite().then_some(tilp.plan_budget_ms),
        twin: TwinOptions {
            freeze,
            weights,
            sureness: tilp.sureness,
            task_driven: tilp.task_driven,
            caution: tilp.caution,
            outlook: tilp.outlook,
            network: tilp.twin.network,
            training: tilp.twin.training,
            task: tilp.twin.task,
            curve: tilp.twin.curve,
            // The base station knows how well its meters measure.
            measurement: raw.hardware.measurement_noise,
        },
        parts: TilpParts {
            actor: tilp.actor,
            critic: tilp.critic,
            cem: tilp.cem,
            repair: tilp.repair,
            seeds: !tilp.plain_search,
        },
        start: tilp.start,
        worth: tilp.worth,
        suggestions: tilp.suggestions.clone(),
        decoder: tilp.decoder,
        actor_critic: tilp.actor_critic,
    }
}
