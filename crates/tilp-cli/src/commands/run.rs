//! `tilp run`.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tilp::experiment::{Ended, RunError, RunSpec, read_run_identity, run_single, study};
use tilp::record::{RecordError, RunFolder, Summary};
use tilp::scenario::{Registry, Scenario, ScenarioError, Seeds, method};

use crate::arguments::{Format, Run};
use crate::clock::WallTime;
use crate::failure::{Failure, is_full};
use crate::output;
use crate::progress::Progress;
use crate::signals::Signals;

/// Runs one method on one scenario, or resumes an interrupted run.
pub(crate) fn run(arguments: Run) -> Result<(), Failure> {
    let (spec, folder) = match &arguments.resume {
        Some(folder) => resumed(&arguments, folder)?,
        None => new(&arguments)?,
    };
    let signals = Signals::listen().map_err(Failure::failed)?;
    let mut progress = Progress::new(arguments.execution.quiet, Some(signals.clone()));
    let path = folder.path().to_owned();
    let cache = super::cache();
    let resume = arguments.resume.is_some();
    let time = WallTime::start();
    let ended = run_single(&spec, folder, resume, cache.as_ref(), &time, &mut progress);
    progress.clear();
    // A folder with a manifest contains a run that has started.
    let begun = path.join("manifest.json").exists();
    print_result(
        ended.map_err(|error| failure(error, begun))?,
        &spec,
        &path,
        arguments.execution.format,
        &signals,
    )
}

/// Prints how a run ended.
pub(crate) fn print_result(
    ended: Ended,
    spec: &RunSpec,
    path: &Path,
    format: Format,
    signals: &Signals,
) -> Result<(), Failure> {
    match ended {
        Ended::Finished(summary) => output::print(&result(&summary, spec, path, format)),
        Ended::Interrupted(round) => {
            let path = quoted(path);
            let of = match spec.scenario.budget().is_none() {
                true => format!(" of {}", spec.scenario.rounds()),
                false => String::new(),
            };
            let message =
                format!("stopped after round {round}{of}; resume with: tilp run --resume {path}");
            Err(Failure::signal(signals.asked().unwrap_or(2), message))
        }
    }
}

/// A path as a shell takes it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "-_+./".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// Errors of writing before the first round, and state that does not fit, are bad input.
pub(crate) fn failure(error: RunError, begun: bool) -> Failure {
    match &error {
        // What a program outside did wrong is no bad input; that there is none is.
        RunError::Scenario(ScenarioError::Program(one)) if !one.is_bad_command() => {
            Failure::failed(error)
        }
        RunError::Scenario(_) | RunError::Snapshot(_) => Failure::input(error),
        RunError::Record(record) if is_full(record) => Failure::failed(error),
        RunError::Record(RecordError::Io { .. }) if begun => Failure::failed(error),
        RunError::Record(_) => Failure::input(error),
        RunError::Diverged { .. } | RunError::Loop(_) => Failure::failed(error),
    }
}

fn new(arguments: &Run) -> Result<(RunSpec, RunFolder), Failure> {
    let name = arguments.scenario.as_deref().unwrap_or("default");
    let mut overrides = arguments.overrides.clone();
    overrides.extend(arguments.rounds.map(|rounds| format!("rounds={rounds}")));
    let scenario = Scenario::load(name, &overrides).map_err(Failure::input)?;
    let method = method(arguments.method.as_deref().unwrap_or("tilp")).map_err(Failure::input)?;
    let (seed, replicate) = (arguments.seed.unwrap_or(0), arguments.replicate.unwrap_or(0));
    let seeds = Seeds { seed, replicate };
    let out = arguments.out.clone().unwrap_or_else(|| run_folder(&scenario, method.name(), seeds));
    let folder = RunFolder::create(&out).map_err(Failure::input)?;
    let checkpoint_every = arguments.execution.checkpoint_every;
    let planner_states = arguments.planner.planner_states;
    let about = about();
    let spec =
        RunSpec { scenario, method, seed, replicate, checkpoint_every, planner_states, about };
    Ok((spec, folder))
}

/// Default folder of a run.
pub fn run_folder(scenario: &Scenario, method: &str, seeds: Seeds) -> PathBuf {
    let (name, seeds) = (folder_name(scenario.name()), seeds.folder());
    PathBuf::from(format!("runs/{name}-{}-{seeds}", study::folder_name(method)))
}

/// A scenario may be called anything, but its folder stays below that for results.
pub(crate) fn folder_name(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_+.".contains(c);
    name.chars().map(|c| if plain(c) { c } else { '_' }).collect()
}

fn resumed(arguments: &Run, path: &Path) -> Result<(RunSpec, RunFolder), Failure> {
    let (spec, folder) = identified(path)?;
    let checkpoint_every = arguments.execution.checkpoint_every;
    let planner_states = arguments.planner.planner_states;
    Ok((RunSpec { checkpoint_every, planner_states, ..spec }, folder))
}

/// Identity of the run in a folder.
pub(crate) fn identified(path: &Path) -> Result<(RunSpec, RunFolder), Failure> {
    let folder = RunFolder::open(path).map_err(Failure::input)?;
    let (scenario, method, seeds) =
        read_run_identity(&folder, &Registry::builtin()).map_err(Failure::input)?;
    let Seeds { seed, replicate } = seeds;
    let (checkpoint_every, planner_states, about) = (u64::MAX, 0, about());
    let spec =
        RunSpec { scenario, method, seed, replicate, checkpoint_every, planner_states, about };
    Ok((spec, folder))
}

/// Versions and host, for the manifest.
pub fn about() -> Value {
    let parts: serde_json::Map<String, Value> = env!("TILP_PARTS")
        .split(',')
        .filter_map(|part| part.split_once('='))
        .map(|(name, version)| (name.to_owned(), json!(version)))
        .collect();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "commit": env!("TILP_COMMIT"),
        "parts": parts,
        "host": host.trim(),
    })
}

pub(crate) fn result(summary: &Summary, spec: &RunSpec, path: &Path, format: Format) -> String {
    if format == Format::Json {
        return serde_json::to_string_pretty(summary).expect("a summary is plain data");
    }
    let [low, high] = summary.success_final_interval.unwrap_or([f64::NAN; 2]);
    let rta = [summary.rta.at_60, summary.rta.at_70, summary.rta.at_80];
    let rta = rta.map(|round| round.map_or("-".into(), |round| round.to_string())).join(" / ");
    let note = spec.scenario.note().map_or(String::new(), |note| format!(" ({note})"));
    [
        format!("{} on {}{note}, seed {}", spec.method.name(), spec.scenario.name(), spec.seeds()),
        format!(
            "  success            {} (95 %: {:.1} to {:.1} %)",
            percent(summary.success_final),
            100.0 * low,
            100.0 * high,
        ),
        format!(
            "  success at worst   far third {}, worst task {}",
            percent(summary.success_far),
            percent(summary.success_worst_task)
        ),
        format!("  rounds to 60/70/80 {rta}"),
        format!(
            "  latency            mean {} s, median {} s, p95 {} s",
            number(summary.latency_mean_s),
            number(summary.latency_p50_s),
            number(summary.latency_p95_s)
        ),
        format!("  energy             {} J", number(Some(summary.energy_total_j))),
        format!(
            "  volume             {:.2} MB activations up, {:.2} MB on the air in all",
            summary.volume_total_bytes as f64 / 1e6,
            summary.air_total_bytes as f64 / 1e6
        ),
        format!(
            "  violation          {} mean, {} late, {} unfit",
            number(summary.violation_mean),
            summary.late_total,
            summary.unfit_total.unwrap_or_default()
        ),
        format!("  simulated time     {} s", number(Some(summary.clock_total_s))),
        budget_used(summary),
        format!("results in {}", path.display()),
        format!(
            "next: tilp report {0} (a page of the run), tilp twin {0}, tilp compare",
            quoted(path)
        ),
    ]
    .into_iter()
    .filter(|line| !line.is_empty())
    .collect::<Vec<_>>()
    .join("\n")
}

/// Used shares of the budgets, if there are any, and after how many rounds the run ended.
fn budget_used(summary: &Summary) -> String {
    if summary.budget_used.is_empty() {
        return String::new();
    }
    let share = |(name, share): (&String, &f64)| format!("{name} {:.1} %", 100.0 * share);
    let shares: Vec<String> = summary.budget_used.iter().map(share).collect();
    format!("  budgets used       {} in {} rounds", shares.join(", "), summary.rounds)
}

fn percent(rate: Option<f64>) -> String {
    rate.map_or("-".into(), |rate| format!("{:.1} %", 100.0 * rate))
}

fn number(value: Option<f64>) -> String {
    value.map_or("-".into(), |value| match value.abs() < 1e6 {
        true => format!("{value:.3}"),
        false => format!("{value:.2e}"),
    })
}
