//! The files of a run folder, encoded and ready to be written together.

use serde_json::Value;

use super::kept::kept_name;
use super::{
    Checkpoint, History, RecordError, Summary, calibrations_to_csv, episodes_to_parquet,
    rounds_to_csv, terminals_to_parquet,
};

pub(super) const MANIFEST: &str = "manifest.json";
pub(super) const SCENARIO: &str = "scenario.toml";
pub(super) const ROUNDS: &str = "rounds.csv";
pub(super) const TERMINALS: &str = "terminals.parquet";
pub(super) const CALIBRATION: &str = "calibration.csv";
pub(super) const SUMMARY: &str = "summary.json";
pub(super) const MODEL: &str = "model.safetensors";
pub(super) const EPISODES: &str = "episodes.parquet";
pub(super) const EVENTS: &str = "events.jsonl";
pub(super) const TIMING: &str = "timing.json";
/// Process events with their wall times.
pub(super) const TIMES: &str = "timing.jsonl";
pub(super) const CHECKPOINT: &str = "checkpoint/state.safetensors";
/// The process that holds a lock on this file may write into the folder. It stays empty.
pub(super) const LOCK: &str = ".lock";
/// How the name of a TensorBoard file begins.
pub(super) const SCALARS: &str = "events.out.tfevents";

/// Files that are the same, byte for byte, for the same scenario, method and seed.
pub const RESULT_FILES: [&str; 9] =
    [SCENARIO, ROUNDS, CALIBRATION, EVENTS, TERMINALS, EPISODES, MODEL, CHECKPOINT, SUMMARY];

/// Files to be written together, each at most once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Files(Vec<(String, Vec<u8>)>);

impl Files {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// `manifest.json`.
    pub fn manifest(self, manifest: &Value) -> Self {
        self.with(MANIFEST, lines(manifest))
    }

    /// `scenario.toml`, complete and resolved.
    pub fn scenario(self, text: &str) -> Self {
        self.with(SCENARIO, text.into())
    }

    /// `rounds.csv` and `calibration.csv`, to which rounds are appended.
    pub fn lines(self, history: &History) -> Self {
        let rounds = rounds_to_csv(&history.rounds).into_bytes();
        let calibrations = calibrations_to_csv(&history.calibrations, &history.tasks).into_bytes();
        self.with(ROUNDS, rounds).with(CALIBRATION, calibrations)
    }

    /// `terminals.parquet` and `episodes.parquet`, which are written anew each time.
    pub fn tables(self, history: &History) -> Result<Self, RecordError> {
        let terminals = terminals_to_parquet(&history.terminals, &history.tasks)?;
        let episodes = episodes_to_parquet(&history.episodes, &history.tasks)?;
        Ok(self.with(TERMINALS, terminals).with(EPISODES, episodes))
    }

    /// `events.jsonl`, to which events are appended.
    pub fn events(self, bytes: Vec<u8>) -> Self {
        self.with(EVENTS, bytes)
    }

    /// `summary.json`. It is written last: a folder with it contains a complete run.
    pub fn summary(self, summary: &Summary) -> Self {
        self.with(SUMMARY, lines(&serde_json::json!(summary)))
    }

    /// `model.safetensors`, where there is a policy.
    pub fn model(self, bytes: Option<Vec<u8>>) -> Self {
        match bytes {
            Some(bytes) => self.with(MODEL, bytes),
            None => self,
        }
    }

    /// `timing.json`.
    pub fn timing(self, timing: &Value) -> Self {
        self.with(TIMING, lines(timing))
    }

    /// `checkpoint/state.safetensors`.
    pub fn checkpoint(self, checkpoint: &Checkpoint) -> Self {
        self.with(CHECKPOINT, checkpoint.to_bytes())
    }

    /// `checkpoint/planner-N.safetensors.gz`, N being the round of the state.
    pub fn kept_planner(self, state: &Checkpoint) -> Self {
        self.with(&kept_name(state.round), state.to_kept_bytes())
    }

    /// Names and contents, the summary last.
    pub(super) fn in_order(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let (last, first): (Vec<_>, Vec<_>) = self.0.iter().partition(|(name, _)| name == SUMMARY);
        first.into_iter().chain(last).map(|(name, bytes)| (&name[..], &bytes[..]))
    }

    fn with(mut self, name: &str, bytes: Vec<u8>) -> Self {
        self.0.retain(|(other, _)| other != name);
        self.0.push((name.to_owned(), bytes));
        self
    }
}

/// JSON with one line a field: people read it, and a curve of a thousand points stays one line.
fn lines(value: &Value) -> Vec<u8> {
    let Value::Object(fields) = value else { return format!("{value}\n").into_bytes() };
    let fields =
        fields.iter().map(|(name, value)| format!("  {}: {value}", Value::from(&name[..])));
    format!("{{\n{}\n}}\n", fields.collect::<Vec<_>>().join(",\n")).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_one_line_a_field() {
        let value = serde_json::json!({"b\"": [[1, 0.5], [2, null]], "a": {"x": "y\n"}});
        let text = String::from_utf8(lines(&value)).unwrap();
        assert_eq!(text.lines().count(), 4);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        assert_eq!(serde_json::from_slice::<Value>(&lines(&Value::Null)).unwrap(), Value::Null);
    }

    #[test]
    fn the_summary_is_written_last() {
        let files = Files::new().summary(&Summary::default()).model(Some(vec![])).scenario("");
        let names: Vec<_> = files.in_order().map(|(name, _)| name).collect();
        assert_eq!(names, [MODEL, SCENARIO, SUMMARY]);
    }
}
