//! The observation of a method before a round, as arrays.

use std::sync::Arc;

use numpy::ndarray::Array2;
use numpy::{PyArray1, PyArray2};
use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use tilp::exchange::{Expected, observation_message, read_observation};
use tilp::round::{Observation as Seen, TerminalView};
use tilp::tasks::Suite;

use crate::arrays::view;
use crate::errors::Failure;

type Real = (&'static str, fn(&TerminalView) -> f64);
type Whole = (&'static str, fn(&TerminalView) -> i64);

/// Columns of real numbers. What is not known is NaN.
const REALS: [Real; 11] = [
    ("gain", |view| view.report.gain.0),
    ("fading_power", |view| view.report.fading_power),
    ("previous_bandwidth_hz", |view| view.previous_bandwidth.0),
    ("gradient_norm", |view| view.gradient_norm.unwrap_or(f64::NAN)),
    ("loss", |view| view.loss.unwrap_or(f64::NAN)),
    ("rounds_since_scheduled", |view| view.rounds_since_scheduled.map_or(f64::NAN, |n| n as f64)),
    ("success", |view| view.success.and_then(|one| one.count.rate()).unwrap_or(f64::NAN)),
    ("clock_hz", |view| view.report.hardware.clock.0),
    ("operations_per_cycle", |view| view.report.hardware.operations_per_cycle),
    ("energy_coefficient", |view| view.report.hardware.energy_coefficient),
    ("noise_w_per_hz", |view| view.report.hardware.noise_w_per_hz),
];

/// Columns of whole numbers.
const WHOLES: [Whole; 9] = [
    ("id", |view| view.report.id.0.into()),
    ("task", |view| view.report.task as i64),
    ("n_samples", |view| view.report.n_samples as i64),
    ("memory_bytes", |view| view.report.memory.0 as i64),
    ("held_layers", |view| view.report.held_layers as i64),
    ("owed_layers", |view| view.report.owed_layers as i64),
    ("successes", |view| view.success.map_or(0, |one| one.count.successes as i64)),
    ("episodes", |view| view.success.map_or(0, |one| one.count.episodes as i64)),
    ("success_round", |view| view.success.map_or(0, |one| one.round as i64)),
];

/// What the base station has before a round. Every array has one entry per terminal and is a
/// read-only view of memory that the observation owns.
#[pyclass(frozen, module = "tilp")]
pub(crate) struct Observation {
    pub(crate) seen: Arc<Seen>,
    suite: &'static Suite,
    /// A row per column.
    reals: Array2<f64>,
    wholes: Array2<i64>,
}

impl Observation {
    pub(crate) fn new(seen: Arc<Seen>, suite: &'static Suite) -> Self {
        let views = &seen.terminals;
        let reals =
            Array2::from_shape_fn((REALS.len(), views.len()), |(c, n)| REALS[c].1(&views[n]));
        let wholes =
            Array2::from_shape_fn((WHOLES.len(), views.len()), |(c, n)| WHOLES[c].1(&views[n]));
        Self { seen, suite, reals, wholes }
    }

    /// An observation out of what a user gives: one of these, or one as JSON text.
    pub(crate) fn read(given: &Bound<'_, PyAny>, expected: &Expected) -> PyResult<Arc<Seen>> {
        if let Ok(own) = given.cast::<Self>() {
            return Ok(own.get().seen.clone());
        }
        let Ok(text) = given.cast::<PyString>() else {
            let found = given.get_type().name()?;
            let line = format!("observation is of type {found}, expected an Observation or a dict");
            return Err(Failure::Input(line).into());
        };
        let text = text.to_cow()?;
        let seen = read_observation(text.as_bytes(), expected).map_err(Failure::from)?;
        Ok(Arc::new(seen))
    }

    /// A column as an array.
    fn column<'py>(this: &Bound<'py, Self>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let (own, owner) = (this.get(), this.clone().into_any());
        // SAFETY: the class is frozen and owns both arrays.
        Ok(match Self::place(name) {
            Some((true, n)) => unsafe { view(own.reals.row(n), owner) }.into_any(),
            Some((false, n)) => unsafe { view(own.wholes.row(n), owner) }.into_any(),
            None => {
                let line = format!("an Observation has no column {name:?}");
                return Err(PyAttributeError::new_err(line));
            }
        })
    }

    fn place(name: &str) -> Option<(bool, usize)> {
        let real = REALS.iter().position(|(other, _)| *other == name).map(|n| (true, n));
        real.or_else(|| WHOLES.iter().position(|(other, _)| *other == name).map(|n| (false, n)))
    }
}

/// The class with a property for every column.
macro_rules! observation {
    ($($column:ident),*) => {
        #[pymethods]
        impl Observation {
            $(#[getter]
            fn $column<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
                Self::column(this, stringify!($column))
            })*

            #[getter]
            fn round(&self) -> u64 {
                self.seen.round
            }

            #[getter]
            fn clock_s(&self) -> f64 {
                self.seen.clock.0
            }

            #[getter]
            fn aggregates(&self) -> bool {
                self.seen.aggregates
            }

            /// Training loss of the round before.
            #[getter]
            fn training_loss(&self) -> Option<f64> {
                self.seen.loss
            }

            /// Used share of the budget.
            #[getter]
            fn budget_share(&self) -> Option<f64> {
                self.seen.budget.as_ref().map(|budget| budget.share())
            }

            fn __len__(&self) -> usize {
                self.seen.terminals.len()
            }

            /// Names of the tasks, by the index in `task`.
            #[getter]
            fn tasks(&self) -> Vec<&'static str> {
                self.suite.tasks.to_vec()
            }

            /// All columns of real numbers, a row per column: see `reals`.
            #[getter]
            fn table<'py>(this: &Bound<'py, Self>) -> Bound<'py, PyArray2<f64>> {
                // SAFETY: the class is frozen and owns the array.
                unsafe { view(this.get().reals.view(), this.clone().into_any()) }
            }

            /// Names of the rows of `table`.
            #[classattr]
            fn reals() -> Vec<&'static str> {
                REALS.iter().map(|(name, _)| *name).collect()
            }

            /// Names of the columns of whole numbers.
            #[classattr]
            fn wholes() -> Vec<&'static str> {
                WHOLES.iter().map(|(name, _)| *name).collect()
            }

            /// Address of the values of a column.
            fn address(&self, name: &str) -> Option<usize> {
                Some(match Self::place(name)? {
                    (true, n) => self.reals.row(n).as_ptr() as usize,
                    (false, n) => self.wholes.row(n).as_ptr() as usize,
                })
            }

            /// The observation as JSON, to the last bit.
            fn to_json(&self) -> String {
                let message = observation_message(&self.seen, self.suite);
                serde_json::to_string(&message).expect("an observation is plain data")
            }

            fn __repr__(&self) -> String {
                format!("Observation(round={}, n_terminals={})", self.seen.round, self.__len__())
            }
        }
    };
}

observation!(
    gain,
    fading_power,
    previous_bandwidth_hz,
    gradient_norm,
    loss,
    rounds_since_scheduled,
    success,
    clock_hz,
    operations_per_cycle,
    energy_coefficient,
    noise_w_per_hz,
    id,
    task,
    n_samples,
    memory_bytes,
    held_layers,
    owed_layers,
    successes,
    episodes,
    success_round
);

/// The array of a column, for other classes with columns.
pub(crate) fn column<'py>(values: &[f64], owner: Bound<'py, PyAny>) -> Bound<'py, PyArray1<f64>> {
    let array = numpy::ndarray::ArrayView1::from(values);
    // SAFETY: callers are frozen classes that own the slice.
    unsafe { view(array, owner) }
}
