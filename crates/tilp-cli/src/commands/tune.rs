//! `tilp tune`.

use tilp::experiment::study::{Executor, Shard};
use tilp::experiment::tune::{MEASURED, RatePair, Tuned, Tuning, as_markdown, usual_rates};
use tilp::scenario::{Scenario, method};

use super::run::about;
use super::study::{n_threads, seeds_of};
use crate::arguments::{Format, Tune};
use crate::failure::Failure;
use crate::output;
use crate::signals::Signals;
use crate::study_progress::StudyProgress;

/// Finds the learning rates of a method.
pub(crate) fn tune(arguments: &Tune) -> Result<(), Failure> {
    let tuning = tuning(arguments)?;
    let out = arguments.out.clone().unwrap_or_else(|| tuning.usual_folder());
    let study = tuning.study(&out).map_err(Failure::study)?;
    let signals = Signals::listen().map_err(Failure::failed)?;
    let n_threads = n_threads();
    let workers = arguments.jobs.unwrap_or(n_threads).max(1);
    let cache = super::cache();
    let executor = Executor {
        workers,
        threads: (n_threads / workers).max(1),
        cache: cache.as_ref(),
        about: about(),
        checkpoint_every: arguments.execution.checkpoint_every,
    };
    let progress =
        StudyProgress::new(arguments.execution.quiet, &study, Shard::WHOLE, signals.clone());
    super::study::execute(&executor, &study, Shard::WHOLE, &progress, &signals)?;
    let tuned = tuning.judge(&study).map_err(Failure::study)?;
    output::print(&match arguments.execution.format {
        Format::Json => serde_json::to_string_pretty(&tuned).expect("plain data"),
        Format::Text => {
            format!("{}\nresults in {}", output::table(&as_markdown(&tuned)), out.display())
        }
    })?;
    match n_missing(&tuned) {
        0 => Ok(()),
        missing => {
            let place = out.display();
            Err(Failure::failed(format!("{missing} runs failed or are not done, see {place}")))
        }
    }
}

/// Runs without a result. Those that diverged have one: their rate is not stable.
fn n_missing(tuned: &Tuned) -> usize {
    tuned.rates.iter().map(|row| row.missing).sum()
}

fn tuning(arguments: &Tune) -> Result<Tuning, Failure> {
    let mut overrides: Vec<String> = MEASURED.iter().map(|&one| one.to_owned()).collect();
    overrides.extend(arguments.overrides.iter().cloned());
    overrides.extend(arguments.rounds.map(|rounds| format!("rounds={rounds}")));
    let scenario = Scenario::load(&arguments.scenario, &overrides).map_err(Failure::input)?;
    let named = arguments.rates.iter().map(|rate| RatePair::parse(rate));
    let mut rates = named.collect::<Result<Vec<_>, _>>().map_err(Failure::input)?;
    if rates.is_empty() {
        rates = usual_rates(&scenario);
    }
    let tuning = Tuning {
        method: method(&arguments.method).map_err(Failure::input)?,
        rates,
        seeds: seeds_of(&arguments.seeds)?,
        scenario,
    };
    tuning.check().map_err(Failure::input)?;
    Ok(tuning)
}
