//! A policy of which only low-rank adapters are trained.
//!
//! As a [`SplitModel`] such a policy has the parameters of the adapters only: they are trained,
//! kept with optimiser state, exchanged and averaged. The base policy under them is part of the
//! model, is never exchanged, and is the same on the server and on every terminal.

use std::sync::Arc;

use rand_distr::{Distribution, StandardNormal};

use super::{Policy, Tensor};
use crate::nn::adapter::{Adapter, Lora};
use crate::nn::linear::Linear;
use crate::rng::Seed;
use crate::split::model::{SplitModel, Weights};

/// Adapters over a frozen base.
#[derive(Clone, Debug)]
pub(super) struct Adapters {
    pub(super) lora: Lora,
    base: Arc<Weights>,
    /// Of every layer, the adapters with the place of their weight in the layer.
    places: Vec<Vec<(usize, Adapter)>>,
}

impl Policy {
    /// The same policy with adapters on the linear layers of blocks, merges and head over these
    /// weights. The embedding, biases and normalisations stay as they are. Sizes and costs do not
    /// depend on the base; it may be empty if nothing else is asked.
    pub fn with_adapters(self, lora: Lora, base: Arc<Weights>) -> Self {
        let places = |layer: usize| {
            let linears = self.tensors(layer).into_iter().filter(|_| layer > 1);
            let linears = linears.filter_map(|tensor| place(&tensor, lora));
            linears.collect()
        };
        let places = (1..=self.n_layers()).map(places).collect();
        Self { adapters: Some(Adapters { lora, base, places }), ..self }
    }

    /// Rank and scale of its adapters, and the frozen base under them; `None` if all parameters
    /// are trained.
    pub fn adapters(&self) -> Option<(Lora, &Arc<Weights>)> {
        self.adapters.as_ref().map(|adapters| (adapters.lora, &adapters.base))
    }

    /// The same policy without adapters.
    pub fn without_adapters(&self) -> Self {
        Self { adapters: None, ..self.clone() }
    }

    /// The weights that are deployed: those of adapters become those of the whole policy.
    pub fn deployed(&self, weights: &Weights) -> Weights {
        let Some(adapters) = &self.adapters else { return weights.clone() };
        let mut scratch = Vec::new();
        let layer = |layer: usize| {
            let mut whole = Vec::new();
            adapters.merge(layer, weights.layer(layer), &mut whole, &mut scratch);
            whole
        };
        Weights::new((1..=self.n_layers()).map(layer).collect())
    }
}

/// Place of the weight of a linear layer, with its adapter; `None` for other tensors.
fn place(tensor: &Tensor, lora: Lora) -> Option<(usize, Adapter)> {
    let &[outputs, inputs] = &tensor.shape[..] else { return None };
    let linear = Linear { inputs, outputs };
    tensor.name.ends_with("weight").then_some((tensor.offset, Adapter { linear, lora }))
}

impl Adapters {
    /// The adapters of a layer.
    pub(super) fn of(&self, layer: usize) -> impl Iterator<Item = Adapter> + '_ {
        self.places[layer - 1].iter().map(|(_, adapter)| *adapter)
    }

    /// Trained parameters of a layer.
    pub(super) fn n_parameters(&self, layer: usize) -> usize {
        self.of(layer).map(Adapter::n_parameters).sum()
    }

    /// The parameters of the whole layer, from those of its adapters.
    pub(super) fn merge(
        &self,
        layer: usize,
        mut parameters: &[f32],
        whole: &mut Vec<f32>,
        scratch: &mut Vec<f32>,
    ) {
        whole.clear();
        whole.extend_from_slice(self.base.layer(layer));
        for (offset, adapter) in &self.places[layer - 1] {
            let (own, rest) = parameters.split_at(adapter.n_parameters());
            parameters = rest;
            adapter.merge(own, &mut whole[*offset..][..adapter.linear.n_products()], scratch);
        }
    }

    /// Fresh adapters: `A` at random, `B` zero, so that the policy is its base.
    pub(super) fn initial(&self, seed: Seed) -> Weights {
        let layer = |layer: usize| {
            let mut rng = seed.named("policy/adapters").at(layer as u64).rng();
            let mut values = Vec::with_capacity(self.n_parameters(layer));
            for adapter in self.of(layer) {
                let Linear { inputs, outputs } = adapter.linear;
                let deviation = 1.0 / (inputs as f32).sqrt();
                let down = (0..adapter.lora.rank * inputs).map(|_| {
                    let normal: f32 = StandardNormal.sample(&mut rng);
                    deviation * normal
                });
                values.extend(down);
                values.resize(values.len() + adapter.lora.rank * outputs, 0.0);
            }
            values
        };
        Weights::new((1..=self.places.len()).map(layer).collect())
    }
}
