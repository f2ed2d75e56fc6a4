//! gRPC over TCP, with mutual TLS. The only place that knows of tonic.

mod accept;
mod client;
mod server;

pub use accept::{Doors, Security};
pub use client::{Client, ClientError, End, Secure, TlsSettings};
pub use server::{Listening, listen};

use std::time::{Duration, Instant};

use crate::station::Clock;

/// The clock of the machine.
#[derive(Clone, Copy, Debug)]
pub struct MonotonicClock(Instant);

impl MonotonicClock {
    /// A clock that starts now.
    pub fn start() -> Self {
        Self(Instant::now())
    }
}

impl Clock for MonotonicClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}
