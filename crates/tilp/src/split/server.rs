//! The server's half: one copy of every layer, shared by the terminals it serves.

use std::ops::RangeInclusive;

use rayon::prelude::*;

use super::compress::{Packing, decode, encode_gradient};
use super::engine::Settings;
use super::message::{Activation, Context, CutGradient, LayerWeights};
use super::model::{SplitModel, Weights};
use super::wire::{WireError, expect};
use crate::nn::optimiser::{descend, descend_with_momentum};

/// The server's copies of all layers.
#[derive(Clone, Debug)]
pub struct Server {
    pub(super) weights: Weights,
    /// Momentum of the server's copy of every layer; an aggregation leaves it alone.
    pub(super) velocity: Weights,
    /// Samples of the terminals served at every layer since the last aggregation.
    pub(super) served: Vec<u64>,
}

/// Buffers of the server for one terminal at a time.
pub struct ServerWork<M: SplitModel> {
    workspace: M::Workspace,
    /// The activation received, then the gradient at the cut.
    pub(super) values: Vec<f32>,
    loss_gradient: Vec<f32>,
}

impl<M: SplitModel> ServerWork<M> {
    /// Empty buffers for a model.
    pub fn new(model: &M) -> Self {
        Self { workspace: model.workspace(), values: vec![], loss_gradient: vec![] }
    }
}

/// A backward pass down to the cut, before the gradient there is packed.
#[derive(Clone, Debug)]
pub(super) struct Backward {
    pub(super) context: Context,
    pub(super) packing: Packing,
    pub(super) loss: f64,
    pub(super) samples: usize,
}

/// What the server has done for one terminal.
#[derive(Clone, Debug)]
pub struct Served {
    /// The answer to the terminal.
    pub reply: Vec<u8>,
    /// The loss of its minibatch.
    pub loss: f64,
    /// The norm of its gradient of the server's layers.
    pub gradient_norm: f64,
    /// The size of its minibatch.
    pub samples: usize,
    /// Its cut.
    pub cut: usize,
}

impl Server {
    /// A server that starts from the base policy.
    pub fn new(base: Weights) -> Self {
        let n_layers = base.n_layers();
        Self { weights: base, velocity: Weights::empty(n_layers), served: vec![0; n_layers] }
    }

    /// The server's copies.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// The message with its copies of these layers for a terminal.
    pub fn weights_message(
        &self,
        round: u64,
        terminal: u32,
        layers: RangeInclusive<usize>,
    ) -> Vec<u8> {
        let (first, last) = layers.into_inner();
        let context = Context { round, terminal, cut: last as u16 };
        let layers = self.weights.layers()[first - 1..last].to_vec();
        LayerWeights { context, first: first as u16, layers }.to_bytes()
    }

    /// Runs the layers behind the cut on a received activation, forward and backward, and packs
    /// the answer. The gradients go to `gradients`; no weight changes.
    pub fn serve<M: SplitModel>(
        &self,
        model: &M,
        settings: &Settings,
        bytes: &[u8],
        work: &mut ServerWork<M>,
        gradients: &mut Weights,
    ) -> Result<Served, WireError> {
        self.serve_on(&self.weights, model, settings, bytes, work, gradients)
    }

    /// The same with these weights in place of the server's own copies.
    pub(super) fn serve_on<M: SplitModel>(
        &self,
        weights: &Weights,
        model: &M,
        settings: &Settings,
        bytes: &[u8],
        work: &mut ServerWork<M>,
        gradients: &mut Weights,
    ) -> Result<Served, WireError> {
        let done = backpropagate(weights, model, settings, bytes, work, gradients)?;
        let reply = self.reply(settings, &done, &work.values);
        let cut = usize::from(done.context.cut);
        let gradient_norm = gradients.norm(cut + 1..=model.n_layers());
        Ok(Served { reply, loss: done.loss, gradient_norm, samples: done.samples, cut })
    }

    /// The message with this gradient at the cut, in the packing of the activation.
    pub(super) fn reply(&self, settings: &Settings, done: &Backward, flow: &[f32]) -> Vec<u8> {
        let context = done.context;
        let mut rng = settings.stream("split/compress/down", context.terminal, context.round);
        let mut payload = Vec::new();
        let elements = flow.len() / done.samples;
        encode_gradient(&done.packing, flow, elements, &mut rng, &mut payload);
        CutGradient { context, loss: done.loss as f32, payload }.to_bytes()
    }

    /// One step of the server's copies with the gradients of all terminals served.
    ///
    /// $$ \mathbf{W}^{\mathrm{s}}\[t\] = \mathbf{W}^{\mathrm{s}}\[t-1\] -
    ///    \eta^{\mathrm{s}} \mathbf{G}^{\mathrm{s}}\[t\] $$
    ///
    /// Eq. `sys-upd-s`
    pub fn update(&mut self, settings: &Settings, seats: &[(usize, usize, &Weights)]) {
        let Self { weights, velocity, served } = self;
        let (rate, momentum) = (settings.server_rate, settings.momentum);
        let copies = weights.layers_mut().par_iter_mut().zip(velocity.layers_mut());
        copies.zip(served).enumerate().for_each(|(index, ((parameters, speed), count))| {
            let layer = index + 1;
            if let Some(mean) = server_gradient(layer, seats) {
                step(parameters, &mean, speed, rate, momentum);
            }
            let below = seats.iter().filter(|(cut, _, _)| *cut < layer);
            *count += below.map(|(_, samples, _)| *samples as u64).sum::<u64>();
        });
    }
}

/// Runs the layers behind the cut forward and backward; leaves the gradient at the cut in the
/// values of `work`.
pub(super) fn backpropagate<M: SplitModel>(
    weights: &Weights,
    model: &M,
    settings: &Settings,
    bytes: &[u8],
    work: &mut ServerWork<M>,
    gradients: &mut Weights,
) -> Result<Backward, WireError> {
    let Activation { context, payload, labels } = Activation::from_bytes(bytes)?;
    let (cut, last) = (usize::from(context.cut), model.n_layers());
    if cut == 0 || cut >= last {
        return Err(WireError::new("cut", cut as u64, format!("1 to {}", last - 1)));
    }
    let elements = model.n_elements(cut);
    let ServerWork { workspace, values, loss_gradient } = work;
    let packing = decode(&payload, elements, settings.samples, values)?;
    let samples = values.len() / elements;
    expect("labels", labels.len(), samples * model.n_elements(last))?;
    let outputs = model.forward(cut + 1..=last, weights, values, workspace);
    let loss = model.loss(outputs, &labels, loss_gradient);
    let range = cut + 1..=last;
    let flow = model.backward(range, weights, loss_gradient, workspace, gradients);
    values.copy_from_slice(flow);
    Ok(Backward { context, packing, loss, samples })
}

/// The gradient of one server layer: the mean over the terminals whose cut lies below it, weighted
/// by their samples. Each seat is cut, samples, gradients; the order of the sum is theirs.
///
/// $$ \mathbf{G}^{\mathrm{s}}\[t\] = \sum_n \omega_n\[t\] \mathbf{G}^{\mathrm{s}}_n\[t\] $$
///
/// Eq. `server-gradient`
pub fn server_gradient(layer: usize, seats: &[(usize, usize, &Weights)]) -> Option<Vec<f32>> {
    let served = || seats.iter().filter(|(cut, _, _)| *cut < layer);
    let total: usize = served().map(|(_, samples, _)| samples).sum();
    let mut mean: Option<Vec<f32>> = None;
    for (_, samples, gradients) in served() {
        let share = (*samples as f64 / total as f64) as f32;
        let gradient = gradients.layer(layer);
        match &mut mean {
            None => mean = Some(gradient.iter().map(|slope| share * slope).collect()),
            Some(sum) => descend(sum, gradient, -share),
        }
    }
    mean
}

/// One step of some layers of a copy.
pub(super) fn descend_layers(
    weights: &mut Weights,
    velocity: &mut Weights,
    gradients: &Weights,
    layers: RangeInclusive<usize>,
    rate: f32,
    momentum: f32,
) {
    for layer in layers {
        let (parameters, speed) = (weights.layer_mut(layer), velocity.layer_mut(layer));
        step(parameters, gradients.layer(layer), speed, rate, momentum);
    }
}

pub(super) fn step(
    parameters: &mut [f32],
    gradient: &[f32],
    speed: &mut Vec<f32>,
    rate: f32,
    momentum: f32,
) {
    if momentum == 0.0 {
        descend(parameters, gradient, rate);
    } else {
        descend_with_momentum(parameters, gradient, speed, rate, momentum);
    }
}
