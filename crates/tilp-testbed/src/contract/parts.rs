//! A payload in parts. Large payloads travel in many small frames, so that heartbeats pass
//! between them and a slow transfer is distinguished from a stalled one.

use super::PART_BYTES;

/// What a sender of parts did wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PartError {
    /// The payload is announced as larger than it may be.
    #[error("n_bytes = {found}, expected at most {most}")]
    TooLarge {
        /// Announced size.
        found: u64,
        /// Largest size.
        most: u64,
    },
    /// More bytes than announced, a part that is too large, or an empty one.
    #[error("part of {found} bytes, expected 1 to {most}")]
    Part {
        /// Size of the part.
        found: usize,
        /// Largest size here.
        most: usize,
    },
    /// A part of nothing.
    #[error("a part without a request or an answer before it")]
    Unexpected,
}

/// The first part of a payload, which travels with its request or answer.
pub fn first_part(payload: &[u8]) -> &[u8] {
    &payload[..payload.len().min(PART_BYTES)]
}

/// The parts after the first.
pub fn later_parts(payload: &[u8]) -> impl Iterator<Item = &[u8]> {
    payload[first_part(payload).len()..].chunks(PART_BYTES)
}

/// A payload that arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembly {
    n_bytes: usize,
    received: Vec<u8>,
}

impl Assembly {
    /// Begins with the first part of a payload of `n_bytes`. Memory grows with what arrives, not
    /// with what is announced.
    pub fn begin(n_bytes: u64, first: Vec<u8>, most: u64) -> Result<Self, PartError> {
        if n_bytes > most {
            return Err(PartError::TooLarge { found: n_bytes, most });
        }
        let expected = (n_bytes as usize).min(PART_BYTES);
        if first.len() != expected {
            return Err(PartError::Part { found: first.len(), most: expected });
        }
        Ok(Self { n_bytes: n_bytes as usize, received: first })
    }

    /// Adds the next part.
    pub fn add(&mut self, part: &[u8]) -> Result<(), PartError> {
        let most = (self.n_bytes - self.received.len()).min(PART_BYTES);
        if part.is_empty() || part.len() > most {
            return Err(PartError::Part { found: part.len(), most });
        }
        self.received.extend_from_slice(part);
        Ok(())
    }

    /// Whether nothing is missing.
    pub fn is_complete(&self) -> bool {
        self.received.len() == self.n_bytes
    }

    /// What has arrived.
    pub fn into_payload(self) -> Vec<u8> {
        self.received
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn travel(payload: &[u8]) -> Vec<u8> {
        let n_bytes = payload.len() as u64;
        let mut assembly = Assembly::begin(n_bytes, first_part(payload).to_vec(), 1 << 20).unwrap();
        for part in later_parts(payload) {
            assert!(!assembly.is_complete());
            assembly.add(part).unwrap();
        }
        assert!(assembly.is_complete());
        assembly.into_payload()
    }

    #[test]
    fn a_payload_of_any_size_arrives_whole() {
        for size in [0, 1, PART_BYTES - 1, PART_BYTES, PART_BYTES + 1, 3 * PART_BYTES] {
            let payload: Vec<u8> = (0..size).map(|n| (n % 251) as u8).collect();
            assert_eq!(travel(&payload), payload, "{size} bytes");
        }
    }

    #[test]
    fn an_announcement_beyond_the_limit_is_refused() {
        let error = Assembly::begin(1 << 40, vec![0; PART_BYTES], 1 << 20);
        assert_eq!(error, Err(PartError::TooLarge { found: 1 << 40, most: 1 << 20 }));
    }

    #[test]
    fn a_part_that_does_not_fit_is_refused() {
        let short = Assembly::begin(10, vec![0; 9], 100);
        assert_eq!(short, Err(PartError::Part { found: 9, most: 10 }));
        let mut open =
            Assembly::begin(PART_BYTES as u64 + 2, vec![0; PART_BYTES], 1 << 20).unwrap();
        assert_eq!(open.add(&[]), Err(PartError::Part { found: 0, most: 2 }));
        assert_eq!(open.add(&[0; 3]), Err(PartError::Part { found: 3, most: 2 }));
        open.add(&[0; 2]).unwrap();
        assert!(open.is_complete());
        assert_eq!(open.add(&[0]), Err(PartError::Part { found: 1, most: 0 }));
    }
}
