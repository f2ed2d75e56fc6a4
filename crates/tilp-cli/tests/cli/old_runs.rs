//! Folders of version 1: their scenarios have format 1, without the constants that were in the code.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::scratch::copy;
use crate::{Scratch, run, succeed, text};

/// A run of `tilp` on `tiny`, made by version 1: `tilp run tiny --rounds 3`, without its checkpoint.
fn old_run() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tilp/tests/v1-run")
}

fn manifest(folder: &Path) -> Value {
    serde_json::from_slice(&fs::read(folder.join("manifest.json")).unwrap()).unwrap()
}

#[test]
fn the_twin_of_a_run_of_version_1_can_be_looked_at() {
    let scratch = Scratch::new("old-twin");
    copy(&old_run(), &scratch.path().join("old"));
    let said = succeed(scratch.path(), &["twin", "old"]);
    assert!(said.starts_with("twin of tilp on tiny, seed 0, 3 rounds\n"), "{said}");
}

#[test]
fn a_run_with_a_scenario_of_version_1_has_its_hash_and_its_text() {
    let scratch = Scratch::new("old-again");
    copy(&old_run(), &scratch.path().join("old"));
    succeed(scratch.path(), &["run", "old/scenario.toml", "--quiet", "--out", "new"]);
    let [old, new] = ["old", "new"].map(|name| scratch.path().join(name));
    assert_eq!(manifest(&new)["scenario_hash"], manifest(&old)["scenario_hash"]);
    let scenario = |folder: &Path| fs::read_to_string(folder.join("scenario.toml")).unwrap();
    assert_eq!(scenario(&new), scenario(&old));
    // So a plan takes up what was learned: the checkpoint is of the same scenario.
    let seen = succeed(scratch.path(), &["plan", "--from", "new", "--example"]);
    assert!(seen.contains("\"terminals\""), "{seen}");
}

#[test]
fn a_new_constant_can_be_set_on_a_scenario_of_version_1() {
    let scratch = Scratch::new("old-set");
    copy(&old_run(), &scratch.path().join("old"));
    let file = "old/scenario.toml";
    assert!(!succeed(scratch.path(), &["scenario", "show", file]).contains("format"));
    let set = ["scenario", "show", file, "--set", "methods.tilp.search.correlation=0.5"];
    let shown = succeed(scratch.path(), &set);
    assert!(shown.starts_with("format = 2\n") && shown.contains("correlation = 0.5"), "{shown}");
    let set = ["scenario", "show", file, "--set", "methods.tilp.search.correlation=2"];
    let refused = run(scratch.path(), &set);
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2));
    assert!(said.contains("methods.tilp.search.correlation = 2, expected 0 to 1"), "{said}");
}

#[test]
fn a_report_of_a_study_of_version_1_is_the_same() {
    let scratch = Scratch::new("old-report");
    let study = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results/v1/oracle-network");
    let folder = study.display().to_string();
    succeed(scratch.path(), &["report", &folder, "--out", "report"]);
    for name in ["table.md", "table.csv", "table.tex", "runs.csv", "runs.jsonl"] {
        let made = fs::read(scratch.path().join("report").join(name)).unwrap();
        assert_eq!(made, fs::read(study.join(name)).unwrap(), "{name}");
    }
}
