//! Aggregation: layer by layer the mean of all trained copies.
//!
//! The server orders every terminal to upload the copies that are on it, averages them with its
//! own, and tells the terminals that their copies are no longer current. The number of samples
//! behind each copy needs no message: the server has counted the samples of every activation that
//! it served and of every done message. The header of a collect order says the last round of
//! training, on which the rounding of an upload depends; notices belong to no round and say 0.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use rayon::prelude::*;

use super::compress::Exchange;
use super::control::{Aggregated, Collect};
use super::engine::{Copies, Engine, LinkFailure, Progress, RoundError, locked};
use super::link::{LinkError, LocalLink, TerminalLink};
use super::message::{Context, LayerWeights};
use super::model::{SplitModel, Weights};
use super::session::{acknowledged, sizes};
use super::terminal_state::{TerminalState, neighbours};
use super::wire::expect;
use crate::round::TerminalId;

/// The copies that were on a terminal; layers that were not uploaded are empty.
type Uploads = BTreeMap<TerminalId, Weights>;

impl<M: SplitModel, L: TerminalLink> Engine<M, L> {
    /// Makes every layer the mean of the copies that were trained since the last aggregation: of
    /// the server's by the samples of the terminals it served, of a terminal's by the samples it
    /// used. Untouched layers stay. Copies of terminals that are not in `arrived` are lost;
    /// afterwards no terminal holds anything current.
    pub fn aggregate(&mut self, arrived: &[TerminalId]) -> Result<(), RoundError> {
        self.aggregate_front(self.model.n_layers(), arrived)
    }

    /// The same for the layers up to `last` and all that any terminal has trained.
    pub fn aggregate_front(
        &mut self,
        last: usize,
        arrived: &[TerminalId],
    ) -> Result<(), RoundError> {
        if let Some(id) = arrived.iter().find(|id| !self.links.contains_key(id)) {
            return Err(RoundError::Unknown(*id));
        }
        let present: BTreeSet<TerminalId> = arrived.iter().copied().collect();
        let trained = self.server.terminals.values().map(TerminalState::last_trained).max();
        let failed = self.average(1..=last.max(trained.unwrap_or(0)), &present);
        self.forget_all();
        Progress { done: Vec::new(), failed }.finish().map(|_| ())
    }

    /// Makes the layers of the edge servers' tier the mean of their copies.
    pub fn aggregate_edges(&mut self, copies: Copies) -> Result<(), RoundError> {
        let everybody = self.links.keys().copied().collect();
        let failed = self.average(copies.own + 1..=copies.edge, &everybody);
        Progress { done: Vec::new(), failed }.finish().map(|_| ())
    }

    /// The model that an aggregation of all copies would give; nothing changes. The uploads for
    /// it are measurements of the experimenter and are not billed.
    pub fn try_virtual_mean(&self) -> Result<Weights, RoundError> {
        let (mean, failed) = self.reachable_mean();
        Progress { done: Vec::new(), failed }.finish()?;
        Ok(mean)
    }

    /// The same over the copies that could be uploaded, and the terminals whose upload failed.
    pub fn reachable_mean(&self) -> (Weights, Vec<LinkFailure>) {
        let everybody = self.links.keys().copied().collect();
        let layers = 1..=self.model.n_layers();
        let (uploads, failed) = self.collect(layers.clone(), &everybody);
        let layers = layers.into_par_iter();
        (Weights::new(layers.map(|layer| self.mean(layer, &uploads)).collect()), failed)
    }

    /// Averages these layers over the terminals that are present. Returns the terminals whose
    /// upload failed; their copies are lost.
    fn average(
        &mut self,
        layers: RangeInclusive<usize>,
        present: &BTreeSet<TerminalId>,
    ) -> Vec<LinkFailure> {
        let (uploads, failed) = self.collect(layers.clone(), present);
        let means: Vec<Vec<f32>> =
            layers.clone().into_par_iter().map(|layer| self.mean(layer, &uploads)).collect();
        for (layer, mean) in layers.clone().zip(means) {
            *self.server.shared.weights.layer_mut(layer) = mean;
            self.server.shared.served[layer - 1] = 0;
        }
        for edge in &mut self.server.edges {
            edge.forget(layers.clone());
        }
        for LinkFailure { terminal, .. } in &failed {
            if let Some(state) = self.server.terminals.get_mut(terminal) {
                state.lose(self.settings.state_at_aggregation);
            }
        }
        failed
    }

    /// Orders the present terminals to upload their trained copies of these layers. Terminals
    /// that fail are missing from the uploads.
    fn collect(
        &self,
        layers: RangeInclusive<usize>,
        present: &BTreeSet<TerminalId>,
    ) -> (Uploads, Vec<LinkFailure>) {
        let members = self.server.terminals.iter().zip(self.links.values());
        let members: Vec<_> = members.filter(|((id, _), _)| present.contains(id)).collect();
        let results: Vec<_> = members
            .into_par_iter()
            .map(|((id, state), link)| {
                let mut link = locked(link);
                (*id, self.upload(*id, state, layers.clone(), &mut *link))
            })
            .collect();
        let (mut uploads, mut failed) = (Uploads::new(), Vec::new());
        for (terminal, result) in results {
            match result {
                Ok(weights) => drop(uploads.insert(terminal, weights)),
                Err(error) => failed.push(LinkFailure { terminal, error }),
            }
        }
        (uploads, failed)
    }

    /// The trained copies of these layers that are on a terminal.
    fn upload(
        &self,
        terminal: TerminalId,
        state: &TerminalState,
        layers: RangeInclusive<usize>,
        link: &mut L,
    ) -> Result<Weights, LinkError> {
        let mut uploaded = Weights::empty(self.model.n_layers());
        let wanted = |layer: usize| state.trained[layer - 1] > 0 && state.is_on_terminal(layer);
        let round = self.server.last_round;
        let exchange = if state.compressed { Exchange::Single } else { self.settings.exchange };
        for range in neighbours(layers, wanted) {
            let (first, last) = range.into_inner();
            let context = Context { round, terminal, cut: last as u16 };
            let order = Collect { context, first: first as u16, exchange }.to_bytes();
            let message = LayerWeights::from_bytes(&link.exchange(&order)?, &sizes(&*self.model))?;
            message.context.expect(context)?;
            expect("first layer", message.first.into(), first)?;
            for (layer, parameters) in (first..).zip(message.layers) {
                *uploaded.layer_mut(layer) = parameters;
            }
        }
        Ok(uploaded)
    }

    /// The mean of all trained copies of a layer. Terminals without an upload do not count.
    fn mean(&self, layer: usize, uploads: &Uploads) -> Vec<f32> {
        let shared = &self.server.shared;
        let own = (shared.served[layer - 1], shared.weights.layer(layer));
        let edges = self.server.edges.iter().filter(|edge| edge.holds[layer - 1]);
        let edges = edges.map(|edge| (edge.served[layer - 1], edge.weights.layer(layer)));
        let theirs = uploads.iter().filter_map(|(id, uploaded)| {
            let state = self.server.terminals.get(id)?;
            let kept = state.kept(layer).map(|copy| &copy.parameters[..]);
            Some((state.trained[layer - 1], kept.unwrap_or_else(|| uploaded.layer(layer))))
        });
        let copies = std::iter::once(own).chain(edges).chain(theirs);
        let trained: Vec<_> = copies.filter(|(samples, _)| *samples > 0).collect();
        weighted_mean(&trained).unwrap_or_else(|| own.1.to_vec())
    }

    /// Tells all terminals that their copies are no longer current. A notice that fails is
    /// repeated before the next order to that terminal.
    fn forget_all(&mut self) {
        let optimiser_state = self.settings.state_at_aggregation;
        let members = self.server.terminals.iter_mut().zip(self.links.values());
        let members: Vec<_> = members.collect();
        members.into_par_iter().for_each(|((id, state), link)| {
            state.reset(optimiser_state);
            if state.must_forget {
                let context = Context { round: 0, terminal: *id, cut: 0 };
                let notice = Aggregated { context, optimiser_state }.to_bytes();
                state.must_forget = acknowledged(&mut *locked(link), *id, &notice).is_err();
            }
        });
    }
}

impl<M: SplitModel> Engine<M, LocalLink<M>> {
    /// [`Engine::try_virtual_mean`] over terminals in this process, which cannot fail.
    ///
    /// # Panics
    /// If a terminal refuses an order of its own server, which is a mistake in this module.
    pub fn virtual_mean(&self) -> Weights {
        self.try_virtual_mean().expect("a terminal in this process uploads what it trained")
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
