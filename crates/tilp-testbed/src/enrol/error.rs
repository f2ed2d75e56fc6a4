//! What can be wrong with an enrolment. No message contains a token, a key or a proof.

use std::path::{Path, PathBuf};

/// Why an enrolment, a certificate or a list is refused.
#[derive(Debug, thiserror::Error)]
pub enum EnrolError {
    /// The system refused a file.
    #[error("cannot {what} {}: {error}", path.display())]
    File {
        /// What was tried.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Error of the system.
        error: std::io::Error,
    },
    /// A field has a value that it must not have.
    #[error("{field} = {value}, expected {expected} ({place})")]
    Field {
        /// The field.
        field: &'static str,
        /// Its value, never a secret.
        value: String,
        /// What would be right.
        expected: String,
        /// Where.
        place: String,
    },
    /// A request, a token or a certificate is refused.
    #[error("{subject} is refused: {reason}")]
    Refused {
        /// Whose it is.
        subject: String,
        /// Why.
        reason: String,
    },
    /// The cryptographic library failed.
    #[error("{what} failed: {reason}")]
    Crypto {
        /// What was tried.
        what: &'static str,
        /// Error of the library.
        reason: String,
    },
}

impl EnrolError {
    pub(super) fn file(what: &'static str, path: &Path, error: std::io::Error) -> Self {
        Self::File { what, path: path.to_owned(), error }
    }

    pub(super) fn field(
        field: &'static str,
        value: impl ToString,
        expected: impl ToString,
        place: impl ToString,
    ) -> Self {
        Self::Field {
            field,
            value: shortened(&value.to_string()),
            expected: expected.to_string(),
            place: place.to_string(),
        }
    }

    pub(super) fn refused(subject: impl ToString, reason: impl ToString) -> Self {
        Self::Refused { subject: subject.to_string(), reason: reason.to_string() }
    }

    pub(super) fn crypto(what: &'static str, reason: impl ToString) -> Self {
        Self::Crypto { what, reason: reason.to_string() }
    }
}

/// At most 80 characters of an untrusted value.
fn shortened(value: &str) -> String {
    let is_long = value.chars().nth(80).is_some();
    let text: String = value.chars().take(80).collect();
    if is_long { format!("{text}...") } else { text }
}
