//! The subject of a certificate, and its serial number.

use std::fmt;
use std::str::FromStr;

use tilp_core::round::TerminalId;

use super::EnrolError;

/// Start of the URI that binds a certificate to its subject.
const URI: &str = "urn:tilp:";

/// The subject of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// The server beside the base station.
    Server,
    /// The evaluator.
    Evaluator,
    /// A terminal, by its id.
    Terminal(TerminalId),
}

impl Subject {
    /// The subject alternative name of its certificate.
    pub fn uri(self) -> String {
        format!("{URI}{self}")
    }

    /// The subject of a subject alternative name; `None` if it is not one of ours.
    pub fn from_uri(uri: &str) -> Option<Self> {
        uri.strip_prefix(URI)?.parse().ok()
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server => f.write_str("server"),
            Self::Evaluator => f.write_str("evaluator"),
            Self::Terminal(id) => write!(f, "terminal-{}", id.0),
        }
    }
}

impl FromStr for Subject {
    type Err = EnrolError;

    fn from_str(text: &str) -> Result<Self, EnrolError> {
        let wrong = || {
            let expected = "server, evaluator or terminal-ID with an id from 0 to 4294967295";
            EnrolError::field("subject", text, expected, "enrolment")
        };
        match text {
            "server" => return Ok(Self::Server),
            "evaluator" => return Ok(Self::Evaluator),
            _ => {}
        }
        let digits = text.strip_prefix("terminal-").ok_or_else(wrong)?;
        let id: u32 = digits.parse().map_err(|_| wrong())?;
        // One spelling for each id: no sign, no leading zero.
        if id.to_string() != digits {
            return Err(wrong());
        }
        Ok(Self::Terminal(TerminalId(id)))
    }
}

/// Serial number of a certificate: lower-case hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Serial(String);

impl Serial {
    /// Of the bytes in a certificate. Leading zeros do not count.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let start = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len());
        Self(hex(&bytes[start..]))
    }
}

impl fmt::Display for Serial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Serial {
    type Err = EnrolError;

    fn from_str(text: &str) -> Result<Self, EnrolError> {
        let is_digit = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
        // Twenty bytes are the most that a certificate may have.
        let is_serial = (2..=40).contains(&text.len())
            && text.len().is_multiple_of(2)
            && !text.starts_with("00")
            && text.chars().all(is_digit);
        match is_serial {
            true => Ok(Self(text.to_owned())),
            false => {
                let expected = "2 to 40 lower-case hexadecimal digits";
                Err(EnrolError::field("serial", text, expected, "enrolment"))
            }
        }
    }
}

/// Bytes as lower-case hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `N` bytes from hexadecimal digits; `None` if it is anything else.
pub(super) fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.as_chunks::<2>().0) {
        let digit = |c: u8| char::from(c).to_digit(16);
        *byte = (digit(pair[0])? * 16 + digit(pair[1])?) as u8;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_has_one_spelling() {
        let names = ["server", "evaluator", "terminal-0", "terminal-41"];
        for name in names {
            let subject: Subject = name.parse().unwrap();
            assert_eq!(subject.to_string(), name);
            assert_eq!(Subject::from_uri(&subject.uri()), Some(subject));
        }
        for wrong in ["", "terminal-", "terminal-01", "terminal-+1", "terminal-4294967296", "root"]
        {
            assert!(wrong.parse::<Subject>().is_err(), "{wrong}");
        }
        assert_eq!(Subject::from_uri("urn:other:terminal-1"), None);
    }

    #[test]
    fn a_serial_is_the_same_with_and_without_leading_zeros() {
        assert_eq!(Serial::from_bytes(&[0, 0x7f, 1]), "7f01".parse().unwrap());
        for wrong in ["", "7", "7F", "xy", "007f", &"1".repeat(42)] {
            assert!(wrong.parse::<Serial>().is_err(), "{wrong}");
        }
    }
}
