//! From a checked scenario to the parts of a run. Besides `registry` and `robots`, the
//! only file that names every implementation.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::cache::Cache;
use super::events::{WorkChange, disturbances, presence, work_changes};
use super::learning::Learning;
use super::lerobot;
use super::planner::tilp;
use super::profile::{self, ProfileParts};
use super::program::started;
use super::raw;
use super::registry::{Method, MethodInputs};
use super::robots::{Roster, dataset, joined, suite};
use super::{Scenario, ScenarioError, terminals};
use crate::allocate::{Clock, Problem};
use crate::cost::{Accounting, CostModel, Downlink, Hardware, Profile};
use crate::datasheet::{HardwareRange, draw_memory, draw_nominal};
use crate::exchange::Declaration;
use crate::rng::Seed;
use crate::round::{Budget, Limits};
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
    Fading, Place, Recording, RecordingError, Surroundings, correlation, draw_places,
    large_scale_gains,
};
use crate::world::{
    CellParts, Channel, DataSets, Halves, Laboratory, Late, Presence, Radio, RobotEvaluator,
    Robots, SimulatedCell, draw_truth,
};

/// The policies that come with the program.
pub(super) const BASES: [(&str, &[u8]); 2] = [
    ("builtin", include_bytes!("base.safetensors")),
    ("builtin:libero-object", include_bytes!("base-libero-object.safetensors")),
];

/// The parts of a run: one for each role. Learner, examiner and evaluator belong
/// together.
pub struct Parts<L = Halves, X = Robots, V = RobotEvaluator> {
    /// The physical side.
    pub cell: SimulatedCell<L>,
    /// The base station with its method.
    pub station: Station,
    /// Runs calibration episodes.
    pub evaluator: V,
    /// Knows the hidden truth and keeps the books.
    pub laboratory: Laboratory<X>,
    /// What a result may depend on outside the program: names and versions or hashes.
    pub environment: BTreeMap<String, String>,
    /// What the method declared, if it is one of the user's own.
    pub declared: Option<Declaration>,
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

    /// The stream of minibatches, out of that of the engine.
    pub(super) fn minibatches(self, engine: Seed) -> Seed {
        match self.replicate {
            0 => engine,
            replicate => engine.named("replicate").at(replicate),
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

/// Puts a run with robots together. `progress` is called with the number of terminals whose demonstrations are made.
pub fn assemble(
    scenario: &Scenario,
    method: Method,
    seed: impl Into<Seeds>,
    cache: Option<&Cache>,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Parts, ScenarioError> {
    robots(scenario, method, seed.into(), None, cache, progress)
}

/// A run with its parts, by kind of learner.
pub enum World {
    /// A policy that moves robots.
    Robots(Box<Parts>),
    /// A law of learning.
    Profile(Box<ProfileParts>),
}

/// Puts a run together, whatever learns in it. A method gets the clock only if it plans within a
/// budget.
pub fn assemble_world(
    scenario: &Scenario,
    method: Method,
    seeds: Seeds,
    clock: Option<Clock>,
    cache: Option<&Cache>,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<World, ScenarioError> {
    if let Some(profile) = &scenario.raw.profile {
        let parts = profile::assemble(scenario, profile, method, seeds, clock)?;
        return Ok(World::Profile(Box::new(parts)));
    }
    let parts = robots(scenario, method, seeds, clock, cache, progress)?;
    Ok(World::Robots(Box::new(parts)))
}

fn robots(
    scenario: &Scenario,
    method: Method,
    seeds: Seeds,
    clock: Option<Clock>,
    cache: Option<&Cache>,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Parts, ScenarioError> {
    let (raw, seed) = (&scenario.raw, Seed::new(seeds.seed));
    let (policy, base) = policy(scenario)?;
    let policy = Arc::new(policy);
    let roster = Roster::draw(scenario, seed.named("fleet"))?;
    let StationParts { station, radio, declared } =
        station_and_radio(scenario, method, seed, roster.tasks(), clock)?;
    let changes = work_changes(scenario, &roster.tasks(), suite(raw))?;
    let data = data_sets(scenario, &roster, &changes, seed, cache, progress)?;
    let fleet = Arc::new(roster.fleet(raw, &changes, seed.named("episodes"))?);
    let presence = presence(raw);
    let engine = engine(raw, &policy, base, data.first(), &presence, seeds);
    let cell = SimulatedCell::new(CellParts {
        radio,
        learner: Halves { engine, data },
        tasks: roster.tasks(),
        presence,
        measurement_noise: raw.hardware.measurement_noise,
        budget: budget(raw),
        seed: seed.named("world"),
    });
    Ok(Parts {
        cell,
        station,
        evaluator: RobotEvaluator::new(fleet.clone(), policy.clone()),
        laboratory: Laboratory::new(fleet, policy, seed.named("world")),
        environment: roster.environment(),
        declared,
    })
}

/// Parts that do not depend on the learner.
pub(super) struct StationParts {
    pub station: Station,
    pub radio: Radio,
    pub declared: Option<Declaration>,
}

/// The evaluator of a run with robots, without anything else of it.
pub fn evaluator(scenario: &Scenario, seed: u64) -> Result<RobotEvaluator, ScenarioError> {
    let (raw, seed) = (&scenario.raw, Seed::new(seed));
    let policy = Arc::new(untrained(scenario)?);
    let roster = Roster::draw(scenario, seed.named("fleet"))?;
    let changes = work_changes(scenario, &roster.tasks(), suite(raw))?;
    let fleet = Arc::new(roster.fleet(raw, &changes, seed.named("episodes"))?);
    Ok(RobotEvaluator::new(fleet, policy))
}

/// The base station with its method, and the true radio and hardware, for every kind of learner.
pub(super) fn station_and_radio(
    scenario: &Scenario,
    method: Method,
    seed: Seed,
    tasks: Vec<usize>,
    clock: Option<Clock>,
) -> Result<StationParts, ScenarioError> {
    let raw = &scenario.raw;
    let cost = cost_model(scenario)?;
    let radio = radio(scenario, &cost, seed)?;
    let (method, program) = started(scenario, method, &cost, &radio.nominal, seed)?;
    let schedule = TrainingSchedule {
        rule: method.training(scenario)?,
        aggregate_every: method.aggregate_every.unwrap_or(raw.learning.aggregate_every),
        rates: rates(raw, &method),
    };
    let inputs = MethodInputs {
        problem: Problem { cost: cost.clone(), cut: raw.methods.cut },
        nominal: known(raw, &cost, &radio.nominal, &schedule, tasks),
        knobs: raw.methods.reference,
        tilp: tilp(raw),
        oracle: raw.methods.oracle.options(),
        clock: clock.filter(|_| raw.methods.tilp.plan_budget_ms.is_finite()),
        baselines: raw.methods.baselines.clone(),
        rounds: raw.rounds,
        terminal_rate: f64::from(schedule.rates.start.terminal),
        seed: seed.named("allocator"),
        variant: method.published,
    };
    let allocator = program.unwrap_or_else(|| method.build(inputs));
    let station = Station::new(allocator, cost.limits, schedule, suite(raw).tasks.len());
    let (station, declared) = (station.with_budget(budget(raw)), method.declaration().cloned());
    Ok(StationParts { station, radio, declared })
}

/// Limits, sizes, billing and the rate formula of a scenario.
pub(super) fn cost_model(scenario: &Scenario) -> Result<CostModel, ScenarioError> {
    let raw = &scenario.raw;
    let profile = match &raw.profile {
        Some(profile) => profile::cost_profile(raw, profile),
        None => policy_profile(raw, &untrained(scenario)?),
    };
    Ok(CostModel {
        limits: limits(raw),
        profile,
        accounting: accounting(raw),
        rate_model: raw.cell.fading,
        downlink: match (raw.radio.downlink, raw.radio.station_power_w) {
            (raw::Downlink::Own, Some(power)) => Downlink::Own(Watts(power)),
            _ => Downlink::Shared,
        },
    })
}

/// Hardware of the terminals by data sheet.
pub(super) fn nominal(raw: &raw::Raw, n_terminals: usize, seed: Seed) -> Vec<Hardware> {
    let drawn = draw_nominal(n_terminals, &hardware_range(raw), seed.named("hardware"));
    terminals::nominal(raw, drawn)
}

/// The true radio and hardware.
pub(super) fn radio(
    scenario: &Scenario,
    cost: &CostModel,
    seed: Seed,
) -> Result<Radio, ScenarioError> {
    let raw = &scenario.raw;
    // A recorded channel has gains and no places.
    let places = raw.cell.trace.is_empty().then(|| places(raw, seed));
    let (n_terminals, range) = (raw.cell.n_terminals, hardware_range(raw));
    let hardware = seed.named("hardware");
    let nominal = nominal(raw, n_terminals, seed);
    let short = raw.heterogeneity.short_memory_share(raw.hardware.short_memory_share);
    let ample = raw.hardware.ample_memory;
    let cuts = &cost.limits.cuts;
    Ok(Radio {
        cost: cost.clone(),
        channel: channel(scenario, places.as_deref().unwrap_or_default(), seed)?,
        disturbances: disturbances(scenario, places.as_deref())?,
        truth: draw_truth(&nominal, &range, hardware),
        nominal,
        memory: terminals::memory(
            raw,
            draw_memory(n_terminals, short, ample, &cost.profile, cuts, hardware),
        ),
        late: raw.limits.late,
        give_up: Seconds(raw.limits.give_up_s),
    })
}

/// The private data of every terminal, over the rounds.
fn data_sets(
    scenario: &Scenario,
    roster: &Roster,
    changes: &[WorkChange],
    seed: Seed,
    cache: Option<&Cache>,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<DataSets, ScenarioError> {
    let raw = &scenario.raw;
    let too_few = |field: String, value: usize, n: usize| ScenarioError::Range {
        field,
        value: value.to_string(),
        expected: format!("enough for the expert to succeed once as terminal {n}, or less noise"),
        place: scenario.place.clone(),
    };
    let mut first = roster.demonstrations(raw, seed.named("demonstrations"), cache, progress)?;
    for (n, episodes) in lerobot::imported(scenario, suite(raw))? {
        first[n] = joined(&episodes);
    }
    if let Some(n) = first.iter().position(|set| set.actions.is_empty()) {
        return Err(too_few("tasks.demonstrations".into(), raw.tasks.demonstrations, n));
    }
    let data = |set: &Demonstrations| dataset(suite(raw), set);
    let mut sets = DataSets::constant(first.iter().map(|set| Arc::new(data(set))).collect());
    let shows = |change: &&WorkChange| change.demonstrations > 0;
    let arriving: Vec<WorkChange> = changes.iter().filter(shows).copied().collect();
    if arriving.is_empty() {
        return Ok(sets);
    }
    let seed = seed.named("demonstrations/arriving");
    let shown = roster.arriving_demonstrations(raw, &arriving, seed, cache, progress)?;
    for (change, set) in arriving.iter().zip(&shown) {
        if set.actions.is_empty() {
            let field = format!("events[{}].change.demonstrations", change.event);
            return Err(too_few(field, change.demonstrations, change.terminal.0 as usize));
        }
        sets.add(change.round, change.terminal, &data(set));
    }
    Ok(sets)
}

/// Prior information of the twin; it contains no hidden truth.
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
pub(in crate::scenario) fn budget(raw: &raw::Raw) -> Budget {
    let raw::Budget { seconds, joules, joules_per_terminal, bytes } = raw.limits.budget;
    Budget {
        seconds: seconds.map(Seconds),
        joules: joules.map(Joules),
        joules_per_terminal: joules_per_terminal.map(Joules),
        bytes: bytes.map(|bytes| Bytes(bytes as u64)),
    }
}

fn accounting(raw: &raw::Raw) -> Accounting {
    let Learning { compressor, payload, sync, .. } = raw.learning;
    Accounting { compressor, payload, sync, exchange: raw.learning.exchange_bits }
}

pub(super) fn hardware_range(raw: &raw::Raw) -> HardwareRange {
    // dBm to W: 30 dB less.
    let noise_db = raw.cell.noise_dbm_per_hz - 30.0 + raw.cell.noise_figure_db;
    let level = raw.heterogeneity;
    HardwareRange {
        clock: Hertz(raw.hardware.clock_hz),
        operations_per_cycle: level.range(raw.hardware.operations_per_cycle),
        energy_coefficient: level.range(raw.hardware.energy_coefficient),
        hidden_share: level.hidden(raw.hardware.hidden_share),
        noise_w_per_hz: from_db(noise_db),
        hidden_noise_figure_db: level.hidden(raw.cell.hidden_noise_figure_db),
    }
}

/// The learning rates of a method.
pub(super) fn rates(raw: &raw::Raw, method: &Method) -> RateSchedule {
    let learning = &raw.learning;
    let of = |name: &str| raw.methods.rates.get(name);
    let (server, terminal) =
        match of(method.name()).or_else(|| method.rates_of.as_deref().and_then(of)) {
            Some(own) => (own.server_rate, own.terminal_rate),
            None => {
                let declared = method.declaration();
                let server = declared.and_then(|one| one.server_rate);
                let terminal = declared.and_then(|one| one.terminal_rate);
                (server.unwrap_or(learning.server_rate), terminal.unwrap_or(learning.terminal_rate))
            }
        };
    RateSchedule {
        start: Rates { server: server as f32, terminal: terminal as f32 },
        final_share: learning.final_rate_share,
        rounds: raw.rounds,
        warm_up: learning.warm_up,
    }
}

/// Positions of the terminals of a drawn channel.
pub(super) fn places(raw: &raw::Raw, seed: Seed) -> Vec<Place> {
    let cell = &raw.cell;
    let (inner, outer) = (cell.inner_radius_m, cell.outer_radius_m);
    let places = draw_places(cell.n_terminals, inner, outer, seed.named("places"));
    let spread = |place| raw.heterogeneity.place(place, inner, outer);
    terminals::places(raw, places.into_iter().map(spread).collect())
}

fn channel(scenario: &Scenario, places: &[Place], seed: Seed) -> Result<Channel, ScenarioError> {
    let cell = &scenario.raw.cell;
    if let Some(recording) = recording(scenario)? {
        let trace = recording.trace(cell.n_terminals);
        let named = |error| wrong_trace(scenario, format!("{}: {error}", cell.trace));
        return trace.map(Channel::Recorded).map_err(named);
    }
    let around = Surroundings {
        environment: cell.environment,
        carrier: Hertz(cell.carrier_hz),
        station_height_m: cell.station_height_m,
        terminal_height_m: cell.terminal_height_m,
        shadowing_distance_m: cell.shadowing_distance_m,
        deviation: scenario.raw.heterogeneity.hidden(1.0),
    };
    let gains = large_scale_gains(places, &around, seed.named("gains"));
    let gains = terminals::gains(&scenario.raw, gains);
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
    recording.map(Some).map_err(|error| match error {
        // The reason contains the path.
        RecordingError::File { .. } => wrong_trace(scenario, error.to_string()),
        _ => wrong_trace(scenario, format!("{}: {error}", cell.trace)),
    })
}

fn wrong_trace(scenario: &Scenario, reason: String) -> ScenarioError {
    ScenarioError::Field { field: "cell.trace".into(), reason, place: scenario.place.clone() }
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
    if scenario.raw.profile.is_some() {
        return Err(profile::no_policy(scenario));
    }
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
    let hint = "`tilp policy pretrain SCENARIO --set ... --out FILE` makes one of these sizes";
    let weights = policy.weights_from(&bytes).map_err(|error| wrong(format!("{error}; {hint}")))?;
    Ok((policy, weights))
}

/// The policy with what is trained of it: all, or adapters over this base.
fn trained(raw: &raw::Raw, policy: &Policy, base: Arc<Weights>) -> Policy {
    match raw.learning.lora() {
        None => policy.clone(),
        Some(lora) => policy.clone().with_adapters(lora, base),
    }
}

fn policy_profile(raw: &raw::Raw, policy: &Policy) -> Profile {
    let policy = trained(raw, policy, Arc::default()); // sizes do not depend on the base
    let (batch, optimiser) = (raw.learning.batch, raw.learning.optimiser());
    let cut = |layer: usize| policy.profile(layer, batch, optimiser);
    Profile { batch, action: suite(raw).action(), cuts: (1..=policy.n_layers()).map(cut).collect() }
}

fn engine(
    raw: &raw::Raw,
    policy: &Policy,
    base: Weights,
    data: &[Arc<Dataset>],
    presence: &Presence,
    seeds: Seeds,
) -> Engine<Policy> {
    let seed = Seed::new(seeds.seed).named("engine");
    let settings = Settings {
        seed,
        minibatches: seeds.minibatches(seed),
        samples: raw.learning.batch,
        server_rate: raw.learning.server_rate as f32,
        client_rate: raw.learning.terminal_rate as f32,
        optimiser: raw.learning.optimiser(),
        clip: raw.learning.clip as f32,
        state_at_aggregation: raw.learning.state_at_aggregation,
        compressor: raw.learning.compressor,
        exchange: raw.learning.exchange_bits,
    };
    let base = Arc::new(base);
    let model = trained(raw, policy, base.clone());
    let start = match raw.learning.lora() {
        None => Arc::unwrap_or_clone(base),
        Some(_) => model.initial(seed),
    };
    let mut engine = Engine::new(Arc::new(model), settings, &start, data);
    let first = presence.at(1);
    for id in engine.ids() {
        if !first.contains(&id) {
            engine.leave(id).expect("a member leaves");
        }
    }
    engine
}
