//! Cross-entropy search over sequences of mixed actions, independent of radio, twin and clock.
//!
//! An action of one terminal has three numbers in (0, 1), a category and a flag. A
//! [`distribution::Distribution`] gives their laws for every step and terminal; [`cem::Planner`]
//! draws candidates, has the caller score them, keeps the best and refits.
//!
//! Sixteen candidates form a group, one in each vector lane: parameters of the distribution are
//! broadcast, nothing is summed across lanes, and a group has its own seed, so that the number of
//! threads cannot change a result.

#![allow(clippy::needless_range_loop, reason = "lanes are indexed: several arrays move together")]

pub mod cem;
pub mod distribution;
pub mod elites;
pub mod gaussian;
pub mod sample;
pub mod score;

#[cfg(test)]
mod tests;
