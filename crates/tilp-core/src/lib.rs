//! The words of TiLP: what passes between base station, cell and experimenter, and the formulas
//! that all of them share.
//!
//! Reading order: [`units`], [`round`], [`wireless`], [`cost`], [`message`].

pub mod compress;
pub mod cost;
pub mod datasheet;
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
