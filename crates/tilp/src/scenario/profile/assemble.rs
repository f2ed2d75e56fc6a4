//! From a profile scenario to the parts of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use rand::RngExt;

use super::raw::Profile;
use crate::allocate::Clock;
use crate::cost::{self, CutProfile};
use crate::profile::{Law, LawEvaluator, LawExaminer, LawLearner, Members};
use crate::rng::Seed;
use crate::round::TerminalId;
use crate::scenario::assemble::{Parts, Seeds, StationParts, budget, station_and_radio};
use crate::scenario::events::presence;
use crate::scenario::raw::Raw;
use crate::scenario::robots::{deal_tasks, schedule, suite as suite_of};
use crate::scenario::{Method, Scenario, ScenarioError, terminals};
use crate::tasks::Suite;
use crate::units::{Bytes, Operations};
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
    let StationParts { station, radio, declared } =
        station_and_radio(scenario, method, seed, tasks.clone(), clock)?;
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
        declared,
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
    let given = |n: usize| terminals::n_samples(raw, n);
    let n_samples = (0..tasks.len()).map(|n| given(n).unwrap_or_else(|| drawn(n))).collect();
    Members { tasks, n_samples }
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
        steps_per_second: 0,
    }));
    suites.insert(names, suite);
    suite
}

/// The error if a policy, robots or demonstrations are requested.
pub(in crate::scenario) fn no_policy(scenario: &Scenario) -> ScenarioError {
    ScenarioError::Field {
        field: "profile".into(),
        reason: "a profile scenario has neither policy nor robots, expected one without [profile]"
            .into(),
        place: scenario.place.clone(),
    }
}
