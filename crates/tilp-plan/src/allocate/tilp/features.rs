//! Features of a state for actor and critic, and actions in their encoding.

use crate::lanes::{LANES, Lanes, exp2, ln, vectorised};
use crate::rl::actor::AgentStates;
use crate::rl::replay::AgentState;
use crate::round::{Limits, TerminalDecision};
use crate::search::sample::Choice;
use crate::twin::{Futures, RolloutTables, Twin, TwinState};

/// Number of features of a terminal.
pub(super) const SPACE_TERMINALS: usize = 7;
/// Number of features of the whole system.
pub(super) const SPACE_GLOBALS: usize = 4;

/// The parts of the features that stay constant over the horizon of a plan.
pub(super) struct FeatureExtractor {
    n_layers: f32,
    /// Memory as a share of what the deepest cut needs.
    memory: Vec<f32>,
    /// Curve of a terminal's success: see [`crate::twin::TaskTwin::line_ahead`].
    lines: Vec<[f32; 2]>,
    round: u64,
    every: u64,
}

impl FeatureExtractor {
    pub(super) fn new(twin: &Twin, state: &TwinState) -> Self {
        let nominal = twin.nominal();
        let deepest =
            nominal.cost.limits.cuts.last().map_or(1, |&cut| nominal.cost.profile.memory(cut).0);
        let share = |budget: u64| (budget as f64 / deepest as f64).min(1.5) as f32;
        let line = |n: usize| {
            let (start, slope) = twin.task.line_ahead(n, state.outlook);
            [start as f32, slope as f32]
        };
        Self {
            n_layers: nominal.cost.profile.cuts.len() as f32,
            memory: state.memory.iter().map(|memory| share(memory.0)).collect(),
            lines: (0..state.gain.len()).map(line).collect(),
            round: state.round,
            every: nominal.aggregate_every,
        }
    }

    /// The features of sixteen states after some steps, all of size about one.
    pub(super) fn agent_states(
        &self,
        rollout: &RolloutTables,
        futures: &Futures,
        step: usize,
        agent_states: &mut AgentStates,
    ) {
        let n_terminals = rollout.n_terminals();
        (agent_states.n_terminals, agent_states.samples) = (n_terminals, LANES);
        agent_states.terminals.resize(SPACE_TERMINALS * n_terminals * LANES, 0.0);
        agent_states.globals.clear();
        let mut mean = [0.0; LANES];
        for log_loss in &futures.log_loss {
            (0..LANES).for_each(|lane| mean[lane] += log_loss[lane] / n_terminals as f32);
        }
        terminals(self, rollout, futures, step.min(rollout.n_steps() - 1), &mean, agent_states);
        let round = self.round + step as u64;
        let ahead = self.every - 1 - (round + self.every - 1) % self.every;
        let aggregates = f32::from(u8::from(round.is_multiple_of(self.every)));
        agent_states.globals.extend_from_slice(&[ahead as f32 / self.every as f32; LANES]);
        agent_states.globals.extend_from_slice(&futures.success);
        agent_states.globals.extend_from_slice(&mean.map(|log_loss| log_loss / 3.0));
        agent_states.globals.extend_from_slice(&[aggregates; LANES]);
    }

    /// The features of one candidate's state after some steps.
    pub(super) fn agent_state(
        &self,
        rollout: &RolloutTables,
        futures: &Futures,
        step: usize,
    ) -> AgentState {
        let mut agent_states = AgentStates::default();
        self.agent_states(rollout, futures, step, &mut agent_states);
        let first = |rows: &[f32]| rows.iter().step_by(LANES).copied().collect::<Vec<f32>>();
        let (by_feature, n) = (first(&agent_states.terminals), rollout.n_terminals());
        let terminals = (0..n).flat_map(|n_th| {
            let by_feature = &by_feature;
            (0..SPACE_TERMINALS).map(move |feature| by_feature[feature * n + n_th])
        });
        AgentState { terminals: terminals.collect(), globals: first(&agent_states.globals) }
    }
}

vectorised! {
    /// Fills in the features of all terminals.
    fn terminals(
        features: &FeatureExtractor,
        rollout: &RolloutTables,
        futures: &Futures,
        step: usize,
        mean: &Lanes,
        agent_states: &mut AgentStates,
    ) {
        let n_terminals = rollout.n_terminals();
        for n in 0..n_terminals {
            let features = terminal(features, rollout, futures, step, n, mean);
            for (feature, lanes) in features.iter().enumerate() {
                let at = (feature * n_terminals + n) * LANES;
                agent_states.terminals[at..at + LANES].copy_from_slice(lanes);
            }
        }
    }
}

#[inline(always)]
fn terminal(
    features: &FeatureExtractor,
    rollout: &RolloutTables,
    futures: &Futures,
    step: usize,
    n: usize,
    mean: &Lanes,
) -> [Lanes; SPACE_TERMINALS] {
    // Signal-to-noise ratios over one megahertz at one watt: 20 dB is a usable link.
    let decibel = |ratio: f32| 10.0 * std::f32::consts::LOG10_E * ln(ratio.max(1e-20));
    let signal = decibel(rollout.signal(step, n) * 1e-6);
    let [start, slope] = features.lines[n];
    let (mut loss, mut failure) = ([0.0; LANES], [0.0; LANES]);
    for lane in 0..LANES {
        let log_loss = futures.log_loss[n][lane];
        loss[lane] = (log_loss - mean[lane]).clamp(-2.0, 2.0);
        let logit = start - slope * log_loss;
        failure[lane] = 1.0 / (1.0 + exp2(logit * std::f32::consts::LOG2_E));
    }
    [
        [(signal - 20.0) / 20.0; LANES],
        [((signal - decibel(rollout.usual_signal(n) * 1e-6)) / 10.0).clamp(-3.0, 3.0); LANES],
        futures.held[n].map(|layers| layers / features.n_layers),
        futures.pending[n].map(|layers| layers / features.n_layers),
        [features.memory[n]; LANES],
        loss,
        failure,
    ]
}

/// A row of the actor as a choice of the search.
pub(super) fn choice(row: &[f32]) -> Choice {
    let reals = [0, 1, 2].map(|index: usize| 0.5 * (row[index] + 1.0));
    let categories = &row[3..row.len() - 1];
    let category = (0..categories.len()).max_by(|&a, &b| categories[a].total_cmp(&categories[b]));
    Choice { reals, category: category.unwrap_or(0), flag: row[row.len() - 1] > 0.5 }
}

/// A choice as a row of the actor.
pub(super) fn row(one: &Choice, limits: &Limits) -> Vec<f32> {
    let signed = |share: f32| (2.0 * share - 1.0).clamp(-0.999, 0.999);
    let mut row: Vec<f32> = one.reals.map(signed).to_vec();
    row.extend((0..limits.cuts.len()).map(|cut| f32::from(u8::from(cut == one.category))));
    row.push(f32::from(u8::from(one.flag)));
    row
}

/// A decision made without a search, as a row of the actor.
pub(super) fn action_row(one: &TerminalDecision, limits: &Limits) -> Vec<f32> {
    let signed = |share: f64| (2.0 * share - 1.0).clamp(-0.999, 0.999) as f32;
    let mut row = vec![
        signed(one.bandwidth.0 / limits.bandwidth.0),
        signed(one.power.0 / limits.power.0),
        signed(one.compression / limits.compression.max(1e-9)),
    ];
    row.extend(limits.cuts.iter().map(|&cut| f32::from(u8::from(cut == one.cut))));
    row.push(f32::from(u8::from(one.scheduled)));
    row
}
