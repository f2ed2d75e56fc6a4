//! From a state to the law of every terminal's action.

use super::mlp::{Mlp, Trace};
use super::policy::Space;
use crate::rng::Seed;

/// A batch of states, feature-major.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentStates {
    /// Terminals of a state.
    pub n_terminals: usize,
    /// States.
    pub samples: usize,
    /// Feature, terminal, sample.
    pub terminals: Vec<f32>,
    /// Feature, sample.
    pub globals: Vec<f32>,
}

impl AgentStates {
    /// Columns of a per-terminal network.
    pub fn columns(&self) -> usize {
        self.n_terminals * self.samples
    }
}

/// The actor's network: shared over terminals, global features beside those of the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    network: Mlp,
}

/// Buffers of a pass.
#[derive(Clone, Debug, Default)]
pub struct ActorTrace {
    input: Vec<f32>,
    network: Trace,
}

impl ActorTrace {
    /// Rows of the policy: see [`Space::n_head`].
    pub fn head(&self) -> &[f32] {
        self.network.output()
    }
}

impl Actor {
    /// Two hidden layers of a width.
    pub fn new(space: &Space, width: usize) -> Self {
        let inputs = space.terminal_features + space.global_features;
        Self { network: Mlp::new(&[inputs, width, width, space.n_head()], false) }
    }

    /// Number of parameters.
    pub fn n_parameters(&self) -> usize {
        self.network.n_parameters()
    }

    /// First weights; those of the last layer `last` times smaller.
    pub fn initial(&self, seed: Seed, last: f32) -> Vec<f32> {
        self.network.initial(seed, last)
    }

    /// Runs the network on every terminal of every state.
    pub fn forward(&self, parameters: &[f32], agent_states: &AgentStates, trace: &mut ActorTrace) {
        trace.input.clear();
        trace.input.extend_from_slice(&agent_states.terminals);
        for global in agent_states.globals.chunks_exact(agent_states.samples) {
            for _ in 0..agent_states.n_terminals {
                trace.input.extend_from_slice(global);
            }
        }
        self.network.forward(parameters, &trace.input, agent_states.columns(), &mut trace.network);
    }

    /// The gradient of the parameters from that of the rows of the policy, which is used up.
    pub fn backward(
        &self,
        parameters: &[f32],
        trace: &ActorTrace,
        by_head: &mut Vec<f32>,
        gradient: &mut [f32],
    ) {
        self.network.backward(parameters, &trace.input, &trace.network, by_head, Some(gradient));
    }
}
