//! The clock that the program passes to the library. The library has none.

use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use tilp::allocate::Clock;
use tilp::experiment::Time;

/// Milliseconds since the first call.
pub(crate) fn milliseconds() -> f64 {
    static START: OnceLock<Instant> = OnceLock::new();
    1e3 * START.get_or_init(Instant::now).elapsed().as_secs_f64()
}

/// Time since a start.
pub struct WallTime(Instant);

impl WallTime {
    /// Time since now.
    pub fn start() -> Self {
        Self(Instant::now())
    }
}

impl Time for WallTime {
    fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }

    fn epoch_seconds(&self) -> f64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
    }

    fn clock(&self) -> Option<Clock> {
        Some(milliseconds)
    }
}
