use super::*;
use crate::record::fixture::{Scratch, evaluation, history, identity};
use crate::record::{History, fingerprint};
use crate::snapshot::{Persist, Snapshot};

fn checkpoint(history: &History) -> Checkpoint {
    let mut state = Snapshot::default();
    history.save(&mut state);
    Checkpoint { identity: identity(), round: history.rounds.len() as u64, state }
}

fn start(host: &str) -> Files {
    let manifest = serde_json::json!({"method": "deficit", "host": host});
    Files::new().manifest(&manifest).scenario("rounds = 6\n").checkpoint(&checkpoint(&history(0)))
}

fn end(history: &History, start_s: f64) -> Files {
    Files::new()
        .summary(&Summary::of(history, &evaluation()))
        .history(history)
        .unwrap()
        .model(Some(vec![1, 2, 3]))
        .timing(&serde_json::json!({"plan_ms_mean": start_s}))
        .events(history, start_s)
        .checkpoint(&checkpoint(history))
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_folder_appears_with_its_first_files_and_not_before() {
    let scratch = Scratch::new("appears");
    let path = scratch.path().join("runs/one");
    let mut folder = RunFolder::create(&path).unwrap();
    assert_eq!(names(scratch.path()), [""; 0]);
    folder.write(&start("a")).unwrap();
    assert_eq!(names(&scratch.path().join("runs")), ["one"]);
    assert_eq!(names(&path), ["checkpoint", "manifest.json", "scenario.toml"]);
    assert_eq!(names(&path.join("checkpoint")), ["state.safetensors"]);
}

#[test]
fn a_finished_folder_holds_every_file_and_nothing_else() {
    let scratch = Scratch::new("finished");
    let mut folder = RunFolder::create(scratch.path()).unwrap();
    folder.write(&start("a")).unwrap();
    folder.write(&end(&history(6), 5.0)).unwrap();
    let expected = [
        "calibration.csv",
        "checkpoint",
        "events.out.tfevents.0000000005.tilp",
        "manifest.json",
        "model.safetensors",
        "rounds.csv",
        "scenario.toml",
        "summary.json",
        "terminals.parquet",
        "timing.json",
    ];
    assert_eq!(names(scratch.path()), expected);
    assert_eq!(folder.read_rounds().unwrap(), history(6).rounds);
    assert_eq!(folder.read_calibrations().unwrap(), history(6).calibrations);
    let terminals = folder.read_terminals().unwrap();
    assert_eq!(format!("{terminals:?}"), format!("{:?}", history(6).terminals));
    assert_eq!(folder.read_scenario().unwrap(), "rounds = 6\n");
    assert_eq!(folder.read_manifest().unwrap()["method"], "deficit");
    assert_eq!(folder.read_summary().unwrap().rounds, 6);
}

#[test]
fn a_resumed_run_writes_the_same_bytes_as_one_never_stopped() {
    let scratch = Scratch::new("resume");
    let mut whole = RunFolder::create(&scratch.path().join("whole")).unwrap();
    whole.write(&start("a")).unwrap();
    whole.write(&end(&history(6), 5.0)).unwrap();

    let mut stopped = RunFolder::create(&scratch.path().join("stopped")).unwrap();
    stopped.write(&start("b")).unwrap();
    stopped.write(&end(&history(3), 7.0)).unwrap();
    assert_ne!(fingerprint(stopped.path()).unwrap(), fingerprint(whole.path()).unwrap());

    let mut resumed = RunFolder::open(stopped.path()).unwrap();
    let found = resumed.read_checkpoint(&identity()).unwrap();
    let mut rows = History::default();
    rows.restore(&found.state).unwrap();
    (found.round + 1..=6).for_each(|round| rows.push(&crate::record::fixture::record(round)));
    resumed.write(&end(&rows, 9.0)).unwrap();
    assert_eq!(fingerprint(resumed.path()).unwrap(), fingerprint(whole.path()).unwrap());
    assert_eq!(names(resumed.path()).iter().filter(|n| n.starts_with(EVENTS)).count(), 1);
}

#[test]
fn a_folder_in_use_is_refused_with_the_way_out() {
    let scratch = Scratch::new("in-use");
    let path = scratch.path().join("run");
    RunFolder::create(&path).unwrap().write(&start("a")).unwrap();
    let message = RunFolder::create(&path).unwrap_err().to_string();
    let way_out = format!("--resume {}", path.display());
    assert!(message.contains(&way_out) && !message.contains('\n'), "{message}");
    let file = path.join("scenario.toml");
    assert!(matches!(RunFolder::create(&file), Err(RecordError::NotAFolder { .. })));
}

#[test]
fn a_first_write_that_fails_leaves_nothing() {
    let scratch = Scratch::new("fails");
    let files = start("a");
    fs::write(scratch.path().join("file"), "in the way").unwrap();
    let mut folder = RunFolder { path: scratch.path().join("file/run"), new: false };
    let message = folder.write(&files).unwrap_err().to_string();
    assert!(message.starts_with("cannot create ") && message.contains("run"), "{message}");
    assert_eq!(names(scratch.path()), ["file"]);

    // Long enough that the name of the folder written aside is too long for a file system.
    let path = scratch.path().join("a/b").join("n".repeat(252));
    let mut folder = RunFolder::create(&path).unwrap();
    assert!(folder.write(&files).is_err());
    assert_eq!(names(scratch.path()), ["file"]);
}

#[test]
fn a_failed_write_keeps_the_old_file() {
    let scratch = Scratch::new("keeps");
    let mut folder = RunFolder::create(&scratch.path().join("run")).unwrap();
    folder.write(&start("a")).unwrap();
    fs::create_dir(folder.path().join(".scenario.toml.part")).unwrap();
    let message = folder.write(&Files::new().scenario("new")).unwrap_err().to_string();
    assert!(message.starts_with("cannot write ") && message.contains("scenario.toml"), "{message}");
    assert_eq!(folder.read_scenario().unwrap(), "rounds = 6\n");
}

#[test]
fn what_a_kill_left_behind_is_written_over() {
    let scratch = Scratch::new("leftover");
    let path = scratch.path().join("run");
    let staged = scratch.path().join(".run.part");
    fs::create_dir(&staged).unwrap();
    fs::write(staged.join("old"), "old").unwrap();
    let mut folder = RunFolder::create(&path).unwrap();
    folder.write(&start("a")).unwrap();
    assert_eq!(names(scratch.path()), ["run"]);
    fs::write(path.join("checkpoint/.state.safetensors.part"), "half").unwrap();
    folder.write(&start("a")).unwrap();
    assert_eq!(names(&path.join("checkpoint")), ["state.safetensors"]);
    assert_eq!(names(&path), ["checkpoint", "manifest.json", "scenario.toml"]);
}

#[test]
fn reading_names_the_folder_and_what_is_missing_or_broken() {
    let scratch = Scratch::new("missing");
    let message = RunFolder::open(scratch.path()).unwrap_err().to_string();
    assert!(message.contains("has no manifest.json"), "{message}");
    let mut folder = RunFolder::create(&scratch.path().join("run")).unwrap();
    folder.write(&start("a")).unwrap();
    let message = folder.read_summary().unwrap_err().to_string();
    assert!(message.contains("run has no summary.json"), "{message}");
    let other = Identity { seed: 99, ..identity() };
    let message = folder.read_checkpoint(&other).unwrap_err().to_string();
    assert!(message.contains("state.safetensors belongs to another run: seed"), "{message}");
    fs::write(folder.path().join(CHECKPOINT), "broken").unwrap();
    let message = folder.read_checkpoint(&identity()).unwrap_err().to_string();
    assert!(message.contains("truncated or corrupt"), "{message}");
}

#[test]
fn two_new_runs_cannot_share_a_folder() {
    let scratch = Scratch::new("race");
    let path = scratch.path().join("run");
    let mut one = RunFolder::create(&path).unwrap();
    let mut other = RunFolder::create(&path).unwrap();
    one.write(&start("a")).unwrap();
    assert!(matches!(other.write(&start("b")), Err(RecordError::InUse { .. })));
    assert_eq!(one.read_manifest().unwrap()["host"], "a");
}

#[test]
fn what_is_made_of_a_run_is_written_beside_it_and_replaced_whole() {
    let scratch = Scratch::new("beside");
    let folder = scratch.path().join("a/b");
    let file = |text: &str| [("f.svg".to_owned(), text.to_owned())];
    write_beside(&folder, &file("one")).unwrap();
    write_beside(&folder, &file("two")).unwrap();
    assert_eq!(names(&folder), ["f.svg"]);
    assert_eq!(fs::read_to_string(folder.join("f.svg")).unwrap(), "two");
    assert!(write_beside(&folder.join("f.svg"), &file("three")).is_err());
}

#[test]
fn a_name_on_the_way_is_hidden_and_nobody_elses() {
    let names: std::collections::BTreeSet<String> =
        (0..100).map(|_| unique_name("study.json")).collect();
    assert_eq!(names.len(), 100);
    assert!(names.iter().all(|name| name.starts_with(".study.json.") && name.ends_with(".part")));
}
