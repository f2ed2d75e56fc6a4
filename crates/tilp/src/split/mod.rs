//! The split-learning engine: policy, cut, halves, messages, compression, aggregation.
//!
//! Reading order: [`model`] is the seam, [`policy`] the transformer behind it; [`terminal`] and
//! [`server`] are the two halves, which exchange only the bytes of [`message`], packed by
//! [`compress`]; [`engine`] runs rounds of them by a [`rule`] and aggregates.

pub mod broadcast;
pub mod central;
mod checkpoint;
pub mod compress;
pub mod data;
pub mod edge;
pub mod engine;
pub mod message;
pub mod model;
pub mod policy;
pub mod rates;
pub mod rule;
pub mod server;
pub mod terminal;
pub mod wire;

#[cfg(test)]
mod tests;
