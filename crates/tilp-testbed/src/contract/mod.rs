//! The contract: messages, limits, and how a payload travels in parts.

mod parts;

pub use parts::{Assembly, PartError, first_part, later_parts};

/// Messages and service, generated from `proto/testbed.proto`.
#[allow(missing_docs, clippy::all, clippy::pedantic)]
pub mod v1 {
    tonic::include_proto!("tilp.testbed.v1");
}

/// Version of the contract. Sides with different versions do not talk.
pub const VERSION: u32 = 1;

/// Largest part of a payload. A frame is at most this and [`HEADER_BYTES`] long.
pub const PART_BYTES: usize = 64 * 1024;

/// Most bytes of a frame besides its part of a payload.
pub const HEADER_BYTES: usize = 4 * 1024;

/// Largest payload, if a testbed does not say otherwise.
pub const MOST_BYTES: u64 = 64 * 1024 * 1024;
