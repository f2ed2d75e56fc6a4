//! The robots of a cell, and when their success is measured.

use crate::rng::Seed;
use crate::round::SuccessCount;
use crate::split::model::Weights;
use crate::split::policy::Policy;
use crate::tasks::{Episode, EpisodeSet, Suite, Workcell, rollout};

/// When success is measured, and on how many episodes per terminal (D8).
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
    /// Index of the task of a terminal into the suite's tasks.
    pub fn task(&self, n: usize) -> usize {
        self.cells[n].task()
    }

    /// Whether anything is measured after this round.
    pub fn measures(&self, round: u64) -> bool {
        round.is_multiple_of(self.schedule.calibrate_every)
            || round.is_multiple_of(self.schedule.measure_every)
    }

    /// Success per terminal on calibration episodes, if it is time. Every calibration has
    /// episodes of its own.
    pub fn calibrate(
        &self,
        round: u64,
        model: &Weights,
        policy: &Policy,
    ) -> Option<Vec<SuccessCount>> {
        round.is_multiple_of(self.schedule.calibrate_every).then(|| {
            let episodes = self.schedule.calibration_episodes;
            let first = round / self.schedule.calibrate_every * episodes as u64;
            self.measure(EpisodeSet::Calibration, first, episodes, model, policy)
        })
    }

    /// Success per terminal on report episodes, if it is time. They are the same at every point
    /// of the curve, so that a step in it is the policy's.
    pub fn report(
        &self,
        round: u64,
        model: &Weights,
        policy: &Policy,
    ) -> Option<Vec<SuccessCount>> {
        round.is_multiple_of(self.schedule.measure_every).then(|| {
            self.measure(EpisodeSet::Report, 0, self.schedule.report_episodes, model, policy)
        })
    }

    /// Success per terminal on the final episodes.
    pub fn final_success(&self, model: &Weights, policy: &Policy) -> Vec<SuccessCount> {
        self.measure(EpisodeSet::Final, 0, self.schedule.final_episodes, model, policy)
    }

    /// Success per terminal on episodes of the truth, before a round that a calibration precedes
    /// and before the first. Every time has episodes of its own.
    pub fn true_success(
        &self,
        round: u64,
        episodes: usize,
        model: &Weights,
        policy: &Policy,
    ) -> Option<Vec<SuccessCount>> {
        let done = round - 1;
        done.is_multiple_of(self.schedule.calibrate_every).then(|| {
            let first = done / self.schedule.calibrate_every * episodes as u64;
            self.measure(EpisodeSet::Truth, first, episodes, model, policy)
        })
    }

    /// Success per task out of success per terminal.
    pub fn by_task(&self, by_terminal: &[SuccessCount]) -> Vec<SuccessCount> {
        let mut by_task = vec![SuccessCount::default(); self.suite.tasks.len()];
        for (n, count) in by_terminal.iter().enumerate() {
            let task = &mut by_task[self.task(n)];
            *task = task.plus(*count);
        }
        by_task
    }

    fn measure(
        &self,
        set: EpisodeSet,
        first: u64,
        per_terminal: usize,
        model: &Weights,
        policy: &Policy,
    ) -> Vec<SuccessCount> {
        let episodes: Vec<Episode> = (0..self.cells.len())
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
        successes.chunks(per_terminal).map(count).collect()
    }
}
