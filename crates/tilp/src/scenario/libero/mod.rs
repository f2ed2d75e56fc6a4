//! LIBERO's cells of a scenario: where the data are, and whether they are the expected ones.

#[cfg(not(feature = "mujoco"))]
mod absent;
#[cfg(feature = "mujoco")]
mod loaded;

/// How cameras are drawn.
#[derive(Clone, Copy)]
#[cfg_attr(not(feature = "mujoco"), expect(dead_code, reason = "only worlds have cameras"))]
pub(super) struct Camera {
    /// Share of the scenario's range.
    pub(super) range: f32,
    /// Share of the differences between terminals: the rest is a draw that a task has in common.
    pub(super) share: f32,
}

#[cfg(not(feature = "mujoco"))]
pub(super) use absent::LiberoRoster;
#[cfg(feature = "mujoco")]
pub(super) use loaded::LiberoRoster;
