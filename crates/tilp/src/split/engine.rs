//! Rounds of federated split learning with mixed cuts, and their aggregation.

use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex};

use rayon::prelude::*;

use super::compress::Compressor;
use super::data::Dataset;
use super::edge::Edge;
use super::message::{Context, LayerWeights};
use super::model::{SplitModel, Weights};
use super::rule::Local;
use super::server::{Server, ServerWork};
use super::terminal::{Terminal, TerminalWork};
use super::wire::WireError;
use crate::rng::{Rng, Seed};
use crate::units::Bytes;

/// How training is done; the same for every round unless the caller changes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The seed of minibatches and of stochastic compression.
    pub seed: Seed,
    /// Samples of a minibatch (`K_n`), fewer where a terminal has fewer.
    pub samples: usize,
    /// Learning rate of the server's layers (`eta^s`).
    pub server_rate: f32,
    /// Learning rate of the terminals' layers (`eta^c`).
    pub client_rate: f32,
    /// Momentum of both sides; zero is the paper's plain descent.
    pub momentum: f32,
    /// The operator behind the compression `q`.
    pub compressor: Compressor,
}

impl Settings {
    /// The generator of one terminal in one round for one purpose.
    pub(super) fn stream(&self, name: &str, terminal: u32, round: u64) -> Rng {
        self.seed.named(name).at(terminal.into()).at(round).rng()
    }
}

/// A terminal that takes part in a round, and how.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Participant {
    /// Its index.
    pub terminal: usize,
    /// It runs layers 1 to this one; at the last layer it trains alone, with nothing to exchange.
    pub cut: usize,
    /// Share of the payload that is not sent.
    pub q: f64,
}

/// Which layers have more than one copy besides those on the terminals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copies {
    /// Up to this layer every terminal trains a copy of its own; what lies behind its cut the
    /// server keeps for it.
    pub own: usize,
    /// From there up to this layer every edge server trains a copy for its group.
    pub edge: usize,
    /// Number of edge servers; terminal `n` belongs to number `n` modulo this.
    pub n_edges: usize,
}

/// What a round did for one participant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// The terminal.
    pub terminal: usize,
    /// Samples of its minibatch.
    pub samples: usize,
    /// Loss of its minibatch.
    pub loss: f64,
    /// Norm of the gradient of its own layers.
    pub client_gradient_norm: f64,
    /// Norm of its gradient of the server's layers.
    pub server_gradient_norm: f64,
    /// Bytes of the activation message.
    pub up: Bytes,
    /// Bytes of the gradient message.
    pub down: Bytes,
    /// Bytes of the layers it had to download first.
    pub sync_down: Bytes,
}

/// Why a round cannot be run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RoundError {
    /// A participant that does not exist, comes twice, or asks for the impossible.
    #[error("participant {terminal}: {field} = {value}, expected {expected}")]
    Participant {
        /// Its index.
        terminal: usize,
        /// The field at fault.
        field: &'static str,
        /// Its value.
        value: f64,
        /// What would be right.
        expected: String,
    },
    /// A message that cannot be read.
    #[error("message: {0}")]
    Message(#[from] WireError),
}

/// Server and terminals of one training run.
pub struct Engine<M: SplitModel> {
    pub(super) model: Arc<M>,
    pub(super) settings: Settings,
    pub(super) server: Server,
    pub(super) terminals: Vec<Terminal>,
    pub(super) edges: Vec<Edge>,
    /// How much a terminal at the last layer trains in one round.
    pub(super) local: Local,
    pub(super) seats: Vec<Weights>,
    pub(super) pool: Mutex<Vec<(TerminalWork<M>, ServerWork<M>)>>,
}

impl<M: SplitModel> Engine<M> {
    /// Everybody holds the base policy.
    pub fn new(model: Arc<M>, settings: Settings, base: &Weights, data: &[Arc<Dataset>]) -> Self {
        let terminals = data.iter().enumerate().map(|(index, data)| {
            assert!(!data.is_empty(), "terminal {index} has no samples");
            Terminal::new(index as u32, data.clone(), base.clone())
        });
        Self {
            model,
            settings,
            server: Server::new(base.clone()),
            terminals: terminals.collect(),
            edges: Vec::new(),
            local: Local::Steps(1),
            seats: Vec::new(),
            pool: Mutex::new(Vec::new()),
        }
    }

    /// The model.
    pub fn model(&self) -> &M {
        &self.model
    }

    /// The settings, which may be changed between rounds.
    pub fn settings_mut(&mut self) -> &mut Settings {
        &mut self.settings
    }

    /// The server's half.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// The terminals.
    pub fn terminals(&self) -> &[Terminal] {
        &self.terminals
    }

    /// Bytes that a terminal must download before it can train at this cut.
    pub fn missing_bytes(&self, terminal: usize, cut: usize) -> Bytes {
        self.layer_bytes(self.terminals[terminal].held + 1, cut)
    }

    /// Bytes of the copies that a terminal must upload at an aggregation.
    pub fn owed_bytes(&self, terminal: usize) -> Bytes {
        self.layer_bytes(1, self.terminals[terminal].deepest_trained())
    }

    fn layer_bytes(&self, first: usize, last: usize) -> Bytes {
        if first > last {
            return Bytes(0);
        }
        let sizes = (first..=last).map(|layer| self.model.n_parameters(layer));
        Bytes(LayerWeights::n_bytes(sizes) as u64)
    }

    /// One round. Outcomes come in the order of the participants; the result does not depend on
    /// that order, nor on the number of threads.
    ///
    /// Who takes no part keeps its layers:
    ///
    /// $$ \mathbf{W}^{\mathrm{c}}_n\[t\] = \mathbf{W}^{\mathrm{c}}_n\[t-1\], n \notin \mathcal{S}\[t\] $$
    ///
    /// Eq. `sys-upd-unscheduled`
    pub fn round(
        &mut self,
        round: u64,
        participants: &[Participant],
    ) -> Result<Vec<Outcome>, RoundError> {
        self.round_with(round, participants, Copies::default())
    }

    /// The same where some layers have more copies.
    pub fn round_with(
        &mut self,
        round: u64,
        participants: &[Participant],
        copies: Copies,
    ) -> Result<Vec<Outcome>, RoundError> {
        let chosen = self.chosen(participants)?;
        self.seats.resize_with(self.seats.len().max(participants.len()), Weights::default);
        self.staff(copies);
        let Self { model, settings, server, terminals, seats, pool, edges, local } = self;
        let mut tasks: Vec<_> = terminals.iter_mut().zip(&chosen).collect();
        tasks.retain(|(_, participant)| participant.is_some());
        let local = *local;
        let job = Job { model: &**model, settings, server, edges, copies, local, pool, round };
        let done: Vec<Outcome> = tasks
            .into_par_iter()
            .zip(&mut *seats)
            .filter_map(|((terminal, participant), seat)| Some((terminal, (*participant)?, seat)))
            .map(|(terminal, participant, seat)| job.train(terminal, participant, seat))
            .collect::<Result<_, _>>()?;
        let own = chosen.iter().flatten().map(|participant| participant.cut.max(copies.own));
        let seats: Vec<_> =
            own.zip(&done).zip(&*seats).map(|((own, o), seat)| (own, o.samples, seat)).collect();
        for (index, edge) in edges.iter_mut().enumerate() {
            let group = done.iter().zip(&seats);
            let group = group.filter(|(outcome, _)| outcome.terminal % copies.n_edges == index);
            let group: Vec<_> = group.map(|(_, seat)| *seat).collect();
            edge.update(settings, copies.edge, &group);
        }
        let shared: Vec<_> =
            seats.into_iter().map(|(own, o, seat)| (own.max(copies.edge), o, seat)).collect();
        server.update(settings, &shared);
        let place = |terminal: usize| done.partition_point(|outcome| outcome.terminal < terminal);
        Ok(participants.iter().map(|one| done[place(one.terminal)]).collect())
    }

    /// As many edge servers as there are to be, each with the layers of its tier.
    fn staff(&mut self, copies: Copies) {
        let wanted = if copies.edge > copies.own { copies.n_edges } else { 0 };
        let n_layers = self.model.n_layers();
        self.edges.resize_with(wanted, || Edge::new(n_layers));
        for edge in &mut self.edges {
            edge.adopt(&self.server, copies.own + 1..=copies.edge);
        }
    }

    /// The participants by terminal, each checked.
    pub(super) fn chosen(
        &self,
        participants: &[Participant],
    ) -> Result<Vec<Option<Participant>>, RoundError> {
        let mut chosen = vec![None; self.terminals.len()];
        let last = self.model.n_layers();
        for one in participants {
            let wrong = |field, value, expected: String| {
                let terminal = one.terminal;
                Err(RoundError::Participant { terminal, field, value, expected })
            };
            let Some(place) = chosen.get_mut(one.terminal) else {
                let expected = format!("below {}", self.terminals.len());
                return wrong("index", one.terminal as f64, expected);
            };
            if place.is_some() {
                return wrong("index", one.terminal as f64, "each terminal once".to_string());
            }
            if !(1..=last).contains(&one.cut) {
                return wrong("cut", one.cut as f64, format!("1 to {last}"));
            }
            if !(0.0..=1.0).contains(&one.q) {
                return wrong("q", one.q, "0 to 1".to_string());
            }
            *place = Some(*one);
        }
        Ok(chosen)
    }

    /// Makes every layer the mean of the copies that were trained since the last aggregation: of
    /// the server's by the samples of those it served, of a terminal's by the samples it used.
    /// Untouched layers stay. Copies of terminals that are not in `arrived` are lost; afterwards
    /// no terminal holds anything current.
    pub fn aggregate(&mut self, arrived: &[usize]) {
        self.aggregate_front(self.model.n_layers(), arrived);
    }

    /// The same for the layers up to `last` and all that any terminal has trained.
    pub fn aggregate_front(&mut self, last: usize, arrived: &[usize]) {
        let mut present = vec![false; self.terminals.len()];
        for terminal in arrived {
            present[*terminal] = true;
        }
        let trained = self.terminals.iter().map(Terminal::last_trained).max().unwrap_or(0);
        self.average(1..=last.max(trained), |terminal| present[terminal]);
        for terminal in &mut self.terminals {
            terminal.forget();
        }
    }

    /// Makes the layers of the edge servers' tier the mean of their copies.
    pub fn aggregate_edges(&mut self, copies: Copies) {
        self.average(copies.own + 1..=copies.edge, |_| true);
    }

    fn average(&mut self, layers: RangeInclusive<usize>, present: impl Fn(usize) -> bool + Sync) {
        let means: Vec<Vec<f32>> =
            layers.clone().into_par_iter().map(|layer| self.mean(layer, &present)).collect();
        for (layer, mean) in layers.clone().zip(means) {
            *self.server.weights.layer_mut(layer) = mean;
            self.server.served[layer - 1] = 0;
        }
        for edge in &mut self.edges {
            edge.forget(layers.clone());
        }
    }

    /// The model that an aggregation of all copies would give; nothing changes.
    pub fn virtual_mean(&self) -> Weights {
        let layers = (1..=self.model.n_layers()).into_par_iter();
        Weights::new(layers.map(|layer| self.mean(layer, &|_| true)).collect())
    }

    fn mean(&self, layer: usize, present: &(impl Fn(usize) -> bool + Sync)) -> Vec<f32> {
        let own = (self.server.served[layer - 1], self.server.weights.layer(layer));
        let edges = self.edges.iter().filter(|edge| edge.holds[layer - 1]);
        let edges = edges.map(|edge| (edge.served[layer - 1], edge.weights.layer(layer)));
        let theirs = self.terminals.iter().enumerate().filter(|(index, _)| present(*index));
        let theirs = theirs.map(|(_, one)| (one.trained[layer - 1], one.weights.layer(layer)));
        let copies = std::iter::once(own).chain(edges).chain(theirs);
        let trained: Vec<_> = copies.filter(|(samples, _)| *samples > 0).collect();
        weighted_mean(&trained).unwrap_or_else(|| own.1.to_vec())
    }
}

/// The mean of copies of a layer, each with its samples; a single copy stays bit for bit.
fn weighted_mean(copies: &[(u64, &[f32])]) -> Option<Vec<f32>> {
    let (_, first) = copies.first()?;
    if copies.len() == 1 {
        return Some(first.to_vec());
    }
    let total: u64 = copies.iter().map(|(samples, _)| samples).sum();
    let mut sum = vec![0.0f64; first.len()];
    for (samples, copy) in copies {
        let share = *samples as f64 / total as f64;
        for (value, parameter) in sum.iter_mut().zip(*copy) {
            *value += share * f64::from(*parameter);
        }
    }
    Some(sum.into_iter().map(|value| value as f32).collect())
}

/// The loss of a round, every minibatch weighted by its size.
///
/// $$ \mathcal{J}\[t\] = \sum_{n \in \mathcal{S}\[t\]} \omega_n\[t\] \mathcal{J}_n\[t\],
///    \omega_n\[t\] = K_n\[t\] / \sum_j K_j\[t\] $$
///
/// Eq. `training-loss`
pub fn training_loss(outcomes: &[Outcome]) -> f64 {
    let total: usize = outcomes.iter().map(|outcome| outcome.samples).sum();
    outcomes.iter().map(|outcome| outcome.loss * outcome.samples as f64 / total as f64).sum()
}

/// What all participants of a round share.
pub(super) struct Job<'a, M: SplitModel> {
    pub(super) model: &'a M,
    pub(super) settings: &'a Settings,
    pub(super) server: &'a Server,
    pub(super) edges: &'a [Edge],
    pub(super) copies: Copies,
    pub(super) local: Local,
    pub(super) pool: &'a Mutex<Vec<(TerminalWork<M>, ServerWork<M>)>>,
    pub(super) round: u64,
}

impl<M: SplitModel> Job<'_, M> {
    fn train(
        &self,
        terminal: &mut Terminal,
        participant: Participant,
        seat: &mut Weights,
    ) -> Result<Outcome, RoundError> {
        if seat.n_layers() == 0 {
            *seat = Weights::zeros(self.model);
        }
        self.with_work(|work| self.exchange(terminal, participant, seat, work))
    }

    /// Lends buffers to `task`; which ones cannot matter.
    pub(super) fn with_work<T>(
        &self,
        task: impl FnOnce(&mut (TerminalWork<M>, ServerWork<M>)) -> T,
    ) -> T {
        let taken = self.pool.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).pop();
        let new = || (TerminalWork::new(self.model), ServerWork::new(self.model));
        let mut work = taken.unwrap_or_else(new);
        let done = task(&mut work);
        self.pool.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(work);
        done
    }

    /// Gives the terminal the layers it lacks for this cut, and itself a copy of those up to `own`
    /// that it keeps for the terminal; returns the bytes sent.
    pub(super) fn download(
        &self,
        terminal: &mut Terminal,
        cut: usize,
        own: usize,
    ) -> Result<Bytes, WireError> {
        terminal.adopt(&self.server.weights, own);
        if terminal.held >= cut {
            return Ok(Bytes(0));
        }
        let context = Context { round: self.round, terminal: terminal.index, cut: cut as u16 };
        let first = terminal.held + 1;
        let layers = terminal.weights.layers()[first - 1..cut].to_vec();
        let bytes = LayerWeights { context, first: first as u16, layers }.to_bytes();
        terminal.receive(self.model, &bytes)?;
        Ok(Bytes(bytes.len() as u64))
    }

    /// The weights behind a terminal's cut: its own copies, its edge server's, the server's.
    fn behind(&self, terminal: &Terminal, cut: usize, own: usize) -> Cow<'_, Weights> {
        let Copies { edge, n_edges, .. } = self.copies;
        if own == cut && edge <= cut {
            return Cow::Borrowed(&self.server.weights);
        }
        let layer = |layer: usize| match layer {
            layer if layer <= cut => Vec::new(),
            layer if layer <= own => terminal.weights.layer(layer).to_vec(),
            layer if layer <= edge => {
                self.edges[terminal.index as usize % n_edges].weights.layer(layer).to_vec()
            }
            layer => self.server.weights.layer(layer).to_vec(),
        };
        Cow::Owned(Weights::new((1..=self.model.n_layers()).map(layer).collect()))
    }

    fn exchange(
        &self,
        terminal: &mut Terminal,
        Participant { cut, q, .. }: Participant,
        seat: &mut Weights,
        (front, back): &mut (TerminalWork<M>, ServerWork<M>),
    ) -> Result<Outcome, RoundError> {
        let Self { model, settings, server, round, .. } = *self;
        let own = self.copies.own.clamp(cut, model.n_layers());
        let sync_down = self.download(terminal, cut, own)?;
        if cut == model.n_layers() {
            return Ok(self.alone(terminal, q, sync_down, front));
        }
        let activation = terminal.forward(model, settings, round, cut, q, front);
        let weights = self.behind(terminal, cut, own);
        let served = server.serve_on(&weights, model, settings, &activation, back, seat)?;
        let client_gradient_norm = terminal.backward(model, settings, &served.reply, front)?;
        terminal.update_behind(settings, cut + 1..=own, served.samples, seat);
        Ok(Outcome {
            terminal: terminal.index as usize,
            samples: served.samples,
            loss: served.loss,
            client_gradient_norm,
            server_gradient_norm: served.gradient_norm,
            up: Bytes(activation.len() as u64),
            down: Bytes(served.reply.len() as u64),
            sync_down,
        })
    }

    /// The whole model on the terminal: nothing to exchange but the model itself, and of that only
    /// the change is compressed.
    fn alone(
        &self,
        terminal: &mut Terminal,
        q: f64,
        sync_down: Bytes,
        front: &mut TerminalWork<M>,
    ) -> Outcome {
        let Self { model, settings, round, .. } = *self;
        let before = (q > 0.0).then(|| terminal.weights.clone());
        let (loss, norm, samples) = terminal.train_alone(model, settings, round, self.local, front);
        if let Some(before) = before {
            terminal.round_change(settings, round, &before, q);
        }
        Outcome {
            terminal: terminal.index as usize,
            samples,
            loss,
            client_gradient_norm: norm,
            server_gradient_norm: 0.0,
            up: Bytes(0),
            down: Bytes(0),
            sync_down,
        }
    }
}
