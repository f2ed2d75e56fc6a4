//! One run.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;

use tilp::experiment::{Ended, PLANNER_STATES, RunSpec, read_run_identity, run_single};
use tilp::record::event::{Decided, Event};
use tilp::record::{
    History, RoundRow, RunFolder, episode_columns, round_columns, terminal_columns,
};
use tilp::run::Observer;
use tilp::scenario::{Scenario, Seeds};
use tilp_cli::host;

use crate::errors::{Failure, RunError};
use crate::method::Methods;
use crate::table::{Table, row_dict};
use crate::work::{Work, released};

/// Calls back after every round, and stops a run when its work is stopped.
pub(crate) struct Watcher<'a> {
    work: &'a Work,
    on_round: Option<Arc<Py<PyAny>>>,
    /// Method and seed, where a callback is for several runs.
    whose: Option<(String, u64)>,
    decided: Option<Box<Decided>>,
    row: Option<RoundRow>,
}

impl<'a> Watcher<'a> {
    pub(crate) fn new(
        work: &'a Work,
        on_round: Option<Arc<Py<PyAny>>>,
        whose: Option<(String, u64)>,
    ) -> Self {
        Self { work, on_round, whose, decided: None, row: None }
    }

    fn call(&self, callback: &Py<PyAny>, row: RoundRow) -> PyResult<()> {
        Python::attach(|py| {
            let dict = row_dict(py, round_columns(&[row]))?;
            if let Some((method, seed)) = &self.whose {
                dict.set_item("method", method)?;
                dict.set_item("seed", seed)?;
            }
            callback.call1(py, (dict,))?;
            Ok(())
        })
    }
}

impl Observer for Watcher<'_> {
    fn event(&mut self, event: &Event) {
        if self.on_round.is_none() {
            return;
        }
        match (event, &mut self.row) {
            (Event::Decided(decided), _) => self.decided = Some(decided.clone()),
            (Event::Executed(executed), row) => {
                *row = self.decided.take().map(|decided| RoundRow::of(&decided, executed));
            }
            (Event::Calibrated(found), Some(row)) => row.calibration_success = found.rate(),
            (Event::Measured(found), Some(row)) => row.report_success = found.rate(),
            _ => {}
        }
    }

    fn completed(&mut self, _round: u64) {
        if let (Some(callback), Some(row)) = (self.on_round.clone(), self.row.take())
            && let Err(error) = self.call(&callback, row)
        {
            self.work.raise(error);
        }
    }

    fn asked_to_stop(&self) -> bool {
        self.work.is_stopped()
    }
}

/// Runs a method on a scenario and returns the folder of the run.
#[pyfunction]
#[expect(clippy::too_many_arguments)]
pub(crate) fn run(
    py: Python<'_>,
    scenario: &str,
    method: &Bound<'_, PyAny>,
    seed: u64,
    replicate: u64,
    overrides: Vec<String>,
    out: Option<PathBuf>,
    resume: bool,
    checkpoint_every: u64,
    on_round: Option<Py<PyAny>>,
) -> PyResult<PathBuf> {
    let mut methods = Methods::new();
    let scenario = released(py, || Ok(Scenario::load(scenario, &overrides)?))?;
    let method = methods.method(method, &scenario)?;
    let seeds = Seeds { seed, replicate };
    let path = out.unwrap_or_else(|| host::run_folder(&scenario, method.name(), seeds));
    let about = methods.about();
    let planner_states = PLANNER_STATES;
    let spec =
        RunSpec { scenario, method, seed, replicate, checkpoint_every, planner_states, about };
    let (work, known) = (Work::default(), &methods);
    let mut watcher = Watcher::new(&work, on_round.map(Arc::new), None);
    let ended = work.perform(py, || {
        let folder = match resume && path.join("manifest.json").exists() {
            true => opened(&path, &spec, known)?,
            false => RunFolder::create(&path).map_err(|error| hinted(error, &path))?,
        };
        let begun = path.join("manifest.json").exists();
        let (time, cache) = (host::WallTime::start(), host::cache());
        Ok(run_single(&spec, folder, begun, cache.as_ref(), &time, &mut watcher)?)
    });
    match ended {
        Ok(Ended::Finished(_)) => Ok(path),
        Ok(Ended::Interrupted(round)) => {
            Err(RunError::new_err(format!("stopped after round {round}")))
        }
        Err(error) => {
            if let Some(cause) = methods.raised.take()
                && error.is_instance_of::<RunError>(py)
            {
                error.set_cause(py, Some(cause));
            }
            Err(error)
        }
    }
}

/// A folder that is there is not written over; the message says what can be done.
fn hinted(error: tilp::record::RecordError, path: &std::path::Path) -> Failure {
    let is_run = path.join("manifest.json").exists();
    let hint = if is_run { "; resume=True continues it" } else { "" };
    Failure::Input(format!("{error}{hint}"))
}

/// The folder of a run to resume; scenario, method and seed must be the same.
fn opened(path: &std::path::Path, spec: &RunSpec, methods: &Methods) -> Result<RunFolder, Failure> {
    let folder = RunFolder::open(path)?;
    let (scenario, method, seeds) = read_run_identity(&folder, &methods.registry)?;
    let same = [
        ("scenario", scenario.hash() == spec.scenario.hash()),
        ("method", method.name() == spec.method.name()),
        ("seed", seeds == spec.seeds()),
    ];
    match same.iter().find(|(_, same)| !same) {
        None => methods.check(path, method.name()).map(|()| folder),
        Some((what, _)) => Err(Failure::Input(format!(
            "{}: holds a run with another {what}, expected the same to resume",
            path.display()
        ))),
    }
}

/// The tables of a run: rounds, terminals and episodes.
#[pyfunction]
pub(crate) fn tables(py: Python<'_>, path: PathBuf) -> PyResult<(Table, Table, Table)> {
    released(py, || {
        let folder = RunFolder::open(&path)?;
        let History { rounds, terminals, episodes, tasks, .. } = folder.read_history()?;
        Ok((
            Table::new(round_columns(&rounds)),
            Table::new(terminal_columns(&terminals, &tasks)),
            Table::new(episode_columns(&episodes, &tasks)),
        ))
    })
}
