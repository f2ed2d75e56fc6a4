//! A terminal: its half of the model, its data, and a journal that survives the process.

mod agent;
mod data;
mod equipment;
mod front;
mod store;

pub use agent::{Agent, Responder, Worked, Worker};
pub use data::{DataError, TerminalData};
pub use equipment::{Attached, Equipment, PROBE_EVERY, Probed, Reading};
pub use front::FrontHalf;
pub use store::{FileStore, MemoryStore, Store};
