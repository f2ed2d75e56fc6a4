//! `tilp verify`: a run against its own files, and against a repetition.

use std::fs;
use std::path::Path;

use crate::{Scratch, run, succeed, text};

/// Replaces text in a file of the run `done`.
fn change(scratch: &Scratch, file: &str, from: &str, to: &str) {
    let path = scratch.path().join("done").join(file);
    let before = fs::read_to_string(&path).unwrap();
    let after = before.replacen(from, to, 1);
    assert_ne!(before, after, "{file} has no {from:?}");
    fs::write(path, after).unwrap();
}

fn refused(folder: &Path, arguments: &[&str], code: i32) -> String {
    let output = run(folder, arguments);
    let line = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{line}");
    assert_eq!(line.lines().count(), 1, "{line}");
    line
}

#[test]
fn a_run_as_it_was_written_is_the_same_and_so_is_its_repetition() {
    let scratch = Scratch::with_run("verify-same");
    let found = succeed(scratch.path(), &["verify", "done", "--rerun", "--quiet"]);
    assert!(found.contains("done: deficit on tiny, seed 0"), "{found}");
    assert!(found.contains("metrics of summary.json"), "{found}");
    assert!(found.contains("all 9 files of a repetition, byte for byte"), "{found}");
    assert!(!found.contains("not checked"), "{found}");
}

#[test]
fn a_changed_metric_is_named_with_both_values() {
    let scratch = Scratch::with_run("verify-metric");
    change(&scratch, "summary.json", "\"rounds\": 12", "\"rounds\": 13");
    let line = refused(scratch.path(), &["verify", "done"], 1);
    assert!(line.contains("summary.json: rounds = 13, expected 12 of the rows"), "{line}");
}

#[test]
fn a_changed_row_is_named_with_its_column() {
    let scratch = Scratch::with_run("verify-row");
    change(&scratch, "rounds.csv", "\n3,", "\n4,");
    let line = refused(scratch.path(), &["verify", "done"], 1);
    assert!(line.contains("rounds.csv, row 3: round = 4, expected 3"), "{line}");
}

#[test]
fn a_repetition_that_differs_names_the_first_difference() {
    let scratch = Scratch::with_run("verify-model");
    let model = scratch.path().join("done/model.safetensors");
    let mut bytes = fs::read(&model).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&model, bytes).unwrap();
    succeed(scratch.path(), &["verify", "done"]);
    let line = refused(scratch.path(), &["verify", "done", "--rerun", "--quiet"], 1);
    assert!(line.contains("model.safetensors: differs from byte"), "{line}");
}

#[test]
fn what_is_no_complete_run_is_bad_input() {
    let scratch = Scratch::with_run("verify-input");
    refused(scratch.path(), &["verify", "nowhere"], 2);
    fs::remove_file(scratch.path().join("done/summary.json")).unwrap();
    let line = refused(scratch.path(), &["verify", "done"], 2);
    assert!(line.contains("summary.json"), "{line}");
}

#[test]
fn of_a_folder_of_version_1_what_can_be_checked_is() {
    let scratch = Scratch::new("verify-old");
    let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tilp/tests/v1-run");
    crate::scratch::copy(&old, &scratch.path().join("old"));
    let found = succeed(scratch.path(), &["verify", "old"]);
    assert!(found.contains("not checked"), "{found}");
    let line = refused(scratch.path(), &["verify", "old", "--rerun"], 2);
    assert!(line.contains("format is 1, expected 2"), "{line}");
}
