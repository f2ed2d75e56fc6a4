//! What a cut costs, computed from the architecture.

use super::Policy;
use crate::split::model::{CutProfile, SplitModel};
use crate::split::optimiser::Optimiser;
use crate::units::{Bytes, Operations};

const BYTES_PER_NUMBER: usize = 4;
/// A multiply-add counts two, and backward costs twice forward.
const OPERATIONS_PER_PRODUCT: usize = 2 * 3;

pub(super) fn profile(
    policy: &Policy,
    cut: usize,
    samples: usize,
    optimiser: Optimiser,
) -> CutProfile {
    let layers = &policy.layers[..cut];
    let products: usize = layers.iter().map(|layer| layer.n_products()).sum();
    let parameters: usize = layers.iter().map(|layer| layer.n_parameters()).sum();
    let outputs: usize = (0..=cut).map(|layer| policy.n_elements(layer) * samples).sum();
    let cached: usize = layers.iter().map(|layer| layer.n_cached(samples)).sum();
    let copies = 2 + optimiser.state_per_parameter(); // parameters, gradients, state
    CutProfile {
        cut,
        activation_elements: policy.n_elements(cut),
        operations: Operations((OPERATIONS_PER_PRODUCT * products) as f64),
        parameters: Bytes((BYTES_PER_NUMBER * parameters) as u64),
        memory: Bytes((BYTES_PER_NUMBER * (copies * parameters + outputs + cached)) as u64),
    }
}
