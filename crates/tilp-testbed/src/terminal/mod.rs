//! A terminal: its half of the model, its data, and a journal that survives the process.

mod agent;
mod data;
mod front;
mod store;

pub use agent::{Agent, Responder, Worked, Worker};
pub use data::{DataError, TerminalData};
pub use front::{FrontHalf, Meter};
pub use store::{FileStore, MemoryStore, Store};
