//! One attempt at a task.

use crate::Error;
use crate::libero::task::Parts;
use crate::libero::{Observation, Task, success};
use crate::osc::{ACTION, Controller};
use crate::world::World;

/// An episode in progress. A copy goes its own way and does not disturb the original.
#[derive(Clone, Debug)]
pub struct Episode {
    world: World,
    controller: Controller,
    parts: Parts,
    n_steps: usize,
}

impl Episode {
    /// Starts from one of the task's initial states.
    pub fn start(task: &Task, state: usize) -> Result<Self, Error> {
        let (time_s, qpos, qvel) = task.state(state)?;
        let mut world = task.world.clone();
        world.reset(time_s, qpos, qvel)?;
        Ok(Self { world, controller: task.controller.clone(), parts: task.parts, n_steps: 0 })
    }

    /// Runs one control step of 50 ms: the hand's move (3) and turn (3), and the gripper, which
    /// shuts on positive and opens on negative numbers. All count from -1 to 1.
    pub fn step(&mut self, action: [f64; ACTION]) -> Result<(), Error> {
        self.controller.act(&mut self.world, &action)?;
        self.n_steps += 1;
        Ok(())
    }

    /// Whether the object is in the basket now, by LIBERO's predicate.
    pub fn is_success(&self) -> bool {
        success::is_in(&self.world, self.parts.object, self.parts.region)
    }

    /// Observation of a policy.
    pub fn observe(&self) -> Observation {
        Observation::of(&self.world, &self.controller, &self.parts)
    }

    /// Control steps so far.
    pub fn n_steps(&self) -> usize {
        self.n_steps
    }

    /// The physical state behind the episode.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// The controller with its goal.
    pub fn controller(&self) -> &Controller {
        &self.controller
    }

    pub(crate) fn parts(&self) -> &Parts {
        &self.parts
    }
}
