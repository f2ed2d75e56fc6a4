//! The copies of an edge server: shared by the terminals of its group, apart from the others'.

use super::engine::Settings;
use super::model::Weights;
use super::server::{Server, server_gradient, step};

/// One edge server's copies of the layers of its tier.
#[derive(Clone, Debug)]
pub struct Edge {
    pub(super) weights: Weights,
    pub(super) velocity: Weights,
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
            velocity: Weights::empty(n_layers),
            served: vec![0; n_layers],
            holds: vec![false; n_layers],
        }
    }

    /// Takes over from the server what it lacks of these layers.
    pub(super) fn adopt(&mut self, server: &Server, layers: std::ops::RangeInclusive<usize>) {
        for layer in layers.filter(|layer| !self.holds[layer - 1]).collect::<Vec<_>>() {
            *self.weights.layer_mut(layer) = server.weights.layer(layer).to_vec();
            self.velocity.layer_mut(layer).clear();
            self.holds[layer - 1] = true;
        }
    }

    /// One step of its copies up to layer `last`, with the gradients of the terminals it served.
    pub(super) fn update(
        &mut self,
        settings: &Settings,
        last: usize,
        seats: &[(usize, usize, &Weights)],
    ) {
        for layer in 1..=last {
            let Some(mean) = server_gradient(layer, seats) else { continue };
            let (parameters, speed) =
                (self.weights.layer_mut(layer), self.velocity.layer_mut(layer));
            step(parameters, &mean, speed, settings.server_rate, settings.momentum);
            let below = seats.iter().filter(|(cut, _, _)| *cut < layer);
            self.served[layer - 1] += below.map(|(_, samples, _)| *samples as u64).sum::<u64>();
        }
    }

    /// These layers have been averaged: nothing of them is current any more.
    pub(super) fn forget(&mut self, layers: std::ops::RangeInclusive<usize>) {
        for layer in layers {
            self.served[layer - 1] = 0;
            self.holds[layer - 1] = false;
        }
    }
}
