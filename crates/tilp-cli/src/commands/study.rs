//! `tilp compare`, `tilp ablate` and `tilp sweep`.

use std::path::{Path, PathBuf};

use tilp::experiment::study::{
    Axis, BudgetKind, Executor, Outcome, Plan, Question, Shard, StudyFolder, Subject, Tally,
    ablations, comparison, equal_budgets, merged,
};
use tilp::run::Observer;
use tilp::scenario::Scenario;

use super::report::write;
use super::run::{about, folder_name};
use crate::arguments::{Ablate, Compare, Study, Sweep};
use crate::failure::Failure;
use crate::output;
use crate::signals::Signals;
use crate::study_progress::StudyProgress;

/// Methods against each other.
pub(crate) fn compare(arguments: Compare) -> Result<(), Failure> {
    let (study, rivals) = (&arguments.study, &arguments.equal_budget);
    check_rivals(rivals)?;
    let kinds = budget_kinds(&arguments.budgets)?;
    let mut methods = arguments.methods.clone();
    if !rivals.is_empty() {
        methods.extend(std::iter::once("tilp".to_owned()).chain(rivals.iter().cloned()));
    }
    let question = question(study, &methods, "0..5", None)?;
    let question = Question { replicates: arguments.replicates, ..question };
    let scenario = &question.scenario;
    let folder = carry_out(study, comparison(&question), scenario, None)?;
    if rivals.is_empty() {
        return Ok(());
    }
    let results = merged(&[&folder]).map_err(Failure::study)?;
    let plan = equal_budgets(&comparison(&question), &results, rivals, &kinds);
    let out = folder.path().join("equal-budget");
    carry_out(study, plan.map_err(Failure::failed)?, scenario, Some(out)).map(|_| ())
}

/// TiLP is no rival of its own, and every rival is named once.
fn check_rivals(rivals: &[String]) -> Result<(), Failure> {
    for (at, rival) in rivals.iter().enumerate() {
        if rival == "tilp" || rivals[..at].contains(rival) {
            let expected = "expected methods other than tilp, each once";
            return Err(Failure::input(format!("--equal-budget has `{rival}`, {expected}")));
        }
    }
    Ok(())
}

/// All kinds of budgets if none is named.
fn budget_kinds(named: &[String]) -> Result<Vec<BudgetKind>, Failure> {
    match named {
        [] => Ok(BudgetKind::NAMED.map(|(_, kind)| kind).to_vec()),
        named => named.iter().map(|one| BudgetKind::named(one).map_err(Failure::input)).collect(),
    }
}

/// TiLP without each of its parts.
pub(crate) fn ablate(arguments: Ablate) -> Result<(), Failure> {
    let question = question(&arguments.study, &[], "0..3", None)?;
    carry_out(&arguments.study, ablations(&question), &question.scenario, None).map(|_| ())
}

/// Methods along an axis.
pub(crate) fn sweep(arguments: Sweep) -> Result<(), Failure> {
    let axis = Axis::named(&arguments.axis).map_err(Failure::input)?;
    let question = question(&arguments.study, &arguments.methods, "0..2", Some(300))?;
    let plan = tilp::experiment::study::sweep(axis, &arguments.values, &question);
    let plan = plan.map_err(Failure::input)?;
    carry_out(&arguments.study, plan, &question.scenario, None).map(|_| ())
}

fn question(
    study: &Study,
    methods: &[String],
    seeds: &str,
    rounds: Option<u64>,
) -> Result<Question, Failure> {
    let (seeds, rounds) = if study.quick { ("0", Some(100)) } else { (seeds, rounds) };
    // Overrides of the user come later and take precedence.
    let measure = study.quick.then(|| "evaluation.measure_every=10".to_owned());
    let mut overrides: Vec<String> = measure.into_iter().chain(study.overrides.clone()).collect();
    let rounds = rounds.filter(|_| !sets_rounds(&study.overrides));
    let mut scenario = Scenario::load(&study.scenario, &overrides).map_err(Failure::input)?;
    // A shorter scenario stays as short as it is.
    let fewer = rounds.filter(|&rounds| rounds < scenario.rounds());
    if let Some(rounds) = study.rounds.or(fewer) {
        overrides.push(format!("rounds={rounds}"));
        scenario = Scenario::load(&study.scenario, &overrides).map_err(Failure::input)?;
    }
    Ok(Question {
        scenario,
        methods: methods.to_vec(),
        seeds: seeds_of(study.seeds.as_deref().unwrap_or(seeds))?,
        replicates: 1,
    })
}

/// Whether `--set` gives the number of rounds.
fn sets_rounds(overrides: &[String]) -> bool {
    overrides.iter().any(|one| one.split('=').next().is_some_and(|key| key.trim() == "rounds"))
}

/// `a..b` or a list.
pub(crate) fn seeds_of(text: &str) -> Result<Vec<u64>, Failure> {
    const MOST: u64 = 10_000;
    let wrong = || {
        let expected = "expected a..b with a below b, or numbers separated by commas";
        Failure::input(format!("seeds are `{text}`, {expected}"))
    };
    let number = |text: &str| text.trim().parse::<u64>().map_err(|_| wrong());
    let seeds: Vec<u64> = match text.split_once("..") {
        Some((first, end)) => {
            let (first, end) = (number(first)?, number(end)?);
            if end.saturating_sub(first) > MOST {
                return Err(wrong());
            }
            (first..end).collect()
        }
        None => text.split(',').map(number).collect::<Result<_, _>>()?,
    };
    let mut unique = seeds.clone();
    unique.sort_unstable();
    unique.dedup();
    if seeds.is_empty() || unique.len() < seeds.len() { Err(wrong()) } else { Ok(seeds) }
}

/// A whole study writes its tables at the end. A shard writes none, because other shards may still
/// run; `tilp report` makes the tables of all shards.
fn result(folder: &StudyFolder, shard: Shard, tally: Tally, out: &Path) -> Result<String, Failure> {
    let place = out.display();
    if shard == Shard::WHOLE {
        return write(std::slice::from_ref(folder), out, None);
    }
    let Shard { index, count } = shard;
    let Tally { done, failed, .. } = tally;
    Ok(format!(
        "{}shard {index}/{count}: {done} runs done, {failed} failed; tables with: tilp report {place}",
        failures(folder, shard)?
    ))
}

/// One line for each failed run of a shard, with the reason. For a whole study the tables contain them.
fn failures(folder: &StudyFolder, shard: Shard) -> Result<String, Failure> {
    let mut lines = String::new();
    for job in folder.jobs.iter().skip(shard.index).step_by(shard.count) {
        if let Outcome::Failed(reason) = folder.outcome(job).map_err(Failure::study)? {
            let Subject { point, method } = &job.subject;
            let seed = job.seed;
            lines += &format!("failed: {method} at {point}, seed {seed}: {reason}\n");
        }
    }
    Ok(lines)
}

/// Number of threads for all runs together: `RAYON_NUM_THREADS`, otherwise one per core.
pub fn n_threads() -> usize {
    let set = std::env::var("RAYON_NUM_THREADS").ok().and_then(|text| text.parse().ok());
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    set.filter(|n| *n > 0).unwrap_or_else(cores)
}

/// Default folder of a study. A first look has another default, so that the whole study can still be
/// started without --out.
fn usual_folder(study: &Study, name: &str, scenario: &Scenario) -> PathBuf {
    let quick = if study.quick { "-quick" } else { "" };
    study_folder(&format!("{name}-{}{quick}", folder_name(scenario.name())))
}

/// Default folder of a study with this name.
pub fn study_folder(name: &str) -> PathBuf {
    PathBuf::from("studies").join(name)
}

/// Executes a study and writes its tables to `out`, otherwise to the folder of the arguments.
fn carry_out(
    study: &Study,
    plan: Plan,
    scenario: &Scenario,
    out: Option<PathBuf>,
) -> Result<StudyFolder, Failure> {
    let shard = study.shard.as_deref().map_or(Ok(Shard::WHOLE), Shard::parse);
    let shard = shard.map_err(Failure::input)?;
    let usual = || usual_folder(study, &plan.question.folder(), scenario);
    let out = out.or_else(|| study.out.clone()).unwrap_or_else(usual);
    let folder = StudyFolder::create(&out, plan, scenario).map_err(Failure::study)?;
    let signals = Signals::listen().map_err(Failure::failed)?;
    let n_threads = n_threads();
    let workers = study.jobs.unwrap_or(n_threads).max(1);
    let cache = super::cache();
    let executor = Executor {
        workers,
        threads: (n_threads / workers).max(1),
        cache: cache.as_ref(),
        about: about(),
        checkpoint_every: study.checkpoint_every,
    };
    let progress = StudyProgress::new(study.quiet, &folder, shard, signals.clone());
    let tally = execute(&executor, &folder, shard, &progress, &signals)?;
    output::print(&result(&folder, shard, tally, &out)?)?;
    match tally.failed {
        0 => Ok(folder),
        failed => Err(Failure::failed(format!("{failed} runs failed, the reasons are above"))),
    }
}

/// Executes the runs of a shard and shows their progress; an error if a signal stopped them.
pub(super) fn execute(
    executor: &Executor<'_>,
    folder: &StudyFolder,
    shard: Shard,
    progress: &StudyProgress,
    signals: &Signals,
) -> Result<Tally, Failure> {
    // A run that panics is listed as failed with its reason; a backtrace would overwrite the progress.
    std::panic::set_hook(Box::new(|_| {}));
    let observers = |job| Box::new(progress.job(job)) as Box<dyn Observer + '_>;
    let tally = executor.execute(folder, shard, progress.time(), &observers);
    let _ = std::panic::take_hook();
    progress.clear();
    let tally = tally.map_err(Failure::study)?;
    if let Some(signal) = signals.asked() {
        let Tally { done, left, .. } = tally;
        let message =
            format!("stopped with {done} runs done, {left} left; the same command continues");
        return Err(Failure::signal(signal, message));
    }
    Ok(tally)
}
