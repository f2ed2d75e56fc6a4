//! Demonstrations and policies for other programs, and sizes of a model.

use std::fs;

use crate::scratch::Scratch;
use crate::{run, succeed, text};

#[test]
fn a_run_is_exported_whole_or_not_at_all() {
    let scratch = Scratch::with_run("exports");
    let said = succeed(scratch.path(), &["export", "lerobot", "done", "--out", "out"]);
    assert!(said.contains("out/dataset") && said.contains("out/policy"), "{said}");
    let file = |name: &str| fs::read(scratch.path().join(name)).unwrap();
    assert_eq!(file("out/policy/model.safetensors"), file("done/model.safetensors"));
    for name in ["meta/info.json", "meta/stats.json", "meta/tasks.parquet"] {
        assert!(!file(&format!("out/dataset/{name}")).is_empty());
    }
    // The same again is the same, and a folder with something in it is left alone.
    succeed(scratch.path(), &["export", "lerobot", "done", "--out", "again"]);
    let data = "dataset/data/chunk-000/file-000.parquet";
    assert_eq!(file(&format!("out/{data}")), file(&format!("again/{data}")));
    let refused = run(scratch.path(), &["export", "lerobot", "done", "--out", "out"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("out is not empty, expected a new folder"));
}

#[test]
fn a_scenario_is_exported_without_a_policy() {
    let scratch = Scratch::new("exports-scenario");
    let one = ["export", "lerobot", "tiny", "--terminal", "2", "--seed", "4", "--out", "one"];
    let said = succeed(scratch.path(), &[&one[..], &["--set", "tasks.demonstrations=2"]].concat());
    assert!(!said.contains("policy"), "{said}");
    let info = fs::read_to_string(scratch.path().join("one/dataset/meta/info.json")).unwrap();
    assert!(info.contains("\"total_tasks\": 1") && info.contains("\"fps\": 20"), "{info}");
}

#[test]
fn a_model_is_exported_and_profiled() {
    let scratch = Scratch::with_run("exports-onnx");
    succeed(scratch.path(), &["export", "onnx", "done", "--out", "policy.onnx"]);
    let table = succeed(scratch.path(), &["profile", "policy.onnx", "--batch", "16"]);
    assert!(table.starts_with("# policy.onnx: all parameters trained, minibatch of 16"), "{table}");
    assert!(table.contains("\nlayer3.merged,"), "{table}");
    // The table is one that a profile scenario takes.
    scratch.put("model.csv", table);
    let scenario = "extends = \"profile-smolvla\"\nname = \"own\"\n[model]\ncuts = [1, 2, 3]\n\
                    [methods]\ncut = 2\n[profile]\nmodel = \"model.csv\"\n";
    scratch.put("own.toml", scenario);
    succeed(scratch.path(), &["scenario", "check", "own.toml"]);
}

#[test]
fn what_cannot_be_exported_is_bad_input() {
    let scratch = Scratch::with_run("exports-bad");
    scratch.put("text.onnx", "hello");
    for (arguments, expected) in [
        (&["export", "lerobot", "nowhere", "--out", "x"][..], "neither a file nor one of"),
        (
            &["export", "lerobot", "tiny", "--terminal", "99", "--out", "x"],
            "terminal = 99, expected 0 to 5",
        ),
        (&["export", "lerobot", "profile-smolvla", "--out", "x"], "neither policy nor robots"),
        (&["export", "lerobot", "done", "--seed", "1", "--out", "x"], "--seed: done is a run"),
        (&["export", "onnx", "nowhere", "--out", "x"], "cannot read nowhere"),
        (&["export", "onnx", "text.onnx", "--out", "x"], "no policy in text.onnx"),
        (&["profile"], "no model given, expected an ONNX file or `device`"),
        (&["profile", "text.onnx"], "text.onnx: no ONNX"),
        (&["profile", "nowhere.onnx"], "nowhere.onnx: "),
        (&["profile", "text.onnx", "--size", "a"], "--size a, expected NAME=NUMBER"),
    ] {
        let output = run(scratch.path(), arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(expected) && said.lines().count() == 1, "{arguments:?}: {said}");
        assert!(!scratch.path().join("x").exists());
    }
}
