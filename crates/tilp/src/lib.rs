//! Planning and simulation of federated split learning over a wireless cell.
//!
//! A base station and its robot terminals train one robot policy together. Each terminal computes
//! the front layers on its own data, a server computes the rest, and activations and gradients cross
//! the air. In every round a *method* decides for each terminal whether it takes part, its bandwidth,
//! transmit power, cut and compression. This crate joins the parts: scenarios, the loop, records,
//! studies and figures. The program `tilp` is a thin layer over it.
//!
//! # Three rounds
//!
//! ```
//! use tilp::prelude::*;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Six robots. The seed draws places, channels, hardware, robots and data.
//! let scenario = Scenario::load("tiny", &["limits.deadline_s=2.0".to_owned()])?;
//! let parts = assemble(&scenario, method("tilp")?, 0, None, &|_, _| {})?;
//! let Parts { mut cell, mut station, .. } = parts;
//! for _ in 0..3 {
//!     // What the terminals report, and what the base station remembers of them.
//!     let seen = station.observe(&cell.sense()?);
//!     // Who takes part, and with which resources.
//!     let order = station.decide(&seen)?;
//!     // Real gradients through real cuts; time and energy of the true channel and hardware.
//!     let mut outcome = cell.execute(&order)?;
//!     // The digital twin is calibrated, actor and critic learn.
//!     station.learn(&seen, &order.plan, &mut outcome, None);
//!     let scheduled: Vec<usize> = order.plan.decision().scheduled().collect();
//!     println!("terminals {scheduled:?} in {:.2} s", outcome.duration.0);
//! }
//! # assert_eq!(station.round(), 4);
//! # Ok(())
//! # }
//! ```
//!
//! [`run::run`] is the same loop with calibration episodes, the experimenter's books and an observer.
//! `experiment::run_single` writes a complete run folder.
//!
//! # Reading order
//!
//! 1. [`run`]: the loop, on one screen.
//! 2. [`round`]: what passes between the roles: report, observation, decision, order, outcome.
//! 3. [`station`]: the base station, and [`allocate`]: the methods, one file each. `Greedy` is a
//!    short one.
//! 4. [`world`]: the simulated cell, its evaluator and its experimenter; [`split`]: the two halves of
//!    the policy; [`tasks`]: the robots.
//! 5. [`twin`], [`search`] and [`rl`]: how TiLP plans.
//! 6. [`scenario`]: from a TOML file to the parts of a run; [`record`] and [`experiment`]: what is
//!    done with them.
//!
//! # Crates
//!
//! The parts are crates of their own, divided by what they link: `tilp-core` (messages and
//! formulas), `tilp-split` (the two halves), `tilp-plan` (station, twin, methods; usable without
//! this crate), `tilp-sim` (the simulated cell). Their modules are re-exported here.

// `pub` is a promise to users: what they cannot reach is `pub(crate)`.
#![cfg_attr(not(test), warn(unreachable_pub))]
// Results depend on the seed alone (clippy.toml), and a library prints nothing.
#![warn(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    clippy::print_stderr
)]

pub mod exchange;
pub mod experiment;
pub mod plot;
pub mod prelude;
pub mod record;
pub mod run;
pub mod scenario;

// Vector lanes are for the crates of the library, not for its users.
#[doc(hidden)]
pub use tilp_core::lanes;
pub use tilp_core::{
    cost, datasheet, message, rng, round, rule, snapshot, statistics, units, wireless,
};
pub use tilp_plan::{allocate, rl, search, setup, station, twin};
pub use tilp_sim::{profile, tasks, world};
pub use tilp_split::{nn, split};
