//! One-time join tokens.
//!
//! The authority gives a token to a person, and it is entered on the device. The token itself never
//! travels again: a request carries a keyed digest of itself instead, so that a reader of a
//! request learns no token and cannot put another key into it. The token also contains the
//! fingerprint of the authority, by which the device recognises the right one.

use std::fmt;

use ring::rand::{SecureRandom, SystemRandom};
use ring::{digest, hmac};
use serde::{Deserialize, Serialize};

use super::subject::{hex, unhex};
use super::{EnrolError, Subject};

const MARK: &str = "tilp-join-1";
/// Longest token that is read.
pub const MAX_TOKEN_BYTES: u64 = 512;

/// A join token, on its way from the authority to a device.
pub struct JoinToken {
    subject: Subject,
    secret: [u8; 32],
    authority: [u8; 32],
}

/// Secrets are not printed by accident.
impl fmt::Debug for JoinToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JoinToken({})", self.subject)
    }
}

impl JoinToken {
    /// A new token for a subject. `authority` is the digest of the authority's certificate.
    pub(super) fn new(subject: Subject, authority: [u8; 32]) -> Result<Self, EnrolError> {
        Ok(Self { subject, secret: random()?, authority })
    }

    /// The token as text. Its holder can join in place of the subject.
    pub fn reveal(&self) -> String {
        format!("{MARK}:{}:{}:{}", self.subject, hex(&self.secret), hex(&self.authority))
    }

    /// Reads a token. No part of it is repeated in the error.
    pub fn parse(text: &str) -> Result<Self, EnrolError> {
        let wrong = || {
            let expected =
                format!("{MARK}:SUBJECT:64 digits:64 digits, as `tilp enrol token` prints");
            EnrolError::field("join token", "(not shown)", expected, "enrolment")
        };
        let parts: Vec<&str> = text.trim().splitn(5, ':').collect();
        let [MARK, subject, secret, authority] = parts[..] else { return Err(wrong()) };
        Ok(Self {
            subject: subject.parse().map_err(|_| wrong())?,
            secret: unhex(secret).ok_or_else(wrong)?,
            authority: unhex(authority).ok_or_else(wrong)?,
        })
    }

    /// The subject that may join with it.
    pub fn subject(&self) -> Subject {
        self.subject
    }

    /// Digest of the certificate of the authority that issued it.
    pub(super) fn authority(&self) -> [u8; 32] {
        self.authority
    }

    /// The proof that the author of this request has the token.
    pub(super) fn prove(&self, request: &[u8]) -> String {
        let tag = hmac::sign(&self.key(), &message(self.subject, request));
        hex(tag.as_ref())
    }

    fn key(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, &self.digest())
    }

    fn digest(&self) -> [u8; 32] {
        sha256(&[MARK.as_bytes(), &self.secret].concat())
    }
}

fn message(subject: Subject, request: &[u8]) -> Vec<u8> {
    [format!("{MARK} request\n{subject}\n").as_bytes(), request].concat()
}

/// Record of the authority about an issued token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TokenRecord {
    /// The subject that may join with it.
    pub subject: String,
    /// Digest of the token's secret.
    digest: String,
    /// Time of expiry, in seconds since 1970.
    pub expires: u64,
    /// Whether a certificate was issued for it.
    pub used: bool,
}

impl TokenRecord {
    pub(super) fn of(token: &JoinToken, expires: u64) -> Self {
        let subject = token.subject.to_string();
        Self { subject, digest: hex(&token.digest()), expires, used: false }
    }

    /// Whether a proof was made with this token. The comparison takes constant time.
    pub(super) fn proves(&self, subject: Subject, request: &[u8], proof: &str) -> bool {
        let (Some(digest), Some(tag)) = (unhex::<32>(&self.digest), unhex::<32>(proof)) else {
            return false;
        };
        let key = hmac::Key::new(hmac::HMAC_SHA256, &digest);
        hmac::verify(&key, &message(subject, request), &tag).is_ok()
    }
}

pub(super) fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut digest = [0; 32];
    digest.copy_from_slice(digest::digest(&digest::SHA256, bytes).as_ref());
    digest
}

/// Random bytes of the system: secrets and serial numbers must not follow from a seed.
pub(super) fn random<const N: usize>() -> Result<[u8; N], EnrolError> {
    let mut bytes = [0; N];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|error| EnrolError::crypto("drawing random bytes", error))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_holds_for_its_token_subject_and_request_only() {
        let token = JoinToken::new(Subject::Evaluator, [7; 32]).unwrap();
        let record = TokenRecord::of(&token, 10);
        let proof = token.prove(b"request");
        assert!(record.proves(Subject::Evaluator, b"request", &proof));
        assert!(!record.proves(Subject::Server, b"request", &proof));
        assert!(!record.proves(Subject::Evaluator, b"another", &proof));
        assert!(!record.proves(Subject::Evaluator, b"request", "00"));
        let other = TokenRecord::of(&JoinToken::new(Subject::Evaluator, [7; 32]).unwrap(), 10);
        assert!(!other.proves(Subject::Evaluator, b"request", &proof));
    }

    #[test]
    fn a_token_survives_being_typed_and_is_never_shown_otherwise() {
        let token = JoinToken::new("terminal-3".parse().unwrap(), [7; 32]).unwrap();
        let text = token.reveal();
        let typed = JoinToken::parse(&format!(" {text}\n")).unwrap();
        assert_eq!(typed.reveal(), text);
        let secret = text.split(':').nth(2).unwrap();
        assert!(!format!("{token:?}").contains(secret));
        for wrong in [&text[..text.len() - 1], &format!("{text}:"), "", "tilp-join-1:::"] {
            let error = JoinToken::parse(wrong).unwrap_err().to_string();
            assert!(!error.contains(secret), "{error}");
        }
        let record = TokenRecord::of(&token, 10);
        assert!(!serde_json::to_string(&record).unwrap().contains(secret));
    }
}
