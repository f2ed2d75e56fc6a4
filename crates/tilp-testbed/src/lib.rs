//! TiLP over a network: a base station and its terminals as processes of their own.
//!
//! The messages of the split engine pass unchanged. This crate adds what a network needs around
//! them: who speaks, what was answered already, how large a message may be, and when the other
//! side is gone.
//!
//! # Reading order
//!
//! 1. [`contract`]: the messages of `proto/testbed.proto`, and the limits that both sides keep.

pub mod contract;
