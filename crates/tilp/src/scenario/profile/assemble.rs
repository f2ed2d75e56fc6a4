//! From a profile scenario to the parts of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use rand::RngExt;

use super::raw::{Profile, TerminalRow};
use crate::allocate::Clock;
use crate::cost::{self, CutProfile, Hardware};
use crate::profile::{Law, LawEvaluator, LawExaminer, LawLearner, Members};
use crate::rng::Seed;
use crate::round::TerminalId;
use crate::scenario::assemble::{Parts, Seeds, budget, station_and_radio};
use crate::scenario::events::presence;
use crate::scenario::raw::Raw;
use crate::scenario::robots::{deal_tasks, schedule, suite as suite_of};
use crate::scenario::{Method, Scenario, ScenarioError};
use crate::tasks::Suite;
use crate::units::{Bytes, Gain, Hertz, Operations, from_db};
use crate::wireless::Place;
use crate::world::{CellParts, Laboratory, Learner, SimulatedCell};

/// The parts of a run whose learning follows a law.
pub type ProfileParts = Parts<LawLearner, LawExaminer, LawEvaluator>;

/// Puts a run together.
pub(in crate::scenario) fn assemble(
    scenario: &Scenario,
    profile: &Profile,
    method: Method,
    seeds: Seeds,
    clock: Option<Clock>,
) -> Result<ProfileParts, ScenarioError> {
    let (raw, seed) = (&scenario.raw, Seed::new(seeds.seed));
    let tasks = deal_tasks(raw, seed.named("fleet"));
    let (station, radio) = station_and_radio(scenario, method, seed, tasks.clone(), clock)?;
    let members = members(raw, profile, tasks.clone(), seed.named("demonstrations"));
    let compressor = raw.learning.compressor;
    let law = Law::draw(&profile.law, members, compressor, seed.named("law"));
    let examiner = LawExaminer {
        law: law.clone(),
        tasks: suite_of(raw).tasks,
        schedule: schedule(raw),
        seed: seed.named("episodes"),
    };
    let presence = presence(raw);
    let minibatches = seeds.minibatches(seed.named("engine"));
    let learner = learner(raw, profile, law, &presence.at(1), minibatches);
    let cell = SimulatedCell::new(CellParts {
        radio,
        learner,
        tasks,
        presence,
        measurement_noise: raw.hardware.measurement_noise,
        budget: budget(raw),
        seed: seed.named("world"),
    });
    Ok(Parts {
        cell,
        station,
        evaluator: LawEvaluator(examiner.clone()),
        laboratory: Laboratory::with(examiner),
        environment: BTreeMap::new(),
    })
}

fn learner(
    raw: &Raw,
    profile: &Profile,
    law: Law,
    first: &BTreeSet<TerminalId>,
    seed: Seed,
) -> LawLearner {
    let up_to = profile.cuts.iter().map(|row| row.trained_parameters);
    let before = std::iter::once(0).chain(up_to.clone());
    let parameters: Vec<u64> = up_to.zip(before).map(|(to, from)| to - from).collect();
    let mut learner = LawLearner::new(law, &parameters, raw.learning.batch, seed);
    learner.gather(first, 1).expect("terminals of a law come and go freely");
    learner
}

/// Tasks and data sizes of the terminals.
fn members(raw: &Raw, profile: &Profile, tasks: Vec<usize>, seed: Seed) -> Members {
    let [low, high] = profile.samples;
    let drawn = |n: usize| {
        let share: f64 = seed.at(n as u64).rng().random();
        (low * (high / low).powf(share)).round() as usize
    };
    let rows = listed(raw);
    let given = |n: usize| rows.get(n).and_then(|row| row.n_samples).map(|count| count as usize);
    let n_samples = (0..tasks.len()).map(|n| given(n).unwrap_or_else(|| drawn(n))).collect();
    Members { tasks, n_samples }
}

/// The terminals of the scenario's table; none without one.
fn listed(raw: &Raw) -> &[TerminalRow] {
    raw.profile.as_ref().map_or(&[], |profile| &profile.listed)
}

/// Hardware by data sheet, with what the table gives.
pub(in crate::scenario) fn nominal(raw: &Raw, mut drawn: Vec<Hardware>) -> Vec<Hardware> {
    for (one, row) in drawn.iter_mut().zip(listed(raw)) {
        *one = Hardware {
            operations_per_cycle: row.operations_per_cycle.unwrap_or(one.operations_per_cycle),
            clock: row.clock_hz.map_or(one.clock, Hertz),
            energy_coefficient: row.energy_coefficient.unwrap_or(one.energy_coefficient),
            ..*one
        };
    }
    drawn
}

/// Memory budgets, with what the table gives.
pub(in crate::scenario) fn memory(raw: &Raw, mut drawn: Vec<Bytes>) -> Vec<Bytes> {
    for (one, row) in drawn.iter_mut().zip(listed(raw)) {
        *one = row.memory_bytes.map_or(*one, Bytes);
    }
    drawn
}

/// Places of the terminals, with what the table gives.
pub(in crate::scenario) fn places(raw: &Raw, mut drawn: Vec<Place>) -> Vec<Place> {
    for (one, row) in drawn.iter_mut().zip(listed(raw)) {
        if let (Some(x_m), Some(y_m)) = (row.x_m, row.y_m) {
            *one = Place { x_m, y_m };
        }
    }
    drawn
}

/// Large-scale gains, with what the table gives.
pub(in crate::scenario) fn gains(raw: &Raw, mut drawn: Vec<Gain>) -> Vec<Gain> {
    for (one, row) in drawn.iter_mut().zip(listed(raw)) {
        *one = row.gain_db.map_or(*one, |db| Gain(from_db(db)));
    }
    drawn
}

/// Tasks of the terminals, with what the table gives.
pub(in crate::scenario) fn tasks(raw: &Raw, mut dealt: Vec<usize>) -> Vec<usize> {
    for (one, row) in dealt.iter_mut().zip(listed(raw)) {
        let named = row.task.as_ref().and_then(|task| suite_of(raw).task_index(task));
        *one = named.unwrap_or(*one);
    }
    dealt
}

/// Sizes of the model per cut.
pub(in crate::scenario) fn cost_profile(raw: &Raw, profile: &Profile) -> cost::Profile {
    let rows = profile.cuts.iter().zip(1..);
    let cuts = rows.map(|(row, cut)| CutProfile {
        cut,
        activation_elements: row.activation_elements as usize,
        operations: Operations(row.operations),
        // Accounted in 32 bits; the encoding of exchanged layers is the accounting's.
        parameters: Bytes(4 * row.trained_parameters),
        memory: Bytes(row.memory_bytes),
    });
    cost::Profile { batch: raw.learning.batch, action: profile.label_values, cuts: cuts.collect() }
}

/// The tasks of a profile as a suite that nothing moves. The same for as long as the program runs;
/// there are as many as there are lists of tasks.
pub(in crate::scenario) fn suite(profile: &Profile) -> &'static Suite {
    static SUITES: Mutex<BTreeMap<Vec<String>, &'static Suite>> = Mutex::new(BTreeMap::new());
    let names: Vec<String> = profile.tasks.keys().cloned().collect();
    let mut suites = SUITES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(suite) = suites.get(&names) {
        return suite;
    }
    let tasks: Vec<&'static str> = names.iter().map(|name| &*String::leak(name.clone())).collect();
    let suite = Box::leak(Box::new(Suite {
        name: "profile",
        tasks: Vec::leak(tasks),
        tokens: &[],
        loss_weights: &[],
        n_motions: 0,
        demonstration_steps: 0,
    }));
    suites.insert(names, suite);
    suite
}

/// What is said where a policy, robots or demonstrations are asked for.
pub(in crate::scenario) fn no_policy(scenario: &Scenario) -> ScenarioError {
    ScenarioError::Field {
        field: "profile".into(),
        reason: "a profile scenario has neither policy nor robots, expected one without [profile]"
            .into(),
        place: scenario.place.clone(),
    }
}
