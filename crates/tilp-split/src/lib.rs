//! The split-learning engine: layers, the policy, the terminal half and the server half.

pub mod nn;
pub mod split;

use tilp_core::{lanes, rng, round, snapshot, units};
