//! The plan of one round: the search inside the twin, then the guard against late terminals.

use super::decode::Decoder;
use super::features::FeatureExtractor;
use super::guide;
use super::inner::{InnerPlan, RuleLanes};
use super::{Parts, Tilp};
use crate::lanes::{LANES, Lanes};
use crate::rl::actor::AgentStates;
use crate::rl::critic::CriticTrace;
use crate::rl::replay::AgentState;
use crate::round::{Decision, Observation, TerminalDecision, TrainingPlan};
use crate::search::cem::{Found, Start};
use crate::search::sample::Choice;
use crate::search::score::{Candidates, planned_return};
use crate::twin::{ActionLanes, Futures, RolloutTables, Sureness, TwinState};

/// Added to a candidate's return for each step in which no terminal trains. Candidates with
/// all-zero schedules are rejected (Algorithm 1); fewer such steps reduce the return less.
pub(super) const REJECTED: f32 = -1e6;

/// Whether a return belongs to a rejected candidate.
pub(super) fn is_rejected(score: f32) -> bool {
    score < 0.5 * REJECTED
}

/// The inputs of a plan.
pub(super) struct PlanInputs {
    pub state: TwinState,
    pub rollout: RolloutTables,
    pub features: FeatureExtractor,
}

/// The result of a plan.
pub(super) struct Planned {
    pub decision: Decision,
    /// The choices behind it; `None` for the fallback.
    pub choices: Option<Vec<Choice>>,
    /// The result of the search, if there was one.
    pub found: Option<Found>,
    /// Terminals that the search scheduled and the guard removed.
    pub guarded: Vec<usize>,
    /// The plan of the inner solver, if it made the choices.
    pub inner: Option<InnerPlan>,
}

impl Planned {
    /// Finishing time of the round, if the inner solver made the choices.
    pub(super) fn finish(&self) -> Option<f64> {
        self.inner.as_ref().map(|plan| f64::from(plan.finish))
    }
}

/// Memory for scoring one group of candidates.
pub(super) struct Work {
    pub futures: Futures,
    pub actions: Vec<ActionLanes>,
    pub rewards: Vec<Lanes>,
    pub agent_states: AgentStates,
    pub critic: CriticTrace,
    pub rule: RuleLanes,
}

impl Work {
    pub(super) fn new(n_terminals: usize, horizon: usize) -> Self {
        Self {
            futures: Futures::default(),
            actions: vec![ActionLanes::ZERO; n_terminals],
            rewards: vec![[0.0; LANES]; horizon],
            agent_states: AgentStates::default(),
            critic: CriticTrace::default(),
            rule: RuleLanes::default(),
        }
    }
}

impl Tilp {
    /// The inputs of a plan over `n_steps` steps.
    pub(super) fn inputs(&self, seen: &Observation, n_steps: usize) -> PlanInputs {
        self.inputs_from(self.twin.state(seen), n_steps)
    }

    /// The same for a given state of the twin.
    pub(super) fn inputs_from(&self, state: TwinState, n_steps: usize) -> PlanInputs {
        let mut rollout =
            RolloutTables::new(&self.twin, &state, n_steps, self.options.parts.repair);
        if let Some(options) = self.inner() {
            if options.drawn_fades {
                let seed = self.seed.named("fades").at(state.round);
                rollout.draw_fades(&self.twin, &state, seed);
            }
            rollout.count_waiting(options.waits);
        }
        if let Some(prices) = &self.round_prices {
            rollout.set_prices(prices.bit, &prices.joules);
        }
        let features = FeatureExtractor::new(&self.twin, &state);
        PlanInputs { state, rollout, features }
    }

    /// Phase I of Algorithm 1.
    pub(super) fn plan(
        &mut self,
        seen: &Observation,
        inputs: &PlanInputs,
        now: &AgentState,
    ) -> Planned {
        let searches = self.options.parts.cem && self.options.budget_ms != Some(0.0);
        let is_inner = searches && self.inner().is_some();
        let solved = if is_inner { self.search_inner(seen, inputs, now) } else { None };
        let (mut choices, found, inner) = match solved {
            Some((found, plan)) => (found.first().to_vec(), Some(found), Some(plan)),
            None if searches => {
                let found = self.search(seen, inputs, now);
                (found.first().to_vec(), Some(found), None)
            }
            None => (guide::actors_choice(&self.agent.sac, now, &self.options.start), None, None),
        };
        let finish = inner.as_ref().map(|plan| f64::from(plan.finish));
        let wanted: Vec<bool> = choices.iter().map(|choice| choice.flag).collect();
        let terminals = self.guard(inputs, finish, &mut choices);
        let guarded = (0..wanted.len()).filter(|&n| wanted[n] && !choices[n].flag).collect();
        let anybody = terminals.iter().any(|one| one.scheduled);
        // A terminal that is scheduled alone gets the whole band, from the decoder.
        let inner = inner.filter(|_| anybody);
        let kept = if anybody { Some((choices, terminals)) } else { self.alone(inputs) };
        match kept {
            Some((choices, terminals)) => {
                let decision =
                    Decision { terminals, training: TrainingPlan::default(), fallback: false };
                Planned { decision, choices: Some(choices), found, guarded, inner }
            }
            None => {
                Planned { decision: self.least_bad(seen), choices: None, found, guarded, inner }
            }
        }
    }

    /// The decision for the choices: by the inner solver if a finishing time is given.
    pub(super) fn decide_first(
        &self,
        inputs: &PlanInputs,
        finish: Option<f64>,
        choices: &mut [Choice],
    ) -> Vec<TerminalDecision> {
        match finish {
            Some(finish) => self.exact_decision(inputs, finish, choices),
            None => self.decoder.decide(&inputs.rollout, choices),
        }
    }

    pub(super) fn search(
        &mut self,
        seen: &Observation,
        inputs: &PlanInputs,
        now: &AgentState,
    ) -> Found {
        let Parts { actor, seeds, .. } = self.options.parts;
        let prior = guide::prior(&self.twin, inputs, &self.options);
        let proposal =
            (actor && self.is_warm()).then(|| guide::proposal(&self.agent.sac, now, &self.options));
        // The plain method starts from the actor. In the improved one the actor proposes some of
        // the candidates, so that a certain actor does not stop the search from exploring.
        let distribution = match &proposal {
            Some(proposal) if !seeds => proposal.clone(),
            _ => prior,
        };
        let mut planner = std::mem::take(&mut self.planner);
        if seeds {
            for sequence in guide::sequences(&self.twin, inputs, &self.options) {
                planner.suggest(&sequence);
            }
        }
        let seed = self.seed.named("search").at(seen.round);
        let start = Start { distribution: &distribution, actor: proposal.as_ref(), seed };
        let score = |candidates: Candidates<'_>, scores: &mut Lanes| {
            *scores = self.score(inputs, candidates);
        };
        let ends = self.clock.zip(self.options.budget_ms).map(|(now, ms)| (now, now() + ms));
        let mut is_over = || ends.is_some_and(|(now, end)| now() >= end);
        let found = planner.search(&self.options.cem, start, &score, &mut is_over);
        self.planner = planner;
        found
    }

    /// Predicted returns of sixteen candidates.
    pub(super) fn score(&self, inputs: &PlanInputs, candidates: Candidates<'_>) -> Lanes {
        let PlanInputs { rollout, .. } = inputs;
        let place = candidates.group % self.works.len();
        let mut work = self.works[place].lock().unwrap_or_else(|work| work.into_inner());
        let Work { futures, actions, rewards, agent_states, critic, .. } = &mut *work;
        futures.restart(rollout.start());
        let mut rejected = [0.0; LANES];
        for (step, reward) in rewards.iter_mut().enumerate() {
            self.decoder.decode(rollout, futures, step, candidates.step(step), actions);
            rollout.step(futures, step, actions, reward);
            for (lane, rejected) in rejected.iter_mut().enumerate() {
                *rejected += if futures.n_trained[lane] > 0.0 { 0.0 } else { REJECTED };
            }
        }
        let values = self.values_of(inputs, futures, rewards.len(), agent_states, critic);
        let mut returns = planned_return(rewards, &values, self.options.discount as f32);
        (0..LANES).for_each(|lane| returns[lane] += rejected[lane]);
        returns
    }

    /// The critic's values of the last states of sixteen candidates; zero without a critic.
    pub(super) fn values_of(
        &self,
        inputs: &PlanInputs,
        futures: &Futures,
        step: usize,
        agent_states: &mut AgentStates,
        critic: &mut CriticTrace,
    ) -> Lanes {
        let mut values = [0.0; LANES];
        if self.options.parts.critic && self.is_warm() {
            inputs.features.agent_states(&inputs.rollout, futures, step, agent_states);
            values.copy_from_slice(self.agent.sac.value(agent_states, critic));
            values.iter_mut().for_each(|value| *value *= self.options.reward_unit as f32);
        }
        values
    }

    /// Removes the worst terminal until all others fit their memory and meet the deadline with the
    /// required probability.
    pub(super) fn guard(
        &self,
        inputs: &PlanInputs,
        finish: Option<f64>,
        choices: &mut [Choice],
    ) -> Vec<TerminalDecision> {
        let mut scratch = self.twin.scratch();
        let limits = self.decoder.limits();
        loop {
            let actions = self.decide_first(inputs, finish, choices);
            let mut after = inputs.state.clone();
            self.twin.step(&mut after, &actions, Sureness::Safe, &mut scratch);
            let excess = |n: usize| {
                let need = self.twin.nominal().cost.profile.memory(actions[n].cut);
                let delay = scratch.safe_delays[n].0;
                if need > inputs.state.memory[n] { f64::INFINITY } else { delay }
            };
            let worst = (0..actions.len())
                .filter(|&n| actions[n].scheduled && excess(n) > limits.deadline.0)
                .max_by(|&a, &b| excess(a).total_cmp(&excess(b)));
            let Some(worst) = worst else { return actions };
            choices[worst].flag = false;
        }
    }

    /// For a plan without terminals: schedules the terminal of the highest worth among those that
    /// meet the deadline alone with the required probability. `None` if there is none.
    fn alone(&self, inputs: &PlanInputs) -> Option<(Vec<Choice>, Vec<TerminalDecision>)> {
        let order = guide::by_worth(&self.twin, inputs, &self.options.worth);
        order.iter().find_map(|&n| {
            let idle = Choice { reals: [0.5, 1.0, 1.0], category: 0, flag: false };
            let mut choices = vec![idle; order.len()];
            choices[n].flag = true;
            let terminals = self.guard(inputs, None, &mut choices);
            terminals[n].scheduled.then_some((choices, terminals))
        })
    }

    /// The fallback if no terminal meets the deadline with the required probability. Among the
    /// terminals whose memory holds the first cut, the one with the best channel gets all
    /// resources, at the strongest compression.
    fn least_bad(&self, seen: &Observation) -> Decision {
        let limits = Decoder::limits(&self.decoder);
        let need = self.twin.nominal().cost.profile.memory(limits.cuts[0]);
        let channel = |n: usize| {
            let view = &seen.terminals[n];
            (view.report.memory >= need, view.report.gain.0 * view.report.fading_power)
        };
        let better = |a: &usize, b: &usize| {
            let ((fits, one), (other_fits, other)) = (channel(*a), channel(*b));
            fits.cmp(&other_fits).then(one.total_cmp(&other))
        };
        let best = (0..seen.terminals.len()).max_by(better);
        let mut decision = Decision::idle(seen.terminals.len(), limits.cuts[0]);
        decision.fallback = true;
        if let Some(best) = best {
            let one = &mut decision.terminals[best];
            one.scheduled = true;
            one.bandwidth = limits.bandwidth;
            one.power = limits.power;
            one.compression = limits.compression;
        }
        decision
    }
}
