use super::*;
use crate::record::event::Event;
use crate::record::fixture::{Scratch, evaluation, events, finished, history, identity};
use crate::record::{Journal, Stream, fingerprint};
use crate::snapshot::Snapshot;

/// The stream of that many rounds.
fn stream(n_rounds: u64) -> Stream {
    let mut stream = Stream::default();
    events(n_rounds).iter().for_each(|event| stream.push(event).unwrap());
    stream
}

fn checkpoint(round: u64, stream: StreamMark) -> Checkpoint {
    let mut state = Snapshot::default();
    state.put_u64("cell/round", vec![round + 1]);
    Checkpoint { identity: identity(), round, stream, state }
}

fn start(host: &str) -> Files {
    let manifest = serde_json::json!({"method": "deficit", "host": host});
    let stream = stream(0);
    let files = stream.files().tables(&stream.history).unwrap();
    let files = files.checkpoint(&checkpoint(0, stream.mark())).scenario("rounds = 6\n");
    files.manifest(&manifest)
}

/// Opens the files that grow, cut back to the checkpoint.
fn opened(folder: &RunFolder, now_s: f64) -> Journal {
    let found = folder.read_checkpoint(&identity()).unwrap();
    Stream::of_checkpoint(folder, &found).unwrap().open(folder, now_s).unwrap()
}

/// Rounds up to `last`, with a checkpoint after the third.
fn live(folder: &mut RunFolder, journal: &mut Journal, last: u64) {
    let first = journal.history().last_round() + 1;
    for event in events(last).iter().filter(|event| event.id().0 >= first) {
        if event.id().1 == 0 {
            journal.flush().unwrap();
            if journal.history().last_round() == 3 {
                folder.write(&Files::new().checkpoint(&checkpoint(3, journal.mark()))).unwrap();
            }
        }
        journal.push(event).unwrap();
    }
    journal.flush().unwrap();
}

fn end(folder: &mut RunFolder, journal: &mut Journal, times: f64) {
    let round = journal.history().last_round();
    folder.write(&Files::new().checkpoint(&checkpoint(round, journal.mark()))).unwrap();
    let Event::Finished(mut event) = finished(round) else { panic!("the end") };
    event.id = journal.history().last_event().unwrap().next();
    journal.push(&Event::Finished(event)).unwrap();
    journal.flush().unwrap();
    let files = Files::new()
        .summary(&Summary::of(journal.history(), &evaluation()))
        .tables(journal.history())
        .unwrap()
        .model(Some(vec![1, 2, 3]))
        .timing(&serde_json::json!({"plan_ms_mean": times}));
    folder.write(&files).unwrap();
}

/// A finished run of six rounds.
fn whole(path: &Path, host: &str) -> RunFolder {
    let mut folder = RunFolder::create(path).unwrap();
    folder.write(&start(host)).unwrap();
    let mut journal = opened(&folder, 5.0);
    live(&mut folder, &mut journal, 6);
    end(&mut folder, &mut journal, 1.0);
    folder
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
    assert_eq!(names(&path), BEGUN);
    assert_eq!(names(&path.join("checkpoint")), ["state.safetensors"]);
}

/// What a run has from its beginning, besides what its process adds.
const BEGUN: [&str; 9] = [
    ".lock",
    "calibration.csv",
    "checkpoint",
    "episodes.parquet",
    "events.jsonl",
    "manifest.json",
    "rounds.csv",
    "scenario.toml",
    "terminals.parquet",
];

#[test]
fn a_finished_folder_holds_every_file_and_nothing_else() {
    let scratch = Scratch::new("finished");
    let folder = whole(scratch.path(), "a");
    let expected = [
        ".lock",
        "calibration.csv",
        "checkpoint",
        "episodes.parquet",
        "events.jsonl",
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
    let episodes = folder.read_episodes().unwrap();
    assert_eq!(episodes[..episodes.len() - 3], history(6).episodes);
    assert_eq!(folder.read_events().unwrap()[..events(6).len()], events(6));
    assert_eq!(folder.read_scenario().unwrap(), "rounds = 6\n");
    assert_eq!(folder.read_manifest().unwrap()["method"], "deficit");
    assert_eq!(folder.read_summary().unwrap().rounds, 6);
    let last = folder.read_checkpoint(&identity()).unwrap().stream;
    assert_eq!(folder.complete(&last), Some(folder.read_summary().unwrap()));
}

#[test]
fn rows_of_a_folder_without_events_come_from_its_files() {
    let scratch = Scratch::new("without-events");
    let folder = whole(scratch.path(), "a");
    let made = folder.read_history().unwrap();
    fs::remove_file(scratch.path().join(EVENTS)).unwrap();
    let read = folder.read_history().unwrap();
    assert_eq!(read.rounds, made.rounds);
    assert_eq!(format!("{:?}", read.terminals), format!("{:?}", made.terminals));
    assert_eq!(read.calibrations, made.calibrations);
    fs::remove_file(scratch.path().join(ROUNDS)).unwrap();
    let said = folder.read_history().unwrap_err().to_string();
    assert!(said.contains("has no rounds.csv"), "{said}");
}

#[test]
fn a_run_resumed_from_any_state_of_its_files_ends_with_the_same_bytes() {
    let scratch = Scratch::new("resume");
    let print = fingerprint(whole(&scratch.path().join("whole"), "a").path()).unwrap();
    for (n, last) in (1..=6).enumerate() {
        let path = scratch.path().join(format!("stopped-{n}"));
        let mut stopped = RunFolder::create(&path).unwrap();
        stopped.write(&start("b")).unwrap();
        let mut journal = opened(&stopped, 7.0);
        live(&mut stopped, &mut journal, last);
        drop(stopped);
        // What a kill may leave: lines cut short, or files that are behind.
        let rows = fs::read(path.join(ROUNDS)).unwrap();
        fs::write(path.join(ROUNDS), &rows[..rows.len() - 3 * n]).unwrap();
        let mut bytes = fs::read(path.join(EVENTS)).unwrap();
        bytes.extend(b"{\"kind\":\"deci");
        fs::write(path.join(EVENTS), bytes).unwrap();

        let mut resumed = RunFolder::open(&path).unwrap();
        let mut journal = opened(&resumed, 9.0);
        assert_eq!(journal.history().last_round(), if last > 3 { 3 } else { 0 });
        live(&mut resumed, &mut journal, 6);
        end(&mut resumed, &mut journal, 2.0);
        assert_eq!(fingerprint(&path).unwrap(), print, "{last}");
        let boards = names(&path).into_iter().filter(|name| name.starts_with(SCALARS));
        assert_eq!(boards.collect::<Vec<_>>(), ["events.out.tfevents.0000000007.tilp"]);
        assert_eq!(fs::read(path.join("events.out.tfevents.0000000007.tilp")).unwrap(), board(7));
    }
}

/// The TensorBoard file of six rounds.
fn board(start_s: u64) -> Vec<u8> {
    let mut scalars = crate::record::ScalarEvents::new(start_s);
    let mut bytes = scalars.start();
    history(6).rounds.iter().for_each(|row| bytes.extend(scalars.round(row)));
    bytes
}

#[test]
fn events_that_are_not_those_of_the_checkpoint_are_refused() {
    let scratch = Scratch::new("forged-events");
    let folder = whole(scratch.path(), "a");
    let found = folder.read_checkpoint(&identity()).unwrap();
    let bytes = fs::read(scratch.path().join(EVENTS)).unwrap();
    let said = |bytes: &[u8], mark: &Checkpoint| {
        fs::write(scratch.path().join(EVENTS), bytes).unwrap();
        Stream::of_checkpoint(&folder, mark).unwrap_err().to_string()
    };
    let short = &bytes[..found.stream.bytes as usize - 1];
    assert!(said(short, &found).contains("expected"));
    let mut flipped = bytes.clone();
    flipped[40] ^= 1;
    assert!(said(&flipped, &found).contains("not those of the checkpoint"));
    let forged = |change: &dyn Fn(&mut Checkpoint)| {
        let mut forged = found.clone();
        change(&mut forged);
        said(&bytes, &forged)
    };
    assert!(forged(&|one| one.round = 5).contains("events up to round 6, expected round 5"));
    assert!(forged(&|one| one.stream.events += 1).contains("events, expected"));
    assert!(forged(&|one| one.stream.bytes = u64::MAX).contains("bytes, expected"));
    assert!(forged(&|one| one.identity.seed = 8).contains("another run"));
    fs::remove_file(scratch.path().join(EVENTS)).unwrap();
    let said = Stream::of_checkpoint(&folder, &found).unwrap_err().to_string();
    assert!(said.contains("has no events.jsonl"), "{said}");
}

#[test]
fn a_second_process_is_kept_out_of_a_folder() {
    let scratch = Scratch::new("locked");
    let path = scratch.path().join("run");
    let mut first = RunFolder::create(&path).unwrap();
    first.write(&start("a")).unwrap();
    let mut second = RunFolder::open(&path).unwrap();
    let said = second.lock().unwrap_err().to_string();
    assert!(said.contains("run is in use by another process, expected"), "{said}");
    assert!(!said.contains('\n'));
    assert!(second.write(&start("b")).is_err());
    assert_eq!(second.read_manifest().unwrap()["host"], "a", "reading needs no lock");
    drop(first);
    second.lock().unwrap();
    second.lock().unwrap();
}

#[test]
fn a_second_new_run_of_the_same_folder_is_refused_while_the_first_builds_it() {
    let scratch = Scratch::new("building");
    let staged = scratch.path().join(".run.part");
    fs::create_dir(&staged).unwrap();
    let first = locked(&staged, &staged).unwrap();
    let mut second = RunFolder::create(&scratch.path().join("run")).unwrap();
    assert!(matches!(second.write(&start("b")), Err(RecordError::Locked { .. })));
    assert_eq!(names(&staged), [".lock"]);
    drop(first);
    second.write(&start("b")).unwrap();
    assert_eq!(names(scratch.path()), ["run"]);
}

#[test]
fn a_folder_of_a_later_version_is_refused() {
    let scratch = Scratch::new("later");
    let mut folder = RunFolder::create(&scratch.path().join("run")).unwrap();
    folder.write(&start("a")).unwrap();
    for (found, is_read) in [("1", true), ("2", true), ("3", false), ("\"x\"", false)] {
        let manifest = format!("{{\"format\": {found}}}");
        fs::write(folder.path().join(MANIFEST), manifest).unwrap();
        let read = folder.read_manifest();
        assert_eq!(read.is_ok(), is_read, "{found}");
    }
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
    let path = scratch.path().join("file/run");
    let mut folder = RunFolder { path, new: false, lock: None };
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
    assert_eq!(names(&path), BEGUN);
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
