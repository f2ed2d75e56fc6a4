//! The terminal half: private data, front layers, and the answers to the server's messages.
//!
//! A terminal half runs alone: [`TerminalHalf::handle`] takes the bytes of one message and returns
//! the bytes of the answer. Nothing else passes between a terminal and the server.
//!
//! | message | answer |
//! |---|---|
//! | layer weights | acknowledgement |
//! | train order | activation, or done if the cut is the last layer |
//! | gradient at the cut | done |
//! | collect order | layer weights; nothing changes |
//! | hand-over order | moved copies; the terminal no longer holds them |
//! | moved copies | acknowledgement |
//! | aggregated | acknowledgement; the terminal holds nothing afterwards |

use std::sync::{Arc, Mutex};

use super::compress::{Packing, decode, decode_gradient};
use super::control::{
    Aggregated, Collect, Done, HandOver, LayerCopy, MovedCopies, Notice, TrainOrder,
};
use super::data::{Batch, Dataset};
use super::message::{Activation, Context, CutGradient, Kind, LayerWeights, peek};
use super::model::{SplitModel, Weights};
use super::optimiser::{OptimiserState, StateAtAggregation};
use super::rule::Local;
use super::wire::{WireError, expect};
use crate::rng::{Rng, Seed};
use crate::round::TerminalId;

/// One robot cell: its data and its own copies of the front layers.
pub struct TerminalHalf<M: SplitModel> {
    pub(super) id: TerminalId,
    pub(super) model: Arc<M>,
    seed: Seed,
    minibatches: Seed,
    data: Arc<Dataset>,
    /// Its copies; layers that it does not hold are empty.
    pub(super) weights: Weights,
    pub(super) holds: Vec<bool>,
    /// State of every layer. An aggregation clears it or keeps it for the next copy.
    pub(super) optimiser: OptimiserState,
    pub(super) pending: Option<Pending<M>>,
    pool: Arc<BufferPool<M>>,
}

/// A train order that waits for the gradient at the cut.
pub(super) struct Pending<M: SplitModel> {
    pub(super) order: TrainOrder,
    /// The results of the forward pass. A restored terminal has none and runs it again.
    buffers: Option<Buffers<M>>,
}

impl<M: SplitModel> Pending<M> {
    /// An order from a snapshot.
    pub(super) fn again(order: TrainOrder) -> Self {
        Self { order, buffers: None }
    }
}

/// Buffers of a terminal between its forward and its backward pass.
struct Buffers<M: SplitModel> {
    workspace: M::Workspace,
    gradients: Weights,
    batch: Batch,
    values: Vec<f32>,
    packing: Packing,
}

/// Buffers that terminals of one process share, so that no more exist than are in use.
pub struct BufferPool<M: SplitModel>(Mutex<Vec<Buffers<M>>>);

impl<M: SplitModel> Default for BufferPool<M> {
    fn default() -> Self {
        Self(Mutex::new(Vec::new()))
    }
}

impl<M: SplitModel> BufferPool<M> {
    fn take(&self, model: &M) -> Buffers<M> {
        let taken = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).pop();
        taken.unwrap_or_else(|| Buffers {
            workspace: model.workspace(),
            gradients: Weights::zeros(model),
            batch: Batch::default(),
            values: Vec::new(),
            packing: Packing::Dense,
        })
    }

    fn give_back(&self, buffers: Buffers<M>) {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(buffers);
    }
}

/// The generator of one terminal in one round for one purpose.
pub(super) fn stream(seed: Seed, name: &str, terminal: TerminalId, round: u64) -> Rng {
    seed.named(name).at(terminal.0.into()).at(round).rng()
}

impl<M: SplitModel> TerminalHalf<M> {
    /// A terminal that holds no layer. Minibatches and stochastic compression are drawn from the
    /// seed, by id and round.
    ///
    /// # Panics
    /// If there is no sample.
    pub fn new(id: TerminalId, model: Arc<M>, seed: Seed, data: Arc<Dataset>) -> Self {
        assert!(!data.is_empty(), "terminal {id} has no samples");
        let n_layers = model.n_layers();
        Self {
            id,
            model,
            seed,
            minibatches: seed,
            data,
            weights: Weights::empty(n_layers),
            holds: vec![false; n_layers],
            optimiser: OptimiserState::new(n_layers),
            pending: None,
            pool: Arc::default(),
        }
    }

    /// The same with all layers of a policy that was installed beforehand.
    pub fn with_policy(mut self, base: &Weights) -> Self {
        self.weights.clone_from(base);
        self.holds.fill(true);
        self
    }

    /// The same with minibatches drawn from another seed: a replicate that differs in nothing
    /// else.
    pub fn with_minibatches(mut self, seed: Seed) -> Self {
        self.minibatches = seed;
        self
    }

    /// The same with buffers from a pool that other terminals of this process use too.
    pub fn with_pool(mut self, pool: Arc<BufferPool<M>>) -> Self {
        self.pool = pool;
        self
    }

    /// Its identity.
    pub fn id(&self) -> TerminalId {
        self.id
    }

    /// Its private data; no message contains it.
    pub fn data(&self) -> &Arc<Dataset> {
        &self.data
    }

    /// Takes other private data, from the next minibatch on. A pending order is dropped: its
    /// minibatch came from the old data.
    ///
    /// # Panics
    /// If there is no sample.
    pub fn replace_data(&mut self, data: Arc<Dataset>) {
        assert!(!data.is_empty(), "terminal {} has no samples", self.id);
        self.abandon();
        self.data = data;
    }

    /// Its copies; layers that it does not hold are empty.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// Answers one message of the server. After an error nothing has changed.
    pub fn handle(&mut self, message: &[u8]) -> Result<Vec<u8>, WireError> {
        let (kind, context) = peek(message)?;
        expect("terminal", context.terminal.0 as usize, self.id.0 as usize)?;
        match kind {
            Kind::LayerWeights | Kind::HalfWeights | Kind::ByteWeights => self.receive(message),
            Kind::Train => self.train(message),
            Kind::CutGradient => self.finish(message),
            Kind::Collect => self.upload(message),
            Kind::HandOver => self.hand_over(message),
            Kind::MovedCopies => self.take_back(message),
            Kind::Aggregated => self.forget(message),
            Kind::Activation | Kind::Done | Kind::Acknowledged => {
                Err(WireError::new("kind", kind as u64, "a message of the server"))
            }
        }
    }

    fn sizes(&self) -> Vec<usize> {
        (1..=self.model.n_layers()).map(|layer| self.model.n_parameters(layer)).collect()
    }

    fn acknowledge(&self, context: Context) -> Vec<u8> {
        Notice { context }.to_bytes(Kind::Acknowledged)
    }

    /// Takes over layers that it does not hold. They continue with the optimiser state that the
    /// terminal has of them: none, unless an aggregation has kept it.
    fn receive(&mut self, bytes: &[u8]) -> Result<Vec<u8>, WireError> {
        let message = LayerWeights::from_bytes(bytes, &self.sizes())?;
        self.expect_held(message.first, message.context.cut, false)?;
        self.abandon();
        for (layer, parameters) in (usize::from(message.first)..).zip(message.layers) {
            *self.weights.layer_mut(layer) = parameters;
            self.holds[layer - 1] = true;
        }
        Ok(self.acknowledge(message.context))
    }

    fn train(&mut self, bytes: &[u8]) -> Result<Vec<u8>, WireError> {
        let order = TrainOrder::from_bytes(bytes, self.model.n_layers())?;
        self.expect_held(1, order.context.cut, true)?;
        self.abandon();
        let mut buffers = self.pool.take(&self.model);
        if usize::from(order.context.cut) == self.model.n_layers() {
            let done = self.train_whole(&order, &mut buffers);
            self.pool.give_back(buffers);
            return Ok(done.to_bytes());
        }
        let activation = self.forward(&order, &mut buffers);
        self.pending = Some(Pending { order, buffers: Some(buffers) });
        Ok(activation)
    }

    /// Completes the pending order with the gradient at the cut.
    fn finish(&mut self, bytes: &[u8]) -> Result<Vec<u8>, WireError> {
        let message = CutGradient::from_bytes(bytes)?;
        let Some(order) = self.pending.as_ref().map(|pending| pending.order) else {
            let round = message.context.round;
            return Err(WireError::new("round", round, "a round with a pending train order"));
        };
        message.context.expect(order.context)?;
        let buffers = self.pending.take().and_then(|pending| pending.buffers);
        let mut buffers = buffers.unwrap_or_else(|| {
            let mut buffers = self.pool.take(&self.model);
            self.forward(&order, &mut buffers);
            buffers
        });
        match self.backward(&order, &message, &mut buffers) {
            Ok(done) => {
                self.pool.give_back(buffers);
                Ok(done.to_bytes())
            }
            Err(error) => {
                self.pending = Some(Pending { order, buffers: Some(buffers) });
                Err(error)
            }
        }
    }

    /// Its copies of some layers; it keeps them. How they are rounded depends on seed, terminal,
    /// round and first layer only, so the same order has the same answer.
    fn upload(&self, bytes: &[u8]) -> Result<Vec<u8>, WireError> {
        let order = Collect::from_bytes(bytes, self.model.n_layers())?;
        let Collect { context, first, exchange } = order;
        self.expect_held(first, context.cut, true)?;
        let layers = self.weights.layers()[usize::from(first) - 1..context.cut.into()].to_vec();
        let seed = self.seed.named("split/exchange/up").at(self.id.0.into());
        let mut rng = seed.at(context.round).at(first.into()).rng();
        Ok(LayerWeights { context, first, layers }.encoded(exchange, &mut rng))
    }

    /// Its copies of some layers, with their optimiser state; it no longer holds them.
    fn hand_over(&mut self, bytes: &[u8]) -> Result<Vec<u8>, WireError> {
        let HandOver { context, first } = HandOver::from_bytes(bytes, self.model.n_layers())?;
        self.expect_held(first, context.cut, true)?;
        self.abandon();
        let copies = (usize::from(first)..=context.cut.into()).map(|layer| {
            self.holds[layer - 1] = false;
            LayerCopy {
                parameters: std::mem::take(self.weights.layer_mut(layer)),
                state: std::mem::take(self.optimiser.layer_mut(layer)),
            }
        });
        Ok(MovedCopies { context, first, copies: copies.collect() }.to_bytes())
    }

    /// Takes over copies that the server kept for it, with their optimiser state.
    fn take_back(&mut self, bytes: &[u8]) -> Result<Vec<u8>, WireError> {
        let message = MovedCopies::from_bytes(bytes, &self.sizes())?;
        self.expect_held(message.first, message.context.cut, false)?;
        self.abandon();
        for (layer, copy) in (usize::from(message.first)..).zip(message.copies) {
            *self.weights.layer_mut(layer) = copy.parameters;
            *self.optimiser.layer_mut(layer) = copy.state;
            self.holds[layer - 1] = true;
        }
        Ok(self.acknowledge(message.context))
    }

    /// After an aggregation nothing that it held is current.
    fn forget(&mut self, bytes: &[u8]) -> Result<Vec<u8>, WireError> {
        let notice = Aggregated::from_bytes(bytes)?;
        self.abandon();
        self.weights = Weights::empty(self.model.n_layers());
        if notice.optimiser_state == StateAtAggregation::Reset {
            self.optimiser = OptimiserState::new(self.model.n_layers());
        }
        self.holds.fill(false);
        Ok(self.acknowledge(notice.context))
    }

    /// `Ok` if it holds all of these layers, or none of them.
    fn expect_held(&self, first: u16, last: u16, held: bool) -> Result<(), WireError> {
        let mut layers = usize::from(first)..=usize::from(last);
        match layers.find(|layer| self.holds[layer - 1] != held) {
            None => Ok(()),
            Some(layer) => {
                let expected =
                    if held { "a layer that is held" } else { "a layer that is not held" };
                Err(WireError::new("layer", layer as u64, expected))
            }
        }
    }

    /// Drops a pending order: the gradient it waits for will not come.
    fn abandon(&mut self) {
        if let Some(buffers) = self.pending.take().and_then(|pending| pending.buffers) {
            self.pool.give_back(buffers);
        }
    }

    fn stream(&self, name: &str, round: u64) -> Rng {
        stream(self.seed, name, self.id, round)
    }

    /// Draws a minibatch, runs layers 1 to the cut and packs the activation.
    ///
    /// $$ \mathbf{S}_n\[t\] = f_{1:l}(\mathbf{X}_n\[t\]; \mathbf{W}^{\mathrm{c}}_n\[t-1\]) $$
    ///
    /// The draw depends on seed, terminal and round only, not on the other participants.
    ///
    /// Eq. `sys-Sfwd`
    fn forward(&self, order: &TrainOrder, buffers: &mut Buffers<M>) -> Vec<u8> {
        let TrainOrder { context, q, samples, compressor, .. } = *order;
        let cut = usize::from(context.cut);
        let Buffers { workspace, batch, packing, .. } = buffers;
        let mut rng = stream(self.minibatches, "split/minibatch", self.id, context.round);
        self.data.draw(samples as usize, &mut rng, batch);
        let values = self.model.forward(1..=cut, &self.weights, &batch.observations, workspace);
        let mut rng = self.stream("split/compress/up", context.round);
        let mut payload = Vec::new();
        let elements = self.model.n_elements(cut);
        *packing = compressor.encode(values, elements, q, &mut rng, &mut payload);
        Activation { context, payload, labels: batch.actions.clone() }.to_bytes()
    }

    /// Takes the gradient at the cut back through the front layers and updates them.
    fn backward(
        &mut self,
        order: &TrainOrder,
        message: &CutGradient,
        buffers: &mut Buffers<M>,
    ) -> Result<Done, WireError> {
        let Buffers { workspace, gradients, batch, values, packing } = buffers;
        let (cut, samples) = (usize::from(order.context.cut), batch.samples);
        let elements = self.model.n_elements(cut);
        decode_gradient(&message.payload, packing, elements, samples, values)?;
        self.model.backward(1..=cut, &self.weights, values, workspace, gradients);
        let gradient_norm = self.update(order, gradients);
        let (context, loss) = (order.context, f64::from(message.loss));
        Ok(Done { context, loss, gradient_norm, samples: samples as u32 })
    }

    /// Trains all layers on the terminal. Compression applies to the change of the model.
    fn train_whole(&mut self, order: &TrainOrder, buffers: &mut Buffers<M>) -> Done {
        let before = (order.q > 0.0).then(|| self.weights.clone());
        let (mut total, mut norm, mut used) = (0.0, 0.0, 0);
        let all = 1..=self.model.n_layers();
        for samples in self.batches(order) {
            let Buffers { workspace, gradients, values, batch, .. } = &mut *buffers;
            self.data.gather(&samples, batch);
            let observations = &batch.observations;
            let outputs = self.model.forward(all.clone(), &self.weights, observations, workspace);
            let loss = self.model.loss(outputs, &batch.actions, values);
            self.model.backward(all.clone(), &self.weights, values, workspace, gradients);
            norm = self.update(order, gradients);
            total += loss * batch.samples as f64;
            used += batch.samples;
        }
        if let Some(before) = before {
            self.compress_change(order, &before);
        }
        let (context, loss) = (order.context, total / used as f64);
        Done { context, loss, gradient_norm: norm, samples: used as u32 }
    }

    /// The minibatches of a round in which the terminal trains the whole model.
    fn batches(&self, order: &TrainOrder) -> Vec<Vec<usize>> {
        let seed =
            |name: &str| self.minibatches.named(name).at(self.id.0.into()).at(order.context.round);
        let samples = order.samples as usize;
        match order.local {
            // The first is the one that any other rule would draw.
            Local::Steps(steps) => (0..steps as u64)
                .map(|step| {
                    let first = seed("split/minibatch");
                    let mut rng = if step == 0 { first.rng() } else { first.at(step).rng() };
                    self.data.choose(samples, &mut rng)
                })
                .collect(),
            Local::Epochs(epochs) => (0..epochs as u64)
                .flat_map(|epoch| {
                    let all =
                        self.data.choose(self.data.len(), &mut seed("split/epoch").at(epoch).rng());
                    all.chunks(samples).map(<[usize]>::to_vec).collect::<Vec<_>>()
                })
                .collect(),
        }
    }

    /// Replaces its copies by those that a receiver of their compressed change decodes.
    fn compress_change(&mut self, order: &TrainOrder, before: &Weights) {
        let flat = |weights: &Weights| weights.layers().concat();
        let (old, new) = (flat(before), flat(&self.weights));
        let change: Vec<f32> = new.iter().zip(&old).map(|(new, old)| new - old).collect();
        let mut rng = self.stream("split/compress/model", order.context.round);
        let (mut bytes, mut decoded) = (Vec::new(), Vec::new());
        order.compressor.encode(&change, change.len(), order.q, &mut rng, &mut bytes);
        decode(&bytes, change.len(), 1, &mut decoded).expect("decodes what was just encoded");
        let mut moved = old.iter().zip(&decoded).map(|(old, change)| old + change);
        for layer in self.weights.layers_mut() {
            layer.iter_mut().zip(&mut moved).for_each(|(value, moved)| *value = moved);
        }
    }

    /// The step of the front layers.
    ///
    /// $$ \mathbf{W}^{\mathrm{c}}_n\[t\] = \mathbf{W}^{\mathrm{c}}_n\[t-1\] -
    ///    \eta^{\mathrm{c}} \mathbf{G}^{\mathrm{c}}_n\[t\] $$
    ///
    /// Other update rules put their own direction in the place of the gradient. The gradient is
    /// clipped first if the order says so. Returns its norm before that.
    ///
    /// Eq. `sys-upd-c`
    fn update(&mut self, order: &TrainOrder, gradients: &mut Weights) -> f64 {
        let Self { weights, optimiser, .. } = self;
        let layers = 1..=order.context.cut.into();
        let norm = gradients.clip(layers.clone(), order.clip);
        optimiser.step(order.optimiser, weights, gradients, layers, order.rate);
        norm
    }
}
