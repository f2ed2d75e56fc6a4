//! What is printed, where, and in which form.

use std::fs;
use std::process::Stdio;

use serde_json::Value;

use crate::scratch::SHORT;
use crate::{Scratch, run, succeed, text, tilp};

/// The metrics of the specification, but for those of wall time.
const METRICS: [&str; 20] = [
    "success_final",
    "rta",
    "latency_mean_s",
    "energy_total_j",
    "volume_total_bytes",
    "violation_mean",
    "tta_s",
    "eta_j",
    "air_total_bytes",
    "latency_p50_s",
    "latency_p95_s",
    "success_far",
    "success_worst_task",
    "participation_min",
    "late_total",
    "unfit_total",
    "sync_total_bytes",
    "energy_radio_j",
    "energy_compute_j",
    "eval_episodes_total",
];

#[test]
fn json_is_one_object_with_every_metric_and_equals_the_summary() {
    let scratch = Scratch::new("json");
    let arguments = [&SHORT[..], &["--format", "json", "--quiet", "--out", "a"]].concat();
    let output = run(scratch.path(), &arguments);
    assert!(output.status.success());
    assert_eq!(text(&output.stderr), "");
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    for metric in METRICS {
        assert!(printed.get(metric).is_some(), "no {metric}");
    }
    for threshold in ["0.6", "0.7", "0.8"] {
        assert!(printed["rta"].get(threshold).is_some());
    }
    let curve = printed["success_curve"].as_array().unwrap();
    let rounds: Vec<_> = curve.iter().map(|point| point[0].as_u64().unwrap()).collect();
    assert_eq!(rounds, [0, 6, 12]);
    let read = |name: &str| fs::read(scratch.path().join("a").join(name)).unwrap();
    assert_eq!(printed, serde_json::from_slice::<Value>(&read("summary.json")).unwrap());
    let timing: Value = serde_json::from_slice(&read("timing.json")).unwrap();
    assert!(timing["plan_ms_mean"].is_f64() && timing["plan_ms_p99"].is_f64());
}

#[test]
fn piped_progress_is_plain_lines_and_the_result_goes_elsewhere() {
    let scratch = Scratch::new("piped");
    let output = run(scratch.path(), &[&SHORT[..], &["--out", "a"]].concat());
    assert!(output.status.success());
    let progress = text(&output.stderr);
    assert!(progress.lines().last().unwrap().starts_with("round 12/12 success "), "{progress}");
    assert!(!progress.chars().any(|c| c.is_control() && c != '\n'), "{progress:?}");
    let result = text(&output.stdout);
    assert!(result.starts_with("tilp on tiny, seed 0\n"), "{result}");
    assert!(result.contains("\nresults in a\nnext: tilp report a "), "{result}");
}

#[test]
fn a_run_folder_holds_the_files_of_the_specification() {
    let scratch = Scratch::with_run("files");
    let done = scratch.path().join("done");
    for name in [
        "manifest.json",
        "scenario.toml",
        "rounds.csv",
        "terminals.parquet",
        "calibration.csv",
        "summary.json",
        "model.safetensors",
        "checkpoint/state.safetensors",
        "timing.json",
        "timing.jsonl",
        "events.jsonl",
        "episodes.parquet",
    ] {
        assert!(done.join(name).is_file(), "no {name}");
    }
    // The lock of a run stays in its folder.
    let hidden = |name: &str| name.starts_with('.') && name != ".lock";
    let names = scratch.listing();
    let mut names = names.iter().map(|path| path.file_name().unwrap().to_string_lossy());
    assert!(!names.clone().any(|name| hidden(&name)), "something half written is left");
    assert!(names.any(|name| name.starts_with("events.out.tfevents.")));
    let rows = fs::read_to_string(done.join("rounds.csv")).unwrap();
    assert_eq!(rows.lines().count(), 1 + 12);
    let manifest: Value =
        serde_json::from_slice(&fs::read(done.join("manifest.json")).unwrap()).unwrap();
    for field in ["version", "commit", "method", "seed", "scenario_hash", "host", "parts"] {
        assert!(manifest.get(field).is_some(), "no {field}");
    }
}

#[test]
fn the_folder_of_a_run_is_named_after_what_is_run_and_stays_below_runs() {
    let scratch = Scratch::new("named");
    let short = ["run", "tiny", "--quiet", "--rounds", "1"];
    succeed(scratch.path(), &[&short[..], &["--method", "greedy", "--seed", "3"]].concat());
    assert!(scratch.path().join("runs/tiny-greedy-3/summary.json").is_file());
    succeed(scratch.path(), &[&short[..], &["--set", "name=../../up"]].concat());
    assert!(scratch.path().join("runs/.._.._up-tilp-0/summary.json").is_file());
}

#[test]
fn a_reader_who_closes_the_pipe_early_is_no_failure() {
    let scratch = Scratch::new("closed");
    for arguments in [&["scenario", "show", "default"][..], &["--help"], &["scenario", "list"]] {
        let mut child =
            tilp(scratch.path()).args(arguments).stdout(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        assert_eq!(child.wait().unwrap().code(), Some(0), "{arguments:?}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_result_that_cannot_be_printed_is_a_failure_and_progress_that_cannot_is_none() {
    let scratch = Scratch::new("full");
    let full = || fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let show = tilp(scratch.path()).args(["scenario", "list"]).stdout(full()).output().unwrap();
    assert_eq!(show.status.code(), Some(1));
    assert!(text(&show.stderr).starts_with("error: cannot print the result"));
    let short = ["run", "tiny", "--rounds", "1"];
    let status = tilp(scratch.path()).args(short).stdout(Stdio::null()).stderr(full()).status();
    assert_eq!(status.unwrap().code(), Some(0));
}

#[test]
fn every_verb_has_help_and_the_first_lists_the_exit_codes() {
    let scratch = Scratch::new("help");
    let help = succeed(scratch.path(), &["--help"]);
    for line in ["0    done", "1    failed", "2    bad usage or bad input", "130 ", "143 "] {
        assert!(help.contains(line), "no `{line}` in {help}");
    }
    for verb in ["run", "tune", "twin", "plan", "scenario", "policy"] {
        assert!(help.contains(&format!("  {verb} ")), "no {verb} in {help}");
    }
    for verb in [
        &["run"][..],
        &["tune"],
        &["twin"],
        &["plan"],
        &["scenario"],
        &["scenario", "list"],
        &["scenario", "show"],
        &["scenario", "check"],
        &["scenario", "schema"],
        &["scenario", "health"],
        &["scenario", "draw"],
        &["policy"],
        &["policy", "pretrain"],
    ] {
        let help = succeed(scratch.path(), &[verb, &["--help"]].concat());
        assert!(help.contains(&format!("Usage: tilp {}", verb.join(" "))), "{help}");
    }
    assert!(succeed(scratch.path(), &["run", "--help"]).contains("Exit codes:"));
    assert!(succeed(scratch.path(), &["--version"]).starts_with("tilp "));
}

/// What people read at a terminal: no line of a result is wider than 80 columns. Lines with the name of a
/// folder are left out.
#[test]
fn text_results_fit_80_columns() {
    let scratch = Scratch::new("columns");
    let run = [&SHORT[..], &["--quiet", "--out", "run"]].concat();
    let mut said = vec![succeed(scratch.path(), &run)];
    let example = succeed(scratch.path(), &["plan", "tiny", "--example"]);
    // One terminal out of reach: a reason in words.
    scratch.put("seen.json", &example);
    let (none, too_short): (&[&str], &[&str]) = (&[], &["--set", "limits.deadline_s=0.001"]);
    for more in [none, too_short] {
        let input = fs::File::open(scratch.path().join("seen.json")).unwrap();
        let plan = [&["plan", "tiny"][..], more].concat();
        let output = tilp(scratch.path()).args(plan).stdin(input).output().unwrap();
        said.push(text(&output.stdout));
    }
    for arguments in [
        &["twin", "run"][..],
        &["channel", "tiny", "--out", "channel"],
        &["verify", "run"],
        &["scenario", "list"],
        &["scenario", "check", "tiny"],
    ] {
        said.push(succeed(scratch.path(), arguments));
    }
    assert!(said[1].contains("success    return") && said[2].contains("best channel"), "{said:?}");
    let names_folder = |line: &&str| !line.starts_with("next: ") && !line.starts_with("hash ");
    for line in said.iter().flat_map(|text| text.lines()).filter(names_folder) {
        assert!(line.chars().count() <= 80, "{} columns: {line}", line.chars().count());
    }
}
