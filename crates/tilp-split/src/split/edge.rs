//! The copies of an edge server, shared by the terminals of its group.

use std::ops::RangeInclusive;

use super::engine::Settings;
use super::model::Weights;
use super::optimiser::{OptimiserState, StateAtAggregation};
use super::server::{Contribution, SharedLayers, samples_behind, server_gradients};

/// One edge server's copies of the layers of its tier.
#[derive(Clone, Debug, PartialEq)]
pub struct Edge {
    pub(super) weights: Weights,
    pub(super) optimiser: OptimiserState,
    /// Samples of the terminals served at every layer since its tier was last averaged.
    pub(super) served: Vec<u64>,
    /// Whether there is a copy of the layer at all.
    pub(super) holds: Vec<bool>,
}

impl Edge {
    /// An edge server without any copy.
    pub(super) fn new(n_layers: usize) -> Self {
        Self {
            weights: Weights::empty(n_layers),
            optimiser: OptimiserState::new(n_layers),
            served: vec![0; n_layers],
            holds: vec![false; n_layers],
        }
    }

    /// Copies the missing ones of these layers from the server.
    pub(super) fn adopt(
        &mut self,
        shared: &SharedLayers,
        layers: RangeInclusive<usize>,
        optimiser_state: StateAtAggregation,
    ) {
        for layer in layers.filter(|layer| !self.holds[layer - 1]).collect::<Vec<_>>() {
            *self.weights.layer_mut(layer) = shared.weights.layer(layer).to_vec();
            if optimiser_state == StateAtAggregation::Reset {
                self.optimiser.clear(layer);
            }
            self.holds[layer - 1] = true;
        }
    }

    /// One step of its copies up to layer `last`, with the gradients of the terminals it served.
    pub(super) fn update(
        &mut self,
        settings: &Settings,
        last: usize,
        contributions: &[Contribution<'_>],
    ) {
        let means = server_gradients(last, contributions, settings.clip);
        for (layer, mean) in (1..).zip(means) {
            let Some(mean) = mean else { continue };
            let (parameters, state) =
                (self.weights.layer_mut(layer), self.optimiser.layer_mut(layer));
            state.step(settings.optimiser, parameters, &mean, settings.server_rate);
            let served = &mut self.served[layer - 1];
            *served = served.saturating_add(samples_behind(layer, contributions));
        }
    }

    /// Drops these layers after they have been averaged.
    pub(super) fn forget(&mut self, layers: RangeInclusive<usize>) {
        for layer in layers {
            self.served[layer - 1] = 0;
            self.holds[layer - 1] = false;
        }
    }
}
