//! Observation of a policy in an episode.

use crate::libero::task::Parts;
use crate::linear::{Vector, axis_angle};
use crate::osc::Controller;
use crate::world::{Pose, World};

/// The robot's own state as LIBERO clients send it, and the things in the scene.
///
/// It is as old as the world's readings, 2 ms; robosuite's own observation is 2 ms older still.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// The point between the finger tips, in metres.
    pub eef_position_m: Vector,
    /// How the hand is turned, as axis times angle in radians.
    pub eef_axis_angle_rad: Vector,
    /// The two fingers' coordinates in metres; they are mirror images, so one is negative.
    pub gripper_m: [f64; 2],
    /// The object to pick up.
    pub object: Pose,
    /// The basket to put it in.
    pub basket: Pose,
}

impl Observation {
    pub(super) fn of(world: &World, controller: &Controller, parts: &Parts) -> Self {
        Self {
            eef_position_m: world.site_position_m(controller.arm().grip()),
            // robosuite takes the position from the grip site but the turn from the hand's body.
            eef_axis_angle_rad: axis_angle(&world.pose(parts.hand).quaternion),
            gripper_m: parts.finger_joints.map(|joint| world.coordinate(joint)),
            object: world.pose(parts.object),
            basket: world.pose(parts.basket),
        }
    }

    /// openpi's `observation/state`: position (3), axis-angle (3), gripper (2).
    pub fn state(&self) -> [f64; 8] {
        let [x, y, z] = self.eef_position_m;
        let [a, b, c] = self.eef_axis_angle_rad;
        let [left, right] = self.gripper_m;
        [x, y, z, a, b, c, left, right]
    }
}
