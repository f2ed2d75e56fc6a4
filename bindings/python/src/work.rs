//! Long work with the interpreter lock released.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

use crate::errors::Failure;

/// How often signals are looked at.
const LOOK: Duration = Duration::from_millis(50);

/// Work that a signal or an exception of a callback stops.
#[derive(Default)]
pub(crate) struct Work {
    stop: AtomicBool,
    raised: Mutex<Option<PyErr>>,
}

impl Work {
    /// Whether to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Stops the work. The first exception is the one that is raised.
    pub(crate) fn raise(&self, error: PyErr) {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Does work in a thread of its own, while this thread looks at signals: Python gives them to
    /// the main thread only.
    pub(crate) fn perform<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce() -> Result<T, Failure> + Send,
    ) -> PyResult<T> {
        let (waiting, done) = (thread::current(), AtomicBool::new(false));
        let ended = thread::scope(|scope| {
            let worker = scope.spawn(|| {
                let ended = quietly(work);
                done.store(true, Ordering::Release);
                waiting.unpark();
                ended
            });
            while !done.load(Ordering::Acquire) {
                py.detach(|| thread::park_timeout(LOOK));
                if let Err(error) = py.check_signals() {
                    self.raise(error);
                }
            }
            py.detach(|| worker.join().unwrap_or_else(|panic| Err(panicked(&*panic))))
        });
        match self.raised.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(error) => Err(error),
            None => Ok(ended?),
        }
    }
}

/// Short work with the lock released; a panic becomes an error.
pub(crate) fn released<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Failure> + Send,
) -> PyResult<T> {
    Ok(py.detach(|| quietly(work))?)
}

fn quietly<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(panicked(&*panic)))
}

/// The message of a panic, in one line.
fn panicked(panic: &(dyn Any + Send)) -> Failure {
    let text = match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (None, Some(text)) => text.as_str(),
        (None, None) => "no message",
    };
    Failure::Run(format!("panicked: {}", text.lines().next().unwrap_or_default()))
}
