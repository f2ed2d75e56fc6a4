//! The numbers of the default scenario as fixtures, for all tests of the planner, the search, the
//! actor-critic and the twin. The laws of the sub-twins start from version 1's numbers; tests of
//! additions in version 2 set them.

use crate::allocate::{
    DecoderOptions, StartOptions, SuggestionOptions, TilpSettings, WorthOptions,
};
use crate::rl::policy::Space;
use crate::rl::sac::{ActorCriticOptions, Settings};
use crate::search::cem::Cem;
use crate::twin::{Freeze, RewardWeights, TaskOptions, TrainingOptions, TwinOptions};

pub fn start() -> StartOptions {
    TilpSettings::default().start
}

pub fn worth() -> WorthOptions {
    TilpSettings::default().worth
}

pub fn suggestions() -> SuggestionOptions {
    TilpSettings::default().suggestions
}

pub fn decoder() -> DecoderOptions {
    TilpSettings::default().decoder
}

pub fn actor_critic() -> ActorCriticOptions {
    TilpSettings::default().actor_critic
}

impl Default for TrainingOptions {
    fn default() -> Self {
        TilpSettings::version_1().twin.training
    }
}

impl Default for TaskOptions {
    fn default() -> Self {
        TilpSettings::version_1().twin.task
    }
}

impl Default for TwinOptions {
    fn default() -> Self {
        Self {
            freeze: Freeze::default(),
            network: TilpSettings::version_1().twin.network,
            training: TrainingOptions::default(),
            task: TaskOptions::default(),
            curve: TilpSettings::version_1().twin.curve,
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
        TilpSettings::default().search.plain(samples, elites, iterations)
    }

    pub fn improved(samples: usize, elites: usize, iterations: usize) -> Self {
        TilpSettings::default().search.improved(samples, elites, iterations)
    }
}

impl Settings {
    /// Large batches and a far horizon, for tests of learning.
    pub fn usual(space: &Space) -> Self {
        Self { samples: 128, ..actor_critic().settings(space, 0.99) }
    }
}
