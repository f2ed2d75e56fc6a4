//! What is done with scenarios: runs, what is made of them, single plans, base policies, health checks.

mod branch;
pub mod channel;
#[cfg(feature = "mujoco")]
mod engines;
pub mod health;
mod keeper;
mod open;
mod plan;
mod pretrain;
mod regime;
pub mod replay;
mod single;
mod stability;
pub mod study;
pub mod tune;

pub use branch::Branch;
#[cfg(feature = "mujoco")]
pub use engines::{Agreement, Apart, ENGINES, Effort, compare_engines, objection};
pub use open::read_run_identity;
pub use plan::{
    Expected, LossDecreaseRow, MOST_BYTES, PlanError, PlanReport, PlanServer, PlanSpec,
    PredictedRow, ReasonRow, RunnerUpRow, SearchRow, TerminalPlanRow, read_observation,
    write_observation,
};
pub use pretrain::{Pretraining, pretrain};
pub use regime::{Regime, regime};
pub use single::{Ended, RunError, RunSpec, Time, run_parts, run_single};
