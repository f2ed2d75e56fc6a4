//! The digital twin of a cell.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use numpy::ndarray::{Array1, Array2};
use numpy::{IntoPyArray, PyArray1, PyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayon::prelude::*;

use tilp::exchange::Expected;
use tilp::experiment::replay::Replay;
use tilp::record::RunFolder;
use tilp::round::{Decision, Observation as Seen, Outcome, ProjectedDecision};
use tilp::scenario::{
    MethodInputs, Scenario, TwinParts, assemble_twin, data_sheets, method, suite_of,
};
use tilp::twin::{StepPrediction, Sureness, Twin};

use crate::decision;
use crate::errors::Failure;
use crate::observation::Observation;
use crate::work::released;

/// The twin behind `tilp.Twin`.
#[pyclass(frozen, module = "tilp._tilp")]
pub(crate) struct TwinModel {
    twin: Mutex<Twin>,
    pub(crate) scenario: Scenario,
    pub(crate) seed: u64,
    expected: Expected,
    /// Observation before the last round of its calibration.
    last: Mutex<Option<Arc<Seen>>>,
    /// Rounds that it learned from.
    learned: Mutex<u64>,
}

/// Predictions of the twin for one decision.
struct Predicted {
    step: StepPrediction,
    delay_s: Vec<f64>,
    energy_j: Vec<f64>,
}

impl TwinModel {
    pub(crate) fn new(twin: Twin, scenario: &Scenario, seed: u64) -> Self {
        let nominal = twin.nominal();
        let expected = Expected {
            hardware: data_sheets(scenario, seed),
            n_layers: nominal.cost.profile.cuts.len(),
            aggregate_every: nominal.aggregate_every,
            suite: suite_of(scenario),
            tasks: None,
        };
        let (last, learned) = (Mutex::default(), Mutex::default());
        Self { twin: Mutex::new(twin), scenario: scenario.clone(), seed, expected, last, learned }
    }

    /// The twin of the cell that a method is to decide for.
    pub(crate) fn of_method(inputs: MethodInputs, scenario: &Scenario) -> Self {
        let hardware = inputs.nominal.hardware.clone();
        let own = Self::new(Twin::new(inputs.nominal, inputs.tilp.twin), scenario, 0);
        Self { expected: Expected { hardware, ..own.expected }, ..own }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Twin> {
        self.twin.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Is calibrated with an executed round.
    pub(crate) fn calibrate(&self, seen: &Seen, plan: &ProjectedDecision, outcome: &Outcome) {
        self.lock().calibrate(seen, plan, outcome);
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(seen.clone()));
        *self.learned.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    }

    /// A copy of the twin for the terminals of an observation.
    pub(crate) fn attending(&self, seen: &Seen) -> Twin {
        let mut twin = self.lock().clone();
        twin.attend(seen);
        twin
    }

    /// Observation before the last round of its calibration.
    pub(crate) fn last_seen(&self) -> Option<Arc<Seen>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Terminals that are ever there.
    pub(crate) fn n_slots(&self) -> usize {
        self.expected.hardware.len()
    }

    /// An observation that a user gives.
    pub(crate) fn read(&self, given: &Bound<'_, PyAny>) -> PyResult<Arc<Seen>> {
        Observation::read(given, &self.expected)
    }

    fn from_scenario(scenario: &Scenario, seed: u64) -> Result<Self, Failure> {
        let TwinParts { nominal, options, .. } = assemble_twin(scenario, &method("tilp")?, seed)?;
        Ok(Self::new(Twin::new(nominal, options), scenario, seed))
    }

    fn from_folder(path: &Path, rounds: Option<u64>) -> Result<Self, Failure> {
        let replay = Replay::open(&RunFolder::open(path)?)?;
        let TwinParts { nominal, options, .. } = replay.twin.clone();
        let own = Self::new(Twin::new(nominal, options), &replay.scenario, replay.seed);
        for round in replay.rounds().take(rounds.map_or(usize::MAX, |n| n as usize)) {
            own.calibrate(&round.seen, &round.plan, &round.outcome);
        }
        Ok(own)
    }
}

fn predicted(twin: &Twin, seen: &Seen, decisions: Vec<Decision>) -> Vec<Predicted> {
    let (start, limits) = (twin.state(seen), &twin.nominal().cost.limits);
    let one = |(scratch, state): &mut (_, _), decision: Decision| {
        Clone::clone_from(state, &start);
        let plan = limits.project(decision);
        let actions = &plan.decision().terminals;
        let step = twin.step(state, actions, Sureness::Likely, scratch);
        let scratch: &tilp::twin::Scratch = scratch;
        Predicted {
            step,
            delay_s: scratch.delays.iter().map(|one| one.0).collect(),
            energy_j: scratch.energies.iter().map(|one| one.0).collect(),
        }
    };
    let memory = || (twin.scratch(), start.clone());
    decisions.into_par_iter().map_init(memory, one).collect()
}

fn numbers<'py>(
    py: Python<'py>,
    all: &[Predicted],
    of: fn(&StepPrediction) -> f64,
) -> Bound<'py, PyArray1<f64>> {
    all.iter().map(|one| of(&one.step)).collect::<Array1<f64>>().into_pyarray(py)
}

fn by_terminal<'py>(
    py: Python<'py>,
    all: &[Predicted],
    n: usize,
    of: fn(&Predicted) -> &[f64],
) -> Bound<'py, PyArray2<f64>> {
    let flat: Vec<f64> = all.iter().flat_map(|one| of(one).iter().copied()).collect();
    let array = Array2::from_shape_vec((all.len(), n), flat);
    array.expect("a row per decision, a column per terminal").into_pyarray(py)
}

type Column = (&'static str, fn(&StepPrediction) -> f64);

const COLUMNS: [Column; 12] = [
    ("latency_s", |one| one.latency.0),
    ("duration_s", |one| one.duration.0),
    ("energy_j", |one| one.energy.0),
    ("violation", |one| one.violation.relative),
    ("n_scheduled", |one| one.n_scheduled as f64),
    ("n_late", |one| one.n_late as f64),
    ("loss_decrease", |one| one.loss_decrease),
    ("success", |one| one.success),
    ("reward", |one| one.reward.total()),
    ("reward_task", |one| one.reward.task),
    ("reward_communication", |one| one.reward.communication),
    ("reward_penalty", |one| one.reward.penalty),
];

#[pymethods]
impl TwinModel {
    /// The twin of a finished run, calibrated by its rounds.
    #[staticmethod]
    #[pyo3(signature = (path, rounds=None))]
    fn from_run(py: Python<'_>, path: std::path::PathBuf, rounds: Option<u64>) -> PyResult<Self> {
        released(py, || Self::from_folder(&path, rounds))
    }

    /// The twin of a scenario before anything was measured.
    #[staticmethod]
    fn of_scenario(
        py: Python<'_>,
        scenario: &str,
        overrides: Vec<String>,
        seed: u64,
    ) -> PyResult<Self> {
        released(py, || Self::from_scenario(&Scenario::load(scenario, &overrides)?, seed))
    }

    /// Rounds that it learned from.
    #[getter]
    fn rounds(&self) -> u64 {
        *self.learned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[getter]
    fn n_terminals(&self) -> usize {
        self.lock().members().len()
    }

    /// Observation before the last round of its calibration.
    #[getter]
    fn observation(&self) -> Option<Observation> {
        Some(Observation::new(self.last_seen()?, self.expected.suite))
    }

    /// Predictions of the twin for each decision, as columns.
    fn predict<'py>(
        &self,
        py: Python<'py>,
        observation: &Bound<'py, PyAny>,
        decisions: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let seen = self.read(observation)?;
        let n = seen.terminals.len();
        let decisions = decision::read(decisions, n, self.expected.n_layers)?;
        let (before, all) = released(py, || {
            let twin = self.attending(&seen);
            Ok((twin.state(&seen).success, predicted(&twin, &seen, decisions)))
        })?;
        let columns = PyDict::new(py);
        for (name, of) in COLUMNS {
            columns.set_item(name, numbers(py, &all, of))?;
        }
        columns.set_item("success_before", before)?;
        columns.set_item("delay_s", by_terminal(py, &all, n, |one| &one.delay_s))?;
        columns.set_item("terminal_energy_j", by_terminal(py, &all, n, |one| &one.energy_j))?;
        Ok(columns)
    }
}
