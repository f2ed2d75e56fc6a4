//! TiLP: tries candidate decisions in a calibrated twin before one is executed.
//!
//! Each round, the actor proposes decisions. Cross-entropy search improves them inside the twin,
//! with the critic's value at the end of the horizon. The first step of the best sequence is
//! executed. Then the twin is calibrated, and actor and critic learn from the executed round and
//! from rounds imagined in the twin. This is Algorithm 1 of the paper.

mod decode;
mod explain;
mod features;
mod guide;
mod inner;
mod inspect;
mod membership;
mod options;
mod persist;
mod plan;
mod prices;
mod settings;

use std::sync::Mutex;

pub use explain::{Plan, RunnerUp};
pub use inner::InnerOptions;
pub use options::{
    DecoderOptions, Parts, StartOptions, SuggestionOptions, TilpOptions, WorthOptions,
};
pub use prices::PriceOptions;
pub use settings::{TilpSettings, TwinSettings};

use decode::Decoder;
use features::{SPACE_GLOBALS, SPACE_TERMINALS, action_row, choice};
use plan::{PlanInputs, Planned, Work};
use prices::{Prices, RoundPrices};

use crate::lanes::LANES;
use crate::rl::agent::Agent;
use crate::rl::policy::Space;
use crate::rl::replay::{AgentState, Transition};
use crate::rng::Seed;
use crate::round::{
    Allocator, DecideError, Decision, Observation, Outcome, ProjectedDecision, Rationale,
};
use crate::search::cem::Planner;
use crate::search::gaussian::GaussianPlanner;
use crate::search::sample::ChoiceLanes;
use crate::twin::{ActionLanes, Nominal, Sureness, Twin, TwinState};
use crate::units::{Bytes, Seconds};

/// Milliseconds since an arbitrary time. The library has no clock of its own. A caller that limits
/// the time of a plan passes one; such runs are not reproducible.
pub type Clock = fn() -> f64;

/// TiLP.
pub struct Tilp {
    twin: Twin,
    decoder: Decoder,
    planner: Planner,
    /// The search with an inner solver.
    inner_planner: GaussianPlanner,
    agent: Agent,
    options: TilpOptions,
    /// Data behind the prices, and the prices of the current round; `None`: fixed weights.
    prices: Prices,
    round_prices: Option<RoundPrices>,
    seed: Seed,
    clock: Option<Clock>,
    /// The decision of the round that is being executed.
    chosen: Option<Chosen>,
    /// The plan of that round, for its explanation.
    planned: Option<(PlanInputs, Planned)>,
    pending: Option<Pending>,
    works: Vec<Mutex<Work>>,
}

/// A decision whose outcome is not known yet.
struct Chosen {
    round: u64,
    /// The twin's state before the round.
    before: TwinState,
    agent_state: AgentState,
    actions: Vec<f32>,
}

/// A transition whose next state is not known yet.
#[derive(Clone, Debug, PartialEq)]
struct Pending {
    agent_state: AgentState,
    actions: Vec<f32>,
    reward: f32,
}

impl Tilp {
    /// TiLP before its first round.
    pub fn new(nominal: Nominal, options: TilpOptions, seed: Seed) -> Self {
        let n_terminals = nominal.hardware.len();
        let space = Space {
            terminal_features: SPACE_TERMINALS,
            global_features: SPACE_GLOBALS,
            reals: 3,
            categories: nominal.cost.limits.cuts.len(),
            flag: true,
            log_deviation: options.actor_critic.log_deviation,
        };
        let settings = options.actor_critic.settings(&space, options.discount as f32);
        let capacities = options.actor_critic.capacities();
        let agent =
            Agent::new(space, settings, n_terminals, capacities, seed.named("actor-critic"));
        let repair = options.parts.repair.then_some(options.decoder);
        let decoder = Decoder::new(nominal.cost.limits.clone(), repair);
        let works = membership::works(n_terminals, options.horizon, options.cem.samples);
        Self {
            twin: Twin::new(nominal, options.twin),
            decoder,
            planner: Planner::default(),
            inner_planner: GaussianPlanner::default(),
            agent,
            options,
            prices: Prices::default(),
            round_prices: None,
            seed,
            clock: None,
            chosen: None,
            planned: None,
            pending: None,
            works,
        }
    }

    /// Sets the clock that limits the time of a plan.
    pub fn with_clock(mut self, clock: Option<Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// The twin, read-only.
    pub fn twin(&self) -> &Twin {
        &self.twin
    }

    /// The twin, for methods that get more information than TiLP.
    pub(super) fn twin_mut(&mut self) -> &mut Twin {
        &mut self.twin
    }

    /// Sets the weights of the reward for the round: prices if budgets have them, else the fixed
    /// weights.
    fn set_prices(&mut self, seen: &Observation) {
        let (options, fixed) = (&self.options.prices, self.options.twin.weights);
        let found = self.prices.of_round(options, seen, &fixed, self.twin.scale());
        self.twin.set_weights(found.as_ref().map_or(fixed, |prices| prices.weights));
        self.round_prices = found;
    }

    /// Updates the prices with the expected gain and use of a planned round.
    fn follow_prices(&mut self, seen: &Observation, inputs: &PlanInputs, planned: &Planned) {
        if seen.budget.is_none() || !self.options.prices.adaptive {
            return;
        }
        let plan = self.decoder.limits().project(planned.decision.clone());
        let (mut after, mut scratch) = (inputs.state.clone(), self.twin.scratch());
        let actions = &plan.decision().terminals;
        let step = self.twin.step(&mut after, actions, Sureness::Likely, &mut scratch);
        let gain = self.twin.gain(step.success - inputs.state.success, step.loss_decrease);
        let energies: Vec<f64> = scratch.energies.iter().map(|one| one.0).collect();
        let exchanges = self.twin.exchanges(&inputs.state, &plan);
        let bytes =
            exchanges.iter().flatten().map(|one| one.job.air()).fold(Bytes(0), |a, b| a + b);
        self.prices.follow(&self.options.prices, seen, gain, &step, &energies, bytes);
    }

    fn is_warm(&self) -> bool {
        self.agent.sac.updates() >= self.options.warm_up
    }

    /// A rollout of the actor inside the twin, for the imagined replay.
    fn imagine(&mut self, state: TwinState) {
        if self.options.imagined == 0 {
            return;
        }
        let seed = self.seed.named("imagination").at(state.round);
        let PlanInputs { rollout, features, .. } = self.inputs_from(state, self.options.imagined);
        let mut futures = rollout.start().clone();
        let n = rollout.n_terminals();
        let (mut cells, mut lanes) = (vec![ChoiceLanes::ZERO; n], vec![ActionLanes::ZERO; n]);
        let width = self.agent.sac.space().n_action();
        let mut agent_state = features.agent_state(&rollout, &futures, 0);
        for step in 0..self.options.imagined {
            let mut actions = self.agent.sac.act(&agent_state, Some(seed.at(step as u64)));
            guide::schedule_somebody(
                &self.agent.sac,
                &agent_state,
                &self.options.start,
                &mut actions,
            );
            for (cell, row) in cells.iter_mut().zip(actions.chunks_exact(width)) {
                cell.set(0, &choice(row));
            }
            self.decoder.decode(&rollout, &futures, step, &cells, &mut lanes);
            let mut rewards = [0.0; LANES];
            rollout.step(&mut futures, step, &lanes, &mut rewards);
            let next = features.agent_state(&rollout, &futures, step + 1);
            let state = std::mem::replace(&mut agent_state, next.clone());
            let reward = rewards[0] / self.options.reward_unit as f32;
            self.agent.imagined.push(&Transition { state, actions, reward, next, last: false });
        }
    }
}

impl Allocator for Tilp {
    fn decide(&mut self, seen: &Observation) -> Result<Decision, DecideError> {
        self.attend(seen);
        self.set_prices(seen);
        let inputs = self.inputs(seen, self.options.horizon);
        let now = inputs.features.agent_state(&inputs.rollout, inputs.rollout.start(), 0);
        if let Some(Pending { agent_state, actions, reward }) = self.pending.take() {
            let next = now.clone();
            self.agent.real.push(&Transition {
                state: agent_state,
                actions,
                reward,
                next,
                last: false,
            });
        }
        let planned = self.plan(seen, &inputs, &now);
        self.follow_prices(seen, &inputs, &planned);
        let limits = self.decoder.limits();
        let actions = match &planned.choices {
            Some(choices) => choices.iter().flat_map(|one| features::row(one, limits)).collect(),
            None => {
                let rows = planned.decision.terminals.iter();
                rows.flat_map(|one| action_row(one, limits)).collect()
            }
        };
        let (round, before) = (seen.round, inputs.state.clone());
        self.chosen = Some(Chosen { round, before, agent_state: now, actions });
        let decision = planned.decision.clone();
        self.planned = Some((inputs, planned));
        Ok(decision)
    }

    fn rationale(&self, seen: &Observation) -> Option<Rationale> {
        let (inputs, planned) = self.planned.as_ref()?;
        Some(self.reasons(seen, inputs, planned))
    }

    fn learn(&mut self, seen: &Observation, plan: &ProjectedDecision, outcome: &Outcome) {
        self.attend(seen);
        // The round may have been decided by another method.
        let chosen = self.chosen.take().filter(|chosen| chosen.round == seen.round);
        let (before, action) = match chosen {
            Some(Chosen { before, agent_state, actions, .. }) => {
                (before, Some((agent_state, actions)))
            }
            None => (self.twin.state(seen), None),
        };
        self.twin.calibrate_from(&before, seen, plan, outcome);
        let after = self.twin.state(seen);
        let waits = self.inner().is_some_and(|options| options.waits);
        let waited = if waits { outcome.duration } else { Seconds(0.0) };
        let reward = self.twin.realised_reward(seen, plan, outcome, [&before, &after], waited);
        let reward = (reward.total() / self.options.reward_unit) as f32;
        self.pending =
            action.map(|(agent_state, actions)| Pending { agent_state, actions, reward });
        self.imagine(after);
        (0..self.options.updates).for_each(|_| {
            self.agent.learn();
        });
    }
}

#[cfg(test)]
mod tests;
