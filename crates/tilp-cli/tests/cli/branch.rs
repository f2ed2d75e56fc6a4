//! `tilp branch`: the same bytes with nothing changed, and a run of its own with something changed.

use std::fs;

use serde_json::Value;

use crate::bad_input::refused;
use crate::{Scratch, run, succeed};

/// Files of a run that do not depend on the clock of the machine.
const SAME: [&str; 7] = [
    "events.jsonl",
    "rounds.csv",
    "calibration.csv",
    "terminals.parquet",
    "episodes.parquet",
    "summary.json",
    "model.safetensors",
];

#[test]
fn a_branch_with_nothing_changed_has_the_bytes_of_its_run() {
    let scratch = Scratch::with_run("branch-same");
    succeed(scratch.path(), &["branch", "done", "--round", "5", "--quiet", "--out", "again"]);
    for name in SAME {
        let of = |folder: &str| fs::read(scratch.path().join(folder).join(name)).unwrap();
        assert!(of("done") == of("again"), "{name} differs");
    }
    let manifest = fs::read_to_string(scratch.path().join("again/manifest.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!(manifest["branch"]["round"], 5);
}

#[test]
fn a_branch_with_another_deadline_has_the_rounds_before_and_others_after() {
    let scratch = Scratch::with_run("branch-other");
    let set = ["--set", "limits.deadline_s=0.4", "--quiet"];
    succeed(scratch.path(), &[&["branch", "done", "--round", "7"], &set[..]].concat());
    let rows = |folder: &str| {
        let text = fs::read_to_string(scratch.path().join(folder).join("rounds.csv")).unwrap();
        text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    let (parent, child) = (rows("done"), rows("done-branch-7"));
    assert_eq!((parent.len(), child.len()), (12, 12));
    assert_eq!(parent[..7], child[..7]);
    assert_ne!(parent[7..], child[7..]);
    // It is a run like any other: it can be read, and nothing of it is left to be done.
    let twice = run(scratch.path(), &["run", "--resume", "done-branch-7", "--quiet"]);
    assert!(twice.status.success());
    let toml = fs::read_to_string(scratch.path().join("done-branch-7/scenario.toml")).unwrap();
    assert!(toml.contains("deadline_s = 0.4"), "{toml}");
}

#[test]
fn a_branch_that_cannot_be_is_refused_and_leaves_nothing_behind() {
    let scratch = Scratch::with_run("branch-refused");
    for (more, said) in [
        (["--round", "12"], "--round 12, expected 1 to 11"),
        (["--round", "0"], "0"),
        (["--round", "three"], "three"),
    ] {
        let line = refused(&scratch, &[&["branch", "done"], &more[..]].concat());
        assert!(line.contains(said), "{line}");
    }
    let set = ["branch", "done", "--round", "3", "--set", "limits.deadline_s=-1"];
    assert!(refused(&scratch, &set).contains("deadline_s"));
    assert!(refused(&scratch, &["branch", "nowhere", "--round", "3"]).contains("nowhere"));
    assert!(
        refused(&scratch, &["branch", "done", "--round", "3", "--out", "done"]).contains("done")
    );
}
