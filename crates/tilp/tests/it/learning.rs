//! The section `learning` in whole runs: optimisers, exchange of layers, adapters.

use tilp::run::RoundRecord;
use tilp::scenario::Scenario;
use tilp::snapshot::{Persist, Snapshot};
use tilp::split::model::SplitModel;

use crate::rounds::{Keep, go_on, until};
use crate::runs::PINNED;
use crate::worlds;

const ROUNDS: u64 = 8;

/// Learners with everything that the section can ask for.
const LEARNERS: [&[&str]; 4] = [
    &[
        "learning.optimiser=momentum",
        "learning.momentum=0.9",
        "learning.clip=1",
        "learning.warm_up=3",
    ],
    &[
        "learning.optimiser=adamw",
        "learning.state_at_aggregation=keep",
        "learning.exchange_bits=16",
    ],
    &["learning.optimiser=adamw", "learning.trainable={lora=2}", "learning.exchange_bits=8"],
    &[
        "learning.optimiser=momentum",
        "learning.momentum=0.9",
        "learning.trainable={lora=3}",
        "learning.lora_scale=2",
        "learning.state_at_aggregation=keep",
    ],
];

fn with<'a>(learner: &[&'a str]) -> Vec<&'a str> {
    PINNED.iter().chain(learner).copied().collect()
}

fn run(method: &str, learner: &[&str]) -> Vec<RoundRecord> {
    until(&mut worlds::parts(method, &with(learner)), ROUNDS)
}

#[test]
fn a_run_goes_on_from_a_snapshot_with_every_learner() {
    for learner in LEARNERS {
        for method in ["random", "splitnn", "hsfl", "fedavg+q0.9", "tilp"] {
            let whole = run(method, learner);
            let mut first = worlds::parts(method, &with(learner));
            let mut keep = Keep { stop_after: Some(5), ..Keep::default() };
            go_on(&mut first, ROUNDS, &mut keep);
            let mut snapshot = Snapshot::default();
            first.cell.save(&mut snapshot);
            first.station.save(&mut snapshot);
            let mut second = worlds::parts(method, &with(learner));
            second.cell.restore(&snapshot).unwrap();
            second.station.restore(&snapshot).unwrap();
            keep.stop_after = None;
            go_on(&mut second, ROUNDS, &mut keep);
            assert!(keep.rounds == whole, "{method} with {learner:?}");
        }
    }
}

#[test]
fn the_cost_model_bills_the_bytes_that_the_engine_exchanges() {
    for learner in LEARNERS {
        let mut parts = worlds::parts("random", &with(learner));
        until(&mut parts, 4); // aggregated after round 4: no terminal holds layers
        let (engine, cost) = (parts.cell.engine(), &parts.cell.radio().cost);
        for cut in 1..=engine.model().n_layers() {
            let job = cost.accounting.training(&cost.profile, 16, cut, 0.0, 0, cut);
            for id in engine.ids() {
                assert_eq!(engine.missing_bytes(id, cut).unwrap(), job.sync_down, "{learner:?}");
            }
            assert_eq!(job.sync_up, job.sync_down);
        }
    }
}

#[test]
fn adapters_leave_biases_normalisations_and_embedding_as_they_were() {
    let learner = ["learning.optimiser=adamw", "learning.trainable={lora=2}"];
    let mut parts = worlds::parts("random", &with(&learner));
    let before = parts.laboratory.deployed(&mut parts.cell).unwrap();
    until(&mut parts, ROUNDS);
    let after = parts.laboratory.deployed(&mut parts.cell).unwrap();
    let policy = parts.laboratory.policy();
    for layer in 1..=policy.n_layers() {
        for tensor in policy.tensors(layer) {
            let range = tensor.offset..tensor.offset + tensor.n_elements();
            let same = before.layer(layer)[range.clone()] == after.layer(layer)[range];
            let adapted = layer > 1 && tensor.name.ends_with("weight");
            assert_eq!(same, !adapted, "{}", tensor.name);
        }
    }
}

#[test]
fn a_heavier_optimiser_needs_more_memory_and_adapters_less() {
    let memory = |learner: &[&str]| {
        let parts = worlds::parts("random", &with(learner));
        parts.cell.radio().cost.profile.memory(6).0
    };
    let plain = memory(&[]);
    let momentum = memory(&["learning.momentum=0.9"]);
    let adamw = memory(&["learning.optimiser=adamw"]);
    let adapters = memory(&["learning.optimiser=adamw", "learning.trainable={lora=2}"]);
    assert_eq!(adamw - momentum, momentum - plain);
    assert!(plain < momentum && adapters < plain, "{plain}, {momentum}, {adapters}");
}

#[test]
fn without_a_name_momentum_chooses_the_optimiser() {
    let heavy = run("random", &["learning.momentum=0.9"]);
    assert!(heavy == run("random", &["learning.momentum=0.9", "learning.optimiser=momentum"]));
    let plain = run("random", &[]);
    assert!(plain == run("random", &["learning.momentum=0.9", "learning.optimiser=sgd"]));
    assert!(plain != heavy);
}

fn load(overrides: &[&str]) -> Result<Scenario, String> {
    let overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
    Scenario::load("tiny", &overrides).map_err(|error| error.to_string())
}

#[test]
fn a_key_at_its_default_is_not_written() {
    let usual = load(&[]).unwrap();
    for text in [
        "learning.warm_up=0",
        "learning.clip=0",
        "learning.exchange_bits=32",
        "learning.trainable=all",
        "learning.lora_scale=1",
        "learning.state_at_aggregation=reset",
        "learning.adamw.beta2=0.999",
    ] {
        assert_eq!(load(&[text]).unwrap().hash(), usual.hash(), "{text}");
    }
    for learner in LEARNERS {
        let scenario = load(learner).unwrap();
        assert_ne!(scenario.hash(), usual.hash());
        let again: Scenario = scenario.varied(&[]).unwrap();
        assert_eq!(again.hash(), scenario.hash(), "{learner:?}");
    }
}

#[test]
fn a_wrong_key_is_refused_with_field_value_and_expectation() {
    for (overrides, expected) in [
        (vec!["learning.optimiser=momentum"], "learning.momentum = 0, expected more than 0"),
        (vec!["learning.optimiser=adam"], "learning.optimiser: \"adam\" is wrong"),
        (vec!["learning.adamw.beta1=1"], "learning.adamw.beta1 = 1, expected 0 to 0.9999"),
        (vec!["learning.adamw.epsilon=0"], "learning.adamw.epsilon = 0, expected"),
        (vec!["learning.clip=-1"], "learning.clip = -1, expected 0 to"),
        (
            vec!["learning.exchange_bits=4"],
            "learning.exchange_bits: 4 is wrong: expected 32, 16 or 8",
        ),
        (vec!["learning.trainable={lora=0}"], "learning.trainable.lora = 0, expected 1 to 1024"),
        (vec!["learning.trainable=some"], "learning.trainable: \"some\" is wrong"),
        (vec!["learning.lora_scale=nan"], "learning.lora_scale = NaN, expected 0 to 1000"),
    ] {
        let said = load(&overrides).unwrap_err();
        assert!(said.contains(expected), "{overrides:?}: {said}");
    }
    let profile = |text: &str| {
        let said = Scenario::load("profile-smolvla", &[text.to_owned()]).unwrap_err();
        said.to_string()
    };
    assert!(profile("learning.trainable={lora=4}").contains("\"all\" in a profile scenario"));
}
