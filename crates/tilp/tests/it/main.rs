//! Integration tests of the library.
//!
//! - `tidy`: the promises of ARCHITECTURE.md, read off the source text.
//! - `worlds`: the physical world: rules of a round, clock, billing, determinism.
//! - `scenarios`: loading, extending, overriding, refusing.
//! - `methods`: decisions of the allocation methods.
//! - `plans`: single plans: the observation as JSON, reasons, budget.
//! - `runs`: whole runs: golden values, threads, kill and resume.

mod methods;
mod plans;
mod runs;
mod scenarios;
mod tidy;
mod worlds;
