//! Names for programs with the planner: `use tilp_plan::prelude::*;`
//!
//! Limits and sizes of a cell, the base station, and the messages between the two.

pub use crate::allocate::{Tilp, TilpSettings};
pub use crate::setup::{CellDescription, DescriptionError};
pub use crate::station::{Station, TrainingSchedule};
pub use tilp_core::compress::Compressor;
pub use tilp_core::cost::{
    Accounting, Cost, CostModel, CutProfile, Hardware, Payload, Profile, RoundInputs,
};
pub use tilp_core::rates::{RateSchedule, Rates};
pub use tilp_core::round::{
    Allocator, DecideError, Decision, Limits, Observation, Outcome, RoundOrder, SuccessCount,
    TerminalDecision, TerminalId, TerminalOutcome, TerminalReport, TerminalSuccess,
};
pub use tilp_core::rule::Rule;
pub use tilp_core::units::{
    Bytes, Gain, Hertz, Joules, Operations, Seconds, Watts, from_db, to_db,
};
pub use tilp_core::wireless::RateModel;
