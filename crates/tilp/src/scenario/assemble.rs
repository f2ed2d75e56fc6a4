//! From a checked scenario to the parts of a run. Besides `registry` and `robots`, the
//! only file that names every implementation.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::cache::Cache;
use super::planner::tilp;
use super::raw;
use super::registry::{Kit, Method};
use super::robots::{Roster, dataset, suite};
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
use crate::split::rates::{RateSchedule, Rates};
use crate::tasks::Demonstrations;
use crate::twin::Nominal;
use crate::units::{Hertz, Seconds, Watts, from_db};
use crate::wireless::{
    Environment, Fading, RateModel, Recording, RecordingError, Surroundings, correlation,
    draw_places, large_scale_gains,
};
use crate::world::{
    Cell, Channel, HardwareRange, Late, Radio, draw_memory, draw_nominal, draw_truth,
};

/// The policies that come with the program.
const BASES: [(&str, &[u8]); 2] = [
    ("builtin", include_bytes!("base.safetensors")),
    ("builtin:libero-object", include_bytes!("base-libero-object.safetensors")),
];

/// The parts of a run.
pub struct Parts {
    /// The physical world.
    pub world: Cell,
    /// The method.
    pub allocator: Box<dyn Allocator>,
    /// The limits of the problem.
    pub limits: Limits,
    /// What a result may depend on outside the program: names and versions or hashes.
    pub environment: BTreeMap<String, String>,
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
    let roster = Roster::draw(scenario, seed.named("fleet"))?;
    let demonstrations =
        roster.demonstrations(raw, seed.named("demonstrations"), cache, progress)?;
    if let Some(n) = demonstrations.iter().position(|set| set.actions.is_empty()) {
        return Err(ScenarioError::Range {
            field: "tasks.demonstrations".into(),
            value: raw.tasks.demonstrations.to_string(),
            expected: format!(
                "enough for the expert to succeed once as terminal {n}, or less noise"
            ),
            place: scenario.place.clone(),
        });
    }
    let tasks = roster.tasks();
    let fleet = roster.fleet(raw, seed.named("episodes"))?;
    let engine = engine(raw, policy, &base, &demonstrations, seed.named("engine"));
    let every = method.aggregate_every.unwrap_or(raw.learning.aggregate_every);
    let known = known(raw, &profile, &nominal, every, rates(raw, method), tasks);
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
        tilp: tilp(raw),
        oracle: raw.methods.oracle.options(),
        clock: clock.filter(|_| raw.methods.tilp.plan_budget_ms.is_finite()),
        baselines: raw.methods.baselines.clone(),
        rounds: raw.rounds,
        terminal_rate: f64::from(rates(raw, method).start.terminal),
        seed: seed.named("allocator"),
        edition: method.published,
    });
    Ok(Parts { world, allocator, limits, environment: roster.environment() })
}

/// What the twin may know beforehand: nothing of it is the world's truth.
pub(super) fn known(
    raw: &raw::Raw,
    profile: &Profile,
    nominal: &[Hardware],
    aggregate_every: u64,
    rates: RateSchedule,
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
        rates,
        tasks,
        n_tasks: suite(raw).tasks.len(),
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

/// The learning rates of a method.
pub(super) fn rates(raw: &raw::Raw, method: Method) -> RateSchedule {
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
    let suite = suite(raw);
    Architecture {
        tokens: suite.tokens.iter().map(|(start, end)| (*start, end - start)).collect(),
        width: raw.model.width,
        heads: raw.model.heads,
        blocks: raw.model.blocks,
        hidden_ratio: raw.model.mlp_ratio,
        merge_after: raw.model.merge_after.clone(),
        actions: suite.action(),
        loss_weights: suite.loss_weights.to_vec(),
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
    let bytes = match BASES.iter().find(|(builtin, _)| builtin == name) {
        Some((_, bytes)) => bytes.to_vec(),
        None => read(name).map_err(|error| wrong(error.to_string()))?,
    };
    let weights = policy.weights_from(&bytes).map_err(|error| wrong(error.to_string()))?;
    Ok((policy, weights))
}

pub(super) fn profile(raw: &raw::Raw, policy: &Policy) -> Profile {
    let (batch, momentum) = (raw.learning.batch, raw.learning.momentum > 0.0);
    let cut = |layer: usize| policy.profile(layer, batch, momentum);
    Profile { batch, action: suite(raw).action(), cuts: (1..=policy.n_layers()).map(cut).collect() }
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
    let data = |set| Arc::new(dataset(suite(raw), set));
    let data: Vec<Arc<Dataset>> = demonstrations.iter().map(data).collect();
    Engine::new(Arc::new(policy), settings, base, &data)
}
