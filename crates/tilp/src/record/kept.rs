//! `checkpoint/planner-N.safetensors.gz`: what the planner of a run had learned after round N. A
//! question about a later round starts from the nearest one instead of repeating the run.

use std::io::{Read, Write};
use std::path::Path;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use super::{Checkpoint, RecordError};

/// Bytes of a state. A longer one is refused before it fills the memory.
const MOST_BYTES: u64 = 512 << 20;

const START: &str = "planner-";
const END: &str = ".safetensors.gz";

/// Path of the state after a round, within a run folder.
pub(super) fn kept_name(round: u64) -> String {
    format!("checkpoint/{START}{round}{END}")
}

/// The round of the state in a file of the folder `checkpoint`; none if the file is something else.
pub fn kept_round(name: &str) -> Option<u64> {
    let round = name.strip_prefix(START)?.strip_suffix(END)?.parse().ok()?;
    // No two names of one round.
    kept_name(round).ends_with(&format!("/{name}")).then_some(round)
}

impl Checkpoint {
    /// The bytes of the file: compressed, since transitions are most of it.
    pub(super) fn to_kept_bytes(&self) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        let written = encoder.write_all(&self.to_bytes()).and_then(|()| encoder.finish());
        written.expect("memory takes all bytes")
    }

    /// Reads the state of a planner from untrusted bytes; errors name `path`.
    pub fn from_kept_bytes(bytes: &[u8], path: &Path) -> Result<Self, RecordError> {
        let corrupt = |reason: String| RecordError::Corrupt { path: path.to_owned(), reason };
        let mut whole = Vec::new();
        let read = GzDecoder::new(bytes).take(MOST_BYTES + 1).read_to_end(&mut whole);
        read.map_err(|error| corrupt(error.to_string()))?;
        if whole.len() as u64 > MOST_BYTES {
            return Err(corrupt(format!("more than {MOST_BYTES} bytes")));
        }
        Self::planner_from_bytes(&whole, path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::StreamMark;
    use crate::record::fixture::identity;
    use crate::snapshot::Snapshot;

    #[test]
    fn a_name_gives_its_round_and_no_other_name_does() {
        assert_eq!(kept_name(40), "checkpoint/planner-40.safetensors.gz");
        assert_eq!(kept_round("planner-40.safetensors.gz"), Some(40));
        for other in ["state.safetensors", "planner-.safetensors.gz", "planner-040.safetensors.gz"]
        {
            assert_eq!(kept_round(other), None, "{other}");
        }
    }

    #[test]
    fn a_state_comes_back_and_a_damaged_one_is_refused() {
        let mut state = Snapshot::default();
        state.put_f32("a", vec![0.5; 1000]);
        let (identity, stream) = (identity(), StreamMark::default());
        let kept = Checkpoint { identity, round: 7, stream, state };
        let (bytes, path) = (kept.to_kept_bytes(), Path::new("planner-7.safetensors.gz"));
        assert!(bytes.len() < 2000, "4000 bytes of one number are compressed");
        assert_eq!(Checkpoint::from_kept_bytes(&bytes, path).unwrap(), kept);
        for end in [0, 1, 20, bytes.len() / 2, bytes.len() - 1] {
            let error = Checkpoint::from_kept_bytes(&bytes[..end], path).unwrap_err().to_string();
            assert!(error.contains("planner-7"), "{error}");
        }
        assert!(Checkpoint::from_kept_bytes(&kept.to_bytes(), path).is_err(), "not compressed");
    }
}
