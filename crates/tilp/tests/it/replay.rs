//! A run shown again: the same observations and outcomes, the same twin.

use std::path::{Path, PathBuf};

use serde_json::json;
use tilp::experiment::replay::{Replay, TwinReport, figures, forecasts, report};
use tilp::record::event::Header;
use tilp::record::{Event, Files, Identity, RunFolder, Stream};
use tilp::run::RoundRecord;
use tilp::scenario::{assemble_twin, method};
use tilp::snapshot::{Persist, Snapshot};
use tilp::twin::Twin;
use tilp::world::Examiner;

use crate::rounds::{self, books, go_on};
use crate::worlds;

/// Success is measured often, copies are aggregated, and some terminal is late.
const OVERRIDES: [&str; 4] = [
    "evaluation.calibrate_every=5",
    "learning.aggregate_every=4",
    "rounds=24",
    "limits.deadline_s=1.5",
];

/// Every round, the stream, and the state of the method after the last round.
struct Keep {
    rounds: Vec<RoundRecord>,
    stream: Stream,
    method: Snapshot,
}

fn lived(name: &str, overrides: &[&str]) -> Keep {
    let mut keep = rounds::Keep::default();
    let mut parts = worlds::parts(name, overrides);
    go_on(&mut parts, 24, &mut keep);
    let tasks = parts.laboratory.examiner().tasks().iter().map(|&task| task.to_owned());
    let scenario = worlds::tiny(overrides).hash();
    let identity = Identity { method: name.to_owned(), seed: 0, replicate: 0, scenario };
    let mut stream = Stream::default();
    let header = Event::Header(Header::new(&identity, &tasks.collect::<Vec<_>>()));
    for event in std::iter::once(&header).chain(&keep.events) {
        stream.push(event).unwrap();
    }
    let mut method = Snapshot::default();
    parts.station.method().save(&mut method);
    Keep { rounds: keep.rounds, stream, method }
}

/// A folder that is gone at the end of its test.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The run of a method, and its folder opened again.
fn recorded(place: &str, name: &str, overrides: &[&str]) -> (Keep, Replay) {
    let all: Vec<&str> = OVERRIDES.iter().chain(overrides).copied().collect();
    let keep = lived(name, &all);
    let path = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let scratch = Scratch(path.join(format!("replay-{place}-{}", std::process::id())));
    let _ = std::fs::remove_dir_all(&scratch.0);
    let files = (keep.stream.files())
        .manifest(&json!({"method": name, "seed": 0}))
        .scenario(&worlds::tiny(&all).to_toml());
    RunFolder::create(&scratch.0).unwrap().write(&files).unwrap();
    let replay = Replay::open(&RunFolder::open(&scratch.0).unwrap()).unwrap();
    // The rows alone say the same: folders of version 1 have no events.
    let rows = Files::new().tables(&keep.stream.history).unwrap();
    RunFolder::open(&scratch.0).unwrap().write(&rows).unwrap();
    std::fs::remove_file(scratch.0.join("events.jsonl")).unwrap();
    let from_rows = Replay::open(&RunFolder::open(&scratch.0).unwrap()).unwrap();
    assert!(
        from_rows
            .rounds()
            .zip(replay.rounds())
            .all(|(a, b)| { (a.seen, a.plan, a.outcome) == (b.seen, b.plan, b.outcome) })
    );
    (keep, replay)
}

fn reported(place: &str, overrides: &[&str]) -> TwinReport {
    let (_, replay) = recorded(place, "random", overrides);
    report(&replay, &forecasts(&replay))
}

/// Every round of the replay is the one lived through; how many were late, how many measured.
fn assert_same(keep: &Keep, replay: &Replay) -> (usize, usize) {
    let (mut n_late, mut n_measured) = (0, 0);
    assert_eq!(replay.rounds().count(), keep.rounds.len());
    for (found, lived) in replay.rounds().zip(&keep.rounds) {
        assert_eq!(found.seen, lived.seen);
        assert_eq!(found.plan, lived.order.plan);
        assert_eq!(found.outcome, lived.outcome);
        n_late += lived.outcome.terminals.iter().filter(|one| one.late).count();
        n_measured += usize::from(lived.outcome.success.is_some());
    }
    (n_late, n_measured)
}

#[test]
fn a_replay_shows_exactly_what_the_base_station_saw_decided_and_measured() {
    for name in ["splitfed", "random", "deficit"] {
        let (keep, replay) = recorded(&format!("same-{name}"), name, &[]);
        let (n_late, n_measured) = assert_same(&keep, &replay);
        assert_eq!(n_measured, 4);
        assert!(n_late > 0 || name != "splitfed", "the test is to see late terminals too");
    }
}

#[test]
fn a_method_that_trains_in_a_way_unknown_to_the_twin_is_refused_by_name() {
    for name in ["fedavg", "splitnn", "adaptsfl+guard", "ga-sfl", "hsfl"] {
        let found = assemble_twin(&worlds::tiny(&[]), &method(name).unwrap(), 0);
        let said = found.expect_err(name).to_string();
        assert!(said.contains(&format!("method = {name}, expected one whose")), "{said}");
    }
    for name in ["splitfed+guard", "asfl+q0.75", "fedsl", "tilp"] {
        assert!(assemble_twin(&worlds::tiny(&[]), &method(name).unwrap(), 0).is_ok(), "{name}");
    }
}

#[test]
fn a_replay_over_a_recorded_channel_is_exact_too() {
    // Its gains are means of powers, which do not come back from decibels to the last bit.
    let path = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let trace = Scratch(path.join(format!("replay-channel-{}", std::process::id())));
    std::fs::create_dir_all(&trace.0).unwrap();
    let file = trace.0.join("trace.csv");
    let gain = |round: usize, n: usize| -90.0 - 3.7 * n as f64 - 0.9 * ((round * 7 + n) % 5) as f64;
    let row = |round| (0..6).map(|n| gain(round, n).to_string()).collect::<Vec<_>>().join(",");
    let rows: Vec<String> = (0..11).map(row).collect();
    std::fs::write(&file, format!("a,b,c,d,e,f\n{}\n", rows.join("\n"))).unwrap();
    let channel = format!("cell.trace={}", file.display());
    let (keep, replay) = recorded("channel", "random", &[&channel]);
    assert_same(&keep, &replay);
}

#[test]
fn a_twin_that_is_shown_the_run_again_is_the_twin_that_lived_through_it() {
    let (keep, replay) = recorded("twin", "tilp", &["methods.tilp.samples=32"]);
    let parts = assemble_twin(&replay.scenario, &method("tilp").unwrap(), replay.seed)
        .expect("it is sound");
    let mut lived = Twin::new(parts.nominal, parts.options);
    lived.restore(&keep.method).unwrap();
    let again = forecasts(&replay).twin;
    let (mut one, mut other) = (Snapshot::default(), Snapshot::default());
    lived.save(&mut one);
    again.save(&mut other);
    // As text, since what is not known yet is NaN.
    assert_eq!(format!("{one:?}"), format!("{other:?}"));
    for round in replay.rounds() {
        let (seen, plan) = (&round.seen, &round.plan);
        let forecast = |twin: &Twin| format!("{:?}", twin.forecast(seen, plan));
        assert_eq!(forecast(&lived), forecast(&again));
        assert_eq!(lived.forecast_success(seen, 0, 10), again.forecast_success(seen, 0, 10));
    }
}

#[test]
fn the_calibrated_twin_forecasts_a_run_better_than_the_data_sheet() {
    let report = reported("better", &[]);
    let [delay, energy, ..] = &report.sub_twins[..] else { panic!("six quantities") };
    for one in [delay, energy] {
        assert!(one.n > 40, "{one:?}");
        assert!(one.error_after < one.error_before, "{one:?}");
        assert!(one.coverage_after.is_some_and(|share| share > 0.8), "{one:?}");
    }
    assert_eq!(report.frozen, [""; 0]);
    assert_eq!(report.curve.groups.len(), 5);
    assert!(report.curve.groups.iter().all(|group| group.rounds == [5, 10, 15, 20]));
}

#[test]
fn freezing_a_loop_shows() {
    let frozen = reported("frozen", &["methods.tilp.calibrate_network=false"]);
    assert_eq!(frozen.frozen, ["network"]);
    let [delay, energy, .., success] = &frozen.sub_twins[..] else { panic!("six quantities") };
    for one in [delay, energy] {
        assert_eq!(one.error_after, one.error_before);
        assert_eq!(one.coverage_after, one.coverage_before);
    }
    assert_ne!(success.error_after, success.error_before, "the other loops still learn");
    let training = reported("frozen-training", &["methods.tilp.calibrate_training=false"]);
    assert_eq!(training.frozen, ["training"]);
    let [delay, _, loss, decrease, ..] = &training.sub_twins[..] else { panic!("six quantities") };
    assert_ne!(delay.error_after, delay.error_before, "the other loops still learn");
    for one in [loss, decrease] {
        assert_eq!(one.error_after, one.error_before);
        assert_eq!(one.coverage_after, one.coverage_before);
    }
    assert!(training.decreases.iter().all(|one| one.rmse_after == one.rmse_before));
    let free = reported("free-training", &[]);
    assert_ne!(free.sub_twins[3].error_after, free.sub_twins[3].error_before);
}

#[test]
fn freezing_the_task_loop_shows_in_the_forecasts_of_success() {
    // They follow the losses, so it is the curve that stands still, not the forecast.
    let [free, frozen] = ["true", "false"].map(|is_on| {
        let knob = format!("methods.tilp.calibrate_task={is_on}");
        reported(&format!("task-{is_on}"), &[&knob])
    });
    assert_eq!(frozen.frozen, ["task"]);
    assert_eq!(frozen.sub_twins[0], free.sub_twins[0], "the network is not concerned");
    assert_ne!(frozen.sub_twins[5].error_after, free.sub_twins[5].error_after);
    let none = ["network", "training", "task"]
        .map(|loop_| format!("methods.tilp.calibrate_{loop_}=false"));
    let none = reported("frozen-all", &none.each_ref().map(String::as_str));
    let success = &none.sub_twins[5];
    assert_eq!(success.error_after, success.error_before);
}

#[test]
fn the_loss_decrease_is_scored_in_total_and_per_task_in_the_rounds_that_were_looked_at() {
    let (keep, replay) = recorded("decrease", "random", &[]);
    let all = forecasts(&replay);
    let rounds: Vec<u64> = all.decrease.iter().map(|one| one.round).collect();
    assert_eq!(rounds, [7, 14, 21]);
    let looked: Vec<_> = keep.rounds.iter().filter_map(|one| books(one).losses.as_ref()).collect();
    let mean = |losses: &[f64]| losses.iter().sum::<f64>() / losses.len() as f64;
    for (sample, changes) in all.decrease.iter().zip(looked) {
        let before: Vec<f64> = changes.iter().map(|one| one.before).collect();
        let after: Vec<f64> = changes.iter().map(|one| one.after).collect();
        let fall = 1.0 - mean(&after) / mean(&before);
        assert!((sample.measured - fall).abs() < 1e-12 && fall != 0.0, "{sample:?} {fall}");
    }
    let report = report(&replay, &all);
    let tasks: Vec<_> = report.decreases.iter().map(|one| one.task).collect();
    assert_eq!(tasks.len(), 6, "{tasks:?}");
    assert_eq!((tasks[0], report.decreases[0].n), (None, 3));
    assert_eq!(all.group_decrease.len(), 15);
    assert!(report.decrease_within_rounds.is_some_and(|value| value.abs() <= 1.0));
    assert!(report.decreases.iter().all(|one| one.rmse_after.is_some() && one.coverage.is_some()));
}

#[test]
fn where_nothing_is_hidden_the_twin_is_exact() {
    let mirror = [
        "hardware.hidden_share=0.0",
        "cell.hidden_noise_figure_db=0.0",
        "hardware.measurement_noise=0.0",
    ];
    let (_, replay) = recorded("mirror", "random", &mirror);
    let all = forecasts(&replay);
    for sample in all.delay.iter().chain(&all.energy) {
        let off = sample.before.mid / sample.measured - 1.0;
        assert!(off.abs() < 1e-9, "{sample:?}");
    }
}

#[test]
fn every_quantity_has_its_figure() {
    let (_, replay) = recorded("figures", "deficit", &[]);
    let all = forecasts(&replay);
    let drawn = figures(&all, &report(&replay, &all));
    let names: Vec<&str> = drawn.iter().map(|(name, _)| name.as_str()).collect();
    let tasks = ["decrease-tasks", "success", "tasks"];
    assert_eq!(names[..4], ["delay", "energy", "loss", "decrease"]);
    assert_eq!(names[4..], tasks);
    for (name, figure) in &drawn {
        let svg = figure.to_svg();
        assert!(svg.contains("deficit on tiny, seed 0") && !svg.contains("NaN"), "{name}");
        assert!(!figure.panels.is_empty(), "{name}");
    }
}
