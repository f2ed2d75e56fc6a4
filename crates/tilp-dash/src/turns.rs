//! Answers that take computing: one at a time, and few that wait.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::http::Response;

/// Requests that wait or compute at a time.
const MOST_WAITING: usize = 8;

/// The right to compute, for one request at a time.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    n_waiting: AtomicUsize,
    one: Mutex<()>,
}

impl Turns {
    /// The answer of `compute`, when it is its turn; an error if too many wait already.
    pub(crate) fn take(
        &self,
        compute: impl FnOnce() -> Result<Response, Response>,
    ) -> Result<Response, Response> {
        let _place = Place::new(self)?;
        let _turn: MutexGuard<'_, ()> = self.one.lock().unwrap_or_else(PoisonError::into_inner);
        // The files may be damaged or hostile: a panic must not end the server.
        std::panic::catch_unwind(AssertUnwindSafe(compute)).unwrap_or_else(|_| {
            Err(Response::error(500, "this cannot be computed from the record"))
        })
    }
}

/// A place among those who wait; free again when it is dropped, also after a panic.
struct Place<'a>(&'a Turns);

impl<'a> Place<'a> {
    fn new(turns: &'a Turns) -> Result<Self, Response> {
        let taken = turns.n_waiting.fetch_add(1, Ordering::SeqCst);
        let place = Self(turns);
        match taken >= MOST_WAITING {
            true => Err(Response::error(503, "busy computing, try again")),
            false => Ok(place),
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.n_waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_few_and_free_again_also_after_a_panic() {
        let turns = Turns::default();
        let good = || Ok(Response::json("{}"));
        let places: Vec<_> = (0..MOST_WAITING).map(|_| Place::new(&turns).ok().unwrap()).collect();
        assert_eq!(turns.take(good).unwrap_err().status, 503);
        drop(places);
        assert_eq!(turns.take(|| panic!("as it computes")).unwrap_err().status, 500);
        assert_eq!(turns.take(good).unwrap().status, 200);
    }
}
