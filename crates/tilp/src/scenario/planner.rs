//! The planner by itself: what a base station needs to plan, and no world.

use super::assemble::{draw_fleet, hardware_range, known, profile, tilp, untrained};
use super::{Scenario, ScenarioError};
use crate::allocate::{Clock, Tilp};
use crate::rng::Seed;
use crate::world::draw_nominal;

/// TiLP as a run of this scenario and seed would start with it, for terminals with these tasks.
/// It gets the clock only if plans have a budget.
pub fn planner(
    scenario: &Scenario,
    seed: u64,
    tasks: Vec<usize>,
    clock: Option<Clock>,
) -> Result<Tilp, ScenarioError> {
    let (raw, seed) = (&scenario.raw, Seed::new(seed));
    let profile = profile(raw, &untrained(scenario)?);
    let hardware = draw_nominal(tasks.len(), &hardware_range(raw), seed.named("hardware"));
    let nominal = known(raw, &profile, &hardware, raw.learning.aggregate_every, tasks);
    let options = tilp(&raw.methods.tilp);
    let clock = clock.filter(|_| options.budget_ms.is_some());
    Ok(Tilp::new(nominal, options, seed.named("allocator")).with_clock(clock))
}

/// The tasks of the terminals in a run of this scenario and seed.
pub fn tasks(scenario: &Scenario, seed: u64) -> Vec<usize> {
    let fleet = draw_fleet(&scenario.raw, Seed::new(seed).named("fleet"));
    fleet.iter().map(|variant| variant.family.index()).collect()
}
