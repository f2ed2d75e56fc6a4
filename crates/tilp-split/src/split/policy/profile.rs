//! Costs of a cut, computed from the architecture.

use super::Policy;
use crate::split::model::{CutProfile, SplitModel};
use crate::split::optimiser::Optimiser;
use crate::units::{Bytes, Operations};

const BYTES_PER_NUMBER: usize = 4;
/// A multiplication and an addition.
const OPERATIONS_PER_PRODUCT: f64 = 2.0;

pub(super) fn profile(
    policy: &Policy,
    cut: usize,
    samples: usize,
    optimiser: Optimiser,
) -> CutProfile {
    let layers = &policy.layers[..cut];
    let trained: usize = (1..=cut).map(|layer| policy.n_parameters(layer)).sum();
    let outputs: usize = (0..=cut).map(|layer| policy.n_elements(layer) * samples).sum();
    let cached: usize = layers.iter().map(|layer| layer.n_cached(samples)).sum();
    let copies = 2 + optimiser.state_per_parameter(); // parameters, gradients, state
    let frozen = n_frozen(policy, cut);
    CutProfile {
        cut,
        activation_elements: policy.n_elements(cut),
        operations: Operations(OPERATIONS_PER_PRODUCT * n_products(policy, cut, samples)),
        parameters: Bytes((BYTES_PER_NUMBER * trained) as u64),
        memory: Bytes((BYTES_PER_NUMBER * (frozen + copies * trained + outputs + cached)) as u64),
    }
}

/// Multiply-adds of forward and backward pass of layers 1 to `cut`, per sample. The gradients of
/// input and parameters of a matrix product cost as much as the product each. With adapters there is
/// no gradient of a whole weight, nor any of the embedding; adapters have gradients of their own, and
/// are merged twice a minibatch.
fn n_products(policy: &Policy, cut: usize, samples: usize) -> f64 {
    let forward: usize = policy.layers[..cut].iter().map(|layer| layer.n_products()).sum();
    let Some(adapters) = &policy.adapters else { return (3 * forward) as f64 };
    let embedding = policy.layers[0].n_products();
    let (mut own, mut merges, mut weights) = (0, 0, 0);
    for layer in 2..=cut {
        for (columns, adapter) in
            policy.layers[layer - 1].columns().into_iter().zip(adapters.of(layer))
        {
            own += columns * adapter.n_gradient_products();
            weights += columns * adapter.linear.n_products();
            merges += 2 * adapter.n_merge_products();
        }
    }
    let backward = 2 * (forward - embedding) - weights + own;
    (forward + backward) as f64 + merges as f64 / samples as f64
}

/// With adapters: the frozen parameters of layers 1 to `cut`, and one merged layer.
fn n_frozen(policy: &Policy, cut: usize) -> usize {
    if policy.adapters.is_none() {
        return 0;
    }
    let sizes = || policy.layers[..cut].iter().map(|layer| layer.n_parameters());
    sizes().sum::<usize>() + sizes().max().unwrap_or(0)
}
