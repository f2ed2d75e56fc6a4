//! The robot policy: a pyramid transformer, so that a deeper cut has a smaller activation.
//!
//! Layer 1 embeds the observation as tokens, layers 2 to `blocks + 1` are transformer blocks, of
//! which some also merge their tokens in pairs, and the last layer maps all tokens to an action.

mod adapters;
mod architecture;
mod file;
mod infer;
mod layers;
mod profile;

pub use crate::nn::adapter::Lora;
pub use architecture::{Architecture, ArchitectureError};
pub use file::PolicyFileError;
pub use layers::Workspace;

use std::ops::RangeInclusive;

use rand_distr::{Distribution, StandardNormal};

use super::model::{CutProfile, SplitModel, Weights};
use super::optimiser::Optimiser;
use crate::nn::loss::weighted_squared_error;
use crate::rng::Seed;
use adapters::Adapters;
use infer::Pool;
use layers::Layer;

/// A tensor inside the flat parameters of a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// Full name, such as `layer2.up.weight`.
    pub name: String,
    /// Sizes, the slowest index first.
    pub shape: Vec<usize>,
    /// Where it starts in the layer.
    pub offset: usize,
}

impl Tensor {
    /// Number of elements.
    pub fn n_elements(&self) -> usize {
        self.shape.iter().product()
    }
}

/// The transformer policy: an architecture without weights.
#[derive(Clone, Debug)]
pub struct Policy {
    architecture: Architecture,
    layers: Vec<Layer>,
    adapters: Option<Adapters>,
    pool: Pool,
}

impl Policy {
    /// A policy of this architecture, if it is sound.
    pub fn new(architecture: Architecture) -> Result<Self, ArchitectureError> {
        architecture.check()?;
        let layers = Layer::all(&architecture);
        Ok(Self { architecture, layers, adapters: None, pool: Pool::default() })
    }

    /// The architecture.
    pub fn architecture(&self) -> &Architecture {
        &self.architecture
    }

    /// Number of parameters of all layers, frozen ones included.
    pub fn n_parameters_total(&self) -> usize {
        self.layers.iter().map(Layer::n_parameters).sum()
    }

    /// The named tensors of a layer in the order of storage.
    pub fn tensors(&self, layer: usize) -> Vec<Tensor> {
        let mut offset = 0;
        let named = self.layers[layer - 1].tensors();
        named
            .into_iter()
            .map(|(name, shape)| {
                let tensor = Tensor { name: format!("layer{layer}.{name}"), shape, offset };
                offset += tensor.n_elements();
                tensor
            })
            .collect()
    }

    fn fill(&self, tensor: &Tensor, values: &mut [f32], rng: &mut crate::rng::Rng) {
        let deviation = if tensor.name.ends_with("gain") {
            return values.fill(1.0);
        } else if tensor.name == "layer1.bias" {
            0.1 // positions: large enough to distinguish the tokens
        } else if tensor.name.ends_with("bias") || tensor.name.ends_with("offset") {
            return values.fill(0.0);
        } else {
            let inputs = *tensor.shape.last().expect("a tensor has a shape") as f32;
            // What is added to the residual path shrinks with its depth.
            let residual =
                tensor.name.ends_with("output.weight") || tensor.name.ends_with("down.weight");
            let depth = if residual { 2.0 * self.architecture.blocks as f32 } else { 1.0 };
            1.0 / (inputs * depth).sqrt()
        };
        for value in values {
            let normal: f32 = StandardNormal.sample(rng);
            *value = deviation * normal;
        }
    }
}

impl SplitModel for Policy {
    type Workspace = Workspace;

    fn n_layers(&self) -> usize {
        self.layers.len()
    }

    /// Trained parameters: with adapters only theirs.
    fn n_parameters(&self, layer: usize) -> usize {
        match &self.adapters {
            None => self.layers[layer - 1].n_parameters(),
            Some(adapters) => adapters.n_parameters(layer),
        }
    }

    fn n_elements(&self, layer: usize) -> usize {
        match layer {
            0 => self.architecture.observation_width(),
            _ => self.layers[layer - 1].n_elements(),
        }
    }

    fn cuts(&self) -> &[usize] {
        &self.architecture.cuts
    }

    fn initial(&self, seed: Seed) -> Weights {
        if let Some(adapters) = &self.adapters {
            return adapters.initial(seed);
        }
        let mut weights = Weights::zeros(self);
        for layer in 1..=self.n_layers() {
            let mut rng = seed.named("policy/initial").at(layer as u64).rng();
            for tensor in self.tensors(layer) {
                let range = tensor.offset..tensor.offset + tensor.n_elements();
                self.fill(&tensor, &mut weights.layer_mut(layer)[range], &mut rng);
            }
        }
        weights
    }

    fn workspace(&self) -> Workspace {
        Workspace::new(&self.layers)
    }

    fn forward<'w>(
        &self,
        layers: RangeInclusive<usize>,
        weights: &Weights,
        input: &[f32],
        workspace: &'w mut Workspace,
    ) -> &'w [f32] {
        let samples = input.len() / self.n_elements(layers.start() - 1);
        workspace.forward(self, layers, weights, input, samples)
    }

    fn backward<'w>(
        &self,
        layers: RangeInclusive<usize>,
        weights: &Weights,
        output_gradient: &[f32],
        workspace: &'w mut Workspace,
        gradients: &mut Weights,
    ) -> &'w [f32] {
        let samples = output_gradient.len() / self.n_elements(*layers.end());
        workspace.backward(self, layers, weights, output_gradient, samples, gradients)
    }

    fn loss(&self, outputs: &[f32], targets: &[f32], gradient: &mut Vec<f32>) -> f64 {
        weighted_squared_error(&self.architecture.loss_weights, outputs, targets, gradient)
    }

    fn profile(&self, cut: usize, samples: usize, optimiser: Optimiser) -> CutProfile {
        profile::profile(self, cut, samples, optimiser)
    }
}
