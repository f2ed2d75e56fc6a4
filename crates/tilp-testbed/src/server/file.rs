//! The file that describes a testbed.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tilp::scenario::{Method, Scenario, method};

use crate::description::{Adapters, ClockKind, Description, DescriptionError, Real, TlsFiles};

/// A checked testbed.
#[derive(Clone, Debug)]
pub struct Testbed {
    /// The cell.
    pub scenario: Scenario,
    /// The method.
    pub method: Method,
    /// The seed.
    pub seed: u64,
    /// Which replicate of it.
    pub replicate: u64,
    /// Which clock rules.
    pub clock: ClockKind,
    /// Where everything is kept.
    pub folder: PathBuf,
    /// Where the base station listens.
    pub listen: SocketAddr,
    /// Where `/metrics` and `/healthz` are.
    pub status: Option<SocketAddr>,
    /// Terminals that are processes, rising.
    pub terminals: Vec<u32>,
    /// Whether the evaluator is a process.
    pub evaluator: bool,
    /// A party that is away for longer is lost.
    pub patience: Duration,
    /// Time between heartbeats.
    pub heartbeat: Duration,
    /// A party that is silent for longer is away.
    pub silence: Duration,
    /// Rounds between checkpoints.
    pub checkpoint_every: u64,
    /// Journals survive power failures too.
    pub power_safe: bool,
    /// Control socket of the proxy that the links pass through.
    pub proxy: Option<PathBuf>,
    /// Certificates; none on the loopback interface.
    pub tls: Option<TlsFiles>,
    /// Adapters of the machines.
    pub adapters: Adapters,
}

/// What is wrong with a testbed file.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file itself is wrong.
    #[error(transparent)]
    Description(#[from] DescriptionError),
    /// The scenario or the method is wrong.
    #[error("{path}: {0}", path = .1)]
    Scenario(tilp::scenario::ScenarioError, String),
}

impl Testbed {
    /// Whether a TOML file describes a testbed rather than a scenario.
    pub fn is_testbed(path: &Path) -> bool {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.parse::<toml::Table>().is_ok_and(|table| table.contains_key("testbed"))
    }

    /// Reads and checks a file.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let place = path.display().to_string();
        Self::checked(Description::read(path)?, path, &place)
    }

    fn checked(raw: Description, path: &Path, place: &str) -> Result<Self, FileError> {
        let folder = path.parent().unwrap_or(Path::new("."));
        let beside = |path: &Path| folder.join(path);
        let file = beside(Path::new(&raw.scenario));
        let name = if file.is_file() { file.display().to_string() } else { raw.scenario.clone() };
        let wrong = |error| FileError::Scenario(error, place.to_owned());
        let scenario = Scenario::load(&name, &raw.set).map_err(wrong)?;
        let method = method(&raw.method).map_err(wrong)?;
        let value = |field: &str, value: String, expected: &str| {
            let (path, field) = (place.to_owned(), format!("testbed.{field}"));
            DescriptionError::Value { path, field, value, expected: expected.to_owned() }
        };
        if scenario.note().is_some() {
            let expected = "a scenario with robots, not a profile";
            return Err(value("scenario", raw.scenario, expected).into());
        }
        let terminals = real(&raw.terminals, scenario.n_terminals())
            .map_err(|(found, expected)| value("terminals", found, &expected))?;
        Ok(Self {
            scenario,
            method,
            seed: raw.seed,
            replicate: raw.replicate,
            clock: raw.clock,
            folder: beside(&raw.folder),
            listen: raw.listen,
            status: raw.status,
            terminals,
            evaluator: raw.evaluator,
            patience: Description::duration(raw.patience_s),
            heartbeat: Description::duration(raw.heartbeat_s),
            silence: Description::duration(raw.silence_s),
            checkpoint_every: raw.checkpoint_every,
            power_safe: raw.power_safe,
            proxy: raw.proxy.map(|socket| beside(&socket)),
            tls: raw.tls.map(|tls| TlsFiles {
                server: beside(&tls.server),
                denied: tls.denied.map(|path| beside(&path)),
            }),
            adapters: raw.adapters,
        })
    }

    /// Folder of the run, as `tilp run` leaves one.
    pub fn run_folder(&self) -> PathBuf {
        self.folder.join("run")
    }

    /// File with the private data of a terminal, if it was made here.
    pub fn data_file(&self, terminal: u32) -> PathBuf {
        self.folder.join("data").join(format!("terminal-{terminal}.safetensors"))
    }

    /// Folder where a terminal on this machine keeps its journal.
    pub fn terminal_folder(&self, terminal: u32) -> PathBuf {
        self.folder.join(format!("terminal-{terminal}"))
    }
}

fn real(real: &Real, n: usize) -> Result<Vec<u32>, (String, String)> {
    match real {
        Real::Word(word) if word == "all" => Ok((0..n as u32).collect()),
        Real::Word(word) if word == "none" => Ok(Vec::new()),
        Real::Word(word) => Err((format!("{word:?}"), "\"all\", \"none\" or a list of ids".into())),
        Real::Some(ids) => {
            let mut sorted = ids.clone();
            sorted.sort_unstable();
            sorted.dedup();
            if sorted.len() != ids.len() || sorted.iter().any(|id| *id as usize >= n) {
                let expected = format!("different ids from 0 to {}", n.saturating_sub(1));
                return Err((format!("{ids:?}"), expected));
            }
            Ok(sorted)
        }
    }
}
