//! One run as the base station of a testbed.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use prost::Message;
use serde_json::Value;
use tilp::experiment::{Ended, PLANNER_STATES, RunError, RunSpec, Time, run_parts};
use tilp::record::{Event, ProcessEvent, RecordError, RunFolder};
use tilp::round::TerminalId;
use tilp::run::Observer;
use tilp::scenario::{Cache, Parts, ScenarioError};
use tilp::world::Laboratory;

use super::data::assembled;
use super::{ClockKind, RemoteEvaluator, RemoteHalves, Testbed, serve_status};
use crate::contract::v1::Evaluation;
use crate::contract::{MOST_BYTES, TerminalModel};
use crate::hold::hold;
use crate::session::Pace;
use crate::station::{FileLog, Greeting, Hub, Log, Party, Settings};
use crate::terminal::DataError;
use crate::transport::{Doors, Listening, MonotonicClock, Security, listen};

/// Why a base station cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The scenario cannot be put together.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The run failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The run folder cannot be used.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Data of a terminal cannot be written.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A file or folder cannot be used.
    #[error("{}: {}", .0.display(), .1)]
    Io(PathBuf, io::Error),
    /// The network cannot be used.
    #[error("{0}: {1}")]
    Network(SocketAddr, io::Error),
    /// Threads cannot be started.
    #[error("threads: {0}")]
    Threads(String),
    /// A profile scenario has no policy that terminals could train.
    #[error("the scenario has no robots, expected one whose terminals train a policy")]
    NoRobots,
}

/// A running base station, for its caller.
pub struct Running {
    /// Where terminals dial.
    pub listen: SocketAddr,
    /// Where status pages are.
    pub status: Option<SocketAddr>,
    /// Seats.
    pub hub: Arc<Hub>,
    /// The service; it ends when this is dropped.
    _listening: Listening,
}

/// Inputs of serving other than the testbed.
pub struct Surroundings<'a> {
    /// Versions and host, for the manifest.
    pub about: Value,
    /// Demonstrations.
    pub cache: Option<&'a Cache>,
    /// The clock of the record.
    pub time: &'a dyn Time,
    /// How connections are secured.
    pub security: Security,
}

/// Serves a testbed to its end. `started` is called when terminals can connect.
pub fn serve(
    testbed: &Testbed,
    around: Surroundings<'_>,
    observer: &mut dyn Observer,
    started: impl FnOnce(&Running),
) -> Result<Ended, ServeError> {
    std::fs::create_dir_all(&testbed.folder)
        .map_err(|error| ServeError::Io(testbed.folder.clone(), error))?;
    let parts = assembled(testbed, around.time.clock(), around.cache, &|_, _| {})?;
    let resume = testbed.run_folder().join("manifest.json").exists();
    let run = run_name(testbed, resume)?;
    let journal = testbed.folder.join("server.journal");
    let unusable = |error| ServeError::Io(journal.clone(), error);
    let mut log = FileLog::open(&journal, testbed.power_safe).map_err(unusable)?;
    if testbed.clock == ClockKind::Wall {
        log.clear().map_err(unusable)?; // real rounds cannot be computed again
    }
    let settings = Settings {
        pace: Pace { heartbeat: testbed.heartbeat, silence: testbed.silence },
        most_bytes: MOST_BYTES,
        patience: testbed.patience,
        goes_on: testbed.clock == ClockKind::Wall,
    };
    let greeting = Greeting { run, work: work(testbed, &parts) };
    let clock = Arc::new(MonotonicClock::start());
    let hub = Arc::new(Hub::new(settings, clock, greeting, Box::new(log)));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| ServeError::Threads(error.to_string()))?;
    let running = runtime.block_on(open(testbed, around.security, hub.clone()))?;
    started(&running);
    if testbed.clock == ClockKind::Wall {
        // Rounds are real: they begin when the terminals are there.
        hub.wait_for_all();
    }
    let ended = conduct(testbed, around.about, around.time, parts, &hub, resume, observer);
    let (reason, finished) = match &ended {
        Ok(Ended::Finished(_)) => ("the run is complete", true),
        Ok(Ended::Interrupted(_)) => ("the base station stops", false),
        Err(_) => ("the run failed", false),
    };
    hub.goodbye(reason, finished);
    // The last messages must still be sent.
    runtime.block_on(async { tokio::time::sleep(Duration::from_millis(200)).await });
    runtime.shutdown_timeout(Duration::from_millis(200));
    ended
}

async fn open(testbed: &Testbed, security: Security, hub: Arc<Hub>) -> Result<Running, ServeError> {
    let network = |address: SocketAddr| move |error| ServeError::Network(address, error);
    let listening = listen(hub.clone(), testbed.listen, security, Doors::default())
        .await
        .map_err(network(testbed.listen))?;
    let status = match testbed.status {
        None => None,
        Some(address) => Some(serve_status(hub.clone(), address).await.map_err(network(address))?),
    };
    Ok(Running { listen: listening.address, status, hub, _listening: listening })
}

fn conduct(
    testbed: &Testbed,
    about: Value,
    time: &dyn Time,
    parts: Parts,
    hub: &Arc<Hub>,
    resume: bool,
    observer: &mut dyn Observer,
) -> Result<Ended, ServeError> {
    let spec = RunSpec {
        scenario: testbed.scenario.clone(),
        method: testbed.method.clone(),
        seed: testbed.seed,
        replicate: testbed.replicate,
        checkpoint_every: testbed.checkpoint_every,
        planner_states: PLANNER_STATES,
        about,
    };
    let path = testbed.run_folder();
    let folder = if resume { RunFolder::open(&path)? } else { RunFolder::create(&path)? };
    let parts = remote(testbed, parts, hub)?;
    let mut watcher = Watcher { hub, observer };
    Ok(run_parts(&spec, folder, resume, parts, time, &mut watcher)?)
}

/// The same parts with processes in the place of terminals and evaluator.
fn remote(
    testbed: &Testbed,
    parts: Parts,
    hub: &Arc<Hub>,
) -> Result<Parts<RemoteHalves, tilp::world::Robots, RemoteEvaluator>, ServeError> {
    let Parts { cell, station, evaluator, laboratory, environment, declared } = parts;
    let real: BTreeSet<TerminalId> = testbed.terminals.iter().copied().map(TerminalId).collect();
    let has_wall_clock = testbed.clock == ClockKind::Wall;
    let cell = cell
        .map_learner(|halves| RemoteHalves::new(halves, hub.clone(), real, has_wall_clock))
        .map_err(|error| ServeError::Threads(error.to_string()))?;
    let proxy = testbed.proxy.clone();
    let cell = cell.map_learner(|halves| Ok::<_, ServeError>(halves.behind(proxy)))?;
    let evaluator = match testbed.evaluator {
        true => RemoteEvaluator::There(evaluator, hub.clone()),
        false => RemoteEvaluator::Here(evaluator),
    };
    let laboratory = Laboratory::with(laboratory.into_examiner());
    Ok(Parts { cell, station, evaluator, laboratory, environment, declared })
}

/// What each party works on.
fn work(testbed: &Testbed, parts: &Parts) -> BTreeMap<Party, Arc<Vec<u8>>> {
    let engine = parts.cell.engine();
    let settings = engine.settings();
    let model = TerminalModel {
        policy: Arc::new(engine.model().clone()),
        seed: settings.seed,
        minibatches: settings.minibatches,
        start: engine.server().weights().clone(),
    };
    let training = Arc::new(model.to_message().encode_to_vec());
    let terminals = testbed.terminals.iter();
    let mut work: BTreeMap<Party, Arc<Vec<u8>>> =
        terminals.map(|id| (Party::Terminal(*id), training.clone())).collect();
    if testbed.evaluator {
        let evaluation = Evaluation {
            scenario: testbed.scenario.to_toml(),
            seed: testbed.seed,
            replicate: testbed.replicate,
        };
        work.insert(Party::Evaluator, Arc::new(evaluation.encode_to_vec()));
    }
    work
}

/// The name of the run. A new run has a new name, so that old journals are void.
fn run_name(testbed: &Testbed, resume: bool) -> Result<String, ServeError> {
    let path = testbed.folder.join("run-name");
    let failed = |error| ServeError::Io(path.clone(), error);
    if resume {
        return std::fs::read_to_string(&path).map_err(failed);
    }
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let moment = since.map_or(0, |since| since.as_nanos());
    let name = format!("{}-{}-{moment}", testbed.scenario.name(), std::process::id());
    let fresh = path.with_extension("new");
    std::fs::write(&fresh, &name).map_err(failed)?;
    // The journal belongs to the old name: it goes first.
    let journal = testbed.folder.join("server.journal");
    match std::fs::remove_file(&journal) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(ServeError::Io(journal, error));
        }
        _ => {}
    }
    std::fs::rename(&fresh, &path).map_err(failed)?;
    Ok(name)
}

/// Informs the hub about checkpoints and stops.
struct Watcher<'a> {
    hub: &'a Hub,
    observer: &'a mut dyn Observer,
}

impl Observer for Watcher<'_> {
    fn event(&mut self, event: &Event) {
        self.observer.event(event);
    }

    fn process(&mut self, event: &ProcessEvent<'_>) {
        if let ProcessEvent::Deciding { .. } = event {
            hold(|| "deciding".into());
        }
        if let ProcessEvent::Checkpointed { round } = event {
            // A journal that is too long is read past; only space is lost.
            if let Err(error) = self.hub.checkpointed() {
                tracing::error!(round, %error, "the journal cannot be cleared");
            }
        }
        self.observer.process(event);
    }

    fn completed(&mut self, round: u64) {
        self.observer.completed(round);
    }

    fn asked_to_stop(&self) -> bool {
        self.observer.asked_to_stop()
    }
}
