//! The versions of the formats of a run folder, in one place. `docs/reference/run-folder.md` says what each
//! contains. The format of `scenario.toml` has a version of its own: `scenario/format.rs`.

use super::RecordError;
use serde_json::Value;

/// A run folder: `format` in `manifest.json`. Folders of version 1 have no such field, no events
/// and no episodes; their rows are the same.
pub const RUN_FOLDER: u64 = 2;
/// `events.jsonl`: `version` in its header.
pub const EVENTS: u64 = 1;
/// The name of that format.
pub const EVENTS_NAME: &str = "tilp-events";
/// `timing.jsonl`: `version` in its `started` and `resumed` lines.
pub const TIMING: u64 = 1;
/// `checkpoint/state.safetensors`: `version` in its metadata. A run resumes only from this one.
pub const CHECKPOINT: u64 = 5;
/// The name of that format.
pub const CHECKPOINT_NAME: &str = "tilp-checkpoint";
/// The first version of a checkpoint whose planner a later program can take up: that of run
/// folders of version 1.
pub const CHECKPOINT_PLANNER: u64 = 3;

/// The version of the run folder that a manifest belongs to; an error if it is a later one.
pub(super) fn run_folder(manifest: &Value, path: &std::path::Path) -> Result<u64, RecordError> {
    let found = match manifest.get("format") {
        None => return Ok(1),
        Some(found) => found,
    };
    match found.as_u64() {
        Some(version @ 1..=RUN_FOLDER) => Ok(version),
        _ => Err(RecordError::Malformed {
            path: path.to_owned(),
            reason: format!("format is {found}, expected at most {RUN_FOLDER}"),
        }),
    }
}
