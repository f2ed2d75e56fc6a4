//! The base station of a testbed: a run whose terminals and evaluator are processes.
//!
//! Under the virtual clock, channel, hardware and time are simulated as in `tilp run`; only the
//! front halves and the evaluator are elsewhere. So a testbed has the same rows, decisions and
//! model, to the last bit. Under the wall clock, delays are those of the machines and the network.

mod data;
mod evaluator;
mod file;
mod halves;
mod link;
mod run;
mod status;

pub use crate::description::{ClockKind, TlsFiles};
pub use data::write_data;
pub use evaluator::{EvaluatorWork, RemoteEvaluator};
pub use file::{FileError, Testbed};
pub use halves::RemoteHalves;
pub use run::{Running, ServeError, Surroundings, serve};
pub use status::{page, serve_status};
