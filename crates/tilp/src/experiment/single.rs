//! One run: one method, one scenario, one seed, one folder.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use super::keeper::{Keeper, Saved};
use crate::allocate::Clock;
use crate::record::{Evaluation, Identity, ProcessEvent, RecordError, RunFolder, Summary, format};
use crate::round::CellError;
use crate::run::{LoopError, Observer, Stop, run};
use crate::scenario::{Cache, Method, Parts, Scenario, ScenarioError, assemble_with_clock};
use crate::snapshot::SnapshotError;
use crate::tasks::tabletop::Engine;
use crate::world::Laboratory;

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

/// A clock. The library has none of its own: the caller lends it one.
pub trait Time: Sync {
    /// Wall time in seconds since some fixed moment.
    fn seconds(&self) -> f64;
    /// Wall time in seconds since 1970.
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
            method: self.method.name.to_owned(),
            seed: self.seed,
            scenario: self.scenario.hash(),
        }
    }

    pub(super) fn manifest(&self, environment: &BTreeMap<String, String>) -> Value {
        let mut manifest = json!({
            "format": format::RUN_FOLDER,
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

/// Runs into a new folder, or goes on in one that holds a checkpoint. No other process may write
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
    let parts = {
        let watching = Mutex::new(&mut *observer);
        let progress = |done, total| {
            let mut watching = watching.lock().unwrap_or_else(PoisonError::into_inner);
            watching.process(&ProcessEvent::Demonstrations { done, total });
        };
        let (scenario, clock) = (&spec.scenario, time.clock());
        assemble_with_clock(scenario, spec.method, spec.seed, clock, cache, &progress)?
    };
    let (mut keeper, parts) = begin(spec, folder, saved, parts, time, observer)?;
    let ended = conduct(spec, parts, &mut keeper, [start, time.seconds()]);
    if let Err(error) = &ended {
        keeper.failed(&error.to_string());
    }
    ended
}

/// Makes the folder of a new run appear, or takes up what was saved.
fn begin<'a>(
    spec: &'a RunSpec,
    folder: RunFolder,
    saved: Option<Saved>,
    mut parts: Parts,
    time: &'a dyn Time,
    observer: &'a mut dyn Observer,
) -> Result<(Keeper<'a>, Parts), RunError> {
    let Parts { cell, station, laboratory, environment, .. } = &mut parts;
    let keeper = match saved {
        Some(saved) => saved.resume(spec, folder, cell, station, time, observer)?,
        None => {
            let base = laboratory.report_success(cell)?;
            let manifest = spec.manifest(environment);
            let (stream, state) = Keeper::start(spec, &task_names(laboratory), &base, cell, station)?;
            Keeper::begin(spec, folder, &manifest, stream, &state, time, observer)?
        }
    };
    Ok((keeper, parts))
}

/// Runs round by round, from checkpoint to checkpoint, then evaluates the policy.
fn conduct(
    spec: &RunSpec,
    parts: Parts,
    keeper: &mut Keeper<'_>,
    [start, set_up]: [f64; 2],
) -> Result<Ended, RunError> {
    let Parts { mut cell, mut station, mut evaluator, mut laboratory, .. } = parts;
    let last = spec.scenario.rounds();
    while keeper.last_round() < last {
        let every = spec.checkpoint_every.max(1);
        let until = (keeper.last_round() / every + 1).saturating_mul(every).min(last);
        let stop = run(&mut cell, &mut station, &mut evaluator, &mut laboratory, until, keeper);
        keeper.check()?;
        let stop = stop?;
        keeper.checkpoint(&cell, &station)?;
        if stop == Stop::Asked && keeper.last_round() < last {
            return Ok(keeper.interrupted());
        }
    }
    let trained = keeper.seconds();
    let evaluation = Evaluation {
        base: keeper.base_success(),
        terminals: laboratory.final_success(&mut cell)?,
        task_names: task_names(&laboratory),
    };
    let mut timing = keeper.plan_times();
    timing["set_up_s"] = json!(set_up - start);
    timing["rounds_s"] = json!(trained - set_up);
    timing["final_evaluation_s"] = json!(keeper.seconds() - trained);
    let model = laboratory.deployed(&mut cell)?;
    let model = laboratory.policy().to_safetensors(&model);
    let model = model.expect("weights of a policy have its shape");
    keeper.finish(&evaluation, model, &timing).map(Ended::Finished)
}

fn task_names(laboratory: &Laboratory) -> Vec<String> {
    laboratory.fleet().suite.tasks.iter().map(|&name| name.to_owned()).collect()
}
