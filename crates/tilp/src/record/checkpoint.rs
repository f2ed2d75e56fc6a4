//! `checkpoint/state.safetensors`: a snapshot with the identity of its run.
//!
//! The file is written and read here rather than by the safetensors crate, for two reasons: the
//! crate writes metadata in an order that changes from run to run, and its reader adds offsets
//! from the file without a check. The tests make sure that the crate opens what is written.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::error::shortened;
use super::fingerprint::hex;
use super::{RecordError, format};
use crate::snapshot::{Array, Snapshot};

/// Which run a checkpoint belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Name of the method.
    pub method: String,
    /// Seed of the run.
    pub seed: u64,
    /// Replicate of the seed.
    pub replicate: u64,
    /// Hash of the resolved scenario.
    pub scenario: String,
}

/// How much of a stream of events there is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamMark {
    /// Events.
    pub events: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their SHA-256.
    pub sha256: String,
}

/// The state of a run after a round.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// Whose state it is.
    pub identity: Identity,
    /// The last round that was completed.
    pub round: u64,
    /// The events up to then. Rows are made of them again.
    pub stream: StreamMark,
    /// The state.
    pub state: Snapshot,
}

const METADATA: &str = "__metadata__";

/// What the header says of one array.
#[derive(Serialize, Deserialize)]
struct Entry {
    dtype: String,
    shape: [usize; 1],
    data_offsets: [usize; 2],
}

impl Checkpoint {
    /// The bytes of the file; the same checkpoint always gives the same bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.with_metadata(self.metadata())
    }

    fn with_metadata(&self, mut metadata: BTreeMap<String, String>) -> Vec<u8> {
        let arrays: BTreeMap<&str, (&str, Vec<u8>)> =
            self.state.0.iter().map(|(name, array)| (name.as_str(), encode(array))).collect();
        let digest = digest(&metadata, arrays.iter().map(|(n, (t, d))| (*n, *t, &d[..])));
        metadata.insert("sha256".into(), digest);
        let mut header = Map::new();
        header.insert(METADATA.into(), serde_json::json!(metadata));
        let mut body = Vec::new();
        // Wide types first, so that every array lies at a multiple of its width.
        for wide in [true, false] {
            for (name, (dtype, data)) in arrays.iter().filter(|(_, (t, _))| (*t != "F32") == wide) {
                let data_offsets = [body.len(), body.len() + data.len()];
                let shape = [data.len() / width(dtype)];
                let entry = Entry { dtype: (*dtype).into(), shape, data_offsets };
                header.insert((*name).into(), serde_json::json!(entry));
                body.extend_from_slice(data);
            }
        }
        let mut text = Value::Object(header).to_string();
        text.extend(std::iter::repeat_n(' ', text.len().next_multiple_of(8) - text.len()));
        [&(text.len() as u64).to_le_bytes()[..], text.as_bytes(), &body].concat()
    }

    /// Reads a checkpoint from untrusted bytes; errors name `path`.
    pub fn from_bytes(bytes: &[u8], path: &Path) -> Result<Self, RecordError> {
        Self::of_version(format::CHECKPOINT, bytes, path)
    }

    /// The same, for the state of the planner alone, which earlier versions of the program wrote
    /// in the same form.
    pub fn planner_from_bytes(bytes: &[u8], path: &Path) -> Result<Self, RecordError> {
        Self::of_version(format::CHECKPOINT_PLANNER, bytes, path)
    }

    fn of_version(earliest: u64, bytes: &[u8], path: &Path) -> Result<Self, RecordError> {
        let corrupt = |reason| RecordError::Corrupt { path: path.to_owned(), reason };
        let file = Parsed::new(bytes).map_err(corrupt)?;
        let found = file.metadata.get("version").map_or("", String::as_str);
        let is_known = |version: u64| (earliest..=format::CHECKPOINT).contains(&version);
        let is_ours = file.metadata.get("format").is_some_and(|f| f == format::CHECKPOINT_NAME);
        if is_ours && !found.parse().is_ok_and(is_known) {
            let (path, found) = (path.to_owned(), shortened(found));
            return Err(RecordError::Version { path, found, expected: format::CHECKPOINT });
        }
        file.checkpoint().map_err(corrupt)
    }

    /// An error if this is the checkpoint of another run.
    pub fn check(&self, expected: &Identity, path: &Path) -> Result<(), RecordError> {
        let found = &self.identity;
        let seeds = (found.seed.to_string(), expected.seed.to_string());
        let replicates = (found.replicate.to_string(), expected.replicate.to_string());
        for (what, found, expected) in [
            ("scenario hash", &found.scenario, &expected.scenario),
            ("method", &found.method, &expected.method),
            ("seed", &seeds.0, &seeds.1),
            ("replicate", &replicates.0, &replicates.1),
        ] {
            if found != expected {
                return Err(RecordError::OtherRun {
                    path: path.to_owned(),
                    what,
                    found: shortened(found),
                    expected: expected.clone(),
                });
            }
        }
        Ok(())
    }

    fn metadata(&self) -> BTreeMap<String, String> {
        let replicate = self.identity.replicate;
        let replicate = (replicate > 0).then(|| ("replicate", replicate.to_string()));
        let fields = [
            ("format", format::CHECKPOINT_NAME.to_owned()),
            ("version", format::CHECKPOINT.to_string()),
            ("method", self.identity.method.clone()),
            ("seed", self.identity.seed.to_string()),
            ("scenario", self.identity.scenario.clone()),
            ("round", self.round.to_string()),
            ("events", self.stream.events.to_string()),
            ("events_bytes", self.stream.bytes.to_string()),
            ("events_sha256", self.stream.sha256.clone()),
        ];
        let fields = fields.into_iter().chain(replicate);
        fields.map(|(key, value)| (key.to_owned(), value)).collect()
    }
}

/// A file whose header fits its length. Nothing is copied yet.
struct Parsed<'a> {
    metadata: BTreeMap<String, String>,
    arrays: BTreeMap<String, (String, &'a [u8])>,
}

impl<'a> Parsed<'a> {
    fn new(bytes: &'a [u8]) -> Result<Self, String> {
        let (length, rest) = bytes.split_first_chunk().ok_or("no header length")?;
        let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
        let (header, body) = rest.split_at_checked(length).ok_or("header longer than the file")?;
        let mut header: Map<String, Value> =
            serde_json::from_slice(header).map_err(|e| format!("header: {e}"))?;
        let metadata = header.remove(METADATA).ok_or("no metadata")?;
        let metadata = serde_json::from_value(metadata).map_err(|e| format!("metadata: {e}"))?;
        let (mut arrays, mut end) = (BTreeMap::new(), 0);
        for (name, entry) in header {
            let entry: Entry = serde_json::from_value(entry)
                .map_err(|e| shortened(&format!("array {name}: {e}")))?;
            let [from, to] = entry.data_offsets;
            let data = body.get(from..to).ok_or_else(|| {
                shortened(&format!("array {name} ends at byte {to} of {}", body.len()))
            })?;
            end = end.max(to);
            arrays.insert(name, (entry.dtype, data));
        }
        if end != body.len() {
            return Err(format!("{} bytes of arrays, header announces {end}", body.len()));
        }
        Ok(Self { metadata, arrays })
    }

    fn checkpoint(mut self) -> Result<Checkpoint, String> {
        let sha256 = self.metadata.remove("sha256").ok_or("no sha256")?;
        let arrays = self.arrays.iter().map(|(name, (dtype, data))| (&name[..], &dtype[..], *data));
        if digest(&self.metadata, arrays) != sha256 {
            return Err("content does not match its sha256".into());
        }
        let field = |key: &str| {
            self.metadata.get(key).cloned().ok_or_else(|| format!("no {key} in the metadata"))
        };
        let number = |key: &str| {
            let text = field(key)?;
            text.parse().map_err(|_| shortened(&format!("{key} = {text}, expected a number")))
        };
        let (method, scenario) = (field("method")?, field("scenario")?);
        let has_replicate = self.metadata.contains_key("replicate");
        let replicate = if has_replicate { number("replicate")? } else { 0 };
        let identity = Identity { method, seed: number("seed")?, replicate, scenario };
        let round = number("round")?;
        // Before version 5 there were no events.
        let stream = match self.metadata.contains_key("events") {
            true => StreamMark {
                events: number("events")?,
                bytes: number("events_bytes")?,
                sha256: field("events_sha256")?,
            },
            false => StreamMark::default(),
        };
        let mut state = Snapshot::default();
        for (name, (dtype, data)) in self.arrays {
            let array = decode(&dtype, data)
                .ok_or_else(|| shortened(&format!("array {name} of type {dtype}")))?;
            state.0.insert(name, array);
        }
        Ok(Checkpoint { identity, round, stream, state })
    }
}

fn width(dtype: &str) -> usize {
    if dtype == "F32" { 4 } else { 8 }
}

fn encode(array: &Array) -> (&'static str, Vec<u8>) {
    match array {
        Array::F32(values) => ("F32", values.iter().flat_map(|v| v.to_le_bytes()).collect()),
        Array::F64(values) => ("F64", values.iter().flat_map(|v| v.to_le_bytes()).collect()),
        Array::U64(values) => ("U64", values.iter().flat_map(|v| v.to_le_bytes()).collect()),
    }
}

fn decode(dtype: &str, data: &[u8]) -> Option<Array> {
    if !data.len().is_multiple_of(width(dtype)) {
        return None;
    }
    let words = data.as_chunks::<8>().0.iter().copied();
    match dtype {
        "F32" => {
            let words = data.as_chunks::<4>().0.iter().copied();
            Some(Array::F32(words.map(f32::from_le_bytes).collect()))
        }
        "F64" => Some(Array::F64(words.map(f64::from_le_bytes).collect())),
        "U64" => Some(Array::U64(words.map(u64::from_le_bytes).collect())),
        _ => None,
    }
}

/// Hash over metadata and arrays, each part with its length.
fn digest<'a>(
    metadata: &BTreeMap<String, String>,
    arrays: impl Iterator<Item = (&'a str, &'a str, &'a [u8])>,
) -> String {
    let mut hash = Sha256::new();
    let mut add = |part: &[u8]| {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    };
    for (key, value) in metadata {
        add(key.as_bytes());
        add(value.as_bytes());
    }
    for (name, dtype, data) in arrays {
        add(name.as_bytes());
        add(dtype.as_bytes());
        add(data);
    }
    hex(&hash.finalize())
}

#[cfg(test)]
mod tests {
    use rand::Rng as _;

    use super::*;
    use crate::record::fixture::identity;
    use crate::rng::Seed;

    fn checkpoint() -> Checkpoint {
        let mut state = Snapshot::default();
        state.put_f32("model/weights", vec![1.5, -0.0, f32::MIN_POSITIVE]);
        state.put_f32("model/bias", vec![]);
        state.put_u64("world/round", vec![u64::MAX]);
        state.put_f64("world/clock", vec![0.1, f64::INFINITY]);
        let stream = StreamMark { events: 9, bytes: 5000, sha256: "ab".repeat(32) };
        Checkpoint { identity: identity(), round: 2, stream, state }
    }

    fn read(bytes: &[u8]) -> Result<Checkpoint, RecordError> {
        Checkpoint::from_bytes(bytes, Path::new("state"))
    }

    fn message(bytes: &[u8]) -> String {
        let message = read(bytes).unwrap_err().to_string();
        assert!(!message.contains('\n') && message.contains("state"), "{message}");
        message
    }

    /// A file with this header and body.
    fn forged(header: &str, body: &[u8]) -> Vec<u8> {
        [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), body].concat()
    }

    #[test]
    fn a_checkpoint_comes_back_bit_for_bit() {
        let (before, bytes) = (checkpoint(), checkpoint().to_bytes());
        assert_eq!(bytes, before.to_bytes());
        let after = read(&bytes).unwrap();
        assert_eq!(format!("{after:?}"), format!("{before:?}"));
        assert_eq!(after.to_bytes(), bytes);
    }

    #[test]
    fn any_safetensors_reader_opens_a_checkpoint() {
        let bytes = checkpoint().to_bytes();
        let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
        let weights = file.tensor("model/weights").unwrap();
        assert_eq!((weights.dtype(), weights.shape()), (safetensors::Dtype::F32, &[3][..]));
        assert_eq!(weights.data()[..4], 1.5f32.to_le_bytes());
        assert_eq!(file.len(), checkpoint().state.0.len());
    }

    #[test]
    fn a_truncated_checkpoint_is_refused_at_every_length() {
        let bytes = checkpoint().to_bytes();
        for length in 0..bytes.len() {
            assert!(matches!(read(&bytes[..length]), Err(RecordError::Corrupt { .. })), "{length}");
        }
        assert!(message(&bytes[..bytes.len() - 1]).contains("truncated or corrupt"));
        message(&[&bytes[..], &[0]].concat());
    }

    #[test]
    fn a_flipped_bit_anywhere_is_noticed() {
        let original = checkpoint().to_bytes();
        let header_end = 8 + u64::from_le_bytes(*original.first_chunk().unwrap()) as usize;
        let mut bytes = original.clone();
        for at in (0..bytes.len()).filter(|at| *at < 8 || *at >= header_end || at % 3 == 0) {
            bytes[at] ^= 1;
            // Shapes are redundant and spaces mean nothing: there the content must be unchanged.
            if let Ok(found) = read(&bytes) {
                assert!(at < header_end && found.to_bytes() == original, "byte {at}");
            }
            bytes[at] ^= 1;
        }
    }

    #[test]
    fn random_bytes_never_panic() {
        let mut rng = Seed::new(1).stream("record/noise");
        for length in 0..400 {
            let mut bytes = vec![0; length];
            rng.fill_bytes(&mut bytes);
            message(&bytes);
            if length >= 8 {
                bytes[..8].copy_from_slice(&(length as u64 / 2).to_le_bytes());
                message(&bytes);
            }
        }
    }

    #[test]
    fn forged_headers_never_panic() {
        let max = usize::MAX;
        let meta = r#""__metadata__":{"format":"tilp-checkpoint","version":"5"}"#;
        for header in [
            "".to_owned(),
            "null".into(),
            "[".repeat(500),
            "{}".into(),
            r#"{"__metadata__":3}"#.into(),
            format!(r#"{{{meta},"a":{{"dtype":"F64","shape":[1],"data_offsets":[9,{max}]}}}}"#),
            format!(r#"{{{meta},"a":{{"dtype":"F64","shape":[{max}],"data_offsets":[8,0]}}}}"#),
            format!(r#"{{{meta},"a":{{"dtype":"X","shape":[-1],"data_offsets":[0,8]}}}}"#),
            format!(r#"{{{meta},"a":{{"dtype":"X","shape":[1],"data_offsets":[0,8]}}}}"#),
            format!(r#"{{{meta},"a\n":7}}"#),
        ] {
            message(&forged(&header, &[0; 8]));
        }
    }

    #[test]
    fn another_version_is_named() {
        let header = r#"{"__metadata__":{"format":"tilp-checkpoint","version":"9"}}"#;
        let message = message(&forged(header, &[]));
        assert!(message.contains("format version \"9\", expected 5"), "{message}");
    }

    #[test]
    fn a_checkpoint_of_version_1_of_the_program_gives_its_planner_and_nothing_to_go_on_from() {
        let mut old = checkpoint();
        old.stream = StreamMark::default();
        let mut metadata = old.metadata();
        metadata.retain(|key, _| !key.starts_with("events"));
        metadata.insert("version".into(), "3".into());
        let bytes = old.with_metadata(metadata);
        assert!(matches!(read(&bytes), Err(RecordError::Version { .. })));
        let found = Checkpoint::planner_from_bytes(&bytes, Path::new("state")).unwrap();
        assert_eq!(format!("{found:?}"), format!("{old:?}"));
    }

    #[test]
    fn the_checkpoint_of_another_run_is_refused() {
        let path = Path::new("state");
        assert!(checkpoint().check(&identity(), path).is_ok());
        let others = [
            (Identity { seed: 8, ..identity() }, "seed = \"7\", expected \"8\""),
            (Identity { replicate: 2, ..identity() }, "replicate = \"0\", expected \"2\""),
            (Identity { method: "tilp".into(), ..identity() }, "method = \"deficit\", expected"),
            (Identity { scenario: "ff".into(), ..identity() }, "scenario hash = \"abc123\", "),
        ];
        for (other, expected) in others {
            let message = checkpoint().check(&other, path).unwrap_err().to_string();
            assert!(message.contains(expected) && message.contains("state"), "{message}");
        }
    }
}
