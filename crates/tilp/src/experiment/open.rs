//! What a run folder says was run.

use serde_json::Value;

use super::RunError;
use crate::record::{RecordError, RunFolder};
use crate::scenario::{Method, Registry, Scenario};

/// Scenario, method and seed of the run in a folder. The method must be one of the registry.
pub fn read_run_identity(
    folder: &RunFolder,
    registry: &Registry,
) -> Result<(Scenario, Method, u64), RunError> {
    let manifest = folder.read_manifest()?;
    let path = folder.path().join("manifest.json");
    let wrong = |reason: &str| RecordError::Malformed { path: path.clone(), reason: reason.into() };
    let field = |name: &str| {
        manifest.get(name).ok_or_else(|| wrong(&format!("no field `{name}`, expected one")))
    };
    let name = folder.path().join("scenario.toml").display().to_string();
    let scenario = Scenario::load(&name, &[])?;
    let method = registry.method(field("method")?.as_str().unwrap_or_default())?;
    let seed = Value::as_u64(field("seed")?);
    Ok((scenario, method, seed.ok_or_else(|| wrong("seed is not a whole number"))?))
}
