//! Integration tests of the library.
//!
//! - `tidy`: the promises of ARCHITECTURE.md, read off the source text.
//! - `worlds`: the physical world: rules of a round, clock, billing, determinism.
//! - `scenarios`: loading, extending, overriding, refusing.
//! - `methods`: decisions of the reference methods.
//! - `baselines`: decisions and books of the published methods and their variants.
//! - `examples`: the examples run and do what they say.
//! - `runs`: whole runs: golden values, threads, kill and resume.

mod baselines;
mod examples;
mod methods;
mod runs;
mod scenarios;
mod tidy;
mod worlds;
