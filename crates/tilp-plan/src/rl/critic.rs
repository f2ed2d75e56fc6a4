//! The value of a state and the actions of all its terminals, whatever their order and number.

use super::actor::AgentStates;
use super::mlp::{Mlp, Trace};
use super::policy::Space;
use crate::nn::lanes::vectorised;
use crate::rng::Seed;

/// An encoder for every terminal, the mean over terminals, and a reader of that mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Critic {
    encoder: Mlp,
    reader: Mlp,
    width: usize,
    features: usize,
}

/// Buffers of a pass.
#[derive(Clone, Debug, Default)]
pub struct CriticTrace {
    input: Vec<f32>,
    encoder: Trace,
    pooled: Vec<f32>,
    reader: Trace,
    samples: usize,
    n_terminals: usize,
}

impl CriticTrace {
    /// The values, state by state.
    pub fn values(&self) -> &[f32] {
        self.reader.output()
    }
}

impl Critic {
    /// For states with actions: Q(s, a).
    pub fn new(space: &Space, width: usize) -> Self {
        Self::build(space.terminal_features, space.n_action(), space.global_features, width)
    }

    /// For states alone: V(s).
    pub fn without_actions(space: &Space, width: usize) -> Self {
        Self::build(space.terminal_features, 0, space.global_features, width)
    }

    fn build(features: usize, n_action: usize, globals: usize, width: usize) -> Self {
        let encoder = Mlp::new(&[features + n_action, width, width], true);
        let reader = Mlp::new(&[width + globals, width, 1], false);
        Self { encoder, reader, width, features }
    }

    /// Number of parameters.
    pub fn n_parameters(&self) -> usize {
        self.encoder.n_parameters() + self.reader.n_parameters()
    }

    /// First weights; those of the last layer `last` times smaller.
    pub fn initial(&self, seed: Seed, last: f32) -> Vec<f32> {
        let mut parameters = self.encoder.initial(seed.named("encoder"), 1.0);
        parameters.extend(self.reader.initial(seed.named("reader"), last));
        parameters
    }

    /// Values of states with actions (rows of [`Space::n_action`]; empty without).
    pub fn forward(
        &self,
        parameters: &[f32],
        agent_states: &AgentStates,
        actions: &[f32],
        trace: &mut CriticTrace,
    ) {
        let (encoder, reader) = parameters.split_at(self.encoder.n_parameters());
        (trace.samples, trace.n_terminals) = (agent_states.samples, agent_states.n_terminals);
        trace.input.clear();
        trace.input.extend_from_slice(&agent_states.terminals);
        trace.input.extend_from_slice(actions);
        self.encoder.forward(encoder, &trace.input, agent_states.columns(), &mut trace.encoder);
        trace.pooled.clear();
        trace.pooled.resize(self.width * agent_states.samples, 0.0);
        pool(
            trace.encoder.output(),
            agent_states.samples,
            agent_states.n_terminals,
            &mut trace.pooled,
        );
        trace.pooled.extend_from_slice(&agent_states.globals);
        self.reader.forward(reader, &trace.pooled, agent_states.samples, &mut trace.reader);
    }

    /// From the gradient of the values, in `flow`, to that of the actions, in `flow`; and of the
    /// parameters if it is wanted.
    pub fn backward(
        &self,
        parameters: &[f32],
        trace: &CriticTrace,
        flow: &mut Vec<f32>,
        gradient: Option<&mut [f32]>,
    ) {
        let split = self.encoder.n_parameters();
        let (encoder, reader) = parameters.split_at(split);
        let (mut for_encoder, mut for_reader) = (None, None);
        if let Some(gradient) = gradient {
            let (a, b) = gradient.split_at_mut(split);
            (for_encoder, for_reader) = (Some(a), Some(b));
        }
        self.reader.backward(reader, &trace.pooled, &trace.reader, flow, for_reader.take());
        let mut spread = vec![0.0; self.width * trace.samples * trace.n_terminals];
        unpool(flow, trace.samples, trace.n_terminals, &mut spread);
        *flow = spread;
        self.encoder.backward(encoder, &trace.input, &trace.encoder, flow, for_encoder.take());
        flow.drain(..self.features * trace.samples * trace.n_terminals);
    }
}

vectorised! {
    /// The mean over terminals.
    fn pool(encoded: &[f32], samples: usize, n_terminals: usize, pooled: &mut [f32]) {
        let share = 1.0 / n_terminals as f32;
        let rows = encoded.chunks_exact(samples * n_terminals);
        for (row, means) in rows.zip(pooled.chunks_exact_mut(samples)) {
            for terminal in row.chunks_exact(samples) {
                for (mean, value) in means.iter_mut().zip(terminal) {
                    *mean += value;
                }
            }
            means.iter_mut().for_each(|mean| *mean *= share);
        }
    }
}

vectorised! {
    fn unpool(by_mean: &[f32], samples: usize, n_terminals: usize, spread: &mut [f32]) {
        let share = 1.0 / n_terminals as f32;
        let rows = spread.chunks_exact_mut(samples * n_terminals);
        for (row, means) in rows.zip(by_mean.chunks_exact(samples)) {
            for terminal in row.chunks_exact_mut(samples) {
                for (value, mean) in terminal.iter_mut().zip(means) {
                    *value = share * mean;
                }
            }
        }
    }
}
