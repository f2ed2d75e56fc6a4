//! The interface between the suites of tasks and the rest of the code.

use crate::tasks::{Scene, Start};

/// Common properties of all robots of a suite.
#[derive(Debug, PartialEq)]
pub struct Suite {
    /// The name in scenarios.
    pub name: &'static str,
    /// Names of the tasks; other code refers to them by their index here.
    pub tasks: &'static [&'static str],
    /// Start and end of each token in an observation.
    pub tokens: &'static [(usize, usize)],
    /// How much an error in each number of an action counts.
    pub loss_weights: &'static [f32],
    /// The first numbers of an action, up to this many, are motion; the others are switches.
    pub n_motions: usize,
    /// Control steps after which a demonstration is given up.
    pub demonstration_steps: usize,
    /// Control steps of a second.
    pub steps_per_second: u32,
}

impl Suite {
    /// Numbers in an observation.
    pub fn observation(&self) -> usize {
        self.tokens.last().map_or(0, |(_, end)| *end)
    }

    /// Numbers in an action.
    pub fn action(&self) -> usize {
        self.loss_weights.len()
    }

    /// The name of a task; none has an empty one.
    pub fn task_name(&self, task: usize) -> &'static str {
        self.tasks.get(task).copied().unwrap_or_default()
    }

    /// The task with this name.
    pub fn task_index(&self, name: &str) -> Option<usize> {
        self.tasks.iter().position(|task| *task == name)
    }
}

/// The cell of one terminal, from which each of its episodes starts.
pub trait Workcell: Send + Sync {
    /// The suite it belongs to.
    fn suite(&self) -> &'static Suite;
    /// Place of its task in the suite's list.
    fn task(&self) -> usize;
    /// A robot at the start of an episode.
    fn reset(&self, start: Start) -> Box<dyn Robot + '_>;
}

/// A robot in the middle of an episode.
pub trait Robot {
    /// Appends what the policy sees.
    fn observe(&self, row: &mut Vec<f32>);
    /// Runs one control step.
    fn act(&mut self, action: &[f32]);
    /// Whether the task is done.
    fn succeeded(&self) -> bool;
    /// Present action of the scripted expert.
    fn expert(&self) -> Vec<f32>;
    /// What can be drawn of it; none in a suite without drawings.
    fn scene(&self) -> Option<Scene> {
        None
    }
}
