//! A plan as rows: printed as JSON, and as text.

use schemars::JsonSchema;
use serde::Serialize;

use crate::allocate::{Plan, RunnerUp};
use crate::round::{Observation, Reason};
use crate::tasks::Suite;
use crate::twin::Decrease;

/// A plan with its reasons. Infinite values are null in JSON.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PlanReport {
    /// Note on the kind of scenario, for profile scenarios.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<&'static str>,
    /// Predictions that rest on priors alone, since nothing was measured that could correct them: of
    /// `delay`, `energy`, `loss` and `success`.
    pub on_priors: Vec<&'static str>,
    /// The round to decide.
    pub round: u64,
    /// No terminal is sure to be in time: the plan has the one with the best channel.
    pub fallback: bool,
    /// Outcome of the round as the twin predicts it.
    pub predicted: PredictedRow,
    /// How far the round lowers the loss of each task.
    pub loss_decreases: Vec<LossDecreaseRow>,
    /// The search; null if the actor decided alone.
    pub search: Option<SearchRow>,
    /// One row per terminal.
    pub terminals: Vec<TerminalPlanRow>,
    /// The next best, best first.
    pub runner_ups: Vec<RunnerUpRow>,
}

/// Outcome of the round as the twin predicts it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PredictedRow {
    /// Slowest scheduled terminal, likely.
    pub latency_s: f64,
    /// By how much the clock advances.
    pub duration_s: f64,
    /// Energy of all terminals involved.
    pub energy_j: f64,
    /// Mean loss of the terminals, before minus after.
    pub loss_decrease: f64,
    /// Success before the round, a rate.
    pub success_before: f64,
    /// Success after the round, a rate.
    pub success_after: f64,
    /// Violation by sure delays, relative to the limits.
    pub violation: f64,
    /// First term of the reward.
    pub reward_task: f64,
    /// Second term of the reward.
    pub reward_communication: f64,
    /// Penalty, subtracted from the reward.
    pub reward_penalty: f64,
    /// The reward of the round.
    pub reward: f64,
    /// Return over the horizon; null for the fallback.
    pub planned_return: Option<f64>,
}

/// How far the round lowers the mean loss of the terminals of a task.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LossDecreaseRow {
    /// The task.
    pub task: &'static str,
    /// The loss before the round.
    pub before: f64,
    /// Decrease of the loss.
    pub decrease: f64,
    /// The same as a share of the loss before.
    pub share: f64,
    /// Lower end of its 90 % interval.
    pub share_low: f64,
    /// Upper end.
    pub share_high: f64,
}

/// Statistics of the search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SearchRow {
    /// Iterations done.
    pub iterations: usize,
}

/// Decision for one terminal, with its reason.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TerminalPlanRow {
    /// Index of the terminal, from 0.
    pub terminal: usize,
    /// Its task.
    pub task: &'static str,
    /// Whether it takes part, x_n.
    pub scheduled: bool,
    /// Its bandwidth b_n.
    pub bandwidth_hz: f64,
    /// Its transmit power p_n.
    pub power_w: f64,
    /// Layers that it computes, l_n.
    pub cut: usize,
    /// Share of the exchanged data that is not sent, q_n.
    pub compression: f64,
    /// Likely delay.
    pub delay_s: f64,
    /// Delay that is not exceeded with the probability `methods.tilp.sureness`.
    pub sure_delay_s: f64,
    /// Energy it spends.
    pub energy_j: f64,
    /// Why it is in or out.
    pub reason: ReasonRow,
    /// The same in words.
    pub why: String,
}

/// Why a terminal is in or out.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ReasonRow {
    /// Scheduled, because it increases the return.
    Gain {
        /// Increase of its own success over a plan without it, as a rate.
        own_success: f64,
        /// Return of the plan minus the return without it; null if without it no terminal is left.
        return_difference: Option<f64>,
    },
    /// Scheduled, because no terminal is sure to be in time and it has the best channel.
    LeastBad {
        /// Its sure delay.
        sure_delay_s: f64,
    },
    /// Out: not sure to be in time even alone with the whole band, full power and the most
    /// compression.
    Unreachable {
        /// The least sure delay it could have.
        sure_delay_s: f64,
    },
    /// Out: not even the first cut fits its memory.
    MemoryShort {
        /// Requirement of the first cut.
        need_bytes: u64,
        /// Available amount.
        memory_bytes: u64,
    },
    /// Not scheduled: with it, some terminal would not be sure to be in time.
    Crowded {
        /// The least sure delay of a round with it.
        sure_delay_s: f64,
    },
    /// Not scheduled: with it the return would not be higher.
    WorthLess {
        /// Return with it minus the return of the plan.
        return_difference: f64,
    },
    /// Not scheduled: the return would be higher with it, but the search did not find that plan.
    Overlooked {
        /// Return with it minus the return of the plan.
        return_difference: f64,
    },
}

/// A candidate that came close.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RunnerUpRow {
    /// Its predicted return.
    pub score: f64,
    /// By how much the best candidate was better.
    pub behind: f64,
    /// Terminals it schedules.
    pub n_scheduled: usize,
    /// Terminals it schedules and the plan does not.
    pub added: Vec<usize>,
    /// Terminals that the plan schedules and it does not.
    pub left_out: Vec<usize>,
    /// How it differs, in words.
    pub difference: String,
}

impl PlanReport {
    /// The rows of a plan.
    pub fn new(seen: &Observation, plan: &Plan, suite: &Suite) -> Self {
        Self {
            note: None,
            on_priors: Vec::new(),
            round: seen.round,
            fallback: plan.decision.fallback,
            predicted: predicted(plan),
            loss_decreases: loss_decreases(plan, suite),
            search: plan.iterations.map(|iterations| SearchRow { iterations }),
            terminals: (0..plan.terminals.len()).map(|n| terminal(seen, plan, suite, n)).collect(),
            runner_ups: plan.runner_ups.iter().map(runner_up).collect(),
        }
    }
}

fn predicted(plan: &Plan) -> PredictedRow {
    let (step, reward) = (&plan.predicted, &plan.predicted.reward);
    PredictedRow {
        latency_s: step.latency.0,
        duration_s: step.duration.0,
        energy_j: step.energy.0,
        loss_decrease: step.loss_decrease,
        success_before: plan.success_before,
        success_after: step.success,
        violation: step.violation.relative,
        reward_task: reward.task,
        reward_communication: reward.communication,
        reward_penalty: reward.penalty,
        reward: reward.total(),
        planned_return: plan.planned_return,
    }
}

fn loss_decreases(plan: &Plan, suite: &Suite) -> Vec<LossDecreaseRow> {
    let row = |(group, one): (usize, &Option<Decrease>)| {
        let Decrease { before, fall, share } = (*one)?;
        Some(LossDecreaseRow {
            task: suite.task_name(group),
            before,
            decrease: fall,
            share: share.mid,
            share_low: share.low,
            share_high: share.high,
        })
    };
    plan.decreases.groups.iter().enumerate().filter_map(row).collect()
}

fn terminal(seen: &Observation, plan: &Plan, suite: &Suite, n: usize) -> TerminalPlanRow {
    let (one, own) = (&plan.decision.terminals[n], &plan.terminals[n]);
    let reason = ReasonRow::from(own.reason);
    TerminalPlanRow {
        terminal: n,
        task: suite.task_name(seen.terminals[n].report.task),
        scheduled: one.scheduled,
        bandwidth_hz: one.bandwidth.0,
        power_w: one.power.0,
        cut: one.cut,
        compression: one.compression,
        delay_s: own.delay.0,
        sure_delay_s: own.sure_delay.0,
        energy_j: own.energy.0,
        reason,
        why: reason.words(),
    }
}

impl From<Reason> for ReasonRow {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::Gain { own_success, difference } => {
                Self::Gain { own_success, return_difference: difference }
            }
            Reason::LeastBad { sure } => Self::LeastBad { sure_delay_s: sure.0 },
            Reason::Unreachable { sure } => Self::Unreachable { sure_delay_s: sure.0 },
            Reason::MemoryShort { need, budget } => {
                Self::MemoryShort { need_bytes: need.0, memory_bytes: budget.0 }
            }
            Reason::Crowded { sure } => Self::Crowded { sure_delay_s: sure.0 },
            Reason::WorthLess { difference } => Self::WorthLess { return_difference: difference },
            Reason::Overlooked { difference } => Self::Overlooked { return_difference: difference },
        }
    }
}

impl ReasonRow {
    /// The reason without its numbers.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Gain { .. } => "scheduled for what it brings",
            Self::LeastBad { .. } => "scheduled as the least infeasible",
            Self::Unreachable { .. } => "not surely in time even alone with the whole band",
            Self::MemoryShort { .. } => "not even the first cut fits the memory",
            Self::Crowded { .. } => "not surely in time beside the others",
            Self::WorthLess { .. } => "could be added, but the plan is not better with it",
            Self::Overlooked { .. } => "better with it, but the search did not come across that",
        }
    }

    /// The reason in words.
    pub fn words(&self) -> String {
        match *self {
            Self::Gain { own_success, return_difference } => {
                let without = match return_difference {
                    Some(difference) => {
                        format!("return {difference:+.2e} compared with a plan without it")
                    }
                    None => "without it no terminal would be left".to_owned(),
                };
                format!("own success {:+.2} points, {without}", 100.0 * own_success)
            }
            Self::LeastBad { sure_delay_s } => {
                format!(
                    "no terminal is surely in time; best channel, {} to be sure",
                    time(sure_delay_s)
                )
            }
            Self::Unreachable { sure_delay_s } | Self::Crowded { sure_delay_s } => {
                format!("{}: {} to be sure", self.name(), time(sure_delay_s))
            }
            Self::MemoryShort { need_bytes, memory_bytes } => {
                format!("{}: {need_bytes} bytes of {memory_bytes}", self.name())
            }
            Self::WorthLess { return_difference } | Self::Overlooked { return_difference } => {
                format!("{}: return {return_difference:+.2e}", self.name())
            }
        }
    }
}

fn time(seconds: f64) -> String {
    if seconds < 1e6 { format!("{seconds:.2} s") } else { "for ever".into() }
}

fn runner_up(other: &RunnerUp) -> RunnerUpRow {
    let list = |word: &str, who: &[usize]| {
        let who: Vec<String> = who.iter().map(usize::to_string).collect();
        (!who.is_empty()).then(|| format!("{word} {}", who.join(", ")))
    };
    let parts = [list("with", &other.added), list("without", &other.left_out)];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let difference = match parts.is_empty() {
        true => "the same terminals, otherwise configured".into(),
        false => parts.join("; "),
    };
    RunnerUpRow {
        score: other.score,
        behind: other.behind,
        n_scheduled: other.n_scheduled,
        added: other.added.clone(),
        left_out: other.left_out.clone(),
        difference,
    }
}
