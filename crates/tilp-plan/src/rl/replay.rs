//! Transitions to learn from.

use rand::RngExt as _;

use super::actor::AgentStates;
use super::agent::MOST_UPDATES;
use super::policy::Space;
use crate::rng::Rng;
use crate::snapshot::{Snapshot, SnapshotError};

/// One state: features terminal by terminal, then the global ones.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentState {
    /// Terminal by terminal.
    pub terminals: Vec<f32>,
    /// Of the whole system.
    pub globals: Vec<f32>,
}

impl AgentState {
    /// A batch of this state alone.
    pub fn batch(&self, space: &Space) -> AgentStates {
        AgentStates::from_states(space, std::slice::from_ref(self))
    }
}

impl AgentStates {
    /// States of one number of terminals, feature-major.
    pub fn from_states(space: &Space, states: &[AgentState]) -> Self {
        let n_terminals = states[0].terminals.len() / space.terminal_features;
        let mut agent_states = Self { n_terminals, ..Self::default() };
        let flat: Vec<Vec<f32>> =
            states.iter().map(|state| [&state.terminals[..], &state.globals].concat()).collect();
        agent_states.fill(space, n_terminals, flat.iter().map(|state| &state[..]));
        agent_states
    }

    fn fill<'a>(
        &mut self,
        space: &Space,
        n_terminals: usize,
        states: impl ExactSizeIterator<Item = &'a [f32]>,
    ) {
        (self.n_terminals, self.samples) = (n_terminals, states.len());
        let features = space.terminal_features;
        self.terminals.resize(features * self.columns(), 0.0);
        self.globals.resize(space.global_features * self.samples, 0.0);
        let samples = self.samples;
        for (sample, state) in states.enumerate() {
            let (terminals, globals) = state.split_at(features * n_terminals);
            scatter(terminals, features, sample, samples, &mut self.terminals);
            scatter(globals, globals.len(), sample, samples, &mut self.globals);
        }
    }
}

/// Writes one sample, terminal by terminal, into a feature-major batch.
fn scatter(from: &[f32], features: usize, sample: usize, samples: usize, to: &mut [f32]) {
    if features == 0 {
        return;
    }
    let n_terminals = from.len() / features;
    for (terminal, row) in from.chunks_exact(features).enumerate() {
        for (feature, value) in row.iter().enumerate() {
            to[(feature * n_terminals + terminal) * samples + sample] = *value;
        }
    }
}

/// One step: in a state, actions (rows of [`Space::n_action`], terminal by terminal), what came.
#[derive(Clone, Debug, PartialEq)]
pub struct Transition {
    /// Before.
    pub state: AgentState,
    /// Actions, terminal by terminal.
    pub actions: Vec<f32>,
    /// The reward.
    pub reward: f32,
    /// After.
    pub next: AgentState,
    /// Whether the episode ends here; a time limit is not an end.
    pub last: bool,
}

/// A batch of transitions, feature-major.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Before.
    pub states: AgentStates,
    /// Rows of [`Space::n_action`].
    pub actions: Vec<f32>,
    /// Rewards.
    pub rewards: Vec<f32>,
    /// After.
    pub next: AgentStates,
    /// One where something comes after, zero where not.
    pub goes_on: Vec<f32>,
}

/// The latest transitions, the oldest overwritten.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    space: Space,
    n_terminals: usize,
    capacity: usize,
    records: Vec<f32>,
    /// Transitions ever added.
    added: u64,
}

impl Replay {
    /// A buffer for this number of transitions.
    pub fn new(space: Space, n_terminals: usize, capacity: usize) -> Self {
        Self { space, n_terminals, capacity, records: Vec::new(), added: 0 }
    }

    /// Prepares for transitions of this number of terminals. Transitions with another number are dropped.
    pub fn resize(&mut self, n_terminals: usize) {
        if n_terminals != self.n_terminals {
            *self = Self::new(self.space, n_terminals, self.capacity);
        }
    }

    /// Number of transitions.
    pub fn len(&self) -> usize {
        (self.added as usize).min(self.capacity)
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.added == 0
    }

    fn state_length(&self) -> usize {
        self.n_terminals * self.space.terminal_features + self.space.global_features
    }

    fn record_length(&self) -> usize {
        2 * self.state_length() + self.n_terminals * self.space.n_action() + 2
    }

    /// Adds a transition.
    pub fn push(&mut self, transition: &Transition) {
        let Transition { state, actions, reward, next, last } = transition;
        let ends = [*reward, if *last { 0.0 } else { 1.0 }];
        let parts: [&[f32]; 6] =
            [&state.terminals, &state.globals, &next.terminals, &next.globals, actions, &ends];
        let length = self.record_length();
        assert_eq!(parts.iter().map(|part| part.len()).sum::<usize>(), length, "shape");
        let slot = (self.added % self.capacity as u64) as usize * length;
        if slot == self.records.len() {
            self.records.resize(slot + length, 0.0);
        }
        let mut at = slot;
        for part in parts {
            self.records[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        self.added += 1;
    }

    fn record(&self, index: usize) -> &[f32] {
        &self.records[index * self.record_length()..(index + 1) * self.record_length()]
    }

    pub(super) fn save(&self, name: &str, snapshot: &mut Snapshot) {
        snapshot.put_f32(&format!("{name}/records"), self.records.clone());
        snapshot.put_u64(&format!("{name}/added"), vec![self.added]);
    }

    pub(super) fn restore(&mut self, name: &str, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        let added = snapshot.count(&format!("{name}/added"), 0, MOST_UPDATES)?;
        let length = (added as usize).min(self.capacity) * self.record_length();
        self.records = snapshot.finite_f32(&format!("{name}/records"), length)?.to_vec();
        self.added = added;
        Ok(())
    }
}

/// Draws a batch of which about `real_share` is real; all of one kind where the other is empty.
pub fn draw(
    real: &Replay,
    imagined: &Replay,
    real_share: f32,
    samples: usize,
    rng: &mut Rng,
    batch: &mut Batch,
) {
    let n_real = match (real.is_empty(), imagined.is_empty()) {
        (false, true) => samples,
        (true, false) => 0,
        _ => (real_share * samples as f32).round() as usize,
    };
    let records: Vec<&[f32]> = (0..samples)
        .map(|index| {
            let source = if index < n_real { real } else { imagined };
            source.record(rng.random_range(0..source.len()))
        })
        .collect();
    let (space, n_terminals) = (&real.space, real.n_terminals);
    let (state, n_action) = (real.state_length(), space.n_action());
    batch.states.fill(space, n_terminals, records.iter().map(|record| &record[..state]));
    batch.next.fill(space, n_terminals, records.iter().map(|record| &record[state..2 * state]));
    batch.actions.resize(n_action * n_terminals * samples, 0.0);
    for (sample, record) in records.iter().enumerate() {
        let actions = &record[2 * state..record.len() - 2];
        scatter(actions, n_action, sample, samples, &mut batch.actions);
    }
    let tail = |back: usize| records.iter().map(move |record| record[record.len() - back]);
    batch.rewards.clear();
    batch.rewards.extend(tail(2));
    batch.goes_on.clear();
    batch.goes_on.extend(tail(1));
}
