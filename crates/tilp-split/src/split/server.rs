//! The server half: one copy of every layer shared by all terminals, and what the server stores
//! about each terminal.
//!
//! The server half reads no terminal's memory. All it has from terminals came in messages.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::compress::{Packing, decode, encode_gradient};
use super::edge::Edge;
use super::engine::{Copies, Settings};
use super::message::{Activation, Context, CutGradient};
use super::model::{SplitModel, Weights};
use super::optimiser::{OptimiserState, StateAtAggregation, clip_factor};
use super::terminal_state::TerminalState;
use super::wire::{WireError, expect};
use crate::nn::lanes::sum_of_squares;
use crate::nn::optimiser::{descend, scale};
use crate::round::TerminalId;

/// Server weights, edge servers, and the books about every terminal.
#[derive(Clone, Debug)]
pub struct ServerHalf {
    pub(super) shared: SharedLayers,
    pub(super) edges: Vec<Edge>,
    pub(super) terminals: BTreeMap<TerminalId, TerminalState>,
    /// The last round with training.
    pub(super) last_round: u64,
}

impl ServerHalf {
    /// A server that starts from the base policy, without terminals.
    pub fn new(base: Weights) -> Self {
        let shared = SharedLayers::new(base);
        Self { shared, edges: Vec::new(), terminals: BTreeMap::new(), last_round: 0 }
    }

    /// The server's copies of all layers.
    pub fn weights(&self) -> &Weights {
        &self.shared.weights
    }

    /// The books about one terminal; `None` if it is not a member.
    pub fn terminal(&self, id: TerminalId) -> Option<&TerminalState> {
        self.terminals.get(&id)
    }

    /// The books about all terminals, by id.
    pub fn terminals(&self) -> &BTreeMap<TerminalId, TerminalState> {
        &self.terminals
    }

    /// Adds a terminal that holds layers 1 to `held` of the server's current copies.
    pub(super) fn add(&mut self, id: TerminalId, held: usize) {
        let n_layers = self.shared.weights.n_layers();
        self.terminals.insert(id, TerminalState::new(n_layers, held.min(n_layers)));
    }

    /// Sets the number of edge servers and gives each the layers of its tier.
    pub(super) fn set_edges(&mut self, copies: Copies, optimiser_state: StateAtAggregation) {
        let wanted = if copies.edge > copies.own { copies.n_edges } else { 0 };
        let n_layers = self.shared.weights.n_layers();
        self.edges.resize_with(wanted, || Edge::new(n_layers));
        for edge in &mut self.edges {
            edge.adopt(&self.shared, copies.own + 1..=copies.edge, optimiser_state);
        }
    }
}

/// One terminal's contribution to a step of shared layers.
#[derive(Clone, Copy, Debug)]
pub struct Contribution<'a> {
    /// The shared layers begin behind this one.
    pub own: usize,
    /// Samples of the minibatch.
    pub samples: usize,
    /// Gradients of the layers behind `own`.
    pub gradients: &'a Weights,
}

/// The server's copies of all layers.
#[derive(Clone, Debug)]
pub struct SharedLayers {
    pub(super) weights: Weights,
    /// Optimiser state of the server's copy of every layer. An aggregation never changes it.
    pub(super) optimiser: OptimiserState,
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

/// Result of the server's work for one terminal.
#[derive(Clone, Debug)]
pub(super) struct Served {
    /// The reply to the terminal.
    pub(super) reply: Vec<u8>,
    /// The loss of its minibatch.
    pub(super) loss: f64,
    /// The norm of its gradient of the server's layers.
    pub(super) gradient_norm: f64,
    /// The size of its minibatch.
    pub(super) samples: usize,
}

impl SharedLayers {
    fn new(base: Weights) -> Self {
        let n_layers = base.n_layers();
        let optimiser = OptimiserState::new(n_layers);
        Self { weights: base, optimiser, served: vec![0; n_layers] }
    }

    /// One step of the server's copies with the gradients of all terminals served.
    ///
    /// $$ \mathbf{W}^{\mathrm{s}}\[t\] = \mathbf{W}^{\mathrm{s}}\[t-1\] -
    ///    \eta^{\mathrm{s}} \mathbf{G}^{\mathrm{s}}\[t\] $$
    ///
    /// Other update rules than plain descent put their own direction in the place of the gradient.
    ///
    /// Eq. `sys-upd-s`
    pub(super) fn update(&mut self, settings: &Settings, contributions: &[Contribution<'_>]) {
        let Self { weights, optimiser, served } = self;
        let means = server_gradients(weights.n_layers(), contributions, settings.clip);
        let copies = weights.layers_mut().par_iter_mut().zip(optimiser.layers_mut());
        copies.zip(means).for_each(|((parameters, state), mean)| {
            if let Some(mean) = mean {
                state.step(settings.optimiser, parameters, &mean, settings.server_rate);
            }
        });
        for (layer, count) in (1..).zip(served) {
            *count = count.saturating_add(samples_behind(layer, contributions));
        }
    }
}

/// Samples of the contributions to a layer.
pub(super) fn samples_behind(layer: usize, contributions: &[Contribution<'_>]) -> u64 {
    contributions.iter().filter(|one| one.own < layer).map(|one| one.samples as u64).sum()
}

/// Runs the layers behind the cut on a received activation, forward and backward, and packs the
/// reply. The activation must be the `expected` one. The gradients go to `gradients`; no weight
/// changes.
pub(super) fn serve<M: SplitModel>(
    expected: Context,
    weights: &Weights,
    model: &M,
    settings: &Settings,
    bytes: &[u8],
    work: &mut ServerWork<M>,
    gradients: &mut Weights,
) -> Result<Served, WireError> {
    let done = backpropagate(expected, weights, model, settings, bytes, work, gradients)?;
    let reply = reply(settings, &done, &work.values);
    let cut = usize::from(done.context.cut);
    let gradient_norm = gradients.norm(cut + 1..=model.n_layers());
    Ok(Served { reply, loss: done.loss, gradient_norm, samples: done.samples })
}

/// The message with this gradient at the cut, in the packing of the activation.
pub(super) fn reply(settings: &Settings, done: &Backward, flow: &[f32]) -> Vec<u8> {
    let context = done.context;
    let mut rng = settings.stream("split/compress/down", context.terminal, context.round);
    let mut payload = Vec::new();
    let elements = flow.len() / done.samples;
    encode_gradient(&done.packing, flow, elements, &mut rng, &mut payload);
    CutGradient { context, loss: done.loss as f32, payload }.to_bytes()
}

/// Runs the layers behind the cut forward and backward; leaves the gradient at the cut in the
/// values of `work`.
pub(super) fn backpropagate<M: SplitModel>(
    expected: Context,
    weights: &Weights,
    model: &M,
    settings: &Settings,
    bytes: &[u8],
    work: &mut ServerWork<M>,
    gradients: &mut Weights,
) -> Result<Backward, WireError> {
    let Activation { context, payload, labels } = Activation::from_bytes(bytes)?;
    context.expect(expected)?;
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

/// The gradients of the layers up to `last`, clipped together. Layers without a contribution have
/// none and do not count in the norm.
pub(super) fn server_gradients(
    last: usize,
    contributions: &[Contribution<'_>],
    clip: f32,
) -> Vec<Option<Vec<f32>>> {
    let layers = (1..=last).into_par_iter();
    let mut means: Vec<Option<Vec<f32>>> =
        layers.map(|layer| server_gradient(layer, contributions)).collect();
    if clip > 0.0 {
        let square: f64 = means.iter().flatten().map(|mean| sum_of_squares(mean)).sum();
        if let Some(factor) = clip_factor(square.sqrt(), clip) {
            means.iter_mut().flatten().for_each(|mean| scale(mean, factor));
        }
    }
    means
}

/// The gradient of one server layer: the mean over the terminals whose cut lies below it, weighted
/// by their samples. The order of the sum is the order of the contributions.
///
/// $$ \mathbf{G}^{\mathrm{s}}\[t\] = \sum_n \omega_n\[t\] \mathbf{G}^{\mathrm{s}}_n\[t\] $$
///
/// Eq. `server-gradient`
pub fn server_gradient(layer: usize, contributions: &[Contribution<'_>]) -> Option<Vec<f32>> {
    let served = || contributions.iter().filter(|one| one.own < layer);
    let total: usize = served().map(|one| one.samples).sum();
    let mut mean: Option<Vec<f32>> = None;
    for one in served() {
        let share = (one.samples as f64 / total as f64) as f32;
        let gradient = one.gradients.layer(layer);
        match &mut mean {
            None => mean = Some(gradient.iter().map(|slope| share * slope).collect()),
            Some(sum) => descend(sum, gradient, -share),
        }
    }
    mean
}
