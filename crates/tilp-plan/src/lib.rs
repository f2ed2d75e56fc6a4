//! The planner: a calibrated digital twin, cross-entropy search, a soft actor-critic, and the
//! methods that TiLP is compared with.

pub mod allocate;
pub mod prelude;
pub mod rl;
pub mod search;
pub mod setup;
pub mod station;
pub mod twin;

use tilp_core::{cost, lanes, rng, round, snapshot, units, wireless};
use tilp_split::{nn, split};
