//! Formats of LeRobot: demonstrations as a dataset, a trained policy as a policy folder.

mod dataset;
mod parquet;
mod policy;
mod statistics;

use super::{ExportError, read_policy};
use crate::record::RunFolder;
use crate::scenario::{Scenario, demonstration_episodes, suite_of};

/// Files by their paths below the folder of an export.
pub type ExportedFiles = Vec<(String, Vec<u8>)>;

/// The demonstrations of a scenario with a seed: of all terminals, or of one.
pub fn lerobot_dataset(
    scenario: &Scenario,
    seed: u64,
    terminal: Option<u32>,
) -> Result<ExportedFiles, ExportError> {
    let terminals = demonstration_episodes(scenario, seed, terminal)?;
    dataset::dataset_files(suite_of(scenario), &terminals)
}

/// The policy of a finished run.
pub fn lerobot_policy(run: &RunFolder) -> Result<ExportedFiles, ExportError> {
    let path = run.path().join("model.safetensors");
    let (policy, _, bytes) = read_policy(&path)?;
    Ok(policy::policy_files(policy.architecture(), bytes))
}
