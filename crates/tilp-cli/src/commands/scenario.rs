//! `tilp scenario`.

use std::path::Path;

use serde_json::json;
use tilp::rng::Seed;
use tilp::scenario::{BUILTIN, Scenario as Loaded};
use tilp::tasks::tabletop::{Engine, Family, Variant, VariantRange, Workcell, strip};
use tilp_testbed::server::Testbed;

use crate::arguments::{Format, Scenario, ScenarioVerb};
use crate::failure::Failure;
use crate::output;

/// Lists, shows, checks and measures scenarios.
pub fn scenario(arguments: Scenario) -> Result<(), Failure> {
    match arguments.verb {
        ScenarioVerb::List { format } => list(format),
        ScenarioVerb::Show { name, overrides } => {
            let scenario = Loaded::load(&name, &overrides).map_err(Failure::input)?;
            output::print(&scenario.to_toml())
        }
        ScenarioVerb::Check { file } if Testbed::is_testbed(Path::new(&file)) => {
            let testbed = Testbed::read(Path::new(&file)).map_err(Failure::input)?;
            let (name, hash) = (testbed.scenario.name(), testbed.scenario.hash());
            let (real, all) = (testbed.terminals.len(), testbed.scenario.n_terminals());
            let method = testbed.method.name();
            output::print(&format!(
                "{file} is sound: a testbed of {name}, {method}, seed {}, {real} of {all} \
                 terminals as processes\nhash of the scenario {hash}",
                testbed.seed
            ))
        }
        ScenarioVerb::Check { file } => {
            let scenario = Loaded::load(&file, &[]).map_err(Failure::input)?;
            let (name, version, hash) = (scenario.name(), scenario.version(), scenario.hash());
            let problem = scenario.problem_hash();
            let note = scenario.note().map_or(String::new(), |note| format!("\n{note}"));
            output::print(&format!(
                "{file} is sound: {name} version {version}\nhash {hash}\nhash without methods \
                 {problem}{note}"
            ))
        }
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
