//! What a run folder says was run.

use serde_json::Value;

use super::RunError;
use crate::exchange::Declaration;
use crate::record::{RecordError, RunFolder};
use crate::scenario::{Method, Registry, Scenario, Seeds};

/// Scenario, method and seeds of the run in a folder. The method must be one of the registry.
pub fn read_run_identity(
    folder: &RunFolder,
    registry: &Registry,
) -> Result<(Scenario, Method, Seeds), RunError> {
    let manifest = folder.read_manifest()?;
    let path = folder.path().join("manifest.json");
    let wrong = |reason: &str| RecordError::Malformed { path: path.clone(), reason: reason.into() };
    let field = |name: &str| {
        manifest.get(name).ok_or_else(|| wrong(&format!("no field `{name}`, expected one")))
    };
    let name = folder.path().join("scenario.toml").display().to_string();
    let scenario = Scenario::load(&name, &[])?;
    let method = registry.method(field("method")?.as_str().unwrap_or_default())?;
    let method = match manifest.get("declared") {
        None => method,
        Some(declared) => {
            let read = Declaration::read(declared.to_string().as_bytes());
            method.declared(read.map_err(|error| wrong(&error.to_string()))?)
        }
    };
    let whole = |name: &str, value: &Value| {
        value.as_u64().ok_or_else(|| wrong(&format!("{name} is not a whole number")))
    };
    let seed = whole("seed", field("seed")?)?;
    // Not written for replicate 0.
    let replicate = manifest.get("replicate").map_or(Ok(0), |value| whole("replicate", value))?;
    Ok((scenario, method, Seeds { seed, replicate }))
}
