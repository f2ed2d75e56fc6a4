//! `tilp scenario`.

use std::path::Path;

use serde_json::json;
use tilp::experiment::{Regime, regime};
use tilp::rng::Seed;
use tilp::scenario::{BUILTIN, Scenario as Loaded, inspect, merged_shares};
use tilp::tasks::tabletop::{Engine, Family, Variant, VariantRange, Workcell, strip};
use tilp_testbed::server::Testbed;

use crate::arguments::{Format, Scenario, ScenarioVerb};
use crate::failure::Failure;
use crate::output;

/// Lists, shows, checks and measures scenarios.
pub(crate) fn scenario(arguments: Scenario) -> Result<(), Failure> {
    match arguments.verb {
        ScenarioVerb::List { format } => list(format),
        ScenarioVerb::Show { name, overrides } => {
            let scenario = Loaded::load(&name, &overrides).map_err(Failure::input)?;
            output::print(&scenario.to_toml())
        }
        ScenarioVerb::Check { file, overrides, .. } if Testbed::is_testbed(Path::new(&file)) => {
            check_testbed(&file, &overrides)
        }
        ScenarioVerb::Check { file, overrides, seed } => check(&file, &overrides, seed),
        ScenarioVerb::Schema => {
            let text = serde_json::to_string_pretty(&Loaded::schema());
            output::print(&text.expect("a schema is plain data"))
        }
        ScenarioVerb::Health(arguments) => super::health::health(&arguments),
        ScenarioVerb::Engines { name, overrides, seed, cells, episodes, format } => {
            let scenario = Loaded::load(&name, &overrides).map_err(Failure::input)?;
            let (cells, episodes) = (usize::from(cells), usize::from(episodes));
            super::engines::engines(&scenario, seed, cells, episodes, format)
        }
        ScenarioVerb::Draw { out, engine } => std::fs::write(&out, picture(named(&engine)?))
            .map_err(|error| Failure::input(format!("cannot write {}: {error}", out.display()))),
    }
}

/// Checks the file of a testbed. The file contains its own seed and overrides.
fn check_testbed(file: &str, overrides: &[String]) -> Result<(), Failure> {
    if let Some(first) = overrides.first() {
        let expected = "expected a scenario, or no --set";
        return Err(Failure::input(format!("--set {first}: {file} is a testbed, {expected}")));
    }
    let testbed = Testbed::read(Path::new(file)).map_err(Failure::input)?;
    let (name, hash) = (testbed.scenario.name(), testbed.scenario.hash());
    let (real, all) = (testbed.terminals.len(), testbed.scenario.n_terminals());
    let (method, seed) = (testbed.method.name(), testbed.seed);
    output::print(&format!(
        "{file} is sound: a testbed of {name}, {method}, seed {seed}, {real} of {all} terminals as \
         processes\nhash of the scenario {hash}"
    ))
}

/// Checks every value and opens every file of a scenario.
fn check(file: &str, overrides: &[String], seed: u64) -> Result<(), Failure> {
    let scenario = Loaded::load(file, overrides).map_err(Failure::input)?;
    let found = inspect(&scenario, seed).map_err(Failure::input)?;
    let (name, version) = (scenario.name(), scenario.version());
    let mut lines = vec![format!("{file} is sound: {name} version {version}")];
    lines.push(format!("hash {}", scenario.hash()));
    lines.push(format!("hash without methods {}", scenario.problem_hash()));
    lines.extend(scenario.note().map(str::to_owned));
    lines.extend(found.opened.iter().map(|file| format!("opened {file}")));
    let tasks = found.tasks.iter().filter(|(_, count)| *count > 0);
    let tasks: Vec<String> = tasks.map(|(task, count)| format!("{task} {count}")).collect();
    lines.push(format!("terminals: {} ({})", scenario.n_terminals(), tasks.join(", ")));
    lines.push(words(&regime(&found.radio, REGIME_ROUNDS), &scenario, seed));
    for warning in merged_shares(file).map_err(Failure::input)? {
        lines.push(format!("warning: {warning}"));
    }
    output::print(&lines.join("\n"))
}

/// Rounds over which the radio regime is measured.
const REGIME_ROUNDS: u64 = 100;

/// The radio regime in a paragraph, in lines that fit a terminal.
fn words(regime: &Regime, scenario: &Loaded, seed: u64) -> String {
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    let text = format!(
        "radio (seed {seed}, {REGIME_ROUNDS} rounds): with the band divided evenly and nothing compressed \
         {} of the terminals miss the deadline of {} s in a median round; {} of these misses are of \
         terminals that miss most rounds. With a tenth of the band and 90 % compression {} can meet it at \
         their median fade. In {} of the rounds the band is too small for all terminals that could \
         meet it alone, uncompressed. {} cannot hold the deepest cut.",
        percent(regime.late_median),
        scenario.deadline().0,
        percent(regime.late_same),
        percent(regime.reachable),
        percent(regime.crowded),
        percent(regime.short_of_memory),
    );
    output::wrapped(&text, 80)
}

fn list(format: Format) -> Result<(), Failure> {
    let mut entries = Vec::new();
    for (name, _) in BUILTIN {
        let scenario = Loaded::load(name, &[]).map_err(Failure::failed)?;
        entries.push((name, scenario));
    }
    if format == Format::Json {
        let rows: Vec<_> = (entries.iter())
            .map(|(name, scenario)| {
                json!({
                    "name": name,
                    "version": scenario.version(),
                    "terminals": scenario.n_terminals(),
                    "rounds": scenario.rounds(),
                    "hash": scenario.hash(),
                    "note": scenario.note(),
                })
            })
            .collect();
        return output::print(&serde_json::to_string_pretty(&rows).expect("plain data"));
    }
    let line = |(name, scenario): &(&&str, Loaded)| {
        let (terminals, rounds) = (scenario.n_terminals(), scenario.rounds());
        let (version, hash) = (scenario.version(), &scenario.hash()[..12]);
        format!("{name:15} version {version}  {terminals:4} terminals  {rounds:5} rounds  {hash}")
    };
    output::print(&entries.iter().map(line).collect::<Vec<_>>().join("\n"))
}

fn named(engine: &str) -> Result<Engine, Failure> {
    let expected = "expected rapier, or mujoco in a program built with `--features mujoco`";
    let unknown = || Failure::input(format!("--engine = {engine}, {expected}"));
    Engine::from_name(engine).ok_or_else(unknown)
}

fn picture(engine: Engine) -> String {
    let seed = Seed::new(3).named("picture");
    let cells: Vec<Workcell> = (Family::ALL.into_iter())
        .map(|family| {
            let range = VariantRange::WIDE.narrowed(0.5);
            let variant = Variant::draw(family, &range, &mut seed.stream(family.name()));
            Workcell::in_engine(variant, engine)
        })
        .collect();
    strip(&cells, seed.named("episode"), 6)
}
