//! One run: one method, one scenario, one seed, one folder.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use super::keeper::{Keeper, Saved};
use super::what_if::ASKED;
use crate::allocate::Clock;
use crate::exchange::Declaration;
use crate::record::{Evaluation, Identity, ProcessEvent, RecordError, RunFolder, Summary, format};
use crate::round::{Cell, CellError, Evaluator};
use crate::run::{LoopError, Observer, Stop, run};
use crate::scenario::{
    Cache, Method, Parts, Scenario, ScenarioError, Seeds, World, assemble_world,
};
use crate::snapshot::SnapshotError;
use crate::tasks::tabletop::Engine;
use crate::world::{Examiner, Laboratory, Learner};

/// Specification of a run.
#[derive(Clone, Debug)]
pub struct RunSpec {
    /// The scenario.
    pub scenario: Scenario,
    /// The method.
    pub method: Method,
    /// The seed.
    pub seed: u64,
    /// Which replicate of it. Replicates differ in the order of minibatches only.
    pub replicate: u64,
    /// Rounds between checkpoints.
    pub checkpoint_every: u64,
    /// States of the planner that are kept on the way, at equal distances. Only `tilp` has one.
    pub planner_states: u64,
    /// Further entries of the manifest: versions and host.
    pub about: Value,
}

/// States of the planner that single runs keep. Those of studies keep none.
pub const PLANNER_STATES: u64 = 4;

/// A clock. The library has none; the caller passes it.
pub trait Time: Sync {
    /// Wall time in seconds since some fixed moment.
    fn seconds(&self) -> f64;
    /// Wall time in seconds since 1970.
    fn epoch_seconds(&self) -> f64;
    /// A clock for plans with a time budget, if there is one.
    fn clock(&self) -> Option<Clock> {
        None
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Ended {
    /// All rounds are done and the folder is complete.
    Finished(Box<Summary>),
    /// Asked to stop; the folder holds a checkpoint of this round.
    Interrupted(u64),
}

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The scenario cannot be put together.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The folder cannot be read or written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The checkpoint does not fit.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The method has no decision, or the cell failed.
    #[error(transparent)]
    Loop(#[from] LoopError),
    /// Training diverged.
    #[error(
        "round {round}: the training loss is {loss}, expected a finite number: \
         lower learning.server_rate and learning.terminal_rate"
    )]
    Diverged {
        /// The round.
        round: u64,
        /// Its loss.
        loss: f64,
    },
}

impl RunError {
    /// Whether the reason that a failed run left behind is that training diverged.
    pub(super) fn is_divergence(reason: &str) -> bool {
        reason.contains(": the training loss is ")
    }
}

impl From<CellError> for RunError {
    fn from(error: CellError) -> Self {
        Self::Loop(error.into())
    }
}

impl RunSpec {
    /// Identity that a checkpoint must match.
    pub fn identity(&self) -> Identity {
        Identity {
            method: self.method.name().to_owned(),
            seed: self.seed,
            replicate: self.replicate,
            scenario: self.scenario.hash(),
        }
    }

    /// Seed of the run.
    pub fn seeds(&self) -> Seeds {
        Seeds { seed: self.seed, replicate: self.replicate }
    }

    /// The last round of a run, if it has no budget.
    pub(super) fn last_round(&self) -> u64 {
        if self.scenario.budget().is_none() { self.scenario.rounds() } else { u64::MAX }
    }

    /// Rounds after which the state of the planner is kept.
    fn kept_rounds(&self) -> impl Iterator<Item = u64> {
        let n = if self.method.name() == ASKED { self.planner_states } else { 0 };
        let rounds = u128::from(self.scenario.rounds());
        let place = move |k: u64| (u128::from(k) * rounds / (u128::from(n) + 1)) as u64;
        (1..=n).map(place).filter(|round| *round > 0)
    }

    /// The next round after which something is written besides rows.
    fn next_stop(&self, done: u64) -> u64 {
        let every = self.checkpoint_every.max(1);
        let checkpoint = (done / every + 1).saturating_mul(every);
        let kept = self.kept_rounds().find(|kept| *kept > done);
        kept.map_or(checkpoint, |kept| kept.min(checkpoint)).min(self.last_round())
    }

    pub(super) fn manifest(
        &self,
        environment: &BTreeMap<String, String>,
        declared: Option<&Declaration>,
    ) -> Value {
        let mut manifest = json!({
            "format": format::RUN_FOLDER,
            "method": self.method.name(),
            "seed": self.seed,
            "scenario": self.scenario.name(),
            "scenario_version": self.scenario.version(),
            "scenario_hash": self.scenario.hash(),
        });
        if self.replicate > 0 {
            manifest["replicate"] = json!(self.replicate);
        }
        if let (Some(fields), Value::Object(about)) = (manifest.as_object_mut(), &self.about) {
            fields.extend(about.clone());
            if !environment.is_empty() {
                fields.insert("environment".into(), json!(environment));
            }
        }
        if let Some(declared) = declared {
            manifest["declared"] = json!(declared);
        }
        let note = self.scenario.note();
        if let Some(note) = note {
            manifest["note"] = json!(note);
        }
        // A library that is found at the start of the program is not known at build time.
        let engine = Engine::from_name(self.scenario.engine()).filter(|_| note.is_none());
        if let Some((engine, version)) = engine.and_then(|one| Some((one, one.version()?))) {
            manifest["engine"] = json!(engine.name());
            manifest["parts"][engine.name()] = json!(version);
        }
        manifest
    }
}

/// Runs into a new folder, or resumes in one with a checkpoint. No other process may write
/// into the folder meanwhile.
pub fn run_single(
    spec: &RunSpec,
    mut folder: RunFolder,
    resume: bool,
    cache: Option<&Cache>,
    time: &dyn Time,
    observer: &mut dyn Observer,
) -> Result<Ended, RunError> {
    let start = time.seconds();
    let saved = if resume { Some(Saved::read(spec, &mut folder)?) } else { None };
    if let Some(summary) = saved.as_ref().and_then(|saved| saved.complete(spec, &folder)) {
        observer.process(&ProcessEvent::Kept);
        return Ok(Ended::Finished(Box::new(summary)));
    }
    let world = {
        let watching = Mutex::new(&mut *observer);
        let progress = |done, total| {
            let mut watching = watching.lock().unwrap_or_else(PoisonError::into_inner);
            watching.process(&ProcessEvent::Demonstrations { done, total });
        };
        let (method, clock) = (spec.method.clone(), time.clock());
        assemble_world(&spec.scenario, method, spec.seeds(), clock, cache, &progress)?
    };
    let process = Process { spec, folder, saved, start, time, observer };
    match world {
        World::Robots(parts) => process.run(*parts),
        World::Profile(parts) => process.run(*parts),
    }
}

/// The same with parts that the caller has put together: for cells of which some parts are on
/// other machines.
pub fn run_parts<L: Learner, X: Examiner<L>, V: Evaluator>(
    spec: &RunSpec,
    mut folder: RunFolder,
    resume: bool,
    parts: Parts<L, X, V>,
    time: &dyn Time,
    observer: &mut dyn Observer,
) -> Result<Ended, RunError> {
    let start = time.seconds();
    let saved = if resume { Some(Saved::read(spec, &mut folder)?) } else { None };
    if let Some(summary) = saved.as_ref().and_then(|saved| saved.complete(spec, &folder)) {
        observer.process(&ProcessEvent::Kept);
        return Ok(Ended::Finished(Box::new(summary)));
    }
    Process { spec, folder, saved, start, time, observer }.run(parts)
}

/// Everything about a run but its parts.
struct Process<'a> {
    spec: &'a RunSpec,
    folder: RunFolder,
    saved: Option<Saved>,
    /// When it was started.
    start: f64,
    time: &'a dyn Time,
    observer: &'a mut dyn Observer,
}

impl<'a> Process<'a> {
    /// Runs with these parts, for any kind of learner.
    fn run<L: Learner, X: Examiner<L>, V: Evaluator>(
        self,
        mut parts: Parts<L, X, V>,
    ) -> Result<Ended, RunError> {
        let (spec, time, start) = (self.spec, self.time, self.start);
        let mut keeper = self.begin(&mut parts)?;
        let ended = conduct(spec, parts, &mut keeper, [start, time.seconds()]);
        if let Err(error) = &ended {
            keeper.failed(&error.to_string());
        }
        ended
    }

    /// Creates the folder of a new run, or restores the saved state.
    fn begin<L: Learner, X: Examiner<L>, V: Evaluator>(
        self,
        parts: &mut Parts<L, X, V>,
    ) -> Result<Keeper<'a>, RunError> {
        let Parts { cell, station, laboratory, environment, declared, .. } = parts;
        let Self { spec, folder, saved, time, observer, .. } = self;
        if let Some(saved) = saved {
            return saved.resume(spec, folder, cell, station, time, observer);
        }
        let base = laboratory.report_success(cell)?;
        let (stream, state) =
            Keeper::start(spec, &task_names::<L, X>(laboratory), &base, cell, station)?;
        let manifest = spec.manifest(environment, declared.as_ref());
        Keeper::begin(spec, folder, &manifest, stream, &state, time, observer)
    }
}

/// Runs round by round, from checkpoint to checkpoint, then evaluates the policy.
fn conduct<L: Learner, X: Examiner<L>, V: Evaluator>(
    spec: &RunSpec,
    parts: Parts<L, X, V>,
    keeper: &mut Keeper<'_>,
    [start, set_up]: [f64; 2],
) -> Result<Ended, RunError> {
    let Parts { mut cell, mut station, mut evaluator, mut laboratory, .. } = parts;
    let (scenario, last) = (&spec.scenario, spec.last_round());
    while keeper.last_round() < last {
        let until = spec.next_stop(keeper.last_round());
        let stop = run(&mut cell, &mut station, &mut evaluator, &mut laboratory, until, keeper);
        keeper.check()?;
        let stop = stop?;
        // Before the checkpoint: a run that is killed in between comes here again.
        if spec.kept_rounds().any(|kept| kept == keeper.last_round()) {
            keeper.keep_planner(&station)?;
        }
        keeper.checkpoint(&cell, &station)?;
        match stop {
            Stop::Asked if keeper.last_round() < last => return Ok(keeper.interrupted()),
            Stop::BudgetUsed => break,
            _ => {}
        }
    }
    let trained = keeper.seconds();
    let evaluation = Evaluation {
        base: keeper.base_success(),
        terminals: laboratory.final_success(&mut cell)?,
        task_names: task_names::<L, X>(&laboratory),
        first_passage: scenario.first_passage(),
        rule: Some(station.schedule().rule),
        events: scenario.events(),
        note: scenario.note().map(str::to_owned),
        budget: scenario.budget(),
    };
    let mut timing = keeper.plan_times();
    timing["set_up_s"] = json!(set_up - start);
    timing["rounds_s"] = json!(trained - set_up);
    timing["final_evaluation_s"] = json!(keeper.seconds() - trained);
    let model = laboratory.examiner().model_file(&cell.model()?)?;
    keeper.finish(&evaluation, model, &timing).map(Ended::Finished)
}

fn task_names<L: Learner, X: Examiner<L>>(laboratory: &Laboratory<X>) -> Vec<String> {
    laboratory.examiner().tasks().iter().map(|&name| name.to_owned()).collect()
}
