//! The verbs of `tilp scenario`.

use serde_json::Value;
use tilp::record::fingerprint;

use crate::scratch::SHORT;
use crate::{Scratch, run, succeed, text};

const BUILTIN: [&str; 15] = [
    "default",
    "factory-rt",
    "homogeneous",
    "libero-object",
    "mild",
    "profile-openvla",
    "profile-smolvla",
    "quick",
    "scarce",
    "shift",
    "street-rt",
    "strong",
    "tiny",
    "v1-default",
    "v1-scarce",
];

#[test]
fn every_built_in_scenario_is_listed_with_its_hash() {
    let scratch = Scratch::new("list");
    let listed = succeed(scratch.path(), &["scenario", "list", "--format", "json"]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let names: Vec<_> = listed.as_array().unwrap().iter().map(|one| one["name"].as_str()).collect();
    assert_eq!(names, BUILTIN.map(Some));
    let table = succeed(scratch.path(), &["scenario", "list"]);
    for one in listed.as_array().unwrap() {
        let line = table.lines().find(|line| line.starts_with(one["name"].as_str().unwrap()));
        assert!(line.unwrap().contains(&one["hash"].as_str().unwrap()[..12]), "{table}");
    }
}

#[test]
fn a_shown_scenario_is_a_file_that_checks_and_has_the_same_hash() {
    let scratch = Scratch::new("show");
    let hash = |name: &str| {
        let checked = succeed(scratch.path(), &["scenario", "check", name]);
        checked.lines().find_map(|line| line.strip_prefix("hash ")).unwrap().to_owned()
    };
    // The data of LIBERO, which a check opens, do not come with the program.
    for name in BUILTIN.into_iter().filter(|name| *name != "libero-object") {
        let shown = succeed(scratch.path(), &["scenario", "show", name]);
        scratch.put("shown.toml", &shown);
        assert_eq!(hash("shown.toml"), hash(name));
        assert_eq!(succeed(scratch.path(), &["scenario", "show", "shown.toml"]), shown);
    }
}

#[test]
fn an_override_shows_and_changes_the_hash() {
    let scratch = Scratch::new("override");
    let set = ["--set", "limits.deadline_s=4", "--set", "limits.late=wait"];
    let shown = succeed(scratch.path(), &[&["scenario", "show", "tiny"], &set[..]].concat());
    assert!(shown.contains("deadline_s = 4.0\n") && shown.contains("late = \"wait\"\n"), "{shown}");
    scratch.put("shown.toml", shown);
    let check = |name| succeed(scratch.path(), &["scenario", "check", name]);
    assert_ne!(check("shown.toml").lines().nth(2), check("tiny").lines().nth(2));
}

#[test]
fn the_schema_lists_every_section_of_a_scenario() {
    let scratch = Scratch::new("schema");
    let schema = succeed(scratch.path(), &["scenario", "schema"]);
    let schema: Value = serde_json::from_str(&schema).unwrap();
    assert!(schema["$schema"].as_str().unwrap().contains("json-schema.org"));
    let shown = succeed(scratch.path(), &["scenario", "show", "default"]);
    let header = |line: &str| Some(line.strip_prefix('[')?.strip_suffix(']')?.to_owned());
    let sections: Vec<String> = shown.lines().filter_map(header).collect();
    assert!(sections.len() >= 8, "{sections:?}");
    for section in sections.iter().filter(|section| !section.contains('.')) {
        assert!(schema["properties"].get(section).is_some(), "no {section}");
        let required = schema["required"].as_array().unwrap();
        assert!(required.contains(&Value::from(section.as_str())), "{section} is not required");
    }
    assert_eq!(schema["additionalProperties"], Value::Bool(false));
}

#[test]
fn the_scenario_of_a_run_folder_gives_the_same_run_again() {
    let scratch = Scratch::new("again");
    succeed(scratch.path(), &[&SHORT[..], &["--quiet", "--out", "a"]].concat());
    succeed(scratch.path(), &["run", "a/scenario.toml", "--quiet", "--out", "b"]);
    let print = |name: &str| fingerprint(&scratch.path().join(name)).unwrap();
    assert_eq!(print("a"), print("b"));
}

/// A first look at some criteria of a small cell.
fn health(scratch: &Scratch, criteria: &str, more: &[&str]) -> Value {
    let look = ["scenario", "health", "tiny", "--quick", "--out", "health", "--format", "json"];
    let small = ["--set", "rounds=6", "--set", "tasks.episode_steps=10", "--steps", "20"];
    let asked = ["--criteria", criteria, "--seeds", "1000,1001", "--quiet"];
    let text = succeed(scratch.path(), &[&look[..], &small, &asked, more].concat());
    serde_json::from_str(&text).unwrap()
}

#[test]
fn health_is_measured_in_parts_and_goes_on_with_the_runs_that_are_there() {
    let scratch = Scratch::new("health");
    let first = health(&scratch, "saturation,far,allocation", &[]);
    let names = |found: &Value| -> Vec<String> {
        let all = found["criteria"].as_array().unwrap().iter();
        all.map(|one| one["criterion"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&first), ["saturation", "far", "allocation"]);
    let runs = scratch.path().join("health/runs");
    let before = fingerprint(&runs.join("measured/random-1000")).unwrap();
    let second = health(&scratch, "headroom,health,radio,cost", &[]);
    let all = ["health", "saturation", "far", "allocation", "radio", "cost", "headroom"];
    assert_eq!(names(&second), all, "what was found before is kept, in the order of the table");
    assert_eq!(fingerprint(&runs.join("measured/random-1000")).unwrap(), before);
    for folder in
        ["measured/clairvoyant-1001", "far third left out/random-1001", "timed/splitfed-1000"]
    {
        let folder = folder.replace(' ', "_");
        assert!(runs.join(&folder).join("summary.json").exists(), "{folder}");
    }
    for one in second["criteria"].as_array().unwrap() {
        assert!(!one["measured"].as_str().unwrap().is_empty());
        let judged = one["criterion"] != "headroom";
        // A run of six rounds may leave no round that all can finish.
        assert!(one["holds"].is_boolean() == judged || one["criterion"] == "allocation", "{one}");
    }
    let table = std::fs::read_to_string(scratch.path().join("health/health.md")).unwrap();
    assert!(table.contains("| criterion | wanted | measured | verdict |"), "{table}");
    assert!(table.contains("| cut | activation up KB |"), "{table}");
}

fn refused(scratch: &Scratch, arguments: &[&str]) -> String {
    let output = run(scratch.path(), arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    text(&output.stderr)
}

#[test]
fn a_health_check_of_another_scenario_is_refused_in_the_same_folder() {
    let scratch = Scratch::new("health-other");
    health(&scratch, "radio", &[]);
    let more = ["--set", "limits.deadline_s=4"];
    let look = ["scenario", "health", "tiny", "--quick", "--out", "health", "--criteria", "radio"];
    let said = refused(&scratch, &[&look[..], &more].concat());
    assert!(said.contains("health.json") && said.contains("expected"), "{said}");
    let said = refused(&scratch, &["scenario", "health", "--criteria", "luck"]);
    assert!(said.contains("criterion is `luck`, expected one of health, stable"), "{said}");
}
