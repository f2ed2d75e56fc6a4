//! TiLP: task-success-oriented planning for federated split learning over a wireless cell.

pub mod experiment;
pub mod plot;
pub mod record;
pub mod run;
pub mod scenario;

pub use tilp_core::{
    cost, datasheet, lanes, message, rng, round, rule, snapshot, statistics, units, wireless,
};
pub use tilp_plan::{allocate, rl, search, setup, station, twin};
pub use tilp_sim::{profile, tasks, world};
pub use tilp_split::{nn, split};
