//! Environments: several copies of a cell, or of its twin, stepped at once in threads.

mod executed;
mod imagined;
mod pool;
mod simulator;
mod view;

use std::sync::{Arc, Mutex, PoisonError};

use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyArray2, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use tilp::scenario::Scenario;

use crate::decision;
use crate::errors::Failure;
use crate::observation::Observation;
use crate::twin::TwinModel;
use crate::work::released;
use executed::{Executed, first_observation};
use imagined::Imagined;
use pool::Pool;
use simulator::{COLUMNS, Simulator, Step};
use view::{ACTIONS, BOUND, FEATURES, Form, GLOBALS};

/// Copies of a cell or of a twin.
#[pyclass(frozen, module = "tilp._tilp")]
pub(crate) struct Envs {
    pool: Mutex<Pool>,
    n_envs: usize,
    n_slots: usize,
    n_cuts: usize,
}

impl Envs {
    fn lock(&self) -> std::sync::MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// After a round of all copies: what is seen, which episodes have ended, and the columns of numbers.
type Steps<'py> = (Bound<'py, PyArray2<f32>>, Vec<bool>, Bound<'py, PyDict>);

#[pymethods]
impl Envs {
    /// Copies of the simulated cell of a scenario.
    #[staticmethod]
    fn of_cell(
        py: Python<'_>,
        scenario: &str,
        overrides: Vec<String>,
        n_envs: usize,
        threads: usize,
    ) -> PyResult<Self> {
        released(py, || {
            let scenario = Scenario::load(scenario, &overrides)?;
            let (n_slots, n_cuts) = (scenario.n_terminals(), scenario.cuts().len());
            let make = move || Box::new(Executed::new(scenario.clone())) as Box<dyn Simulator>;
            let pool = Mutex::new(Pool::threads(n_envs, threads, Arc::new(make)));
            Ok(Self { pool, n_envs, n_slots, n_cuts })
        })
    }

    /// Copies of a twin. Episodes start from an observation: the one given, the last that the twin
    /// learned from, or that of the first round of its scenario.
    #[staticmethod]
    #[pyo3(signature = (twin, observation, horizon, n_envs, threads))]
    fn of_twin(
        py: Python<'_>,
        twin: &TwinModel,
        observation: Option<Bound<'_, PyAny>>,
        horizon: u64,
        n_envs: usize,
        threads: usize,
    ) -> PyResult<Self> {
        let given = observation.map(|given| twin.read(&given)).transpose()?;
        released(py, || {
            let start = match given.or_else(|| twin.last_seen()) {
                Some(start) => start,
                None => Arc::new(first_observation(&twin.scenario, twin.seed)?),
            };
            let model = Arc::new(twin.attending(&start));
            let n_cuts = model.nominal().cost.limits.cuts.len();
            let n_slots = twin.n_slots();
            let one = |_| Imagined::new(model.clone(), start.clone(), horizon);
            let pool = Mutex::new(Pool::direct((0..n_envs).map(one).collect(), threads)?);
            Ok(Self { pool, n_envs, n_slots, n_cuts })
        })
    }

    #[getter]
    fn n_envs(&self) -> usize {
        self.n_envs
    }

    /// Terminals that are ever there; observations and actions have a place for each.
    #[getter]
    fn n_terminals(&self) -> usize {
        self.n_slots
    }

    /// Admissible cuts.
    #[getter]
    fn n_cuts(&self) -> usize {
        self.n_cuts
    }

    /// Starts episodes in these copies and returns what is seen there.
    fn reset<'py>(
        &self,
        py: Python<'py>,
        places: Vec<usize>,
        seeds: Vec<u64>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let (length, n_envs) = (view::length(self.n_slots), self.n_envs);
        if places.len() != seeds.len() || places.iter().any(|place| *place >= n_envs) {
            let line = format!("places = {places:?}, expected below {n_envs}, each with a seed");
            return Err(Failure::Input(line).into());
        }
        let rows = released(py, || self.lock().reset(&places, &seeds, length))?;
        Ok(matrix(rows, length).into_pyarray(py))
    }

    /// Executes a round in every copy whose flag is set. Rows of the others are zero.
    fn step<'py>(
        &self,
        py: Python<'py>,
        actions: PyReadonlyArray2<'py, f64>,
        mixed: bool,
        active: Vec<bool>,
    ) -> PyResult<Steps<'py>> {
        let form = if mixed { Form::Mixed } else { Form::Flat };
        let (width, length) = (self.n_slots * ACTIONS, view::length(self.n_slots));
        let given = actions.as_array();
        if given.dim() != (self.n_envs, width) || active.len() != self.n_envs {
            let (found, expected) = (given.dim(), (self.n_envs, width));
            let line = format!("actions have shape {found:?}, expected {expected:?}");
            return Err(Failure::Input(line).into());
        }
        if let Some(((row, column), value)) = given.indexed_iter().find(|one| !one.1.is_finite()) {
            let line = format!("actions[{row}, {column}] = {value}, expected a finite number");
            return Err(Failure::Input(line).into());
        }
        let rows: Vec<Option<Vec<f64>>> = given
            .rows()
            .into_iter()
            .zip(&active)
            .map(|(row, active)| active.then(|| row.to_vec()))
            .collect();
        let found = released(py, || self.lock().step(rows, form, length))?;
        let (seen, steps): (Vec<Vec<f32>>, Vec<Step>) = found.into_iter().unzip();
        let info = PyDict::new(py);
        for (name, of) in COLUMNS {
            let values: Vec<f64> = steps.iter().map(of).collect();
            info.set_item(name, values.into_pyarray(py))?;
        }
        let ended = steps.iter().map(|one| one.ended).collect();
        Ok((matrix(seen, length).into_pyarray(py), ended, info))
    }

    /// Names of the features of the cell and of a terminal, and the largest value of any.
    #[staticmethod]
    fn features() -> (Vec<&'static str>, Vec<&'static str>, f32) {
        (GLOBALS.to_vec(), FEATURES.to_vec(), BOUND)
    }
}

fn matrix(rows: Vec<Vec<f32>>, length: usize) -> Array2<f32> {
    let n = rows.len();
    let array = Array2::from_shape_vec((n, length), rows.concat());
    array.expect("every row has the length of an observation")
}

/// The agent's observation of this round.
#[pyfunction]
pub(crate) fn agent_view<'py>(
    py: Python<'py>,
    twin: &TwinModel,
    seen: &Observation,
) -> PyResult<Bound<'py, numpy::PyArray1<f32>>> {
    let own = seen.seen.clone();
    let row = released(py, || {
        let model = twin.attending(&own);
        let mut row = vec![0.0; view::length(twin.n_slots())];
        view::look(&model, &model.state(&own), &mut row);
        Ok(row)
    })?;
    Ok(row.into_pyarray(py))
}

/// The decision that an agent's action means in this round.
#[pyfunction]
pub(crate) fn agent_decision<'py>(
    py: Python<'py>,
    twin: &TwinModel,
    seen: &Observation,
    action: Vec<f64>,
    mixed: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let (found, expected) = (action.len(), twin.n_slots() * ACTIONS);
    if found != expected || !action.iter().all(|value| value.is_finite()) {
        let line = format!("action has {found} numbers, expected {expected}, all of them finite");
        return Err(Failure::Input(line).into());
    }
    let form = if mixed { Form::Mixed } else { Form::Flat };
    let limits = twin.lock().nominal().cost.limits.clone();
    decision::write(py, &view::decode(&action, form, &seen.seen.ids(), &limits))
}
