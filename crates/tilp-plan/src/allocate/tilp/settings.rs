//! The settings of TiLP as written in a scenario, and those of the default scenario.

use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::inner::InnerOptions;
use super::options::{
    DecoderOptions, Parts, StartOptions, SuggestionOptions, TilpOptions, WorthOptions,
};
use super::prices::PriceOptions;
use crate::rl::sac::ActorCriticOptions;
use crate::search::cem::{SearchKind, SearchOptions};
use crate::twin::{
    Freeze, LearningCurve, NetworkOptions, RewardWeights, TaskOptions, TrainingOptions, TwinOptions,
};

/// How TiLP plans and learns, as a scenario holds it in `[methods.tilp]`. The switches are the
/// ablations of the paper's Table III. The default is that of the default scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TilpSettings {
    /// Steps ahead, K.
    pub horizon: usize,
    /// Candidates of an iteration, Y_1.
    pub samples: usize,
    /// Elites, Y_2, at most `samples`.
    pub elites: usize,
    /// Iterations of the search, I.
    pub iterations: usize,
    /// Discount factor, gamma.
    pub discount: f64,
    /// Length of imagined rollouts, U.
    pub imagined: usize,
    /// Updates of actor and critic a round.
    pub updates: usize,
    /// Updates after which actor and critic are used.
    pub warm_up: u64,
    /// The success of a terminal is predicted at its expected loss plus this many standard
    /// deviations. A terminal that was not scheduled for long then looks worse, so that scheduling
    /// it has a value.
    pub caution: f64,
    /// Losses are expected to fall as this power of the number of rounds. Success is predicted for
    /// the end of training, so that a task that fails today still has a value.
    pub outlook: f64,
    /// Unit of the rewards that actor and critic learn from: about what one round can gain or lose.
    pub reward_unit: f64,
    /// Number of terminals per round that the search starts from until the actor is used.
    pub start_scheduled: f64,
    /// Weight of the gain in success.
    pub weight_task: f64,
    /// Weight of the latency, w_delta.
    pub weight_delay: f64,
    /// Weight of the energy, w_E.
    pub weight_energy: f64,
    /// Weight of the violation, w_pen.
    pub weight_penalty: f64,
    /// Probability with which all scheduled terminals of a round meet the deadline.
    pub sureness: f64,
    /// Time budget of a plan in milliseconds: `inf` for none, 0 for the actor alone. With a
    /// budget, runs are not reproducible.
    pub plan_budget_ms: f64,
    /// The plain search of the paper, without the additions of `search`.
    pub plain_search: bool,
    /// Bandwidth is shared in closed form inside the decoder.
    pub repair: bool,
    /// The network twin is calibrated.
    pub calibrate_network: bool,
    /// The training twin is calibrated.
    pub calibrate_training: bool,
    /// The task twin is calibrated.
    pub calibrate_task: bool,
    /// The search starts from the actor.
    pub actor: bool,
    /// The critic values the end of the horizon.
    pub critic: bool,
    /// Search; otherwise the actor's most likely action is executed.
    pub cem: bool,
    /// The reward is the gain in success; otherwise the loss decrease.
    pub task_driven: bool,
    /// The search beyond the plain method.
    pub search: SearchOptions,
    /// The search with an inner solver, `search.kind = "inner"`.
    #[serde(default, skip_serializing_if = "InnerOptions::is_default")]
    pub inner: InnerOptions,
    /// How budgets become prices.
    #[serde(default, skip_serializing_if = "PriceOptions::is_default")]
    pub prices: PriceOptions,
    /// The distribution that a search starts from.
    pub start: StartOptions,
    /// Order of the terminals by worth.
    pub worth: WorthOptions,
    /// Sequences that a search tries in addition to the drawn ones.
    pub suggestions: SuggestionOptions,
    /// How a candidate becomes a decision.
    pub decoder: DecoderOptions,
    /// Actor and critic.
    pub actor_critic: ActorCriticOptions,
    /// Assumptions of the twin.
    pub twin: TwinSettings,
}

/// Assumptions of TiLP's twin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TwinSettings {
    /// Shape of learning curves.
    pub curve: LearningCurve,
    /// The network sub-twin.
    pub network: NetworkOptions,
    /// The training sub-twin.
    pub training: TrainingOptions,
    /// The task sub-twin.
    pub task: TaskOptions,
}

/// `[methods.tilp]` of the default scenario. Only this file contains the numbers.
static DEFAULT: LazyLock<TilpSettings> =
    LazyLock::new(|| settings_in(include_str!("../../../../../configs/default.toml")));

/// `[methods.tilp]` of a complete scenario.
fn settings_in(scenario: &str) -> TilpSettings {
    #[derive(Deserialize)]
    struct Scenario {
        methods: Methods,
    }
    #[derive(Deserialize)]
    struct Methods {
        tilp: TilpSettings,
    }
    let scenario: Scenario = toml::from_str(scenario).expect("the scenario is complete");
    scenario.methods.tilp
}

impl Default for TilpSettings {
    fn default() -> Self {
        DEFAULT.clone()
    }
}

impl TilpSettings {
    /// The settings of version 1: training weights that are the same in every round, and success
    /// curves per task.
    #[cfg(test)]
    pub(crate) fn version_1() -> Self {
        settings_in(include_str!("../../../../../configs/v1-default.toml"))
    }

    /// Converts the settings to options of the planner. `measurement_noise` is the standard
    /// deviation of the log-normal error with which the base station measures delays and energies.
    pub fn options(&self, measurement_noise: f64) -> TilpOptions {
        let (samples, elites, iterations) = (self.samples, self.elites, self.iterations);
        let cem = if self.plain_search {
            self.search.plain(samples, elites, iterations)
        } else {
            self.search.improved(samples, elites, iterations)
        };
        TilpOptions {
            cem,
            horizon: self.horizon,
            discount: self.discount,
            imagined: self.imagined,
            updates: self.updates,
            warm_up: self.warm_up,
            reward_unit: self.reward_unit,
            start_scheduled: self.start_scheduled,
            budget_ms: self.plan_budget_ms.is_finite().then_some(self.plan_budget_ms),
            twin: self.twin_options(measurement_noise),
            parts: Parts {
                actor: self.actor,
                critic: self.critic,
                cem: self.cem,
                repair: self.repair,
                seeds: !self.plain_search,
            },
            start: self.start,
            worth: self.worth,
            suggestions: self.suggestions.clone(),
            decoder: self.decoder,
            actor_critic: self.actor_critic,
            inner: self.is_inner().then(|| self.inner.clone()),
            prices: self.prices,
        }
    }

    /// Whether band, power, cut and compression are solved for; else all numbers are sampled.
    fn is_inner(&self) -> bool {
        self.search.kind == SearchKind::Inner && !self.plain_search && self.repair
    }

    fn twin_options(&self, measurement: f64) -> TwinOptions {
        let freeze = Freeze {
            network: !self.calibrate_network,
            training: !self.calibrate_training,
            task: !self.calibrate_task,
        };
        let weights = RewardWeights {
            task: self.weight_task,
            delay: self.weight_delay,
            energy: self.weight_energy,
            penalty: self.weight_penalty,
        };
        TwinOptions {
            freeze,
            weights,
            measurement,
            sureness: self.sureness,
            task_driven: self.task_driven,
            caution: self.caution,
            outlook: self.outlook,
            network: self.twin.network,
            training: self.twin.training,
            task: self.twin.task,
            curve: self.twin.curve,
        }
    }
}
