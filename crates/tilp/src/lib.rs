//! TiLP: task-success-oriented planning for federated split learning over a wireless cell.

pub mod allocate;
pub mod cost;
pub mod experiment;
pub mod lanes;
pub mod nn;
pub mod plot;
pub mod record;
pub mod rl;
pub mod rng;
pub mod round;
pub mod run;
pub mod scenario;
pub mod search;
pub mod snapshot;
pub mod split;
pub mod statistics;
pub mod tasks;
pub mod twin;
pub mod units;
pub mod wireless;
pub mod world;
