//! The robots of a scenario: which tasks, whose cells, what they are shown. The only file here
//! that names every suite.

use std::collections::BTreeMap;

use rand::RngExt;

use super::cache::Cache;
use super::events::{Work, WorkChange, work_changes};
use super::lerobot;
use super::libero::{Camera, LiberoRoster};
use super::profile;
use super::raw;
use super::{Scenario, ScenarioError, terminals};
use crate::rng::Seed;
use crate::round::TerminalId;
use crate::split::data::Dataset;
use crate::tasks::libero;
use crate::tasks::tabletop::{self, Engine, Family, Variant, VariantRange};
use crate::tasks::{Demonstrations, Suite, Workcell, demonstrate, demonstrate_episodes};
use crate::world::{CellChange, Fleet, Schedule};

/// Changes whenever the same scenario and seed give other demonstrations, so that none made by
/// an older program is taken for a new one.
const DEMONSTRATIONS_VERSION: u32 = 1;

/// The suite that a scenario asks for.
pub(super) fn suite(raw: &raw::Raw) -> &'static Suite {
    if let Some(profile) = &raw.profile {
        return profile::suite(profile);
    }
    match raw.tasks.suite {
        raw::SuiteName::Tabletop => &tabletop::SUITE,
        raw::SuiteName::LiberoObject => &libero::SUITE,
    }
}

/// The engine of a checked scenario.
fn engine(raw: &raw::Raw) -> Engine {
    let named = Engine::from_name(raw.tasks.engine.name());
    named.expect("no scenario passes its check with an engine that this program lacks")
}

/// The tasks of the terminals: dealt out in proportion and shuffled.
pub(super) fn deal_tasks(raw: &raw::Raw, seed: Seed) -> Vec<usize> {
    use rand::seq::SliceRandom;
    let shares = match (&raw.profile, raw.tasks.suite) {
        (Some(profile), _) => profile.tasks.values().copied().collect(),
        (None, raw::SuiteName::Tabletop) => raw.tasks.shares.in_order().to_vec(),
        (None, raw::SuiteName::LiberoObject) => vec![1; libero::SUITE.tasks.len()],
    };
    let mut tasks = deal(&shares, raw.cell.n_terminals);
    tasks.shuffle(&mut seed.stream("tasks"));
    terminals::tasks(raw, tasks)
}

/// The cells of the terminals, before their worlds are loaded.
pub(super) enum Roster {
    /// Of the table-top suite, in this engine.
    Tabletop(Vec<Variant>, Engine),
    /// Of LIBERO's suite.
    Libero(LiberoRoster),
}

impl Roster {
    /// Draws the cells of a fleet.
    pub(super) fn draw(scenario: &Scenario, seed: Seed) -> Result<Self, ScenarioError> {
        let raw = &scenario.raw;
        let share = raw.heterogeneity.share() as f32;
        if raw.tasks.suite == raw::SuiteName::LiberoObject {
            let camera = Camera { range: 1.0, share };
            return LiberoRoster::draw(scenario, deal_tasks(raw, seed), camera, seed)
                .map(Self::Libero);
        }
        let range = variant_range(&raw.tasks.range);
        let variant = |(n, task): (usize, usize)| {
            let (family, own) = (Family::ALL[task], seed.named("variant").at(n as u64));
            if share == 1.0 {
                return Variant::draw(family, &range, &mut own.rng());
            }
            let common = seed.named("variant/common").at(task as u64);
            Variant::draw_around(family, &range, share, &mut own.rng(), &mut common.rng())
        };
        let tasks = deal_tasks(raw, seed).into_iter().enumerate();
        Ok(Self::Tabletop(tasks.map(variant).collect(), engine(raw)))
    }

    /// The task of each terminal.
    pub(super) fn tasks(&self) -> Vec<usize> {
        match self {
            Self::Tabletop(cells, _) => cells.iter().map(|cell| cell.family.index()).collect(),
            Self::Libero(roster) => roster.tasks(),
        }
    }

    /// Loads the cell of a terminal with this work.
    fn cell(&self, n: usize, work: Work) -> Result<Box<dyn Workcell>, ScenarioError> {
        match self {
            Self::Tabletop(cells, engine) => {
                let variant = cells[n].clone().with_extra_mass(work.payload_kg as f32);
                let variant = match work.goal_turn_rad {
                    0.0 => variant,
                    angle => variant.with_goal_turned(angle as f32),
                };
                Ok(Box::new(tabletop::Workcell::in_engine(variant, *engine)))
            }
            Self::Libero(roster) => roster.cell(n, work.payload_kg),
        }
    }

    /// What the demonstrations depend on besides their seed.
    fn key(&self) -> String {
        match self {
            Self::Tabletop(variants, Engine::Rapier) => format!("{variants:?}"),
            #[cfg(feature = "mujoco")]
            Self::Tabletop(variants, engine) => {
                let version = engine.version().unwrap_or_default();
                format!("{variants:?} {} {version}", engine.name())
            }
            Self::Libero(roster) => roster.key(),
        }
    }

    /// What a result may depend on outside the program.
    pub(super) fn environment(&self) -> BTreeMap<String, String> {
        match self {
            Self::Tabletop(..) => BTreeMap::new(),
            Self::Libero(roster) => roster.environment(),
        }
    }

    /// Demonstrations of every terminal, from the cache if they are there.
    pub(super) fn demonstrations(
        &self,
        raw: &raw::Raw,
        seed: Seed,
        cache: Option<&Cache>,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Vec<Demonstrations>, ScenarioError> {
        let (suite, n_terminals) = (suite(raw), raw.cell.n_terminals);
        let (counts, noise) =
            (demonstration_counts(raw, seed), raw.tasks.demonstration_noise as f32);
        let alike = counts.iter().all(|count| *count == counts[0]);
        let count = if alike { counts[0].to_string() } else { format!("{counts:?}") };
        let key = format!("{DEMONSTRATIONS_VERSION} {count} {noise} {seed:?} {}", self.key());
        if let Some(sets) = cache.and_then(|cache| cache.read(&key, n_terminals, suite)) {
            return Ok(sets);
        }
        let mut sets = Vec::with_capacity(n_terminals);
        for (n, &count) in counts.iter().enumerate() {
            progress(n, n_terminals);
            let cell = self.cell(n, Work::default())?;
            sets.push(demonstrate(&*cell, count, noise, seed.at(n as u64)));
        }
        progress(n_terminals, n_terminals);
        // A cache that cannot be written costs time, never a run.
        if let Some(cache) = cache {
            let _ = cache.write(&key, &sets, suite);
        }
        Ok(sets)
    }

    /// Demonstrations that arrive with changes of work, in their order, from the cache if they
    /// are there.
    pub(super) fn arriving_demonstrations(
        &self,
        raw: &raw::Raw,
        changes: &[WorkChange],
        seed: Seed,
        cache: Option<&Cache>,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Vec<Demonstrations>, ScenarioError> {
        let (suite, noise) = (suite(raw), raw.tasks.demonstration_noise as f32);
        // Rounds make no difference to what the expert shows.
        let shown = |one: &WorkChange| (one.event, one.terminal.0, one.work, one.demonstrations);
        let shown: Vec<_> = changes.iter().map(shown).collect();
        let roster = self.key();
        let key = format!("{DEMONSTRATIONS_VERSION} arriving {shown:?} {noise} {seed:?} {roster}");
        if let Some(sets) = cache.and_then(|cache| cache.read(&key, changes.len(), suite)) {
            return Ok(sets);
        }
        let mut sets = Vec::with_capacity(changes.len());
        for (place, change) in changes.iter().enumerate() {
            progress(place, changes.len());
            let cell = self.cell(change.terminal.0 as usize, change.work)?;
            let seed = seed.at(change.event as u64).at(change.terminal.0.into());
            sets.push(demonstrate(&*cell, change.demonstrations, noise, seed));
        }
        progress(changes.len(), changes.len());
        if let Some(cache) = cache {
            let _ = cache.write(&key, &sets, suite);
        }
        Ok(sets)
    }

    /// The fleet as its success is measured, through all changes of work.
    pub(super) fn fleet(
        &self,
        raw: &raw::Raw,
        changes: &[WorkChange],
        seed: Seed,
    ) -> Result<Fleet, ScenarioError> {
        let schedule = schedule(raw);
        let load = |n: usize, work: Work| self.cell(n, measured(raw, work));
        let mut works = vec![Work::default(); raw.cell.n_terminals];
        let first = works.iter().enumerate().map(|(n, work)| load(n, *work));
        let mut cells = first.collect::<Result<Vec<_>, _>>()?;
        let mut replaced = Vec::new();
        for &WorkChange { round, terminal, work, .. } in changes {
            let n = terminal.0 as usize;
            if works[n] != work {
                replaced.push(CellChange { round, terminal, cell: cells.len() });
                cells.push(load(n, work)?);
                works[n] = work;
            }
        }
        Ok(Fleet { suite: suite(raw), cells, changes: replaced, schedule, seed })
    }
}

/// Work as success is measured: with more mass than in the demonstrations, if the scenario says so.
fn measured(raw: &raw::Raw, work: Work) -> Work {
    Work { payload_kg: raw.tasks.extra_mass_kg + work.payload_kg, ..work }
}

/// The demonstrations of one terminal.
pub struct TerminalEpisodes {
    /// The terminal.
    pub terminal: TerminalId,
    /// Its task, by its place in the suite.
    pub task: usize,
    /// Its episodes; those in which the expert did not succeed are empty.
    pub episodes: Vec<Demonstrations>,
}

/// The demonstrations that terminals have at the start, episode by episode: of all, or of one.
pub fn demonstration_episodes(
    scenario: &Scenario,
    seed: u64,
    terminal: Option<u32>,
) -> Result<Vec<TerminalEpisodes>, ScenarioError> {
    let (raw, seed) = (&scenario.raw, Seed::new(seed));
    if raw.profile.is_some() {
        return Err(profile::no_policy(scenario));
    }
    let roster = Roster::draw(scenario, seed.named("fleet"))?;
    let (tasks, seed) = (roster.tasks(), seed.named("demonstrations"));
    let wanted = match terminal.map(|id| id as usize) {
        Some(n) if n >= tasks.len() => {
            let expected = format!("0 to {}", tasks.len() - 1);
            let (field, value) = ("terminal".into(), n.to_string());
            return Err(ScenarioError::Range {
                field,
                value,
                expected,
                place: scenario.place.clone(),
            });
        }
        Some(n) => n..n + 1,
        None => 0..tasks.len(),
    };
    let (counts, noise) = (demonstration_counts(raw, seed), raw.tasks.demonstration_noise as f32);
    let mut imported: BTreeMap<_, _> =
        lerobot::imported(scenario, suite(raw))?.into_iter().collect();
    let of = |n: usize| {
        let cell = roster.cell(n, Work::default())?;
        let episodes = match imported.remove(&n) {
            Some(episodes) => episodes,
            None => demonstrate_episodes(&*cell, counts[n], noise, seed.at(n as u64)),
        };
        Ok(TerminalEpisodes { terminal: TerminalId(n as u32), task: tasks[n], episodes })
    };
    wanted.map(of).collect()
}

/// Episodes one after another.
pub(super) fn joined(episodes: &[Demonstrations]) -> Demonstrations {
    let mut all = Demonstrations::default();
    episodes.iter().for_each(|episode| all.append(episode));
    all
}

/// The robot cell of one terminal as its success is measured.
pub struct MeasuredCell {
    /// The cell.
    pub cell: Box<dyn Workcell>,
    /// Seed of the episodes of all terminals.
    pub episodes: Seed,
}

/// The robot cell of one terminal as its success is measured in a round: of [`Fleet`], without the
/// cells of the others. None if there is no such terminal.
pub fn measured_cell(
    scenario: &Scenario,
    seed: u64,
    terminal: TerminalId,
    round: u64,
) -> Result<Option<MeasuredCell>, ScenarioError> {
    let (raw, seed) = (&scenario.raw, Seed::new(seed));
    let roster = Roster::draw(scenario, seed.named("fleet"))?;
    let n = terminal.0 as usize;
    if n >= roster.tasks().len() {
        return Ok(None);
    }
    let changes = work_changes(scenario, &roster.tasks(), suite(raw))?;
    let applies = |one: &&WorkChange| one.terminal == terminal && one.round <= round;
    let work = changes.iter().rev().find(applies).map_or(Work::default(), |one| one.work);
    let cell = roster.cell(n, measured(raw, work))?;
    Ok(Some(MeasuredCell { cell, episodes: seed.named("episodes") }))
}

/// When success is measured, and on how many episodes.
pub(super) fn schedule(raw: &raw::Raw) -> Schedule {
    let evaluation = &raw.evaluation;
    Schedule {
        calibrate_every: evaluation.calibrate_every,
        calibration_episodes: evaluation.calibration_episodes,
        measure_every: evaluation.measure_every,
        report_episodes: evaluation.report_episodes,
        final_episodes: evaluation.final_episodes,
        episode_steps: raw.tasks.episode_steps,
        loss_every: evaluation.loss_every,
        loss_samples: evaluation.loss_samples,
    }
}

/// Demonstrations of each terminal: the same number, or log-uniform around it.
fn demonstration_counts(raw: &raw::Raw, seed: Seed) -> Vec<usize> {
    let (usual, n_terminals) = (raw.tasks.demonstrations, raw.cell.n_terminals);
    let spread = raw.heterogeneity.data_spread(raw.tasks.demonstrations_spread);
    if spread == 1.0 {
        return terminals::demonstrations(raw, vec![usual; n_terminals]);
    }
    let draw = |n: usize| {
        let u: f64 = seed.named("count").at(n as u64).rng().random_range(-1.0..=1.0);
        (usual as f64 * spread.powf(u)).round().max(1.0) as usize
    };
    terminals::demonstrations(raw, (0..n_terminals).map(draw).collect())
}

/// `total` items dealt to kinds in proportion to `shares`, largest remainders first.
fn deal(shares: &[u32], total: usize) -> Vec<usize> {
    let sum: f64 = shares.iter().map(|&share| f64::from(share)).sum();
    let exact: Vec<f64> =
        shares.iter().map(|&share| f64::from(share) / sum * total as f64).collect();
    let mut counts: Vec<usize> = exact.iter().map(|share| share.floor() as usize).collect();
    let mut order: Vec<usize> = (0..shares.len()).collect();
    order.sort_by(|&a, &b| exact[b].fract().total_cmp(&exact[a].fract()).then(a.cmp(&b)));
    let missing = total - counts.iter().sum::<usize>();
    order.iter().cycle().take(missing).for_each(|&kind| counts[kind] += 1);
    counts.iter().enumerate().flat_map(|(kind, &count)| std::iter::repeat_n(kind, count)).collect()
}

fn variant_range(range: &raw::VariantRange) -> VariantRange {
    VariantRange {
        centre: range.centre_m,
        yaw: range.yaw_rad,
        commands: range.commands,
        size: range.size_m,
        mass: range.mass_kg,
        grasp_offset: range.grasp_offset_m,
        goal_angle: range.goal_angle_rad,
        goal_distance: range.goal_distance_m,
        shelf_height: range.shelf_height_m,
        axis: range.axis_rad,
        resistance: range.resistance,
        spread: range.spread_m,
    }
}

/// `count` cells of a table-top task, as a scenario's terminals have them.
pub fn sample_variants(
    scenario: &Scenario,
    family: Family,
    count: usize,
    seed: Seed,
) -> Vec<Variant> {
    let range = variant_range(&scenario.raw.tasks.range);
    let seed = seed.named(family.name());
    (0..count as u64).map(|n| Variant::draw(family, &range, &mut seed.at(n).rng())).collect()
}

/// Demonstrations as samples to train on.
pub(super) fn dataset(suite: &Suite, demonstrations: &Demonstrations) -> Dataset {
    let mut dataset = Dataset::new(suite.observation(), suite.action());
    let rows = demonstrations.observations.chunks(suite.observation());
    for (observation, action) in rows.zip(demonstrations.actions.chunks(suite.action())) {
        dataset.push(observation, action);
    }
    dataset
}

/// Demonstrations on a narrow part of the tasks: every family, cells drawn from a share of the
/// scenario's variation.
pub fn narrow_demonstrations(
    scenario: &Scenario,
    share: f32,
    cells_per_task: usize,
    demonstrations: usize,
    seed: Seed,
) -> Result<Dataset, ScenarioError> {
    let suite = suite(&scenario.raw);
    let roster = narrow_roster(scenario, share, cells_per_task, seed)?;
    let noise = scenario.raw.tasks.demonstration_noise as f32;
    let mut all = Dataset::new(suite.observation(), suite.action());
    for n in 0..roster.tasks().len() {
        let cell = roster.cell(n, Work::default())?;
        let made = demonstrate(&*cell, demonstrations, noise, seed.named("episodes").at(n as u64));
        all.append(&dataset(suite, &made));
    }
    Ok(all)
}

fn narrow_roster(
    scenario: &Scenario,
    share: f32,
    cells_per_task: usize,
    seed: Seed,
) -> Result<Roster, ScenarioError> {
    if scenario.raw.tasks.suite == raw::SuiteName::LiberoObject {
        let n_tasks = libero::SUITE.tasks.len();
        let tasks = (0..n_tasks).cycle().take(n_tasks * cells_per_task).collect();
        let camera = Camera { range: share, share: 1.0 };
        return LiberoRoster::draw(scenario, tasks, camera, seed).map(Roster::Libero);
    }
    let range = variant_range(&scenario.raw.tasks.range).narrowed(share);
    let families = Family::ALL.into_iter().cycle().take(Family::ALL.len() * cells_per_task);
    let variant = |(n, family): (u64, Family)| {
        Variant::draw(family, &range, &mut seed.named("variant").at(n).rng())
    };
    let variants = (0..).zip(families).map(variant).collect();
    Ok(Roster::Tabletop(variants, engine(&scenario.raw)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_dealt_out_in_proportion() {
        assert_eq!(deal(&[1, 1], 4), [0, 0, 1, 1]);
        assert_eq!(deal(&[3, 0, 1], 4), [0, 0, 0, 2]);
        assert_eq!(deal(&[1, 1, 1], 4), [0, 0, 1, 2]);
        assert_eq!(deal(&[5, 2], 1), [0]);
    }
}
