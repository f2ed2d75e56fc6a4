//! Dated events: changes, their rounds, their terminals, and what is observed.

use tilp::round::{Cell, Question, TerminalId, TerminalReport};
use tilp::run::RoundRecord;
use tilp::scenario::{Parts, Scenario, ScenarioError, assemble, method, methods};
use tilp::snapshot::{Persist, Snapshot};
use tilp::units::to_db;

use crate::rounds::{Keep, books, go_on, observe, reveal, until};
use crate::worlds::{self, cache};

/// Every kind of event in twelve rounds.
const ALL: &str = "events=[\
    {round=3, leave=[1], join=[5]}, \
    {round=4, change={terminals=[0, 2], payload_kg=0.3, goal_turn_rad=1.6, demonstrations=2}}, \
    {round=5, interferer={terminals=[2, 3], noise_db=6.0, lasts_rounds=4}}, \
    {round=7, blockage={sector_deg=[0.0, 200.0], loss_db=15.0, lasts_rounds=3}}, \
    {round=9, join=[1], change={terminals=[3], demonstrations=1}}]";
const ROUNDS: u64 = 12;

fn with(name: &str, events: &str) -> Parts {
    let measured = ["evaluation.measure_every=3", "evaluation.calibrate_every=4"];
    let [often, calibrated] = measured;
    worlds::parts(name, &["rounds=12", "learning.aggregate_every=4", often, calibrated, events])
}

fn named(name: &str, events: &str) -> Vec<RoundRecord> {
    until(&mut with(name, events), ROUNDS)
}

fn report(round: &RoundRecord, id: u32) -> Option<TerminalReport> {
    let mut views = round.seen.terminals.iter();
    views.find(|view| view.report.id == TerminalId(id)).map(|view| view.report)
}

fn refused(events: &str) -> String {
    let overrides = [format!("events={events}")];
    Scenario::load("tiny", &overrides).expect_err("the event is wrong").to_string()
}

#[test]
fn a_blockage_lowers_the_reported_gain_by_its_decibels_and_touches_nothing_else() {
    let event = "events=[{round=3, blockage={terminals=[0, 4], loss_db=15.0, lasts_rounds=2}}]";
    let (calm, hit) = (named("random", "events=[]"), named("random", event));
    for (before, after) in calm.iter().zip(&hit) {
        for id in 0..6 {
            let [old, new] = [before, after].map(|round| report(round, id).unwrap());
            let expected = match (after.seen.round, id) {
                (3 | 4, 0 | 4) => -15.0,
                _ => 0.0,
            };
            let change = to_db(new.gain.0) - to_db(old.gain.0);
            assert!((change - expected).abs() < 1e-9, "round {}, {id}", after.seen.round);
            assert_eq!(new.fading_power, old.fading_power);
            assert_eq!(new.hardware, old.hardware);
        }
    }
}

#[test]
fn a_sector_hits_the_terminals_between_its_angles_and_two_halves_hit_everybody_once() {
    let gains = |events: &str| {
        let seen = observe(&mut with("random", events));
        seen.terminals.iter().map(|view| view.report.gain.0).collect::<Vec<f64>>()
    };
    let sector = |from: f64, to: f64| {
        gains(&format!(
            "events=[{{round=1, blockage={{sector_deg=[{from:?}, {to:?}], loss_db=10.0, lasts_rounds=1}}}}]"
        ))
    };
    let calm = gains("events=[]");
    let (east, west) = (sector(-90.0, 90.0), sector(90.0, 270.0));
    let mut hits = [0, 0];
    for n in 0..calm.len() {
        let [a, b] = [east[n], west[n]].map(|gain| (10.0 * gain - calm[n]).abs() < 1e-9 * calm[n]);
        assert!(a != b, "terminal {n} is in one half");
        hits[usize::from(b)] += 1;
    }
    assert!(hits[0] > 0 && hits[1] > 0, "both halves have terminals: {hits:?}");
}

#[test]
fn an_interferer_is_in_no_report_and_multiplies_the_noise_that_delays_show() {
    let event = "events=[{round=1, interferer={terminals=[0, 1, 2, 3, 4, 5], noise_db=7.0, lasts_rounds=1}}]";
    let (mut calm, mut hit) = (with("splitfed", "events=[]"), with("splitfed", event));
    assert_eq!(
        observe(&mut calm),
        observe(&mut hit),
        "an event does not show in what is observed before it"
    );
    let question = Question { rounds: Some(1), ..Question::default() };
    let [quiet, loud] =
        [&mut calm, &mut hit].map(|parts| reveal(parts, &question).network.unwrap());
    for (quiet, loud) in quiet.hardware.iter().zip(&loud.hardware) {
        let ratio = loud.noise_w_per_hz / quiet.noise_w_per_hz;
        assert!((to_db(ratio) - 7.0).abs() < 1e-9, "the truth contains it");
        assert_eq!(loud.operations_per_cycle, quiet.operations_per_cycle);
    }
    let (calm, hit) = (until(&mut calm, 1).remove(0), until(&mut hit, 1).remove(0));
    for (before, after) in books(&calm).terminals.iter().zip(&books(&hit).terminals) {
        assert!(after.delay > before.delay);
        // Noise is felt on the air only; without it nothing but computation would be left.
        assert_eq!(after.bandwidth, before.bandwidth);
    }
}

#[test]
fn the_rate_under_an_interferer_is_that_of_the_raised_noise() {
    let event = "events=[{round=2, interferer={terminals=[1], noise_db=10.0, lasts_rounds=1}}]";
    let parts = with("random", event);
    let radio = parts.cell.radio();
    for round in 1..4 {
        let noise = radio.true_hardware(TerminalId(1), round).noise_w_per_hz;
        let factor = if round == 2 { 10.0 } else { 1.0 };
        assert!((noise / radio.truth[1].noise_w_per_hz - factor).abs() < 1e-9);
    }
}

#[test]
fn changed_work_is_in_no_report_except_for_new_samples() {
    let quiet = "events=[{round=3, change={terminals=[0, 2], payload_kg=0.3, goal_turn_rad=1.6}}]";
    let (calm, hit) = (named("random", "events=[]"), named("random", quiet));
    for (before, after) in calm.iter().zip(&hit) {
        assert_eq!(before.seen, after.seen, "payload and goal are not observed");
    }
    let loud = "events=[{round=3, change={terminals=[0, 2], demonstrations=2}}]";
    for round in named("random", loud) {
        let [before, after] = [&calm[0], &round]
            .map(|round| [0, 1, 2].map(|id| report(round, id).unwrap().n_samples));
        let grown = [0, 1, 2].map(|n| after[n] > before[n]);
        let arrived = round.seen.round >= 3;
        assert_eq!(grown, [arrived, false, arrived], "round {}", round.seen.round);
    }
}

#[test]
fn arriving_demonstrations_are_new_samples_of_the_changed_cell_beside_the_old_ones() {
    let data = |change: &str| {
        let event = format!("events=[{{round=1, change={{terminals=[0], {change}}}}}]");
        // Twice: made, then read from the cache.
        let [made, read] = [0, 1].map(|_| {
            let mut parts = with("random", &event);
            parts.cell.sense().unwrap();
            parts.cell.engine().data(TerminalId(0)).unwrap()
        });
        assert_eq!(made, read, "{change}");
        made
    };
    let old = data("payload_kg=0.1");
    let (same, turned) = (data("demonstrations=2"), data("goal_turn_rad=1.6, demonstrations=2"));
    for new in [&same, &turned] {
        assert!(new.len() > old.len());
        for sample in 0..old.len() {
            assert_eq!(new.observation(sample), old.observation(sample));
            assert_eq!(new.action(sample), old.action(sample));
        }
    }
    let first_new = [&same, &turned].map(|new| new.observation(old.len()).to_vec());
    assert_ne!(first_new[0], first_new[1], "shown in the changed cell");
}

#[test]
fn success_is_measured_in_the_changed_cell_from_the_round_of_the_event_on() {
    let events = "events=[{round=4, change={terminals=[1], goal_turn_rad=1.6}}, \
                   {round=6, change={terminals=[1], payload_kg=0.2}}, \
                   {round=6, change={terminals=[2], demonstrations=1}}]";
    let parts = with("random", events);
    let fleet = parts.laboratory.fleet();
    let cell = |id: u32, round: u64| fleet.at(round).cell(TerminalId(id));
    assert_eq!([0, 3, 4, 5, 6, 12].map(|round| cell(1, round)), [1, 1, 6, 6, 7, 7]);
    assert!([0, 3, 6, 12].iter().all(|&round| cell(2, round) == 2), "new data, same cell");
    assert_eq!(fleet.cells.len(), 8);
}

#[test]
fn a_change_may_pick_the_first_terminals_with_a_task() {
    let pick = |change: &str| {
        let overrides = [
            "rounds=12".to_owned(),
            format!("events=[{{round=1, change={{{change}, payload_kg=0.1}}}}]"),
        ];
        let scenario = Scenario::load("tiny", &overrides).unwrap();
        let made = assemble(&scenario, method("random").unwrap(), 0, Some(&cache()), &|_, _| {});
        made.map(|parts| {
            let fleet = parts.laboratory.fleet();
            fleet.changes.iter().map(|one| one.terminal.0).collect::<Vec<_>>()
        })
    };
    let parts = with("random", "events=[]");
    let pushes: Vec<u32> =
        (0..6).filter(|&id| parts.laboratory.fleet().cells[id as usize].task() == 3).collect();
    assert_eq!(pushes.len(), 2);
    assert_eq!(pick("tasks=[\"push\"]").unwrap(), pushes);
    assert_eq!(pick("tasks=[\"push\"], count=1").unwrap(), pushes[..1]);
    assert_eq!(pick("count=3").unwrap(), [0, 1, 2]);
    let Err(ScenarioError::Range { field, .. }) = pick("tasks=[\"push\"], count=3") else {
        panic!("there are two such terminals");
    };
    assert_eq!(field, "events[0].change.count");
}

#[test]
fn a_share_of_the_run_moves_with_the_number_of_rounds() {
    let starts = |rounds: u64| {
        let overrides = [format!("rounds={rounds}"), "events=[{at=0.25, leave=[0]}]".to_owned()];
        Scenario::load("tiny", &overrides).unwrap().events()[0].round
    };
    assert_eq!([4, 20, 1000].map(starts), [2, 6, 251]);
}

#[test]
fn every_method_meets_the_same_events_and_the_same_weather() {
    let weather = |name: &str| {
        let line = |round: &RoundRecord| {
            let reports = round.seen.terminals.iter().map(|view| view.report);
            let of = |one: TerminalReport| {
                (one.id, one.gain.0.to_bits(), one.fading_power.to_bits(), one.n_samples)
            };
            reports.map(of).collect::<Vec<_>>()
        };
        named(name, ALL).iter().map(line).collect::<Vec<_>>()
    };
    let expected = weather("random");
    assert_eq!(expected[2].len(), 5, "one left, one joined");
    assert_eq!(expected[8].len(), 6);
    for method in methods() {
        assert_eq!(weather(method.name()), expected, "{}", method.name());
    }
}

#[test]
fn a_run_goes_on_across_every_event_as_if_nothing_had_happened() {
    for name in ["random", "splitfed", "splitnn", "adaptsfl", "hsfl", "tilp"] {
        let whole = named(name, ALL);
        for stop in 1..ROUNDS {
            let mut first = with(name, ALL);
            let mut keep = Keep { stop_after: Some(stop), ..Keep::default() };
            go_on(&mut first, ROUNDS, &mut keep);
            let mut snapshot = Snapshot::default();
            first.cell.save(&mut snapshot);
            first.station.save(&mut snapshot);
            let mut second = with(name, ALL);
            second.cell.restore(&snapshot).unwrap();
            second.station.restore(&snapshot).unwrap();
            go_on(&mut second, ROUNDS, &mut keep);
            assert_eq!(keep.rounds, whole, "{name}, stopped after round {stop}");
        }
    }
}

#[test]
fn an_event_that_cannot_happen_names_its_field() {
    for (event, expected) in [
        ("{leave=[0]}", "events[0].round = nothing, expected `round` or `at`"),
        ("{round=2, at=0.5, leave=[0]}", "events[0].round = 2, expected either `round` or `at`"),
        ("{round=2}", "events[0].leave = nothing, expected one of leave, join, change"),
        ("{round=21, leave=[0]}", "events[0].round = 21, expected 1 to 20"),
        ("{at=1.0, leave=[0]}", "events[0].at = 1, expected 0 up to, not including, 1"),
        ("{round=5, leave=[0]}, {at=0.1, leave=[1]}", "events[1].at = 0.1, expected a share"),
        ("{round=5, leave=[0]}, {round=4, leave=[1]}", "events[1].round = 4, expected 5 to 20"),
        ("{round=2, leave=[6]}", "events[0].leave = 6, expected an id below cell.n_terminals = 6"),
        ("{round=2, leave=[0, 0]}", "events[0].leave = 0, expected each terminal once"),
        ("{round=2, leave=[0]}, {round=3, leave=[0]}", "events[1].leave = 0, expected a terminal"),
        ("{round=2, leave=[0, 1, 2, 3, 4, 5]}", "events[0].leave = 6, expected at least one"),
        ("{round=2, join=[0, 1, 2, 3, 4, 5]}", "events = 1, expected a terminal in round 1"),
        ("{round=2, change={terminals=[0]}}", "events[0].change.payload_kg = nothing"),
        ("{round=2, change={payload_kg=1.0}}", "events[0].change.terminals = 0, expected either"),
        ("{round=2, change={tasks=[\"fly\"], payload_kg=1.0}}", "events[0].change.tasks = fly"),
        ("{round=2, change={count=7, payload_kg=1.0}}", "events[0].change.count = 7"),
        ("{round=2, change={count=1, payload_kg=-1.0}}", "events[0].change.payload_kg = -1"),
        ("{round=2, blockage={loss_db=3.0, lasts_rounds=1}}", "events[0].blockage.terminals"),
        (
            "{round=2, blockage={sector_deg=[10.0, 0.0], loss_db=3.0, lasts_rounds=1}}",
            "events[0].blockage.sector_deg = [10.0, 0.0], expected two angles",
        ),
        (
            "{round=2, interferer={terminals=[0], noise_db=3.0}}",
            "events[0].interferer.lasts_rounds = nothing, expected `lasts_rounds` or",
        ),
        (
            "{round=2, interferer={terminals=[0], noise_db=200.0, lasts_rounds=1}}",
            "events[0].interferer.noise_db = 200, expected 0 to 100",
        ),
    ] {
        let said = refused(&format!("[{event}]"));
        assert!(said.starts_with(expected), "{event}: {said}");
        assert!(!said.contains('\n'), "{said}");
    }
}

#[test]
fn a_sector_is_refused_on_a_recorded_channel_which_has_no_angles() {
    let overrides = [
        "events=[{round=2, blockage={sector_deg=[0.0, 90.0], loss_db=3.0, lasts_rounds=1}}]",
        "tasks.demonstrations=1",
    ];
    let scenario = Scenario::load("factory-rt", &overrides.map(str::to_owned)).unwrap();
    let made = assemble(&scenario, method("random").unwrap(), 0, Some(&cache()), &|_, _| {});
    let said = made.err().expect("refused").to_string();
    assert!(said.starts_with("events[0].blockage.sector_deg = [0.0, 90.0], expected"), "{said}");
}

#[test]
fn the_scenario_shift_has_the_events_of_its_page() {
    let scenario = Scenario::load("shift", &[]).unwrap();
    let events: Vec<(u64, String)> =
        scenario.events().into_iter().map(|one| (one.round, one.name)).collect();
    let rounds: Vec<u64> = events.iter().map(|(round, _)| *round).collect();
    assert_eq!(rounds, [334, 601, 851]);
    let docs = include_str!("../../../../docs/events.md");
    for (round, name) in events {
        assert!(docs.contains(&format!("| {round} | {name} |")), "docs/events.md: {round} {name}");
    }
}
