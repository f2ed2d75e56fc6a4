//! What passes between a base station and a program outside, as lines of JSON: observations,
//! decisions and outcomes, and the messages around them. `docs/reference/exchange.md` describes the
//! format; [`schema`] is its JSON schema.
//!
//! A base station is at one end and a method at the other. Either may be this program: as the base
//! station it asks a method `exec:PROGRAM`, as the method it is `tilp plan serve`.

mod check;
mod decision;
mod message;
mod observation;
mod outcome;
mod setup;

pub use check::ExchangeError;
pub(crate) use check::in_words;
pub use decision::{DecisionMessage, TerminalDecisionMessage, TiersMessage, read_decision};
pub use message::{Asked, Declaration, Kind, Question, Reply, StateUse, Training, schema};
pub use observation::{
    Expected, ObservationMessage, observation_message, read_observation, write_observation,
};
pub use outcome::{OutcomeMessage, outcome_message, read_outcome};
pub use setup::{HardwareMessage, LimitsMessage, ModelMessage, Setup, SetupParts};

/// The version of the exchange, in `setup` and `method`.
pub const VERSION: u64 = 1;

/// An observation, and every line of an exchange, may be at most this long: fifty thousand
/// terminals would fit.
pub const MOST_BYTES: usize = 16 << 20;
