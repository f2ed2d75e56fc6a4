//! A profile scenario in its file. `docs/howto/profile.md` explains it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::profile::LawRanges;
use crate::scenario::terminals::ListedTerminal;

/// A scenario without robots and tensors: sizes and work per cut from a table, learning by a law with
/// hidden parameters. Of `tasks` and `model` only `model.cuts` counts then.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Profile {
    /// Table of the model: a CSV file, or `builtin:smolvla` or `builtin:openvla`. When the scenario is
    /// read it becomes `cuts`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// Table of the terminals: a CSV file. When the scenario is read it becomes `listed`, and
    /// `cell.n_terminals` the number of its lines.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub terminals: String,
    /// Numbers in the label of a sample, sent up with its activation.
    pub label_values: usize,
    /// Samples in the data set of a terminal, fewest and most, drawn log-uniformly.
    pub samples: [f64; 2],
    /// How many terminals do each task, in proportion.
    pub tasks: BTreeMap<String, u32>,
    /// Ranges of the hidden parameters of learning.
    pub law: LawRanges,
    /// Costs of a cut after each part of the model, in the order of the parts; the last one is the
    /// whole model. `model.cuts` counts them from 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cuts: Vec<CutRow>,
    /// The terminals one by one; values that are not given are drawn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub listed: Vec<ListedTerminal>,
}

/// Costs of a terminal that runs all parts up to a cut.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CutRow {
    /// The last part before the cut.
    pub name: String,
    /// Numbers of the activation at the cut, of one sample.
    pub activation_elements: u64,
    /// Operations of forward and backward pass, of one sample.
    pub operations: f64,
    /// Trained parameters: what is exchanged, in `learning.exchange_bits`.
    pub trained_parameters: u64,
    /// Memory with a minibatch.
    pub memory_bytes: u64,
}
