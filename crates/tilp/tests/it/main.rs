//! Integration tests of the library.
//!
//! - `terminals`: terminals that a scenario lists.
//! - `tidy`: the promises of ARCHITECTURE.md, read off the source text.
//! - `worlds`: the physical world: rules of a round, clock, billing, determinism.
//! - `scenarios`: loading, extending, overriding, refusing.
//! - `learning`: optimisers, exchange of layers, adapters in whole runs.
//! - `libero`: cells with LIBERO's tasks, behind the feature `mujoco`.
//! - `members`: terminals that join and leave.
//! - `methods`: decisions of the allocation methods.
//! - `budgets`: budgets of a whole run.
//! - `channels`: recorded channels and their future.
//! - `baselines`: decisions and books of the published methods and their variants.
//! - `events`: dated events: changes, their rounds, their terminals, and what is observed.
//! - `exports`: exported files, read again.
//! - `examples`: the examples run and do what they say.
//! - `forged`: checkpoints that no run has written.
//! - `heterogeneity`: the four levels: what is equal, what is spread, what stays.
//! - `oracle`: which methods receive the truth; receiving it changes nothing else.
//! - `outside`: external programs, and malformed lines.
//! - `plans`: single plans: the observation as JSON, reasons, budget.
//! - `profile`: learning by a law, with sizes from tables.
//! - `replay`: a run shown again to a twin.
//! - `rounds`: rounds of a simulated cell with their records, for the other tests.
//! - `runs`: whole runs: golden values, threads, kill and resume.

mod baselines;
mod budgets;
mod channels;
mod events;
mod examples;
mod exports;
mod forged;
mod heterogeneity;
mod learning;
#[cfg(feature = "mujoco")]
mod libero;
mod members;
mod methods;
mod oracle;
mod outside;
mod plans;
mod profile;
mod replay;
mod rounds;
mod runs;
mod scenarios;
mod terminals;
mod tidy;
mod worlds;
