//! The simulated cell: true channel, true hardware, robots in physics.

pub mod profile;
pub mod tasks;
pub mod world;

use tilp_core::{compress, cost, datasheet, message, rng, round, snapshot, units, wireless};
use tilp_split::split;
