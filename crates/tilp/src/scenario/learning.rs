//! The section `learning` of a scenario: how the policy is trained.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::Checker;
use super::load::ScenarioError;
use crate::cost::{Payload, Sync};
use crate::split::compress::{Compressor, Exchange};
use crate::split::optimiser::{self, StateAtAggregation};
use crate::split::policy::Lora;

/// How the policy is trained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Learning {
    /// Minibatch size K_n.
    pub batch: usize,
    /// Learning rate of the server side.
    pub server_rate: f64,
    /// Learning rate of the terminal side.
    pub terminal_rate: f64,
    /// Coefficient of the optimiser `momentum`; 0 is the paper's plain SGD.
    pub momentum: f64,
    /// The learning rates fall along a cosine to this share of their start at round T.
    pub final_rate_share: f64,
    /// Rounds between aggregations F, for methods that do not set their own.
    pub aggregate_every: u64,
    /// Compression operator.
    pub compressor: Compressor,
    /// The billed size of a payload.
    pub payload: Payload,
    /// Whether model exchange is billed.
    pub sync: Sync,
    /// Steps of the server when terminals train in parallel.
    #[serde(default, skip_serializing_if = "Server::is_default")]
    pub server: Server,
    /// The update rule of both sides. Absent: `sgd` if `momentum` is 0, else `momentum`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optimiser: Option<OptimiserName>,
    /// Settings of the optimiser `adamw`.
    #[serde(default, skip_serializing_if = "AdamW::is_default")]
    pub adamw: AdamW,
    /// In the first rounds the learning rates rise in equal steps: in round t they are multiplied
    /// by t / warm_up until that is 1. 0 for none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub warm_up: u64,
    /// Largest norm of the gradient of all layers that one side steps at once; 0 for no limit.
    #[serde(default, skip_serializing_if = "is_off")]
    pub clip: f64,
    /// Treatment of a terminal's optimiser state when an aggregation replaces its layers.
    #[serde(default, skip_serializing_if = "StateAtAggregation::is_default")]
    pub state_at_aggregation: StateAtAggregation,
    /// Bits of a parameter when layers are downloaded and copies uploaded: 32, 16 (IEEE half
    /// precision) or 8 (groups of 64 with their own offset and step). Fewer than 32 bits are
    /// rounded stochastically and without bias.
    #[serde(default, skip_serializing_if = "Exchange::is_default")]
    pub exchange_bits: Exchange,
    /// What is trained: all parameters, or low-rank adapters over the frozen base policy.
    #[serde(default, skip_serializing_if = "Trainable::is_default")]
    pub trainable: Trainable,
    /// Factor of the product that adapters add to a weight.
    #[serde(default = "unscaled", skip_serializing_if = "is_unscaled")]
    pub lora_scale: f64,
}

fn unscaled() -> f64 {
    1.0
}

fn is_unscaled(scale: &f64) -> bool {
    *scale == unscaled()
}

/// What is trained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Trainable {
    /// All parameters of the policy.
    #[default]
    All,
    /// Adapters of this rank on the linear layers.
    Lora(usize),
}

impl Trainable {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

fn is_zero(rounds: &u64) -> bool {
    *rounds == 0
}

fn is_off(limit: &f64) -> bool {
    *limit == 0.0
}

/// Steps of the server when terminals train in parallel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Server {
    /// Once a round, with the weighted mean of the gradients: the paper's Eq. `server-gradient`.
    #[default]
    Averaged,
    /// After every terminal, in an order drawn in each round, as in version 2 of SplitFed.
    Sequential,
}

impl Server {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// An update rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum OptimiserName {
    /// Plain gradient descent, the paper's.
    Sgd,
    /// Gradient descent with momentum.
    Momentum,
    /// Adam with decoupled weight decay.
    Adamw,
}

/// Settings of AdamW; the defaults are those of PyTorch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct AdamW {
    /// Decay of the mean of the gradients.
    pub beta1: f64,
    /// Decay of the mean of their squares.
    pub beta2: f64,
    /// Added to the root of that mean.
    pub epsilon: f64,
    /// A step first shrinks every parameter by this share of the learning rate.
    pub weight_decay: f64,
}

impl Default for AdamW {
    fn default() -> Self {
        Self { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.01 }
    }
}

impl AdamW {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Learning {
    /// The update rule of both sides.
    pub(super) fn optimiser(&self) -> optimiser::Optimiser {
        let momentum = match self.optimiser {
            None | Some(OptimiserName::Momentum) => self.momentum as f32,
            Some(OptimiserName::Sgd) => 0.0,
            Some(OptimiserName::Adamw) => {
                let AdamW { beta1, beta2, epsilon, weight_decay } = self.adamw;
                let adamw = optimiser::AdamW { beta1, beta2, epsilon, weight_decay };
                return optimiser::Optimiser::AdamW(adamw);
            }
        };
        optimiser::Optimiser::Sgd { momentum }
    }

    /// The adapters that are trained; `None` if all parameters are.
    pub(super) fn lora(&self) -> Option<Lora> {
        match self.trainable {
            Trainable::All => None,
            Trainable::Lora(rank) => Some(Lora { rank, scale: self.lora_scale as f32 }),
        }
    }

    /// Refuses keys that a scenario without tensors cannot have; its table defines the trained part.
    pub(super) fn check_profile(&self, checker: &Checker) -> Result<(), ScenarioError> {
        match self.trainable {
            Trainable::All => Ok(()),
            Trainable::Lora(rank) => {
                let expected = "\"all\" in a profile scenario, whose table says what is trained";
                Err(checker.wrong("learning.trainable.lora", rank, expected))
            }
        }
    }

    /// Refuses values out of range.
    pub(super) fn check(&self, checker: &Checker) -> Result<(), ScenarioError> {
        checker.within("learning.batch", self.batch as u64, 1, 4096)?;
        checker.between("learning.server_rate", self.server_rate, 0.0, 100.0)?;
        checker.between("learning.terminal_rate", self.terminal_rate, 0.0, 100.0)?;
        checker.between("learning.momentum", self.momentum, 0.0, 0.999)?;
        if self.optimiser == Some(OptimiserName::Momentum) && self.momentum == 0.0 {
            let expected = "more than 0 for the optimiser `momentum`";
            return Err(checker.wrong("learning.momentum", self.momentum, expected));
        }
        let AdamW { beta1, beta2, epsilon, weight_decay } = self.adamw;
        checker.between("learning.adamw.beta1", beta1, 0.0, 0.9999)?;
        checker.between("learning.adamw.beta2", beta2, 0.0, 0.999_999)?;
        checker.between("learning.adamw.epsilon", epsilon, 1e-16, 1.0)?;
        checker.between("learning.adamw.weight_decay", weight_decay, 0.0, 1.0)?;
        checker.within("learning.warm_up", self.warm_up, 0, 1_000_000)?;
        checker.between("learning.clip", self.clip, 0.0, 1e9)?;
        if let Trainable::Lora(rank) = self.trainable {
            checker.within("learning.trainable.lora", rank as u64, 1, 1024)?;
        }
        checker.between("learning.lora_scale", self.lora_scale, 0.0, 1000.0)?;
        checker.between("learning.final_rate_share", self.final_rate_share, 0.0, 1.0)?;
        checker.at_least("learning.aggregate_every", self.aggregate_every, 1)
    }
}
