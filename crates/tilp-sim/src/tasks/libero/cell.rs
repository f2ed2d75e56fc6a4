//! One terminal's cell, and a robot in it.

use std::sync::Arc;

use tilp_mujoco::expert::expert;
use tilp_mujoco::libero::{Episode, Task};
use tilp_mujoco::osc::ACTION;

use super::observe::observation;
use super::{SUITE, states};
use crate::tasks::{EpisodeSet, Robot, Start, Suite, Workcell};

/// A task with all that stays the same over a terminal's episodes.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Its world and initial states.
    pub task: Arc<Task>,
    /// Place of the task in the suite's list.
    pub index: usize,
    /// Angle by which the camera is turned against the robot.
    pub yaw: f32,
    /// The cell has every n-th of the states for demonstrations: its place among the n cells that share
    /// them, and n.
    pub share: (usize, usize),
}

impl Cell {
    /// The initial state that an episode begins from. Beyond its last state a set begins anew.
    pub fn state(&self, start: Start) -> usize {
        let range = states(start.set);
        let own: Vec<usize> = match start.set {
            EpisodeSet::Demonstration => {
                let (place, of) = self.share;
                range.clone().skip(place % range.len()).step_by(of.max(1)).collect()
            }
            _ => range.collect(),
        };
        own[(start.index % own.len() as u64) as usize]
    }
}

impl Workcell for Cell {
    fn suite(&self) -> &'static Suite {
        &SUITE
    }

    fn task(&self) -> usize {
        self.index
    }

    fn reset(&self, start: Start) -> Box<dyn Robot + '_> {
        let episode = Episode::start(&self.task, self.state(start))
            .expect("the states of a loaded task fit its world");
        Box::new(Arm { cell: self, episode, failed: false })
    }
}

/// A robot in the middle of an episode.
struct Arm<'a> {
    cell: &'a Cell,
    episode: Episode,
    /// The simulation became unstable: the robot no longer moves, and the episode fails.
    failed: bool,
}

impl Robot for Arm<'_> {
    fn observe(&self, row: &mut Vec<f32>) {
        row.extend(observation(self.cell, &self.episode));
    }

    /// A number that is none is zero.
    fn act(&mut self, action: &[f32]) {
        let part = |value: f32| if value.is_nan() { 0.0 } else { value.clamp(-1.0, 1.0) };
        let action: [f64; ACTION] = std::array::from_fn(|place| f64::from(part(action[place])));
        self.failed = self.failed || self.episode.step(action).is_err();
    }

    fn succeeded(&self) -> bool {
        !self.failed && self.episode.is_success()
    }

    fn expert(&self) -> Vec<f32> {
        expert(&self.episode).map(|value| value as f32).to_vec()
    }
}
