//! Update rules and the state that they keep between steps.

use std::ops::RangeInclusive;

use super::model::Weights;
use crate::nn::optimiser::{descend, descend_with_momentum};
use crate::snapshot::{Snapshot, SnapshotError};

/// An update rule with its settings. The learning rate is an argument of every step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Optimiser {
    /// Gradient descent.
    Sgd {
        /// Momentum; zero is plain descent.
        momentum: f32,
    },
}

/// State of an optimiser for one layer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LayerState {
    /// Running sum of gradients; empty before the first step with momentum.
    pub(super) velocity: Vec<f32>,
}

impl LayerState {
    /// One step of the parameters of this layer.
    pub fn step(
        &mut self,
        optimiser: Optimiser,
        parameters: &mut [f32],
        gradient: &[f32],
        rate: f32,
    ) {
        match optimiser {
            Optimiser::Sgd { momentum: 0.0 } => descend(parameters, gradient, rate),
            Optimiser::Sgd { momentum } => {
                descend_with_momentum(parameters, gradient, &mut self.velocity, rate, momentum);
            }
        }
    }

    /// Returns to the state before the first step.
    pub fn clear(&mut self) {
        self.velocity.clear();
    }

    pub(super) fn save(&self, name: &str, snapshot: &mut Snapshot) {
        snapshot.put_f32(&format!("{name}/velocity"), self.velocity.clone());
    }

    /// Reads the state of a layer with so many parameters.
    pub(super) fn restored(
        name: &str,
        n_parameters: usize,
        snapshot: &Snapshot,
    ) -> Result<Self, SnapshotError> {
        let name = format!("{name}/velocity");
        let length = if snapshot.len_of(&name) == 0 { 0 } else { n_parameters };
        Ok(Self { velocity: finite(&name, length, snapshot)? })
    }
}

/// State of an optimiser for a whole model, layer by layer; layers count from 1.
#[derive(Clone, Debug, PartialEq)]
pub struct OptimiserState(Vec<LayerState>);

impl OptimiserState {
    /// The state before the first step.
    pub fn new(n_layers: usize) -> Self {
        Self(vec![LayerState::default(); n_layers])
    }

    /// One step of a range of layers.
    pub fn step(
        &mut self,
        optimiser: Optimiser,
        weights: &mut Weights,
        gradients: &Weights,
        layers: RangeInclusive<usize>,
        rate: f32,
    ) {
        for layer in layers {
            let parameters = weights.layer_mut(layer);
            self.0[layer - 1].step(optimiser, parameters, gradients.layer(layer), rate);
        }
    }

    /// Resets one layer to the state before the first step.
    pub fn clear(&mut self, layer: usize) {
        self.0[layer - 1].clear();
    }

    /// The state of one layer.
    pub fn layer(&self, layer: usize) -> &LayerState {
        &self.0[layer - 1]
    }

    /// The state of one layer, to be changed.
    pub fn layer_mut(&mut self, layer: usize) -> &mut LayerState {
        &mut self.0[layer - 1]
    }

    /// All layers in order, to be changed.
    pub fn layers_mut(&mut self) -> &mut [LayerState] {
        &mut self.0
    }

    pub(super) fn save(&self, name: &str, snapshot: &mut Snapshot) {
        for (index, layer) in self.0.iter().enumerate() {
            layer.save(&format!("{name}/{}", index + 1), snapshot);
        }
    }

    /// Reads the state of a model whose layers have these numbers of parameters.
    pub(super) fn restored(
        name: &str,
        sizes: &[usize],
        snapshot: &Snapshot,
    ) -> Result<Self, SnapshotError> {
        let layer = |(index, size): (usize, &usize)| {
            LayerState::restored(&format!("{name}/{}", index + 1), *size, snapshot)
        };
        sizes.iter().enumerate().map(layer).collect::<Result<_, _>>().map(Self)
    }
}

/// An array of finite numbers.
pub(super) fn finite(
    name: &str,
    length: usize,
    snapshot: &Snapshot,
) -> Result<Vec<f32>, SnapshotError> {
    let values = snapshot.f32(name, length)?;
    match values.iter().find(|value| !value.is_finite()) {
        None => Ok(values.to_vec()),
        Some(value) => Err(SnapshotError::value(name, value, "a finite number")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stepped() -> (Weights, OptimiserState) {
        let (mut weights, mut state) =
            (Weights::new(vec![vec![1.0], vec![2.0, 3.0]]), OptimiserState::new(2));
        let gradients = Weights::new(vec![vec![0.5], vec![-1.0, 1.0]]);
        let heavy = Optimiser::Sgd { momentum: 0.9 };
        for _ in 0..2 {
            state.step(heavy, &mut weights, &gradients, 2..=2, 0.1);
        }
        (weights, state)
    }

    #[test]
    fn a_step_changes_the_layers_of_its_range_only() {
        let (mut weights, mut state) = stepped();
        assert_eq!(weights.layer(1), [1.0]);
        assert!(state.layer(1).velocity.is_empty());
        assert_eq!(state.layer(2).velocity, [-1.9, 1.9]);
        state.clear(2);
        assert!(state.layer(2).velocity.is_empty());
        let plain = Optimiser::Sgd { momentum: 0.0 };
        state.step(plain, &mut weights, &Weights::new(vec![vec![0.5], vec![]]), 1..=1, 1.0);
        assert_eq!(weights.layer(1), [0.5]);
        assert_eq!(state, OptimiserState::new(2));
    }

    #[test]
    fn a_state_read_back_is_the_state_and_forged_ones_are_refused() {
        let (_, state) = stepped();
        let mut snapshot = Snapshot::default();
        state.save("own", &mut snapshot);
        let read = |snapshot: &Snapshot| OptimiserState::restored("own", &[1, 2], snapshot);
        assert_eq!(read(&snapshot), Ok(state));
        snapshot.put_f32("own/2/velocity", vec![1.0; 3]);
        assert!(matches!(read(&snapshot), Err(SnapshotError::Length { .. })));
        snapshot.put_f32("own/2/velocity", vec![1.0, f32::NAN]);
        let said = read(&snapshot).unwrap_err().to_string();
        assert_eq!(
            said,
            "checkpoint array `own/2/velocity` contains NaN, expected a finite number"
        );
    }
}
