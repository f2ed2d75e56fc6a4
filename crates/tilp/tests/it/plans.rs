//! Single plans: the observation as JSON, reasons, budget.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use tilp::allocate::{Plan, Reason};
use tilp::experiment::{MOST_BYTES, PlanReport, PlanSpec, read_observation, write_observation};
use tilp::round::Observation;
use tilp::scenario::planner;
use tilp::tasks::tabletop::SUITE;
use tilp::units::{Bytes, Gain};

use crate::rounds::{observe, step};
use crate::worlds;

fn spec(overrides: &[&str]) -> PlanSpec {
    PlanSpec { scenario: worlds::tiny(overrides), seed: 0, learned: None }
}

fn first_observation() -> Observation {
    observe(&mut worlds::parts("tilp", &[]))
}

fn explained(overrides: &[&str], seen: &Observation) -> Plan {
    let tasks = seen.terminals.iter().map(|view| view.report.task).collect();
    planner(&worlds::tiny(overrides), 0, tasks, None).unwrap().explain(seen)
}

fn planned(overrides: &[&str], seen: &Observation) -> PlanReport {
    spec(overrides).plan(write_observation(seen, &SUITE).as_bytes(), None).unwrap()
}

#[test]
fn an_observation_comes_back_from_json_as_it_was() {
    let mut parts = worlds::parts("tilp", &["evaluation.calibrate_every=2"]);
    for _ in 0..3 {
        let seen = observe(&mut parts);
        let text = write_observation(&seen, &SUITE);
        let mut back = read_observation(text.as_bytes(), &spec(&[]).expected().unwrap()).unwrap();
        for (view, old) in back.terminals.iter_mut().zip(&seen.terminals) {
            assert!((view.report.gain.0 / old.report.gain.0 - 1.0).abs() < 1e-12, "{view:?}");
            view.report.gain = old.report.gain;
        }
        assert_eq!(back, seen);
        step(&mut parts);
    }
}

#[test]
fn a_plan_decides_as_the_first_round_of_a_run_does() {
    let mut parts = worlds::parts("tilp", &[]);
    let seen = observe(&mut parts);
    let executed = parts.station.decide(&seen).unwrap().plan;
    let report = planned(&[], &seen);
    for (row, one) in report.terminals.iter().zip(&executed.decision().terminals) {
        assert_eq!((row.scheduled, row.cut), (one.scheduled, one.cut), "{row:?}");
        assert_eq!(row.compression, one.compression, "{row:?}");
        assert!((row.bandwidth_hz - one.bandwidth.0).abs() <= 1e-6 * one.bandwidth.0, "{row:?}");
        assert!((row.power_w - one.power.0).abs() <= 1e-6 * one.power.0, "{row:?}");
    }
}

#[test]
fn everybody_scheduled_is_surely_in_time_and_everybody_else_has_a_reason() {
    let mut seen = first_observation();
    seen.terminals[0].report.gain = Gain(1e-30);
    seen.terminals[1].report.memory = Bytes(1);
    let plan = explained(&[], &seen);
    assert!(matches!(plan.terminals[0].reason, Reason::Unreachable { sure } if sure.0 > 5.0));
    assert!(matches!(plan.terminals[1].reason, Reason::MemoryShort { budget: Bytes(1), .. }));
    for (n, one) in plan.terminals.iter().enumerate() {
        let scheduled = plan.decision.terminals[n].scheduled;
        assert_eq!(matches!(one.reason, Reason::Gain { .. }), scheduled, "{one:?}");
        assert!(!scheduled || (one.delay <= one.sure_delay && one.sure_delay.0 <= 5.0), "{one:?}");
        if let Reason::WorthLess { difference } = one.reason {
            assert!(difference <= 0.0);
        }
    }
    assert_eq!(plan.predicted.n_late, 0);
    let ours: Vec<usize> = plan.decision.scheduled().collect();
    for other in &plan.runner_ups {
        assert!(other.behind >= 0.0);
        assert!(other.added.iter().all(|n| !ours.contains(n)), "{other:?}");
        assert!(other.left_out.iter().all(|n| ours.contains(n)), "{other:?}");
        let size = ours.len() + other.added.len() - other.left_out.len();
        assert_eq!(other.n_scheduled, size);
    }
}

#[test]
fn where_nobody_can_make_it_the_least_bad_says_so() {
    let mut seen = first_observation();
    seen.terminals.iter_mut().for_each(|view| view.report.gain = Gain(1e-29));
    seen.terminals[3].report.gain = Gain(1e-25);
    let plan = explained(&[], &seen);
    assert!(plan.decision.fallback);
    assert_eq!(plan.planned_return, None);
    for (n, one) in plan.terminals.iter().enumerate() {
        match one.reason {
            Reason::LeastBad { .. } => assert_eq!(n, 3),
            Reason::Unreachable { .. } => assert_ne!(n, 3),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn no_budget_at_all_is_the_actor_alone() {
    let seen = first_observation();
    let no_time = explained(&["methods.tilp.plan_budget_ms=0"], &seen);
    assert_eq!(no_time, explained(&["methods.tilp.cem=false"], &seen));
    assert_eq!((no_time.iterations, no_time.runner_ups.len()), (None, 0));
}

/// Says at every look that much time has passed.
fn hasty() -> f64 {
    static LOOKS: AtomicU64 = AtomicU64::new(0);
    1e6 * LOOKS.fetch_add(1, Ordering::SeqCst) as f64
}

#[test]
fn when_time_is_up_the_best_of_the_first_iteration_is_returned() {
    let seen = first_observation();
    let text = write_observation(&seen, &SUITE);
    let budget = spec(&["methods.tilp.plan_budget_ms=10"]);
    let hurried = budget.plan(text.as_bytes(), Some(hasty)).unwrap();
    assert_eq!(hurried.search.unwrap().iterations, 1);
    let one = spec(&["methods.tilp.iterations=1"]).plan(text.as_bytes(), None).unwrap();
    assert_eq!(hurried, one);
    // Without a budget the clock is not even looked at.
    let patient = spec(&[]).plan(text.as_bytes(), Some(hasty)).unwrap();
    assert_eq!(patient.search.unwrap().iterations, 5);
}

fn refused(bytes: &[u8]) -> String {
    let expected = spec(&[]).expected().unwrap();
    let said = read_observation(bytes, &expected).expect_err("must be refused").to_string();
    assert!(!said.contains('\n') && said.len() < 1000, "{said}");
    said
}

#[test]
fn what_is_no_observation_is_refused_with_its_field_and_what_was_expected() {
    let good: Value =
        serde_json::from_str(&write_observation(&first_observation(), &SUITE)).unwrap();
    let with = |path: &str, value: Value| {
        let mut bad = good.clone();
        *bad.pointer_mut(path).unwrap_or_else(|| panic!("no {path}")) = value;
        refused(bad.to_string().as_bytes())
    };
    for (path, value, words) in [
        ("/round", json!(0), "round = 0, expected 1 to 1e9"),
        (
            "/round",
            json!("one"),
            "at round: invalid type: string \"one\", expected a whole number from 0 on",
        ),
        ("/aggregates", json!(true), "aggregates = true, expected false in round 1"),
        ("/clock_s", json!(-1.0), "clock_s = -1, expected 0 to 1e12"),
        ("/loss", json!(0.0), "loss = 0, expected 1e-12 to"),
        ("/success", json!({"juggle": {"successes": 1, "episodes": 1}}), "success = juggle"),
        ("/success", json!({"bin": {"successes": 2, "episodes": 1}}), "success.bin.successes = 2"),
        ("/terminals", json!([]), "terminals = 0 terminals, expected 6"),
        ("/terminals/2/gain_db", json!(-301), "terminals[2].gain_db = -301, expected -300 to 50"),
        ("/terminals/2/gain_db", json!(null), "at terminals[2].gain_db = nothing, expected a gain"),
        ("/terminals/5/fading_power", json!(-0.1), "terminals[5].fading_power = -0.1"),
        ("/terminals/0/memory_bytes", json!(0), "terminals[0].memory_bytes = 0, expected 1 to"),
        ("/terminals/0/memory_bytes", json!(-5), "terminals[0].memory_bytes: invalid value"),
        ("/terminals/1/held_layers", json!(99), "terminals[1].held_layers = 99, expected 0 to"),
        ("/terminals/1/task", json!("juggle"), "terminals[1].task = juggle, expected one of bin"),
        ("/terminals/1/task", json!("x".repeat(100_000)), "terminals[1].task = xxx"),
        ("/terminals/1/loss", json!({}), "at terminals[1].loss: invalid type: map"),
    ] {
        let said = with(path, value);
        assert!(said.contains(words), "`{words}` is not in: {said}");
    }
}

#[test]
fn no_bytes_make_reading_panic() {
    let good = write_observation(&first_observation(), &SUITE);
    assert!(refused(b"").contains("empty"));
    assert!(refused(b" \n").contains("empty"));
    assert!(refused(&vec![b'['; 1 << 20]).contains("observation"));
    assert!(refused(&vec![b' '; MOST_BYTES + 1]).contains("bytes, expected at most"));
    assert!(refused(b"\xff\xfe{").contains("observation"));
    assert!(refused(format!("{good} x").as_bytes()).contains("trailing"));
    for word in ["NaN", "Infinity", "1e999", "-1e999"] {
        let bad = good.replacen("\"clock_s\": 0.0", &format!("\"clock_s\": {word}"), 1);
        assert_ne!(bad, good);
        assert!(refused(bad.as_bytes()).contains("clock_s"), "{word}");
    }
    let unknown = good.replacen("\"clock_s\"", "\"clock_ms\"", 1);
    assert!(refused(unknown.as_bytes()).contains("unknown field `clock_ms`"));
    for end in 0..good.len() {
        refused(&good.as_bytes()[..end]);
    }
}

#[test]
fn the_example_of_the_documentation_is_planned() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/observation.md");
    let text = fs::read_to_string(path).unwrap();
    let example = text.split("```json\n").nth(1).unwrap().split("```").next().unwrap();
    let report = spec(&["cell.n_terminals=2"]).plan(example.as_bytes(), None).unwrap();
    assert_eq!(report.terminals.len(), 2);
    for field in ["gain_db", "fading_power", "previous_bandwidth_hz", "gradient_norm", "loss"] {
        assert!(text.contains(&format!("| `{field}`")), "{field}");
    }
}
