//! The table-top suite: manipulation with a gantry and two fingers.
//!
//! A [`Variant`] describes one terminal's cell, a [`Workcell`] is its world, loaded into an
//! [`Engine`], a [`Robot`] runs one episode in a copy of it.
//!
//! Frames: physics and expert work in the robot's frame, z up, the table's top at zero.
//! Observations are in the frame of the cell's camera, turned by the variant's yaw, and so are
//! actions unless the variant says [`Frame::Robot`].

mod drawing;
mod engine;
mod expert;
mod family;
mod geometry;
mod layout;
mod mjcf;
#[cfg(feature = "mujoco")]
mod mujoco;
mod observe;
mod physics;
mod robot;
mod scene;
mod strip;
mod success;
mod suite;
mod variant;
mod workcell;

pub use engine::Engine;
pub use expert::expert;
pub use family::Family;
pub use observe::{OBSERVATION, TOKENS};
pub use robot::{ACTION, Robot, STEP};
pub use strip::strip;
pub use suite::SUITE;
pub use variant::{Frame, Variant, VariantRange};
pub use workcell::Workcell;
