//! Uses of scenarios: runs, studies and reports, single plans, base policies, health checks.

mod branch;
pub mod channel;
#[cfg(feature = "mujoco")]
mod engines;
mod episode;
mod export;
mod formats;
pub mod health;
mod keeper;
mod model_profile;
mod open;
mod plan;
mod pretrain;
mod regime;
pub mod replay;
mod run_page;
mod single;
mod stability;
pub mod study;
pub mod tune;
mod verify;
mod what_if;

pub use branch::Branch;
#[cfg(feature = "mujoco")]
pub use engines::{Agreement, Apart, ENGINES, Effort, compare_engines, objection};
pub use episode::{Brain, EpisodeError, EpisodeSpec, RecordedEpisode};
pub use export::{
    ExportError, ExportedFiles, lerobot_dataset, lerobot_policy, policy_to_onnx, read_policy,
};
pub use formats::json_formats;
pub use model_profile::{ModelCut, ModelProfileError, ModelProfileSpec, model_table, profile_onnx};
pub use open::read_run_identity;
pub use plan::{
    Expected, LossDecreaseRow, MOST_BYTES, PlanError, PlanReport, PlanServer, PlanSpec,
    PredictedRow, ReasonRow, RunnerUpRow, SearchRow, TerminalPlanRow, read_observation,
    write_observation,
};
pub use pretrain::{Pretraining, pretrain};
pub use regime::{Regime, regime};
pub use run_page::RunPage;
pub use single::{Ended, PLANNER_STATES, RunError, RunSpec, Time, run_parts, run_single};
pub use verify::{Verdict, first_difference, verify};
pub use what_if::{
    ASKED, Change, Edit, OtherPlan, PlannerState, Prospect, Prospects, RecordedPlanner, RoundAhead,
    TerminalAhead, WhatIfError,
};
