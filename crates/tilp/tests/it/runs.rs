//! Whole runs: golden values, snapshots.
//!
//! `golden/runs.txt` holds, per method, who was scheduled in each round and what it cost.
//! `UPDATE_EXPECT=1 cargo test` rewrites it. Decisions and bytes are compared exactly. Training
//! differs in the last bits from one type of CPU to another, so floats have a tolerance, and
//! success is not measured: an episode may hang on the last bit.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use tilp::record::{Event, EventId};
use tilp::run::{Observer, RoundRecord, Stop, run};
use tilp::scenario::{Parts, methods};
use tilp::snapshot::{Persist, Snapshot};

use crate::rounds::{Keep, books, go_on, until};
use crate::worlds;

/// What is about to be tuned elsewhere is pinned here.
pub const PINNED: [&str; 4] = [
    "learning.server_rate=0.03",
    "learning.terminal_rate=0.03",
    "learning.aggregate_every=4",
    // Actor and critic have their say from the fifth round on.
    "methods.tilp.warm_up=4",
];
const ROUNDS: u64 = 12;

fn whole(method: &str) -> Vec<RoundRecord> {
    until(&mut worlds::parts(method, &PINNED), ROUNDS)
}

/// The terminals of a round as letters; capitals were late or do not fit their memory.
fn who(round: &RoundRecord) -> String {
    let failed = |n: usize| round.outcome.terminals[n].late || round.outcome.terminals[n].unfit;
    let mark = |n: usize| if failed(n) { "ABCDEF" } else { "abcdef" };
    round.order.plan.decision().scheduled().map(|n| &mark(n)[n..=n]).collect()
}

/// The golden lines of a method.
fn golden(method: &str) -> String {
    let rounds = whole(method);
    let bytes = |of: fn(&tilp::round::TerminalLedger) -> u64| {
        rounds.iter().flat_map(|round| &books(round).terminals).map(of).sum::<u64>()
    };
    let total = |of: fn(&RoundRecord) -> f64| rounds.iter().map(of).sum::<f64>();
    let energy = |round: &RoundRecord| {
        let spent = books(round).terminals.iter();
        spent.map(|one| one.energy_compute.0 + one.energy_radio.0).sum()
    };
    let mut text = String::new();
    let who: Vec<String> = rounds.iter().map(who).collect();
    let losses = rounds.iter().filter_map(|round| round.outcome.loss);
    let losses: Vec<String> = losses.map(|loss| format!("{loss:.6}")).collect();
    let _ = writeln!(text, "{method} scheduled {}", who.join(" "));
    let _ = writeln!(text, "{method} bytes_up {}", bytes(|one| one.bytes_up.0));
    let _ = writeln!(text, "{method} bytes_down {}", bytes(|one| one.bytes_down.0));
    let _ = writeln!(text, "{method} bytes_sync {}", bytes(|one| one.bytes_sync.0));
    let _ = writeln!(text, "{method} latency_s {:.6}", total(|round| books(round).latency.0));
    let _ = writeln!(text, "{method} clock_s {:.6}", total(|round| books(round).duration.0));
    let _ = writeln!(text, "{method} energy_j {:.6}", total(energy));
    let relative = total(|round| books(round).violation.relative);
    let _ = writeln!(text, "{method} violation {relative:.6}");
    let _ = writeln!(text, "{method} loss {}", losses.join(" "));
    text
}

/// Words with a decimal point may differ by a thousandth, all others not at all.
fn assert_close(found: &str, expected: &str) {
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(found).len(), words(expected).len(), "{found}\n{expected}");
    for (one, other) in words(found).iter().zip(&words(expected)) {
        match (one.contains('.'), one.parse::<f64>(), other.parse::<f64>()) {
            (true, Ok(a), Ok(b)) => {
                assert!((a - b).abs() <= 1e-3 * b.abs() + 1e-6, "{found}\n{expected}");
            }
            _ => assert_eq!(one, other, "{found}\n{expected}"),
        }
    }
}

#[test]
fn every_method_decides_and_costs_what_it_did_before() {
    // Scores of a search depend on losses, whose last bits differ between types of CPU. So only the
    // first plan of TiLP is pinned, below. That TiLP and the oracle repeat on one machine is tested
    // below and with the program.
    let searches = ["tilp", "oracle"];
    let repeatable = methods().iter().filter(|method| !searches.contains(&method.name()));
    let found: String = repeatable.map(|method| golden(method.name())).collect();
    assert_golden("runs.txt", &found);
}

/// The first plan of TiLP: scheduled terminals, and cut, band, power and compression of each.
fn first_plan(label: &str, overrides: &[&str]) -> String {
    let pinned = [&PINNED[..], overrides].concat();
    let rounds = until(&mut worlds::parts("tilp", &pinned), 1);
    let decided = &rounds[0].order.plan.decision().terminals;
    let mut text = format!("{label} scheduled {}\n", who(&rounds[0]));
    for (n, one) in decided.iter().enumerate().filter(|(_, one)| one.scheduled) {
        let (band, power) = (one.bandwidth.0 / 1e6, one.power.0);
        let (cut, compression) = (one.cut, one.compression);
        let _ = writeln!(text, "{label} {n} {cut} {band:.6} {power:.6} {compression:.6}");
    }
    text
}

#[test]
fn the_first_plan_of_tilp_is_what_it_was_before() {
    let plans = [
        first_plan("sampled", &["methods.tilp.search.kind=sampled"]),
        first_plan("inner", &["methods.tilp.search.kind=inner"]),
    ];
    assert_golden("plans.txt", &plans.concat());
}

/// Compares with a file of golden values, or rewrites it if requested.
pub fn assert_golden(name: &str, found: &str) {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden").join(name);
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::create_dir_all(file.parent().expect("a file has a folder")).unwrap();
        fs::write(&file, found).unwrap();
    }
    let expected = fs::read_to_string(&file).expect("made by UPDATE_EXPECT=1 cargo test");
    assert_eq!(found.lines().count(), expected.lines().count());
    for (found, expected) in found.lines().zip(expected.lines()) {
        assert_close(found, expected);
    }
}

#[test]
fn the_loop_stops_when_asked_after_the_round_in_progress() {
    /// Asks to stop once a round is complete.
    #[derive(Default)]
    struct StopAfter {
        last: u64,
        events: Vec<Event>,
        completed: Vec<u64>,
    }
    impl Observer for StopAfter {
        fn event(&mut self, event: &Event) {
            self.events.push(event.clone());
        }
        fn completed(&mut self, round: u64) {
            self.completed.push(round);
        }
        fn asked_to_stop(&self) -> bool {
            self.completed.last() == Some(&self.last)
        }
    }
    let Parts { mut cell, mut station, mut evaluator, mut laboratory, .. } =
        worlds::parts("greedy", &PINNED);
    let mut watch = StopAfter { last: 3, ..StopAfter::default() };
    let stop = run(&mut cell, &mut station, &mut evaluator, &mut laboratory, ROUNDS, &mut watch);
    assert_eq!(stop, Ok(Stop::Asked));
    assert_eq!(watch.completed, [1, 2, 3]);
    // The events that were given are those of the rounds, each once and in order.
    let mut keep = Keep { stop_after: Some(3), ..Keep::default() };
    assert_eq!(go_on(&mut worlds::parts("greedy", &PINNED), ROUNDS, &mut keep), Stop::Asked);
    assert!(watch.events == keep.events);
    let ids: Vec<EventId> = keep.events.iter().map(Event::id).collect();
    assert!(ids.windows(2).all(|pair| pair[1].follows(pair[0])), "{ids:?}");
    watch.last = 5;
    let stop = run(&mut cell, &mut station, &mut evaluator, &mut laboratory, 4, &mut watch);
    assert_eq!(stop, Ok(Stop::Finished));
}

#[test]
fn every_method_goes_on_from_a_snapshot_as_if_nothing_had_happened() {
    for method in methods() {
        let whole = whole(method.name());
        for stop in [1, 6] {
            let mut first = worlds::parts(method.name(), &PINNED);
            let mut keep = Keep { stop_after: Some(stop), ..Keep::default() };
            go_on(&mut first, ROUNDS, &mut keep);
            let mut snapshot = Snapshot::default();
            first.cell.save(&mut snapshot);
            first.station.save(&mut snapshot);
            let mut second = worlds::parts(method.name(), &PINNED);
            second.cell.restore(&snapshot).unwrap();
            second.station.restore(&snapshot).unwrap();
            keep.stop_after = None;
            go_on(&mut second, ROUNDS, &mut keep);
            assert!(keep.rounds == whole, "{} after round {stop}", method.name());
        }
    }
}

#[test]
fn actor_and_critic_have_their_say_once_they_are_warm() {
    // So that what a critic of a few rounds says outweighs the rewards of the horizon.
    const LOUD: &str = "methods.tilp.reward_unit=1";
    let decided = |more: &[&str]| {
        let mut parts = worlds::parts("tilp", &[&PINNED[..], &[LOUD], more].concat());
        let rounds = until(&mut parts, ROUNDS);
        rounds.iter().map(|one| one.order.plan.decision().clone()).collect::<Vec<_>>()
    };
    let both = decided(&[]);
    for part in ["methods.tilp.actor=false", "methods.tilp.critic=false"] {
        let without = decided(&[part]);
        assert_eq!(both[..4], without[..4], "{part}");
        assert_ne!(both[4..], without[4..], "{part}");
    }
}
