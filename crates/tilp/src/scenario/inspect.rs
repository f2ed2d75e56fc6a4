//! A scenario with all its files opened, to check it before a run.

use super::assemble::{cost_model, policy, radio};
use super::load::merged_tables;
use super::robots::{Roster, suite};
use super::{Scenario, ScenarioError, method};
use crate::rng::Seed;
use crate::units::to_db;
use crate::wireless::Recording;
use crate::world::Radio;

/// What a scenario comes to with a seed.
pub struct Inspection {
    /// True channel and hardware.
    pub radio: Radio,
    /// Names of the tasks that terminals have, with their numbers of terminals.
    pub tasks: Vec<(String, usize)>,
    /// The files that were opened.
    pub opened: Vec<String>,
}

/// Opens everything that a run of this scenario would open, demonstrations apart.
pub fn inspect(scenario: &Scenario, seed: u64) -> Result<Inspection, ScenarioError> {
    let (raw, seed) = (&scenario.raw, Seed::new(seed));
    method("tilp")?.training(scenario)?; // the knobs of its search fit each other
    let mut opened = Vec::new();
    if raw.profile.is_none() {
        policy(scenario)?;
        opened.push(format!("model.base = {}", raw.model.base));
    }
    let tasks = match raw.profile {
        Some(_) => super::tasks(scenario, 0),
        None => Roster::draw(scenario, seed.named("fleet"))?.tasks(),
    };
    if let Some(libero) = &raw.tasks.libero {
        opened.push(format!("tasks.libero.data = {}", libero.data));
    }
    let radio = radio(scenario, &cost_model(scenario)?, seed)?;
    if !raw.cell.trace.is_empty() {
        opened.push(format!("cell.trace = {}", raw.cell.trace));
    }
    let count = |task: usize| tasks.iter().filter(|one| **one == task).count();
    let names = suite(raw).tasks.iter().enumerate();
    let tasks = names.map(|(task, name)| ((*name).to_owned(), count(task))).collect();
    Ok(Inspection { radio, tasks, opened })
}

/// Tables of shares in which a file sets some entries and inherits the others from the scenario that it
/// extends, a line each.
pub fn merged_shares(name: &str) -> Result<Vec<String>, ScenarioError> {
    merged_tables(name, &["tasks.shares", "profile.tasks"])
}

/// The drawn channel of a scenario and seed, over this number of rounds.
pub fn drawn_channel(
    scenario: &Scenario,
    seed: u64,
    rounds: usize,
) -> Result<Recording, ScenarioError> {
    let radio = radio(scenario, &cost_model(scenario)?, Seed::new(seed))?;
    let powers = radio.channel.fading_powers_ahead(1, rounds);
    let gain_db = |(n, power): (usize, &f64)| to_db(radio.channel.gain(n, 1).0 * power);
    let of_round = |powers: &Vec<f64>| powers.iter().enumerate().map(gain_db).collect();
    Ok(Recording {
        scene: format!("{}, seed {seed}", scenario.name()),
        interval_s: Some(scenario.raw.cell.round_interval_s),
        gains_db: powers.iter().map(of_round).collect(),
        ..Recording::default()
    })
}
