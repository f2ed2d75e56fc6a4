//! Plans for a cell of the user's own.

use std::path::PathBuf;

use pyo3::prelude::*;

use tilp::experiment::{PlanSpec, read_run_identity};
use tilp::record::{Identity, RunFolder};
use tilp::scenario::{Registry, Scenario, methods};
use tilp_cli::host;

use crate::errors::Failure;
use crate::work::released;

fn spec(
    scenario: &str,
    overrides: &[String],
    seed: u64,
    from_run: Option<PathBuf>,
) -> Result<PlanSpec, Failure> {
    let Some(path) = from_run else {
        return Ok(PlanSpec {
            scenario: Scenario::load(scenario, overrides)?,
            seed,
            learned: None,
        });
    };
    let folder = RunFolder::open(&path)?;
    let (scenario, method, seeds) = read_run_identity(&folder, &Registry::builtin())?;
    if method.name() != "tilp" {
        let line = format!("{}: method = {}, expected tilp", path.display(), method.name());
        return Err(Failure::Input(line));
    }
    let identity = Identity {
        method: "tilp".to_owned(),
        seed: seeds.seed,
        replicate: seeds.replicate,
        scenario: scenario.hash(),
    };
    let learned = Some(folder.read_planner(&identity)?);
    Ok(PlanSpec { scenario, seed: seeds.seed, learned })
}

/// A plan for an observation, both as JSON.
#[pyfunction]
pub(crate) fn plan(
    py: Python<'_>,
    observation: &str,
    scenario: &str,
    overrides: Vec<String>,
    seed: u64,
    from_run: Option<PathBuf>,
) -> PyResult<String> {
    released(py, || {
        let spec = spec(scenario, &overrides, seed, from_run)?;
        let report = spec.plan(observation.as_bytes(), None)?;
        Ok(serde_json::to_string(&report).expect("a plan is plain data"))
    })
}

/// Observation of the first round of a scenario, as JSON.
#[pyfunction]
pub(crate) fn example(
    py: Python<'_>,
    scenario: &str,
    overrides: Vec<String>,
    seed: u64,
) -> PyResult<String> {
    released(py, || {
        let spec = spec(scenario, &overrides, seed, None)?;
        Ok(spec.example(host::cache().as_ref(), &|_, _| {})?)
    })
}

/// A complete scenario as TOML.
#[pyfunction]
pub(crate) fn scenario_text(
    py: Python<'_>,
    scenario: &str,
    overrides: Vec<String>,
) -> PyResult<String> {
    released(py, || Ok(Scenario::load(scenario, &overrides)?.to_toml()))
}

/// Names of the methods of the library.
#[pyfunction]
pub(crate) fn method_names() -> Vec<String> {
    methods().iter().map(|one| one.name().to_owned()).collect()
}
