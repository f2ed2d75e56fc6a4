//! `tilp plan serve`, driven from another process through the rounds of a run that was recorded.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::LazyLock;

use serde_json::{Value, json};
use tilp::exchange::{observation_message, outcome_message};
use tilp::experiment::replay::{Replay, ReplayedRound};
use tilp::record::{Checkpoint, RunFolder};
use tilp::round::Decision;
use tilp::snapshot::Snapshot;
use tilp::tasks::tabletop::SUITE;

use crate::scratch::{SHORT, Scratch};
use crate::{run, succeed, text, tilp};

/// A server that answers lines.
struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Server {
    fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mut command = tilp(folder);
        command.args(["plan", "serve"]).args(arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, input, output: BufReader::new(output) }
    }

    fn ask(&mut self, line: &Value) -> Value {
        self.send(&line.to_string());
        self.answer()
    }

    fn send(&mut self, line: &str) {
        self.input.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    fn answer(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// SIGKILL: nothing is written after it.
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// The scenario of the short run, for the server.
fn arguments() -> Vec<&'static str> {
    let mut all = vec!["tiny", "--state", "planner", "--set"];
    all.push(&*LENGTH);
    all.extend(&SHORT[4..]);
    all
}

/// The number of rounds as an override; `TILP_SERVED_ROUNDS=200` makes it a long one.
static LENGTH: LazyLock<String> = LazyLock::new(|| format!("rounds={}", n_rounds()));

fn n_rounds() -> String {
    std::env::var("TILP_SERVED_ROUNDS").unwrap_or_else(|_| "40".to_owned())
}

fn recorded(scratch: &Scratch) -> Replay {
    let rounds = n_rounds();
    let run = [&SHORT[..2], &["--rounds", &rounds], &SHORT[4..], &["--quiet", "--out", "run"]];
    succeed(scratch.path(), &run.concat());
    Replay::open(&RunFolder::open(&scratch.path().join("run")).unwrap()).unwrap()
}

fn observe(round: &ReplayedRound<'_>) -> Value {
    json!({ "type": "observe", "observation": observation_message(&round.seen, &SUITE) })
}

fn outcome(round: &ReplayedRound<'_>) -> Value {
    let mut outcome = json!(outcome_message(&round.plan, &round.outcome, &SUITE));
    outcome.as_object_mut().unwrap().remove("executed");
    json!({ "type": "outcome", "outcome": outcome })
}

fn check_decision(answer: &Value, recorded: &Decision) {
    assert_eq!(answer["type"], "decision", "{answer}");
    for (found, one) in answer["terminals"].as_array().unwrap().iter().zip(&recorded.terminals) {
        assert_eq!(found["scheduled"], json!(one.scheduled));
        assert_eq!(found["bandwidth_hz"].as_f64(), Some(one.bandwidth.0));
        assert_eq!(found["power_w"].as_f64(), Some(one.power.0));
        assert_eq!(found["cut"].as_u64(), Some(one.cut as u64));
        assert_eq!(found["compression"].as_f64(), Some(one.compression));
        assert!(found["why"].is_string(), "{found}");
    }
}

/// The arrays of a state that are the planner's.
fn planner(path: &Path) -> Snapshot {
    let checkpoint = Checkpoint::from_bytes(&fs::read(path).unwrap(), path).unwrap();
    let own = ["twin/", "tilp/", "rl/", "agent/", "sac/", "replay/"];
    let arrays = checkpoint.state.0.into_iter();
    let arrays: Snapshot =
        Snapshot(arrays.filter(|(name, _)| own.iter().any(|own| name.starts_with(own))).collect());
    assert!(arrays.0.keys().any(|name| name.starts_with("twin/")), "{:?}", arrays.0.keys());
    arrays
}

#[test]
fn the_rounds_of_a_run_are_decided_again_whatever_is_killed_in_between() {
    let scratch = Scratch::new("plan-serve");
    let replay = recorded(&scratch);
    let arguments = arguments();
    let mut server = Server::start(scratch.path(), &arguments);
    for (n, round) in replay.rounds().enumerate() {
        // Killed while it plans, while it learns, and between both; what was not answered is sent
        // again, and so is what was.
        let kills = [n % 7 == 1, n % 7 == 3, n % 7 == 4, n % 7 == 5];
        let restart = |server: Server| {
            server.kill();
            Server::start(scratch.path(), &arguments)
        };
        if kills[0] {
            server.send(&observe(&round).to_string());
            server = restart(server);
        }
        let answer = server.ask(&observe(&round));
        check_decision(&answer, round.plan.decision());
        if kills[1] {
            server = restart(server);
        }
        if kills[2] {
            assert_eq!(server.ask(&observe(&round)), answer);
            server.send(&outcome(&round).to_string());
            server = restart(server);
        }
        if kills[2] && server.ask(&observe(&round))["type"] != "error" {
            assert!(n > 0, "the outcome was not learned before the kill");
        }
        let learned = server.ask(&outcome(&round));
        assert_eq!(learned, json!({ "type": "learned", "round": round.seen.round }));
        if kills[3] {
            server = restart(server);
            assert_eq!(server.ask(&outcome(&round)), learned);
        }
    }
    server.send(r#"{"type": "end"}"#);
    assert!(server.child.wait().unwrap().success());
    let ours = planner(&scratch.path().join("planner/state.safetensors"));
    let theirs = planner(&scratch.path().join("run/checkpoint/state.safetensors"));
    assert_eq!(ours.0.keys().collect::<Vec<_>>(), theirs.0.keys().collect::<Vec<_>>());
    // As text: what is not known is no number, which is not equal to itself.
    let differs =
        |name: &&String| format!("{:?}", ours.0[*name]) != format!("{:?}", theirs.0[*name]);
    let different: Vec<&String> = ours.0.keys().filter(differs).collect();
    assert!(different.is_empty(), "{different:?}");
}

#[test]
fn a_line_that_cannot_be_answered_changes_nothing() {
    let scratch = Scratch::new("plan-serve-errors");
    let replay = recorded(&scratch);
    let mut server = Server::start(scratch.path(), &arguments());
    let mut rounds = replay.rounds();
    let first = rounds.next().unwrap();
    let early = server.ask(&outcome(&first));
    assert!(early["error"].as_str().unwrap().contains("observation first"), "{early}");
    check_decision(&server.ask(&observe(&first)), first.plan.decision());
    for (line, expected) in [
        ("", "empty"),
        ("hello", "expected value"),
        ("[]", "line"),
        (r#"{"type": "dance"}"#, "setup, observe, outcome or end"),
        (r#"{"type": "observe"}"#, "missing field `observation`"),
        (r#"{"type": "outcome", "outcome": {"round": 1}}"#, "missing field"),
        (r#"{"type": "setup", "version": 7}"#, "version = 7"),
    ] {
        server.send(line);
        let answer = server.answer();
        assert_eq!(answer["type"], "error");
        assert!(answer["error"].as_str().unwrap().contains(expected), "{answer}");
    }
    let mut wrong = outcome(&first);
    wrong["outcome"]["terminals"][0]["delay_s"] = json!(-1.0);
    let answer = server.ask(&wrong);
    assert!(answer["error"].as_str().unwrap().contains("terminals[0].delay_s = -1"), "{answer}");
    assert_eq!(server.ask(&json!({ "type": "setup" }))["name"], "tilp");
    assert_eq!(server.ask(&outcome(&first))["type"], "learned");
    let second = rounds.next().unwrap();
    check_decision(&server.ask(&observe(&second)), second.plan.decision());
    server.kill();
    // Another seed is another planner.
    let other = [&["plan", "serve"], &arguments()[..], &["--seed", "7"]].concat();
    let refused = run(scratch.path(), &other);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
}
