//! The options of TiLP.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::inner::InnerOptions;
use super::prices::PriceOptions;
use crate::rl::sac::ActorCriticOptions;
use crate::search::cem::Cem;
use crate::twin::TwinOptions;

/// The parts of TiLP that can be switched off: the ablations of the paper's Table III. Calibration
/// and reward are switches of the twin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// The search uses the actor.
    pub actor: bool,
    /// The critic's value is added at the end of the horizon.
    pub critic: bool,
    /// The search; without it the actor's most likely action is executed.
    pub cem: bool,
    /// The decoder shares the bandwidth in closed form; without it bandwidths are as sampled.
    pub repair: bool,
    /// The search also tries terminals in the order of their worth; without it only drawn
    /// candidates.
    pub seeds: bool,
}

/// The options of TiLP.
#[derive(Clone, Debug, PartialEq)]
pub struct TilpOptions {
    /// The search.
    pub cem: Cem,
    /// Steps ahead, K.
    pub horizon: usize,
    /// Discount, gamma.
    pub discount: f64,
    /// Length of imagined rollouts, U.
    pub imagined: usize,
    /// Updates of actor and critic a round.
    pub updates: usize,
    /// Updates after which actor and critic are used.
    pub warm_up: u64,
    /// Unit of the rewards of actor and critic: about the reward that one round can gain or lose.
    pub reward_unit: f64,
    /// Number of terminals per round that the search starts from until the actor is used.
    pub start_scheduled: f64,
    /// Milliseconds for a plan; `None`: no limit; zero: no search, the actor alone.
    pub budget_ms: Option<f64>,
    /// The twin.
    pub twin: TwinOptions,
    /// The parts that are switched on.
    pub parts: Parts,
    /// The distribution that a search starts from.
    pub start: StartOptions,
    /// How terminals are ordered by worth.
    pub worth: WorthOptions,
    /// Sequences that a search tries in addition to the drawn ones.
    pub suggestions: SuggestionOptions,
    /// How a candidate becomes a decision.
    pub decoder: DecoderOptions,
    /// Actor and critic.
    pub actor_critic: ActorCriticOptions,
    /// The search with an inner solver; `None`: all numbers are sampled.
    pub inner: Option<InnerOptions>,
    /// How budgets become prices.
    pub prices: PriceOptions,
}

/// The distribution that a search starts from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StartOptions {
    /// Mean power, as a share of the maximum.
    pub power: f32,
    /// Mean compression, as a share of the maximum.
    pub compression: f32,
    /// Standard deviations of bandwidth, power and compression, before squashing.
    pub deviations: [f32; 3],
    /// Bounds of the probability of being scheduled, if it is the same for all terminals.
    pub scheduled_bounds: [f64; 2],
    /// Probability of being scheduled: of the `start_scheduled` terminals of the highest worth, and of
    /// as many after them.
    pub scheduled_best: [f32; 2],
    /// Probability of being scheduled of all others.
    pub scheduled_rest: f32,
    /// Decrease of the logit of a cut with every place in the list of cuts.
    pub cut_logit: f32,
    /// Largest decrease.
    pub most_cut_logit: f32,
    /// Bounds of the probability of being scheduled in the actor's proposals.
    pub actor_bounds: [f32; 2],
}

/// Order of the terminals by worth: gain in success per second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorthOptions {
    /// Share of the band and of a round's samples that is assumed for a terminal.
    pub share: f64,
    /// Added to the time of every terminal, as a share of the deadline.
    pub overhead: f64,
    /// Factor on the worth of a terminal that would miss the deadline.
    pub late_factor: f64,
    /// Added to the gain of every terminal.
    pub least_gain: f64,
}

/// Sequences that a search tries in addition to the drawn ones: every combination of these.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SuggestionOptions {
    /// Numbers of scheduled terminals; those of the highest worth are scheduled.
    pub sizes: Vec<usize>,
    /// Powers, as shares of the maximum.
    pub powers: Vec<f32>,
    /// Compressions, as shares of the maximum.
    pub compressions: Vec<f32>,
}

/// How the sampled bandwidth of a candidate becomes a share of the band.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DecoderOptions {
    /// Share of the band at which the needs of terminals are compared.
    pub band_share: f32,
    /// Width, in natural logarithms, of the range over which the sampled number shifts a share.
    pub reach: f32,
}
