//! The simulated cell: true channel, true hardware, real training, robots in physics.
//!
//! # Reading order
//!
//! 1. [`world::SimulatedCell`]: the cell. It reports, executes an order, and gives its model.
//! 2. [`world::Radio`]: which terminals are in time, and what it costs, on the true channel and
//!    hardware.
//! 3. [`world::RobotEvaluator`] and [`world::Laboratory`]: calibration episodes, and the experimenter
//!    with the hidden truth.
//! 4. [`tasks`]: the robots: suites of tasks, demonstrations, rollouts.
//! 5. [`profile`]: learning by a law instead of tensors and robots, for models that do not run here.
//!
//! Only this crate links the physics engine. The base station runs unchanged without it.

// `pub` is a promise to users: what they cannot reach is `pub(crate)`.
#![cfg_attr(not(test), warn(unreachable_pub))]
// Results depend on the seed alone (clippy.toml), and a library prints nothing.
#![warn(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    clippy::print_stderr
)]

pub mod profile;
pub mod tasks;
pub mod world;

use tilp_core::{compress, cost, datasheet, message, rng, round, snapshot, units, wireless};
use tilp_split::split;
