//! One run: one method, one scenario, one seed, one folder.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use serde_json::{Value, json};

use crate::allocate::Clock;
use crate::record::{
    Checkpoint, Evaluation, Files, History, Identity, RecordError, RoundRow, RunFolder, Summary,
};
use crate::round::{
    BudgetState, Cell, CellError, Evaluator, Observation, RoundOrder, SuccessCount, TerminalSuccess,
};
use crate::run::{LoopError, Observer, RoundRecord, Stop, run};
use crate::scenario::{
    Cache, Method, Parts, Scenario, ScenarioError, Seeds, World, assemble_world,
};
use crate::snapshot::{Persist, Snapshot, SnapshotError};
use crate::station::Station;
use crate::tasks::tabletop::Engine;
use crate::world::{Examiner, Laboratory, Learner, SimulatedCell};

/// What is run.
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
    /// What the manifest says besides: versions and host.
    pub about: Value,
}

/// Who watches a run: shows progress, tells the time, asks to stop.
pub trait Watcher: Sync {
    /// Demonstrations of so many terminals are made.
    fn demonstrations(&self, done: usize, total: usize);
    /// A round is done.
    fn round(&self, row: &RoundRow, total: u64);
    /// Whether to stop after the round in progress.
    fn asked_to_stop(&self) -> bool;
    /// What time it is: the library has no clock.
    fn time(&self) -> &dyn Time;
}

/// Who tells the time.
pub trait Time: Sync {
    /// Wall time in seconds since some fixed moment.
    fn seconds(&self) -> f64;
    /// Wall time in seconds since the epoch, for the events of TensorBoard.
    fn epoch_seconds(&self) -> f64;
    /// A clock that plans with a budget may read; none if there is no such thing.
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

impl From<CellError> for RunError {
    fn from(error: CellError) -> Self {
        Self::Loop(error.into())
    }
}

impl RunSpec {
    /// What a checkpoint must agree with.
    pub fn identity(&self) -> Identity {
        Identity {
            method: self.method.name().to_owned(),
            seed: self.seed,
            replicate: self.replicate,
            scenario: self.scenario.hash(),
        }
    }

    /// What the run is drawn from.
    pub fn seeds(&self) -> Seeds {
        Seeds { seed: self.seed, replicate: self.replicate }
    }

    /// The round after which a run ends in any case. With a budget there is none.
    fn last_round(&self) -> u64 {
        if self.scenario.budget().is_none() { self.scenario.rounds() } else { u64::MAX }
    }

    fn manifest(&self, environment: &BTreeMap<String, String>) -> Value {
        let mut manifest = json!({
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
        let note = self.scenario.note();
        if let Some(note) = note {
            manifest["note"] = json!(note);
        }
        // A library that is found when the program starts is a part that no build can know.
        let engine = Engine::from_name(self.scenario.engine()).filter(|_| note.is_none());
        if let Some((engine, version)) = engine.and_then(|one| Some((one, one.version()?))) {
            manifest["engine"] = json!(engine.name());
            manifest["parts"][engine.name()] = json!(version);
        }
        manifest
    }
}

/// Runs into a new folder, or goes on in one that holds a checkpoint.
pub fn run_single(
    spec: &RunSpec,
    folder: RunFolder,
    resume: bool,
    cache: Option<&Cache>,
    watcher: &dyn Watcher,
) -> Result<Ended, RunError> {
    let start = watcher.time().seconds();
    let checkpoint = if resume { Some(folder.read_checkpoint(&spec.identity())?) } else { None };
    let progress = |done, total| watcher.demonstrations(done, total);
    let (scenario, clock) = (&spec.scenario, watcher.time().clock());
    match assemble_world(scenario, spec.method.clone(), spec.seeds(), clock, cache, &progress)? {
        World::Robots(parts) => conduct(spec, folder, checkpoint, *parts, start, watcher),
        World::Profile(parts) => conduct(spec, folder, checkpoint, *parts, start, watcher),
    }
}

/// Runs with these parts, whatever learns in the cell.
fn conduct<L: Learner, X: Examiner<L>, V: Evaluator>(
    spec: &RunSpec,
    folder: RunFolder,
    checkpoint: Option<Checkpoint>,
    parts: Parts<L, X, V>,
    start: f64,
    watcher: &dyn Watcher,
) -> Result<Ended, RunError> {
    let scenario = &spec.scenario;
    let Parts { mut cell, mut station, mut evaluator, mut laboratory, environment } = parts;
    let base = laboratory.report_success(&mut cell)?;
    let mut keeper = Keeper::new(spec, folder, watcher);
    match checkpoint {
        Some(checkpoint) => {
            keeper.restore(&checkpoint, &mut cell, &mut station)?;
            keeper.go_on()?;
        }
        None => keeper.begin(&environment, &cell, &station)?,
    }
    let set_up = watcher.time().seconds();
    let last = spec.last_round();
    let stop = run(&mut cell, &mut station, &mut evaluator, &mut laboratory, last, &mut keeper);
    if let Some(error) = keeper.error.take() {
        return Err(error);
    }
    if stop? == Stop::Asked {
        return Ok(Ended::Interrupted(keeper.last_round()));
    }
    let trained = watcher.time().seconds();
    let evaluation = Evaluation {
        first_passage: scenario.first_passage(),
        rule: Some(spec.method.training(scenario)?),
        budget: scenario.budget(),
        ..evaluation(&laboratory, &mut cell, base, scenario)?
    };
    let timing = json!({
        "set_up_s": set_up - start,
        "rounds_s": trained - set_up,
        "final_evaluation_s": watcher.time().seconds() - trained,
        "plan_ms_mean": mean_ms(&keeper.plan_s),
        "plan_ms_p99": p99_ms(std::mem::take(&mut keeper.plan_s)),
    });
    let model = laboratory.examiner().model_file(&cell.model()?)?;
    keeper.finish(&cell, &station, &evaluation, model, &timing).map(Ended::Finished)
}

/// Success on the final episodes.
fn evaluation<L: Learner, X: Examiner<L>>(
    laboratory: &Laboratory<X>,
    cell: &mut SimulatedCell<L>,
    base: Vec<TerminalSuccess>,
    scenario: &Scenario,
) -> Result<Evaluation, CellError> {
    let counts = base.into_iter().map(|one| one.count);
    let tasks = laboratory.examiner().tasks();
    Ok(Evaluation {
        base: Some(counts.fold(SuccessCount::default(), SuccessCount::plus)),
        terminals: laboratory.final_success(cell)?,
        note: scenario.note().map(str::to_owned),
        task_names: tasks.iter().map(|&name| name.to_owned()).collect(),
        events: scenario.events(),
        ..Evaluation::default()
    })
}

fn mean_ms(plan_s: &[f64]) -> f64 {
    1e3 * plan_s.iter().sum::<f64>() / plan_s.len().max(1) as f64
}

fn p99_ms(mut plan_s: Vec<f64>) -> f64 {
    plan_s.sort_by(f64::total_cmp);
    let index = (plan_s.len() * 99 / 100).min(plan_s.len().saturating_sub(1));
    1e3 * plan_s.get(index).copied().unwrap_or(0.0)
}

/// Keeps the books of a run and its checkpoints.
struct Keeper<'a> {
    spec: &'a RunSpec,
    folder: RunFolder,
    history: History,
    watcher: &'a dyn Watcher,
    /// When the decision in progress was asked for.
    asked_s: f64,
    /// How long decisions took.
    plan_s: Vec<f64>,
    error: Option<RunError>,
}

impl<'a> Keeper<'a> {
    fn new(spec: &'a RunSpec, folder: RunFolder, watcher: &'a dyn Watcher) -> Self {
        Self {
            spec,
            folder,
            history: History::default(),
            watcher,
            asked_s: 0.0,
            plan_s: Vec::new(),
            error: None,
        }
    }

    /// A program of another commit that goes on with a run is named in its manifest too.
    fn go_on(&mut self) -> Result<(), RecordError> {
        let mut manifest = self.folder.read_manifest()?;
        let now = &self.spec.about["commit"];
        let last = manifest.get("resumed_by").or_else(|| manifest.get("commit"));
        if now.is_null() || last == Some(now) {
            return Ok(());
        }
        manifest["resumed_by"] = now.clone();
        self.folder.write(&Files::new().manifest(&manifest))
    }

    fn last_round(&self) -> u64 {
        self.history.rounds.last().map_or(0, |row| row.round)
    }

    /// Rounds of the whole run after so many; with a budget as many as its used share suggests.
    fn total(&self, done: u64, station: &Station) -> u64 {
        let share = station.budget().map_or(0.0, BudgetState::share);
        if share > 0.0 { (done as f64 / share).ceil() as u64 } else { self.spec.scenario.rounds() }
    }

    /// Takes the state of a checkpoint back. Round, history, cell and base station must agree.
    fn restore(
        &mut self,
        checkpoint: &Checkpoint,
        cell: &mut dyn Persist,
        station: &mut Station,
    ) -> Result<(), RunError> {
        self.history.restore(&checkpoint.state)?;
        let done = checkpoint.round;
        let counted = self.history.rounds.iter().zip(1..).all(|(row, round)| row.round == round);
        if !counted || self.last_round() != done || done > self.spec.last_round() {
            let expected = format!("rounds 1 to {done} of {}", self.spec.last_round());
            return Err(SnapshotError::value("record/rounds", self.last_round(), expected).into());
        }
        for name in ["cell/round", "station/round"] {
            let next = checkpoint.state.u64(name, 1)?[0];
            if next != done + 1 {
                return Err(SnapshotError::value(name, next, done + 1).into());
            }
        }
        cell.restore(&checkpoint.state)?;
        station.restore(&checkpoint.state)?;
        Ok(())
    }

    fn checkpoint(&self, cell: &dyn Persist, station: &Station) -> Checkpoint {
        let mut state = Snapshot::default();
        cell.save(&mut state);
        station.save(&mut state);
        self.history.save(&mut state);
        Checkpoint { identity: self.spec.identity(), round: self.last_round(), state }
    }

    /// The folder appears, complete enough to resume.
    fn begin(
        &mut self,
        environment: &BTreeMap<String, String>,
        cell: &dyn Persist,
        station: &Station,
    ) -> Result<(), RecordError> {
        let files = Files::new()
            .manifest(&self.spec.manifest(environment))
            .scenario(&self.spec.scenario.to_toml())
            .checkpoint(&self.checkpoint(cell, station));
        self.folder.write(&files)
    }

    fn finish(
        mut self,
        cell: &dyn Persist,
        station: &Station,
        evaluation: &Evaluation,
        model: Option<Vec<u8>>,
        timing: &Value,
    ) -> Result<Box<Summary>, RunError> {
        let summary = Summary::of(&self.history, evaluation);
        let files = Files::new()
            .history(&self.history)?
            .model(model)
            .events(&self.history, self.watcher.time().epoch_seconds())
            .timing(timing)
            .checkpoint(&self.checkpoint(cell, station))
            .summary(&summary);
        self.folder.write(&files)?;
        Ok(Box::new(summary))
    }

    fn keep(
        &mut self,
        round: &RoundRecord,
        cell: &dyn Persist,
        station: &Station,
    ) -> Result<ControlFlow<()>, RunError> {
        self.history.push(round);
        let row = self.history.rounds.last().expect("just pushed");
        if let Some(loss) = round.outcome.loss.filter(|loss| !loss.is_finite()) {
            return Err(RunError::Diverged { round: row.round, loss });
        }
        self.watcher.round(row, self.total(row.round, station));
        let stop = self.watcher.asked_to_stop() && row.round < self.spec.last_round();
        if stop || row.round.is_multiple_of(self.spec.checkpoint_every) {
            let files = Files::new().checkpoint(&self.checkpoint(cell, station));
            self.folder.write(&files)?;
        }
        Ok(if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}

impl<C: Persist> Observer<C> for Keeper<'_> {
    fn deciding(&mut self, _seen: &Observation) {
        self.asked_s = self.watcher.time().seconds();
    }

    fn decided(&mut self, _seen: &Observation, _order: &RoundOrder, _station: &Station) {
        self.plan_s.push(self.watcher.time().seconds() - self.asked_s);
    }

    fn completed(&mut self, round: &RoundRecord, cell: &C, station: &Station) -> ControlFlow<()> {
        self.keep(round, cell, station).unwrap_or_else(|error| {
            self.error = Some(error);
            ControlFlow::Break(())
        })
    }
}
