//! Ctrl-C, SIGTERM and SIGUSR1: the round is finished, a checkpoint written, and the way on printed.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use tilp::record::fingerprint;

use crate::scratch::SHORT;
use crate::{Scratch, succeed, text, tilp};

fn send(signal: &str, child: &Child) {
    let command = format!("kill -{signal} {}", child.id());
    // The program may have ended by itself: then there is no process to signal.
    let _ = Command::new("sh").args(["-c", &command]).stderr(Stdio::null()).status();
}

/// Starts a run and sends a signal as soon as its folder is there.
fn signalled(signal: &str, folder: &Path, name: &str) -> Output {
    let child = tilp(folder)
        .args(SHORT)
        .args(["--quiet", "--out", name])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    while !folder.join(name).exists() {
        sleep(Duration::from_millis(1));
    }
    send(signal, &child);
    child.wait_with_output().unwrap()
}

/// On a busy machine the run may be over before the signal comes: then it is tried anew.
fn interrupted(signal: &str, folder: &Path) -> (Output, String) {
    for attempt in 0..20 {
        let name = format!("attempt {attempt}");
        let output = signalled(signal, folder, &name);
        if !output.status.success() {
            return (output, name);
        }
    }
    panic!("no run was ever interrupted");
}

fn stops_and_goes_on(signal: &str, code: i32) {
    let scratch = Scratch::new(&format!("signal-{signal}"));
    let (output, name) = interrupted(signal, scratch.path());
    assert_eq!(output.status.code(), Some(code));
    assert_eq!(text(&output.stdout), "");
    let said = text(&output.stderr);
    assert!(said.starts_with("stopped after round "), "{said}");
    assert!(said.ends_with(&format!("resume with: tilp run --resume '{name}'\n")), "{said}");
    assert_eq!(said.lines().count(), 1);
    let folder = scratch.path().join(&name);
    assert!(folder.join("checkpoint/state.safetensors").is_file());
    assert!(!folder.join("summary.json").exists(), "an interrupted run is not complete");
    let printed = succeed(scratch.path(), &["run", "--resume", &name, "--quiet"]);
    assert!(printed.starts_with("tilp on tiny, seed 0\n"), "{printed}");
    succeed(scratch.path(), &[&SHORT[..], &["--quiet", "--out", "whole"]].concat());
    let whole = fingerprint(&scratch.path().join("whole")).unwrap();
    assert_eq!(fingerprint(&folder).unwrap(), whole);
}

#[test]
fn ctrl_c_finishes_the_round_and_says_how_to_go_on() {
    stops_and_goes_on("INT", 130);
}

#[test]
fn sigterm_finishes_the_round_and_says_how_to_go_on() {
    stops_and_goes_on("TERM", 143);
}

#[test]
fn a_warning_of_the_scheduler_stops_after_the_round() {
    stops_and_goes_on("USR1", 138);
}
