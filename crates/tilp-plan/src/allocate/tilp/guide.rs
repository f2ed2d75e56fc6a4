//! The start of the search: the actor's proposal, and an estimate for each terminal alone.

use super::options::{StartOptions, TilpOptions, WorthOptions};
use super::plan::PlanInputs;
use crate::rl::replay::AgentState;
use crate::rl::sac::Sac;
use crate::search::distribution::{Distribution, Law, mean_for};
use crate::search::sample::Choice;
use crate::twin::Twin;

fn law(from: &crate::rl::sac::Law, [least, most]: [f32; 2]) -> Law {
    let mut law = Law::vague(from.logits.len());
    law.mean.copy_from_slice(&from.mean);
    law.deviation.copy_from_slice(&from.deviation);
    law.set_logits(&from.logits);
    law.flag = from.flag.clamp(least, most);
    law
}

/// The laws (distributions) of all terminals' actions that the actor proposes.
fn laws(sac: &Sac, agent_state: &AgentState, start: &StartOptions) -> Vec<Law> {
    sac.laws(agent_state).iter().map(|one| law(one, start.actor_bounds)).collect()
}

/// The actor's proposal: at every step, its laws for the current state.
pub(super) fn proposal(sac: &Sac, agent_state: &AgentState, options: &TilpOptions) -> Distribution {
    let laws = laws(sac, agent_state, &options.start);
    Distribution::repeated(&laws, options.horizon, sac.space().categories)
}

/// Logits of the actor's probabilities to schedule each terminal.
pub(super) fn flag_logits(sac: &Sac, agent_state: &AgentState, start: &StartOptions) -> Vec<f32> {
    laws(sac, agent_state, start).iter().map(|law| (law.flag / (1.0 - law.flag)).ln()).collect()
}

/// The actor's most likely action. If it schedules no terminal, the one with the highest
/// probability is scheduled.
pub(super) fn actors_choice(
    sac: &Sac,
    agent_state: &AgentState,
    start: &StartOptions,
) -> Vec<Choice> {
    let laws = laws(sac, agent_state, start);
    let mut choices: Vec<Choice> = laws.iter().map(Law::mode).collect();
    if choices.iter().all(|choice| !choice.flag) {
        first_of(&laws).into_iter().for_each(|n| choices[n].flag = true);
    }
    choices
}

/// An empty schedule is not allowed: if the drawn actions schedule no terminal, the one with the
/// actor's highest probability is scheduled.
pub(super) fn schedule_somebody(
    sac: &Sac,
    agent_state: &AgentState,
    start: &StartOptions,
    actions: &mut [f32],
) {
    let width = sac.space().n_action();
    if actions.chunks_exact(width).any(|row| row[width - 1] > 0.5) {
        return;
    }
    let laws = laws(sac, agent_state, start);
    first_of(&laws).into_iter().for_each(|n| actions[(n + 1) * width - 1] = 1.0);
}

/// The terminal with the highest probability of being scheduled.
fn first_of(laws: &[Law]) -> Option<usize> {
    (0..laws.len()).max_by(|&a, &b| laws[a].flag.total_cmp(&laws[b].flag))
}

/// Terminals in the order of their worth for a round, the best first. Terminals that would miss the
/// deadline even with their share of the band are reduced in worth.
///
/// Worth is the gain in success from a share of the samples, per second of delay.
pub(super) fn by_worth(twin: &Twin, inputs: &PlanInputs, options: &WorthOptions) -> Vec<usize> {
    let WorthOptions { share, overhead, late_factor, least_gain } = *options;
    let (nominal, state) = (twin.nominal(), &inputs.state);
    let worth = |n: usize| {
        let (caution, sd) = (twin.options().caution, state.variance[n].sqrt());
        let (start, slope) = twin.task.line_ahead(n, state.outlook);
        let logit = start - slope * (state.log_loss[n] + caution * sd);
        let success = 1.0 / (1.0 + (-logit).exp());
        // The fall of the loss from its share of the samples, and from the information of a report.
        let told = twin.training.next_variance(state.variance[n], true).sqrt();
        let step = share * twin.training.own_weight(nominal.tasks[n]) + caution * (sd - told);
        let gain = slope * success * (1.0 - success) * step.max(0.0);
        let seconds = inputs.rollout.delay_of_a_share(n, share as f32);
        let in_time = if seconds < nominal.cost.limits.deadline.0 { 1.0 } else { late_factor };
        in_time * (gain + least_gain) / (seconds + overhead * nominal.cost.limits.deadline.0)
    };
    let worths: Vec<f64> = (0..state.gain.len()).map(worth).collect();
    let mut order: Vec<usize> = (0..worths.len()).collect();
    order.sort_by(|&a, &b| worths[b].total_cmp(&worths[a]).then(a.cmp(&b)));
    order
}

/// The start of the search: the terminals of the highest worth, high power, strong compression, and
/// shallow cuts more often than deep ones.
pub(super) fn prior(twin: &Twin, inputs: &PlanInputs, options: &TilpOptions) -> Distribution {
    let n_cuts = twin.nominal().cost.limits.cuts.len();
    let n = inputs.state.gain.len();
    let start = &options.start;
    let mut law = Law::vague(n_cuts);
    law.mean = [0.0, mean_for(start.power), mean_for(start.compression)];
    law.deviation = start.deviations;
    let [least, most] = start.scheduled_bounds;
    law.flag = (options.start_scheduled / n as f64).clamp(least, most) as f32;
    let mut laws = vec![law; n];
    if options.parts.seeds {
        let size = (options.start_scheduled.round() as usize).clamp(1, n);
        let logit = |cut: usize| -(start.cut_logit * cut as f32).min(start.most_cut_logit);
        let shallow: Vec<f32> = (0..n_cuts).map(logit).collect();
        for (place, &n) in by_worth(twin, inputs, &options.worth).iter().enumerate() {
            let best = start.scheduled_best.get(place / size).copied();
            laws[n].flag = best.unwrap_or(start.scheduled_rest);
            laws[n].set_logits(&shallow);
        }
    }
    Distribution::repeated(&laws, options.horizon, n_cuts)
}

/// Sequences to try in addition to the drawn ones: rounds of several sizes with the terminals of
/// the highest worth, the same at every step.
pub(super) fn sequences(
    twin: &Twin,
    inputs: &PlanInputs,
    options: &TilpOptions,
) -> Vec<Vec<Choice>> {
    let order = by_worth(twin, inputs, &options.worth);
    let sequence = |size: usize, power: f32, compression: f32| {
        let idle = Choice { reals: [0.5, power, compression], category: 0, flag: false };
        let mut step = vec![idle; order.len()];
        order.iter().take(size).for_each(|&n| step[n].flag = true);
        step.repeat(options.horizon)
    };
    let suggestions = &options.suggestions;
    let mut sequences = Vec::new();
    for &size in suggestions.sizes.iter().filter(|size| **size <= order.len()) {
        for &power in &suggestions.powers {
            let of = |&compression: &f32| sequence(size, power, compression);
            sequences.extend(suggestions.compressions.iter().map(of));
        }
    }
    sequences
}
