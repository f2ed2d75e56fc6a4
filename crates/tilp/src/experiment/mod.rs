//! What is done with scenarios: runs, base policies, health checks.

mod health;
mod pretrain;
mod regime;
mod single;

pub use health::{CutSizes, Health, health};
pub use pretrain::{Pretraining, pretrain};
pub use regime::{Regime, regime};
pub use single::{Ended, RunError, RunSpec, Watcher, run_single};
