//! LIBERO's suite libero_object: "pick up the (object) and place it in the basket".
//!
//! A cell is one of the ten tasks seen by a camera that is turned against the robot. Its episodes
//! begin in LIBERO's own initial states, which are shared out between the sets of episodes; its
//! actions are LIBERO's own seven numbers, in the robot's frame whatever the camera sees.

#[cfg(feature = "mujoco")]
mod cell;
#[cfg(feature = "mujoco")]
mod observe;
mod suite;

#[cfg(feature = "mujoco")]
pub use cell::Cell;
pub use suite::{SUITE, states};
