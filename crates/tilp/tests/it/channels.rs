//! Recorded channels: no role in the cell sees their future.

use std::fs;
use std::path::{Path, PathBuf};

use tilp::round::{Question, TerminalId};
use tilp::run::RoundRecord;
use tilp::scenario::methods;

use crate::rounds::{observe, reveal, until};
use crate::worlds;

/// The recordings are the same up to this round.
const SAME: u64 = 7;
const ROUNDS: u64 = 12;

/// A recording of total gains in decibels for the six terminals of `tiny`.
fn recording(name: &str, gain: impl Fn(u64, usize) -> f64) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("channels");
    fs::create_dir_all(&folder).unwrap();
    let row = |round| (0..6).map(|n| gain(round, n).to_string()).collect::<Vec<_>>().join(",");
    let rows: Vec<String> = (1..=ROUNDS).map(row).collect();
    let path = folder.join(format!("{name}-{}.csv", std::process::id()));
    fs::write(&path, format!("a,b,c,d,e,f\n{}\n", rows.join("\n"))).unwrap();
    path
}

/// Rounds of a method over a recorded channel, with frequent aggregation and calibration.
fn rounds(method: &str, file: &Path) -> Vec<RoundRecord> {
    let set = [
        &format!("cell.trace={}", file.display()),
        "learning.aggregate_every=3",
        "evaluation.calibrate_every=4",
        "methods.tilp.samples=32",
        "methods.tilp.warm_up=2",
        // With the network the oracle is told the fading of the rounds to come.
        "methods.oracle.network=false",
    ];
    until(&mut worlds::parts(method, &set), ROUNDS)
}

#[test]
fn no_decision_depends_on_what_a_recorded_channel_does_later() {
    let usual = |round: u64, n: usize| {
        -95.0 - 2.5 * n as f64 - 1.7 * ((round * 5 + 3 * n as u64) % 7) as f64
    };
    // Later the terminals change places, and all links become worse.
    let other = |round: u64, n: usize| match round {
        0..=SAME => usual(round, n),
        _ => usual(round, 5 - n) - 12.0,
    };
    let files = [recording("usual", usual), recording("other", other)];
    let variants = ["splitfed+guard+q0.9", "splitnn+guard+q0.75"];
    let names = methods().iter().map(|method| method.name()).chain(variants);
    let mut changed = 0;
    for name in names {
        let [first, second] = [&files[0], &files[1]].map(|file| rounds(name, file));
        for (one, two) in first.iter().zip(&second).take(SAME as usize) {
            assert_eq!(one.seen, two.seen, "{name}, round {}", one.seen.round);
            assert_eq!(one.order, two.order, "{name}, round {}", one.seen.round);
        }
        let later = |rounds: &[RoundRecord]| rounds[SAME as usize].seen.reports();
        assert_ne!(later(&first), later(&second), "the recordings do differ");
        changed += usize::from(first[SAME as usize].order != second[SAME as usize].order);
    }
    assert!(changed > 5, "the difference matters to {changed} methods");
    files.iter().for_each(|file| fs::remove_file(file).unwrap());
}

#[test]
fn the_oracle_is_told_the_gains_of_the_rounds_to_come_whatever_gain_is_observed() {
    let gain = |round: u64, n: usize| -90.0 - n as f64 - 4.0 * (round % 3) as f64;
    let file = recording("foresight", gain);
    let set = format!("cell.trace={}", file.display());
    let mut parts = worlds::parts("random", &[&set]);
    until(&mut parts, 4);
    let question = Question { rounds: Some(5), ..Question::default() };
    let truth = reveal(&mut parts, &question).network.expect("it was asked for");
    assert_eq!(truth.fading_powers.len(), 5);
    let reports = observe(&mut parts).reports();
    for (ahead, powers) in truth.fading_powers.iter().enumerate() {
        for (n, power) in powers.iter().enumerate() {
            assert_eq!(reports[n].id, TerminalId(n as u32));
            let total = 10.0 * (reports[n].gain.0 * power).log10();
            assert!((total - gain(5 + ahead as u64, n)).abs() < 1e-9, "{ahead} rounds ahead");
        }
    }
    fs::remove_file(file).unwrap();
}
