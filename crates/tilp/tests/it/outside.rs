//! Programs outside: the same rule in Rust and in Python decides the same to the last bit, a program
//! goes on where it was, and no line brings the plan server down.

use std::fs;
use std::path::{Path, PathBuf};

use rand::RngExt;
use serde_json::{Value, json};
use tilp::exchange::{observation_message, outcome_message};
use tilp::experiment::{PlanServer, PlanSpec};
use tilp::rng::{Rng, Seed};
use tilp::round::{Allocator, DecideError, Decision, Limits, Observation, TerminalDecision};
use tilp::run::RoundRecord;
use tilp::scenario::{Method, method};
use tilp::snapshot::{Persist, Snapshot};
use tilp::tasks::tabletop::SUITE;

use crate::rounds::{step, until};
use crate::worlds;

/// A folder of one test, gone when it ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let path = path.join(format!("outside-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn python(name: &str) -> Method {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/programs").join(name);
    method(&format!("exec:python3 '{}'", script.display())).unwrap()
}

/// The rule of `programs/roots.py` in Rust.
struct Roots {
    limits: Limits,
    /// Rounds in which each terminal took part.
    counts: Vec<u64>,
}

impl Persist for Roots {}

impl Allocator for Roots {
    fn decide(&mut self, seen: &Observation) -> Result<Decision, DecideError> {
        let n = seen.terminals.len();
        self.counts.resize(n, 0);
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by_key(|&n| (self.counts[n], n));
        order.truncate(3);
        let weight = |n: usize| {
            let report = &seen.terminals[n].report;
            1.0 / (report.gain.0 * report.fading_power).sqrt()
        };
        let mut total = 0.0;
        order.iter().for_each(|&n| total += weight(n));
        let mut decision = Decision::idle(n, self.limits.cuts[0]);
        for &n in &order {
            decision.terminals[n] = TerminalDecision {
                scheduled: true,
                bandwidth: self.limits.bandwidth * (weight(n) / total),
                power: self.limits.power * (0.5 + 0.5 / (1.0 + self.counts[n] as f64)),
                cut: self.limits.cuts[seen.round as usize % self.limits.cuts.len()],
                compression: self.limits.compression * (n as f64 + 1.0) / 6.0,
            };
        }
        Ok(decision)
    }

    fn learn(
        &mut self,
        _: &Observation,
        _: &tilp::round::ProjectedDecision,
        outcome: &tilp::round::Outcome,
    ) {
        for (count, one) in self.counts.iter_mut().zip(&outcome.terminals) {
            *count += u64::from(one.took_part);
        }
    }
}

fn rust() -> Method {
    Method::own("roots", "the same rule in Rust", |inputs| {
        Box::new(Roots { limits: inputs.problem.cost.limits, counts: Vec::new() })
    })
}

fn rounds(method: Method) -> Vec<RoundRecord> {
    until(&mut worlds::parts_of(method, &["evaluation.calibrate_every=5"]), 12)
}

#[test]
fn the_same_rule_in_rust_and_in_python_decides_the_same_to_the_last_bit() {
    let (rust, python) = (rounds(rust()), rounds(python("roots.py")));
    assert_eq!(rust.len(), 12);
    // Text of a float has all its bits.
    for (ours, theirs) in rust.iter().zip(&python) {
        assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
    }
}

#[test]
fn a_program_that_gives_its_state_goes_on_where_it_was() {
    let whole = rounds(python("roots.py"));
    let overrides = ["evaluation.calibrate_every=5"];
    let mut first = worlds::parts_of(python("roots.py"), &overrides);
    until(&mut first, 7);
    let mut kept = Snapshot::default();
    first.cell.save(&mut kept);
    first.station.save(&mut kept);
    drop(first);
    let mut second = worlds::parts_of(python("roots.py"), &overrides);
    second.cell.restore(&kept).unwrap();
    second.station.restore(&kept).unwrap();
    let rest = until(&mut second, 12);
    assert_eq!(format!("{rest:?}"), format!("{:?}", &whole[7..]));
    // One that declares nothing about its state cannot.
    let mut mute = worlds::parts_of(python("mute.py"), &overrides);
    mute.cell.restore(&kept).unwrap();
    let said = mute.station.restore(&kept).unwrap_err().to_string();
    assert!(said.contains("declares `state`"), "{said}");
}

/// `tiny` with a search that takes no time.
const QUICK: [&str; 6] = [
    "methods.tilp.horizon=2",
    "methods.tilp.samples=16",
    "methods.tilp.elites=4",
    "methods.tilp.iterations=1",
    "methods.tilp.updates=1",
    "methods.tilp.imagined=0",
];

fn server(folder: &Path) -> PlanServer {
    let spec = PlanSpec { scenario: worlds::tiny(&QUICK), seed: 0, learned: None };
    PlanServer::open(spec, folder, None).unwrap()
}

fn answer(server: &mut PlanServer, line: &[u8]) -> Value {
    let (text, is_last) = server.answer(line);
    assert!(!is_last && text.ends_with('\n') && text.matches('\n').count() == 1, "{text}");
    serde_json::from_str(&text).unwrap()
}

/// Lines of the rounds of a run: an observation and an outcome each.
fn lines() -> Vec<[String; 2]> {
    let mut parts = worlds::parts("random", &["evaluation.calibrate_every=2"]);
    let mut both = Vec::new();
    for _ in 0..6 {
        let RoundRecord { seen, order, outcome, .. } = step(&mut parts);
        let observation = observation_message(&seen, &SUITE);
        let outcome = outcome_message(&order.plan, &outcome, &SUITE);
        both.push([
            json!({ "type": "observe", "observation": observation }).to_string(),
            json!({ "type": "outcome", "outcome": outcome }).to_string(),
        ]);
    }
    both
}

/// A line with something wrong in it: a byte, a piece, a number, the end.
fn damaged(line: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = line.to_vec();
    if bytes.is_empty() {
        return bytes;
    }
    let place = rng.random_range(0..bytes.len());
    match rng.random_range(0..7) {
        0 => bytes[place] = rng.random(),
        1 => bytes.truncate(place),
        2 => {
            let end = (place + rng.random_range(1..40)).min(bytes.len());
            bytes.drain(place..end);
        }
        3 => {
            let other = rng.random_range(0..bytes.len());
            bytes.swap(place, other);
        }
        4 => {
            let numbers =
                ["-1", "1e308", "1e-308", "NaN", "null", "\"x\"", "[]", "18446744073709551615"];
            let number = numbers[rng.random_range(0..numbers.len())];
            let colons: Vec<usize> =
                (0..bytes.len()).filter(|&n| bytes[n] == b':').map(|n| n + 1).collect();
            if colons.is_empty() {
                return bytes;
            }
            let start = colons[rng.random_range(0..colons.len())];
            let length = bytes[start..].iter().position(|b| b",}]".contains(b)).unwrap_or(0);
            bytes.splice(start..start + length, number.bytes());
        }
        5 => {
            let piece: Vec<u8> = bytes[place..(place + 60).min(bytes.len())].to_vec();
            let at = rng.random_range(0..bytes.len());
            bytes.splice(at..at, piece);
        }
        _ => bytes = (0..rng.random_range(0..80)).map(|_| rng.random()).collect(),
    }
    bytes.retain(|byte| *byte != b'\n');
    bytes
}

/// `TILP_DAMAGED_LINES=1000000` makes it a long one.
#[test]
fn no_damaged_line_brings_the_plan_server_down_or_costs_it_its_state() {
    let n_lines = std::env::var("TILP_DAMAGED_LINES").ok().and_then(|text| text.parse().ok());
    let n_lines: u64 = n_lines.unwrap_or(10_000);
    let scratch = Scratch::new("damaged");
    let lines = lines();
    let mut server = server(&scratch.0);
    let (mut n_errors, mut next) = (0, 0);
    for index in 0..n_lines {
        let mut rng = Seed::new(index).named("damaged").rng();
        let [observe, outcome] = &lines[next % lines.len()];
        let line = if rng.random() { observe } else { outcome };
        let before = server.round();
        // Most lines have several faults: one that is still sound is planned for, which takes time.
        let mut bytes = damaged(line.as_bytes(), &mut rng);
        for _ in 0..rng.random_range(0..4) {
            bytes = damaged(&bytes, &mut rng);
        }
        let answer = answer(&mut server, &bytes);
        if answer["type"] == "error" {
            n_errors += 1;
            assert_eq!(server.round(), before);
        }
        // In between the run continues, unless damaged lines have advanced it already.
        if index % (n_lines / 40).max(1) == 0 {
            server = reopened(server, &scratch.0);
            for line in [observe, outcome] {
                answered(&mut server, line);
            }
            next += 1;
        }
    }
    assert!(n_errors > n_lines / 2, "{n_errors} of {n_lines}");
    reopened(server, &scratch.0);
}

/// A sound line is answered, or refused because its round is over.
fn answered(server: &mut PlanServer, line: &str) {
    let answer = answer(server, line.as_bytes());
    let is_over = answer["error"].as_str().is_some_and(|error| {
        error.contains("its outcome is known")
            || error.contains("observation first")
            || error.contains("expected") && error.contains("task")
            || error.contains("outcome at round")
    });
    assert!(
        ["decision", "learned"].contains(&answer["type"].as_str().unwrap()) || is_over,
        "{answer}"
    );
}

/// The server after a kill: what it had learned is there.
fn reopened(before: PlanServer, folder: &Path) -> PlanServer {
    let round = before.round();
    drop(before);
    let after = server(folder);
    assert_eq!(after.round(), round);
    after
}
