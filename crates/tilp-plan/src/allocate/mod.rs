//! Methods that decide. Each is one file; none of them has access to the simulated cell. Two, the
//! references [`Oracle`] and [`Clairvoyant`], receive parts of its truth.

mod adaptsfl;
mod asfl;
mod clairvoyant;
mod deficit;
mod fedavg;
mod fedsl;
mod ga_sfl;
mod greedy;
mod hsfl;
mod oracle;
mod problem;
mod published;
mod random;
mod share;
pub mod solve;
mod splitfed;
mod splitnn;
mod tiers;
mod tilp;

pub use adaptsfl::AdaptSfl;
pub use asfl::Asfl;
pub use clairvoyant::Clairvoyant;
pub use deficit::Deficit;
pub use fedavg::FedAvg;
pub use fedsl::{FedSl, FedSlKnobs};
pub use ga_sfl::{GaSfl, GaSflKnobs};
pub use greedy::Greedy;
pub use hsfl::Hsfl;
pub use oracle::{Oracle, OracleOptions};
pub use problem::{DeficitOf, Problem, ReferenceKnobs};
pub use published::{Planner, Published, Setup};
pub use random::Random;
pub use share::need;
pub use splitfed::SplitFed;
pub use splitnn::SplitNn;
pub use tiers::{Hierarchy, TierKnobs};
pub use tilp::{
    Clock, DecoderOptions, InnerOptions, Parts, Plan, PriceOptions, RunnerUp, StartOptions,
    SuggestionOptions, Tilp, TilpOptions, TilpSettings, TwinSettings, WorthOptions,
};

pub use crate::round::Reason;
