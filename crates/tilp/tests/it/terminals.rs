//! Terminals that a scenario lists one by one.

use tilp::record::{Event, event::Header};
use tilp::scenario::{Parts, Scenario};
use tilp::units::to_db;

use crate::rounds::{observe, until};
use crate::worlds;

const LIST: &str = "terminals=[\
     {name=\"arm\", x_m=30.0, y_m=-40.0, task=\"button\", demonstrations=6},\
     {name=\"cart\", gain_db=-101.5, operations_per_cycle=0.25, clock_hz=2e9,\
      energy_coefficient=3e-28, memory_bytes=123456789},\
     {task=\"bin\"}]";

fn parts(more: &[&str]) -> Parts {
    worlds::parts("random", more)
}

#[test]
fn what_the_list_gives_is_taken_and_what_it_leaves_out_is_drawn_as_before() {
    let (mut listed, mut drawn) = (parts(&[LIST]), parts(&[]));
    let suite = listed.laboratory.fleet().suite;
    let task = |name: &str| suite.task_index(name).unwrap();
    let (listed, drawn) = (observe(&mut listed).reports(), observe(&mut drawn).reports());
    assert_eq!(listed.len(), 6);
    assert_eq!([listed[0].task, listed[2].task], [task("button"), task("bin")]);
    assert!(listed[0].n_samples != drawn[0].n_samples, "six demonstrations instead of four");
    assert_ne!(listed[0].gain, drawn[0].gain, "it stands elsewhere");
    assert!((to_db(listed[1].gain.0) + 101.5).abs() < 1e-9);
    let hardware = listed[1].hardware;
    assert_eq!((hardware.operations_per_cycle, hardware.clock.0), (0.25, 2e9));
    assert_eq!((hardware.energy_coefficient, listed[1].memory.0), (3e-28, 123_456_789));
    assert_eq!(hardware.noise_w_per_hz, drawn[1].hardware.noise_w_per_hz);
    for n in [0, 2] {
        assert_eq!((listed[n].hardware, listed[n].memory), (drawn[n].hardware, drawn[n].memory));
    }
    // Those beyond the list are as they were, but for shadowing, which a place has in common with
    // its surroundings.
    for n in 3..6 {
        let same = |one: &tilp::round::TerminalReport| (one.hardware, one.memory, one.task);
        assert_eq!(same(&listed[n]), same(&drawn[n]));
        assert_eq!(listed[n].n_samples, drawn[n].n_samples);
        assert_eq!(listed[n].fading_power, drawn[n].fading_power);
    }
}

#[test]
fn a_run_with_a_list_trains_and_its_scenario_comes_back_whole() {
    let scenario = worlds::tiny(&[LIST]);
    let text = scenario.to_toml();
    assert!(text.contains("[[terminals]]\nname = \"arm\"\nx_m = 30.0"), "{text}");
    let again = scenario.varied(&[]).unwrap();
    assert_eq!((again.to_toml(), again.hash()), (text, scenario.hash()));
    assert_ne!(scenario.hash(), worlds::tiny(&[]).hash());
    let rounds = until(&mut parts(&[LIST]), 3);
    assert!(rounds.iter().any(|round| round.outcome.loss.is_some()));
}

#[test]
fn names_stand_for_ids_in_events_and_are_in_the_header_of_a_run() {
    let leaves = "events=[{round=2, leave=[\"cart\"]}, {round=3, leave=[0], join=[\"cart\"]}]";
    let mut parts = parts(&[LIST, leaves]);
    let ids: Vec<Vec<u32>> = until(&mut parts, 3)
        .iter()
        .map(|round| round.seen.ids().iter().map(|id| id.0).collect())
        .collect();
    assert_eq!(ids, [vec![0, 1, 2, 3, 4, 5], vec![0, 2, 3, 4, 5], vec![1, 2, 3, 4, 5]]);
    let scenario = worlds::tiny(&[LIST]);
    assert_eq!(scenario.terminal_names(), ["arm", "cart", "", "", "", ""]);
    assert!(worlds::tiny(&[]).terminal_names().is_empty());
    let identity = tilp::record::Identity {
        method: "random".into(),
        seed: 0,
        replicate: 0,
        scenario: scenario.hash(),
    };
    let header = Header::new(&identity, &[]).with_names(scenario.terminal_names());
    let line = Event::Header(header.clone()).to_line();
    assert!(line.contains(r#""names":["arm","cart","","","",""]"#), "{line}");
    let plain = Event::Header(Header::new(&identity, &[])).to_line();
    assert!(!plain.contains("names"), "{plain}");
}

#[test]
fn a_list_that_cannot_be_is_refused_with_field_and_value() {
    let refused = |set: &[&str]| {
        let set: Vec<String> = set.iter().map(|&one| one.to_owned()).collect();
        Scenario::load("tiny", &set).expect_err("it is wrong").to_string()
    };
    for (list, words) in [
        ("[{x_m=3.0}]", &["terminals[0].x_m = x_m alone", "both x_m and y_m"][..]),
        ("[{}, {gain_db=60.0}]", &["terminals[1].gain_db = 60", "-300 to 50"]),
        ("[{name=\"a\"}, {name=\"a\"}]", &["terminals[1].name = a", "terminal 0"]),
        ("[{task=\"sew\"}]", &["terminals[0].task = sew", "one of", "button"]),
        ("[{n_samples=9}]", &["terminals[0].n_samples = 9", "demonstrations"]),
        ("[{demonstrations=0}]", &["terminals[0].demonstrations = 0"]),
        ("[{memory_bytes=0}]", &["terminals[0].memory_bytes = 0"]),
        ("[{colour=\"red\"}]", &["terminals", "colour"]),
        ("[{},{},{},{},{},{},{}]", &["terminals = 7 entries", "cell.n_terminals = 6"]),
    ] {
        let said = refused(&[&format!("terminals={list}")]);
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
        assert!(!said.contains('\n'), "{said}");
    }
    let said = refused(&["terminals=[{gain_db=-90.0}]", "cell.trace=builtin:factory-rt"]);
    assert!(said.contains("terminals[0].gain_db") && said.contains("cell.trace"), "{said}");
    let said = refused(&["events=[{round=2, leave=[\"cart\"]}]"]);
    assert!(said.contains("an id below cell.n_terminals = 6"), "{said}");
    let said = refused(&[LIST, "events=[{round=2, leave=[\"ship\"]}]"]);
    assert!(said.contains("\"ship\"") && said.contains("a name of [[terminals]]"), "{said}");
}
