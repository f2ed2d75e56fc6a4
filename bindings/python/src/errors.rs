//! Errors of the library as Python exceptions.

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

use tilp::exchange::ExchangeError;
use tilp::experiment::study::StudyError;
use tilp::experiment::{PlanError, RunError as LibraryError};
use tilp::record::RecordError;
use tilp::round::CellError;
use tilp::run::LoopError;
use tilp::scenario::ScenarioError;

create_exception!(tilp, TilpError, PyException, "Something failed; the message is one line.");
create_exception!(tilp, InputError, TilpError, "A value is wrong: field, value, expected.");
create_exception!(tilp, RunError, TilpError, "A run failed while it went on.");

/// Why something failed, before it is an exception.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Bad input.
    Input(String),
    /// What was asked for could not be done.
    Run(String),
}

impl Failure {
    /// Bad input, in the words of an error.
    pub(crate) fn input(error: impl std::fmt::Display) -> Self {
        Self::Input(error.to_string())
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Input(message) => InputError::new_err(message),
            Failure::Run(message) => RunError::new_err(message),
        }
    }
}

macro_rules! input {
    ($($error:ty),*) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::input(error)
            }
        })*
    };
}

input!(ScenarioError, RecordError, ExchangeError, PlanError);

macro_rules! failed {
    ($($error:ty),*) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::Run(error.to_string())
            }
        })*
    };
}

failed!(CellError, LoopError);

impl From<LibraryError> for Failure {
    fn from(error: LibraryError) -> Self {
        match error {
            LibraryError::Loop(_) | LibraryError::Diverged { .. } => Self::Run(error.to_string()),
            error => Self::input(error),
        }
    }
}

impl From<StudyError> for Failure {
    fn from(error: StudyError) -> Self {
        match error {
            StudyError::Run(error) => error.into(),
            error => Self::input(error),
        }
    }
}
