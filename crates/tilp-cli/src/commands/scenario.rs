//! `tilp scenario`.

use serde_json::json;
use tilp::experiment::{Health, health};
use tilp::rng::Seed;
use tilp::round::SuccessCount;
use tilp::scenario::{BUILTIN, Scenario as Loaded, method};
use tilp::tasks::tabletop::{Engine, Family, Variant, VariantRange, Workcell, strip};

use crate::arguments::{Format, Scenario, ScenarioVerb};
use crate::failure::Failure;
use crate::output;
use crate::progress::Progress;

/// Lists, shows, checks and measures scenarios.
pub fn scenario(arguments: Scenario) -> Result<(), Failure> {
    match arguments.verb {
        ScenarioVerb::List { format } => list(format),
        ScenarioVerb::Show { name, overrides } => {
            let scenario = Loaded::load(&name, &overrides).map_err(Failure::input)?;
            output::print(&scenario.to_toml())
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
        ScenarioVerb::Health { name, overrides, seed, steps, format } => {
            let scenario = Loaded::load(&name, &overrides).map_err(Failure::input)?;
            measure(&scenario, seed, steps, format)
        }
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

fn measure(scenario: &Loaded, seed: u64, steps: usize, format: Format) -> Result<(), Failure> {
    let progress = Progress::new(false, None);
    let cache = super::cache();
    let random = method("random").map_err(Failure::failed)?;
    let watch = |done, total| progress.demonstrations(done, total);
    let measured = health(scenario, random, seed, steps, cache.as_ref(), &watch);
    progress.clear();
    let health = measured.map_err(Failure::input)?;
    output::print(&match format {
        Format::Json => as_json(&health),
        Format::Text => as_text(scenario, &health),
    })
}

fn rate(count: SuccessCount) -> f64 {
    count.rate().unwrap_or(f64::NAN)
}

fn as_json(health: &Health) -> String {
    let experts: serde_json::Map<String, serde_json::Value> = (health.expert.iter())
        .map(|(task, count)| ((*task).to_owned(), json!(rate(*count))))
        .collect();
    let regime = &health.regime;
    let value = json!({
        "expert": experts,
        "random_robot": rate(health.random_robot),
        "base": rate(health.base),
        "centralised": health.centralised.map(rate),
        "n_samples": health.n_samples,
        "late_median": regime.late_median,
        "late_same": regime.late_same,
        "reachable": regime.reachable,
        "crowded": regime.crowded,
        "short_of_memory": regime.short_of_memory,
    });
    serde_json::to_string_pretty(&value).expect("plain data")
}

fn as_text(scenario: &Loaded, health: &Health) -> String {
    let (name, version) = (scenario.name(), scenario.version());
    let hash = scenario.problem_hash();
    let mut text = format!("{name} version {version}, hash of the problem {hash}\n");
    text += &format!("{} samples in all data sets\n", health.n_samples);
    let mut line = |what: &str, value: f64| text += &format!("{what:52} {:5.1} %\n", 100.0 * value);
    line("expert, all tasks", rate(health.expert_total()));
    for (task, count) in &health.expert {
        line(&format!("  {task}"), rate(*count));
    }
    line("robot acting at random", rate(health.random_robot));
    line("base policy", rate(health.base));
    if let Some(count) = health.centralised {
        line("centralised training on all data", rate(count));
    }
    let regime = &health.regime;
    line("late in a median round (even split, uncompressed)", regime.late_median);
    line("  of these, late in most rounds", regime.late_same);
    line("reachable (q = 0.9, a tenth of the band, median fade)", regime.reachable);
    line("rounds too crowded for all who could make it alone", regime.crowded);
    line("terminals that cannot hold the deepest cut", regime.short_of_memory);
    text += "cut  activation up  compressed most  work        copy       memory\n";
    for one in &health.cuts {
        text += &format!(
            "{:3}  {:9.1} KB   {:9.1} KB    {:6.1} MFLOP {:7.1} KB {:8.2} MB\n",
            one.cut,
            one.up.0 as f64 / 1e3,
            one.up_least.0 as f64 / 1e3,
            one.work.0 / 1e6,
            one.copy.0 as f64 / 1e3,
            one.memory.0 as f64 / 1e6,
        );
    }
    text
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
