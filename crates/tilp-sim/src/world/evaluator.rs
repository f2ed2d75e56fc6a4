//! The evaluator of a simulated cell: robots in physics run calibration episodes.

use std::ops::Range;
use std::sync::Arc;

use super::Fleet;
use crate::message::LayerWeights;
use crate::round::{CellError, Evaluator, SuccessCount, TerminalId, TerminalSuccess};
use crate::split::model::{SplitModel, Weights};
use crate::split::policy::Policy;
use crate::tasks::EpisodeSet;

/// Runs calibration episodes on the robots of a fleet.
pub struct RobotEvaluator {
    fleet: Arc<Fleet>,
    policy: Arc<Policy>,
}

impl RobotEvaluator {
    /// An evaluator of this policy on these robots.
    pub fn new(fleet: Arc<Fleet>, policy: Arc<Policy>) -> Self {
        Self { fleet, policy }
    }

    /// A model message as a safetensors file.
    pub fn model_file(&self, model: &[u8]) -> Result<Vec<u8>, CellError> {
        let weights = read_model(&self.policy, model)?;
        let file = self.policy.to_safetensors(&weights);
        file.map_err(|error| CellError::Model(error.to_string()))
    }

    /// Counts with other robots than the simulated ones: `successes` runs these episodes of a
    /// terminal.
    pub fn count(
        &self,
        round: u64,
        terminals: &[TerminalId],
        mut successes: impl FnMut(TerminalId, Range<u64>) -> Result<usize, String>,
    ) -> Result<Vec<TerminalSuccess>, CellError> {
        let (first, episodes) = self.episodes(round);
        let fleet = self.fleet.at(round);
        let one = |&id: &TerminalId| {
            let found = successes(id, first..first + episodes as u64);
            let successes = found.map_err(|reason| CellError::Training { round, reason })? as u64;
            let count = SuccessCount { successes, episodes: episodes as u64 };
            Ok(TerminalSuccess { id, task: fleet.task(id), count })
        };
        terminals.iter().map(one).collect()
    }

    /// The first calibration episode of a round, and their number.
    fn episodes(&self, round: u64) -> (u64, usize) {
        let schedule = &self.fleet.schedule;
        let episodes = schedule.calibration_episodes;
        (round / schedule.calibrate_every * episodes as u64, episodes)
    }
}

/// The weights in a message of all layers of a policy.
pub(super) fn read_model(policy: &Policy, message: &[u8]) -> Result<Weights, CellError> {
    let sizes: Vec<usize> =
        (1..=policy.n_layers()).map(|layer| policy.n_parameters(layer)).collect();
    let unread = |reason: String| CellError::Model(reason);
    let message =
        LayerWeights::from_bytes(message, &sizes).map_err(|error| unread(error.to_string()))?;
    if message.layers.len() != sizes.len() {
        let found = message.layers.len();
        return Err(unread(format!("{found} layers, expected {}", sizes.len())));
    }
    Ok(Weights::new(message.layers))
}

impl Evaluator for RobotEvaluator {
    fn is_due(&self, round: u64) -> bool {
        round.is_multiple_of(self.fleet.schedule.calibrate_every)
    }

    /// Every calibration has separate episodes.
    fn evaluate(
        &mut self,
        round: u64,
        terminals: &[TerminalId],
        model: &[u8],
    ) -> Result<Vec<TerminalSuccess>, CellError> {
        let weights = read_model(&self.policy, model)?;
        let (first, episodes) = self.episodes(round);
        let set = EpisodeSet::Calibration;
        let fleet = self.fleet.at(round);
        Ok(fleet.measure(set, first, episodes, terminals, &weights, &self.policy))
    }
}
