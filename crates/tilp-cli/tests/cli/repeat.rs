//! The same scenario, method and seed give the same bytes: for any number of threads, and after
//! any kill.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tilp::record::{Event, EventId, RunFolder, fingerprint};

use crate::scratch::SHORT;
use crate::{Scratch, succeed, tilp};

const OFTEN: [&str; 3] = ["--quiet", "--checkpoint-every", "3"];

fn same_with_one_thread_and_with_two(name: &str, arguments: &[&str]) {
    let scratch = Scratch::new(&format!("threads-{name}"));
    let prints = ["1", "2"].map(|threads| {
        let mut command = tilp(scratch.path());
        command.args(arguments).args(["--quiet", "--out", threads]);
        command.env("RAYON_NUM_THREADS", threads).stdout(Stdio::null());
        assert!(command.status().unwrap().success());
        fingerprint(&scratch.path().join(threads)).unwrap()
    });
    assert_eq!(prints[0], prints[1]);
}

#[test]
fn splitfed_does_not_depend_on_the_number_of_threads() {
    same_with_one_thread_and_with_two(
        "splitfed",
        &[&SHORT[..], &["--method", "splitfed"]].concat(),
    );
}

#[test]
fn random_does_not_depend_on_the_number_of_threads() {
    same_with_one_thread_and_with_two("random", &[&SHORT[..], &["--method", "random"]].concat());
}

#[test]
fn greedy_does_not_depend_on_the_number_of_threads() {
    same_with_one_thread_and_with_two("greedy", &[&SHORT[..], &["--method", "greedy"]].concat());
}

#[test]
fn deficit_does_not_depend_on_the_number_of_threads() {
    same_with_one_thread_and_with_two("deficit", &[&SHORT[..], &["--method", "deficit"]].concat());
}

#[test]
fn tilp_does_not_depend_on_the_number_of_threads() {
    same_with_one_thread_and_with_two("tilp", &[&SHORT[..], &["--method", "tilp"]].concat());
}

#[test]
fn oracle_does_not_depend_on_the_number_of_threads() {
    same_with_one_thread_and_with_two("oracle", &[&SHORT[..], &["--method", "oracle"]].concat());
}

#[test]
fn tiny_itself_does_not_depend_on_the_number_of_threads() {
    same_with_one_thread_and_with_two("tiny", &["run", "tiny"]);
}

#[test]
fn another_seed_gives_another_run() {
    let scratch = Scratch::with_run("seeds");
    let seed = ["--quiet", "--seed", "1", "--out", "other"];
    succeed(scratch.path(), &[&SHORT[..], &seed].concat());
    let rows = |run: &str| fs::read(scratch.path().join(run).join("rounds.csv")).unwrap();
    assert_ne!(rows("done"), rows("other"));
}

/// Starts the run in the folder `name`, or resumes it if it has begun.
fn start(folder: &Path, name: &str) -> Child {
    let begun = folder.join(name).join("manifest.json").exists();
    let arguments = match begun {
        true => [&["run", "--resume", name], &OFTEN[..]].concat(),
        false => [&SHORT[..], &["--out", name], &OFTEN].concat(),
    };
    tilp(folder).args(arguments).stdout(Stdio::null()).spawn().expect("the program starts")
}

fn finish(folder: &Path, name: &str) {
    assert!(start(folder, name).wait().unwrap().success());
}

/// What can be read of a run that was killed: every row and event up to the last complete round,
/// no event twice and none left out. Returns the number of rounds; 0 before there is a folder.
fn readable_rounds(folder: &Path) -> u64 {
    if !folder.join("manifest.json").exists() {
        return 0;
    }
    let run = RunFolder::open(folder).unwrap();
    let (events, rows) = (run.read_events().unwrap(), run.read_rounds().unwrap());
    let mut last = EventId(0, 0);
    for event in events.iter().skip(1) {
        let (id, before) = (event.id(), last);
        let follows = id == EventId(before.0, before.1 + 1) || id == EventId(before.0 + 1, 0);
        assert!(follows, "{id:?} after {before:?}");
        last = id;
    }
    assert_eq!(events.first().map(Event::id), Some(EventId(0, 0)));
    for (row, expected) in rows.iter().zip(1..) {
        assert_eq!(row.round, expected);
    }
    // The other files are whole and of some round that is done.
    let rounds = rows.len() as u64;
    assert!(run.read_terminals().unwrap().iter().all(|row| row.round <= rounds));
    run.read_episodes().unwrap();
    run.read_calibrations().unwrap();
    let executed = events.iter().filter(|event| matches!(event, Event::Executed(_))).count() as u64;
    assert!(executed == rounds || executed == rounds + 1, "{executed} events, {rounds} rows");
    rounds
}

#[test]
fn a_run_killed_at_any_of_twenty_random_moments_and_resumed_gives_the_same_bytes() {
    let scratch = Scratch::new("killed");
    let before = Instant::now();
    finish(scratch.path(), "whole");
    let duration = before.elapsed();
    let whole = fingerprint(&scratch.path().join("whole")).unwrap();
    assert_eq!(readable_rounds(&scratch.path().join("whole")), 12);
    let (mut random, mut reached) = (20u64, Vec::new());
    for moment in 0..20 {
        let folder = scratch.path().join("killed");
        let mut child = start(scratch.path(), "killed");
        // Whenever that is: before the folder is there, in a round, at the end.
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        sleep(duration.mul_f64((random >> 11) as f64 / (1u64 << 53) as f64));
        child.kill().unwrap();
        child.wait().unwrap();
        reached.push(readable_rounds(&folder));
        finish(scratch.path(), "killed");
        assert_eq!(fingerprint(&folder).unwrap(), whole, "moment {moment}");
        assert_eq!(readable_rounds(&folder), 12);
        fs::remove_dir_all(&folder).unwrap();
    }
    assert!(reached.iter().any(|rounds| (1..12).contains(rounds)), "killed after {reached:?}");
}

#[test]
fn a_run_killed_after_every_checkpoint_and_resumed_gives_the_same_bytes() {
    let scratch = Scratch::new("killed-often");
    finish(scratch.path(), "whole");
    let state = scratch.path().join("often/checkpoint/state.safetensors");
    let mut kills = 0;
    loop {
        let before = fs::read(&state).ok();
        let mut child = start(scratch.path(), "often");
        let ended = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break Some(status);
            }
            if fs::read(&state).ok() != before {
                break None;
            }
            sleep(Duration::from_millis(1));
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
    let print = |name: &str| fingerprint(&scratch.path().join(name)).unwrap();
    assert_eq!(print("often"), print("whole"), "after {kills} kills");
}

#[test]
fn a_finished_run_can_be_resumed_and_stays_as_it_is() {
    let scratch = Scratch::with_run("finished-twice");
    let done = scratch.path().join("done");
    let before = fingerprint(&done).unwrap();
    finish(scratch.path(), "done");
    assert_eq!(fingerprint(&done).unwrap(), before);
}

#[test]
fn a_replicate_has_a_folder_of_its_own_and_resumes_as_itself() {
    let scratch = Scratch::new("replicate");
    let greedy = [&SHORT[..], &["--quiet", "--method", "greedy", "--seed", "4"]].concat();
    succeed(scratch.path(), &greedy);
    succeed(scratch.path(), &[&greedy[..], &["--replicate", "0", "--out", "zero"]].concat());
    let shown = succeed(scratch.path(), &[&greedy[..], &["--replicate", "2"]].concat());
    assert!(shown.starts_with("greedy on tiny, seed 4, replicate 2\n"), "{shown}");
    let print = |name: &str| fingerprint(&scratch.path().join(name)).unwrap();
    assert_eq!(print("runs/tiny-greedy-4"), print("zero"), "replicate 0 is the run itself");
    assert_ne!(print("runs/tiny-greedy-4"), print("runs/tiny-greedy-4-r2"));
    let again = scratch.path().join("runs/tiny-greedy-4-r2");
    let before = print("runs/tiny-greedy-4-r2");
    succeed(scratch.path(), &["run", "--quiet", "--resume", &again.display().to_string()]);
    assert_eq!(print("runs/tiny-greedy-4-r2"), before);
}

#[test]
fn a_run_with_a_budget_ends_inside_it_and_is_the_same_after_a_resume() {
    let scratch = Scratch::new("budget");
    let set = ["--set", "limits.budget.seconds=8", "--set", "limits.budget.joules_per_terminal=1"];
    let run = [&SHORT[..], &OFTEN, &["--method", "deficit", "--out", "whole"], &set].concat();
    let shown = succeed(scratch.path(), &run);
    assert!(shown.contains("budgets used"), "{shown}");
    let summary = fs::read_to_string(scratch.path().join("whole/summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    let used = |name: &str| summary["budget_used"][name].as_f64().unwrap();
    assert!(used("seconds") <= 1.0 && used("joules_per_terminal") <= 1.0);
    assert!(summary["rounds"].as_u64().unwrap() > 0);
    let before = fingerprint(&scratch.path().join("whole")).unwrap();
    succeed(scratch.path(), &["run", "--quiet", "--resume", "whole"]);
    assert_eq!(fingerprint(&scratch.path().join("whole")).unwrap(), before);
}
