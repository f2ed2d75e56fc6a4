//! TiLP over a network: a base station and its terminals as separate processes.
//!
//! The messages of the split engine pass unchanged. This crate adds what a network needs around
//! them: the identity of the sender, a log of answered requests, a limit on message sizes, and detection
//! of lost connections.
//!
//! # Reading order
//!
//! 1. [`contract`]: the messages of `proto/testbed.proto`, and the limits that both sides keep.
//! 2. [`session`]: both ends of a stream, without sockets and clocks.
//! 3. [`station`]: where training waits for answers, and the log that survives the station.
//! 4. [`adapters`]: child programs between a terminal and its equipment.
//! 5. [`description`]: the file of a testbed, and the table of adapters.
//! 6. [`terminal`]: a terminal that answers every request once, whatever happens to it.
//! 7. [`enrol`]: who may take part: keys, certificates, the deny list, settings of mutual TLS.
//! 8. [`transport`]: gRPC with mutual TLS.
//! 9. [`proxy`]: a link between terminal and server that follows a channel.
//! 10. `server`, with the feature of that name: a run whose terminals are processes.

// `pub` is a promise to users: what they cannot reach is `pub(crate)`.
#![cfg_attr(not(test), warn(unreachable_pub))]

pub mod adapters;
pub mod contract;
pub mod description;
pub mod enrol;
mod hold;
pub mod proxy;
#[cfg(feature = "server")]
pub mod server;
pub mod session;
pub mod station;
pub mod terminal;
pub mod transport;
