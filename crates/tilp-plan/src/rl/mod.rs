//! Soft actor-critic with a factorised mixed policy. Knows no radio.
//!
//! The state is a table of features, one row for each terminal, and a few global features. Three
//! networks read it, and none of them knows how many terminals there are:
//! - the [`actor`] runs the same small network on every terminal's features beside the global ones,
//! - the [`critic`] encodes every terminal's features and action with one network, takes the mean
//!   over the terminals and reads the value off that mean and the global features,
//! - the value head is a critic without actions: what a plan asks for the states it ends in.
//!
//! Sharing weights over terminals makes the parameters independent of their number (10 or 1000),
//! makes every transition a lesson about N terminals instead of one, and cannot prefer a terminal
//! for its index: exchanging two rows exchanges their actions and leaves the value. What it cannot
//! express is an interaction that the mean and the global features do not show.
//! For the same reason entropies are means over terminals: the temperature keeps its meaning.
//!
//! Arrays are feature-major like those of `nn`: feature, then terminal, then sample.

#![allow(clippy::needless_range_loop, reason = "rows of several arrays move together")]

pub mod actor;
pub mod agent;
pub mod critic;
pub mod mlp;
pub mod policy;
pub mod replay;
pub mod sac;

#[cfg(test)]
mod tests;
