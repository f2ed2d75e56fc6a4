//! A hash of what a run folder must hold again after the same run.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::RecordError;
use super::files::{LOCK, MANIFEST, SCALARS, TIMES, TIMING};

/// Hash over all files of a run folder, by relative path, except what may differ between two
/// runs of the same scenario, method and seed: `timing.json`, `timing.jsonl`, the lock, the
/// TensorBoard file and the manifest's `host`.
pub fn fingerprint(folder: &Path) -> Result<String, RecordError> {
    let mut hash = Sha256::new();
    for path in files_below(folder)? {
        let relative = path.strip_prefix(folder).unwrap_or(&path);
        let parts: Vec<_> = relative.iter().map(|part| part.to_string_lossy()).collect();
        let name = parts.join("/");
        if [TIMING, TIMES, LOCK].contains(&&name[..]) || name.starts_with(SCALARS) {
            continue;
        }
        let mut bytes = fs::read(&path).map_err(RecordError::io("read", &path))?;
        if name == MANIFEST {
            bytes = without_host(&bytes, &path)?;
        }
        for part in [name.as_bytes(), &bytes] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
    }
    Ok(hex(&hash.finalize()))
}

/// Lower-case hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// All files below a folder, sorted by path.
fn files_below(folder: &Path) -> Result<Vec<PathBuf>, RecordError> {
    let listing = RecordError::io;
    let entries = fs::read_dir(folder).map_err(listing("list", folder))?;
    let mut paths = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(listing("list", folder))?;
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() { files.extend(files_below(&path)?) } else { files.push(path) }
    }
    Ok(files)
}

fn without_host(bytes: &[u8], path: &Path) -> Result<Vec<u8>, RecordError> {
    let mut manifest: Value = serde_json::from_slice(bytes).map_err(|e| {
        RecordError::Malformed { path: path.to_owned(), reason: format!("not JSON: {e}") }
    })?;
    if let Some(fields) = manifest.as_object_mut() {
        fields.remove("host");
    }
    Ok(manifest.to_string().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fixture::Scratch;

    #[test]
    fn only_what_must_be_reproducible_counts() {
        let scratch = Scratch::new("fingerprint");
        let folder = scratch.path();
        fs::create_dir(folder.join("checkpoint")).unwrap();
        let put = |name: &str, text: &str| {
            fs::write(folder.join(name), text).unwrap();
            fingerprint(folder).unwrap()
        };
        put("manifest.json", r#"{"host": "a", "seed": 1}"#);
        let before = put("checkpoint/state.safetensors", "x");
        assert_eq!(before.len(), 64);
        assert_eq!(put("timing.json", "1"), before);
        assert_eq!(put("timing.jsonl", "1"), before);
        assert_eq!(put(".lock", ""), before);
        assert_ne!(put("events.jsonl", "1"), before);
        fs::remove_file(folder.join("events.jsonl")).unwrap();
        assert_eq!(put("events.out.tfevents.5.tilp", "1"), before);
        assert_eq!(put("manifest.json", r#"{"host": "b", "seed": 1}"#), before);
        assert_ne!(put("checkpoint/state.safetensors", "y"), before);
        put("checkpoint/state.safetensors", "x");
        assert_ne!(put("manifest.json", r#"{"host": "b", "seed": 2}"#), before);
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let error = fingerprint(Path::new("no/such/run")).unwrap_err().to_string();
        assert!(error.starts_with("cannot list no/such/run: "), "{error}");
    }
}
