//! Training in one place: for the base policy and to see what the data can give.

use std::sync::Mutex;

use rayon::prelude::*;

use super::data::{Batch, Dataset};
use super::model::{SplitModel, Weights};
use super::optimiser::{Optimiser, OptimiserState};
use crate::nn::optimiser::{AdamW, descend};
use crate::rng::Seed;

/// Samples that one thread takes at a time: fixed, so that the sum of gradients does not depend
/// on the number of threads.
const SHARD: usize = 32;

/// An update rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// Gradient descent.
    Sgd {
        /// Learning rate.
        rate: f32,
        /// Momentum, zero for none.
        momentum: f32,
    },
    /// Adam.
    Adam {
        /// Learning rate.
        rate: f32,
    },
}

/// Clipping as the halves of a split model do it: layers 1 to the cut together, and the layers
/// behind it together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClipHalves {
    /// Last layer of the front half; zero or the last layer clips all layers together.
    pub cut: usize,
    /// Largest norm of the gradient of a half; zero for no limit.
    pub most: f32,
}

struct Shard<M: SplitModel> {
    workspace: M::Workspace,
    gradients: Weights,
    loss_gradient: Vec<f32>,
}

/// Centralised training of the whole model.
pub struct Trainer<'m, M: SplitModel> {
    model: &'m M,
    weights: Weights,
    optimiser: Optimiser,
    state: OptimiserState,
    rate: f32,
    clip: Option<ClipHalves>,
    idle: Mutex<Vec<Shard<M>>>,
}

impl<'m, M: SplitModel> Trainer<'m, M> {
    /// Starts from these weights.
    pub fn new(model: &'m M, weights: Weights, rule: Rule) -> Self {
        match rule {
            Rule::Sgd { rate, momentum } => {
                Self::by(model, weights, Optimiser::Sgd { momentum }, rate)
            }
            Rule::Adam { rate } => Self::by(model, weights, Optimiser::AdamW(AdamW::ADAM), rate),
        }
    }

    /// Starts from these weights with the update rule of a split engine.
    pub fn by(model: &'m M, weights: Weights, optimiser: Optimiser, rate: f32) -> Self {
        let state = OptimiserState::new(model.n_layers());
        let idle = Mutex::new(Vec::new());
        Self { model, weights, optimiser, state, rate, clip: None, idle }
    }

    /// The same with clipping.
    pub fn clipped(mut self, clip: ClipHalves) -> Self {
        self.clip = Some(clip);
        self
    }

    /// Changes the learning rate and keeps the optimiser state.
    pub fn set_rate(&mut self, new: f32) {
        self.rate = new;
    }

    /// The weights so far.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// The weights at the end.
    pub fn into_weights(self) -> Weights {
        self.weights
    }

    /// One step on a batch, sample by sample; returns its loss before the step.
    pub fn step(&mut self, observations: &[f32], actions: &[f32]) -> f64 {
        let (loss, mut gradients) = self.gradient(observations, actions);
        let last = self.model.n_layers();
        if let Some(ClipHalves { cut, most }) = self.clip {
            gradients.clip(1..=cut, most);
            gradients.clip(cut + 1..=last, most);
        }
        self.state.step(self.optimiser, &mut self.weights, &gradients, 1..=last, self.rate);
        loss
    }

    /// `steps` steps on random batches of `samples`; returns the mean loss of the last tenth.
    pub fn fit(&mut self, data: &Dataset, samples: usize, steps: usize, seed: Seed) -> f64 {
        let mut batch = Batch::default();
        let last = steps - (steps / 10).max(1).min(steps);
        let mut tail = 0.0;
        for step in 0..steps {
            let mut rng = seed.named("split/central").at(step as u64).rng();
            data.draw(samples, &mut rng, &mut batch);
            let loss = self.step(&batch.observations, &batch.actions);
            tail += if step >= last { loss } else { 0.0 };
        }
        tail / (steps - last) as f64
    }

    /// Loss and gradient of a batch.
    pub fn gradient(&self, observations: &[f32], actions: &[f32]) -> (f64, Weights) {
        let (inputs, outputs) =
            (self.model.n_elements(0), self.model.n_elements(self.model.n_layers()));
        let samples = actions.len() / outputs;
        let observed = observations.par_chunks(SHARD * inputs);
        let parts: Vec<(f64, f32, Shard<M>)> = observed
            .zip(actions.par_chunks(SHARD * outputs))
            .map(|(observations, actions)| {
                let share = (actions.len() / outputs) as f64 / samples as f64;
                let (loss, shard) = self.shard(observations, actions);
                (share * loss, share as f32, shard)
            })
            .collect();
        self.reduce(parts)
    }

    fn shard(&self, observations: &[f32], actions: &[f32]) -> (f64, Shard<M>) {
        let model = self.model;
        let mut shard = self.take().unwrap_or_else(|| Shard {
            workspace: model.workspace(),
            gradients: Weights::zeros(model),
            loss_gradient: vec![],
        });
        let Shard { workspace, gradients, loss_gradient } = &mut shard;
        let all = 1..=model.n_layers();
        let outputs = model.forward(all.clone(), &self.weights, observations, workspace);
        let loss = model.loss(outputs, actions, loss_gradient);
        model.backward(all, &self.weights, loss_gradient, workspace, gradients);
        (loss, shard)
    }

    fn take(&self) -> Option<Shard<M>> {
        self.idle.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).pop()
    }

    fn reduce(&self, parts: Vec<(f64, f32, Shard<M>)>) -> (f64, Weights) {
        let loss = parts.iter().map(|(loss, _, _)| loss).sum();
        let mut idle = self.idle.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if parts.len() == 1 {
            let sum = parts[0].2.gradients.clone();
            idle.extend(parts.into_iter().map(|(_, _, shard)| shard));
            return (loss, sum);
        }
        let mut sum = Weights::zeros(self.model);
        for (_, share, shard) in parts {
            for layer in 1..=self.model.n_layers() {
                descend(sum.layer_mut(layer), shard.gradients.layer(layer), -share);
            }
            idle.push(shard);
        }
        (loss, sum)
    }
}
