//! What is done with scenarios: runs, what is made of them, base policies, health checks.

mod health;
mod open;
mod pretrain;
mod regime;
pub mod replay;
mod single;

pub use health::{CutSizes, Health, health};
pub use open::opened;
pub use pretrain::{Pretraining, pretrain};
pub use regime::{Regime, regime};
pub use single::{Ended, RunError, RunSpec, Watcher, run_single};
