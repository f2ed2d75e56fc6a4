//! Settings of the search with an inner solver.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::search::gaussian::GaussianOptions;

/// The search with an inner solver, as a scenario holds it in `[methods.tilp.inner]`.
///
/// The search ranges over four numbers of every step (size of the round, finishing time, prices of
/// compression noise and of energy) and one of every terminal (its worth). Participants, cut,
/// compression, band and power follow from them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct InnerOptions {
    /// The cross-entropy search over these numbers.
    pub search: GaussianOptions,
    /// Standard deviations that a search starts with, in powers of two: size of the round,
    /// finishing time, price of compression noise, price of energy.
    pub deviations: [f32; 4],
    /// Standard deviation of the worth of a terminal, in powers of two.
    pub worth_deviation: f32,
    /// Sizes of rounds that every plan tries in addition to the drawn ones.
    pub sizes: Vec<usize>,
    /// Compressions to choose from in rollouts, as shares of the maximum.
    pub levels: Vec<f32>,
    /// Least finishing time, as a share of the deadline.
    pub least_time: f32,
    /// Newton's steps to the price at which the band is used up.
    pub price_turns: usize,
    /// Weight of the energy of a later upload in the choice of a cut.
    pub copy_price: f32,
    /// Whether the fades of later rounds are drawn, the same for all candidates of a plan; otherwise
    /// they are the mean.
    pub drawn_fades: bool,
    /// Whether the time of a round includes the wait for pending uploads of terminals that are not
    /// scheduled.
    pub waits: bool,
    /// How much the actor's logit of a terminal shifts its worth, in powers of two.
    pub actor_shift: f32,
    /// Largest number of improvement steps at the end of a plan.
    pub improvements: usize,
    /// Largest number of unscheduled terminals that an improvement step tries to add.
    pub additions: usize,
    /// By how many of the 128 levels an improvement step changes a compression.
    pub level_step: usize,
}

impl Default for InnerOptions {
    fn default() -> Self {
        Self {
            search: GaussianOptions::default(),
            deviations: [0.5, 0.4, 0.7, 0.7],
            worth_deviation: 0.5,
            sizes: vec![2, 3, 5, 8, 12, 18, 27],
            levels: vec![0.55, 0.8, 0.84, 0.9, 0.95, 1.0],
            least_time: 0.01,
            price_turns: 4,
            copy_price: 0.5,
            drawn_fades: true,
            waits: true,
            actor_shift: 0.25,
            improvements: 3,
            additions: 16,
            level_step: 5,
        }
    }
}

impl InnerOptions {
    /// Whether a scenario may leave it out.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
