//! Copies of the layers with the samples behind each, in place of their weights.
//!
//! Copies are held, pending, averaged and lost by the rules of the split-learning engine:
//! terminals have copies of their front layers, the server has one of every layer, edge servers may
//! have some between them. An aggregation makes one layer of all its copies.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use super::Law;
use crate::round::TerminalId;

/// Training of a terminal's copy of a layer since the last aggregation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct OwnCopy {
    /// Weighted number of samples.
    pub(super) samples: f64,
    /// Steps.
    pub(super) steps: f64,
}

/// The same of a copy that several terminals train.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SharedCopy {
    /// Samples of each terminal of the run, present or not.
    pub(super) samples: Vec<f64>,
    /// Steps.
    pub(super) steps: f64,
}

impl SharedCopy {
    pub(super) fn new(n_terminals: usize) -> Self {
        Self { samples: vec![0.0; n_terminals], steps: 0.0 }
    }

    /// One step with the samples of these terminals; `None` without a terminal.
    fn step(&mut self, parts: impl Iterator<Item = (TerminalId, f64)>) {
        let mut parts = parts.peekable();
        if parts.peek().is_some() {
            self.steps += 1.0;
        }
        parts.for_each(|(id, samples)| self.samples[id.0 as usize] += samples);
    }

    fn clear(&mut self) {
        self.samples.fill(0.0);
        self.steps = 0.0;
    }

    fn total(&self) -> f64 {
        self.samples.iter().sum()
    }
}

/// The copies of one terminal.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Holdings {
    /// Layers 1 to this one have been downloaded since the last aggregation.
    pub(super) held: usize,
    /// Its copy of every layer, on the terminal or kept for it by the server.
    pub(super) layers: Vec<OwnCopy>,
}

impl Holdings {
    pub(super) fn new(n_layers: usize, held: usize) -> Self {
        Self { held, layers: vec![OwnCopy::default(); n_layers] }
    }

    fn last_trained(&self) -> usize {
        self.layers.iter().rposition(|copy| copy.steps > 0.0).map_or(0, |index| index + 1)
    }
}

/// A terminal's part of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Part {
    /// The terminal.
    pub(super) id: TerminalId,
    /// Layers on the terminal.
    pub(super) cut: usize,
    /// Weighted number of samples.
    pub(super) samples: f64,
    /// Steps on the terminal.
    pub(super) steps: f64,
    /// Remaining share of a step of the terminal's own layers.
    pub(super) front: f64,
}

/// Which layers have several copies: one per terminal or edge server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tier {
    /// Every terminal has its own copy of the layers up to this one.
    pub(super) own: usize,
    /// From there up to this layer every edge server has one for its group.
    pub(super) edge: usize,
    /// Number of edge servers.
    pub(super) n_edges: usize,
}

impl Tier {
    fn edge_of(self, id: TerminalId) -> usize {
        id.0 as usize % self.n_edges.max(1)
    }
}

/// All copies of all layers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LayerCopies {
    /// Share of the trained parameters that each layer has.
    shares: Vec<f64>,
    /// Samples of each terminal that have entered the model since the last aggregation, weighted by
    /// their worth and by the share of layers that they have reached.
    pub(super) settled: Vec<f64>,
    pub(super) members: BTreeMap<TerminalId, Holdings>,
    pub(super) server: Vec<SharedCopy>,
    /// Of each edge server, its copy of every layer; `None` if it has no copy.
    pub(super) edges: Vec<Vec<Option<SharedCopy>>>,
}

impl LayerCopies {
    /// Copies of a base model that all terminals hold.
    pub(super) fn new(shares: Vec<f64>, n_terminals: usize) -> Self {
        let n_layers = shares.len();
        let ids = (0..n_terminals as u32).map(TerminalId);
        Self {
            shares,
            settled: vec![0.0; n_terminals],
            members: ids.map(|id| (id, Holdings::new(n_layers, n_layers))).collect(),
            server: vec![SharedCopy::new(n_terminals); n_layers],
            edges: Vec::new(),
        }
    }

    pub(super) fn n_layers(&self) -> usize {
        self.shares.len()
    }

    pub(super) fn n_terminals(&self) -> usize {
        self.settled.len()
    }

    /// Share of the trained parameters in layers 1 to `layer`.
    pub(super) fn share_up_to(&self, layer: usize) -> f64 {
        self.shares[..layer].iter().sum()
    }

    /// Layers that a terminal holds in their current version.
    pub(super) fn held(&self, id: TerminalId) -> usize {
        self.members.get(&id).map_or(0, |own| own.held)
    }

    /// Layers of the pending upload of a terminal.
    pub(super) fn owed(&self, id: TerminalId) -> usize {
        let Some(own) = self.members.get(&id) else { return 0 };
        own.layers[..own.held].iter().take_while(|copy| copy.steps > 0.0).count()
    }

    /// Lets terminals leave and join so that these are present.
    pub(super) fn gather(&mut self, wanted: &BTreeSet<TerminalId>) {
        let n_layers = self.n_layers();
        self.members.retain(|id, _| wanted.contains(id));
        for id in wanted {
            self.members.entry(*id).or_insert_with(|| Holdings::new(n_layers, 0));
        }
    }

    /// One step of all copies: of the terminals' own, and of the shared ones behind them.
    pub(super) fn step(&mut self, parts: &[Part], tier: Tier) {
        let last = self.n_layers();
        self.set_edges(tier);
        for part in parts {
            let Some(own) = self.members.get_mut(&part.id) else { continue };
            own.held = own.held.max(part.cut);
            for copy in &mut own.layers[..tier.own.clamp(part.cut, last)] {
                copy.samples += part.samples * part.front;
                copy.steps += part.steps;
            }
        }
        let behind = |layer: usize, first: usize| {
            let shared = move |part: &&Part| part.cut.max(tier.own).max(first) < layer;
            parts.iter().filter(shared)
        };
        for (index, edge) in self.edges.iter_mut().enumerate() {
            for layer in 1..=tier.edge.min(last) {
                let group = behind(layer, 0).filter(|part| tier.edge_of(part.id) == index);
                if let Some(copy) = &mut edge[layer - 1] {
                    copy.step(group.map(|part| (part.id, part.samples)));
                }
            }
        }
        for (copy, layer) in self.server.iter_mut().zip(1..) {
            copy.step(behind(layer, tier.edge).map(|part| (part.id, part.samples)));
        }
    }

    /// The edge servers of a round, each with the layers of its tier.
    fn set_edges(&mut self, tier: Tier) {
        let (n_layers, n_terminals) = (self.n_layers(), self.n_terminals());
        let wanted = if tier.edge > tier.own { tier.n_edges } else { 0 };
        self.edges.resize_with(wanted, || vec![None; n_layers]);
        for edge in &mut self.edges {
            for copy in &mut edge[tier.own..tier.edge.min(n_layers)] {
                copy.get_or_insert_with(|| SharedCopy::new(n_terminals));
            }
        }
    }

    /// Samples of each terminal in the model after an aggregation of all copies.
    pub(super) fn used(&self, law: &Law) -> Vec<f64> {
        let mut used = self.settled.clone();
        for layer in 1..=self.n_layers() {
            self.merge(law, layer, |_| true, &mut used);
        }
        used
    }

    /// Aggregates the layers up to `last` and all layers that any terminal has trained. Copies of
    /// terminals that are not in `arrived` are lost; afterwards no terminal holds current layers.
    pub(super) fn aggregate(&mut self, law: &Law, last: usize, arrived: &[TerminalId]) {
        let trained = self.members.values().map(Holdings::last_trained).max().unwrap_or(0);
        self.settle(law, 1..=last.max(trained), |id| arrived.contains(&id));
        let n_layers = self.n_layers();
        self.members.values_mut().for_each(|own| *own = Holdings::new(n_layers, 0));
    }

    /// Aggregates the layers of the edge servers' tier. Copies on terminals stay as they are.
    pub(super) fn aggregate_edges(&mut self, law: &Law, tier: Tier) {
        self.settle(law, tier.own + 1..=tier.edge.min(self.n_layers()), |_| false);
    }

    fn settle(
        &mut self,
        law: &Law,
        layers: RangeInclusive<usize>,
        counts: impl Fn(TerminalId) -> bool + Copy,
    ) {
        let mut settled = std::mem::take(&mut self.settled);
        for layer in layers {
            self.merge(law, layer, counts, &mut settled);
            self.server[layer - 1].clear();
            self.edges.iter_mut().for_each(|edge| edge[layer - 1] = None);
        }
        self.settled = settled;
    }

    /// Adds the training behind the mean of all copies of a layer, weighted by their samples.
    /// Copies of terminals that do not count are left out.
    fn merge(
        &self,
        law: &Law,
        layer: usize,
        counts: impl Fn(TerminalId) -> bool,
        into: &mut [f64],
    ) {
        let shared = || {
            let edges = self.edges.iter().filter_map(|edge| edge[layer - 1].as_ref());
            std::iter::once(&self.server[layer - 1]).chain(edges).filter(|copy| copy.steps > 0.0)
        };
        let own = || {
            let copies = self.members.iter().filter(|(id, _)| counts(**id));
            let copies = copies.map(|(id, holdings)| (id.0 as usize, holdings.layers[layer - 1]));
            copies.filter(|(_, copy)| copy.steps > 0.0)
        };
        let copies = shared()
            .map(|copy| (copy.total(), copy.steps))
            .chain(own().map(|(_, copy)| (copy.samples, copy.steps)));
        let (mut total, mut weighted, mut squares) = (0.0, 0.0, 0.0);
        for (samples, steps) in copies {
            total += samples;
            weighted += samples * steps;
            squares += samples * samples;
        }
        if total <= 0.0 {
            return;
        }
        // The mean copy has been trained by this many steps, each with the samples of all copies.
        let steps = weighted / total;
        let merit = law.merit(total / steps, steps, 1.0 - squares / (total * total));
        let factor = merit * self.shares[layer - 1];
        for copy in shared() {
            into.iter_mut().zip(&copy.samples).for_each(|(sum, samples)| *sum += factor * samples);
        }
        own().for_each(|(n, copy)| into[n] += factor * copy.samples);
    }
}
