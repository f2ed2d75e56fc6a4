//! The planner of TiLP, and the methods that it is compared with.
//!
//! Links no physics, no Parquet, no figures and no command line. A user's program needs this
//! crate alone: `examples/plan_a_cell.rs` plans the rounds of a made-up cell in 50 lines.
//!
//! ```
//! use tilp_plan::prelude::*;
//!
//! # fn reports() -> Vec<TerminalReport> {
//! #     let (clock, operations_per_cycle) = (Hertz(1.5e9), 0.2);
//! #     let (energy_coefficient, noise_w_per_hz) = (1e-28, 3.2e-20);
//! #     let hardware = Hardware { clock, operations_per_cycle, energy_coefficient, noise_w_per_hz };
//! #     let report = |n: u32| TerminalReport {
//! #         id: TerminalId(n),
//! #         hardware,
//! #         memory: Bytes(2_000_000),
//! #         n_samples: 400,
//! #         task: 0,
//! #         gain: Gain::from_loss_db(100.0 + 6.0 * f64::from(n)),
//! #         fading_power: 1.0,
//! #         held_layers: 0,
//! #         owed_layers: 0,
//! #     };
//! #     (0..4).map(report).collect()
//! # }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A model with one layer on the terminals: 512 numbers per sample cross the air.
//! let layer = CutProfile::new(1, 512, Operations(4e6), Bytes(20_000), Bytes(160_000));
//! let profile = Profile { batch: 32, action: 7, cuts: vec![layer] };
//! let (deadline, bandwidth, power) = (Seconds(1.0), Hertz(2e6), Watts(0.2));
//! let limits = Limits { deadline, bandwidth, power, compression: 0.9, cuts: vec![1] };
//! let cell = CellDescription::new(limits, profile, 1);
//!
//! let reports = reports(); // one per terminal
//! let mut station = cell.station(&reports, 0)?;
//! let seen = station.observe(&reports);
//! let order = station.decide(&seen)?;
//! assert!(order.plan.decision().scheduled().count() > 0);
//! # Ok(())
//! # }
//! ```
//!
//! # Reading order
//!
//! 1. [`station`]: the base station. It turns reports into observations, asks its method, remembers
//!    outcomes.
//! 2. [`setup`]: a station with TiLP from a description of a cell.
//! 3. [`allocate`]: the methods, one file each. `Greedy` is a short one; [`allocate::Tilp`] joins
//!    the next three.
//! 4. [`twin`]: what a decision would do: network, training and task sub-twins and the reward.
//! 5. [`search`]: the cross-entropy method over sequences of decisions.
//! 6. [`rl`]: the soft actor-critic that proposes and values.

// `pub` is a promise to users: what they cannot reach is `pub(crate)`.
#![cfg_attr(not(test), warn(unreachable_pub))]
// Results depend on the seed alone (clippy.toml), and a library prints nothing.
#![warn(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    clippy::print_stderr
)]

pub mod allocate;
pub mod prelude;
pub mod rl;
pub mod search;
pub mod setup;
pub mod station;
pub mod twin;

use tilp_core::{cost, lanes, rng, round, snapshot, units, wireless};
use tilp_split::{nn, split};
