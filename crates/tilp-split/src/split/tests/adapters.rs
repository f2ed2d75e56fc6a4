//! Training of low-rank adapters over a frozen base.

use super::*;
use crate::split::central::Trainer;

const LORA: Lora = Lora { rank: 3, scale: 0.5 };

/// Adapters whose second matrices are not zero, as after some training.
fn moved(policy: &Policy) -> Weights {
    let mut weights = policy.initial(Seed::new(6));
    for (layer, parameters) in weights.layers_mut().iter_mut().enumerate() {
        let noise = values(parameters.len(), 40 + layer as u32);
        parameters.iter_mut().zip(noise).for_each(|(value, noise)| *value += 0.2 * noise);
    }
    weights
}

fn loss(policy: &Policy, weights: &Weights, observations: &[f32], targets: &[f32]) -> f64 {
    let mut workspace = policy.workspace();
    let outputs = policy.forward(1..=8, weights, observations, &mut workspace);
    policy.loss(outputs, targets, &mut Vec::new())
}

fn gradients(policy: &Policy, weights: &Weights, x: &[f32], targets: &[f32]) -> Weights {
    let (mut workspace, mut gradients) = (policy.workspace(), Weights::zeros(policy));
    let mut flow = Vec::new();
    let outputs = policy.forward(1..=8, weights, x, &mut workspace);
    policy.loss(outputs, targets, &mut flow);
    policy.backward(1..=8, weights, &flow, &mut workspace, &mut gradients);
    gradients
}

#[test]
fn adapters_of_the_whole_policy_agree_with_finite_differences() {
    let policy = adapted(thin_policy(), LORA);
    let weights = moved(&policy);
    let (x, targets) = (values(9 * 12, 8), values(9 * 4, 9));
    let gradients = gradients(&policy, &weights, &x, &targets);
    assert!(gradients.layer(1).is_empty(), "the embedding is frozen");
    let step = 1e-3f32;
    for layer in 2..=8 {
        // Along the gradient itself the difference is largest and rounding matters least.
        let norm = gradients.norm(layer..=layer);
        let at = |sign: f32| {
            let mut moved = weights.clone();
            let pairs = moved.layer_mut(layer).iter_mut().zip(gradients.layer(layer));
            pairs.for_each(|(value, slope)| *value += sign * step * slope / norm as f32);
            loss(&policy, &moved, &x, &targets)
        };
        let difference = (at(1.0) - at(-1.0)) / (2.0 * f64::from(step));
        assert!((difference - norm).abs() < 0.01 * norm, "layer {layer}: {difference}, {norm}");
    }
}

#[test]
fn the_gradient_of_adapters_follows_from_that_of_the_whole_weights() {
    let policy = adapted(thin_policy(), LORA);
    let (plain, weights) = (policy.without_adapters(), moved(&policy));
    let whole = policy.deployed(&weights);
    let (x, targets) = (values(9 * 12, 8), values(9 * 4, 9));
    let ours = gradients(&policy, &weights, &x, &targets);
    let of_whole = gradients(&plain, &whole, &x, &targets);
    for layer in 2..=8 {
        let mut at = 0;
        for tensor in plain.tensors(layer).iter().filter(|one| one.shape.len() == 2) {
            let (outputs, inputs) = (tensor.shape[0], tensor.shape[1]);
            let slopes = &of_whole.layer(layer)[tensor.offset..][..outputs * inputs];
            let length = LORA.rank * (inputs + outputs);
            let (a, b) = weights.layer(layer)[at..at + length].split_at(LORA.rank * inputs);
            let (da, db) = ours.layer(layer)[at..at + length].split_at(LORA.rank * inputs);
            at += length;
            let near = |found: f32, sum: f64| {
                let expected = f64::from(LORA.scale) * sum;
                let wide = 1e-5 + 1e-4 * expected.abs();
                assert!((f64::from(found) - expected).abs() < wide, "{}: {found}", tensor.name);
            };
            let times = |left: f32, right: f32| f64::from(left) * f64::from(right);
            for row in 0..LORA.rank {
                for i in 0..inputs {
                    let terms =
                        (0..outputs).map(|o| times(b[o * LORA.rank + row], slopes[o * inputs + i]));
                    near(da[row * inputs + i], terms.sum());
                }
                for o in 0..outputs {
                    let terms =
                        (0..inputs).map(|i| times(slopes[o * inputs + i], a[row * inputs + i]));
                    near(db[o * LORA.rank + row], terms.sum());
                }
            }
        }
        assert_eq!(at, policy.n_parameters(layer), "layer {layer}");
    }
}

#[test]
fn the_deployed_policy_is_the_base_plus_the_way_through_the_adapters() {
    let policy = adapted(thin_policy(), LORA);
    let (plain, weights) = (policy.without_adapters(), moved(&policy));
    let whole = policy.deployed(&weights);
    let x = values(9 * 12, 8);
    let (mut ours, mut deployed) = (vec![0.0; 36], vec![0.0; 36]);
    policy.act(&weights, &x, &mut ours);
    plain.act(&whole, &x, &mut deployed);
    assert_eq!(ours, deployed);
    // Every weight, and nothing else, is the base plus scale times B A.
    let base = thin_policy().initial(Seed::new(4));
    for layer in 1..=8 {
        let mut at = 0;
        for tensor in plain.tensors(layer) {
            let range = tensor.offset..tensor.offset + tensor.n_elements();
            let (old, new) = (&base.layer(layer)[range.clone()], &whole.layer(layer)[range]);
            if layer == 1 || tensor.shape.len() != 2 {
                assert_eq!(old, new, "{} is frozen", tensor.name);
                continue;
            }
            let (outputs, inputs) = (tensor.shape[0], tensor.shape[1]);
            let length = LORA.rank * (inputs + outputs);
            let (a, b) = weights.layer(layer)[at..at + length].split_at(LORA.rank * inputs);
            at += length;
            for place in 0..outputs * inputs {
                let (o, i) = (place / inputs, place % inputs);
                let low = (0..LORA.rank)
                    .map(|r| f64::from(b[o * LORA.rank + r]) * f64::from(a[r * inputs + i]));
                let expected = f64::from(old[place]) + f64::from(LORA.scale) * low.sum::<f64>();
                assert!((f64::from(new[place]) - expected).abs() < 1e-6, "{}", tensor.name);
            }
            assert_ne!(old, new, "{} is adapted", tensor.name);
        }
    }
}

#[test]
fn fresh_adapters_are_the_base_policy() {
    let policy = adapted(policy(), Lora { rank: 4, scale: 1.0 });
    let weights = policy.initial(Seed::new(9));
    let (plain, base) = (super::policy(), super::policy().initial(Seed::new(4)));
    let x = values(5 * 60, 8);
    let (mut ours, mut expected) = (vec![0.0; 20], vec![0.0; 20]);
    policy.act(&weights, &x, &mut ours);
    plain.act(&base, &x, &mut expected);
    assert_eq!(ours, expected);
    assert_eq!(policy.deployed(&weights), base);
}

#[test]
fn adapters_learn_and_are_all_that_is_exchanged() {
    let (optimiser, server_rate, client_rate) = (adamw(), 5e-3, 5e-3);
    let settings = Settings { optimiser, server_rate, client_rate, ..settings() };
    let mut engine = engine(adapted(thin_policy(), LORA), settings, &[40, 40]);
    let mut losses = Vec::new();
    for round in 0..60 {
        let outcomes = engine.round(round, &all_at(&engine, 3, 0.0)).unwrap();
        losses.push(crate::split::engine::training_loss(&outcomes));
        // Layers 2 and 3 of width 8: 3 (64 + 3 16 + 2 24) parameters and twice that less a merge.
        let block = 3 * (8 + 24 + 8 + 8 + 8 + 16 + 16 + 8);
        let merge = 3 * (16 + 8);
        let copy = 20 + 4 * (2 * block + merge);
        assert_eq!(engine.pending_bytes(TerminalId(0)).unwrap().0, copy);
        engine.aggregate(&everybody(&engine)).unwrap();
        assert_eq!(engine.missing_bytes(TerminalId(1), 3).unwrap().0, copy);
    }
    let mean = |losses: &[f64]| losses.iter().sum::<f64>() / losses.len() as f64;
    assert!(mean(&losses[50..]) < 0.5 * mean(&losses[..5]), "{losses:?}");
}

#[test]
fn a_terminal_at_the_last_layer_trains_all_adapters() {
    let policy = adapted(thin_policy(), LORA);
    let mut alone = engine(policy.clone(), settings(), &[40]);
    let base = alone.server().weights().clone();
    let mut whole = Trainer::by(&policy, base, settings().optimiser, 0.05);
    for round in 0..5 {
        let batch = union_batch(&alone, &[0], round);
        alone.round(round, &all_at(&alone, 8, 0.0)).unwrap();
        whole.step(&batch.observations, &batch.actions);
        alone.aggregate(&ids(&[0])).unwrap();
    }
    assert_eq!(alone.server().weights(), whole.weights());
}

#[test]
fn work_and_memory_of_adapters_are_counted_one_by_one() {
    let (plain, lora) = (policy(), Lora { rank: 4, scale: 1.0 });
    let policy = adapted(policy(), lora);
    let weights = policy.initial(Seed::new(1));
    let samples = 16;
    for cut in 1..=8 {
        let mut workspace = policy.workspace();
        policy.forward(1..=cut, &weights, &values(samples * 60, 8), &mut workspace);
        let frozen: usize = (1..=cut).map(|layer| plain.n_parameters(layer)).sum();
        let merged = (1..=cut).map(|layer| plain.n_parameters(layer)).max().unwrap();
        let trained: usize = (1..=cut).map(|layer| weights.layer(layer).len()).sum();
        let floats = frozen + merged + 4 * trained + workspace.n_cached(cut);
        let profile = policy.profile(cut, samples, adamw());
        assert_eq!(profile.memory.0, 4 * floats as u64, "cut {cut}");
        assert_eq!(profile.parameters.0, 4 * trained as u64);
        assert_eq!(profile.activation_elements, plain.n_elements(cut));
    }
    // Layer 2 by hand: 12 tokens, linear layers 32 to 96, 32 to 32, 32 to 64, 64 to 32.
    let linears = [(32, 96), (32, 32), (32, 64), (64, 32)];
    let weights: usize = linears.iter().map(|(i, o)| i * o).sum();
    let low: usize = linears.iter().map(|(i, o)| 4 * (i + o)).sum();
    let (embedding, attention) = (60 * 32, 2 * 12 * 12 * 32);
    let per_sample = embedding + 12 * 2 * weights + 3 * attention + 12 * 2 * low;
    let merges = 2.0 * 4.0 * weights as f64 / samples as f64;
    let expected = 2.0 * (per_sample as f64 + merges);
    assert_eq!(policy.profile(2, samples, adamw()).operations.0, expected);
    assert!(expected < plain.profile(2, samples, adamw()).operations.0);
}
