//! The robots: tabletop manipulation in physics, experts, demonstrations, success.
//!
//! A [`Variant`] describes one terminal's cell, a [`Workcell`] is its world, loaded into an
//! [`Engine`], a [`Robot`] lives through one episode in a copy of it. [`demonstrate`] lets the scripted [`expert`] fill a
//! data set, [`rollout`] measures a policy.
//!
//! Frames: physics and expert work in the robot's frame, z up, the table's top at zero.
//! Observations are in the frame of the cell's camera, turned by the variant's yaw, and so are
//! actions unless the variant says [`Frame::Robot`].

mod demonstrate;
mod drawing;
mod engine;
mod episodes;
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
mod rollout;
mod strip;
mod success;
mod variant;
mod workcell;

pub use demonstrate::{Demonstrations, demonstrate};
pub use engine::Engine;
pub use episodes::EpisodeSet;
pub use expert::expert;
pub use family::Family;
pub use observe::{OBSERVATION, TOKENS};
pub use robot::{ACTION, Robot, STEP};
pub use rollout::{Episode, Policy, rollout};
pub use strip::strip;
pub use variant::{Frame, Variant, VariantRange};
pub use workcell::Workcell;
