//! Errors in external files, states and actions.

use std::path::{Path, PathBuf};

/// One line each: field, value, expectation, place.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file that cannot be opened or read.
    #[error("{}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    /// A file or text larger than anything it could rightly be.
    #[error("{place}: {bytes} bytes, expected at most {limit}")]
    TooLarge { place: String, bytes: u64, limit: u64 },
    /// A world that MuJoCo does not accept.
    #[error("{place}: not a world for MuJoCo: {reason}")]
    Mjcf { place: String, reason: String },
    /// A world without a part that the caller needs.
    #[error("{place}: no {kind} named {name}")]
    Missing { place: String, kind: &'static str, name: String },
    /// A value outside what is possible.
    #[error("{place}: {field} = {value}, expected {expected}")]
    Value { place: String, field: String, value: String, expected: String },
    /// The physics became unstable; MuJoCo has reset the world to its default.
    #[error("{place}: the simulation became unstable at {time_s} s, expected finite motion")]
    Unstable { place: String, time_s: f64 },
}

impl Error {
    pub(crate) fn value(
        place: impl ToString,
        field: impl ToString,
        value: impl ToString,
        expected: impl ToString,
    ) -> Self {
        Self::Value {
            place: place.to_string(),
            field: field.to_string(),
            value: value.to_string(),
            expected: expected.to_string(),
        }
    }

    pub(crate) fn read(path: &Path, source: std::io::Error) -> Self {
        Self::Read { path: path.to_owned(), source }
    }
}
