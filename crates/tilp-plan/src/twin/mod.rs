//! The digital twin: predicts the effect of a candidate decision, by nominal models with corrections learned
//! from observation.
//!
//! Three sub-twins, each with two verbs: `predict` is pure, so that candidates can be tried in
//! parallel without side effects; `calibrate` is the only entry of data. [`NetworkTwin`] learns
//! every round, [`TrainingTwin`] every aggregation, [`TaskTwin`] whenever success was measured.
//! [`Twin`] joins them: [`Twin::state`] starts a rollout, [`Twin::step`] continues it.

mod channel;
mod checked;
mod counts;
mod decrease;
mod fading;
mod forecast;
mod futures;
mod linear;
mod membership;
mod network;
mod normal;
mod reward;
mod state;
mod task;
mod track;
mod training;
mod truth;

#[cfg(test)]
pub(crate) mod tests;

pub use channel::{ChannelOptions, ChannelSource};
pub use decrease::{Decrease, Decreases};
pub use fading::FadingAhead;
pub use forecast::{Forecast, Interval, TerminalForecast};
pub use futures::{
    ActionLanes, COMPRESSION_LEVELS, CutTables, Futures, MAX_CUTS, RolloutTables, WorthLanes,
    compression_at, compression_level,
};
pub use network::{Belief, Calibration, Exchange, NetworkOptions, NetworkTwin, Prior};
pub use normal::{probability as normal_probability, quantile as normal_quantile};
pub use reward::{
    Reward, RewardInputs, RewardWeights, Scale, communication_reward, penalty, task_reward,
};
pub use state::{Scratch, StepPrediction, Sureness, TwinState};
pub use task::{By, Outlook, Pair, TaskOptions, TaskTwin, TerminalOptions};
pub use track::Track;
pub use training::{
    N_SHARED, Pace, Part, SwingBy, Tally, Tempo, TrainingOptions, TrainingTwin, WeightPrior,
};
pub use truth::Foresight;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cost::{CostModel, Hardware};
use crate::round::{Observation, Outcome, ProjectedDecision, TerminalReport};
use crate::snapshot::{Persist, Snapshot, SnapshotError};
use crate::split::rates::RateSchedule;
use crate::units::Seconds;

/// Prior information of the base station about the cell. Entry `n` of a list belongs to the
/// terminal with id `n`; once terminals leave or join, to the `n`-th present one.
#[derive(Clone, Debug, PartialEq)]
pub struct Nominal {
    /// Limits, sizes, billing and the rate formula.
    pub cost: CostModel,
    /// Hardware by data sheet, one per terminal.
    pub hardware: Vec<Hardware>,
    /// When a round ends for terminals that have not finished: the deadline, or the give-up time if
    /// rounds wait for late terminals.
    pub closes: Seconds,
    /// The latency of a terminal never counts as more than this.
    pub give_up: Seconds,
    /// Correlation of the fading between rounds, rho.
    pub rho: f64,
    /// Rounds between aggregations, F.
    pub aggregate_every: u64,
    /// Learning rates over the whole training, T rounds.
    pub rates: RateSchedule,
    /// Task group of each terminal.
    pub tasks: Vec<usize>,
    /// Number of task groups.
    pub n_tasks: usize,
}

/// Which calibration loops are switched off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Freeze {
    /// The network loop.
    pub network: bool,
    /// The training loop. The levels of the losses are still observed: they are state, not
    /// calibration.
    pub training: bool,
    /// The task loop.
    pub task: bool,
}

/// Shape of learning curves, besides the power by which losses fall.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LearningCurve {
    /// Rounds before this one count as this one: curves start less steep than the power law.
    pub earliest: u64,
    /// Standard deviation of the expected fall of a log-loss, as a share of that fall.
    pub spread: f64,
}

/// Assumptions and switches of the twin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwinOptions {
    /// Which loops are switched off.
    pub freeze: Freeze,
    /// Assumptions of the network sub-twin.
    pub network: NetworkOptions,
    /// Assumptions of the training sub-twin.
    pub training: TrainingOptions,
    /// Assumptions of the task sub-twin.
    pub task: TaskOptions,
    /// Shape of learning curves.
    pub curve: LearningCurve,
    /// Standard deviation of the log-normal error of meters.
    pub measurement: f64,
    /// Weights of the reward.
    pub weights: RewardWeights,
    /// Probability with which all scheduled terminals of a round meet the deadline.
    pub sureness: f64,
    /// The success of a terminal is predicted at its expected loss plus this many standard
    /// deviations, so that scheduling a terminal whose loss is uncertain has a value.
    pub caution: f64,
    /// Success is predicted for the end of training: losses are expected to fall as this power of
    /// the number of rounds. Without it, a task with no success would never be trained, since no
    /// single round makes it succeed.
    pub outlook: f64,
    /// The reward's first term is the gain in success; otherwise the loss decrease.
    pub task_driven: bool,
}

/// The digital twin of a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Twin {
    nominal: Nominal,
    options: TwinOptions,
    /// The network sub-twin.
    pub network: NetworkTwin,
    /// The training sub-twin.
    pub training: TrainingTwin,
    /// The task sub-twin.
    pub task: TaskTwin,
    scale: Scale,
    /// Entry n: safety margin of each of n scheduled terminals, in standard deviations.
    z: Vec<f64>,
    channels: channel::Channels,
    told: truth::Told,
    members: membership::Members,
}

/// The scale of a reward, and the safety margin of each of n scheduled terminals, in standard
/// deviations.
fn measures(nominal: &Nominal, options: &TwinOptions) -> (Scale, Vec<f64>) {
    let (n, limits) = (nominal.hardware.len(), &nominal.cost.limits);
    // ln P(each) = ln P(all) / n, computed in the tail so that no digit is lost.
    let tail = |n: usize| -(options.sureness.ln() / n.max(1) as f64).exp_m1();
    let scale = Scale::new(n, limits.power, limits.deadline);
    (scale, (0..=n).map(|n| -normal::quantile(tail(n))).collect())
}

impl Twin {
    /// A twin before its first observation.
    pub fn new(nominal: Nominal, options: TwinOptions) -> Self {
        let (scale, z) = measures(&nominal, &options);
        Self {
            network: NetworkTwin::new(
                nominal.hardware.clone(),
                nominal.closes,
                options.measurement,
                options.network,
            ),
            training: TrainingTwin::new(nominal.tasks.clone(), nominal.n_tasks, options.training),
            task: TaskTwin::new(nominal.tasks.clone(), nominal.n_tasks, options.task),
            scale,
            z,
            channels: channel::Channels::new(
                nominal.hardware.len(),
                nominal.rho,
                options.network.channel,
            ),
            told: truth::Told::default(),
            members: membership::Members::new(nominal.hardware.len()),
            nominal,
            options,
        }
    }

    /// Prior information.
    pub fn nominal(&self) -> &Nominal {
        &self.nominal
    }

    /// Correlation of the fading between rounds, stated or estimated.
    pub fn rho(&self) -> f64 {
        self.channels.rho(self.nominal.rho)
    }

    /// Scale of the communication reward.
    pub fn scale(&self) -> &Scale {
        &self.scale
    }

    /// Assumptions and switches.
    pub fn options(&self) -> &TwinOptions {
        &self.options
    }

    /// The gain of a round: of success, or the loss decrease if the reward is not task-driven.
    pub fn gain(&self, success: f64, loss_decrease: f64) -> f64 {
        if self.options.task_driven { success } else { loss_decrease }
    }

    /// The reward of a round, imagined or real.
    pub fn reward(&self, inputs: &RewardInputs) -> Reward {
        Reward::of(&self.options.weights, &self.scale, inputs)
    }

    /// Other weights of the reward: prices that follow budgets.
    pub(crate) fn set_weights(&mut self, weights: RewardWeights) {
        self.options.weights = weights;
    }

    /// Safety margin of each of `n_scheduled` terminals, in standard deviations, with which all of
    /// them meet the deadline with the chosen probability.
    pub fn sure_z(&self, n_scheduled: usize) -> f64 {
        self.z[n_scheduled]
    }

    /// Whether copies are aggregated at the end of a round.
    pub fn aggregates(&self, round: u64) -> bool {
        round.is_multiple_of(self.nominal.aggregate_every)
    }

    /// Task of each terminal in a round that began in this state; `None` for terminals that were
    /// not involved.
    pub fn exchanges(&self, state: &TwinState, plan: &ProjectedDecision) -> Vec<Option<Exchange>> {
        let actions = &plan.decision().terminals;
        let band = self.band(state, actions);
        (0..actions.len()).map(|n| self.exchange(state, &actions[n], &band, n)).collect()
    }

    /// Calibrates the twin with an executed round.
    pub fn calibrate(&mut self, seen: &Observation, plan: &ProjectedDecision, outcome: &Outcome) {
        self.attend(seen);
        let before = self.state(seen);
        self.calibrate_from(&before, seen, plan, outcome);
    }

    /// The same with the state before the present round.
    pub fn calibrate_from(
        &mut self,
        before: &TwinState,
        seen: &Observation,
        plan: &ProjectedDecision,
        outcome: &Outcome,
    ) {
        if !self.options.freeze.network {
            self.network.pass_round();
            for (n, exchange) in self.exchanges(before, plan).iter().enumerate() {
                if let Some(exchange) = exchange {
                    self.network.calibrate(n, exchange, &outcome.terminals[n]);
                }
            }
        }
        let total = |one: &TerminalReport| one.gain.0 * one.fading_power;
        self.channels.watch(seen.terminals.iter().map(|view| total(&view.report)));
        self.calibrate_training(before, plan, outcome);
        if let Some(counts) = outcome.success.as_ref().filter(|_| !self.options.freeze.task) {
            let log_losses = self.training.log_losses(outcome.loss.or(seen.loss));
            let own: Vec<_> = outcome.terminals.iter().map(|one| one.success).collect();
            self.task.calibrate(&log_losses, counts, &own);
            self.members.after_measurement(&self.task);
        }
    }

    fn calibrate_training(
        &mut self,
        before: &TwinState,
        plan: &ProjectedDecision,
        outcome: &Outcome,
    ) {
        let mut tally = self.tally();
        tally.begin(before.tempo, self.training.advantage());
        for (n, one) in plan.decision().terminals.iter().enumerate() {
            if outcome.terminals[n].took_part {
                tally.add(&self.part(before, one, n));
            }
        }
        let heard = |loss: Option<f64>| loss.filter(|_| !self.told.losses);
        let losses: Vec<Option<f64>> =
            outcome.terminals.iter().map(|one| heard(one.loss)).collect();
        let aggregates = self.aggregates(outcome.round);
        self.training.follow(outcome.round, &losses, &tally, aggregates);
        let training = &self.training;
        self.task.centre(|terminal| training.known_log_loss(terminal));
        if !self.options.freeze.training && aggregates {
            self.training.calibrate();
        }
    }

    /// Speed of training in the present round.
    pub(super) fn tempo(&self, seen: &Observation) -> Tempo {
        Tempo::at(&self.options.training, seen.round, self.rate_share(seen))
    }

    /// The learning rate of the present round divided by that of the first.
    pub(super) fn rate_share(&self, seen: &Observation) -> f64 {
        let (rates, start) = (seen.rates(&self.nominal.rates), self.nominal.rates.start);
        let share = |now: f32, start: f32| (start > 0.0).then(|| f64::from(now / start));
        let rate = share(rates.terminal, start.terminal).or(share(rates.server, start.server));
        rate.unwrap_or(1.0)
    }

    /// A tally without participants.
    pub(super) fn tally(&self) -> Tally {
        Tally::new(self.nominal.hardware.len(), self.nominal.n_tasks)
    }
}

impl Persist for Twin {
    fn save(&self, snapshot: &mut Snapshot) {
        self.save_members(snapshot);
        self.channels.save(snapshot);
        self.network.save(snapshot);
        self.training.save(snapshot);
        self.task.save(snapshot);
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        checked::check(snapshot)?;
        self.restore_members(snapshot)?;
        self.channels.restore(snapshot)?;
        self.network.restore(snapshot)?;
        self.training.restore(snapshot)?;
        self.task.restore(snapshot)
    }
}
