//! Solvers that several methods share. They know numbers, not rounds.

mod bandwidth;
mod curve;
mod cuts;
mod energy;
mod fractional;
mod interval;
mod lambert;
mod lanes;
mod least_energy;

pub use bandwidth::{Channel, Down, Need, finish_at, finish_together, finish_together_by};
pub use cuts::{Board, descend};
pub use energy::{EnergyQueue, Tradeoff, share_by_energy};
pub use fractional::{Fraction, dinkelbach};
pub use interval::{Latency, best_interval, stationary_interval};
pub use lanes::{DemandLanes, exp_m1 as exp_m1_lane, exponents, exps, most_exponents, share_lanes};
pub use least_energy::{Allocation, CutChoice, LeastEnergy, Participant, Sure, total_joules};

#[cfg(test)]
pub(in crate::allocate) mod instances;
