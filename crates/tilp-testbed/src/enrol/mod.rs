//! Enrolment: who may take part, shown by certificates over mutual TLS.
//!
//! [`Authority`] is the folder beside the server, [`Device`] that of a terminal or the evaluator.
//! The authority gives out a one-time [`JoinToken`]; the device makes its private key and a
//! [`Request`]; the authority checks the request and signs a certificate bound to the subject's
//! name. [`server_config`] and [`client_config`] are what the two sides connect with, and
//! [`DenyList`] refuses revoked certificates at once.
//!
//! Times are seconds counted from 1970, given by the caller.

mod authority;
mod certificate;
mod deny;
mod device;
mod error;
mod files;
mod subject;
#[cfg(test)]
mod tests;
mod tls;
mod token;

pub use authority::{Authority, Entry, Issued, MAX_DAYS, State, Waiting};
pub use certificate::{CheckedRequest, MAX_DER_BYTES, PeerIdentity, date_text};
pub use deny::{DenyList, parse as parse_deny_list};
pub use device::{
    CA_FILE, CERTIFICATE_FILE, Device, Identity, KEY_FILE, MAX_REQUEST_BYTES, Proof, REQUEST_FILE,
    Request,
};
pub use error::EnrolError;
pub use subject::{Serial, Subject};
pub use tls::{ClientVerifier, client_config, server_config};
pub use token::{JoinToken, MAX_TOKEN_BYTES};
