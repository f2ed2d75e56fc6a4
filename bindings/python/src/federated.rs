//! Runs whose terminals are elsewhere, behind a function of the user's: for frameworks of federated learning
//! that carry the messages.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use tilp::experiment::{Ended, PLANNER_STATES, RunSpec, run_parts};
use tilp::record::RunFolder;
use tilp::round::{CellError, TerminalId, TerminalSuccess};
use tilp::scenario::{Parts, Registry, Scenario, Seeds, assemble};
use tilp::snapshot::{Persist, Snapshot, SnapshotError};
use tilp::split::engine::{Copies, Engine, Outcome, Participant, RoundError};
use tilp::split::link::{LinkError, TerminalLink};
use tilp::split::policy::Policy;
use tilp::split::rates::Rates;
use tilp::split::rule::Rule;
use tilp::split::terminal::TerminalHalf as Half;
use tilp::split::terminal_state::TerminalState;
use tilp::tasks::EpisodeSet;
use tilp::world::{
    DataSets, Examiner, Halves, Laboratory, Learner, Robots, Schedule, model_message,
};
use tilp_cli::host;
use tilp_testbed::contract::{state_from_bytes, state_to_bytes};

use crate::allocator::describe;
use crate::errors::{Failure, RunError as PyRunError};
use crate::run::Watcher;
use crate::work::{Work, released};

/// The way to a terminal: a function that gets its id and a message, and returns the answer.
struct FunctionLink {
    exchange: Arc<Py<PyAny>>,
    id: TerminalId,
}

impl TerminalLink for FunctionLink {
    fn exchange(&mut self, message: &[u8]) -> Result<Vec<u8>, LinkError> {
        Python::attach(|py| {
            let answer = self.exchange.call1(py, (self.id.0, PyBytes::new(py, message)));
            answer
                .and_then(|answer| answer.extract::<Vec<u8>>(py))
                .map_err(|error| LinkError::Lost(describe(py, &error)))
        })
    }
}

/// The server half, with every terminal behind a function.
struct FunctionHalves {
    engine: Engine<Policy, FunctionLink>,
    data: DataSets,
    exchange: Arc<Py<PyAny>>,
    /// One thread for each terminal: each waits for an answer.
    threads: rayon::ThreadPool,
    round: u64,
    /// Terminals that did not answer. They have left from the next round on.
    gone: BTreeSet<TerminalId>,
}

impl FunctionHalves {
    fn new(halves: Halves, exchange: Arc<Py<PyAny>>) -> Result<Self, rayon::ThreadPoolBuildError> {
        let Halves { engine, data } = halves;
        let n_terminals = engine.ids().len();
        let threads =
            rayon::ThreadPoolBuilder::new().num_threads(n_terminals.clamp(2, 1024)).build()?;
        let link = |id, _| FunctionLink { exchange: exchange.clone(), id };
        Ok(Self {
            engine: engine.map_links(link),
            data,
            exchange,
            threads,
            round: 0,
            gone: BTreeSet::new(),
        })
    }

    /// A round or an aggregation is complete without the terminals that did not answer.
    fn without_lost<T>(
        &mut self,
        result: Result<T, RoundError>,
        complete: impl FnOnce(Vec<Outcome>) -> T,
    ) -> Result<T, RoundError> {
        match result {
            Err(RoundError::Links { failed, done }) => {
                self.gone.extend(failed.iter().map(|one| one.terminal));
                Ok(complete(done))
            }
            other => other,
        }
    }
}

impl Learner for FunctionHalves {
    fn ids(&self) -> Vec<TerminalId> {
        self.engine.ids()
    }

    fn gather(&mut self, wanted: &BTreeSet<TerminalId>, round: u64) -> Result<(), RoundError> {
        self.round = round;
        let wanted: BTreeSet<TerminalId> = wanted.difference(&self.gone).copied().collect();
        for id in self.engine.ids() {
            if !wanted.contains(&id) {
                self.engine.leave(id)?;
            }
        }
        let members: BTreeSet<TerminalId> = self.engine.ids().into_iter().collect();
        for &id in wanted.difference(&members) {
            self.engine.attach(id, FunctionLink { exchange: self.exchange.clone(), id })?;
        }
        Ok(())
    }

    fn n_samples(&self, id: TerminalId, round: u64) -> usize {
        self.data.at(id, round).len()
    }

    fn held_layers(&self, id: TerminalId) -> usize {
        self.engine.terminal(id).map_or(0, TerminalState::held)
    }

    fn owed_layers(&self, id: TerminalId) -> usize {
        self.engine.terminal(id).map_or(0, TerminalState::deepest_trained)
    }

    fn train(
        &mut self,
        rule: Rule,
        round: u64,
        rates: Rates,
        participants: &[Participant],
        copies: Copies,
    ) -> Result<Vec<Outcome>, RoundError> {
        self.engine.settings_mut().server_rate = rates.server;
        self.engine.settings_mut().client_rate = rates.terminal;
        let Self { engine, threads, .. } = self;
        let trained = threads.install(|| engine.train(rule, round, participants, copies));
        self.without_lost(trained, |done| done)
    }

    fn aggregate(&mut self, arrived: &[TerminalId]) -> Result<(), RoundError> {
        let Self { engine, threads, .. } = self;
        let averaged = threads.install(|| engine.aggregate(arrived));
        self.without_lost(averaged, |_| ())
    }

    fn aggregate_front(&mut self, last: usize, arrived: &[TerminalId]) -> Result<(), RoundError> {
        let Self { engine, threads, .. } = self;
        let averaged = threads.install(|| engine.aggregate_front(last, arrived));
        self.without_lost(averaged, |_| ())
    }

    fn aggregate_edges(&mut self, copies: Copies) -> Result<(), RoundError> {
        let Self { engine, threads, .. } = self;
        let averaged = threads.install(|| engine.aggregate_edges(copies));
        self.without_lost(averaged, |_| ())
    }

    /// The model of the terminals that answer.
    fn model(&self, round: u64) -> Result<Vec<u8>, RoundError> {
        let (mean, _) = self.threads.install(|| self.engine.reachable_mean());
        Ok(model_message(round, &self.engine.model().deployed(&mean)))
    }
}

impl Persist for FunctionHalves {
    /// The server half. What terminals hold is theirs.
    fn save(&self, snapshot: &mut Snapshot) {
        self.engine.server().save(snapshot);
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        self.engine.restore_server(snapshot)
    }
}

/// The experimenter measures the model as in a simulation. Data sets are drawn again from the seed.
impl Examiner<FunctionHalves> for Robots {
    fn tasks(&self) -> &'static [&'static str] {
        Examiner::<Halves>::tasks(self)
    }

    fn schedule(&self) -> &Schedule {
        Examiner::<Halves>::schedule(self)
    }

    fn success(
        &self,
        round: u64,
        set: EpisodeSet,
        first: u64,
        per_terminal: usize,
        terminals: &[TerminalId],
        model: &[u8],
    ) -> Result<Vec<TerminalSuccess>, CellError> {
        Examiner::<Halves>::success(self, round, set, first, per_terminal, terminals, model)
    }

    fn losses(
        &self,
        learner: &FunctionHalves,
        samples: usize,
        terminals: &[TerminalId],
        model: &[u8],
    ) -> Result<Vec<f64>, CellError> {
        let at = |id: TerminalId| (id, learner.data.at(id, learner.round.max(1)).clone());
        let sets = learner.engine.ids().into_iter().map(at).collect();
        self.losses_on(&sets, samples, terminals, model)
    }

    fn model_file(&self, model: &[u8]) -> Result<Option<Vec<u8>>, CellError> {
        Examiner::<Halves>::model_file(self, model)
    }
}

/// Runs a method of the library with all terminals behind `exchange`, and returns the folder of the run.
#[pyfunction]
#[expect(clippy::too_many_arguments)]
pub(crate) fn run_federated(
    py: Python<'_>,
    scenario: &str,
    method: &str,
    seed: u64,
    overrides: Vec<String>,
    out: Option<PathBuf>,
    exchange: Py<PyAny>,
    on_round: Option<Py<PyAny>>,
) -> PyResult<PathBuf> {
    let (work, exchange) = (Work::default(), Arc::new(exchange));
    let mut watcher = Watcher::new(&work, on_round.map(Arc::new), None);
    let ended = work.perform(py, || {
        let scenario = Scenario::load(scenario, &overrides)?;
        let method = Registry::builtin().method(method)?;
        let seeds = Seeds { seed, replicate: 0 };
        let path = out.unwrap_or_else(|| host::run_folder(&scenario, method.name(), seeds));
        let (time, cache) = (host::WallTime::start(), host::cache());
        let parts = assemble(&scenario, method.clone(), seeds, cache.as_ref(), &|_, _| {})?;
        let Parts { cell, station, evaluator, laboratory, environment, declared } = parts;
        let cell = cell.map_learner(|halves| FunctionHalves::new(halves, exchange));
        let cell = cell.map_err(|error| Failure::Run(error.to_string()))?;
        let laboratory = Laboratory::with(laboratory.into_examiner());
        let parts = Parts { cell, station, evaluator, laboratory, environment, declared };
        let spec = RunSpec {
            scenario,
            method,
            seed,
            replicate: 0,
            checkpoint_every: u64::MAX,
            planner_states: PLANNER_STATES,
            about: host::about(),
        };
        let folder = RunFolder::create(&path)?;
        Ok((run_parts(&spec, folder, false, parts, &time, &mut watcher)?, path))
    })?;
    match ended {
        (Ended::Finished(_), path) => Ok(path),
        (Ended::Interrupted(round), _) => {
            Err(PyRunError::new_err(format!("stopped after round {round}")))
        }
    }
}

/// The front half of the policy with the private data of one terminal.
#[pyclass(frozen, module = "tilp._tilp")]
pub(crate) struct TerminalHalf(Mutex<Half<Policy>>);

impl TerminalHalf {
    fn lock(&self) -> std::sync::MutexGuard<'_, Half<Policy>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl TerminalHalf {
    /// The terminal as it is before the first round of a run.
    #[new]
    fn new(
        py: Python<'_>,
        scenario: &str,
        seed: u64,
        overrides: Vec<String>,
        terminal: u32,
    ) -> PyResult<Self> {
        released(py, || {
            let scenario = Scenario::load(scenario, &overrides)?;
            let method = Registry::builtin().method("random")?;
            let cache = host::cache();
            let parts = assemble(&scenario, method, seed, cache.as_ref(), &|_, _| {})?;
            let (engine, id) = (parts.cell.engine(), TerminalId(terminal));
            let wrong = || {
                let most = engine.ids().len().saturating_sub(1);
                Failure::Input(format!("terminal = {terminal}, expected 0 to {most}"))
            };
            let data = engine.data(id).ok_or_else(wrong)?;
            let settings = engine.settings();
            let half = Half::new(id, Arc::new(engine.model().clone()), settings.seed, data)
                .with_minibatches(settings.minibatches)
                .with_policy(engine.server().weights());
            Ok(Self(Mutex::new(half)))
        })
    }

    /// The answer to a message of the server.
    fn handle(&self, py: Python<'_>, message: &[u8]) -> PyResult<Py<PyBytes>> {
        let answer = released(py, || self.lock().handle(message).map_err(Failure::input))?;
        Ok(PyBytes::new(py, &answer).unbind())
    }

    /// Everything that changes, for another process that continues.
    fn save(&self, py: Python<'_>) -> Py<PyBytes> {
        let mut snapshot = Snapshot::default();
        self.lock().save(&mut snapshot);
        PyBytes::new(py, &state_to_bytes(&snapshot)).unbind()
    }

    /// Takes back what was saved.
    fn restore(&self, state: &[u8]) -> PyResult<()> {
        let snapshot = state_from_bytes(state).map_err(Failure::Input)?;
        Ok(self.lock().restore(&snapshot).map_err(Failure::input)?)
    }
}
