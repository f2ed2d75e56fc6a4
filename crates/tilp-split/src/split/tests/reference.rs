//! The whole policy against PyTorch.

use safetensors::SafeTensors;

use super::*;

const FILE: &[u8] = include_bytes!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/reference/policy_gradients.safetensors"
));

fn floats(name: &str) -> Vec<f32> {
    let file = SafeTensors::deserialize(FILE).unwrap();
    let tensor = file.tensor(name).unwrap();
    tensor.data().as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

fn compare(name: &str, ours: &[f32], expected: &[f32]) {
    assert_eq!(ours.len(), expected.len(), "{name}");
    let most = expected.iter().fold(0.0f32, |most, value| most.max(value.abs()));
    for (a, b) in ours.iter().zip(expected) {
        // The reference is in double precision: what is left is our own rounding.
        assert!((a - b).abs() < 2e-5 * most.max(1e-2), "{name}: {a}, PyTorch {b}");
    }
}

#[test]
fn outputs_loss_and_all_gradients_agree_with_pytorch() {
    let (policy, weights) = Policy::from_safetensors(FILE).unwrap();
    let mut workspace = policy.workspace();
    let outputs = policy.forward(1..=8, &weights, &floats("observations"), &mut workspace).to_vec();
    compare("outputs", &outputs, &floats("outputs"));
    let mut flow = Vec::new();
    let loss = policy.loss(&outputs, &floats("targets"), &mut flow);
    compare("loss", &[loss as f32], &floats("loss"));
    let mut gradients = Weights::zeros(&policy);
    policy.backward(1..=8, &weights, &flow, &mut workspace, &mut gradients);
    for layer in 1..=8 {
        for tensor in policy.tensors(layer) {
            let range = tensor.offset..tensor.offset + tensor.n_elements();
            let expected = floats(&format!("gradient/{}", tensor.name));
            compare(&tensor.name, &gradients.layer(layer)[range], &expected);
        }
    }
}

#[test]
fn the_gradient_handed_over_at_any_cut_gives_the_gradients_of_the_whole() {
    let (policy, weights) = Policy::from_safetensors(FILE).unwrap();
    let (observations, targets) = (floats("observations"), floats("targets"));
    let gradients_at = |cut: usize| {
        let (mut front, mut back) = (policy.workspace(), policy.workspace());
        let mut gradients = Weights::zeros(&policy);
        let mut flow = Vec::new();
        let middle = policy.forward(1..=cut, &weights, &observations, &mut front).to_vec();
        let outputs = policy.forward(cut + 1..=8, &weights, &middle, &mut back);
        policy.loss(outputs, &targets, &mut flow);
        let range = cut + 1..=8;
        let handed = policy.backward(range, &weights, &flow, &mut back, &mut gradients).to_vec();
        policy.backward(1..=cut, &weights, &handed, &mut front, &mut gradients);
        gradients
    };
    let first = gradients_at(1);
    assert!((2..=7).all(|cut| gradients_at(cut) == first));
}
