//! A testbed of processes: the same bytes as `tilp run`, whichever process is killed.

mod bed;
mod equipment;

use std::path::Path;
use std::time::Duration;

use crate::scratch::SHORT;
use crate::{Scratch, run, succeed, text};
use bed::{Bed, Who, wait_until};

/// What a run leaves: events with every decision, all rows, summary and model.
const RECORD: [&str; 8] = [
    "events.jsonl",
    "rounds.csv",
    "calibration.csv",
    "terminals.parquet",
    "episodes.parquet",
    "summary.json",
    "scenario.toml",
    "model.safetensors",
];

/// The record of a run, byte for byte. A checkpoint is not part of it: that of a testbed does not
/// contain what is on the terminals.
fn record(folder: &Path) -> Vec<(&'static str, Vec<u8>)> {
    let read = |name: &'static str| match std::fs::read(folder.join(name)) {
        Ok(bytes) => (name, bytes),
        Err(error) => panic!("{}/{name}: {error}", folder.display()),
    };
    RECORD.map(read).to_vec()
}

/// The two runs left the same bytes.
fn assert_same(found: &[(&str, Vec<u8>)], wanted: &[(&str, Vec<u8>)]) {
    for ((name, found), (_, wanted)) in found.iter().zip(wanted) {
        assert!(found == wanted, "{name} differs: {} and {} bytes", found.len(), wanted.len());
    }
}

/// The record of the same run in one process.
fn undisturbed(scratch: &Scratch, method: &str) -> Vec<(&'static str, Vec<u8>)> {
    let out = ["--quiet", "--method", method, "--out", "alone"];
    succeed(scratch.path(), &[&SHORT[..], &out].concat());
    record(&scratch.path().join("alone"))
}

fn same_as_in_one_process(method: &str, terminals: &str, parties: &[Who]) {
    let name = format!("testbed-{method}-{}", parties.len());
    let scratch = Scratch::new(&name);
    let wanted = undisturbed(&scratch, method);
    let mut bed = Bed::new(&scratch, method, terminals, parties);
    bed.start_all();
    bed.finish();
    assert_same(&record(&bed.run_folder()), &wanted);
}

const ALL: [Who; 7] = [
    Who::Terminal(0),
    Who::Terminal(1),
    Who::Terminal(2),
    Who::Terminal(3),
    Who::Terminal(4),
    Who::Terminal(5),
    Who::Evaluator,
];

#[test]
fn tilp_with_all_terminals_as_processes_has_the_bytes_of_one_process() {
    same_as_in_one_process("tilp", "\"all\"", &ALL);
}

#[test]
fn asfl_with_all_terminals_as_processes_has_the_bytes_of_one_process() {
    same_as_in_one_process("asfl+guard", "\"all\"", &ALL);
}

#[test]
fn splitnn_with_all_terminals_as_processes_has_the_bytes_of_one_process() {
    same_as_in_one_process("splitnn+guard", "\"all\"", &ALL);
}

#[test]
fn some_terminals_as_processes_and_others_simulated_have_the_bytes_of_one_process() {
    let some = [Who::Terminal(1), Who::Terminal(4), Who::Evaluator];
    same_as_in_one_process("tilp", "[1, 4]", &some);
}

/// What strikes a process while the run is held in a phase.
#[derive(Clone, Copy)]
enum Fault {
    /// SIGKILL, and it is started again.
    Kill,
    /// SIGSTOP for longer than the other side accepts silence.
    Stop,
}

/// Every fault strikes in its phase, one after the other: a process is held there until the fault
/// was applied. A run that ends before a phase is reached fails.
fn struck(name: &str, method: &str, faults: &[(&str, Who, Fault)]) {
    let scratch = Scratch::new(name);
    let wanted = undisturbed(&scratch, method);
    let mut bed = Bed::new(&scratch, method, "\"all\"", &ALL);
    bed.hold_at(faults[0].0);
    bed.start_all();
    for (n, (point, who, fault)) in faults.iter().enumerate() {
        let held = bed.wait_held(point);
        if let Some((next, ..)) = faults.get(n + 1) {
            bed.hold_at(next);
        }
        match fault {
            Fault::Kill => {
                bed.kill(*who);
                std::fs::remove_file(held).unwrap();
                bed.start(*who);
            }
            Fault::Stop => {
                bed.signal(*who, "STOP");
                std::fs::remove_file(held).unwrap();
                std::thread::sleep(Duration::from_millis(1500));
                bed.signal(*who, "CONT");
            }
        }
    }
    bed.finish();
    assert_same(&record(&bed.run_folder()), &wanted);
}

#[test]
fn a_run_whose_terminals_and_evaluator_are_struck_has_the_bytes_of_an_undisturbed_one() {
    let faults = [
        ("downloading-0", Who::Terminal(0), Fault::Kill),
        ("forward-1", Who::Terminal(1), Fault::Kill),
        ("waiting-2", Who::Terminal(2), Fault::Kill),
        ("backward-3", Who::Terminal(3), Fault::Kill),
        ("aggregating", Who::Terminal(4), Fault::Kill),
        ("deciding", Who::Terminal(5), Fault::Stop),
        ("evaluating", Who::Evaluator, Fault::Kill),
    ];
    struck("testbed-struck-terminals", "asfl+guard", &faults);
}

#[test]
fn a_run_whose_base_station_is_struck_has_the_bytes_of_an_undisturbed_one() {
    let faults = [
        ("deciding", Who::Server, Fault::Kill),
        ("forward-5", Who::Server, Fault::Kill),
        ("waiting-0", Who::Server, Fault::Kill),
        ("aggregating", Who::Server, Fault::Kill),
        ("checkpointing", Who::Server, Fault::Kill),
        ("evaluating", Who::Server, Fault::Stop),
    ];
    struck("testbed-struck-server", "asfl+guard", &faults);
}

#[test]
fn a_process_that_is_stopped_for_a_while_changes_nothing() {
    let scratch = Scratch::new("testbed-stopped");
    let wanted = undisturbed(&scratch, "splitnn+guard");
    let mut bed = Bed::new(&scratch, "splitnn+guard", "\"all\"", &ALL);
    bed.start_all();
    assert!(bed.wait_for_records(3));
    bed.signal(Who::Terminal(2), "STOP");
    bed.signal(Who::Server, "STOP");
    std::thread::sleep(Duration::from_millis(1500));
    bed.signal(Who::Server, "CONT");
    std::thread::sleep(Duration::from_millis(500));
    bed.signal(Who::Terminal(2), "CONT");
    bed.finish();
    assert_same(&record(&bed.run_folder()), &wanted);
}

#[test]
fn a_terminal_that_stays_away_stops_the_run_which_goes_on_when_it_is_back() {
    let scratch = Scratch::new("testbed-away");
    let wanted = undisturbed(&scratch, "asfl+guard");
    let mut bed = Bed::new(&scratch, "asfl+guard", "\"all\"", &ALL);
    bed.set("patience_s = 0.5");
    bed.start_all();
    assert!(bed.wait_for_records(4));
    bed.kill(Who::Terminal(3));
    assert_eq!(bed.wait(Who::Server), Some(1));
    assert!(bed.log(Who::Server).contains("terminal 3 was away"), "{}", bed.log(Who::Server));
    bed.start(Who::Terminal(3));
    bed.start(Who::Server);
    bed.finish();
    assert_same(&record(&bed.run_folder()), &wanted);
}

/// The terminals that were in the cell in a round.
fn present(bed: &Bed, round: u64) -> Vec<u64> {
    let folder = tilp::record::RunFolder::open(&bed.run_folder()).unwrap();
    let rows = folder.read_terminals().unwrap();
    rows.iter().filter(|row| row.round == round).map(|row| row.terminal).collect()
}

#[test]
fn under_the_wall_clock_a_terminal_that_does_not_come_is_not_in_the_cell() {
    let scratch = Scratch::new("testbed-wall-absent");
    let mut bed = Bed::new(&scratch, "tilp", "\"all\"", &ALL);
    bed.replace("clock = \"virtual\"", "clock = \"wall\"\npatience_s = 2");
    bed.start(Who::Server);
    for who in ALL.into_iter().filter(|who| *who != Who::Terminal(2)) {
        bed.start(who);
    }
    bed.finish();
    assert_eq!(present(&bed, 1), [0, 1, 3, 4, 5]);
    assert_eq!(present(&bed, 12), [0, 1, 3, 4, 5]);
}

#[test]
fn under_the_wall_clock_a_round_closes_without_a_terminal_that_is_killed() {
    let scratch = Scratch::new("testbed-wall-killed");
    let mut bed = Bed::new(&scratch, "asfl+guard", "\"all\"", &ALL);
    bed.replace("clock = \"virtual\"", "clock = \"wall\"\npatience_s = 2");
    bed.replace("\"rounds=12\"", "\"rounds=60\", \"limits.deadline_s=1\"");
    bed.start_all();
    assert!(bed.wait_for_round(3), "{}", bed.log(Who::Server));
    bed.kill(Who::Terminal(2));
    bed.finish();
    assert_eq!(present(&bed, 1), [0, 1, 2, 3, 4, 5]);
    assert_eq!(present(&bed, 60), [0, 1, 3, 4, 5]);
}

#[test]
fn up_starts_everything_and_leaves_the_run() {
    let scratch = Scratch::new("testbed-up");
    let wanted = undisturbed(&scratch, "deficit");
    let bed = Bed::new(&scratch, "deficit", "[0, 2]", &[]);
    let printed = succeed(scratch.path(), &["testbed", "up", "--quiet", "bed.toml"]);
    assert!(printed.contains("deficit on tiny"), "{printed}");
    assert_same(&record(&bed.run_folder()), &wanted);
}

#[test]
fn status_pages_say_what_goes_on() {
    let scratch = Scratch::new("testbed-status");
    let some = [Who::Terminal(0), Who::Terminal(1), Who::Evaluator];
    let mut bed = Bed::new(&scratch, "deficit", "[0, 1]", &some);
    let port = bed.serve_status();
    bed.start(Who::Server);
    let metrics = || bed::get(port, "/metrics");
    assert!(wait_until(|| bed::get(port, "/healthz").ends_with("ok\n")));
    assert!(wait_until(|| metrics().contains("tilp_parties_away 3\n")), "{}", metrics());
    bed.start(Who::Terminal(0));
    assert!(wait_until(|| bed::get(port, "/metrics").contains("tilp_parties_attached 1\n")));
    assert!(bed::get(port, "/").starts_with("HTTP/1.1 404"));
    bed.start(Who::Terminal(1));
    bed.start(Who::Evaluator);
    bed.finish();
}

#[test]
fn a_terminal_that_the_run_does_not_have_is_refused() {
    let scratch = Scratch::new("testbed-stranger");
    let some = [Who::Terminal(0), Who::Evaluator];
    let mut bed = Bed::new(&scratch, "deficit", "[0]", &some);
    bed.start(Who::Server);
    bed.wait_for_port();
    std::fs::copy(bed.data_of(0), scratch.path().join("stranger.safetensors")).unwrap();
    let server = format!("--server={}", bed.address());
    let stranger = ["terminal", "--id=3", "--data=stranger.safetensors", "--state=stranger"];
    let output = run(scratch.path(), &[&stranger[..], &[&server]].concat());
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("terminal 3 is no process of this run"), "{said}");
    bed.start(Who::Terminal(0));
    bed.start(Who::Evaluator);
    bed.finish();
}

#[test]
fn a_testbed_file_is_checked_in_one_line() {
    let scratch = Scratch::new("testbed-file");
    let sound = "[testbed]\nscenario = \"tiny\"\nmethod = \"tilp\"\nseed = 0\nclock = \"virtual\"\n\
                 folder = \"bed\"\nlisten = \"127.0.0.1:0\"\nterminals = [0, 5]\nevaluator = true\n";
    scratch.put("bed.toml", sound);
    let said = succeed(scratch.path(), &["scenario", "check", "bed.toml"]);
    assert!(said.contains("2 of 6 terminals as processes"), "{said}");
    for (from, to, expected) in [
        ("[0, 5]", "[0, 6]", "testbed.terminals = [0, 6], expected different ids from 0 to 5"),
        ("[0, 5]", "\"some\"", "testbed.terminals = \"some\", expected \"all\", \"none\" or"),
        ("127.0.0.1:0", "0.0.0.0:0", "testbed.listen = 0.0.0.0:0, expected a loopback address"),
        ("\"tilp\"", "\"till\"", "till"),
        ("seed = 0", "seed = 0\npatience_s = -1", "testbed.patience_s = -1, expected 0.1 to 86400"),
        ("seed = 0", "seed = 0\nsalt = 1", "unknown field `salt`"),
    ] {
        scratch.put("bed.toml", sound.replace(from, to));
        let output = run(scratch.path(), &["scenario", "check", "bed.toml"]);
        assert_eq!(output.status.code(), Some(2), "{to}");
        let said = text(&output.stderr);
        assert!(said.contains(expected) && said.lines().count() == 1, "{to}: {said}");
    }
}
