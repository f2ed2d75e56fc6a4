//! The program as its users meet it: arguments in; text, exit code and files out.
//!
//! - `adapters`: adapters to equipment, the proxy, the profile of a device.
//! - `bad_input`: one clear line, exit code 2, nothing left behind.
//! - `branch`: the same bytes with nothing changed, and a run of its own with something changed.
//! - `dash`: the numbers of the files, live runs, restarts, and refused access.
//! - `documents`: what the documents name exists.
//! - `engines`: robots in MuJoCo, and the program without it.
//! - `enrol`: from an authority to a certificate, and what is refused.
//! - `exports`: demonstrations and policies for other programs, sizes of a model.
//! - `libero`: the scenario with LIBERO's tasks, with and without MuJoCo.
//! - `old_runs`: folders of version 1 of the program.
//! - `output`: formats, quiet, pipes, help.
//! - `outside`: methods that are programs of their own.
//! - `plan_serve`: TiLP as a program, driven through the rounds of a run.
//! - `pages`: the page of a run, figures for a paper, scenarios that are checked.
//! - `plan`: an observation in, a plan with reasons out.
//! - `profile`: own tables in, marked results out.
//! - `repeat`: the same bytes for any number of threads and after any kill.
//! - `scenario`: the verbs of `tilp scenario`.
//! - `serve`: clients of a policy, good and bad.
//! - `signals`: Ctrl-C and SIGTERM.
//! - `study`: shards, kills, and studies that are refused.
//! - `testbed`: base station, terminals and evaluator as processes, killed and started again.
//! - `tune`: learning rates on kept runs.
//! - `twin`: `tilp twin` and the folders it refuses.
//! - `verify`: a run against its own files and against a repetition.

mod adapters;
mod bad_input;
mod branch;
mod dash;
mod documents;
mod engines;
mod enrol;
mod exports;
mod libero;
mod old_runs;
mod output;
mod outside;
mod pages;
mod plan;
mod plan_serve;
mod profile;
mod repeat;
mod scenario;
mod scratch;
mod serve;
mod signals;
mod study;
mod testbed;
mod tune;
mod twin;
mod verify;

use std::path::Path;
use std::process::{Command, Output, Stdio};

use scratch::Scratch;

/// The program in a folder, with the tests' cache instead of the user's.
fn tilp(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tilp"));
    command.current_dir(folder).stdin(Stdio::null());
    command.env("TILP_CACHE", Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache"));
    // The tests themselves run side by side.
    command.env("RAYON_NUM_THREADS", "1").env_remove("RUST_BACKTRACE");
    command
}

/// Runs the program to its end.
fn run(folder: &Path, arguments: &[&str]) -> Output {
    tilp(folder).args(arguments).output().expect("the program starts")
}

/// Runs the program, which must succeed, and gives what it printed.
fn succeed(folder: &Path, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("the program prints text")
}
