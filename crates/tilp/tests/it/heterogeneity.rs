//! The four levels of heterogeneity: what is equal, what is spread, what stays.

use std::collections::BTreeMap;

use tilp::round::TerminalReport;
use tilp::scenario::{Parts, Scenario};

use crate::rounds::observe;
use crate::worlds;

const LEVELS: [&str; 4] = ["homogeneous", "mild", "default", "strong"];

fn at(level: &str) -> Parts {
    // Two tasks, six terminals each.
    let tasks = "tasks.shares={bin=0, shelf=0, stack=0, push=1, drawer-open=0, drawer-close=0, \
                 button=1, peg=0}";
    let level = format!("heterogeneity={level}");
    worlds::parts("random", &["cell.n_terminals=12", tasks, &level])
}

fn reports(level: &str) -> Vec<TerminalReport> {
    observe(&mut at(level)).reports()
}

/// Standard deviation of the natural logarithms.
fn spread(values: impl Iterator<Item = f64>) -> f64 {
    let logs: Vec<f64> = values.map(f64::ln).collect();
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    (logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / logs.len() as f64).sqrt()
}

#[test]
fn the_level_default_is_the_scenario_without_the_knob_bit_for_bit() {
    let scenario = |overrides: &[&str]| {
        let overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
        Scenario::load("default", &overrides).unwrap()
    };
    let plain = scenario(&[]);
    assert_eq!(scenario(&["heterogeneity=default"]).hash(), plain.hash());
    assert!(!plain.to_toml().contains("heterogeneity"));
    assert_ne!(scenario(&["heterogeneity=mild"]).problem_hash(), plain.problem_hash());
}

#[test]
fn homogeneous_terminals_are_alike_in_everything_but_fading_and_chance() {
    let mut parts = at("homogeneous");
    let reports = observe(&mut parts).reports();
    let first = reports[0];
    for one in &reports {
        assert_eq!(one.memory, first.memory);
        assert!((one.gain.0 / first.gain.0 - 1.0).abs() < 1e-9, "same distance, no obstacles");
        let [a, b] = [one, &first].map(|one| one.hardware);
        assert!((a.operations_per_cycle / b.operations_per_cycle - 1.0).abs() < 1e-12);
        assert!((a.energy_coefficient / b.energy_coefficient - 1.0).abs() < 1e-12);
    }
    let radio = parts.cell.radio();
    assert_eq!(radio.truth, radio.nominal, "no hidden errors");
    let fades: Vec<f64> = reports.iter().map(|one| one.fading_power).collect();
    assert!(spread(fades.into_iter()) > 0.1, "fading stays");
}

#[test]
fn gains_and_hardware_spread_with_the_level() {
    let spreads =
        |of: fn(&TerminalReport) -> f64| LEVELS.map(|level| spread(reports(level).iter().map(of)));
    for spreads in [
        spreads(|one| one.gain.0),
        spreads(|one| one.hardware.operations_per_cycle),
        spreads(|one| one.hardware.energy_coefficient),
    ] {
        assert!(spreads[0] < 1e-9, "{spreads:?}");
        assert!(spreads.windows(2).all(|pair| pair[0] < pair[1]), "{spreads:?}");
    }
    let [_, mild, usual, strong] = spreads(|one| one.hardware.operations_per_cycle);
    assert!((mild / usual - 0.5).abs() < 1e-9 && (strong / usual - 1.5).abs() < 1e-9);
}

#[test]
fn at_strong_data_sizes_differ_and_at_the_other_levels_demonstrations_are_as_many_for_all() {
    // Samples of push and button differ by the length of their episodes; within a task it is the
    // number of demonstrations that makes sets differ by half and more.
    let ratio = |level: &str| {
        let mut by_task: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for one in reports(level) {
            by_task.entry(one.task).or_default().push(one.n_samples);
        }
        let ratio = |sizes: &Vec<usize>| {
            *sizes.iter().max().unwrap() as f64 / *sizes.iter().min().unwrap() as f64
        };
        by_task.values().map(ratio).fold(0.0, f64::max)
    };
    assert!(ratio("strong") > 2.0, "{}", ratio("strong"));
    assert!(ratio("default") < 2.0, "{}", ratio("default"));
}

#[test]
fn homogeneous_robots_with_the_same_task_have_the_same_cell() {
    use tilp::tasks::EpisodeSet;
    let same = |level: &str| {
        let parts = at(level);
        let cells = &parts.laboratory.fleet().cells;
        let seed = tilp::rng::Seed::new(3);
        let first_sight = |n: usize| {
            let mut row = Vec::new();
            cells[n].reset(EpisodeSet::Final.episode(seed, 0, 0)).observe(&mut row);
            row
        };
        let pairs = (0..cells.len()).flat_map(|a| (0..a).map(move |b| (a, b)));
        let pairs: Vec<(usize, usize)> =
            pairs.filter(|&(a, b)| cells[a].task() == cells[b].task()).collect();
        pairs.iter().filter(|(a, b)| first_sight(*a) == first_sight(*b)).count() == pairs.len()
    };
    assert!(same("homogeneous"));
    assert!(!same("mild"));
}

#[test]
fn every_level_is_a_built_in_scenario_that_differs_from_default_by_the_knob() {
    for level in LEVELS {
        let scenario = Scenario::load(level, &[]).unwrap();
        assert_eq!(scenario.name(), level);
        let knob = format!("heterogeneity={level}");
        let same = Scenario::load("default", &[knob, format!("name={level}")]).unwrap();
        assert_eq!(scenario.hash(), same.hash());
    }
}

#[test]
fn a_level_is_refused_on_a_recorded_channel_and_an_unknown_one_everywhere() {
    let refused = |name: &str, text: &str| {
        Scenario::load(name, &[text.to_owned()]).expect_err("refused").to_string()
    };
    let said = refused("factory-rt", "heterogeneity=strong");
    assert!(said.starts_with("heterogeneity = strong, expected default: the channel"), "{said}");
    let said = refused("tiny", "heterogeneity=wild");
    assert!(said.starts_with("heterogeneity: \"wild\" is wrong"), "{said}");
    let said = refused("tiny", "tasks.demonstrations_spread=0.5");
    assert!(said.starts_with("tasks.demonstrations_spread = 0.5, expected 1 to 100"), "{said}");
}
