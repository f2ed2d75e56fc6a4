//! Demonstrations and trained policies in the formats of other programs.

mod lerobot;
mod onnx;

use std::fs;
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;

use crate::scenario::ScenarioError;
use crate::split::model::Weights;
use crate::split::policy::{Policy, PolicyFileError};

pub use lerobot::{ExportedFiles, lerobot_dataset, lerobot_policy};
pub use onnx::policy_to_onnx;

/// Why something could not be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The scenario cannot be used.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// There is nothing to export.
    #[error("no demonstrations, expected at least one successful episode")]
    Empty,
    /// A table could not be encoded.
    #[error("cannot encode a table: {0}")]
    Parquet(#[from] ParquetError),
    /// The file of a policy cannot be read.
    #[error("cannot read {path}: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file holds no policy.
    #[error("no policy in {path}: {source}")]
    Policy {
        /// The file.
        path: PathBuf,
        /// Why.
        source: PolicyFileError,
    },
}

/// The policy in a file, its weights and the bytes of the file.
pub fn read_policy(path: &Path) -> Result<(Policy, Weights, Vec<u8>), ExportError> {
    let bytes = fs::read(path)
        .map_err(|source| ExportError::Unreadable { path: path.to_owned(), source })?;
    let (policy, weights) = Policy::from_safetensors(&bytes)
        .map_err(|source| ExportError::Policy { path: path.to_owned(), source })?;
    Ok((policy, weights, bytes))
}
