//! Methods that decide. Each is one file; none of them can see the world, and one, the
//! reference [`Oracle`], is told about it.

mod deficit;
mod greedy;
mod oracle;
mod problem;
mod random;
mod share;
mod splitfed;
mod tilp;

pub use deficit::Deficit;
pub use greedy::Greedy;
pub use oracle::{Oracle, OracleOptions};
pub use problem::{Problem, ReferenceKnobs};
pub use random::Random;
pub use share::{Demand, equal_finish, minimum_bandwidth};
pub use splitfed::SplitFed;
pub use tilp::{Clock, Parts, Plan, Reason, RunnerUp, TerminalPlan, Tilp, TilpOptions};
