//! The radio as pure formulas: path loss, shadowing, fading, rate, delay, energy; and recorded
//! channels.

mod cost;
mod fading;
mod link;
mod pathloss;
mod place;
mod recording;
mod trace;

pub use cost::{computation_delay, energy, round_delay, transmission_delay};
pub use fading::{Complex, Fading, autoregressive_step, correlation};
pub use link::{RateModel, ergodic_efficiency, rate};
pub use pathloss::{Environment, Sight};
pub use place::{Place, Surroundings, draw_places, large_scale_gains};
pub use recording::{Recording, RecordingError};
pub use trace::{Trace, TraceError};
