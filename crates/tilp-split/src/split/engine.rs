//! Rounds of federated split learning with mixed cuts.
//!
//! The engine drives the rounds. It owns the server half and reaches every terminal through a
//! [`TerminalLink`], by messages only. Aggregation is in `aggregate.rs`, one terminal's part of a
//! round in `session.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use rayon::prelude::*;

use super::compress::{Compressor, Exchange};
use super::data::Dataset;
use super::link::{LinkError, LocalLink, TerminalLink};
use super::message::LayerWeights;
use super::model::{SplitModel, Weights};
use super::optimiser::{Optimiser, StateAtAggregation};
use super::rule::Local;
use super::server::{Contribution, ServerHalf, ServerWork};
use super::session::{Session, sizes};
use super::terminal::{BufferPool, TerminalHalf, stream};
use super::terminal_state::TerminalState;
use crate::rng::{Rng, Seed};
use crate::round::TerminalId;
use crate::snapshot::{Snapshot, SnapshotError};
use crate::units::Bytes;

/// Settings of training; the same for every round unless the caller changes them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The seed of stochastic compression. A terminal gets it when it joins; a later change does
    /// not reach it.
    pub seed: Seed,
    /// The seed of minibatches, likewise.
    pub minibatches: Seed,
    /// Samples of a minibatch (`K_n`), fewer where a terminal has fewer.
    pub samples: usize,
    /// Learning rate of the server's layers (`eta^s`).
    pub server_rate: f32,
    /// Learning rate of the terminals' layers (`eta^c`).
    pub client_rate: f32,
    /// The update rule of both sides.
    pub optimiser: Optimiser,
    /// Largest norm of a gradient before it is used; zero for no limit. Clipped together is what
    /// one side steps at once: the layers on a terminal, the mean gradient of the server's layers,
    /// that of an edge server, and the copies that the server keeps for one terminal.
    pub clip: f32,
    /// What becomes of the optimiser state of copies that an aggregation replaces. The server's
    /// own layers always keep theirs.
    pub state_at_aggregation: StateAtAggregation,
    /// The operator behind the compression `q`.
    pub compressor: Compressor,
    /// The encoding of layers that are downloaded and of copies that are uploaded.
    pub exchange: Exchange,
}

impl Settings {
    /// The generator of one terminal in one round for one purpose.
    pub(super) fn stream(&self, name: &str, terminal: TerminalId, round: u64) -> Rng {
        stream(self.seed, name, terminal, round)
    }
}

/// A terminal that takes part in a round, and how.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Participant {
    /// Its id.
    pub terminal: TerminalId,
    /// It runs layers 1 to this one; at the last layer it trains alone, with nothing to exchange.
    pub cut: usize,
    /// Share of the payload that is not sent.
    pub q: f64,
}

/// Which layers have more than one copy besides those on the terminals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copies {
    /// Up to this layer every terminal has a copy of its own. Behind the cut the server keeps and
    /// trains it.
    pub own: usize,
    /// From there up to this layer every edge server trains a copy for its group.
    pub edge: usize,
    /// Number of edge servers; the terminal with id `n` belongs to number `n` modulo this.
    pub n_edges: usize,
}

impl Copies {
    /// The edge server of a terminal.
    pub(super) fn edge_of(self, terminal: TerminalId) -> usize {
        terminal.0 as usize % self.n_edges.max(1)
    }
}

/// Outcome of a round for one participant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// The terminal.
    pub terminal: TerminalId,
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
    /// Bytes, both ways, of the terminal's own copies that changed sides because its cut changed
    /// while the server kept copies for it. The cost model does not bill them.
    pub moved: Bytes,
}

/// A terminal whose exchange failed, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("terminal {terminal}: {error}")]
pub struct LinkFailure {
    /// The terminal.
    pub terminal: TerminalId,
    /// The reason.
    pub error: LinkError,
}

/// Why a round or an aggregation is not what was asked for.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RoundError {
    /// A participant that comes twice or asks for the impossible. Nothing was done.
    #[error("participant {terminal}: {field} = {value}, expected {expected}")]
    Participant {
        /// Its id.
        terminal: TerminalId,
        /// The field at fault.
        field: &'static str,
        /// Its value.
        value: f64,
        /// Expected value.
        expected: String,
    },
    /// An id that no terminal has. Nothing was done.
    #[error("terminal {0} is not a member")]
    Unknown(TerminalId),
    /// An id that a terminal has already. Nothing was done.
    #[error("terminal {0} is a member already")]
    AlreadyMember(TerminalId),
    /// A terminal without a sample cannot train. Nothing was done.
    #[error("terminal {0} has no samples")]
    NoSamples(TerminalId),
    /// Some terminals could not be reached or used. The round or aggregation is complete without
    /// them and must not be repeated. Their copies are lost, like copies that did not arrive: a
    /// failed terminal downloads the current layers when it takes part again.
    #[error("{}", .failed.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Links {
        /// The failures, in the order in which they occurred; within a round by id.
        failed: Vec<LinkFailure>,
        /// The outcomes of the others, in the order of the participants.
        done: Vec<Outcome>,
    },
}

/// Result of a round: outcomes of the participants, and failures.
#[derive(Debug, Default)]
pub(super) struct Progress {
    pub(super) done: Vec<Outcome>,
    pub(super) failed: Vec<LinkFailure>,
}

impl Progress {
    pub(super) fn finish(self) -> Result<Vec<Outcome>, RoundError> {
        let Self { done, failed } = self;
        if failed.is_empty() { Ok(done) } else { Err(RoundError::Links { failed, done }) }
    }

    /// Adds the failures of an aggregation in between.
    pub(super) fn note(&mut self, aggregated: Result<(), RoundError>) -> Result<(), RoundError> {
        match aggregated {
            Err(RoundError::Links { failed, .. }) => self.failed.extend(failed),
            other => other?,
        }
        Ok(())
    }

    /// Outcomes in the order of the participants from results by id.
    pub(super) fn new(
        participants: &[Participant],
        results: Vec<(TerminalId, Result<Outcome, LinkError>)>,
    ) -> Self {
        let (mut by_id, mut failed) = (BTreeMap::new(), Vec::new());
        for (terminal, result) in results {
            match result {
                Ok(outcome) => drop(by_id.insert(terminal, outcome)),
                Err(error) => failed.push(LinkFailure { terminal, error }),
            }
        }
        let done = participants.iter().filter_map(|one| by_id.get(&one.terminal).copied());
        Self { done: done.collect(), failed }
    }
}

/// Server and terminals of one training run.
pub struct Engine<M: SplitModel, L = LocalLink<M>> {
    pub(super) model: Arc<M>,
    pub(super) settings: Settings,
    pub(super) server: ServerHalf,
    /// One link per terminal, the same ids as in the server's books.
    pub(super) links: BTreeMap<TerminalId, Mutex<L>>,
    pub(super) gradient_slots: Vec<Weights>,
    pub(super) pool: Mutex<Vec<ServerWork<M>>>,
    /// Buffers of the terminals in this process.
    terminal_pool: Arc<BufferPool<M>>,
}

impl<M: SplitModel> Engine<M> {
    /// Terminals in this process with ids 0, 1, ...; all hold the base policy.
    ///
    /// # Panics
    /// If a terminal has no samples.
    pub fn new(model: Arc<M>, settings: Settings, base: &Weights, data: &[Arc<Dataset>]) -> Self {
        let n_layers = model.n_layers();
        let mut engine = Self::over_links(model, settings, base, n_layers, []);
        for (id, data) in (0..).map(TerminalId).zip(data) {
            let link = LocalLink::new(engine.local_terminal(id, data.clone()).with_policy(base));
            engine.server.add(id, n_layers);
            engine.links.insert(id, Mutex::new(link));
        }
        engine
    }

    /// Adds a terminal in this process. It holds nothing and downloads the current layers when it
    /// first takes part.
    pub fn join(&mut self, id: TerminalId, data: Arc<Dataset>) -> Result<(), RoundError> {
        if data.is_empty() {
            return Err(RoundError::NoSamples(id));
        }
        self.attach(id, LocalLink::new(self.local_terminal(id, data)))
    }

    /// Gives a terminal in this process other data, from its next minibatch on.
    pub fn replace_data(&mut self, id: TerminalId, data: Arc<Dataset>) -> Result<(), RoundError> {
        if data.is_empty() {
            return Err(RoundError::NoSamples(id));
        }
        let link = self.links.get(&id).ok_or(RoundError::Unknown(id))?;
        locked(link).terminal_mut().replace_data(data);
        Ok(())
    }

    /// Reads a terminal in this process, for the experimenter. Training never does.
    pub fn inspect<T>(
        &self,
        id: TerminalId,
        read: impl FnOnce(&TerminalHalf<M>) -> T,
    ) -> Option<T> {
        self.links.get(&id).map(|link| read(locked(link).terminal()))
    }

    /// The data of a terminal, for the experimenter's books.
    pub fn data(&self, id: TerminalId) -> Option<Arc<Dataset>> {
        self.inspect(id, |terminal| terminal.data().clone())
    }

    /// The data of all terminals, for the experimenter's books.
    pub fn data_sets(&self) -> BTreeMap<TerminalId, Arc<Dataset>> {
        self.ids().into_iter().filter_map(|id| Some((id, self.data(id)?))).collect()
    }
}

impl<M: SplitModel, L: TerminalLink> Engine<M, L> {
    /// Terminals behind links. All hold layers 1 to `held` of the base policy already.
    pub fn over_links(
        model: Arc<M>,
        settings: Settings,
        base: &Weights,
        held: usize,
        links: impl IntoIterator<Item = (TerminalId, L)>,
    ) -> Self {
        let mut server = ServerHalf::new(base.clone());
        let links: BTreeMap<_, _> =
            links.into_iter().map(|(id, link)| (id, Mutex::new(link))).collect();
        links.keys().for_each(|id| server.add(*id, held));
        Self {
            model,
            settings,
            server,
            links,
            gradient_slots: Vec::new(),
            pool: Mutex::new(Vec::new()),
            terminal_pool: Arc::default(),
        }
    }

    /// A terminal in this process, without layers, that is not a member yet.
    pub fn local_terminal(&self, id: TerminalId, data: Arc<Dataset>) -> TerminalHalf<M> {
        TerminalHalf::new(id, self.model.clone(), self.settings.seed, data)
            .with_minibatches(self.settings.minibatches)
            .with_pool(self.terminal_pool.clone())
    }

    /// The same engine with other links to the same terminals.
    pub fn map_links<K>(self, mut link: impl FnMut(TerminalId, L) -> K) -> Engine<M, K> {
        let Self { model, settings, server, links, gradient_slots, pool, terminal_pool } = self;
        let links = links.into_iter().map(|(id, old)| {
            let old = old.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
            (id, Mutex::new(link(id, old)))
        });
        let links = links.collect();
        Engine { model, settings, server, links, gradient_slots, pool, terminal_pool }
    }

    /// Calls `read` with the link of every terminal, by id.
    pub fn for_each_link(&self, mut read: impl FnMut(TerminalId, &mut L)) {
        self.links.iter().for_each(|(id, link)| read(*id, &mut locked(link)));
    }

    /// Takes over the server half of a snapshot. Terminals that it names must be members; others
    /// leave.
    pub fn restore_server(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        let server = ServerHalf::restored(&sizes(&*self.model), snapshot)?;
        if let Some(id) = server.terminals.keys().find(|id| !self.links.contains_key(id)) {
            return Err(SnapshotError::value("server/terminals", id, "ids of members"));
        }
        self.links.retain(|id, _| server.terminals.contains_key(id));
        self.server = server;
        Ok(())
    }

    /// Adds a terminal behind a link. It holds nothing and downloads the current layers when it
    /// first takes part.
    pub fn attach(&mut self, id: TerminalId, link: L) -> Result<(), RoundError> {
        if self.links.contains_key(&id) {
            return Err(RoundError::AlreadyMember(id));
        }
        self.server.add(id, 0);
        self.links.insert(id, Mutex::new(link));
        Ok(())
    }

    /// Removes a terminal and returns its link. What it trained since the last aggregation is
    /// lost, like a copy that did not arrive.
    pub fn leave(&mut self, id: TerminalId) -> Result<L, RoundError> {
        let link = self.links.remove(&id).ok_or(RoundError::Unknown(id))?;
        self.server.terminals.remove(&id);
        Ok(link.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }

    /// The model.
    pub fn model(&self) -> &M {
        &self.model
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The settings, which may be changed between rounds.
    pub fn settings_mut(&mut self) -> &mut Settings {
        &mut self.settings
    }

    /// The server half.
    pub fn server(&self) -> &ServerHalf {
        &self.server
    }

    /// The ids of all terminals, rising.
    pub fn ids(&self) -> Vec<TerminalId> {
        self.links.keys().copied().collect()
    }

    /// The server's record of a terminal; `None` if it is not a member.
    pub fn terminal(&self, id: TerminalId) -> Option<&TerminalState> {
        self.server.terminal(id)
    }

    /// Bytes that a terminal must download before it can train at this cut.
    pub fn missing_bytes(&self, id: TerminalId, cut: usize) -> Result<Bytes, RoundError> {
        let state = self.terminal(id).ok_or(RoundError::Unknown(id))?;
        Ok(self.layer_bytes(state.held + 1, cut))
    }

    /// Bytes of the pending upload of a terminal.
    pub fn pending_bytes(&self, id: TerminalId) -> Result<Bytes, RoundError> {
        let state = self.terminal(id).ok_or(RoundError::Unknown(id))?;
        Ok(self.layer_bytes(1, state.deepest_trained()))
    }

    fn layer_bytes(&self, first: usize, last: usize) -> Bytes {
        if first > last {
            return Bytes(0);
        }
        let sizes = (first..=last).map(|layer| self.model.n_parameters(layer));
        Bytes(LayerWeights::n_bytes(self.settings.exchange, sizes) as u64)
    }

    /// One round. Outcomes come in the order of the participants; the result does not depend on
    /// that order, nor on the number of threads.
    ///
    /// A terminal that takes no part keeps its layers:
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
        self.train_together(round, participants, copies, Local::Steps(1))?.finish()
    }

    /// One round of terminals side by side; `local` is for those at the last layer.
    pub(super) fn train_together(
        &mut self,
        round: u64,
        participants: &[Participant],
        copies: Copies,
        local: Local,
    ) -> Result<Progress, RoundError> {
        self.check(participants)?;
        self.server.set_edges(copies, self.settings.state_at_aggregation);
        let (session, tasks) = self.session(round, participants, copies, local);
        let results: Vec<(TerminalId, Result<Outcome, LinkError>)> = tasks
            .into_par_iter()
            .map(|Task { participant, state, link, slot }| {
                let result = session.train(participant, state, &mut *locked(link), slot);
                if result.is_err() {
                    state.lose(session.settings.state_at_aggregation);
                }
                (participant.terminal, result)
            })
            .collect();
        self.step(participants, copies, &results);
        Ok(Progress::new(participants, results))
    }

    /// Common inputs of all participants of a round, and the inputs of each, by id.
    pub(super) fn session(
        &mut self,
        round: u64,
        participants: &[Participant],
        copies: Copies,
        local: Local,
    ) -> (Session<'_, M>, Vec<Task<'_, L>>) {
        let chosen: BTreeMap<_, _> = participants.iter().map(|one| (one.terminal, *one)).collect();
        let slots = self.gradient_slots.len().max(chosen.len());
        self.gradient_slots.resize_with(slots, Weights::default);
        let Self { model, settings, server, links, gradient_slots, pool, .. } = self;
        let ServerHalf { shared, edges, terminals, last_round } = server;
        *last_round = round;
        let members = terminals.iter_mut().zip(links.values());
        let tasks = members
            .filter_map(|((id, state), link)| Some((*chosen.get(id)?, state, link)))
            .zip(gradient_slots)
            .map(|((participant, state, link), slot)| Task { participant, state, link, slot });
        let tasks = tasks.collect();
        (Session { model, settings, shared, edges, copies, local, pool, round }, tasks)
    }

    /// The step of the shared layers with the gradients of the participants that succeeded.
    pub(super) fn step(
        &mut self,
        participants: &[Participant],
        copies: Copies,
        results: &[(TerminalId, Result<Outcome, LinkError>)],
    ) {
        let Self { settings, server, gradient_slots, .. } = self;
        let cuts: BTreeMap<_, _> = participants.iter().map(|one| (one.terminal, one.cut)).collect();
        let contributions: Vec<(TerminalId, Contribution<'_>)> = (results.iter())
            .zip(&*gradient_slots)
            .filter_map(|((id, result), gradients)| {
                let own = cuts[id].max(copies.own);
                let samples = result.as_ref().ok()?.samples;
                Some((*id, Contribution { own, samples, gradients }))
            })
            .collect();
        for (index, edge) in server.edges.iter_mut().enumerate() {
            let group = contributions.iter().filter(|(id, _)| copies.edge_of(*id) == index);
            let group: Vec<_> = group.map(|(_, one)| *one).collect();
            edge.update(settings, copies.edge, &group);
        }
        let shared: Vec<_> = contributions
            .into_iter()
            .map(|(_, one)| Contribution { own: one.own.max(copies.edge), ..one })
            .collect();
        server.shared.update(settings, &shared);
    }

    /// `Ok` if every participant is a member, comes once and asks for something possible.
    pub(super) fn check(&self, participants: &[Participant]) -> Result<(), RoundError> {
        let mut seen = BTreeSet::new();
        let last = self.model.n_layers();
        for &Participant { terminal, cut, q } in participants {
            let wrong = |field, value, expected: String| {
                Err(RoundError::Participant { terminal, field, value, expected })
            };
            if !self.links.contains_key(&terminal) {
                return Err(RoundError::Unknown(terminal));
            }
            if !seen.insert(terminal) {
                return wrong("id", terminal.0.into(), "each terminal once".to_string());
            }
            if !(1..=last).contains(&cut) {
                return wrong("cut", cut as f64, format!("1 to {last}"));
            }
            if !(0.0..=1.0).contains(&q) {
                return wrong("q", q, "0 to 1".to_string());
            }
        }
        Ok(())
    }
}

/// Inputs of one participant in a round.
pub(super) struct Task<'a, L> {
    pub(super) participant: Participant,
    pub(super) state: &'a mut TerminalState,
    pub(super) link: &'a Mutex<L>,
    pub(super) slot: &'a mut Weights,
}

/// Locks a link or a pool. A panic elsewhere does not make its content invalid.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
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
