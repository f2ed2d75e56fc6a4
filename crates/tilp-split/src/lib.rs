//! Split learning: layers, the policy, the terminal half and the server half.
//!
//! The two halves exchange bytes only, so a terminal process can run
//! [`split::terminal`] on a machine of its own.
//!
//! # Reading order
//!
//! 1. [`split::model`]: what the engine needs of a model; [`split::policy`]: the transformer.
//! 2. [`split::terminal`] and [`split::server`]: the two halves; [`split::control`] and
//!    [`split::message`]: the messages between them; [`split::link`]: what carries them.
//! 3. [`split::engine`]: rounds of training by one of the rules of [`split::rule`].
//! 4. [`nn`]: layers with explicit backward passes, and optimisers.

// `pub` is a promise to users: what they cannot reach is `pub(crate)`.
#![cfg_attr(not(test), warn(unreachable_pub))]
// Results depend on the seed alone (clippy.toml), and a library prints nothing.
#![warn(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    clippy::print_stderr
)]

pub mod nn;
pub mod split;

use tilp_core::{lanes, rng, round, snapshot, units};
