//! The search with an inner solver: cross-entropy over the few numbers that have no closed form.
//!
//! For every step of the horizon, a candidate gives the number of terminals that take part, the
//! finishing time of the round, and the weights of compression noise and energy. For every terminal
//! it gives the difference of its worth from the twin's. [`rule`] turns a candidate into decisions
//! inside the rollout, from the state that the candidate has reached. At the end single terminals
//! of the first step are changed while the twin's return grows ([`improve`]), and [`exact`]
//! computes the decision in double precision.

mod exact;
mod improve;
mod memory;
mod options;
mod rule;
mod scan;

pub use options::InnerOptions;

use super::plan::{PlanInputs, REJECTED, Work};
use super::{Tilp, guide};
use crate::cost::Downlink;
use crate::lanes::{LANES, Lanes};
use crate::rl::replay::AgentState;
use crate::round::Observation;
use crate::search::cem::{Found, Ranked};
use crate::search::gaussian::{CandidateLanes, GaussianStart, NormalLaws, Shape};
use crate::search::sample::Choice;
use crate::search::score::planned_return;
use crate::twin::{ActionLanes, COMPRESSION_LEVELS};
use crate::wireless::RateModel;
use improve::FirstLanes;
use rule::{KNOBS, Rule};

pub(super) use rule::RuleLanes;

/// The result of the search besides the first step.
pub(super) struct InnerPlan {
    /// The candidate that the later steps follow.
    pub values: Vec<f32>,
    /// Finishing time of the first round, in seconds.
    pub finish: f32,
    /// Logarithm of the price of the band that the plan started from.
    log_price: f32,
}

/// A first step in explicit form.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FirstStep {
    /// Which terminals take part, with cut and compression; for the others, those that they would
    /// have.
    pub choices: Vec<Choice>,
    /// Finishing time of the round, in seconds.
    pub finish: f32,
    /// Worth of each terminal less its cost.
    nets: Vec<f32>,
}

impl Tilp {
    /// The inner solver's settings; `None` if it does not cover the cell. Fading must be constant
    /// during a round, and both directions must have the same rate.
    pub(super) fn inner(&self) -> Option<&InnerOptions> {
        let cost = &self.twin.nominal().cost;
        let is_covered = cost.rate_model == RateModel::Held && cost.downlink == Downlink::Shared;
        self.options.inner.as_ref().filter(|_| is_covered)
    }

    pub(super) fn inner_shape(&self) -> Shape {
        Shape { steps: self.options.horizon, width: KNOBS + self.twin.members().len() }
    }

    /// Searches, improves the first step, and returns the result with the plan behind it.
    pub(super) fn search_inner(
        &mut self,
        seen: &Observation,
        inputs: &PlanInputs,
        now: &AgentState,
    ) -> Option<(Found, InnerPlan)> {
        let mut planner = std::mem::take(&mut self.inner_planner);
        let options = self.inner()?.clone();
        let mut rule = Rule::new(&inputs.rollout, &options, self.decoder.limits().cuts.len());
        let suggestions = self.suggestions(&mut rule);
        let shape = self.inner_shape();
        let mean = planner.remembered().first().filter(|known| known.len() == shape.len());
        let laws = first_laws(mean.unwrap_or(&suggestions[0]), &options, shape);
        let uses_actor = self.options.parts.actor && self.is_warm();
        let actor = uses_actor.then(|| self.followed(&laws, now, &options, shape));
        let seed = self.seed.named("search").at(seen.round);
        let start = GaussianStart {
            shape,
            laws: &laws,
            actor: actor.as_ref(),
            suggestions: &suggestions,
            seed,
        };
        let score = |candidates: CandidateLanes<'_>, scores: &mut Lanes| {
            *scores = self.score_inner(inputs, &rule, candidates, None);
        };
        let ends = self.clock.zip(self.options.budget_ms).map(|(now, ms)| (now, now() + ms));
        let mut is_over = || ends.is_some_and(|(now, end)| now() >= end);
        let (elites, iterations) = planner.search(&options.search, start, &score, &mut is_over);
        let (first, values) = match elites.first() {
            Some(best) => (self.first_steps(inputs, &rule, &[&best.values[..]]), &best.values),
            None => (self.first_steps(inputs, &rule, &[&suggestions[0][..]]), &suggestions[0]),
        };
        let first = first.into_iter().next()?;
        let (first, best_score) = self.improved(inputs, &rule, values, first, &mut is_over);
        let plan =
            InnerPlan { values: values.clone(), finish: first.finish, log_price: rule.log_price };
        let others: Vec<&[f32]> = elites.iter().skip(1).map(|one| &one.values[..]).collect();
        let others = self.first_steps(inputs, &rule, &others).into_iter().map(|one| one.choices);
        let scores = elites.iter().skip(1).map(|one| one.score);
        let runner_ups = distinct(&first.choices, others.zip(scores));
        let best = Ranked { sequence: first.choices, score: best_score };
        self.inner_planner = planner;
        let n_terminals = seen.terminals.len();
        Some((Found { best, runner_ups, n_terminals, iterations }, plan))
    }

    /// The laws of candidates that follow the actor: terminals that it would schedule get more
    /// worth.
    fn followed(
        &self,
        laws: &NormalLaws,
        now: &AgentState,
        options: &InnerOptions,
        shape: Shape,
    ) -> NormalLaws {
        let logits = guide::flag_logits(&self.agent.sac, now, &self.options.start);
        let mut followed = laws.clone();
        for step in followed.mean.chunks_exact_mut(shape.width) {
            for (mean, logit) in step[KNOBS..].iter_mut().zip(&logits) {
                *mean += options.actor_shift * logit;
            }
        }
        followed
    }

    /// Predicted returns of sixteen candidates; `first` replaces their first steps if it is given.
    fn score_inner(
        &self,
        inputs: &PlanInputs,
        rule: &Rule<'_>,
        candidates: CandidateLanes<'_>,
        first: Option<&FirstLanes>,
    ) -> Lanes {
        let (rollout, place) = (&inputs.rollout, candidates.group % self.works.len());
        let mut work = self.works[place].lock().unwrap_or_else(|work| work.into_inner());
        let Work { futures, actions, rewards, agent_states, critic, rule: lanes } = &mut *work;
        futures.restart(rollout.start());
        lanes.log_price = [rule.log_price; LANES];
        let mut rejected = [0.0; LANES];
        for (step, reward) in rewards.iter_mut().enumerate() {
            match first {
                Some(first) if step == 0 => first.apply(rule, futures, lanes, actions),
                _ => rule.decode(futures, step, candidates.step(step), lanes, actions),
            }
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

    /// The first steps of candidates in explicit form.
    fn first_steps(
        &self,
        inputs: &PlanInputs,
        rule: &Rule<'_>,
        candidates: &[&[f32]],
    ) -> Vec<FirstStep> {
        let (n, start) = (rule.n_terminals(), inputs.rollout.start());
        let mut actions = vec![ActionLanes::ZERO; n];
        let mut work = RuleLanes::default();
        let mut found = Vec::with_capacity(candidates.len());
        for group in candidates.chunks(LANES) {
            let number = |at: usize| -> Lanes {
                std::array::from_fn(|lane| group[lane.min(group.len() - 1)][at])
            };
            let numbers: Vec<Lanes> = (0..KNOBS + n).map(number).collect();
            work.log_price = [rule.log_price; LANES];
            rule.decode(start, 0, &numbers, &mut work, &mut actions);
            let finish = rule.step_lanes(&numbers[..KNOBS]).finish;
            for lane in 0..group.len() {
                let choices = actions.iter().map(|one| choice(one, lane, rule)).collect();
                let nets = work.nets.iter().map(|net| net[lane]).collect();
                found.push(FirstStep { choices, finish: finish[lane], nets });
            }
        }
        found
    }

    /// Predicted returns of a plan with one choice of its first step replaced, one per change.
    pub(super) fn inner_returns(
        &self,
        inputs: &PlanInputs,
        plan: &InnerPlan,
        choices: &[Choice],
        changes: &[(usize, Choice)],
    ) -> Vec<f32> {
        let Some(options) = self.inner() else { return vec![f32::NAN; changes.len()] };
        let mut rule = Rule::new(&inputs.rollout, options, self.decoder.limits().cuts.len());
        rule.log_price = plan.log_price;
        let finish = plan.finish;
        let base = FirstStep { choices: choices.to_vec(), finish, nets: Vec::new() };
        let changed = |(n, choice): &(usize, Choice)| {
            let mut step = base.clone();
            step.choices[*n] = *choice;
            step
        };
        let steps: Vec<FirstStep> = changes.iter().map(changed).collect();
        self.returns_of(inputs, &rule, &plan.values, &steps)
    }
}

/// An explicit choice, with the numbers of the decoder without shifts of the band.
fn choice(one: &ActionLanes, lane: usize, rule: &Rule<'_>) -> Choice {
    let [_, _, most] = rule.rollout.most();
    let scheduled = one.scheduled[lane] > 0.5;
    let power = if scheduled { one.power[lane] / most } else { 1.0 };
    let level = one.level[lane] / (COMPRESSION_LEVELS - 1) as f32;
    Choice { reals: [0.5, power, level], category: one.cut[lane] as usize, flag: scheduled }
}

/// Normal laws around a candidate.
fn first_laws(mean: &[f32], options: &InnerOptions, shape: Shape) -> NormalLaws {
    let mut step = options.deviations.to_vec();
    step.resize(shape.width, options.worth_deviation);
    NormalLaws { mean: mean.to_vec(), deviation: step.repeat(shape.steps) }
}

/// The next best first steps that differ from the best and from each other.
fn distinct(best: &[Choice], others: impl Iterator<Item = (Vec<Choice>, f32)>) -> Vec<Ranked> {
    const RUNNER_UPS: usize = 4;
    let is_same = |a: &[Choice], b: &[Choice]| {
        let one = |(a, b): (&Choice, &Choice)| {
            let same = a.category == b.category && a.reals[2] == b.reals[2];
            a.flag == b.flag && (!a.flag || same)
        };
        a.iter().zip(b).all(one)
    };
    let mut found: Vec<Ranked> = Vec::new();
    for (sequence, score) in others {
        let is_known = found.iter().any(|known| is_same(&known.sequence, &sequence));
        if found.len() < RUNNER_UPS && !is_known && !is_same(best, &sequence) {
            found.push(Ranked { sequence, score });
        }
    }
    found
}
