//! TiLP: task-success-oriented planning for federated split learning over a wireless cell.

pub mod nn;
pub mod rng;
pub mod split;
pub mod tasks;
pub mod units;
