//! LIBERO's cells of a scenario: where the data are, and whether they are the expected ones.

#[cfg(not(feature = "mujoco"))]
mod absent;
#[cfg(feature = "mujoco")]
mod loaded;

#[cfg(not(feature = "mujoco"))]
pub(super) use absent::LiberoRoster;
#[cfg(feature = "mujoco")]
pub(super) use loaded::LiberoRoster;
