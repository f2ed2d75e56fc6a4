//! `tilp tune`: what it finds, what it keeps, what it refuses.

use std::fs;

use serde_json::Value;
use tilp::record::fingerprint;

use crate::bad_input::refused;
use crate::{Scratch, succeed};

/// Runs that are long enough for one early measurement, and as cheap as they can be.
fn tune(scratch: &Scratch, more: &[&str]) -> Value {
    let asked = ["tune", "random", "tiny", "--seeds", "1000", "--rounds", "50", "--quiet"];
    let cheap = [
        "--set",
        "evaluation.report_episodes=1",
        "--set",
        "evaluation.final_episodes=1",
        "--set",
        "tasks.episode_steps=20",
    ];
    let kept = ["--out", "tune", "--format", "json"];
    let text = succeed(scratch.path(), &[&asked[..], &cheap, &kept, more].concat());
    serde_json::from_str(&text).unwrap()
}

#[test]
fn rates_are_judged_on_kept_runs_and_more_of_them_go_on_in_the_same_folder() {
    let scratch = Scratch::new("tune");
    let first = tune(&scratch, &["--rates", "0.001/0.002"]);
    let run = scratch.path().join("tune/runs/0.001_0.002/random-1000");
    let before = fingerprint(&run).unwrap();
    let scenario = fs::read_to_string(run.join("scenario.toml")).unwrap();
    assert!(scenario.contains("[methods.rates.random]\nserver_rate = 0.001"), "{scenario}");
    let second = tune(&scratch, &["--rates", "90/90,0.001/0.002"]);
    assert_eq!(fingerprint(&run).unwrap(), before);
    let rows = second["rates"].as_array().unwrap();
    assert_eq!(rows[0], first["rates"][0], "rows are in the order of the rates");
    assert_eq!(rows[0]["missing"], 0);
    assert!(rows[0]["success_mean"].is_number() && rows[0]["stable"].is_boolean(), "{second}");
    assert_eq!(rows[1]["stable"], false, "no training survives a rate of 90: {second}");
    assert_ne!(second["picked"]["server_rate"], 90.0);
    let table = fs::read_to_string(scratch.path().join("tune/tune.md")).unwrap();
    assert!(table.contains("| 0.001 | 0.002 |") && table.contains("| 90 | 90 |"), "{table}");

    let other = ["tune", "deficit", "tiny", "--out", "tune", "--rounds", "50"];
    let said = refused(&scratch, &other);
    assert!(said.contains("tune.json: hash is"), "{said}");
}

#[test]
fn seeds_of_reports_and_rates_that_are_none_are_refused() {
    let scratch = Scratch::new("tune-refused");
    let said = refused(&scratch, &["tune", "random", "tiny", "--seeds", "998..1001"]);
    assert!(said.contains("seed is 998, expected 1000 or more"), "{said}");
    let said = refused(&scratch, &["tune", "random", "tiny", "--rates", "0.1,fast"]);
    assert!(said.contains("rate is `fast`, expected a number above 0"), "{said}");
    let said = refused(&scratch, &["tune", "random", "tiny", "--rates", "101"]);
    assert!(said.contains("methods.rates.random.server_rate"), "{said}");
    let said = refused(&scratch, &["tune", "magic", "tiny"]);
    assert!(said.contains("one of tilp, fedavg"), "{said}");
    assert!(!scratch.path().join("studies").exists());
}
