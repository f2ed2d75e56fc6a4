//! From a checked scenario to the parts of a run. Besides `registry` and `robots`, the
//! only file that names every implementation.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::cache::Cache;
use super::planner::tilp;
use super::raw;
use super::registry::{Method, MethodInputs};
use super::robots::{Roster, dataset, suite};
use super::{Scenario, ScenarioError};
use crate::allocate::{Clock, Problem};
use crate::cost::{Accounting, CostModel, Downlink, Hardware, Profile};
use crate::datasheet::{HardwareRange, draw_memory, draw_nominal};
use crate::rng::Seed;
use crate::round::{Budget, Limits, TerminalId};
use crate::split::data::Dataset;
use crate::split::engine::{Engine, Settings};
use crate::split::model::{SplitModel, Weights};
use crate::split::policy::{Architecture, Policy};
use crate::split::rates::{RateSchedule, Rates};
use crate::station::{Station, TrainingSchedule};
use crate::tasks::Demonstrations;
use crate::twin::Nominal;
use crate::units::{Bytes, Hertz, Joules, Seconds, Watts, from_db};
use crate::wireless::{
    Fading, Recording, RecordingError, Surroundings, correlation, draw_places, large_scale_gains,
};
use crate::world::{
    CellParts, Change, Channel, Laboratory, Late, Presence, Radio, RobotEvaluator, SimulatedCell,
    draw_truth,
};

/// The policies that come with the program.
const BASES: [(&str, &[u8]); 2] = [
    ("builtin", include_bytes!("base.safetensors")),
    ("builtin:libero-object", include_bytes!("base-libero-object.safetensors")),
];

/// The parts of a run: one for each role.
pub struct Parts {
    /// The physical side.
    pub cell: SimulatedCell,
    /// The base station with its method.
    pub station: Station,
    /// Runs calibration episodes.
    pub evaluator: RobotEvaluator,
    /// Knows the hidden truth and keeps the books.
    pub laboratory: Laboratory,
    /// What a result may depend on outside the program: names and versions or hashes.
    pub environment: BTreeMap<String, String>,
}

/// What a run is drawn from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seeds {
    /// The seed of the cell, the robots, the data and the training.
    pub seed: u64,
    /// Which replicate. Replicates of a seed differ in the order of minibatches only.
    pub replicate: u64,
}

impl From<u64> for Seeds {
    fn from(seed: u64) -> Self {
        Self { seed, replicate: 0 }
    }
}

impl Seeds {
    /// How the name of a run's folder ends: `7`, or `7-r2` for replicate 2.
    pub fn folder(self) -> String {
        match self {
            Self { seed, replicate: 0 } => seed.to_string(),
            Self { seed, replicate } => format!("{seed}-r{replicate}"),
        }
    }
}

impl fmt::Display for Seeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self { seed, replicate: 0 } => write!(f, "{seed}"),
            Self { seed, replicate } => write!(f, "{seed}, replicate {replicate}"),
        }
    }
}

/// Puts a run together. `progress` hears how many terminals' demonstrations are made.
pub fn assemble(
    scenario: &Scenario,
    method: Method,
    seed: impl Into<Seeds>,
    cache: Option<&Cache>,
    progress: &(dyn Fn(usize, usize) + std::marker::Sync),
) -> Result<Parts, ScenarioError> {
    assemble_with_clock(scenario, method, seed.into(), None, cache, progress)
}

/// The same with a clock for methods that plan within a budget. Nobody gets it without one.
pub fn assemble_with_clock(
    scenario: &Scenario,
    method: Method,
    seeds: Seeds,
    clock: Option<Clock>,
    cache: Option<&Cache>,
    progress: &(dyn Fn(usize, usize) + std::marker::Sync),
) -> Result<Parts, ScenarioError> {
    let raw = &scenario.raw;
    let schedule = TrainingSchedule {
        rule: method.training(scenario)?,
        aggregate_every: method.aggregate_every.unwrap_or(raw.learning.aggregate_every),
        rates: rates(raw, method),
    };
    let seed = Seed::new(seeds.seed);
    let (policy, base) = policy(scenario)?;
    let policy = Arc::new(policy);
    let cost = cost_model(raw, &policy);
    let radio = radio(scenario, &cost, seed)?;
    let roster = Roster::draw(scenario, seed.named("fleet"))?;
    let data = data_sets(scenario, &roster, seed, cache, progress)?;
    let fleet = Arc::new(roster.fleet(raw, seed.named("episodes"))?);
    let method = (method.build)(MethodInputs {
        problem: Problem { cost: cost.clone(), cut: raw.methods.cut },
        nominal: known(raw, &cost, &radio.nominal, &schedule, roster.tasks()),
        knobs: raw.methods.reference,
        tilp: tilp(raw),
        oracle: raw.methods.oracle.options(),
        clock: clock.filter(|_| raw.methods.tilp.plan_budget_ms.is_finite()),
        baselines: raw.methods.baselines.clone(),
        rounds: raw.rounds,
        terminal_rate: f64::from(schedule.rates.start.terminal),
        seed: seed.named("allocator"),
        variant: method.published,
    });
    let presence = presence(raw);
    let cell = SimulatedCell::new(CellParts {
        radio,
        engine: engine(raw, policy.clone(), &base, &data, &presence, seeds),
        data,
        tasks: roster.tasks(),
        presence,
        measurement_noise: raw.hardware.measurement_noise,
        budget: budget(raw),
        seed: seed.named("world"),
    });
    Ok(Parts {
        cell,
        station: Station::new(method, cost.limits, schedule, suite(raw).tasks.len())
            .with_budget(budget(raw)),
        evaluator: RobotEvaluator::new(fleet.clone(), policy.clone()),
        laboratory: Laboratory::new(fleet, policy, seed.named("world")),
        environment: roster.environment(),
    })
}

/// Limits, sizes, billing and the rate formula of a scenario.
pub(super) fn cost_model(raw: &raw::Raw, policy: &Policy) -> CostModel {
    CostModel {
        limits: limits(raw),
        profile: profile(raw, policy),
        accounting: accounting(raw),
        rate_model: raw.cell.fading,
        downlink: match (raw.radio.downlink, raw.radio.station_power_w) {
            (raw::Downlink::Own, Some(power)) => Downlink::Own(Watts(power)),
            _ => Downlink::Shared,
        },
    }
}

/// The true radio and hardware.
fn radio(scenario: &Scenario, cost: &CostModel, seed: Seed) -> Result<Radio, ScenarioError> {
    let raw = &scenario.raw;
    let (n_terminals, range) = (raw.cell.n_terminals, hardware_range(raw));
    let hardware = seed.named("hardware");
    let nominal = draw_nominal(n_terminals, &range, hardware);
    let (short, ample) = (raw.hardware.short_memory_share, raw.hardware.ample_memory);
    let (profile, cuts) = (&cost.profile, &cost.limits.cuts);
    Ok(Radio {
        cost: cost.clone(),
        channel: channel(scenario, seed)?,
        truth: draw_truth(&nominal, &range, hardware),
        nominal,
        memory: draw_memory(n_terminals, short, ample, profile, cuts, hardware),
        late: raw.limits.late,
        give_up: Seconds(raw.limits.give_up_s),
    })
}

/// The private data of every terminal.
fn data_sets(
    scenario: &Scenario,
    roster: &Roster,
    seed: Seed,
    cache: Option<&Cache>,
    progress: &(dyn Fn(usize, usize) + std::marker::Sync),
) -> Result<Vec<Arc<Dataset>>, ScenarioError> {
    let raw = &scenario.raw;
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
    let data = |set: &Demonstrations| Arc::new(dataset(suite(raw), set));
    Ok(demonstrations.iter().map(data).collect())
}

/// Who is in the cell when. A terminal that joins before it has ever left is absent at first.
pub(super) fn presence(raw: &raw::Raw) -> Presence {
    let ids = |ids: &[u32]| ids.iter().copied().map(TerminalId).collect::<Vec<_>>();
    let all = Presence::constant(raw.cell.n_terminals).first;
    let first_event = |id: &TerminalId| {
        let joins = |event: &&raw::Event| event.join.contains(&id.0);
        let names = |event: &&raw::Event| joins(event) || event.leave.contains(&id.0);
        raw.events.iter().find(names)
    };
    let joins_first =
        |id: &TerminalId| first_event(id).is_some_and(|event| event.join.contains(&id.0));
    let changes = raw.events.iter().map(|event| Change {
        round: event.round,
        leave: ids(&event.leave),
        join: ids(&event.join),
    });
    Presence {
        first: all.into_iter().filter(|id| !joins_first(id)).collect(),
        changes: changes.collect(),
    }
}

/// What the twin is told beforehand: nothing of it is hidden truth.
pub(super) fn known(
    raw: &raw::Raw,
    cost: &CostModel,
    hardware: &[Hardware],
    schedule: &TrainingSchedule,
    tasks: Vec<usize>,
) -> Nominal {
    let end = match raw.limits.late {
        Late::Drop => raw.limits.deadline_s,
        Late::Wait => raw.limits.give_up_s,
    };
    Nominal {
        cost: cost.clone(),
        hardware: hardware.to_vec(),
        closes: Seconds(end),
        give_up: Seconds(raw.limits.give_up_s),
        rho: correlation(raw.cell.doppler_hz, raw.cell.round_interval_s),
        aggregate_every: schedule.aggregate_every,
        rates: schedule.rates,
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

/// Budgets of the whole run.
pub(super) fn budget(raw: &raw::Raw) -> Budget {
    let raw::Budget { seconds, joules, joules_per_terminal, bytes } = raw.limits.budget;
    Budget {
        seconds: seconds.map(Seconds),
        joules: joules.map(Joules),
        joules_per_terminal: joules_per_terminal.map(Joules),
        bytes: bytes.map(|bytes| Bytes(bytes as u64)),
    }
}

fn accounting(raw: &raw::Raw) -> Accounting {
    let raw::Learning { compressor, payload, sync, .. } = raw.learning;
    Accounting { compressor, payload, sync }
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
        environment: cell.environment,
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
    policy: Arc<Policy>,
    base: &Weights,
    data: &[Arc<Dataset>],
    presence: &Presence,
    seeds: Seeds,
) -> Engine<Policy> {
    let seed = Seed::new(seeds.seed).named("engine");
    let settings = Settings {
        seed,
        minibatches: match seeds.replicate {
            0 => seed,
            replicate => seed.named("replicate").at(replicate),
        },
        samples: raw.learning.batch,
        server_rate: raw.learning.server_rate as f32,
        client_rate: raw.learning.terminal_rate as f32,
        momentum: raw.learning.momentum as f32,
        compressor: raw.learning.compressor,
    };
    let mut engine = Engine::new(policy, settings, base, data);
    let first = presence.at(1);
    for id in engine.ids() {
        if !first.contains(&id) {
            engine.leave(id).expect("a member leaves");
        }
    }
    engine
}
