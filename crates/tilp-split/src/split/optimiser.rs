//! Update rules and the state that they keep between steps.

use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::model::Weights;
use super::wire::{Reader, WireError, get_floats, put_floats};
use crate::nn::optimiser::{Moments, descend, descend_with_momentum};
use crate::snapshot::{Snapshot, SnapshotError};

pub use crate::nn::optimiser::AdamW;

/// An update rule with its settings. The learning rate is an argument of every step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Optimiser {
    /// Gradient descent.
    Sgd {
        /// Momentum; zero is plain descent.
        momentum: f32,
    },
    /// Adam with decoupled weight decay.
    AdamW(AdamW),
}

impl Optimiser {
    /// Numbers that it keeps for every parameter.
    pub fn state_per_parameter(self) -> usize {
        match self {
            Optimiser::Sgd { momentum: 0.0 } => 0,
            Optimiser::Sgd { .. } => 1,
            Optimiser::AdamW(_) => 2,
        }
    }

    /// Appends the rule to a message.
    pub(super) fn put(self, bytes: &mut Vec<u8>) {
        match self {
            Optimiser::Sgd { momentum } => {
                bytes.push(0);
                bytes.extend(momentum.to_le_bytes());
            }
            Optimiser::AdamW(AdamW { beta1, beta2, epsilon, weight_decay }) => {
                bytes.push(1);
                for number in [beta1, beta2, epsilon, weight_decay] {
                    bytes.extend(number.to_le_bytes());
                }
            }
        }
    }

    /// Reads a rule from a message.
    pub(super) fn get(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        match reader.u8("optimiser")? {
            0 => {
                let momentum = share("momentum", reader.f32("momentum")?.into())? as f32;
                Ok(Optimiser::Sgd { momentum })
            }
            1 => Ok(Optimiser::AdamW(AdamW {
                beta1: share("beta1", reader.f64("beta1")?)?,
                beta2: share("beta2", reader.f64("beta2")?)?,
                epsilon: share("epsilon", reader.f64("epsilon")?)?,
                weight_decay: share("weight decay", reader.f64("weight decay")?)?,
            })),
            other => Err(WireError::new("optimiser", other.into(), "0 or 1")),
        }
    }
}

/// A number from 0 to 1.
fn share(field: &'static str, value: f64) -> Result<f64, WireError> {
    if (0.0..=1.0).contains(&value) {
        return Ok(value);
    }
    Err(WireError::new(field, value.to_bits(), "the bits of a number from 0 to 1"))
}

/// What becomes of the optimiser state of a copy when an aggregation replaces the copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StateAtAggregation {
    /// The new copy starts without state.
    #[default]
    Reset,
    /// The state stays where it is and is used with the new copy. Nothing is sent.
    Keep,
}

impl StateAtAggregation {
    /// Whether this is the default.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Added to a norm before it divides, as `torch.nn.utils.clip_grad_norm_` does.
const CLIP_MARGIN: f64 = 1e-6;

/// The factor that clips a gradient of this norm; `None` if the gradient stays as it is. The
/// largest norm `most` is zero for no clipping.
pub fn clip_factor(norm: f64, most: f32) -> Option<f32> {
    let factor = f64::from(most) / (norm + CLIP_MARGIN);
    (most > 0.0 && factor < 1.0).then_some(factor as f32)
}

/// State of an optimiser for one layer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LayerState {
    /// Running sum of gradients; empty before the first step with momentum.
    pub(super) velocity: Vec<f32>,
    /// Empty before the first step of AdamW.
    pub(super) moments: Moments,
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
            Optimiser::AdamW(adamw) => {
                adamw.step(parameters, gradient, &mut self.moments, rate);
            }
        }
    }

    /// Returns to the state before the first step.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Whether this is the state before the first step.
    pub fn is_empty(&self) -> bool {
        self.velocity.is_empty() && self.moments.steps == 0
    }

    /// Appends the state to a message.
    pub(super) fn put(&self, bytes: &mut Vec<u8>) {
        let Moments { mean, square, steps } = &self.moments;
        bytes.push(u8::from(!self.velocity.is_empty()) + 2 * u8::from(*steps > 0));
        put_floats(&self.velocity, bytes);
        if *steps > 0 {
            bytes.extend(steps.to_le_bytes());
            put_floats(mean, bytes);
            put_floats(square, bytes);
        }
    }

    /// Reads the state of a layer with this number of parameters from a message.
    pub(super) fn get(reader: &mut Reader<'_>, n_parameters: usize) -> Result<Self, WireError> {
        let held = reader.u8("optimiser state")?;
        if held > 3 {
            return Err(WireError::new("optimiser state", held.into(), "0 to 3"));
        }
        if held & 1 == 1 && n_parameters == 0 {
            let expected = "no velocity of a layer without parameters";
            return Err(WireError::new("optimiser state", held.into(), expected));
        }
        let mut state = Self::default();
        if held & 1 == 1 {
            get_floats(reader.bytes("velocity", 4 * n_parameters)?, &mut state.velocity);
        }
        if held & 2 == 2 {
            let Moments { mean, square, steps } = &mut state.moments;
            *steps = reader.u64("steps")?;
            get_floats(reader.bytes("mean", 4 * n_parameters)?, mean);
            get_floats(reader.bytes("square", 4 * n_parameters)?, square);
            if !(1..=MAX_STEPS).contains(steps) {
                return Err(WireError::new("steps", *steps, format!("1 to {MAX_STEPS}")));
            }
        }
        Ok(state)
    }

    pub(super) fn save(&self, name: &str, snapshot: &mut Snapshot) {
        snapshot.put_f32(&format!("{name}/velocity"), self.velocity.clone());
        let Moments { mean, square, steps } = &self.moments;
        if *steps > 0 {
            snapshot.put_f32(&format!("{name}/mean"), mean.clone());
            snapshot.put_f32(&format!("{name}/square"), square.clone());
            snapshot.put_u64(&format!("{name}/steps"), vec![*steps]);
        }
    }

    /// Reads the state of a layer with this number of parameters.
    pub(super) fn restored(
        name: &str,
        n_parameters: usize,
        snapshot: &Snapshot,
    ) -> Result<Self, SnapshotError> {
        let velocity = format!("{name}/velocity");
        let length = if snapshot.len_of(&velocity) == 0 { 0 } else { n_parameters };
        let velocity = finite(&velocity, length, snapshot)?;
        let steps = format!("{name}/steps");
        if snapshot.len_of(&steps) == 0 {
            return Ok(Self { velocity, moments: Moments::default() });
        }
        let square = format!("{name}/square");
        let moments = Moments {
            mean: finite(&format!("{name}/mean"), n_parameters, snapshot)?,
            square: finite(&square, n_parameters, snapshot)?,
            steps: snapshot.u64_up_to(&steps, 1, MAX_STEPS)?[0],
        };
        if let Some(value) = moments.square.iter().find(|value| **value < 0.0) {
            return Err(SnapshotError::value(&square, value, "no negative number"));
        }
        if moments.steps == 0 {
            return Err(SnapshotError::value(&steps, 0, "at least 1"));
        }
        Ok(Self { velocity, moments })
    }

    /// The same for a layer whose state is saved only if there is any.
    pub(super) fn restored_if_saved(
        name: &str,
        n_parameters: usize,
        snapshot: &Snapshot,
    ) -> Result<Self, SnapshotError> {
        if !snapshot.0.contains_key(&format!("{name}/velocity")) {
            return Ok(Self::default());
        }
        Self::restored(name, n_parameters, snapshot)
    }
}

/// Largest number of steps that a message or a snapshot may claim.
const MAX_STEPS: u64 = 1 << 48;

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

    const ADAMW: Optimiser =
        Optimiser::AdamW(AdamW { beta1: 0.9, beta2: 0.95, epsilon: 1e-8, weight_decay: 0.01 });

    #[test]
    fn a_clipped_gradient_has_the_largest_norm_and_a_small_one_stays() {
        let norm = 5.0f64;
        let factor = clip_factor(norm, 2.0).unwrap();
        assert!((norm * f64::from(factor) - 2.0).abs() < 1e-5);
        assert_eq!(clip_factor(norm, 5.5), None);
        assert_eq!(clip_factor(norm, 0.0), None);
        assert_eq!(clip_factor(0.0, 1.0), None);
    }

    #[test]
    fn a_rule_read_back_is_the_rule_and_one_out_of_range_names_the_field() {
        let read = |rule: Optimiser| {
            let mut bytes = Vec::new();
            rule.put(&mut bytes);
            let mut reader = Reader::new(&bytes);
            Optimiser::get(&mut reader).and_then(|rule| reader.end().map(|()| rule))
        };
        for rule in [ADAMW, Optimiser::Sgd { momentum: 0.9 }, Optimiser::Sgd { momentum: 0.0 }] {
            assert_eq!(read(rule), Ok(rule));
        }
        let Optimiser::AdamW(sound) = ADAMW else { unreachable!() };
        let said = |adamw: AdamW| read(Optimiser::AdamW(adamw)).unwrap_err().field;
        assert_eq!(said(AdamW { beta1: 1.5, ..sound }), "beta1");
        assert_eq!(said(AdamW { beta2: f64::NAN, ..sound }), "beta2");
        assert_eq!(said(AdamW { epsilon: -1.0, ..sound }), "epsilon");
        assert_eq!(said(AdamW { weight_decay: f64::INFINITY, ..sound }), "weight decay");
    }

    #[test]
    fn moments_survive_a_message_and_a_snapshot() {
        let (mut weights, mut state) =
            (Weights::new(vec![vec![1.0], vec![2.0, 3.0]]), OptimiserState::new(2));
        let gradients = Weights::new(vec![vec![0.5], vec![-1.0, 1.0]]);
        for _ in 0..3 {
            state.step(ADAMW, &mut weights, &gradients, 2..=2, 0.1);
        }
        assert!(state.layer(1).is_empty() && !state.layer(2).is_empty());
        let mut bytes = Vec::new();
        state.layer(2).put(&mut bytes);
        let mut reader = Reader::new(&bytes);
        assert_eq!(LayerState::get(&mut reader, 2).as_ref(), Ok(state.layer(2)));
        assert_eq!(reader.end(), Ok(()));
        let mut snapshot = Snapshot::default();
        state.save("own", &mut snapshot);
        let read = |snapshot: &Snapshot| OptimiserState::restored("own", &[1, 2], snapshot);
        assert_eq!(read(&snapshot), Ok(state));
        let mut forged = snapshot.clone();
        forged.put_f32("own/2/square", vec![1.0, -1.0]);
        assert!(matches!(read(&forged), Err(SnapshotError::Value { .. })));
        for steps in [0, u64::MAX] {
            let mut forged = snapshot.clone();
            forged.put_u64("own/2/steps", vec![steps]);
            assert!(matches!(read(&forged), Err(SnapshotError::Value { .. })));
        }
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
