//! Methods against each other.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use tilp::experiment::study::{
    Executor, Outcome, Question, Report, Shard, StudyFolder, comparison, folder_name,
};
use tilp::record::write_beside;
use tilp::run::Observer;
use tilp::scenario::{Registry, Scenario};
use tilp_cli::host;

use crate::errors::Failure;
use crate::method::Methods;
use crate::run::Watcher;
use crate::work::{Work, released};

/// Result of a study.
struct Found {
    table: String,
    rows: String,
    runs: Vec<(String, u64, PathBuf)>,
    failures: Vec<(String, u64, String)>,
}

/// Runs every method with every seed, and returns what is found in the folder of the study.
#[pyfunction]
#[expect(clippy::too_many_arguments)]
pub(crate) fn compare<'py>(
    py: Python<'py>,
    scenario: &str,
    methods: Vec<Bound<'py, PyAny>>,
    seeds: Vec<u64>,
    overrides: Vec<String>,
    out: Option<PathBuf>,
    jobs: Option<usize>,
    checkpoint_every: u64,
    on_round: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let scenario = released(py, || Ok(Scenario::load(scenario, &overrides)?))?;
    let mut all = Methods::new();
    let names = methods.iter().map(|given| all.add(given, &scenario)).collect::<PyResult<_>>()?;
    let question = Question { scenario: scenario.clone(), methods: names, seeds, replicates: 1 };
    let usual = || host::study_folder(&format!("compare-{}", folder_name(scenario.name())));
    let path = out.unwrap_or_else(usual);
    let (work, on_round) = (Work::default(), on_round.map(Arc::new));
    let found = work.perform(py, || {
        let plan = comparison(&question);
        let folder = StudyFolder::create_with(&path, plan, &scenario, &all.registry)?;
        for job in &folder.jobs {
            all.check(&path.join(job.folder()), &job.subject.method)?;
        }
        execute(&folder, all.about(), jobs, checkpoint_every, &work, on_round)?;
        report(&path, &all.registry)
    })?;
    let dict = PyDict::new(py);
    dict.set_item("path", path)?;
    dict.set_item("table", found.table)?;
    dict.set_item("rows", found.rows)?;
    dict.set_item("runs", found.runs)?;
    dict.set_item("failures", found.failures)?;
    Ok(dict)
}

fn execute(
    folder: &StudyFolder,
    about: serde_json::Value,
    jobs: Option<usize>,
    checkpoint_every: u64,
    work: &Work,
    on_round: Option<Arc<Py<PyAny>>>,
) -> Result<(), Failure> {
    let n_threads = host::n_threads();
    let workers = jobs.unwrap_or(n_threads).max(1);
    let cache = host::cache();
    let executor = Executor {
        workers,
        threads: (n_threads / workers).max(1),
        cache: cache.as_ref(),
        about,
        checkpoint_every,
    };
    let observers = |job: usize| {
        let job = &folder.jobs[job];
        let whose = (job.subject.method.clone(), job.seed.seed);
        Box::new(Watcher::new(work, on_round.clone(), Some(whose))) as Box<dyn Observer + '_>
    };
    executor.execute(folder, Shard::WHOLE, &host::WallTime::start(), &observers)?;
    Ok(())
}

/// Writes the tables, figures and the page of a study.
fn report(path: &std::path::Path, registry: &Registry) -> Result<Found, Failure> {
    let folder = StudyFolder::open_with(path, registry)?;
    let report = Report::of(std::slice::from_ref(&folder))?;
    write_beside(path, &report.files(None))?;
    let section = &report.sections[0];
    let (mut runs, mut failures) = (Vec::new(), Vec::new());
    for job in &folder.jobs {
        let (method, seed) = (job.subject.method.clone(), job.seed.seed);
        match folder.outcome(job)? {
            Outcome::Done(_) => runs.push((method, seed, path.join(job.folder()))),
            Outcome::Failed(reason) => failures.push((method, seed, reason)),
            Outcome::Missing => failures.push((method, seed, "not finished".to_owned())),
        }
    }
    let (table, rows) = (section.table.markdown(), section.table.table_csv());
    Ok(Found { table, rows, runs, failures })
}
