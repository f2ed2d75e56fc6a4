//! A Python class as a method.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;

use tilp::exchange::StateUse;
use tilp::round::{
    Allocator, DecideError, Decision, Observation as Seen, Outcome as Observed, ProjectedDecision,
};
use tilp::snapshot::{Persist, Snapshot, SnapshotError};
use tilp::tasks::Suite;

use crate::decision;
use crate::observation::Observation;
use crate::outcome::Outcome;
use crate::twin::TwinModel;

/// The last exception of a method, for the caller that started the run.
#[derive(Default)]
pub(crate) struct Raised(Mutex<Option<PyErr>>);

impl Raised {
    pub(crate) fn set(&self, error: PyErr) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    /// The exception, once.
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The allocator that asks a Python object.
pub(crate) struct PyAllocator {
    /// The object; why there is none if it could not be made.
    pub object: Result<Py<PyAny>, String>,
    pub n_layers: usize,
    pub suite: &'static Suite,
    pub state_use: Option<StateUse>,
    /// The twin that the method requested; it is calibrated after every round.
    pub twin: Option<Py<TwinModel>>,
    pub raised: Arc<Raised>,
    /// Rounds that it learned from.
    pub learned: u64,
    /// Its saved state after the last of these rounds, as JSON.
    pub state: String,
    /// Why it has no more answers.
    pub failed: Option<DecideError>,
}

/// An exception in one line: type, message, file and line.
pub(crate) fn describe(py: Python<'_>, error: &PyErr) -> String {
    let helper = py.import("tilp._allocator").and_then(|module| module.getattr("_describe"));
    let text = helper.and_then(|helper| {
        helper.call1((error.clone_ref(py).into_value(py),))?.extract::<String>()
    });
    text.unwrap_or_else(|_| error.to_string())
}

impl PyAllocator {
    /// Calls the object. An exception becomes the reason why the run ends.
    fn ask<T>(
        &self,
        round: u64,
        call: impl FnOnce(Python<'_>, &Bound<'_, PyAny>) -> PyResult<T>,
    ) -> Result<T, DecideError> {
        let failed = |reason: String| DecideError::Failed { round, reason };
        let object = self.object.as_ref().map_err(|reason| failed(reason.clone()))?;
        Python::attach(|py| {
            call(py, object.bind(py)).map_err(|error| {
                let reason = describe(py, &error);
                self.raised.set(error);
                failed(reason)
            })
        })
    }

    fn decided(&self, seen: &Seen) -> Result<Decision, DecideError> {
        self.ask(seen.round, |py, object| {
            let own = Py::new(py, Observation::new(Arc::new(seen.clone()), self.suite))?;
            let given = object.call_method1("decide", (own,))?;
            let n_terminals = seen.terminals.len();
            let mut decisions = decision::read(&given, n_terminals, self.n_layers)?;
            match (decisions.pop(), decisions.is_empty()) {
                (Some(one), true) => Ok(one),
                _ => {
                    let line = "decide returned a batch of decisions, expected one";
                    Err(crate::errors::Failure::input(line).into())
                }
            }
        })
    }

    fn take_in(
        &self,
        seen: &Seen,
        plan: &ProjectedDecision,
        outcome: &Observed,
    ) -> Result<Option<String>, DecideError> {
        if let Some(twin) = &self.twin {
            twin.get().calibrate(seen, plan, outcome);
        }
        self.ask(seen.round, |py, object| {
            let own = Py::new(py, Observation::new(Arc::new(seen.clone()), self.suite))?;
            let decided = decision::write(py, plan.decision())?;
            let observed = Py::new(py, Outcome::new(outcome.clone()))?;
            object.call_method1("learn", (own, decided, observed))?;
            if self.state_use != Some(StateUse::Given) {
                return Ok(None);
            }
            let helper = py.import("tilp._allocator")?.getattr("_state")?;
            helper.call1((object,))?.extract().map(Some)
        })
    }

    fn give_back(&self, state: &str) -> Result<(), DecideError> {
        self.ask(self.learned, |py, object| {
            py.import("tilp._allocator")?.getattr("_restore")?.call1((object, state))?;
            Ok(())
        })
    }
}

impl Allocator for PyAllocator {
    fn decide(&mut self, seen: &Seen) -> Result<Decision, DecideError> {
        self.check()?;
        self.decided(seen)
    }

    fn learn(&mut self, seen: &Seen, plan: &ProjectedDecision, outcome: &Observed) {
        match self.take_in(seen, plan, outcome) {
            Ok(state) => {
                self.learned += 1;
                self.state = state.unwrap_or_default();
            }
            Err(error) => self.failed = Some(error),
        }
    }

    fn check(&self) -> Result<(), DecideError> {
        self.failed.clone().map_or(Ok(()), Err)
    }
}

const LEARNED: &str = "python/learned";
const STATE: &str = "python/state";
const LENGTH: &str = "python/state_bytes";

impl Persist for PyAllocator {
    fn save(&self, snapshot: &mut Snapshot) {
        let words = self.state.as_bytes().chunks(8).map(|part| {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            u64::from_le_bytes(word)
        });
        snapshot.put_u64(STATE, words.collect());
        snapshot.put_u64(LENGTH, vec![self.state.len() as u64]);
        snapshot.put_u64(LEARNED, vec![self.learned]);
        if let Some(twin) = &self.twin {
            twin.get().lock().save(snapshot);
        }
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        self.learned = snapshot.u64(LEARNED, 1)?[0];
        if let Some(twin) = &self.twin {
            twin.get().lock().restore(snapshot)?;
        }
        if self.learned == 0 || self.state_use == Some(StateUse::None) {
            return Ok(());
        }
        if self.state_use.is_none() {
            let expected = "a method with state() and restore(), or stateless = True: \
                            start this run anew";
            return Err(SnapshotError::value(STATE, "nothing", expected));
        }
        let n = snapshot.len_of(STATE);
        let length = snapshot.u64_up_to(LENGTH, 1, 8 * n as u64)?[0] as usize;
        let words = snapshot.u64(STATE, n)?.iter();
        let mut bytes: Vec<u8> = words.flat_map(|word| word.to_le_bytes()).collect();
        bytes.truncate(length);
        let state =
            String::from_utf8(bytes).map_err(|error| SnapshotError::value(STATE, error, "JSON"))?;
        self.give_back(&state)
            .map_err(|error| SnapshotError::value(STATE, error, "a state that is taken back"))?;
        self.state = state;
        Ok(())
    }
}
