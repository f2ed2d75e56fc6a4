//! The simulated cell: true channel, true hardware, robots in physics.

pub mod tasks;
pub mod world;

use tilp_core::{cost, datasheet, message, rng, round, snapshot, units, wireless};
use tilp_split::split;
