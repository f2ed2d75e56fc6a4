//! Settings of the training sub-twin.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{N_SHARED, Pace, SwingBy};

/// A weight before any data.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WeightPrior {
    /// Its mean.
    pub mean: f64,
    /// Its standard deviation.
    pub sd: f64,
    /// The least it can be.
    pub least: f64,
}

/// Assumptions of the training sub-twin.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrainingOptions {
    /// Rate of a round whose samples are all the terminal's own.
    pub own: WeightPrior,
    /// Rate of a round whose samples are all those of others with the same task.
    pub kin: WeightPrior,
    /// Rate of any round: what all learn from all, less what is forgotten.
    pub any: WeightPrior,
    /// Increase of the first weight for a gradient larger than the mean.
    pub push: WeightPrior,
    /// Deduction from the rate for the scatter of a round of one terminal. With n terminals it is
    /// divided by n to the power of `scatter_power`.
    pub scatter: WeightPrior,
    /// Deduction from the rate for compression to a tenth.
    pub noise: WeightPrior,
    /// Increase for a cut after the last layer, relative to one in the middle.
    pub depth: WeightPrior,
    /// Decrease per round since the last aggregation of the loss of a terminal's own copy
    /// below that of the mean of all.
    pub local: WeightPrior,
    /// Increase of the reported loss for compression to a tenth, which does not affect the loss of the
    /// policy when it is deployed uncompressed.
    pub blur: WeightPrior,
    /// Standard deviation of the first between task groups.
    pub group_sd: f64,
    /// A round lowers the logarithm of a loss by no more than this.
    pub most: f64,
    /// A round raises the logarithm of a loss by no more than this share of `most`.
    pub rise_share: f64,
    /// Rounds of the sliding window.
    pub window: u64,
    /// Rounds after which a report in the window weighs a third.
    pub memory: f64,
    /// Standard deviation of the logarithm of a minibatch's loss, before any data.
    pub minibatch: f64,
    /// Standard deviation by which the level of a terminal drifts in a round.
    pub drift: f64,
    /// Standard deviation of what a round does to a terminal's loss beyond the law, over what a step
    /// can do: see `swing_by`.
    pub swing: f64,
    /// The part of it that all terminals have in common.
    pub common_swing: f64,
    /// Weight of a new report in the running variance of a minibatch's loss.
    pub noise_memory: f64,
    /// One report moves that variance as if it were off by no more than this many variances.
    pub most_square: f64,
    /// Bounds of a squared gradient norm over the mean of all.
    pub push_bounds: [f64; 2],
    /// Gradient norms older than this many rounds are not used in forecasts of a decrease.
    pub lately: u64,
    /// What a step can do: `gradient` for learning rate times squared gradient norm, `rate` for the
    /// learning rate over that of the start.
    #[serde(default, skip_serializing_if = "SwingBy::is_default")]
    pub swing_by: SwingBy,
    /// Pace of the weights: `constant` or `schedule`.
    #[serde(default, skip_serializing_if = "Pace::is_default")]
    pub pace: Pace,
    /// With `pace = "schedule"` rounds before this one count as this one: curves do not start as steep
    /// as one over the number of rounds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub earliest: u64,
    /// Share of what a terminal has gained by its own samples that a round forgets, whoever takes part
    /// in it.
    #[serde(default, skip_serializing_if = "is_none")]
    pub forgetting: f64,
    /// 1 where the scatter of a round is that of a mean of gradients; more where rounds of few
    /// terminals make training unstable.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub scatter_power: u32,
}

fn one() -> u32 {
    1
}

fn is_one(power: &u32) -> bool {
    *power == 1
}

fn is_zero(rounds: &u64) -> bool {
    *rounds == 0
}

fn is_none(share: &f64) -> bool {
    *share == 0.0
}

impl TrainingOptions {
    /// The shared weights with their names, in the order of [`Tally::features`](super::Tally::features).
    pub fn named(&self) -> [(&'static str, WeightPrior); N_SHARED] {
        [
            ("own", self.own),
            ("kin", self.kin),
            ("any", self.any),
            ("push", self.push),
            ("scatter", self.scatter),
            ("noise", self.noise),
            ("depth", self.depth),
            ("local", self.local),
            ("blur", self.blur),
        ]
    }
}
