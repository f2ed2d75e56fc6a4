//! The clock that is lent to the library, which has none of its own.

use std::sync::OnceLock;
use std::time::Instant;

/// Milliseconds since the first call.
pub fn milliseconds() -> f64 {
    static START: OnceLock<Instant> = OnceLock::new();
    1e3 * START.get_or_init(Instant::now).elapsed().as_secs_f64()
}
