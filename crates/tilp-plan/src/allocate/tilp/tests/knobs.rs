//! The numbers of the default scenario as fixtures: for all tests of the planner, the search, the
//! actor-critic and the twin.

use std::sync::LazyLock;

use serde::de::DeserializeOwned;
use toml::{Table, Value};

use crate::allocate::{DecoderOptions, StartOptions, SuggestionOptions, WorthOptions};
use crate::rl::policy::Space;
use crate::rl::sac::{ActorCriticOptions, Settings};
use crate::search::cem::{Cem, SearchOptions};
use crate::twin::{Freeze, RewardWeights, TaskOptions, TrainingOptions, TwinOptions};

static DEFAULT: LazyLock<Table> =
    LazyLock::new(|| include_str!("../../../../../../configs/default.toml").parse().unwrap());

/// A section of `[methods.tilp]` in the default scenario.
fn section<T: DeserializeOwned>(path: &[&str]) -> T {
    let tilp = &DEFAULT["methods"]["tilp"];
    let value: &Value = path.iter().fold(tilp, |value, key| &value[*key]);
    value.clone().try_into().unwrap()
}

pub fn start() -> StartOptions {
    section(&["start"])
}

pub fn worth() -> WorthOptions {
    section(&["worth"])
}

pub fn suggestions() -> SuggestionOptions {
    section(&["suggestions"])
}

pub fn decoder() -> DecoderOptions {
    section(&["decoder"])
}

pub fn actor_critic() -> ActorCriticOptions {
    section(&["actor_critic"])
}

impl Default for TrainingOptions {
    fn default() -> Self {
        section(&["twin", "training"])
    }
}

impl Default for TaskOptions {
    fn default() -> Self {
        section(&["twin", "task"])
    }
}

impl Default for TwinOptions {
    fn default() -> Self {
        Self {
            freeze: Freeze::default(),
            network: section(&["twin", "network"]),
            training: TrainingOptions::default(),
            task: TaskOptions::default(),
            curve: section(&["twin", "curve"]),
            measurement: 0.05,
            weights: RewardWeights { task: 1.0, delay: 1e-3, energy: 1e-3, penalty: 1.0 },
            sureness: 0.999,
            caution: 1.0,
            outlook: 0.5,
            task_driven: true,
        }
    }
}

impl Cem {
    pub fn paper(samples: usize, elites: usize, iterations: usize) -> Self {
        section::<SearchOptions>(&["search"]).plain(samples, elites, iterations)
    }

    pub fn improved(samples: usize, elites: usize, iterations: usize) -> Self {
        section::<SearchOptions>(&["search"]).improved(samples, elites, iterations)
    }
}

impl Settings {
    /// With large batches and a far horizon, as tests of learning itself use them.
    pub fn usual(space: &Space) -> Self {
        Self { samples: 128, ..actor_critic().settings(space, 0.99) }
    }
}
