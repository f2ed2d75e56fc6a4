//! Messages between base station, cell and experimenter, and their common formulas.
//!
//! No robots, no training, no planning: a terminal, a planner and a simulation all depend on this
//! crate and can be built without each other.
//!
//! # Reading order
//!
//! 1. [`units`]: quantities with units. [`rng`]: one seed, named random streams.
//! 2. [`round`]: report, observation, decision, order, outcome, and the traits of the roles.
//! 3. [`wireless`]: path loss, fading, rate, delay, energy, and recorded channels.
//! 4. [`cost`]: what a round costs every terminal. The cell computes it with true hardware, a method
//!    with nominal hardware.
//! 5. [`message`] and [`compress`]: what crosses the air, byte by byte. [`rule`] and [`rates`]: how a
//!    round is trained.
//! 6. [`snapshot`]: state as named arrays, for checkpoints. [`wire`]: reading untrusted bytes.
//!
//! ```
//! use tilp_core::units::{Gain, Hertz, Watts};
//! use tilp_core::wireless::{RateModel, rate};
//!
//! // 1 MHz at 0.1 W over a path loss of 110 dB, with a noise figure of 9 dB.
//! let noise_w_per_hz = 3.2e-20;
//! let gain = Gain::from_loss_db(110.0);
//! let found = rate(RateModel::Held, Hertz(1e6), Watts(0.1), gain, 1.0, noise_w_per_hz);
//! assert!((found.0 / 1e6 - 5.0).abs() < 0.1, "about 5 Mbit/s, found {found:?}");
//! ```

// `pub` is a promise to users: what they cannot reach is `pub(crate)`.
#![cfg_attr(not(test), warn(unreachable_pub))]
// Results depend on the seed alone (clippy.toml), and a library prints nothing.
#![warn(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    clippy::print_stderr
)]

pub mod compress;
pub mod cost;
pub mod datasheet;
// For the crates of the library, not for its users.
#[doc(hidden)]
pub mod lanes;
pub mod message;
pub mod rates;
pub mod rng;
pub mod round;
pub mod rule;
pub mod snapshot;
pub mod statistics;
pub mod units;
pub mod wire;
pub mod wireless;
