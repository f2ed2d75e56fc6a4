//! Profile scenarios: sizes from tables, learning by a law.

mod assemble;
mod check;
mod raw;
mod tables;

pub use assemble::ProfileParts;
pub(super) use assemble::{assemble, cost_profile, no_policy, suite};
pub(super) use check::profile as check;
pub(super) use raw::Profile;
pub(super) use tables::{names_tables, read_tables};

/// What everything says that was made in a profile scenario.
pub const PROFILE_NOTE: &str = "profile scenario: sizes from tables, learning by a parametric law; \
                                no robots, no tensors";
