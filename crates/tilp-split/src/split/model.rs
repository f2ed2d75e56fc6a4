//! The interface between the engine and its model: numbered layers with a cut.

use std::ops::RangeInclusive;

use super::optimiser::{Optimiser, clip_factor};
use crate::nn::lanes::sum_of_squares;
use crate::nn::optimiser::scale;
use crate::rng::Seed;

pub use tilp_core::cost::CutProfile;

/// One flat vector of parameters (or of their gradients) per layer; layers count from 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Weights(Vec<Vec<f32>>);

impl Weights {
    /// From the vectors of layers 1, 2, ...
    pub fn new(layers: Vec<Vec<f32>>) -> Self {
        Self(layers)
    }

    /// Zeros in the shape of a model.
    pub fn zeros(model: &impl SplitModel) -> Self {
        Self((1..=model.n_layers()).map(|layer| vec![0.0; model.n_parameters(layer)]).collect())
    }

    /// As many layers without any content.
    pub fn empty(n_layers: usize) -> Self {
        Self(vec![Vec::new(); n_layers])
    }

    /// Number of layers.
    pub fn n_layers(&self) -> usize {
        self.0.len()
    }

    /// The parameters of one layer.
    pub fn layer(&self, layer: usize) -> &[f32] {
        &self.0[layer - 1]
    }

    /// The parameters of one layer, to be changed.
    pub fn layer_mut(&mut self, layer: usize) -> &mut Vec<f32> {
        &mut self.0[layer - 1]
    }

    /// All layers in order.
    pub fn layers(&self) -> &[Vec<f32>] {
        &self.0
    }

    /// All layers in order, to be changed.
    pub fn layers_mut(&mut self) -> &mut [Vec<f32>] {
        &mut self.0
    }

    /// Euclidean norm over a range of layers.
    pub fn norm(&self, layers: RangeInclusive<usize>) -> f64 {
        layers.map(|layer| sum_of_squares(self.layer(layer))).sum::<f64>().sqrt()
    }

    /// Scales these layers together so that their norm is at most `most`; zero for no limit.
    /// Returns the norm before.
    pub fn clip(&mut self, layers: RangeInclusive<usize>, most: f32) -> f64 {
        let norm = self.norm(layers.clone());
        if let Some(factor) = clip_factor(norm, most) {
            layers.for_each(|layer| scale(self.layer_mut(layer), factor));
        }
        norm
    }
}

/// A model that can run and differentiate any range of its layers.
///
/// Activations and gradients at a layer boundary are sample by sample.
pub trait SplitModel: Send + Sync {
    /// Buffers of one forward and backward pass, reused from call to call.
    type Workspace: Send;

    /// Number of layers, `L`.
    fn n_layers(&self) -> usize;

    /// Number of parameters of a layer.
    fn n_parameters(&self, layer: usize) -> usize;

    /// Elements per sample after a layer; after layer 0 it is the observation.
    fn n_elements(&self, layer: usize) -> usize;

    /// The cuts that a decision may choose from.
    fn cuts(&self) -> &[usize];

    /// Fresh parameters.
    fn initial(&self, seed: Seed) -> Weights;

    /// An empty workspace.
    fn workspace(&self) -> Self::Workspace;

    /// Runs a range of layers on the activation before it and returns the activation after it.
    fn forward<'w>(
        &self,
        layers: RangeInclusive<usize>,
        weights: &Weights,
        input: &[f32],
        workspace: &'w mut Self::Workspace,
    ) -> &'w [f32];

    /// After [`SplitModel::forward`] on the same range and workspace: takes the gradient of the
    /// output, overwrites the gradients of the layers, returns the gradient of the input (nothing
    /// if the range starts at layer 1).
    fn backward<'w>(
        &self,
        layers: RangeInclusive<usize>,
        weights: &Weights,
        output_gradient: &[f32],
        workspace: &'w mut Self::Workspace,
        gradients: &mut Weights,
    ) -> &'w [f32];

    /// The loss of a batch of outputs and, in `gradient`, its gradient.
    fn loss(&self, outputs: &[f32], targets: &[f32], gradient: &mut Vec<f32>) -> f64;

    /// Costs of a cut for a terminal that trains with batches of `samples` by this rule.
    fn profile(&self, cut: usize, samples: usize, optimiser: Optimiser) -> CutProfile;
}
