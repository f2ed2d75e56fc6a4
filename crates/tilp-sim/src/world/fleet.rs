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

/// From a round on a terminal has another robot cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellChange {
    /// The round, counted from 1.
    pub round: u64,
    /// The terminal.
    pub terminal: TerminalId,
    /// Place of its new cell in [`Fleet::cells`].
    pub cell: usize,
}

/// The robot cells of all terminals.
pub struct Fleet {
    /// Common properties of the cells.
    pub suite: &'static Suite,
    /// The cells: entry `n` is the first one of the terminal with id `n`, and cells that replace
    /// others come after them.
    pub cells: Vec<Box<dyn Workcell>>,
    /// Which cells are replaced when, in the order of the rounds.
    pub changes: Vec<CellChange>,
    /// When they are measured.
    pub schedule: Schedule,
    /// Seed of the episodes.
    pub seed: Seed,
}

/// The fleet in one round.
#[derive(Clone, Copy)]
pub struct FleetAt<'a> {
    fleet: &'a Fleet,
    round: u64,
}

impl Fleet {
    /// The fleet in a round. Round 0 is before any change.
    pub fn at(&self, round: u64) -> FleetAt<'_> {
        FleetAt { fleet: self, round }
    }
}

impl FleetAt<'_> {
    /// Index of the task of a terminal.
    pub fn task(&self, id: TerminalId) -> usize {
        self.fleet.cells[self.cell(id)].task()
    }

    /// Place of a terminal's cell in [`Fleet::cells`].
    pub fn cell(&self, id: TerminalId) -> usize {
        let applies = |one: &&CellChange| one.terminal == id && one.round <= self.round;
        let latest = self.fleet.changes.iter().rev().find(applies);
        latest.map_or(id.0 as usize, |one| one.cell)
    }

    /// Success of the robots of these terminals on episodes `first` and following of a set. How
    /// an episode begins depends on set, terminal and number only: where a cell was replaced, the
    /// same episodes continue in the new one.
    pub fn measure(
        &self,
        set: EpisodeSet,
        first: u64,
        per_terminal: usize,
        terminals: &[TerminalId],
        model: &Weights,
        policy: &Policy,
    ) -> Vec<TerminalSuccess> {
        let Fleet { cells, schedule, seed, .. } = self.fleet;
        let episodes: Vec<Episode> = (terminals.iter())
            .flat_map(|&id| (first..first + per_terminal as u64).map(move |index| (id, index)))
            .map(|(id, index)| {
                let start = set.episode(*seed, id.0.into(), index);
                Episode { cell: self.cell(id), start }
            })
            .collect();
        let act = |observations: &[f32], actions: &mut [f32]| {
            policy.act(model, observations, actions);
        };
        let successes = rollout(cells, &episodes, &act, schedule.episode_steps);
        let count = |results: &[bool]| SuccessCount {
            successes: results.iter().filter(|success| **success).count() as u64,
            episodes: results.len() as u64,
        };
        let counts = successes.chunks(per_terminal).map(count);
        let one = |(&id, count): (&TerminalId, SuccessCount)| TerminalSuccess {
            id,
            task: self.task(id),
            count,
        };
        terminals.iter().zip(counts).map(one).collect()
    }
}
