//! Demonstrations: pairs of observation and action.

use rand::seq::index;

use crate::rng::Rng;

/// A set of samples, each an observation with the action to imitate.
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset {
    observation_width: usize,
    action_width: usize,
    observations: Vec<f32>,
    actions: Vec<f32>,
}

/// Some samples side by side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// Observations, sample by sample.
    pub observations: Vec<f32>,
    /// Actions, sample by sample.
    pub actions: Vec<f32>,
    /// Number of samples.
    pub samples: usize,
}

impl Dataset {
    /// An empty set.
    pub fn new(observation_width: usize, action_width: usize) -> Self {
        Self { observation_width, action_width, observations: vec![], actions: vec![] }
    }

    /// Adds one sample.
    pub fn push(&mut self, observation: &[f32], action: &[f32]) {
        assert_eq!(observation.len(), self.observation_width, "width of an observation");
        assert_eq!(action.len(), self.action_width, "width of an action");
        self.observations.extend_from_slice(observation);
        self.actions.extend_from_slice(action);
    }

    /// Adds all samples of another set of the same widths.
    pub fn append(&mut self, other: &Dataset) {
        assert_eq!(self.observation_width, other.observation_width, "width of an observation");
        assert_eq!(self.action_width, other.action_width, "width of an action");
        self.observations.extend_from_slice(&other.observations);
        self.actions.extend_from_slice(&other.actions);
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        self.actions.len() / self.action_width
    }

    /// Whether there is no sample.
    pub fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }

    /// The observation of a sample.
    pub fn observation(&self, sample: usize) -> &[f32] {
        &self.observations[sample * self.observation_width..][..self.observation_width]
    }

    /// The action of a sample.
    pub fn action(&self, sample: usize) -> &[f32] {
        &self.actions[sample * self.action_width..][..self.action_width]
    }

    /// Draws `samples` different samples (all, if there are not more) into `batch`.
    pub fn draw(&self, samples: usize, rng: &mut Rng, batch: &mut Batch) {
        self.gather(&self.choose(samples, rng), batch);
    }

    /// Draws `samples` different samples (all, if there are not more); random order.
    pub fn choose(&self, samples: usize, rng: &mut Rng) -> Vec<usize> {
        index::sample(rng, self.len(), samples.min(self.len())).into_vec()
    }

    /// Puts these samples side by side into `batch`.
    pub fn gather(&self, samples: &[usize], batch: &mut Batch) {
        batch.samples = samples.len();
        batch.observations.clear();
        batch.actions.clear();
        for &sample in samples {
            batch.observations.extend_from_slice(self.observation(sample));
            batch.actions.extend_from_slice(self.action(sample));
        }
    }
}
