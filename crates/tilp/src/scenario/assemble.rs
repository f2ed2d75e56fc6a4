//! From a checked scenario to the parts of a run. Besides `registry`, the only file that names
//! every implementation.

use std::path::Path;
use std::sync::Arc;

use super::cache::Cache;
use super::planner::tilp;
use super::raw;
use super::registry::{Kit, Method};
use super::{Scenario, ScenarioError};
use crate::allocate::{Clock, Problem, ReferenceKnobs};
use crate::cost::{Accounting, Hardware, Payload, Profile, Sync};
use crate::rng::Seed;
use crate::round::{Allocator, Limits};
use crate::split::compress::Compressor;
use crate::split::data::Dataset;
use crate::split::engine::{Engine, Settings};
use crate::split::model::{SplitModel, Weights};
use crate::split::policy::{Architecture, Policy};
use crate::tasks::{
    ACTION, Demonstrations, Engine as Physics, Family, Frame, OBSERVATION, TOKENS, Variant,
    VariantRange, Workcell, demonstrate,
};
use crate::twin::Nominal;
use crate::units::{Hertz, Seconds, Watts, from_db};
use crate::wireless::{
    Environment, Fading, RateModel, Recording, RecordingError, Surroundings, correlation,
    draw_places, large_scale_gains,
};
use crate::world::{
    Cell, Channel, Fleet, HardwareRange, Late, Radio, RateSchedule, Rates, Schedule, draw_memory,
    draw_nominal, draw_truth,
};

/// The policy that comes with the program.
const BASE: &[u8] = include_bytes!("base.safetensors");

/// How much an error in each part of an action counts: motion in full, the gripper half.
const LOSS_WEIGHTS: [f32; ACTION] = [1.0, 1.0, 1.0, 0.5];

/// Changes whenever the same scenario and seed give other demonstrations, so that none made by
/// an older program is taken for a new one.
const DEMONSTRATIONS_VERSION: u32 = 1;

/// The parts of a run.
pub struct Parts {
    /// The physical world.
    pub world: Cell,
    /// The method.
    pub allocator: Box<dyn Allocator>,
    /// The limits of the problem.
    pub limits: Limits,
}

/// Puts a run together. `progress` hears how many terminals' demonstrations are made.
pub fn assemble(
    scenario: &Scenario,
    method: Method,
    seed: u64,
    cache: Option<&Cache>,
    progress: &(dyn Fn(usize, usize) + std::marker::Sync),
) -> Result<Parts, ScenarioError> {
    assemble_with_clock(scenario, method, seed, None, cache, progress)
}

/// The same with a clock for methods that plan within a budget. Nobody gets it without one.
pub fn assemble_with_clock(
    scenario: &Scenario,
    method: Method,
    seed: u64,
    clock: Option<Clock>,
    cache: Option<&Cache>,
    progress: &(dyn Fn(usize, usize) + std::marker::Sync),
) -> Result<Parts, ScenarioError> {
    let raw = &scenario.raw;
    let rule = method.training(scenario)?;
    let seed = Seed::new(seed);
    let (policy, base) = policy(scenario)?;
    let profile = profile(raw, &policy);
    let limits = limits(raw);
    let range = hardware_range(raw);
    let n_terminals = raw.cell.n_terminals;
    let nominal = draw_nominal(n_terminals, &range, seed.named("hardware"));
    let short = raw.hardware.short_memory_share;
    let radio = Radio {
        limits: limits.clone(),
        accounting: accounting(raw),
        channel: channel(scenario, seed)?,
        truth: draw_truth(&nominal, &range, seed.named("hardware")),
        memory: draw_memory(n_terminals, short, &profile, &limits.cuts, seed.named("hardware")),
        rate_model: rate_model(raw),
        late: match raw.limits.late {
            raw::Late::Drop => Late::Drop,
            raw::Late::Wait => Late::Wait,
        },
        give_up: Seconds(raw.limits.give_up_s),
        rule,
        profile: profile.clone(),
    };
    let variants = draw_fleet(raw, seed.named("fleet"));
    let demonstrations =
        demonstrations(raw, &variants, seed.named("demonstrations"), cache, progress);
    let tasks = variants.iter().map(|variant| variant.family.index()).collect();
    let fleet = fleet(raw, variants, seed.named("episodes"));
    let engine = engine(raw, policy, &base, &demonstrations, seed.named("engine"));
    let every = method.aggregate_every.unwrap_or(raw.learning.aggregate_every);
    let known = known(raw, &profile, &nominal, every, tasks);
    let problem = Problem {
        limits: limits.clone(),
        profile,
        accounting: accounting(raw),
        hardware: nominal,
        rate_model: rate_model(raw),
        cut: raw.methods.cut,
    };
    let noise = raw.hardware.measurement_noise;
    let world =
        Cell::new(radio, engine, fleet, rates(raw, method), every, noise, seed.named("world"));
    let allocator = (method.build)(Kit {
        problem,
        nominal: known,
        knobs: knobs(raw),
        tilp: tilp(&raw.methods.tilp),
        oracle: raw.methods.oracle.options(),
        clock: clock.filter(|_| raw.methods.tilp.plan_budget_ms.is_finite()),
        baselines: raw.methods.baselines.clone(),
        rounds: raw.rounds,
        terminal_rate: f64::from(rates(raw, method).start.terminal),
        seed: seed.named("allocator"),
        edition: method.published,
    });
    Ok(Parts { world, allocator, limits })
}

/// What the twin may know beforehand: nothing of it is the world's truth.
pub(super) fn known(
    raw: &raw::Raw,
    profile: &Profile,
    nominal: &[Hardware],
    aggregate_every: u64,
    tasks: Vec<usize>,
) -> Nominal {
    let end = match raw.limits.late {
        raw::Late::Drop => raw.limits.deadline_s,
        raw::Late::Wait => raw.limits.give_up_s,
    };
    Nominal {
        limits: limits(raw),
        profile: profile.clone(),
        accounting: accounting(raw),
        hardware: nominal.to_vec(),
        rate_model: rate_model(raw),
        closes: Seconds(end),
        give_up: Seconds(raw.limits.give_up_s),
        rho: correlation(raw.cell.doppler_hz, raw.cell.round_interval_s),
        aggregate_every,
        rounds: raw.rounds,
        tasks,
        n_tasks: Family::ALL.len(),
    }
}

fn limits(raw: &raw::Raw) -> Limits {
    Limits {
        deadline: Seconds(raw.limits.deadline_s),
        bandwidth: Hertz(raw.limits.bandwidth_hz),
        power: Watts(raw.limits.power_w),
        compression: raw.limits.compression,
        cuts: raw.model.cuts.clone(),
    }
}

fn knobs(raw: &raw::Raw) -> ReferenceKnobs {
    let reference = &raw.methods.reference;
    ReferenceKnobs {
        n_scheduled: reference.n_scheduled,
        compression: reference.compression,
        margin: reference.margin,
        skip_far_share: reference.skip_far_share,
    }
}

fn rate_model(raw: &raw::Raw) -> RateModel {
    match raw.cell.fading {
        raw::Fading::Held => RateModel::Held,
        raw::Fading::Averaged => RateModel::Averaged,
    }
}

fn accounting(raw: &raw::Raw) -> Accounting {
    Accounting {
        compressor: compressor(raw),
        payload: match raw.learning.payload {
            raw::Payload::Encoded => Payload::Encoded,
            raw::Payload::Nominal => Payload::Nominal,
        },
        sync: match raw.learning.sync {
            raw::Sync::Billed => Sync::Billed,
            raw::Sync::Free => Sync::Free,
        },
    }
}

fn compressor(raw: &raw::Raw) -> Compressor {
    match raw.learning.compressor {
        raw::Compressor::Quantize => Compressor::Quantize,
        raw::Compressor::TopK => Compressor::TopK,
        raw::Compressor::RandomTopK => Compressor::RandomTopK,
    }
}

pub(super) fn hardware_range(raw: &raw::Raw) -> HardwareRange {
    // dBm to W: 30 dB less.
    let noise_db = raw.cell.noise_dbm_per_hz - 30.0 + raw.cell.noise_figure_db;
    HardwareRange {
        clock: Hertz(raw.hardware.clock_hz),
        operations_per_cycle: raw.hardware.operations_per_cycle,
        energy_coefficient: raw.hardware.energy_coefficient,
        hidden_share: raw.hardware.hidden_share,
        noise_w_per_hz: from_db(noise_db),
        hidden_noise_figure_db: raw.cell.hidden_noise_figure_db,
    }
}

fn rates(raw: &raw::Raw, method: Method) -> RateSchedule {
    let learning = &raw.learning;
    let of = |name: &str| raw.methods.rates.get(name);
    let (server, terminal) = match of(method.name).or_else(|| method.rates_of.and_then(of)) {
        Some(own) => (own.server_rate, own.terminal_rate),
        None => (learning.server_rate, learning.terminal_rate),
    };
    RateSchedule {
        start: Rates { server: server as f32, terminal: terminal as f32 },
        final_share: learning.final_rate_share,
        rounds: raw.rounds,
    }
}

fn channel(scenario: &Scenario, seed: Seed) -> Result<Channel, ScenarioError> {
    let cell = &scenario.raw.cell;
    if let Some(recording) = recording(scenario)? {
        let trace = recording.trace(cell.n_terminals);
        return trace.map(Channel::Recorded).map_err(|error| wrong_trace(scenario, &error));
    }
    let places = draw_places(
        cell.n_terminals,
        cell.inner_radius_m,
        cell.outer_radius_m,
        seed.named("places"),
    );
    let around = Surroundings {
        environment: match cell.environment {
            raw::Environment::UrbanMicro => Environment::UrbanMicro,
            raw::Environment::FactorySparseLow => Environment::FactorySparseLow,
            raw::Environment::FactoryDenseLow => Environment::FactoryDenseLow,
            raw::Environment::FactorySparseHigh => Environment::FactorySparseHigh,
            raw::Environment::FactoryDenseHigh => Environment::FactoryDenseHigh,
        },
        carrier: Hertz(cell.carrier_hz),
        station_height_m: cell.station_height_m,
        terminal_height_m: cell.terminal_height_m,
        shadowing_distance_m: cell.shadowing_distance_m,
    };
    let gains = large_scale_gains(&places, &around, seed.named("gains"));
    let rho = correlation(cell.doppler_hz, cell.round_interval_s);
    let fading = Fading::new(cell.n_terminals, rho, seed.named("fading"));
    Ok(Channel::Drawn { gains, fading })
}

/// Recorded channels that come with the program.
const TRACES: [(&str, &[u8]); 2] = [
    ("builtin:factory-rt", include_bytes!("../../../../configs/traces/factory-rt.npz")),
    ("builtin:street-rt", include_bytes!("../../../../configs/traces/street-rt.npz")),
];

/// The recorded channel of a scenario; none if its channel is drawn.
pub fn recording(scenario: &Scenario) -> Result<Option<Recording>, ScenarioError> {
    let cell = &scenario.raw.cell;
    if cell.trace.is_empty() {
        return Ok(None);
    }
    let recording = match TRACES.iter().find(|(name, _)| *name == cell.trace) {
        Some((_, bytes)) => Recording::from_npz(bytes.to_vec()),
        None => read_recording(&scenario.folder.join(&cell.trace)),
    };
    recording.map(Some).map_err(|error| wrong_trace(scenario, &error))
}

fn wrong_trace(scenario: &Scenario, error: &dyn std::error::Error) -> ScenarioError {
    ScenarioError::Field {
        field: "cell.trace".into(),
        reason: format!("{}: {error}", scenario.raw.cell.trace),
        place: scenario.place.clone(),
    }
}

/// Reads a recorded channel: an `.npz` file, a folder of DeepMIMO, or a table of gains.
pub fn read_recording(path: &Path) -> Result<Recording, RecordingError> {
    let unread = |path: &Path, error: &std::io::Error| RecordingError::File {
        name: path.display().to_string(),
        reason: error.to_string(),
    };
    let read = |path: &Path| std::fs::read(path).map_err(|error| unread(path, &error));
    if path.is_dir() {
        let entries = std::fs::read_dir(path).map_err(|error| unread(path, &error))?;
        let name =
            |entry: std::io::Result<std::fs::DirEntry>| entry.ok()?.file_name().into_string().ok();
        let mut names: Vec<String> = entries.filter_map(name).collect();
        names.sort();
        return Recording::from_deepmimo(&names, &|name| read(&path.join(name)));
    }
    if path.extension().is_some_and(|ending| ending == "npz") {
        return Recording::from_npz(read(path)?);
    }
    let text = std::fs::read_to_string(path).map_err(|error| unread(path, &error))?;
    Recording::from_csv(&text)
}

/// The policy that a scenario asks for.
fn architecture(raw: &raw::Raw) -> Architecture {
    Architecture {
        tokens: TOKENS.iter().map(|(start, end)| (*start, end - start)).collect(),
        width: raw.model.width,
        heads: raw.model.heads,
        blocks: raw.model.blocks,
        hidden_ratio: raw.model.mlp_ratio,
        merge_after: raw.model.merge_after.clone(),
        actions: ACTION,
        loss_weights: LOSS_WEIGHTS.to_vec(),
        cuts: raw.model.cuts.clone(),
    }
}

/// The scenario's policy without weights.
pub fn untrained(scenario: &Scenario) -> Result<Policy, ScenarioError> {
    Policy::new(architecture(&scenario.raw)).map_err(|error| ScenarioError::Range {
        field: format!("model.{}", error.field),
        value: error.value.clone(),
        expected: error.expected.clone(),
        place: scenario.place.clone(),
    })
}

/// The scenario's policy and the weights that a run starts from.
pub fn policy(scenario: &Scenario) -> Result<(Policy, Weights), ScenarioError> {
    let policy = untrained(scenario)?;
    let name = &scenario.raw.model.base;
    let wrong = |reason: String| ScenarioError::Field {
        field: "model.base".into(),
        reason: format!("`{name}`: {reason}"),
        place: scenario.place.clone(),
    };
    let read = |path: &str| std::fs::read(scenario.folder.join(path));
    let bytes = match name.as_str() {
        "builtin" => BASE.to_vec(),
        path => read(path).map_err(|error| wrong(error.to_string()))?,
    };
    let weights = policy.weights_from(&bytes).map_err(|error| wrong(error.to_string()))?;
    Ok((policy, weights))
}

pub(super) fn profile(raw: &raw::Raw, policy: &Policy) -> Profile {
    let (batch, momentum) = (raw.learning.batch, raw.learning.momentum > 0.0);
    let cut = |layer: usize| policy.profile(layer, batch, momentum);
    Profile { batch, action: ACTION, cuts: (1..=policy.n_layers()).map(cut).collect() }
}

/// The variants of the terminals: tasks dealt out in proportion and shuffled.
pub(super) fn draw_fleet(raw: &raw::Raw, seed: Seed) -> Vec<Variant> {
    use rand::seq::SliceRandom;
    let range = variant_range(&raw.tasks.range);
    let mut tasks = deal(&raw.tasks.shares.in_order(), raw.cell.n_terminals);
    tasks.shuffle(&mut seed.stream("tasks"));
    let draw = |(n, task): (usize, usize)| {
        Variant::draw(Family::ALL[task], &range, &mut seed.named("variant").at(n as u64).rng())
    };
    tasks.into_iter().enumerate().map(draw).collect()
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
        commands: match range.commands {
            raw::Frame::Camera => Frame::Camera,
            raw::Frame::Robot => Frame::Robot,
        },
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

/// The engine of a checked scenario.
fn physics(raw: &raw::Raw) -> Physics {
    let named = Physics::from_name(raw.tasks.engine.name());
    named.expect("no scenario passes its check with an engine that this program lacks")
}

/// `count` cells of a task, as a scenario's terminals have them.
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

/// Demonstrations of every terminal, from the cache if they are there.
fn demonstrations(
    raw: &raw::Raw,
    variants: &[Variant],
    seed: Seed,
    cache: Option<&Cache>,
    progress: &(dyn Fn(usize, usize) + std::marker::Sync),
) -> Vec<Demonstrations> {
    let (count, noise) = (raw.tasks.demonstrations, raw.tasks.demonstration_noise as f32);
    let physics = physics(raw);
    let mut key = format!("{DEMONSTRATIONS_VERSION} {count} {noise} {seed:?} {variants:?}");
    if physics != Physics::default() {
        key += &format!(" {} {}", physics.name(), physics.version().unwrap_or_default());
    }
    if let Some(sets) = cache.and_then(|cache| cache.read(&key, variants.len())) {
        return sets;
    }
    let mut sets = Vec::with_capacity(variants.len());
    for (n, variant) in variants.iter().enumerate() {
        progress(n, variants.len());
        let cell = Workcell::in_engine(variant.clone(), physics);
        sets.push(demonstrate(&cell, count, noise, seed.at(n as u64)));
    }
    progress(variants.len(), variants.len());
    // A cache that cannot be written costs time, never a run.
    if let Some(cache) = cache {
        let _ = cache.write(&key, &sets);
    }
    sets
}

fn fleet(raw: &raw::Raw, variants: Vec<Variant>, seed: Seed) -> Fleet {
    let extra = raw.tasks.extra_mass_kg as f32;
    let evaluation = &raw.evaluation;
    let load = |variant: Variant| Workcell::in_engine(variant.with_extra_mass(extra), physics(raw));
    let cells = variants.into_iter().map(load).collect();
    let schedule = Schedule {
        calibrate_every: evaluation.calibrate_every,
        calibration_episodes: evaluation.calibration_episodes,
        measure_every: evaluation.measure_every,
        report_episodes: evaluation.report_episodes,
        final_episodes: evaluation.final_episodes,
        episode_steps: raw.tasks.episode_steps,
    };
    Fleet { cells, schedule, seed }
}

fn engine(
    raw: &raw::Raw,
    policy: Policy,
    base: &Weights,
    demonstrations: &[Demonstrations],
    seed: Seed,
) -> Engine<Policy> {
    let settings = Settings {
        seed,
        samples: raw.learning.batch,
        server_rate: raw.learning.server_rate as f32,
        client_rate: raw.learning.terminal_rate as f32,
        momentum: raw.learning.momentum as f32,
        compressor: compressor(raw),
    };
    let data: Vec<Arc<Dataset>> = demonstrations.iter().map(|set| Arc::new(dataset(set))).collect();
    Engine::new(Arc::new(policy), settings, base, &data)
}

fn dataset(demonstrations: &Demonstrations) -> Dataset {
    let mut dataset = Dataset::new(OBSERVATION, ACTION);
    let rows = demonstrations.observations.chunks(OBSERVATION);
    for (observation, action) in rows.zip(demonstrations.actions.chunks(ACTION)) {
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
) -> Dataset {
    let range = variant_range(&scenario.raw.tasks.range).narrowed(share);
    let noise = scenario.raw.tasks.demonstration_noise as f32;
    let mut all = Dataset::new(OBSERVATION, ACTION);
    for (n, family) in (0..).zip(Family::ALL.into_iter().cycle().take(8 * cells_per_task)) {
        let variant = Variant::draw(family, &range, &mut seed.named("variant").at(n).rng());
        let cell = Workcell::in_engine(variant, physics(&scenario.raw));
        let made = demonstrate(&cell, demonstrations, noise, seed.named("episodes").at(n));
        all.append(&dataset(&made));
    }
    all
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
