//! The base station's side: one seat for each terminal that is a process, a log of what was
//! exchanged, and a hub where training waits for answers.

mod hub;
mod log;
mod seat;

pub use crate::contract::journal::Exchange;
pub use hub::{Call, Greeting, Hub, Line, Lost, Settings, Status};
pub use log::{Exchanges, FileLog, Log, MemoryLog, read_log};
pub use seat::{Asked, Seat, SeatError, SeatState};

use std::fmt;
use std::time::Duration;

/// Time since some fixed moment.
pub trait Clock: Send + Sync {
    /// The time.
    fn now(&self) -> Duration;
}

/// The party of a seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Party {
    /// A terminal, by id.
    Terminal(u32),
    /// The evaluator.
    Evaluator,
}

impl Party {
    /// The number in keys: the terminal's id, or the largest number for the evaluator.
    pub fn number(self) -> u32 {
        match self {
            Self::Terminal(id) => id,
            Self::Evaluator => u32::MAX,
        }
    }
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Terminal(id) => write!(f, "terminal {id}"),
            Self::Evaluator => f.write_str("evaluator"),
        }
    }
}
