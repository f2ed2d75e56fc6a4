//! The identity of the run in a folder.

use serde_json::Value;

use super::RunError;
use crate::exchange::Declaration;
use crate::record::{RecordError, RunFolder};
use crate::scenario::{Method, Registry, Scenario, Seeds};

/// Scenario, method and seeds of the run in a folder. The method is one of the registry, or one that
/// declared itself and is known from the record only.
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
    let name = field("method")?.as_str().unwrap_or_default();
    let declared = declaration(&manifest).map_err(|reason| wrong(&reason))?;
    let method = match (registry.method(name), declared) {
        (Ok(method), None) => method,
        (Ok(method), Some(declared)) => method.declared(declared),
        (Err(_), Some(declared)) => Method::recorded(name, declared),
        (Err(error), None) => return Err(error.into()),
    };
    let whole = |name: &str, value: &Value| {
        value.as_u64().ok_or_else(|| wrong(&format!("{name} is not a whole number")))
    };
    let seed = whole("seed", field("seed")?)?;
    // Not written for replicate 0.
    let replicate = manifest.get("replicate").map_or(Ok(0), |value| whole("replicate", value))?;
    Ok((scenario, method, Seeds { seed, replicate }))
}

/// Declarations of the method of a run, if it made any.
pub(super) fn declaration(manifest: &Value) -> Result<Option<Declaration>, String> {
    let read = |declared: &Value| Declaration::read(declared.to_string().as_bytes());
    manifest.get("declared").map(read).transpose().map_err(|error| error.to_string())
}
