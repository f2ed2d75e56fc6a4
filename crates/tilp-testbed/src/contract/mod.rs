//! The contract: messages, limits, and how a payload travels in parts.

mod model;
mod parts;
mod state;

pub use generated::tilp::testbed::{journal, v1};
pub use model::TerminalModel;
pub use parts::{Assembly, PartError, first_part, later_parts};
pub use state::{state_from_bytes, state_to_bytes};

/// Messages and service, generated from `proto`. The modules are those of the packages.
#[allow(missing_docs, clippy::all, clippy::pedantic)]
mod generated {
    pub(super) mod tilp {
        pub(crate) mod testbed {
            pub mod v1 {
                tonic::include_proto!("tilp.testbed.v1");
            }
            pub mod journal {
                tonic::include_proto!("tilp.testbed.journal");
            }
        }
    }
}

/// Version of the contract. Sides with different versions do not talk.
pub const VERSION: u32 = 1;

/// Largest part of a payload. A frame is at most this and [`HEADER_BYTES`] long.
pub const PART_BYTES: usize = 64 * 1024;

/// Most bytes of a frame besides its part of a payload.
pub const HEADER_BYTES: usize = 4 * 1024;

/// Largest payload, if a testbed does not say otherwise.
pub const MOST_BYTES: u64 = 64 * 1024 * 1024;
