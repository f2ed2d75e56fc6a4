//! One run: one method, one scenario, one seed, one folder.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

use serde_json::{Value, json};

use crate::allocate::Clock;
use crate::record::{
    Checkpoint, Evaluation, Files, History, Identity, RecordError, RoundRow, RunFolder, Summary,
};
use crate::round::{
    Allocator, Conduct, Confidant, Decision, Feasible, Observation, Outcome, SuccessCount, World,
};
use crate::run::{Recorder, RoundRecord, Stop, run};
use crate::scenario::{Cache, Method, Parts, Scenario, ScenarioError, assemble_with_clock};
use crate::snapshot::{Persist, Snapshot, SnapshotError};
use crate::tasks::tabletop::Engine;
use crate::world::Cell;

/// What is run.
#[derive(Clone, Debug)]
pub struct RunSpec {
    /// The scenario.
    pub scenario: Scenario,
    /// The method.
    pub method: Method,
    /// The seed.
    pub seed: u64,
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
    /// A method decided on something that is no number.
    #[error(
        "round {round}: the method decided on a {what} of {value} for terminal {terminal}, \
         expected a finite number"
    )]
    Decided {
        /// The round.
        round: u64,
        /// The terminal.
        terminal: usize,
        /// What was decided.
        what: &'static str,
        /// On what.
        value: f64,
    },
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

impl RunSpec {
    /// What a checkpoint must agree with.
    pub fn identity(&self) -> Identity {
        Identity {
            method: self.method.name.to_owned(),
            seed: self.seed,
            scenario: self.scenario.hash(),
        }
    }

    fn manifest(&self, environment: &BTreeMap<String, String>) -> Value {
        let mut manifest = json!({
            "method": self.method.name,
            "seed": self.seed,
            "scenario": self.scenario.name(),
            "scenario_version": self.scenario.version(),
            "scenario_hash": self.scenario.hash(),
        });
        if let (Some(fields), Value::Object(about)) = (manifest.as_object_mut(), &self.about) {
            fields.extend(about.clone());
            if !environment.is_empty() {
                fields.insert("environment".into(), json!(environment));
            }
        }
        // A library that is found when the program starts is a part that no build can know.
        let engine = Engine::from_name(self.scenario.engine());
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
    let parts = assemble_with_clock(scenario, spec.method, spec.seed, clock, cache, &progress)?;
    let Parts { mut world, mut allocator, limits, environment } = parts;
    let base = world.fleet.report(0, &world.engine.virtual_mean(), world.engine.model());
    let mut keeper = Keeper::new(spec, folder, watcher);
    match checkpoint {
        Some(checkpoint) => {
            world.restore(&checkpoint.state)?;
            allocator.restore(&checkpoint.state)?;
            keeper.history.restore(&checkpoint.state)?;
            keeper.go_on()?;
        }
        None => keeper.begin(&environment, &world, &*allocator)?,
    }
    let set_up = watcher.time().seconds();
    let mut timed = Timed { inner: &mut *allocator, watcher, plan_s: RefCell::default() };
    let stop = run(&mut world, &mut timed, &limits, spec.scenario.rounds(), &mut keeper);
    if let Some(error) = keeper.error.take() {
        return Err(error);
    }
    match stop {
        Stop::Finished => {}
        Stop::Asked => return Ok(Ended::Interrupted(keeper.last_round())),
        Stop::NotANumber { round, terminal, what, value } => {
            return Err(RunError::Decided { round, terminal, what, value });
        }
    }
    let plan_s = timed.plan_s.take();
    let trained = watcher.time().seconds();
    let evaluation = evaluation(&world, base);
    let timing = json!({
        "set_up_s": set_up - start,
        "rounds_s": trained - set_up,
        "final_evaluation_s": watcher.time().seconds() - trained,
        "plan_ms_mean": mean_ms(&plan_s),
        "plan_ms_p99": p99_ms(plan_s),
    });
    keeper.finish(&world, &*allocator, &evaluation, &timing).map(Ended::Finished)
}

/// Success on the final episodes.
fn evaluation(world: &Cell, base: Option<Vec<SuccessCount>>) -> Evaluation {
    let model = world.engine.virtual_mean();
    let total = |counts: Vec<SuccessCount>| {
        counts.into_iter().fold(SuccessCount::default(), SuccessCount::plus)
    };
    Evaluation {
        base: base.map(total),
        terminals: world.fleet.final_success(&model, world.engine.model()),
        task_names: world.fleet.suite.tasks.iter().map(|&name| name.to_owned()).collect(),
    }
}

fn mean_ms(plan_s: &[f64]) -> f64 {
    1e3 * plan_s.iter().sum::<f64>() / plan_s.len().max(1) as f64
}

fn p99_ms(mut plan_s: Vec<f64>) -> f64 {
    plan_s.sort_by(f64::total_cmp);
    let index = (plan_s.len() * 99 / 100).min(plan_s.len().saturating_sub(1));
    1e3 * plan_s.get(index).copied().unwrap_or(0.0)
}

/// An allocator on a stop-watch.
struct Timed<'a> {
    inner: &'a mut dyn Allocator,
    watcher: &'a dyn Watcher,
    plan_s: RefCell<Vec<f64>>,
}

impl Persist for Timed<'_> {
    fn save(&self, snapshot: &mut Snapshot) {
        self.inner.save(snapshot);
    }
}

impl Allocator for Timed<'_> {
    fn decide(&mut self, seen: &Observation) -> Decision {
        let before = self.watcher.time().seconds();
        let decision = self.inner.decide(seen);
        self.plan_s.borrow_mut().push(self.watcher.time().seconds() - before);
        decision
    }

    fn conduct(&self) -> Conduct {
        self.inner.conduct()
    }

    fn learn(&mut self, seen: &Observation, plan: &Feasible, outcome: &Outcome) {
        self.inner.learn(seen, plan, outcome);
    }

    fn confidant(&mut self) -> Option<&mut dyn Confidant> {
        self.inner.confidant()
    }
}

/// Keeps the books of a run and its checkpoints.
struct Keeper<'a> {
    spec: &'a RunSpec,
    folder: RunFolder,
    history: History,
    watcher: &'a dyn Watcher,
    error: Option<RunError>,
}

impl<'a> Keeper<'a> {
    fn new(spec: &'a RunSpec, folder: RunFolder, watcher: &'a dyn Watcher) -> Self {
        Self { spec, folder, history: History::default(), watcher, error: None }
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

    fn checkpoint(&self, world: &dyn World, allocator: &dyn Allocator) -> Checkpoint {
        let mut state = Snapshot::default();
        world.save(&mut state);
        allocator.save(&mut state);
        self.history.save(&mut state);
        Checkpoint { identity: self.spec.identity(), round: self.last_round(), state }
    }

    /// The folder appears, complete enough to resume.
    fn begin(
        &mut self,
        environment: &BTreeMap<String, String>,
        world: &dyn World,
        allocator: &dyn Allocator,
    ) -> Result<(), RecordError> {
        let files = Files::new()
            .manifest(&self.spec.manifest(environment))
            .scenario(&self.spec.scenario.to_toml())
            .checkpoint(&self.checkpoint(world, allocator));
        self.folder.write(&files)
    }

    fn finish(
        mut self,
        world: &Cell,
        allocator: &dyn Allocator,
        evaluation: &Evaluation,
        timing: &Value,
    ) -> Result<Box<Summary>, RunError> {
        let summary = Summary::of(&self.history, evaluation);
        let model = world.engine.model().to_safetensors(&world.engine.virtual_mean());
        let files = Files::new()
            .history(&self.history)?
            .model(model.expect("weights of a policy have its shape"))
            .events(&self.history, self.watcher.time().epoch_seconds())
            .timing(timing)
            .checkpoint(&self.checkpoint(world, allocator))
            .summary(&summary);
        self.folder.write(&files)?;
        Ok(Box::new(summary))
    }

    fn keep(
        &mut self,
        round: &RoundRecord,
        world: &dyn World,
        allocator: &dyn Allocator,
    ) -> Result<ControlFlow<()>, RunError> {
        self.history.push(round);
        let row = self.history.rounds.last().expect("just pushed");
        if let Some(loss) = round.done.outcome.loss.filter(|loss| !loss.is_finite()) {
            return Err(RunError::Diverged { round: row.round, loss });
        }
        let total = self.spec.scenario.rounds();
        self.watcher.round(row, total);
        let stop = self.watcher.asked_to_stop() && row.round < total;
        if stop || row.round.is_multiple_of(self.spec.checkpoint_every) {
            let files = Files::new().checkpoint(&self.checkpoint(world, allocator));
            self.folder.write(&files)?;
        }
        Ok(if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}

impl Recorder for Keeper<'_> {
    fn record(
        &mut self,
        round: RoundRecord,
        world: &dyn World,
        allocator: &dyn Allocator,
    ) -> ControlFlow<()> {
        self.keep(&round, world, allocator).unwrap_or_else(|error| {
            self.error = Some(error);
            ControlFlow::Break(())
        })
    }
}
