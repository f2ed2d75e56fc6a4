use super::{Bill, Part, levelled};
use crate::experiment::replay::Replay;
use crate::experiment::{RunSpec, Time, run_single};
use crate::record::{RoundRow, RunFolder};
use crate::rule::Rule;
use crate::scenario::{Scenario, method};

struct NoTime;

impl Time for NoTime {
    fn seconds(&self) -> f64 {
        0.0
    }

    fn epoch_seconds(&self) -> f64 {
        0.0
    }
}

/// A short run of a reference rule.
fn run(name: &str) -> (Replay, Vec<RoundRow>) {
    let keys = ["rounds=12", "tasks.episode_steps=10", "evaluation.final_episodes=1"];
    let scenario = Scenario::load("tiny", &keys.map(str::to_owned)).unwrap();
    let path = std::env::temp_dir().join(format!("tilp-levelled-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    let spec = RunSpec {
        scenario,
        method: method(name).unwrap(),
        seed: 3,
        replicate: 0,
        checkpoint_every: u64::MAX,
        planner_states: 0,
        about: serde_json::Value::Null,
    };
    run_single(&spec, RunFolder::create(&path).unwrap(), false, None, &NoTime, &mut ()).unwrap();
    let history = RunFolder::open(&path).unwrap().read_history().unwrap();
    let _ = std::fs::remove_dir_all(&path);
    let rows = history.rounds.clone();
    (Replay::of_events(spec.scenario, spec.method, spec.seed, history).unwrap(), rows)
}

fn assert_close(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 1e-9, "{found} instead of {expected}");
}

#[test]
fn a_round_as_it_was_costs_what_the_record_says() {
    let (replay, rows) = run("deficit");
    let mut checked = 0;
    for (round, row) in replay.rounds().zip(&rows).filter(|(_, row)| row.n_late == 0) {
        let bill = Bill::new(&replay, Rule::Parallel, &round, row);
        let spent = |row: &crate::record::TerminalRow| row.energy_radio_j + row.energy_compute_j;
        assert_close(bill.paid.joules, round.truth.iter().map(spent).sum());
        let delays = round.truth.iter().map(|row| row.delay_s);
        assert_close(bill.paid.seconds, delays.fold(0.0, f64::max));
        checked += 1;
    }
    assert!(checked > 6, "only {checked} rounds without a late terminal");
}

#[test]
fn what_is_the_same_for_all_costs_nothing_when_it_is_made_so() {
    let (replay, rows) = run("random");
    let (rounds, parts) = levelled(&replay, &rows).unwrap();
    assert!(rounds > 6);
    for one in parts {
        match one.part {
            Part::Bandwidth => assert!((one.seconds - 1.0).abs() > 0.01, "{one:?}"),
            _ => {
                assert_close(one.seconds, 1.0);
                assert_close(one.joules, 1.0);
                assert_eq!(one.missed, 0);
            }
        }
    }
}
