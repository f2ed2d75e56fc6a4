//! The robots of a cell, and when their success is measured.

use crate::rng::Seed;
use crate::round::{SuccessCount, TerminalId, TerminalSuccess};
use crate::split::model::Weights;
use crate::split::policy::Policy;
use crate::tasks::{Episode, EpisodeSet, Suite, Workcell, rollout};

/// When success is measured, and on how many episodes per terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Rounds between calibration measurements, E_A.
    pub calibrate_every: u64,
    /// Calibration episodes per terminal.
    pub calibration_episodes: usize,
    /// Rounds between points of the success curve.
    pub measure_every: u64,
    /// Report episodes per terminal.
    pub report_episodes: usize,
    /// Final episodes per terminal.
    pub final_episodes: usize,
    /// Control steps after which an episode has failed.
    pub episode_steps: usize,
    /// Rounds between two in which the losses of the deployed policy are measured. Without a
    /// common divisor with the aggregation interval, every place between two aggregations is
    /// measured at some time.
    pub loss_every: u64,
    /// Samples of each terminal for such a measurement, the same ones in every round.
    pub loss_samples: usize,
}

/// One robot cell per terminal.
pub struct Fleet {
    /// What the cells have in common.
    pub suite: &'static Suite,
    /// The cells.
    pub cells: Vec<Box<dyn Workcell>>,
    /// When they are measured.
    pub schedule: Schedule,
    /// Seed of the episodes.
    pub seed: Seed,
}

impl Fleet {
    /// Success of the robots of these terminals on episodes `first` and following of a set. The
    /// fleet has a robot cell for each terminal that is ever there, by id.
    pub fn measure(
        &self,
        set: EpisodeSet,
        first: u64,
        per_terminal: usize,
        terminals: &[TerminalId],
        model: &Weights,
        policy: &Policy,
    ) -> Vec<TerminalSuccess> {
        let episodes: Vec<Episode> = (terminals.iter().map(|id| id.0 as usize))
            .flat_map(|cell| (first..first + per_terminal as u64).map(move |index| (cell, index)))
            .map(|(cell, index)| {
                let start = set.episode(self.seed, cell as u64, index);
                Episode { cell, start }
            })
            .collect();
        let act = |observations: &[f32], actions: &mut [f32]| {
            policy.act(model, observations, actions);
        };
        let successes = rollout(&self.cells, &episodes, &act, self.schedule.episode_steps);
        let count = |results: &[bool]| SuccessCount {
            successes: results.iter().filter(|success| **success).count() as u64,
            episodes: results.len() as u64,
        };
        let counts = successes.chunks(per_terminal).map(count);
        let one = |(&id, count): (&TerminalId, SuccessCount)| {
            let task = self.cells[id.0 as usize].task();
            TerminalSuccess { id, task, count }
        };
        terminals.iter().zip(counts).map(one).collect()
    }
}
