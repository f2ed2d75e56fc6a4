//! The seam between the table-top robots and the engines that can move them.

use rapier3d::math::{Pose, Vector};
use rapier3d::prelude::SharedShape;

/// Length of a control step in seconds: 20 Hz.
pub(super) const CONTROL_PERIOD: f32 = 0.05;
/// How often within a control step the servos get a new target.
pub(super) const TARGETS: usize = 4;
/// Height of the hand when the gantry's coordinates are zero.
pub(super) const HAND_HEIGHT: f32 = 0.2;
/// Way of a finger from open to shut.
pub(super) const FINGER_TRAVEL: f32 = 0.049;

/// Physics engines of a cell. Both read the same MJCF text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// Rapier, which is built in.
    #[default]
    Rapier,
    /// MuJoCo, in a program built with the feature `mujoco`.
    #[cfg(feature = "mujoco")]
    Mujoco,
}

impl Engine {
    /// The engines of this program.
    pub const ALL: &[Engine] = &[
        Engine::Rapier,
        #[cfg(feature = "mujoco")]
        Engine::Mujoco,
    ];

    /// The name in scenarios and tables.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Rapier => "rapier",
            #[cfg(feature = "mujoco")]
            Engine::Mujoco => "mujoco",
        }
    }

    /// Its version, where it is no part of this program but a library that it finds when it starts.
    pub fn version(self) -> Option<String> {
        match self {
            Engine::Rapier => None,
            #[cfg(feature = "mujoco")]
            Engine::Mujoco => Some(tilp_mujoco::world::version()),
        }
    }

    /// The engine with this name, if this program has it.
    pub fn from_name(name: &str) -> Option<Engine> {
        Self::ALL.iter().copied().find(|engine| engine.name() == name)
    }
}

/// The live world of one episode, in whatever engine, in the robot's frame.
pub(super) trait Physics {
    /// Runs one control step: the hand servoes by `step` from where it is now.
    fn advance(&mut self, step: Vector, shut: bool);

    /// The point between the finger tips.
    fn hand(&self) -> Vector;

    fn hand_velocity(&self) -> Vector;

    /// One when the fingers are wide open, zero when they meet.
    fn opening(&self) -> f32;

    /// Which finger touches the object's handle.
    fn touches(&self) -> [bool; 2];

    fn object(&self) -> Pose;

    fn object_velocity(&self) -> Vector;

    /// The bin, shelf, block, cabinet or housing.
    fn fixture(&self) -> Pose;

    /// Every shape except the table, with its pose and its owner, for drawing.
    fn shapes(&self) -> Vec<(Owner, SharedShape, Pose)>;

    /// Masses of object and of the two fingers in kilograms, to compare engines by.
    #[cfg(all(test, feature = "mujoco"))]
    fn masses(&self) -> [f32; 3];
}

/// Owner of a drawn shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    Hand,
    Object,
    Fixture,
}

/// How far fingers at these places across the hand are open.
pub(super) fn opening(left: f32, right: f32) -> f32 {
    ((left - right - 2.0 * 0.007) / (2.0 * FINGER_TRAVEL)).clamp(0.0, 1.0)
}

/// The share of a control step's way that the servos aim at during this one of its [`TARGETS`].
///
/// The target runs ahead during the first half: a jump would shake the load loose.
pub(super) fn share(target: usize) -> f32 {
    (2.0 * target as f32 / TARGETS as f32).min(1.0)
}
