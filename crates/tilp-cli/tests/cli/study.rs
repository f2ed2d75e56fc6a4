//! Studies from the command line: shards, kills, bad input.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use tilp::record::fingerprint;

use crate::bad_input::refused;
use crate::{Scratch, run, succeed, text, tilp};

const STUDY: [&str; 9] = [
    "compare",
    "tiny",
    "--methods",
    "random,tilp,asfl+guard",
    "--seeds",
    "0..2",
    "--rounds",
    "6",
    "--quiet",
];

fn tables(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let is_file = |entry: &fs::DirEntry| entry.file_type().unwrap().is_file();
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap).filter(is_file);
    let read = |entry: fs::DirEntry| {
        (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())
    };
    // The plan is not a result; only folders with runs contain it.
    let asked = ["study.json", "scenario.toml"];
    let mut files: Vec<_> =
        entries.map(read).filter(|(name, _)| !asked.contains(&name.as_str())).collect();
    files.sort();
    assert!(files.iter().any(|(name, _)| name == "report.html"));
    assert!(files.iter().any(|(name, _)| name == "convergence.png"));
    files
}

fn prints(folder: &Path) -> Vec<String> {
    let mut runs: Vec<_> = fs::read_dir(folder.join("runs/tiny"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    runs.sort();
    runs.iter().map(|run| format!("{:?}", fingerprint(run).unwrap())).collect()
}

#[test]
fn a_report_does_not_write_over_runs_that_it_does_not_have() {
    let scratch = Scratch::new("study-place");
    let small = ["compare", "tiny", "--methods", "random", "--rounds", "2", "--quiet", "--seeds"];
    for (seeds, more) in [("0..2", &["--out", "whole"][..]), ("0", &["--out", "other"])] {
        succeed(scratch.path(), &[&small[..], &[seeds], more].concat());
    }
    let shard = ["0..2", "--shard", "0/2", "--out", "shard"];
    succeed(scratch.path(), &[&small[..], &shard].concat());
    let said = refused(&scratch, &["report", "other", "--out", "whole"]);
    assert!(said.contains("whole: holds another study"), "{said}");
    let said = refused(&scratch, &["report", "shard", "--out", "whole"]);
    assert!(said.contains("whole: holds runs that the report would lose"), "{said}");
    succeed(scratch.path(), &["report", "shard", "whole", "--out", "whole"]);
    succeed(scratch.path(), &["report", "whole", "--out", "shard"]);
}

#[test]
fn two_shards_put_together_are_the_study_in_one_piece() {
    let scratch = Scratch::new("study-shards");
    succeed(scratch.path(), &[&STUDY[..], &["--out", "whole"]].concat());
    for (shard, out) in [("0/2", "first"), ("1/2", "second")] {
        succeed(scratch.path(), &[&STUDY[..], &["--shard", shard, "--out", out]].concat());
    }
    succeed(scratch.path(), &["report", "second", "first", "--out", "both"]);
    let path = |name: &str| scratch.path().join(name);
    assert_eq!(tables(&path("both")), tables(&path("whole")));
    let mut both = [prints(&path("first")), prints(&path("second"))].concat();
    let mut whole = prints(&path("whole"));
    both.sort();
    whole.sort();
    assert_eq!(both, whole);
}

#[test]
fn a_study_that_is_killed_again_and_again_loses_nothing() {
    let scratch = Scratch::new("study-kills");
    succeed(scratch.path(), &[&STUDY[..], &["--out", "whole"]].concat());
    let often = ["--checkpoint-every", "1", "--jobs", "2", "--out", "killed"];
    let arguments = [&STUDY[..], &often].concat();
    for kill in 0..10u64 {
        let mut command = tilp(scratch.path());
        let mut child = command.args(&arguments).stdout(Stdio::null()).spawn().unwrap();
        // Moments spread over a run and its set-up; how far it gets does not matter.
        sleep(Duration::from_millis(40 + kill * 97 % 400));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    succeed(scratch.path(), &arguments);
    let path = |name: &str| scratch.path().join(name);
    assert_eq!(tables(&path("killed")), tables(&path("whole")));
    assert_eq!(prints(&path("killed")), prints(&path("whole")));
}

#[test]
fn bad_studies_are_one_line_and_exit_code_2() {
    let scratch = Scratch::new("study-bad");
    let cases: [(&[&str], &str); 10] = [
        (&["compare", "tiny", "--methods", "magic"], "magic"),
        (&["compare", "tiny", "--seeds", "3..1"], "seeds are `3..1`"),
        (&["compare", "tiny", "--seeds", "1,1"], "seeds are `1,1`"),
        (&["compare", "tiny", "--shard", "2/2"], "shard is `2/2`"),
        (&["compare", "nowhere"], "nowhere"),
        (&["sweep", "colour", "tiny"], "axis is `colour`"),
        (&["sweep", "mass", "tiny", "--values", "-1"], "mass is `-1`"),
        (&["report", "nothing"], "no `study.json`"),
        (&["sweep", "late", "tiny", "--values", "never"], "late is `never`"),
        (&["sweep", "retention", "tiny", "--values", "0.5,0.5"], "two labels for the folder `0.5`"),
    ];
    for (arguments, expected) in cases {
        let line = refused(&scratch, arguments);
        assert!(line.contains(expected), "{arguments:?}: {line}");
    }
}

#[test]
fn a_folder_of_another_study_is_left_alone() {
    let scratch = Scratch::new("study-other");
    let study = ["compare", "tiny", "--rounds", "1", "--methods", "random", "--quiet"];
    succeed(scratch.path(), &[&study[..], &["--seeds", "0", "--out", "s"]].concat());
    let before = tables(&scratch.path().join("s"));
    let other = ["--seeds", "1", "--out", "s", "--set", "limits.deadline_s=4.0"];
    let line = refused(&scratch, &[&study[..], &other].concat());
    assert!(line.contains("holds another study (limits.deadline_s is 5.0, not 4.0)"), "{line}");
    assert_eq!(tables(&scratch.path().join("s")), before);
    // Two studies make one report, in a folder of its own.
    succeed(scratch.path(), &[&study[..], &["--seeds", "1", "--out", "t"]].concat());
    assert!(refused(&scratch, &["report", "s", "t"]).contains("--out is missing"));
    succeed(scratch.path(), &["report", "s", "t", "--out", "both"]);
    let page = fs::read_to_string(scratch.path().join("both/report.html")).unwrap();
    assert!(page.contains("href=\"t/runs.csv\""), "studies keep the names of their folders");
    assert!(scratch.path().join("both/t/runs.csv").exists());
    assert_eq!(tables(&scratch.path().join("s")), before);
}

#[test]
fn a_first_look_measures_often_and_says_what_it_cannot_tell() {
    let scratch = Scratch::new("study-first-look");
    let study = ["compare", "tiny", "--quick", "--rounds", "12", "--methods", "tilp,random"];
    let said = succeed(scratch.path(), &[&study[..], &["--quiet"]].concat());
    assert!(said.contains("12 of the scenario's 20 rounds: rankings after 12 rounds"), "{said}");
    let folder = scratch.path().join("studies/compare-tiny-quick");
    let scenario = fs::read_to_string(folder.join("scenario.toml")).unwrap();
    assert!(scenario.contains("measure_every = 10"), "{scenario}");
    let aims = fs::read_to_string(folder.join("aims.md")).unwrap();
    assert!(aims.contains("none: 1 seed, needs 3") && !aims.contains("| met"), "{aims}");
    let table = fs::read_to_string(folder.join("table.csv")).unwrap();
    assert!(table.lines().skip(1).all(|line| line.ends_with(',')), "no p-value of one seed");
    // A scenario of fewer rounds is not made longer, and a number of the user's holds.
    let (none, three): (&[&str], &[&str]) = (&[], &["--set", "rounds=3"]);
    for (out, more, rounds) in [("short", none, "rounds = 20"), ("set", three, "rounds = 3")] {
        let study = ["compare", "tiny", "--quick", "--methods", "random", "--quiet", "--out", out];
        succeed(scratch.path(), &[&study[..], more].concat());
        let scenario = fs::read_to_string(scratch.path().join(out).join("scenario.toml")).unwrap();
        assert!(scenario.lines().any(|line| line == rounds), "{scenario}");
    }
}

#[test]
fn on_equal_budgets_nobody_uses_more_than_the_other_did() {
    let scratch = Scratch::new("study-equal-budget");
    let study = ["compare", "tiny", "--equal-budget", "random", "--seeds", "0..2"];
    let more = ["--budgets", "seconds,joules", "--rounds", "8", "--quiet", "--out", "s"];
    succeed(scratch.path(), &[&study[..], &more].concat());
    let summary = |run: &str| -> serde_json::Value {
        let path = scratch.path().join("s").join(run).join("summary.json");
        serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
    };
    for (kind, metric) in [("seconds", "clock_total_s"), ("joules", "energy_total_j")] {
        for (ours, theirs) in [("tilp", "random"), ("random", "tilp")] {
            for seed in 0..2 {
                let budget = summary(&format!("runs/tiny/{theirs}-{seed}"));
                let bounded = format!("equal-budget/runs/{kind}_of_{theirs}/{ours}-{seed}");
                let run = summary(&bounded);
                let [budget, used] = [&budget, &run].map(|one| one[metric].as_f64().unwrap());
                assert!(used <= budget * (1.0 + 1e-12), "{bounded}: {used} of {budget}");
                assert!(run["budget_used"][kind].as_f64().unwrap() <= 1.0, "{bounded}");
            }
        }
    }
    let table = fs::read_to_string(scratch.path().join("s/equal-budget/equal-budget.md")).unwrap();
    assert_eq!(table.lines().filter(|line| line.contains("| random | 2 |")).count(), 4, "{table}");
    let wrong = ["compare", "tiny", "--equal-budget", "random", "--budgets", "hours"];
    let said = refused(&scratch, &wrong);
    assert!(said.contains("expected seconds, joules or all"), "{said}");
    for rivals in ["tilp", "random,random"] {
        let said = refused(&scratch, &["compare", "tiny", "--equal-budget", rivals]);
        assert!(said.contains("expected methods other than tilp, each once"), "{said}");
    }
}

#[test]
fn a_shard_says_why_its_runs_failed_even_when_it_is_quiet() {
    let scratch = Scratch::new("study-failed");
    let study = ["compare", "tiny", "--rounds", "2", "--methods", "random", "--seeds", "0..2"];
    let shard = [&study[..], &["--quiet", "--shard", "0/2", "--out", "s"]].concat();
    succeed(scratch.path(), &shard);
    // As if it had been killed and its checkpoint damaged.
    let run_folder = scratch.path().join("s/runs/tiny/random-0");
    fs::remove_file(run_folder.join("summary.json")).unwrap();
    fs::write(run_folder.join("checkpoint/state.safetensors"), "damaged").unwrap();
    let output = run(scratch.path(), &shard);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stdout);
    assert!(said.starts_with("failed: random at tiny, seed 0: checkpoint "), "{said}");
    assert!(said.contains("0 runs done, 1 failed"), "{said}");
    assert!(text(&output.stderr).contains("1 runs failed, the reasons are above"));
    // A report written elsewhere has the reason too, and so has a report of that.
    succeed(scratch.path(), &["report", "s", "--out", "t"]);
    let again = succeed(scratch.path(), &["report", "t"]);
    assert!(again.contains("failed: random at tiny, seed 0: checkpoint "), "{again}");
}

#[test]
fn what_the_system_refuses_is_no_bad_input() {
    let scratch = Scratch::new("study-refused");
    let long = "a".repeat(300);
    let output = run(scratch.path(), &["compare", "tiny", "--quiet", "--out", &long]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr).lines().count(), 1);
}

#[test]
fn a_first_look_does_not_stand_in_the_way_of_the_whole_study() {
    let scratch = Scratch::new("study-quick");
    let study = ["compare", "tiny", "--rounds", "1", "--methods", "random", "--quiet"];
    succeed(scratch.path(), &[&study[..], &["--quick"]].concat());
    succeed(scratch.path(), &[&study[..], &["--seeds", "0..2"]].concat());
    for folder in ["studies/compare-tiny-quick", "studies/compare-tiny"] {
        assert!(scratch.path().join(folder).join("report.html").exists(), "{folder}");
    }
}

#[test]
fn a_plan_from_elsewhere_cannot_write_outside_its_folder() {
    let scratch = Scratch::new("study-outside");
    let study = ["compare", "tiny", "--rounds", "1", "--methods", "random", "--quiet"];
    succeed(scratch.path(), &[&study[..], &["--seeds", "0", "--out", "s"]].concat());
    let plan = scratch.path().join("s/study.json");
    let good = fs::read_to_string(&plan).unwrap();
    for (from, to) in [("compare", "../../x"), ("tiny", "../../x"), ("random", "../x")] {
        fs::write(&plan, good.replace(from, to)).unwrap();
        refused(&scratch, &["report", "s", "--out", "r"]);
    }
    // No point at all is refused like anything else.
    let mut empty: serde_json::Value = serde_json::from_str(&good).unwrap();
    empty["points"] = serde_json::json!([]);
    fs::write(&plan, empty.to_string()).unwrap();
    assert!(refused(&scratch, &["report", "s"]).contains("points are none"));
}
