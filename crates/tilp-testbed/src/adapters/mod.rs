//! Adapters to equipment: child programs that exchange JSON lines.
//!
//! Four kinds ([`Kind`]): [`Probe`] measures the channel, [`Actuator`] applies band and power,
//! [`Meter`] measures energy, [`Robot`] runs an episode. [`Adapter`] starts such a program and asks
//! it; [`serve`] is the other side, for adapters written with this crate. Reference implementations:
//! [`WirelessProbe`] (Linux wireless statistics), [`Rapl`] (energy counters of the processor),
//! [`ModelledMeter`], and those of `tilp adapter`. `docs/reference/adapters.md` describes the lines.

mod child;
mod kinds;
mod lines;
mod modelled;
mod rapl;
#[cfg(test)]
mod tests;
mod wireless;

pub use child::{Adapter, AdapterError, Program};
pub use kinds::{
    Actuator, ActuatorAnswer, ActuatorAsk, Kind, Meter, MeterAnswer, MeterAsk, Probe, ProbeAnswer,
    ProbeAsk, Robot, RobotAnswer, RobotAsk, schema,
};
pub use lines::{Answer, Hello, LineError, MAX_LINE_BYTES, Request, VERSION, parse_answer, serve};
pub use modelled::ModelledMeter;
pub use rapl::{Rapl, RaplError};
pub use wireless::{Signal, WirelessError, WirelessProbe};
