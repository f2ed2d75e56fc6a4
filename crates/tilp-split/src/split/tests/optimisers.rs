//! Optimisers, clipping, and optimiser state at an aggregation.

use safetensors::SafeTensors;

use super::*;
use crate::split::engine::Outcome;

const POLICY: &[u8] = include_bytes!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/reference/policy_gradients.safetensors"
));
const TRAINED: &[u8] =
    include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference/optimisers.safetensors"));

fn floats(file: &[u8], name: &str) -> Vec<f32> {
    let file = SafeTensors::deserialize(file).unwrap();
    let tensor = file.tensor(name).unwrap();
    tensor.data().as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

/// The cut of the reference.
const CUT: usize = 4;

/// One terminal that has the batch of the reference, trained like a case of it.
fn trained(optimiser: Optimiser, rate: f32, clip: f32) -> (Vec<Outcome>, Weights) {
    let (policy, base) = Policy::from_safetensors(POLICY).unwrap();
    let (observations, targets) = (floats(POLICY, "observations"), floats(POLICY, "targets"));
    let mut data = Dataset::new(40, 4);
    for (observation, target) in observations.chunks(40).zip(targets.chunks(4)) {
        data.push(observation, target);
    }
    let samples = data.len();
    let (server_rate, client_rate) = (rate, rate);
    let settings = Settings { samples, optimiser, clip, server_rate, client_rate, ..settings() };
    let mut engine = Engine::new(Arc::new(policy), settings, &base, &[Arc::new(data)]);
    let rounds = (0..10).map(|round| {
        let all = all_at(&engine, CUT, 0.0);
        engine.round(round, &all).unwrap()[0]
    });
    let outcomes = rounds.collect();
    (outcomes, engine.virtual_mean())
}

fn near(name: &str, ours: f64, expected: f32, tolerance: f64) {
    let expected = f64::from(expected);
    assert!((ours - expected).abs() < tolerance, "{name}: {ours}, PyTorch {expected}");
}

/// The reference is in double precision. What is left is our rounding, which ten steps carry on;
/// AdamW divides by the size of a gradient and so makes the rounding of small ones visible.
fn agrees_with_pytorch(case: &str, optimiser: Optimiser, rate: f32, clip: f32, tolerance: f64) {
    let (outcomes, weights) = trained(optimiser, rate, clip);
    let losses = floats(TRAINED, &format!("{case}/losses"));
    let norms = floats(TRAINED, &format!("{case}/norms"));
    for (round, outcome) in outcomes.iter().enumerate() {
        let name = format!("{case}, round {round}");
        near(&name, outcome.loss, losses[round], 2e-5);
        let [front, back] = [norms[2 * round], norms[2 * round + 1]];
        near(&name, outcome.client_gradient_norm, front, 1e-4 * f64::from(front));
        near(&name, outcome.server_gradient_norm, back, 1e-4 * f64::from(back));
    }
    let (policy, base) = Policy::from_safetensors(POLICY).unwrap();
    for layer in [1, 3, 5, 8] {
        for tensor in policy.tensors(layer) {
            let expected = floats(TRAINED, &format!("{case}/{}", tensor.name));
            let ours = &weights.layer(layer)[tensor.offset..][..tensor.n_elements()];
            let before = &base.layer(layer)[tensor.offset..][..tensor.n_elements()];
            for (ours, expected) in ours.iter().zip(&expected) {
                near(&format!("{case}, {}", tensor.name), f64::from(*ours), *expected, tolerance);
            }
            assert_ne!(before, ours, "{case}, {} was trained", tensor.name);
        }
    }
}

#[test]
fn split_training_with_plain_descent_agrees_with_pytorch() {
    agrees_with_pytorch("sgd", momentum(0.0), 0.01, 0.0, 2e-6);
    agrees_with_pytorch("sgd_clipped", momentum(0.0), 0.01, 0.5, 2e-6);
}

#[test]
fn split_training_with_momentum_agrees_with_pytorch() {
    agrees_with_pytorch("momentum", momentum(0.9), 0.003, 0.0, 2e-6);
}

#[test]
fn split_training_with_adamw_agrees_with_pytorch() {
    agrees_with_pytorch("adamw", adamw(), 1e-3, 0.0, 2e-5);
    agrees_with_pytorch("adamw_clipped", adamw(), 1e-3, 0.5, 2e-5);
}

#[test]
fn a_terminal_that_keeps_its_state_trains_as_if_there_had_been_no_aggregation() {
    let settings =
        Settings { optimiser: adamw(), server_rate: 1e-3, client_rate: 1e-3, ..settings() };
    let keep = Settings { state_at_aggregation: StateAtAggregation::Keep, ..settings };
    let run = |settings: Settings, aggregate: bool| {
        let mut engine = engine(thin_policy(), settings, &[40]);
        for round in 0..8 {
            engine.round(round, &all_at(&engine, 3, 0.0)).unwrap();
            if aggregate {
                engine.aggregate(&ids(&[0])).unwrap();
            }
        }
        engine.virtual_mean()
    };
    assert_eq!(run(keep, true), run(settings, false));
    assert!(distance(&run(settings, true), &run(settings, false)) > 1e-4);
}

#[test]
fn copies_that_the_server_keeps_go_on_with_their_state_too() {
    use crate::split::engine::Copies;
    let settings =
        Settings { optimiser: adamw(), server_rate: 1e-3, client_rate: 1e-3, ..settings() };
    let keep = Settings { state_at_aggregation: StateAtAggregation::Keep, ..settings };
    // The server keeps layers 4 and 5 of the terminal, and one edge server layer 6.
    let copies = Copies { own: 5, edge: 6, n_edges: 1 };
    let run = |settings: Settings, aggregate: bool| {
        let mut engine = engine(thin_policy(), settings, &[40]);
        for round in 0..6 {
            engine.round_with(round, &all_at(&engine, 3, 0.0), copies).unwrap();
            if aggregate {
                engine.aggregate_front(copies.own, &ids(&[0])).unwrap();
                engine.aggregate_edges(copies).unwrap();
            }
        }
        engine.virtual_mean()
    };
    assert_eq!(run(keep, true), run(settings, false));
    assert_ne!(run(settings, true), run(settings, false));
}

#[test]
fn the_server_clips_the_mean_of_its_gradients_and_a_terminal_its_own() {
    let clip = 0.25;
    let plain = Settings { server_rate: 1.0, client_rate: 1.0, ..settings() };
    let run = |settings: Settings| {
        let mut engine = engine(thin_policy(), settings, &[40, 9, 30]);
        let base = engine.server().weights().clone();
        let mut all = all_at(&engine, 3, 0.0);
        all[1].cut = 5;
        let outcomes = engine.round(0, &all).unwrap();
        let step = |to: &Weights, layers: std::ops::RangeInclusive<usize>| {
            let mut change = Weights::zeros(engine.model());
            for layer in layers.clone() {
                let pairs = base.layer(layer).iter().zip(to.layer(layer));
                *change.layer_mut(layer) = pairs.map(|(old, new)| old - new).collect();
            }
            change.norm(layers)
        };
        let server = step(engine.server().weights(), 4..=8);
        let terminals = [(0, 3), (1, 5), (2, 3)];
        let fronts = terminals.map(|(id, cut)| step(&own_weights(&engine, id), 1..=cut));
        (outcomes, server, fronts)
    };
    let (free, free_server, free_fronts) = run(plain);
    let (outcomes, server, fronts) = run(Settings { clip, ..plain });
    assert!(free_server > 0.3 && free_fronts.iter().all(|step| *step > 0.3), "{free_fronts:?}");
    for step in fronts.into_iter().chain([server]) {
        assert!((step - f64::from(clip)).abs() < 1e-4, "{step}");
    }
    // Norms are reported as they are before clipping.
    assert_eq!(free, outcomes);
}
