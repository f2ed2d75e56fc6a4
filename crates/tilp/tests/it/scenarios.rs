//! Scenarios: loading, extending, overriding, refusing.

use std::fs;
use std::path::{Path, PathBuf};

use tilp::scenario::{BUILTIN, Scenario, ScenarioError, method, methods};

/// A folder of scenario files, gone when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let parent = Path::new(env!("CARGO_TARGET_TMPDIR")).join("scenarios");
        let path = parent.join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("the target folder can be written");
        Self(path)
    }

    /// Writes a file and gives its path.
    fn put(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        fs::write(&path, text).expect("a scratch file can be written");
        path.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn load(name: &str, overrides: &[&str]) -> Result<Scenario, ScenarioError> {
    let overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
    Scenario::load(name, &overrides)
}

/// The complete scenario has this line.
fn assert_line(scenario: &Scenario, line: &str) {
    let text = scenario.to_toml();
    assert!(text.lines().any(|one| one == line), "`{line}` is not in:\n{text}");
}

/// What is said of `tiny` with this value.
fn refusal(text: &str) -> String {
    let said = load("tiny", &[text]).expect_err(text).to_string();
    assert!(!said.contains('\n'), "{said}");
    said
}

#[test]
fn every_built_in_scenario_loads_and_comes_back_from_its_toml_with_the_same_hash() {
    let folder = Folder::new("builtin");
    for (name, _) in BUILTIN {
        let scenario = load(name, &[]).unwrap();
        assert_eq!(scenario.name(), *name);
        let back = load(&folder.put("back.toml", &scenario.to_toml()), &[]).unwrap();
        assert_eq!(back.hash(), scenario.hash(), "{name}");
        assert_eq!(back.to_toml(), scenario.to_toml());
    }
}

#[test]
fn no_two_built_in_scenarios_are_the_same() {
    let mut hashes: Vec<String> =
        BUILTIN.iter().map(|(name, _)| load(name, &[]).unwrap().hash()).collect();
    hashes.sort();
    hashes.dedup();
    assert_eq!(hashes.len(), BUILTIN.len());
}

#[test]
fn a_file_that_extends_another_changes_what_it_names_and_keeps_the_rest() {
    let folder = Folder::new("extends");
    folder.put("base.toml", "extends = \"tiny\"\n[limits]\ndeadline_s = 3.0\npower_w = 0.1\n");
    let file = folder.put("top.toml", "extends = \"base.toml\"\n[limits]\ndeadline_s = 2.0\n");
    let scenario = load(&file, &[]).unwrap();
    assert_line(&scenario, "deadline_s = 2.0");
    assert_line(&scenario, "power_w = 0.1");
    assert_line(&scenario, "bandwidth_hz = 100000000.0");
    assert_eq!((scenario.name(), scenario.n_terminals(), scenario.rounds()), ("tiny", 6, 20));
}

#[test]
fn a_list_is_replaced_as_a_whole() {
    let file = Folder::new("list");
    let path = file.put("cuts.toml", "extends = \"tiny\"\n[model]\ncuts = [2, 4]\n");
    assert_line(&load(&path, &[]).unwrap(), "cuts = [2, 4]");
}

#[test]
fn an_override_wins_over_the_file_and_the_later_over_the_earlier() {
    let scenario = load("tiny", &["rounds=7", "limits.deadline_s=4", "rounds=9"]).unwrap();
    assert_eq!(scenario.rounds(), 9);
    assert_line(&scenario, "deadline_s = 4.0");
}

#[test]
fn an_override_takes_words_with_or_without_quotes_and_lists() {
    let plain = load("tiny", &["limits.late=wait", "model.cuts=[2, 4]"]).unwrap();
    let quoted = load("tiny", &["limits.late=\"wait\"", "model.cuts = [2,4]"]).unwrap();
    assert_eq!(plain.hash(), quoted.hash());
    assert_line(&plain, "late = \"wait\"");
}

#[test]
fn an_override_to_what_stands_there_already_changes_no_hash() {
    let same = load("tiny", &["limits.deadline_s=5", "rounds=20"]).unwrap();
    assert_eq!(same.hash(), load("tiny", &[]).unwrap().hash());
}

#[test]
fn every_value_out_of_range_is_refused_with_field_value_and_expectation() {
    for (text, expected) in [
        ("rounds=0", "rounds = 0, expected at least 1"),
        ("cell.n_terminals=0", "cell.n_terminals = 0, expected 1 to 10000"),
        ("cell.outer_radius_m=1", "cell.outer_radius_m = 1, expected 10 to 100000"),
        ("cell.carrier_hz=1e6", "cell.carrier_hz = 1e6, expected"),
        ("cell.noise_figure_db=nan", "cell.noise_figure_db = NaN, expected 0 to 50"),
        ("limits.bandwidth_hz=inf", "limits.bandwidth_hz = inf, expected"),
        ("limits.compression=1.0", "limits.compression = 1, expected 0 to 0.99"),
        ("limits.give_up_s=1.0", "limits.give_up_s = 1, expected 5 to"),
        ("hardware.operations_per_cycle=[2.0, 1.0]", "operations_per_cycle = [2.0, 1.0], expected"),
        ("hardware.measurement_noise=-0.1", "hardware.measurement_noise = -0.1, expected 0 to 1"),
        ("model.heads=5", "model.heads = 5, expected a divisor of model.width"),
        ("model.cuts=[]", "model.cuts = [], expected ascending layers of 1..=7, at most 8"),
        ("model.cuts=[4, 2]", "model.cuts = [4, 2], expected ascending"),
        ("model.cuts=[2, 9]", "model.cuts = [2, 9], expected ascending"),
        ("methods.cut=0", "methods.cut = 0, expected at least 1"),
        ("learning.aggregate_every=0", "learning.aggregate_every = 0, expected at least 1"),
        ("learning.momentum=1", "learning.momentum = 1, expected 0 to 0.999"),
        ("tasks.range.mass_kg=5.0", "tasks.range.mass_kg = 5, expected 0 to 0.17"),
        ("tasks.demonstrations=0", "tasks.demonstrations = 0, expected 1 to"),
        ("evaluation.measure_every=0", "evaluation.measure_every = 0, expected at least 1"),
        ("evaluation.final_episodes=0", "evaluation.final_episodes = 0, expected 1 to 1000"),
        (
            "methods.reference.compression=1.0",
            "methods.reference.compression = 1, expected 0 to 0.99",
        ),
        ("methods.reference.margin=0", "methods.reference.margin = 0, expected 0.01 to 1"),
        ("format=3", "format = 3, expected 1 to 2"),
        ("evaluation.loss_every=0", "evaluation.loss_every = 0, expected at least 1"),
        ("hardware.ample_memory=0.5", "hardware.ample_memory = 0.5, expected 1 to"),
        ("methods.baselines.tiers.pace=2", "methods.baselines.tiers.pace = 2, expected 0 to 1"),
        ("methods.tilp.search.correlation=1.5", "search.correlation = 1.5, expected 0 to 1"),
        ("methods.tilp.search.smoothing=nan", "search.smoothing = NaN, expected 0 to 1"),
        ("methods.tilp.inner.sizes=[]", "methods.tilp.inner.sizes = 0 values, expected 1 to 32"),
        ("methods.tilp.inner.search.samples=1", "inner.search.samples = 1, expected 16 to 100000"),
        ("methods.tilp.prices.memory=1", "methods.tilp.prices.memory = 1, expected 0 to 0.9999"),
        ("methods.tilp.start.actor_bounds=[0.9, 0.1]", "actor_bounds = [0.9, 0.1], expected two"),
        ("methods.tilp.suggestions.sizes=[0]", "suggestions.sizes = 0, expected 1 to 10000"),
        ("methods.tilp.actor_critic.samples=0", "actor_critic.samples = 0, expected 1 to 4096"),
        ("methods.tilp.twin.curve.earliest=0", "twin.curve.earliest = 0, expected at least 1"),
        ("methods.tilp.twin.network.noise.sd=0", "twin.network.noise.sd = 0, expected"),
        ("methods.tilp.twin.training.own.mean=-1", "training.own.mean = -1, expected 0 to 0.5"),
        ("methods.tilp.twin.task.start=1", "methods.tilp.twin.task.start = 1, expected"),
    ] {
        let said = refusal(text);
        assert!(said.contains(expected), "{text}: {said}");
        assert!(said.contains("built-in `tiny`") && said.contains(text), "{text}: {said}");
    }
}

#[test]
fn a_value_of_the_wrong_type_is_refused_with_field_value_and_expectation() {
    for (text, field, value) in [
        ("rounds=2.5", "rounds", "2.5"),
        ("rounds=-1", "rounds", "-1"),
        ("cell=3", "cell", "3"),
        ("cell.trace=true", "cell.trace", "true"),
        ("limits.late=never", "limits.late", "never"),
        ("limits.deadline_s=soon", "limits.deadline_s", "soon"),
        ("hardware.energy_coefficient=[1e-28]", "hardware.energy_coefficient", "1e-28"),
    ] {
        let said = refusal(text);
        assert!(said.starts_with(field) && said.contains(value), "{text}: {said}");
        assert!(said.contains("expected"), "{text}: {said}");
    }
}

#[test]
fn an_override_of_what_does_not_exist_is_refused() {
    for text in ["nothing=1", "cell.nothing=1", "nothing.at.all=1", "rounds.deep=1", "=1", "."] {
        assert!(refusal(text).contains("--set"), "{text}");
    }
}

#[test]
fn a_missing_field_is_named() {
    let folder = Folder::new("missing");
    let whole = load("tiny", &[]).unwrap().to_toml();
    let without: String = whole
        .lines()
        .filter(|line| !line.starts_with("deadline_s"))
        .flat_map(|l| [l, "\n"])
        .collect();
    let said = load(&folder.put("part.toml", &without), &[]).unwrap_err().to_string();
    assert!(said.contains("limits") && said.contains("`deadline_s`"), "{said}");
}

#[test]
fn a_scenario_that_extends_itself_is_refused() {
    let folder = Folder::new("circle");
    let file = folder.put("self.toml", "extends = \"self.toml\"\n");
    let said = load(&file, &[]).unwrap_err().to_string();
    assert!(said.starts_with("extends: more than 8"), "{said}");
    let file = folder.put("number.toml", "extends = 3\n");
    assert!(load(&file, &[]).unwrap_err().to_string().starts_with("extends: expected"));
}

#[test]
fn the_hash_hangs_on_every_value() {
    let plain = load("tiny", &[]).unwrap().hash();
    for text in [
        "version=2",
        "learning.batch=63",
        "tasks.range.spread_m=0.03",
        "methods.cut=3",
        "methods.tilp.search.correlation=0.6",
        "methods.tilp.suggestions.sizes=[3]",
        "methods.tilp.actor_critic.samples=17",
        "methods.tilp.twin.task.turns=19",
    ] {
        assert_ne!(load("tiny", &[text]).unwrap().hash(), plain, "{text}");
    }
}

#[test]
fn the_engine_that_is_built_in_is_not_written_down_and_changes_no_hash() {
    let plain = load("tiny", &[]).unwrap();
    let named = load("tiny", &["tasks.engine=rapier"]).unwrap();
    assert!(!plain.to_toml().contains("engine"));
    assert_eq!(named.to_toml(), plain.to_toml());
    let said = load("tiny", &["tasks.engine=bullet"]).unwrap_err().to_string();
    assert!(said.contains("tasks.engine") && said.contains("bullet"), "{said}");
}

#[cfg(not(feature = "mujoco"))]
#[test]
fn an_engine_that_is_not_built_in_is_refused_with_what_it_takes() {
    let said = load("tiny", &["tasks.engine=mujoco"]).unwrap_err().to_string();
    let expected = "tasks.engine = mujoco, expected rapier, or a program built with \
                    `--features mujoco`";
    assert!(said.contains(expected), "{said}");
}

#[cfg(feature = "mujoco")]
#[test]
fn the_engine_mujoco_is_written_down_and_changes_the_hash() {
    let scenario = load("tiny", &["tasks.engine=mujoco"]).unwrap();
    assert_line(&scenario, "engine = \"mujoco\"");
    assert_ne!(scenario.problem_hash(), load("tiny", &[]).unwrap().problem_hash());
}

#[test]
fn a_method_is_found_by_its_name_only() {
    for known in methods() {
        assert_eq!(method(known.name()).unwrap().name(), known.name());
    }
    let said = method("Random").unwrap_err().to_string();
    assert!(said.contains("method = Random, expected one of tilp, fedavg"), "{said}");
}

/// A built-in scenario is frozen: its hash stands in the docs with everything measured on it.
#[test]
fn the_built_in_scenarios_are_those_that_the_docs_were_measured_on() {
    let docs = include_str!("../../../../docs/results/instrument.md");
    let row = |(name, _): &(&str, &str)| {
        let scenario = tilp::scenario::Scenario::load(name, &[]).unwrap();
        format!("| {name} | {} | `{}` |", scenario.version(), scenario.problem_hash())
    };
    let mut missing: Vec<String> = tilp::scenario::BUILTIN.iter().map(row).collect();
    missing.retain(|row| !docs.contains(row));
    assert!(missing.is_empty(), "docs/results/instrument.md has no row\n{}", missing.join("\n"));
}

#[test]
fn a_scenario_says_what_it_sets_apart_from_the_built_in_one() {
    assert_eq!(load("tiny", &[]).unwrap().set_apart(), Some(Vec::new()));
    let own = load("tiny", &["limits.late=wait", "rounds=7"]).unwrap();
    assert_eq!(own.set_apart().unwrap(), ["limits.late = \"wait\"", "rounds = 7"]);
    let folder = Folder::new("apart");
    let file = folder.put("mine.toml", "extends = \"tiny\"\nname = \"mine\"\n");
    assert_eq!(load(&file, &[]).unwrap().set_apart(), None);
}
