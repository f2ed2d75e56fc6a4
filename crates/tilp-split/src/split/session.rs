//! One terminal's part of a round, on the side of the server.

use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::sync::Mutex;

use super::control::{Aggregated, Done, HandOver, LayerCopy, MovedCopies, Notice, TrainOrder};
use super::edge::Edge;
use super::engine::{Copies, Outcome, Participant, Settings, locked};
use super::link::{LinkError, TerminalLink};
use super::message::{Context, Kind, LayerWeights};
use super::model::{SplitModel, Weights};
use super::optimiser::StateAtAggregation;
use super::rule::Local;
use super::server::{ServerWork, SharedLayers, serve};
use super::terminal_state::{TerminalState, neighbours};
use super::wire::{WireError, expect};
use crate::round::TerminalId;
use crate::units::Bytes;

/// Common inputs of all participants of a round.
pub(super) struct Session<'a, M: SplitModel> {
    pub(super) model: &'a M,
    pub(super) settings: &'a Settings,
    pub(super) shared: &'a SharedLayers,
    pub(super) edges: &'a [Edge],
    pub(super) copies: Copies,
    /// How much a terminal at the last layer trains.
    pub(super) local: Local,
    pub(super) pool: &'a Mutex<Vec<ServerWork<M>>>,
    pub(super) round: u64,
}

/// Bytes of the messages that put the layers in place before training.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Placed {
    pub(super) sync_down: Bytes,
    pub(super) moved: Bytes,
}

impl<M: SplitModel> Session<'_, M> {
    /// The whole part of one terminal: layers, training, bookkeeping.
    pub(super) fn train(
        &self,
        participant: Participant,
        state: &mut TerminalState,
        link: &mut impl TerminalLink,
        gradients: &mut Weights,
    ) -> Result<Outcome, LinkError> {
        let Self { model, settings, .. } = *self;
        let (cut, last) = (participant.cut, model.n_layers());
        let own = self.copies.own.clamp(cut, last);
        let placed = self.place(participant, own, state, link)?;
        let answer = link.exchange(&self.order(participant).to_bytes())?;
        if cut == last {
            return Ok(self.trained_whole(participant, placed, state, &answer)?);
        }
        let weights = self.behind(participant.terminal, state, cut, own);
        let context = self.context(participant.terminal, cut);
        let served = self.with_work(gradients, |work, gradients| {
            serve(context, &weights, model, settings, &answer, work, gradients)
        })?;
        let done = self.done(context, served.samples, &link.exchange(&served.reply)?)?;
        gradients.clip(cut + 1..=own, settings.clip);
        for layer in cut + 1..=own {
            let gradient = gradients.layer(layer);
            state.step(layer, settings.optimiser, gradient, settings.server_rate);
        }
        state.count(1..=own, served.samples);
        Ok(Outcome {
            terminal: participant.terminal,
            samples: served.samples,
            loss: served.loss,
            client_gradient_norm: done.gradient_norm,
            server_gradient_norm: served.gradient_norm,
            up: Bytes(answer.len() as u64),
            down: Bytes(served.reply.len() as u64),
            sync_down: placed.sync_down,
            moved: placed.moved,
        })
    }

    /// The outcome of a terminal that trained the whole model. It exchanged nothing but the model.
    fn trained_whole(
        &self,
        participant: Participant,
        placed: Placed,
        state: &mut TerminalState,
        answer: &[u8],
    ) -> Result<Outcome, WireError> {
        let done = Done::from_bytes(answer)?;
        done.context.expect(self.context(participant.terminal, participant.cut))?;
        if done.samples == 0 {
            return Err(WireError::new("samples", 0, "at least 1"));
        }
        let samples = done.samples as usize;
        state.count(1..=participant.cut, samples);
        state.compressed = participant.q > 0.0;
        Ok(Outcome {
            terminal: participant.terminal,
            samples,
            loss: done.loss,
            client_gradient_norm: done.gradient_norm,
            server_gradient_norm: 0.0,
            up: Bytes(0),
            down: Bytes(0),
            sync_down: placed.sync_down,
            moved: placed.moved,
        })
    }

    /// Reads the end of a training step on a minibatch of this size.
    pub(super) fn done(
        &self,
        context: Context,
        samples: usize,
        answer: &[u8],
    ) -> Result<Done, WireError> {
        let done = Done::from_bytes(answer)?;
        done.context.expect(context)?;
        expect("samples", done.samples as usize, samples)?;
        Ok(done)
    }

    /// Lends buffers to `task`. Buffers keep nothing that a later task could read.
    pub(super) fn with_work<T>(
        &self,
        gradients: &mut Weights,
        task: impl FnOnce(&mut ServerWork<M>, &mut Weights) -> T,
    ) -> T {
        if gradients.n_layers() == 0 {
            *gradients = Weights::zeros(self.model);
        }
        let taken = locked(self.pool).pop();
        let mut work = taken.unwrap_or_else(|| ServerWork::new(self.model));
        let done = task(&mut work, gradients);
        locked(self.pool).push(work);
        done
    }

    /// The context of a message about this cut or last layer.
    pub(super) fn context(&self, terminal: TerminalId, cut: usize) -> Context {
        Context { round: self.round, terminal, cut: cut as u16 }
    }

    /// The train order for a participant.
    pub(super) fn order(&self, Participant { terminal, cut, q }: Participant) -> TrainOrder {
        let settings = self.settings;
        TrainOrder {
            context: self.context(terminal, cut),
            q,
            rate: settings.client_rate,
            optimiser: settings.optimiser,
            clip: settings.clip,
            samples: u32::try_from(settings.samples).unwrap_or(u32::MAX),
            compressor: settings.compressor,
            local: self.local,
        }
    }

    /// Puts every layer where this round needs it: layers up to the cut on the terminal, the
    /// terminal's own copies behind the cut and up to `own` at the server.
    pub(super) fn place(
        &self,
        Participant { terminal, cut, .. }: Participant,
        own: usize,
        state: &mut TerminalState,
        link: &mut impl TerminalLink,
    ) -> Result<Placed, LinkError> {
        if state.must_forget {
            let optimiser_state = self.settings.state_at_aggregation;
            let notice = Aggregated { context: self.context(terminal, 0), optimiser_state };
            acknowledged(link, terminal, &notice.to_bytes())?;
            state.must_forget = false;
        }
        let mut moved = 0;
        let held = state.held;
        for layers in neighbours(1..=cut.min(held), |layer| !state.is_on_terminal(layer)) {
            moved += self.give_back(terminal, layers, state, link)?;
        }
        for layers in neighbours(cut + 1..=own.min(held), |layer| state.is_on_terminal(layer)) {
            moved += self.take_over(terminal, layers, state, link)?;
        }
        for layer in held.max(cut) + 1..=own {
            if state.kept(layer).is_none() {
                let parameters = self.shared.weights.layer(layer).to_vec();
                let optimiser = std::mem::take(&mut state.resting[layer - 1]);
                state.kept[layer - 1] = Some(LayerCopy { parameters, state: optimiser });
            }
        }
        let sync_down = self.download(terminal, cut, state, link)?;
        Ok(Placed { sync_down, moved: Bytes(moved) })
    }

    /// Returns copies that the server kept; they continue on the terminal.
    fn give_back(
        &self,
        terminal: TerminalId,
        layers: RangeInclusive<usize>,
        state: &mut TerminalState,
        link: &mut impl TerminalLink,
    ) -> Result<u64, LinkError> {
        let (first, last) = layers.into_inner();
        let copies = state.kept[first - 1..last].iter_mut().filter_map(Option::take).collect();
        let context = self.context(terminal, last);
        let bytes = MovedCopies { context, first: first as u16, copies }.to_bytes();
        acknowledged(link, terminal, &bytes)?;
        Ok(bytes.len() as u64)
    }

    /// Takes over copies from the terminal; they continue at the server.
    fn take_over(
        &self,
        terminal: TerminalId,
        layers: RangeInclusive<usize>,
        state: &mut TerminalState,
        link: &mut impl TerminalLink,
    ) -> Result<u64, LinkError> {
        let (first, last) = layers.into_inner();
        let order = HandOver { context: self.context(terminal, last), first: first as u16 };
        let bytes = link.exchange(&order.to_bytes())?;
        let moved = MovedCopies::from_bytes(&bytes, &sizes(self.model))?;
        moved.context.expect(order.context)?;
        expect("first layer", moved.first.into(), first)?;
        for (place, copy) in state.kept[first - 1..last].iter_mut().zip(moved.copies) {
            *place = Some(copy);
        }
        Ok(bytes.len() as u64)
    }

    /// Sends the layers up to the cut that the terminal lacks, from the copies kept for it or from
    /// the shared ones. No optimiser state is sent: the terminal uses what it has of them.
    fn download(
        &self,
        terminal: TerminalId,
        cut: usize,
        state: &mut TerminalState,
        link: &mut impl TerminalLink,
    ) -> Result<Bytes, LinkError> {
        if state.held >= cut {
            return Ok(Bytes(0));
        }
        let first = state.held + 1;
        let keeps = self.settings.state_at_aggregation == StateAtAggregation::Keep;
        let layers = (first..=cut).map(|layer| match state.kept[layer - 1].take() {
            Some(copy) => {
                if keeps {
                    state.resting[layer - 1] = copy.state;
                }
                copy.parameters
            }
            None => self.shared.weights.layer(layer).to_vec(),
        });
        let layers = layers.collect();
        let context = self.context(terminal, cut);
        let mut rng = self.settings.stream("split/exchange/down", terminal, self.round);
        let message = LayerWeights { context, first: first as u16, layers };
        let bytes = message.encoded(self.settings.exchange, &mut rng);
        acknowledged(link, terminal, &bytes)?;
        state.held = cut;
        Ok(Bytes(bytes.len() as u64))
    }

    /// The weights behind a terminal's cut: its own copies, its edge server's, the shared ones.
    fn behind(
        &self,
        terminal: TerminalId,
        state: &TerminalState,
        cut: usize,
        own: usize,
    ) -> Cow<'_, Weights> {
        let edge = self.copies.edge;
        if own == cut && edge <= cut {
            return Cow::Borrowed(&self.shared.weights);
        }
        let shared = |layer| self.shared.weights.layer(layer).to_vec();
        let layer = |layer: usize| match layer {
            layer if layer <= cut => Vec::new(),
            layer if layer <= own => {
                state.kept(layer).map_or_else(|| shared(layer), |copy| copy.parameters.clone())
            }
            layer if layer <= edge => {
                self.edges[self.copies.edge_of(terminal)].weights.layer(layer).to_vec()
            }
            layer => shared(layer),
        };
        Cow::Owned(Weights::new((1..=self.model.n_layers()).map(layer).collect()))
    }
}

/// Number of parameters of every layer.
pub(super) fn sizes(model: &impl SplitModel) -> Vec<usize> {
    (1..=model.n_layers()).map(|layer| model.n_parameters(layer)).collect()
}

/// Delivers a message that the terminal answers with an acknowledgement.
pub(super) fn acknowledged(
    link: &mut impl TerminalLink,
    terminal: TerminalId,
    message: &[u8],
) -> Result<(), LinkError> {
    let answer = link.exchange(message)?;
    let notice = Notice::from_bytes(Kind::Acknowledged, &answer)?;
    expect("terminal", notice.context.terminal.0 as usize, terminal.0 as usize)?;
    Ok(())
}
