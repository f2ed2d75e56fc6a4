//! What was decided: what the terminals reported, the decision, and the reasons for it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{EventId, Number};
use crate::round::{Observation, Rationale, Reason, RoundOrder, TerminalId, Tiers};
use crate::rule::{Local, Rule};

/// The base station decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Decided {
    /// Its id.
    pub id: EventId,
    /// Simulated time before the round.
    pub clock_s: Number,
    /// Used share of the budget before the round; none without a budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_share: Option<Number>,
    /// The method found nothing it believed feasible.
    pub fallback: bool,
    /// How the participants train.
    pub rule: String,
    /// Learning rate of the server.
    pub server_rate: Number,
    /// Learning rate of the terminals.
    pub terminal_rate: Number,
    /// Whether copies are averaged at the end of the round.
    pub aggregates: bool,
    /// Ids of the scheduled terminals in the order in which they train.
    pub order: Vec<u32>,
    /// Layers with separate copies per terminal; null: as in the scenario.
    pub tiers: Option<TiersLine>,
    /// Report of and decision for each terminal.
    pub terminals: DecidedTerminals,
    /// What the method says about it; none if it has no reasons to give.
    pub rationale: Option<RationaleLine>,
}

/// Layers with separate copies per terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TiersLine {
    /// Every terminal has its own copy of the layers up to this one.
    pub own: usize,
    /// The copies of the terminals are averaged at the end of this round.
    pub average_own: bool,
    /// From there up to this layer every edge server has a copy.
    pub edge: usize,
    /// The copies of the edge servers are averaged at the end of this round.
    pub average_edge: bool,
}

/// Report and decision, terminal by terminal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DecidedTerminals {
    /// Ids.
    pub terminal: Vec<u32>,
    /// Indices of their tasks.
    pub task: Vec<usize>,
    /// Large-scale channel gain, linear.
    pub gain: Vec<Number>,
    /// Small-scale fading power.
    pub fading_power: Vec<Number>,
    /// Front layers held in their current version.
    pub held_layers: Vec<usize>,
    /// Front layers that were trained and are not yet uploaded.
    pub owed_layers: Vec<usize>,
    /// Samples in the data set.
    pub n_samples: Vec<usize>,
    /// Memory budget.
    pub memory_bytes: Vec<u64>,
    /// Whether it takes part, x_n.
    pub scheduled: Vec<bool>,
    /// Bandwidth b_n.
    pub bandwidth_hz: Vec<Number>,
    /// Transmit power p_n.
    pub power_w: Vec<Number>,
    /// Layers that it computes, l_n.
    pub cut: Vec<usize>,
    /// Share of the exchanged data that is not sent, q_n.
    pub compression: Vec<Number>,
}

impl Decided {
    /// What was decided for the round seen.
    pub fn new(
        id: EventId,
        seen: &Observation,
        order: &RoundOrder,
        rationale: Option<&Rationale>,
    ) -> Self {
        let training = order.plan.training();
        let ids = training.order.iter().filter_map(|n| order.terminals.get(*n));
        Self {
            id,
            clock_s: seen.clock.0.into(),
            budget_share: seen.budget.as_ref().map(|budget| budget.share().into()),
            fallback: order.plan.decision().fallback,
            rule: rule_name(order.rule),
            server_rate: f64::from(order.rates.server).into(),
            terminal_rate: f64::from(order.rates.terminal).into(),
            aggregates: order.plan.aggregates(order.aggregates),
            order: ids.map(|TerminalId(id)| *id).collect(),
            tiers: training.tiers.map(TiersLine::from),
            terminals: DecidedTerminals::new(seen, order),
            rationale: rationale.map(RationaleLine::from),
        }
    }
}

impl Decided {
    /// Ids of the terminals that take part.
    pub fn scheduled(&self) -> impl Iterator<Item = u32> + '_ {
        let ids = self.terminals.terminal.iter().zip(&self.terminals.scheduled);
        ids.filter(|(_, scheduled)| **scheduled).map(|(id, _)| *id)
    }
}

/// The rule in a word or two.
fn rule_name(rule: Rule) -> String {
    match rule {
        Rule::Parallel => "parallel".into(),
        Rule::Sequential => "sequential".into(),
        Rule::Relay => "relay".into(),
        Rule::Broadcast => "broadcast".into(),
        Rule::Whole(Local::Steps(steps)) => format!("whole, {steps} steps"),
        Rule::Whole(Local::Epochs(epochs)) => format!("whole, {epochs} epochs"),
        Rule::Tiered { edges } => format!("tiered, {edges} edges"),
    }
}

impl From<Tiers> for TiersLine {
    fn from(tiers: Tiers) -> Self {
        let Tiers { own, average_own, edge, average_edge } = tiers;
        Self { own, average_own, edge, average_edge }
    }
}

impl DecidedTerminals {
    fn new(seen: &Observation, order: &RoundOrder) -> Self {
        let mut columns = Self::default();
        let decisions = &order.plan.decision().terminals;
        for (view, one) in seen.terminals.iter().zip(decisions) {
            let report = &view.report;
            columns.terminal.push(report.id.0);
            columns.task.push(report.task);
            columns.gain.push(report.gain.0.into());
            columns.fading_power.push(report.fading_power.into());
            columns.held_layers.push(report.held_layers);
            columns.owed_layers.push(report.owed_layers);
            columns.n_samples.push(report.n_samples);
            columns.memory_bytes.push(report.memory.0);
            columns.scheduled.push(one.scheduled);
            columns.bandwidth_hz.push(one.bandwidth.0.into());
            columns.power_w.push(one.power.0.into());
            columns.cut.push(one.cut);
            columns.compression.push(one.compression.into());
        }
        columns
    }

    /// How many terminals there are, if all columns agree on it.
    pub(in crate::record) fn length(&self) -> Option<usize> {
        let n = self.terminal.len();
        let lengths = [
            self.task.len(),
            self.gain.len(),
            self.fading_power.len(),
            self.held_layers.len(),
            self.owed_layers.len(),
            self.n_samples.len(),
            self.memory_bytes.len(),
            self.scheduled.len(),
            self.bandwidth_hz.len(),
            self.power_w.len(),
            self.cut.len(),
            self.compression.len(),
        ];
        lengths.iter().all(|length| *length == n).then_some(n)
    }
}

/// The predicted outcome of the decision, and the reasons for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RationaleLine {
    /// Slowest scheduled terminal, likely.
    pub latency_s: Number,
    /// By how much the clock advances.
    pub duration_s: Number,
    /// Energy of all terminals.
    pub energy_j: Number,
    /// Mean loss of the terminals, before minus after.
    pub loss_decrease: Number,
    /// Success before the round, a rate.
    pub success_before: Number,
    /// Success after the round, a rate.
    pub success_after: Number,
    /// Violation by sure delays, relative to the limits.
    pub violation: Number,
    /// First term of the reward.
    pub reward_task: Number,
    /// Second term of the reward.
    pub reward_communication: Number,
    /// Penalty, subtracted from the reward.
    pub reward_penalty: Number,
    /// Return over the horizon; none if no search has scored the decision.
    pub planned_return: Option<Number>,
    /// What is expected of each terminal, and why it is in or out.
    pub terminals: RationaleTerminals,
}

/// Expectation and reason, terminal by terminal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RationaleTerminals {
    /// Likely delay.
    pub delay_s: Vec<Number>,
    /// Delay that is not exceeded with the probability `methods.tilp.sureness`.
    pub sure_delay_s: Vec<Number>,
    /// Energy it spends.
    pub energy_j: Vec<Number>,
    /// Why it is in or out.
    pub reason: Vec<ReasonLine>,
}

/// Why a terminal is in or out.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ReasonLine {
    /// Scheduled, because it increases the return.
    Gain {
        /// By how much its own success is higher than if it were left out.
        own_success: Number,
        /// Return of the plan minus the return without it.
        return_difference: Option<Number>,
    },
    /// Scheduled, because no terminal is sure to be in time and it has the best channel.
    LeastBad {
        /// Its sure delay.
        sure_delay_s: Number,
    },
    /// Out: not sure to be in time even alone with the whole band.
    Unreachable {
        /// The least sure delay it could have.
        sure_delay_s: Number,
    },
    /// Out: not even the first cut fits its memory.
    MemoryShort {
        /// What the first cut takes.
        need_bytes: u64,
        /// Available amount.
        memory_bytes: u64,
    },
    /// Out: with it, some terminal would not be sure to be in time.
    Crowded {
        /// The least sure delay of a round with it.
        sure_delay_s: Number,
    },
    /// Not scheduled: with it the return would not be higher.
    WorthLess {
        /// Return with it minus the return of the plan.
        return_difference: Number,
    },
    /// Not scheduled: the return would be higher with it, but the search did not find that plan.
    Overlooked {
        /// Return with it minus the return of the plan.
        return_difference: Number,
    },
}

impl From<Reason> for ReasonLine {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::Gain { own_success, difference } => Self::Gain {
                own_success: own_success.into(),
                return_difference: difference.map(Number::from),
            },
            Reason::LeastBad { sure } => Self::LeastBad { sure_delay_s: sure.0.into() },
            Reason::Unreachable { sure } => Self::Unreachable { sure_delay_s: sure.0.into() },
            Reason::MemoryShort { need, budget } => {
                Self::MemoryShort { need_bytes: need.0, memory_bytes: budget.0 }
            }
            Reason::Crowded { sure } => Self::Crowded { sure_delay_s: sure.0.into() },
            Reason::WorthLess { difference } => {
                Self::WorthLess { return_difference: difference.into() }
            }
            Reason::Overlooked { difference } => {
                Self::Overlooked { return_difference: difference.into() }
            }
        }
    }
}

impl From<&Rationale> for RationaleLine {
    fn from(rationale: &Rationale) -> Self {
        let expected = &rationale.expected;
        let mut terminals = RationaleTerminals::default();
        for one in &rationale.terminals {
            terminals.delay_s.push(one.delay.0.into());
            terminals.sure_delay_s.push(one.sure_delay.0.into());
            terminals.energy_j.push(one.energy.0.into());
            terminals.reason.push(one.reason.into());
        }
        Self {
            latency_s: expected.latency.0.into(),
            duration_s: expected.duration.0.into(),
            energy_j: expected.energy.0.into(),
            loss_decrease: expected.loss_decrease.into(),
            success_before: expected.success_before.into(),
            success_after: expected.success_after.into(),
            violation: expected.violation.into(),
            reward_task: expected.reward_task.into(),
            reward_communication: expected.reward_communication.into(),
            reward_penalty: expected.reward_penalty.into(),
            planned_return: expected.planned_return.map(Number::from),
            terminals,
        }
    }
}
