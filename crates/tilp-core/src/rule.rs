//! The ways to train a round, as data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the participants of a round train.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rule {
    /// All at once; the server steps with the mean of their gradients (SplitFed V1 and kin).
    #[default]
    Parallel,
    /// The server steps after every terminal, each terminal keeps its front (SplitFed V2).
    Sequential,
    /// Sequential split learning: one after another, and each starts from the front layers of the
    /// one before (SplitNN).
    Relay,
    /// All at once; every terminal gets the mean of the gradients at the cut (GA-SFL).
    Broadcast,
    /// Every terminal trains the whole model and sends it (FedAvg).
    Whole(Local),
    /// All at once; layers up to some depth have a copy per terminal, then per edge server
    /// (AdaptSFL and HSFL). The terminal with id `n` belongs to edge server `n` modulo their number.
    Tiered {
        /// Number of edge servers.
        edges: usize,
    },
}

impl Rule {
    /// Optimiser steps that the layers which all terminals have in common take on the server in a
    /// round with this number of participants. Averaging copies is not a step.
    pub fn server_steps(self, n_took_part: u64) -> u64 {
        match self {
            Rule::Parallel | Rule::Broadcast | Rule::Tiered { .. } => n_took_part.min(1),
            Rule::Sequential | Rule::Relay => n_took_part,
            Rule::Whole(_) => 0,
        }
    }
}

/// How much a terminal trains on its own in one round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Local {
    /// A number of minibatches.
    Steps(usize),
    /// A number of passes over its data.
    Epochs(usize),
}

impl Local {
    /// Samples that go through the model, with minibatches of `batch` on a set of `n_samples`.
    pub fn samples(self, batch: usize, n_samples: usize) -> usize {
        match self {
            Local::Steps(steps) => steps * batch.min(n_samples),
            Local::Epochs(epochs) => epochs * n_samples,
        }
    }
}
