//! What is done with scenarios: runs, base policies, health checks.

mod health;
mod pretrain;
mod regime;

pub use health::{Health, health};
pub use pretrain::{Pretraining, pretrain};
pub use regime::{Regime, regime};
