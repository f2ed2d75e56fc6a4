//! The two ends of a stream as state machines: no socket, no clock, no thread.
//!
//! A driver passes frames and the time in, and sends the frames that come out. The
//! gRPC transport is one driver, the simulation of the protocol in the tests another.

mod station_end;
mod terminal_end;

pub use station_end::{Question, Reply, StationEnd};
pub use terminal_end::{Incoming, TerminalEnd};

use std::time::Duration;

use crate::contract::PartError;

/// Interval of heartbeats, and the longest permitted silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Time between two heartbeats of an idle side.
    pub heartbeat: Duration,
    /// A side that is silent for this time is gone.
    pub silence: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self { heartbeat: Duration::from_secs(2), silence: Duration::from_secs(15) }
    }
}

/// A violation of the protocol. The stream is closed; training continues without it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// A frame without a body, or one that may not come now.
    #[error("{found}, expected {expected}")]
    Frame {
        /// The frame.
        found: &'static str,
        /// What would be right.
        expected: &'static str,
    },
    /// A payload that is too large or does not fit its announcement.
    #[error(transparent)]
    Part(#[from] PartError),
    /// Another version of the contract.
    #[error("version = {found}, expected {expected}")]
    Version {
        /// Its version.
        found: u32,
        /// Ours.
        expected: u32,
    },
}
