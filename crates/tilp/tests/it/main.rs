//! Integration tests of the library.
//!
//! - `tidy`: the promises of ARCHITECTURE.md, read off the source text.
//! - `worlds`: the physical world: rules of a round, clock, billing, determinism.
//! - `scenarios`: loading, extending, overriding, refusing.
//! - `methods`: decisions of the allocation methods.
//! - `oracle`: who is told the truth, and that telling changes nothing.
//! - `runs`: whole runs: golden values, threads, kill and resume.

mod methods;
mod oracle;
mod runs;
mod scenarios;
mod tidy;
mod worlds;
