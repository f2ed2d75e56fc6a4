//! The terminal's half: front layers, data, and what it still owes the server.

use std::ops::RangeInclusive;
use std::sync::Arc;

use super::compress::{Packing, decode, decode_gradient};
use super::data::{Batch, Dataset};
use super::engine::Settings;
use super::message::{Activation, Context, CutGradient, LayerWeights};
use super::model::{SplitModel, Weights};
use super::rule::Local;
use super::server::descend_layers;
use super::wire::{WireError, expect};

/// One robot cell: its data and its own copies of the front layers.
#[derive(Clone, Debug)]
pub struct Terminal {
    pub(super) index: u32,
    pub(super) data: Arc<Dataset>,
    pub(super) weights: Weights,
    /// Momentum of every layer. It belongs to this copy and starts anew with new weights.
    pub(super) velocity: Weights,
    /// Layers 1 to this one are held.
    pub(super) held: usize,
    /// Layers 1 to this one have a copy of its own, held or kept for it by the server.
    pub(super) current: usize,
    /// Samples used on every layer since the last aggregation.
    pub(super) trained: Vec<u64>,
}

/// Buffers of a terminal between its forward and its backward pass.
pub struct TerminalWork<M: SplitModel> {
    workspace: M::Workspace,
    gradients: Weights,
    batch: Batch,
    values: Vec<f32>,
    sent: Option<(Context, Packing)>,
}

impl<M: SplitModel> TerminalWork<M> {
    /// Empty buffers for a model.
    pub fn new(model: &M) -> Self {
        Self {
            workspace: model.workspace(),
            gradients: Weights::zeros(model),
            batch: Batch::default(),
            values: Vec::new(),
            sent: None,
        }
    }

    /// The minibatch drawn last.
    pub fn batch(&self) -> &Batch {
        &self.batch
    }

    /// The gradients of the last backward pass.
    pub fn gradients(&self) -> &Weights {
        &self.gradients
    }
}

impl Terminal {
    /// A terminal that holds all layers of the base policy.
    pub fn new(index: u32, data: Arc<Dataset>, base: Weights) -> Self {
        let n_layers = base.n_layers();
        Self {
            index,
            data,
            weights: base,
            velocity: Weights::empty(n_layers),
            held: n_layers,
            current: n_layers,
            trained: vec![0; n_layers],
        }
    }

    /// Its data.
    pub fn data(&self) -> &Dataset {
        &self.data
    }

    /// Its copies; only layers 1 to [`Terminal::held`] mean anything.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// Layers 1 to this one are held.
    pub fn held(&self) -> usize {
        self.held
    }

    /// The last layer of which it has trained a copy since the last aggregation.
    pub(super) fn last_trained(&self) -> usize {
        self.trained.iter().rposition(|samples| *samples > 0).map_or(0, |index| index + 1)
    }

    /// The deepest layer held and trained since the last aggregation.
    pub fn deepest_trained(&self) -> usize {
        self.trained[..self.held].iter().take_while(|samples| **samples > 0).count()
    }

    /// Starts copies of its own up to layer `own` from these weights.
    pub(super) fn adopt(&mut self, weights: &Weights, own: usize) {
        for layer in self.current + 1..=own {
            *self.weights.layer_mut(layer) = weights.layer(layer).to_vec();
            self.velocity.layer_mut(layer).clear();
        }
        self.current = self.current.max(own);
    }

    /// Takes over the layers in a message of the server, the first of them the first it lacks.
    pub fn receive<M: SplitModel>(&mut self, model: &M, bytes: &[u8]) -> Result<(), WireError> {
        let sizes: Vec<usize> = (1..=model.n_layers()).map(|l| model.n_parameters(l)).collect();
        let message = LayerWeights::from_bytes(bytes, &sizes)?;
        expect("terminal", message.context.terminal as usize, self.index as usize)?;
        expect("first layer", message.first.into(), self.held + 1)?;
        for (layer, parameters) in (message.first.into()..).zip(message.layers) {
            *self.weights.layer_mut(layer) = parameters;
            self.velocity.layer_mut(layer).clear();
        }
        self.held = message.context.cut.into();
        self.current = self.current.max(self.held);
        Ok(())
    }

    /// Its copies of layers 1 to the deepest trained one, as the message it owes.
    pub fn upload(&self, round: u64) -> Vec<u8> {
        let last = self.deepest_trained();
        let context = Context { round, terminal: self.index, cut: last as u16 };
        let layers = self.weights.layers()[..last].to_vec();
        LayerWeights { context, first: 1, layers }.to_bytes()
    }

    /// Draws a minibatch, runs layers 1 to `cut` and packs the activation.
    ///
    /// $$ \mathbf{S}_n\[t\] = f_{1:l}(\mathbf{X}_n\[t\]; \mathbf{W}^{\mathrm{c}}_n\[t-1\]) $$
    ///
    /// The draw depends on seed, terminal and round only, not on who else takes part.
    ///
    /// Eq. `sys-Sfwd`
    pub fn forward<M: SplitModel>(
        &self,
        model: &M,
        settings: &Settings,
        round: u64,
        cut: usize,
        q: f64,
        work: &mut TerminalWork<M>,
    ) -> Vec<u8> {
        self.draw(settings, round, &mut work.batch);
        let observations = &work.batch.observations;
        let values = model.forward(1..=cut, &self.weights, observations, &mut work.workspace);
        let mut rng = settings.stream("split/compress/up", self.index, round);
        let mut payload = Vec::new();
        let elements = model.n_elements(cut);
        let packing = settings.compressor.encode(values, elements, q, &mut rng, &mut payload);
        let context = Context { round, terminal: self.index, cut: cut as u16 };
        work.sent = Some((context, packing));
        Activation { context, payload, labels: work.batch.actions.clone() }.to_bytes()
    }

    fn draw(&self, settings: &Settings, round: u64, batch: &mut Batch) {
        let mut rng = settings.stream("split/minibatch", self.index, round);
        self.data.draw(settings.samples, &mut rng, batch);
    }

    /// The minibatches of a round that the terminal trains on its own.
    fn batches(&self, settings: &Settings, round: u64, local: Local) -> Vec<Vec<usize>> {
        let seed = |name: &str| settings.seed.named(name).at(self.index.into()).at(round);
        match local {
            // The first is the one that any other rule would draw.
            Local::Steps(steps) => (0..steps as u64)
                .map(|step| {
                    let first = seed("split/minibatch");
                    let mut rng = if step == 0 { first.rng() } else { first.at(step).rng() };
                    self.data.choose(settings.samples, &mut rng)
                })
                .collect(),
            Local::Epochs(epochs) => (0..epochs as u64)
                .flat_map(|epoch| {
                    let all =
                        self.data.choose(self.data.len(), &mut seed("split/epoch").at(epoch).rng());
                    all.chunks(settings.samples).map(<[usize]>::to_vec).collect::<Vec<_>>()
                })
                .collect(),
        }
    }

    /// Takes the gradient at the cut back through the front layers and updates them. Returns the
    /// norm of the gradient.
    pub fn backward<M: SplitModel>(
        &mut self,
        model: &M,
        settings: &Settings,
        bytes: &[u8],
        work: &mut TerminalWork<M>,
    ) -> Result<f64, WireError> {
        let message = CutGradient::from_bytes(bytes)?;
        let Some((context, packing)) = work.sent.take() else {
            return Err(WireError::new("round", message.context.round, "no answer awaited"));
        };
        if message.context != context {
            let expected = format!("{context:?}");
            return Err(WireError::new("round", message.context.round, expected));
        }
        let (cut, samples) = (usize::from(context.cut), work.batch.samples);
        let elements = model.n_elements(cut);
        decode_gradient(&message.payload, &packing, elements, samples, &mut work.values)?;
        let TerminalWork { workspace, gradients, values, .. } = work;
        model.backward(1..=cut, &self.weights, values, workspace, gradients);
        self.update(settings, cut, samples, gradients);
        Ok(gradients.norm(1..=cut))
    }

    /// Trains all layers on the terminal, without any exchange. Returns the loss over all samples
    /// used, the norm of the last gradient, and the number of samples.
    pub fn train_alone<M: SplitModel>(
        &mut self,
        model: &M,
        settings: &Settings,
        round: u64,
        local: Local,
        work: &mut TerminalWork<M>,
    ) -> (f64, f64, usize) {
        let (mut total, mut norm, mut used) = (0.0, 0.0, 0);
        let all = 1..=model.n_layers();
        for samples in self.batches(settings, round, local) {
            let TerminalWork { workspace, gradients, values, batch, .. } = work;
            self.data.gather(&samples, batch);
            let outputs = model.forward(all.clone(), &self.weights, &batch.observations, workspace);
            let loss = model.loss(outputs, &batch.actions, values);
            model.backward(all.clone(), &self.weights, values, workspace, gradients);
            self.update(settings, model.n_layers(), batch.samples, gradients);
            norm = gradients.norm(all.clone());
            total += loss * batch.samples as f64;
            used += batch.samples;
        }
        (total / used as f64, norm, used)
    }

    /// Makes its copies those that the server decodes from their compressed change.
    pub(super) fn round_change(
        &mut self,
        settings: &Settings,
        round: u64,
        before: &Weights,
        q: f64,
    ) {
        let flat = |weights: &Weights| weights.layers().concat();
        let (old, new) = (flat(before), flat(&self.weights));
        let change: Vec<f32> = new.iter().zip(&old).map(|(new, old)| new - old).collect();
        let mut rng = settings.stream("split/compress/model", self.index, round);
        let (mut bytes, mut decoded) = (Vec::new(), Vec::new());
        settings.compressor.encode(&change, change.len(), q, &mut rng, &mut bytes);
        decode(&bytes, change.len(), 1, &mut decoded).expect("decodes what was just encoded");
        let mut moved = old.iter().zip(&decoded).map(|(old, change)| old + change);
        for layer in self.weights.layers_mut() {
            layer.iter_mut().zip(&mut moved).for_each(|(value, moved)| *value = moved);
        }
    }

    /// The step of its copies behind the cut, which the server keeps and steps by its own rate.
    pub(super) fn update_behind(
        &mut self,
        settings: &Settings,
        layers: RangeInclusive<usize>,
        samples: usize,
        gradients: &Weights,
    ) {
        let Self { weights, velocity, trained, .. } = self;
        let (rate, momentum) = (settings.server_rate, settings.momentum);
        descend_layers(weights, velocity, gradients, layers.clone(), rate, momentum);
        layers.for_each(|layer| trained[layer - 1] += samples as u64);
    }

    /// The step of the front layers.
    ///
    /// $$ \mathbf{W}^{\mathrm{c}}_n\[t\] = \mathbf{W}^{\mathrm{c}}_n\[t-1\] -
    ///    \eta^{\mathrm{c}} \mathbf{G}^{\mathrm{c}}_n\[t\] $$
    ///
    /// With momentum the gradient is replaced by the velocity of this copy.
    ///
    /// Eq. `sys-upd-c`
    fn update(&mut self, settings: &Settings, cut: usize, samples: usize, gradients: &Weights) {
        let Self { weights, velocity, trained, .. } = self;
        let rate = settings.client_rate;
        descend_layers(weights, velocity, gradients, 1..=cut, rate, settings.momentum);
        for used in &mut trained[..cut] {
            *used += samples as u64;
        }
    }

    /// After an aggregation nothing it holds is current.
    pub(super) fn forget(&mut self) {
        self.held = 0;
        self.current = 0;
        self.trained.fill(0);
    }
}
