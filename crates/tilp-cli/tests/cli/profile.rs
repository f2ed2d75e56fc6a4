//! Profile scenarios: own tables in, marked results out; bad tables refused.

use std::fs;

use serde_json::Value;
use tilp::record::fingerprint;
use tilp::scenario::PROFILE_NOTE;

use crate::bad_input::{assert_names, refused};
use crate::{Scratch, succeed, tilp};

const MODEL: &str = "\
# Four parts.
name,activation_elements,operations,trained_parameters,memory_bytes
first,1000,1e9,100,1e6
second,500,2e9,300,2e6
third,250,3e9,600,3e6
whole,10,4e9,1000,8e6
";

const ARMS: &str = "\
name,gain_db,memory_bytes,n_samples,task
arm 1,-80,4e9,700,pick
arm 2,-85,4e9,700,place
arm 3,-90,4e9,700,pick
arm 4,-95,4e9,700,place
";

const MINE: &str = "\
extends = \"profile-smolvla\"
name = \"mine\"
rounds = 12

[model]
cuts = [1, 2, 3]

[methods]
cut = 2

[methods.reference]
n_scheduled = 2

[methods.tilp]
warm_up = 4

[evaluation]
calibrate_every = 4
measure_every = 4
final_episodes = 4

[profile]
model = \"model.csv\"
terminals = \"arms.csv\"
";

fn scratch(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    scratch.put("mine.toml", MINE);
    scratch.put("model.csv", MODEL);
    scratch.put("arms.csv", ARMS);
    scratch
}

#[test]
fn every_output_of_a_run_says_that_it_is_of_a_profile_scenario() {
    let scratch = scratch("profile-run");
    let path = scratch.path();
    let printed = succeed(path, &["run", "mine.toml", "--quiet", "--out", "run"]);
    assert!(printed.lines().next().unwrap().contains(PROFILE_NOTE), "{printed}");
    for name in ["manifest.json", "summary.json"] {
        let text = fs::read_to_string(path.join("run").join(name)).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["note"], PROFILE_NOTE, "{name}");
    }
    assert!(!path.join("run/model.safetensors").exists(), "there is no policy");
    assert!(succeed(path, &["twin", "run"]).contains(PROFILE_NOTE));
    let checked = succeed(path, &["scenario", "check", "mine.toml"]);
    assert!(checked.contains(PROFILE_NOTE));
    fs::remove_file(path.join("model.csv")).unwrap();
    let resumed = succeed(path, &["run", "--resume", "run", "--quiet"]);
    assert_eq!(resumed.lines().next(), printed.lines().next(), "a run folder holds its tables");
}

#[test]
fn every_table_and_page_of_a_study_says_that_it_is_of_a_profile_scenario() {
    let scratch = scratch("profile-study");
    let path = scratch.path();
    let arguments = ["compare", "mine.toml", "--methods", "tilp,random,splitfed+guard", "--seeds"];
    let printed = succeed(path, &[&arguments[..], &["0..2", "--quiet", "--out", "study"]].concat());
    assert!(printed.contains(PROFILE_NOTE));
    for name in ["report.html", "runs.csv", "runs.jsonl", "table.csv", "table.md", "table.tex"] {
        let text = fs::read_to_string(path.join("study").join(name)).unwrap();
        assert!(text.contains(PROFILE_NOTE), "{name}");
    }
    let figure = fs::read_to_string(path.join("study/convergence.svg")).unwrap();
    assert!(figure.contains("(profile scenario)"));
    assert!(!path.join("study/aims.md").exists(), "the aims are about robots");
    let page = fs::read_to_string(path.join("study/report.html")).unwrap();
    assert!(!page.contains("class=\"paper\""), "so are the numbers of the paper");
    assert!(succeed(path, &["report", "study", "--out", "again"]).contains(PROFILE_NOTE));
}

#[test]
fn a_plan_says_that_it_is_for_a_profile_scenario() {
    let scratch = scratch("profile-plan");
    let example = succeed(scratch.path(), &["plan", "--example", "mine.toml"]);
    scratch.put("seen.json", &example);
    let plan = |format: &str| {
        let mut command = tilp(scratch.path());
        command.args(["plan", "mine.toml", "--format", format]);
        command.stdin(fs::File::open(scratch.path().join("seen.json")).unwrap());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", crate::text(&output.stderr));
        crate::text(&output.stdout)
    };
    assert!(plan("text").starts_with(PROFILE_NOTE));
    let value: Value = serde_json::from_str(&plan("json")).unwrap();
    assert_eq!(value["note"], PROFILE_NOTE);
    assert_eq!(value["terminals"].as_array().unwrap().len(), 4);
}

#[test]
fn a_profile_run_does_not_depend_on_threads_or_interruptions() {
    for method in ["tilp", "hsfl+guard", "splitnn"] {
        let scratch = scratch(&format!("profile-repeat-{method}"));
        let path = scratch.path();
        let prints: Vec<_> = ["1", "2"]
            .iter()
            .map(|threads| {
                let mut command = tilp(path);
                command.args(["run", "mine.toml", "--quiet", "--method", method, "--out", threads]);
                command.env("RAYON_NUM_THREADS", threads);
                assert!(command.output().unwrap().status.success());
                fingerprint(&path.join(threads)).unwrap()
            })
            .collect();
        assert_eq!(prints[0], prints[1], "{method}");
        let mut kills = 0;
        let state = path.join("killed/checkpoint/state.safetensors");
        loop {
            let before = fs::read(&state).ok();
            let resume = ["run", "--resume", "killed"];
            let begin = ["run", "mine.toml", "--method", method, "--out", "killed"];
            let arguments = if before.is_some() { &resume[..] } else { &begin[..] };
            let mut command = tilp(path);
            command.args(arguments).args(["--quiet", "--checkpoint-every", "2"]);
            let mut child = command.stdout(std::process::Stdio::null()).spawn().unwrap();
            let ended = loop {
                if let Some(status) = child.try_wait().unwrap() {
                    break Some(status);
                }
                if fs::read(&state).ok() != before {
                    break None;
                }
            };
            if let Some(status) = ended {
                assert!(status.success());
                break;
            }
            kills += 1;
            assert!(kills < 100, "every resume starts from the same round");
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert_eq!(
            fingerprint(&path.join("killed")).unwrap(),
            prints[0],
            "{method}, {kills} kills"
        );
    }
}

/// A table with one thing wrong is refused by `run` and by `check` alike, with file and line.
fn refused_table(name: &str, file: &str, content: &str, words: &[&str]) {
    let scratch = scratch(name);
    scratch.put(file, content);
    for arguments in
        [["run", "mine.toml", "--quiet"].as_slice(), &["scenario", "check", "mine.toml"]]
    {
        let said = refused(&scratch, arguments);
        assert_names(&said, words);
    }
}

#[test]
fn a_bad_table_of_the_model_is_named_with_its_line() {
    let with = |from: &str, to: &str| MODEL.replace(from, to);
    let cases: [(&str, String, &[&str]); 9] = [
        (
            "number",
            with("2e9", "fast"),
            &["profile.model", "model.csv, line 4", "operations = fast"],
        ),
        ("whole", with("500", "0.5"), &["line 4", "activation_elements = 0.5", "whole number"]),
        ("negative", with("2e6", "-2"), &["line 4", "memory_bytes = -2"]),
        ("infinite", with("3e9", "inf"), &["line 5", "operations = inf", "finite"]),
        ("empty", with("300", ""), &["line 4", "trained_parameters is empty"]),
        ("short", with("third,250,", "third,"), &["line 5", "4 values, expected 5"]),
        ("unknown", with("memory_bytes", "ram"), &["line 2", "column `ram`", "memory_bytes"]),
        (
            "missing",
            MODEL.lines().map(|l| format!("{}\n", l.rsplit_once(',').map_or(l, |p| p.0))).collect(),
            &["no column `memory_bytes`"],
        ),
        ("none", MODEL.lines().take(2).map(|l| format!("{l}\n")).collect(), &["no line of values"]),
    ];
    for (name, content, words) in cases {
        refused_table(&format!("profile-model-{name}"), "model.csv", &content, words);
    }
}

#[test]
fn sizes_that_cannot_be_are_refused_with_what_was_expected() {
    let with = |from: &str, to: &str| MODEL.replace(from, to);
    let cases: [(&str, String, &[&str]); 4] = [
        ("falling", with("3e9", "1.5e9"), &["profile.cuts[2].operations = 1500000000", "at least"]),
        (
            "single",
            with("second,500,2e9,300,2e6\nthird,250,3e9,600,3e6\nwhole,10,4e9,1000,8e6\n", ""),
            &["model.cuts"],
        ),
        ("zero", with("1000,1e9", "0,1e9"), &["profile.cuts[0].activation_elements = 0"]),
        ("huge", with("8e6", "9e15"), &["profile.cuts[3].memory_bytes"]),
    ];
    for (name, content, words) in cases {
        refused_table(&format!("profile-sizes-{name}"), "model.csv", &content, words);
    }
}

#[test]
fn a_bad_table_of_the_terminals_is_named() {
    let with = |from: &str, to: &str| ARMS.replace(from, to);
    let cases: [(&str, String, &[&str]); 4] = [
        ("gain", with("-85", "loud"), &["profile.terminals", "arms.csv, line 3", "gain_db = loud"]),
        ("range", with("-85", "85"), &["profile.listed[1].gain_db = 85", "-300 to 50"]),
        ("twice", with("gain_db", "name"), &["line 1", "column `name` twice"]),
        (
            "task",
            with("arm 2,-85,4e9,700,place", "arm 2,-85,4e9,700,"),
            &["profile.listed[0].task = pick", "pick-place"],
        ),
    ];
    for (name, content, words) in cases {
        refused_table(&format!("profile-arms-{name}"), "arms.csv", &content, words);
    }
}

#[test]
fn a_table_that_is_not_there_or_too_long_is_named() {
    let scratch = scratch("profile-files");
    fs::remove_file(scratch.path().join("model.csv")).unwrap();
    let said = refused(&scratch, &["run", "mine.toml", "--quiet"]);
    assert_names(&said, &["profile.model: model.csv", "mine.toml"]);
    scratch.put("model.csv", vec![b'x'; (4 << 20) + 1]);
    assert_names(&refused(&scratch, &["run", "mine.toml", "--quiet"]), &["longer than"]);
    scratch.put("model.csv", [0xff, 0xfe, b'\n']);
    assert_names(&refused(&scratch, &["run", "mine.toml", "--quiet"]), &["UTF-8"]);
    let set = ["run", "mine.toml", "--quiet", "--set", "profile.model=builtin:gpt"];
    scratch.put("model.csv", MODEL);
    assert_names(&refused(&scratch, &set), &["builtin:gpt", "builtin:smolvla"]);
}

#[test]
fn a_bad_law_is_refused_with_its_range() {
    let scratch = scratch("profile-law");
    let cases = [
        (
            "profile.law.power=[2,1]",
            "profile.law.power = [2.0, 1.0], expected two ascending values",
        ),
        ("profile.law.base_success=[0,1]", "profile.law.base_success"),
        ("profile.law.other=[0.5,0.6]", "at most profile.law.kin"),
        ("profile.law.terminal_sd=-1", "profile.law.terminal_sd = -1, expected 0 to 10"),
        ("learning.trainable={lora=4}", "learning.trainable"),
        ("profile.samples=[0,10]", "profile.samples"),
        ("model.cuts=[1,2,3,4]", "ascending layers of 1..=3"),
        ("cell.n_terminals=9", "cell.n_terminals = 9, expected 4"),
    ];
    for (set, expected) in cases {
        let said = refused(&scratch, &["run", "mine.toml", "--quiet", "--set", set]);
        assert_names(&said, &[expected]);
    }
}

#[test]
fn robots_of_a_profile_scenario_are_refused() {
    let scratch = Scratch::new("profile-robots");
    let said = refused(&scratch, &["scenario", "health", "profile-smolvla"]);
    assert_names(&said, &["neither policy nor robots"]);
}
