//! Where the search starts: what the actor proposes, and what a look at each terminal alone says.

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

/// The laws of all terminals' actions that the actor proposes.
fn laws(sac: &Sac, agent_state: &AgentState, start: &StartOptions) -> Vec<Law> {
    sac.laws(agent_state).iter().map(|one| law(one, start.actor_bounds)).collect()
}

/// What the actor proposes, at every step what it would do now.
pub(super) fn proposal(sac: &Sac, agent_state: &AgentState, options: &TilpOptions) -> Distribution {
    let laws = laws(sac, agent_state, &options.start);
    Distribution::repeated(&laws, options.horizon, sac.space().categories)
}

/// Logits of the actor's probabilities to schedule each terminal.
pub(super) fn flag_logits(sac: &Sac, agent_state: &AgentState, start: &StartOptions) -> Vec<f32> {
    laws(sac, agent_state, start).iter().map(|law| (law.flag / (1.0 - law.flag)).ln()).collect()
}

/// The actor's most likely action; if that schedules nobody, the one it would schedule first.
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

/// Nobody is no schedule: drawn actions without any terminal get the one that the actor would schedule
/// first.
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

/// Whom the actor would schedule first.
fn first_of(laws: &[Law]) -> Option<usize> {
    (0..laws.len()).max_by(|&a, &b| laws[a].flag.total_cmp(&laws[b].flag))
}

/// Terminals in the order of what each is worth to a round, the best first; those that could not
/// make it even with their share of the band come last.
///
/// Worth is the success that a share of the samples promises, per second on the air.
pub(super) fn by_worth(twin: &Twin, inputs: &PlanInputs, options: &WorthOptions) -> Vec<usize> {
    let WorthOptions { share, overhead, late_factor, least_gain } = *options;
    let (nominal, state) = (twin.nominal(), &inputs.state);
    let worth = |n: usize| {
        let (caution, sd) = (twin.options().caution, state.variance[n].sqrt());
        let (start, slope) = twin.task.line_ahead(n, state.outlook);
        let logit = start - slope * (state.log_loss[n] + caution * sd);
        let success = 1.0 / (1.0 + (-logit).exp());
        // The step that its share of the samples makes, and what a report clears up.
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

/// Where the search starts: those who are worth most, most of the power, strong compression, and
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

/// Sequences to be tried beside what is drawn: rounds of several sizes of those who are worth
/// most, the same at every step.
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
