//! The observed outcome of an executed round, as arrays.

use numpy::IntoPyArray;
use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;

use tilp::round::{Outcome as Observed, TerminalOutcome};

use crate::observation::column as real_column;

type Real = (&'static str, fn(&TerminalOutcome) -> f64);
type Flag = (&'static str, fn(&TerminalOutcome) -> bool);

const REALS: [Real; 7] = [
    ("delay_s", |one| one.delay.0),
    ("computation_s", |one| one.computation.0),
    ("energy_j", |one| one.energy.0),
    ("bytes", |one| one.bytes.0 as f64),
    ("loss", |one| one.loss.unwrap_or(f64::NAN)),
    ("gradient_norm", |one| one.gradient_norm.unwrap_or(f64::NAN)),
    ("success", |one| one.success.and_then(|count| count.rate()).unwrap_or(f64::NAN)),
];

const FLAGS: [Flag; 4] = [
    ("took_part", |one| one.took_part),
    ("late", |one| one.late),
    ("unfit", |one| one.unfit),
    ("unfinished", |one| one.unfinished),
];

/// What the base station observed of an executed round. Arrays have one entry per terminal of the
/// observation, in its order; what was not measured is NaN.
#[pyclass(frozen, module = "tilp")]
pub(crate) struct Outcome {
    outcome: Observed,
    reals: [Vec<f64>; REALS.len()],
}

impl Outcome {
    pub(crate) fn new(outcome: Observed) -> Self {
        let reals = REALS.map(|(_, of)| outcome.terminals.iter().map(of).collect());
        Self { outcome, reals }
    }

    /// A column as an array.
    fn column<'py>(this: &Bound<'py, Self>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let own = this.get();
        if let Some(n) = REALS.iter().position(|(other, _)| *other == name) {
            return Ok(real_column(&own.reals[n], this.clone().into_any()).into_any());
        }
        let Some((_, of)) = FLAGS.iter().find(|(other, _)| *other == name) else {
            let line = format!("an Outcome has no column {name:?}");
            return Err(PyAttributeError::new_err(line));
        };
        let flags: Vec<bool> = own.outcome.terminals.iter().map(of).collect();
        Ok(flags.into_pyarray(this.py()).into_any())
    }
}

/// The class with a property for every column.
macro_rules! outcome {
    ($($column:ident),*) => {
        #[pymethods]
        impl Outcome {
            $(#[getter]
            fn $column<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
                Self::column(this, stringify!($column))
            })*

            #[getter]
            fn round(&self) -> u64 {
                self.outcome.round
            }

            #[getter]
            fn duration_s(&self) -> f64 {
                self.outcome.duration.0
            }

            /// Weighted loss over the terminals that took part.
            #[getter]
            fn training_loss(&self) -> Option<f64> {
                self.outcome.loss
            }

            /// Whether success was measured at the end of the round.
            #[getter]
            fn is_calibrated(&self) -> bool {
                self.outcome.success.is_some()
            }

            fn __len__(&self) -> usize {
                self.outcome.terminals.len()
            }

            fn __repr__(&self) -> String {
                let Observed { round, duration, .. } = &self.outcome;
                format!("Outcome(round={round}, duration_s={})", duration.0)
            }
        }
    };
}

outcome!(
    delay_s,
    computation_s,
    energy_j,
    bytes,
    loss,
    gradient_norm,
    success,
    took_part,
    late,
    unfit,
    unfinished
);
