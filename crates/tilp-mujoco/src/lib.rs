//! LIBERO's robot tasks in MuJoCo, for TiLP.
//!
//! The crate is empty unless the feature `mujoco` is on, so that a plain build needs nothing but
//! cargo; `tools/mujoco/setup` fetches the library that the feature links.
//!
//! - [`world`]: a physical world out of an MJCF file, stepped and read without a pointer in sight;
//! - [`osc`]: robosuite's operational-space controller, which turns actions into torques;
//! - [`libero`]: a task of the suite libero_object, its episodes, its success;
//! - [`expert`]: a scripted expert that sees the physical state.
#![cfg_attr(not(feature = "mujoco"), allow(rustdoc::broken_intra_doc_links))]

#[cfg(feature = "mujoco")]
pub mod error;
#[cfg(feature = "mujoco")]
pub mod expert;
#[cfg(feature = "mujoco")]
pub mod libero;
#[cfg(feature = "mujoco")]
pub mod linear;
#[cfg(feature = "mujoco")]
pub mod osc;
#[cfg(feature = "mujoco")]
pub mod world;

#[cfg(feature = "mujoco")]
pub use error::Error;

/// The version of the MuJoCo library that is linked.
#[cfg(feature = "mujoco")]
pub fn mujoco_version() -> &'static str {
    mujoco_rs::mujoco_version()
}
