//! The split-learning engine: policy, cut, halves, messages, compression, aggregation.
//!
//! Reading order: [`model`] separates the engine from what it trains, [`policy`] is the
//! transformer. [`terminal`] and [`server`] are the two halves. They exchange only the bytes of
//! [`message`] and [`control`], packed by [`compress`] and carried by a [`link`]. [`engine`] runs
//! rounds of them by a [`rule`], and `aggregate` averages their copies.

mod aggregate;
pub mod broadcast;
pub mod central;
mod checkpoint;
pub mod control;
pub mod data;
pub mod edge;
pub mod engine;
pub mod link;
pub mod model;
pub mod optimiser;
pub mod policy;
pub mod rule;
pub mod server;
mod session;
pub mod terminal;
pub mod terminal_state;

pub use tilp_core::{compress, message, rates, wire};

#[cfg(test)]
mod tests;
