//! `tilp scenario health`.

use std::path::Path;

use tilp::experiment::health::{Criterion, Examination, Findings, as_markdown};
use tilp::experiment::study::{Executor, Shard, StudyFolder, Tally};
use tilp::scenario::Scenario;

use super::run::about;
use super::study::{n_threads, seeds_of};
use crate::arguments::{Format, Health};
use crate::failure::Failure;
use crate::output;
use crate::progress::Progress;
use crate::signals::Signals;
use crate::study_progress::StudyProgress;

/// Measures the criteria of a scenario.
pub(super) fn health(arguments: &Health) -> Result<(), Failure> {
    let examined = examination(arguments)?;
    let out = arguments.out.clone().unwrap_or_else(|| examined.usual_folder());
    let signals = Signals::listen().map_err(Failure::failed)?;
    let n_threads = n_threads();
    let workers = arguments.jobs.unwrap_or(n_threads).max(1);
    let study = examined.study(&out).map_err(Failure::input)?;
    let several = execute(arguments, &study, workers, (n_threads / workers).max(1), &signals)?;
    // Wall times count here: one at a time, on all threads.
    let timed = examined.timed(&out).map_err(Failure::input)?;
    let alone = execute(arguments, &timed, 1, n_threads, &signals)?;
    let findings = measure(arguments, &examined, &out)?;
    output::print(&match arguments.execution.format {
        Format::Json => serde_json::to_string_pretty(&findings).expect("plain data"),
        Format::Text => {
            format!("{}\nresults in {}", output::table(&as_markdown(&findings)), out.display())
        }
    })?;
    match several.failed + alone.failed {
        0 => Ok(()),
        failed => Err(Failure::failed(format!("{failed} runs failed, see {}", out.display()))),
    }
}

fn examination(arguments: &Health) -> Result<Examination, Failure> {
    let scenario = Scenario::load(&arguments.name, &arguments.overrides).map_err(Failure::input)?;
    if scenario.note().is_some() {
        let reason = "it has neither policy nor robots, expected a scenario with both";
        return Err(Failure::input(format!("scenario {}: {reason}", scenario.name())));
    }
    let named = arguments.criteria.iter().map(|name| Criterion::named(name));
    let mut criteria = named.collect::<Result<Vec<_>, _>>().map_err(Failure::input)?;
    if criteria.is_empty() {
        criteria = Criterion::ALL.iter().map(|(_, criterion)| *criterion).collect();
    }
    Ok(Examination {
        scenario,
        criteria,
        seeds: seeds_of(&arguments.seeds)?,
        steps: arguments.steps,
        quick: arguments.quick,
    })
}

/// Does the runs that are not done yet.
fn execute(
    arguments: &Health,
    study: &StudyFolder,
    workers: usize,
    threads: usize,
    signals: &Signals,
) -> Result<Tally, Failure> {
    if study.jobs.is_empty() {
        return Ok(Tally::default());
    }
    let cache = super::cache();
    let executor = Executor {
        workers,
        threads,
        cache: cache.as_ref(),
        about: about(),
        checkpoint_every: arguments.execution.checkpoint_every,
    };
    let progress =
        StudyProgress::new(arguments.execution.quiet, study, Shard::WHOLE, signals.clone());
    super::study::execute(&executor, study, Shard::WHOLE, &progress, signals)
}

fn measure(arguments: &Health, examined: &Examination, out: &Path) -> Result<Findings, Failure> {
    let progress = Progress::new(arguments.execution.quiet, None);
    let cache = super::cache();
    let watch = |done, total| progress.demonstrations(done, total);
    let findings = examined.measure(out, cache.as_ref(), &watch);
    progress.clear();
    findings.map_err(Failure::study)
}
