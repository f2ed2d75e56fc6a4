//! The server's record of one terminal. It contains information from messages only.

use std::ops::RangeInclusive;

use super::control::LayerCopy;
use super::optimiser::{LayerState, Optimiser, StateAtAggregation};

/// The server's record of one terminal.
#[derive(Clone, Debug, PartialEq)]
pub struct TerminalState {
    /// Layers 1 to this one have been downloaded since the last aggregation.
    pub(super) held: usize,
    /// Samples with which the terminal's copy of every layer was trained since the last
    /// aggregation, on the terminal or by the server.
    pub(super) trained: Vec<u64>,
    /// The terminal's own copies behind its cut, which the server keeps and trains for it. A
    /// layer that is kept here is not on the terminal.
    pub(super) kept: Vec<Option<LayerCopy>>,
    /// Optimiser state of layers that the server kept before an aggregation. The next copy that
    /// it keeps of a layer continues with it.
    pub(super) resting: Vec<LayerState>,
    /// The copies on the terminal are the old ones plus a change that was compressed. What is
    /// billed is the change, so the copies are uploaded as they are.
    pub(super) compressed: bool,
    /// The terminal may still hold old copies. It must receive a notice to drop them before its next
    /// order.
    pub(super) must_forget: bool,
}

impl TerminalState {
    /// A terminal that holds layers 1 to `held` of the current model.
    pub(super) fn new(n_layers: usize, held: usize) -> Self {
        Self {
            held,
            trained: vec![0; n_layers],
            kept: vec![None; n_layers],
            resting: vec![LayerState::default(); n_layers],
            compressed: false,
            must_forget: false,
        }
    }

    /// Layers 1 to this one have been downloaded since the last aggregation.
    pub fn held(&self) -> usize {
        self.held
    }

    /// The deepest layer held and trained since the last aggregation: the length of the pending
    /// upload.
    pub fn deepest_trained(&self) -> usize {
        self.trained[..self.held].iter().take_while(|samples| **samples > 0).count()
    }

    /// The last layer of which there is a trained copy, on the terminal or kept by the server.
    pub(super) fn last_trained(&self) -> usize {
        self.trained.iter().rposition(|samples| *samples > 0).map_or(0, |index| index + 1)
    }

    /// Whether the terminal's copy of this layer is on the terminal.
    pub(super) fn is_on_terminal(&self, layer: usize) -> bool {
        layer <= self.held && self.kept[layer - 1].is_none()
    }

    /// The copy of this layer that the server keeps for the terminal.
    pub(super) fn kept(&self, layer: usize) -> Option<&LayerCopy> {
        self.kept[layer - 1].as_ref()
    }

    /// Counts samples with which these layers were trained.
    pub(super) fn count(&mut self, layers: RangeInclusive<usize>, samples: usize) {
        for layer in layers {
            let trained = &mut self.trained[layer - 1];
            *trained = trained.saturating_add(samples as u64);
        }
    }

    /// One step of a copy that the server keeps.
    pub(super) fn step(&mut self, layer: usize, optimiser: Optimiser, gradient: &[f32], rate: f32) {
        if let Some(copy) = &mut self.kept[layer - 1] {
            copy.state.step(optimiser, &mut copy.parameters, gradient, rate);
        }
    }

    /// Nothing of the terminal is current any more: its copies were averaged, or they are lost.
    pub(super) fn reset(&mut self, optimiser_state: StateAtAggregation) {
        let mut fresh = Self::new(self.trained.len(), 0);
        fresh.must_forget = self.must_forget || self.held > 0;
        if optimiser_state == StateAtAggregation::Keep {
            fresh.resting = std::mem::take(&mut self.resting);
            for (resting, copy) in fresh.resting.iter_mut().zip(self.kept.drain(..)) {
                if let Some(copy) = copy {
                    *resting = copy.state;
                }
            }
        }
        *self = fresh;
    }

    /// The same after a failure: it is unknown what the terminal holds.
    pub(super) fn lose(&mut self, optimiser_state: StateAtAggregation) {
        self.reset(optimiser_state);
        self.must_forget = true;
    }
}

/// The layers of a range that satisfy a condition, as ranges of neighbouring layers.
pub(super) fn neighbours(
    layers: RangeInclusive<usize>,
    condition: impl Fn(usize) -> bool,
) -> Vec<RangeInclusive<usize>> {
    let mut found: Vec<RangeInclusive<usize>> = Vec::new();
    for layer in layers.filter(|layer| condition(*layer)) {
        match found.last_mut() {
            Some(range) if *range.end() + 1 == layer => *range = *range.start()..=layer,
            _ => found.push(layer..=layer),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_layers_are_one_range() {
        let chosen = [1, 2, 5, 7, 8];
        let found = neighbours(1..=8, |layer| chosen.contains(&layer));
        assert_eq!(found, [1..=2, 5..=5, 7..=8]);
        assert!(neighbours(1..=8, |_| false).is_empty());
        #[expect(clippy::reversed_empty_ranges)]
        let empty = neighbours(3..=2, |_| true);
        assert!(empty.is_empty());
    }
}
