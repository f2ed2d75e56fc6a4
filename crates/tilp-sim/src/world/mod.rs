//! The simulated cell, its evaluator and its experimenter: true channel, true hardware, real tensors, real
//! robots.
//!
//! [`SimulatedCell`] is the physical side, [`RobotEvaluator`] runs calibration episodes,
//! [`Laboratory`] is the experimenter: it alone shows the hidden truth.

mod cell;
mod channel;
mod data_sets;
mod disturbance;
mod evaluator;
mod fleet;
mod laboratory;
mod learner;
mod presence;
mod radio;
mod truth;

pub use cell::{CellParts, RoundTruth, SimulatedCell, model_message};
pub use channel::Channel;
pub use data_sets::{Arrival, DataSets};
pub use disturbance::{Disturbance, Disturbances};
pub use evaluator::RobotEvaluator;
pub use fleet::{CellChange, Fleet, FleetAt, Schedule};
pub use laboratory::{Examiner, Laboratory, Robots};
pub use learner::{Halves, Learner, Live, Measured};
pub use presence::{Change, Presence};
pub use radio::{Late, Radio, RoundTiming};
pub use truth::draw_truth;
