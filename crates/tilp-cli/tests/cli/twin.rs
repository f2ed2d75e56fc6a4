//! `tilp twin`: what it prints and draws, and what it refuses in one line.

use std::fs;

use serde_json::Value;

use crate::bad_input::{assert_names, refused};
use crate::scratch::SHORT;
use crate::{Scratch, succeed};

const FIGURES: [&str; 7] = [
    "delay.svg",
    "energy.svg",
    "loss.svg",
    "decrease.svg",
    "decrease-tasks.svg",
    "success.svg",
    "tasks.svg",
];

#[test]
fn a_finished_run_of_any_method_gives_a_table_and_figures() {
    let scratch = Scratch::with_run("twin-text");
    let said = succeed(scratch.path(), &["twin", "done"]);
    assert!(said.starts_with("twin of deficit on tiny, seed 0, 12 rounds\n"), "{said}");
    let lines = ["network delay ", "network energy ", "training loss ", "training decrease "];
    for line in lines.into_iter().chain(["task success ", "in one round", "Brier"]) {
        assert!(said.contains(line), "no `{line}` in {said}");
    }
    assert!(said.ends_with("figures in done/twin\n"), "{said}");
    for name in FIGURES {
        let svg = fs::read_to_string(scratch.path().join("done/twin").join(name)).unwrap();
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"), "{name}");
        for (end, start) in
            [("png", &b"\x89PNG\r\n\x1a\n"[..]), ("pdf", b"%PDF-"), ("csv", b"panel,")]
        {
            let other = scratch.path().join("done/twin").join(name).with_extension(end);
            let bytes = fs::read(&other).unwrap();
            assert!(bytes.starts_with(start) && bytes.len() > 100, "{}", other.display());
        }
    }
    assert_eq!(succeed(scratch.path(), &["twin", "done"]), said, "a second time it is the same");
}

#[test]
fn json_holds_every_number_and_the_figures_go_where_they_are_asked_to() {
    let scratch = Scratch::with_run("twin-json");
    let arguments = ["twin", "done", "--format", "json", "--out", "a/b"];
    let report: Value = serde_json::from_str(&succeed(scratch.path(), &arguments)).unwrap();
    assert_eq!((&report["method"], &report["rounds"]), (&"deficit".into(), &12.into()));
    assert_eq!(report["sub_twins"].as_array().unwrap().len(), 6);
    assert!(
        report["decreases"][0]["rmse_after"].is_number()
            && report["decreases"][0]["task"].is_null()
    );
    for field in ["n", "error_before", "error_after", "coverage_after", "error_first"] {
        assert!(report["sub_twins"][0][field].is_number(), "{field}: {report}");
    }
    assert!(report["curve"]["groups"][0]["measured"].is_array());
    assert!(FIGURES.iter().all(|name| scratch.path().join("a/b").join(name).is_file()));
    assert!(!scratch.path().join("done/twin").exists());
}

#[test]
fn every_forecast_stands_against_the_naive_rules_and_the_twin_can_be_another() {
    let scratch = Scratch::new("twin-contests");
    // Three calibrations: a forecast of success is compared with earlier ones.
    let run = ["run", "tiny", "--method", "deficit", "--rounds", "12", "--out", "done", "--quiet"];
    succeed(scratch.path(), &[&run[..], &["--set", "evaluation.calibrate_every=4"]].concat());
    let json = |more: &[&str]| -> Value {
        let arguments = [&["twin", "done", "--format", "json"], more].concat();
        serde_json::from_str(&succeed(scratch.path(), &arguments)).unwrap()
    };
    let plain = json(&[]);
    let contests = plain["contests"].as_array().unwrap();
    assert_eq!(contests.len(), 12);
    let delay = &contests[0];
    assert_eq!(
        (&delay["quantity"], &delay["naive"][1]["rule"]),
        (&"network delay".into(), &"own mean".into())
    );
    assert!(delay["twin"].is_number() && delay["better"].is_boolean(), "{delay}");
    let other = json(&["--set", "methods.tilp.twin.task.by=terminal"]);
    assert_eq!(other["contests"][0], plain["contests"][0], "the network is not concerned");
    assert_ne!(other["contests"][10]["twin"], plain["contests"][10]["twin"]);
    let said = succeed(scratch.path(), &["twin", "done"]);
    assert!(
        said.contains("against the naive rules") && said.contains("success of a terminal"),
        "{said}"
    );
    let said = refused(&scratch, &["twin", "done", "--set", "learning.batch=3"]);
    assert_names(&said, &["learning.batch=3", "expected a key of methods.tilp"]);
    let said = refused(&scratch, &["twin", "done", "--set", "methods.tilp.twin.task.by=robot"]);
    assert_names(&said, &["methods.tilp.twin.task.by", "robot"]);
}

#[test]
fn a_run_can_go_on_after_its_twin_was_looked_at() {
    let scratch = Scratch::with_run("twin-resume");
    succeed(scratch.path(), &["twin", "done"]);
    succeed(scratch.path(), &["run", "--resume", "done", "--quiet"]);
}

#[test]
fn a_folder_that_is_no_run_is_refused() {
    let scratch = Scratch::new("twin-no-run");
    scratch.put("notes.txt", "");
    for folder in [".", "nowhere", "notes.txt"] {
        let said = refused(&scratch, &["twin", folder]);
        assert_names(&said, &[&format!("run folder {folder}"), "manifest.json", "expected"]);
    }
    assert_names(&refused(&scratch, &["twin"]), &["<DIR>"]);
}

/// A finished run without its events, as version 1 left it: its rows are read instead.
fn rows_only(name: &str) -> Scratch {
    let scratch = Scratch::with_run(name);
    fs::remove_file(scratch.path().join("done/events.jsonl")).unwrap();
    scratch
}

#[test]
fn events_that_are_damaged_are_refused_with_their_line() {
    let scratch = Scratch::with_run("twin-events");
    let path = scratch.path().join("done/events.jsonl");
    let events = fs::read_to_string(&path).unwrap();
    let second = events.lines().nth(1).unwrap();
    for damaged in [events.replacen(second, "{}", 1), events.replacen(second, "", 1)] {
        fs::write(&path, damaged).unwrap();
        assert_names(&refused(&scratch, &["twin", "done"]), &["events.jsonl"]);
    }
}

#[test]
fn a_run_that_is_not_finished_is_refused() {
    let scratch = rows_only("twin-unfinished");
    for name in ["calibration.csv", "terminals.parquet", "rounds.csv"] {
        fs::remove_file(scratch.path().join("done").join(name)).unwrap();
        assert_names(&refused(&scratch, &["twin", "done"]), &["run folder done", name]);
    }
}

#[test]
fn a_truncated_or_changed_table_of_terminals_is_refused_at_any_length() {
    let scratch = rows_only("twin-truncated");
    let name = "done/terminals.parquet";
    let bytes = fs::read(scratch.path().join(name)).unwrap();
    for length in [0, 1, 7, 8, 100, bytes.len() / 2, bytes.len() - 9, bytes.len() - 1] {
        scratch.put(name, &bytes[..length]);
        let said = refused(&scratch, &["twin", "done"]);
        assert_names(&said, &[name, "truncated or corrupt, expected a whole Parquet file"]);
    }
}

#[test]
fn tables_that_do_not_fit_each_other_are_refused() {
    let scratch = rows_only("twin-tables");
    let read = |name: &str| fs::read_to_string(scratch.path().join("done").join(name)).unwrap();
    let (rounds, calibration) = (read("rounds.csv"), read("calibration.csv"));
    let refuse = |name: &str, content: &str, words: &[&str]| {
        let whole = read(name);
        scratch.put(&format!("done/{name}"), content);
        let said = refused(&scratch, &["twin", "done"]);
        assert_names(&said, words);
        scratch.put(&format!("done/{name}"), whole);
    };
    let header = rounds.lines().next().unwrap();
    refuse("rounds.csv", &format!("{header}\n"), &["rounds.csv: no rounds"]);
    refuse("rounds.csv", "", &["rounds.csv"]);
    let fewer: Vec<&str> = rounds.lines().take(12).collect();
    refuse(
        "rounds.csv",
        &(fewer.join("\n") + "\n"),
        &["72 rows, expected 66: 11 rounds of the terminals present"],
    );
    refuse("rounds.csv", &rounds.replace("\n2,", "\n3,"), &["round 3, expected 2"]);
    refuse("calibration.csv", &calibration.replace("\n10,1,", "\n10,7,"), &["calibration.csv"]);
    refuse("calibration.csv", "round\n1\n", &["calibration.csv: other columns"]);
    let scenario = read("scenario.toml");
    let other = scenario.replace("n_terminals = 6", "n_terminals = 7");
    refuse("scenario.toml", &other, &["terminals.parquet: 72 rows, expected 84"]);
    refuse("manifest.json", "{\"method\": \"deficit\"}", &["manifest.json: no field `seed`"]);
    // Another seed deals out other tasks.
    let manifest = read("manifest.json").replace("\"seed\": 0", "\"seed\": 1");
    refuse("manifest.json", &manifest, &["terminals.parquet: row", "task = ", "expected"]);
}

#[test]
fn a_folder_for_figures_that_cannot_be_made_is_refused() {
    let scratch = Scratch::with_run("twin-out");
    scratch.put("taken", "");
    let said = refused(&scratch, &["twin", "done", "--out", "taken"]);
    assert_names(&said, &["cannot create taken"]);
}

#[test]
fn a_run_of_one_round_has_a_twin_too() {
    let scratch = Scratch::new("twin-one");
    let one = ["--rounds", "1", "--quiet", "--method", "random", "--out", "one"];
    succeed(scratch.path(), &[&SHORT[..2], &one].concat());
    let said = succeed(scratch.path(), &["twin", "one"]);
    assert!(said.contains("no terminal was scheduled more than 30 times"), "{said}");
    assert!(said.contains("no round of the run was looked at"), "{said}");
}
