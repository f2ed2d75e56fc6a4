//! The file that describes a testbed.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use tilp::scenario::{Method, Scenario, method};

/// Which clock rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClockKind {
    /// Time is simulated, as in `tilp run`.
    Virtual,
    /// Time is that of the machines.
    Wall,
}

/// Folders with `ca.pem`, `cert.pem` and `key.pem`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsFiles {
    /// Folder of the server.
    pub server: PathBuf,
    /// List of revoked certificates.
    pub denied: Option<PathBuf>,
}

/// Which terminals are processes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
enum Real {
    Some(Vec<u32>),
    Word(String),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    testbed: RawTestbed,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTestbed {
    scenario: String,
    #[serde(default)]
    set: Vec<String>,
    method: String,
    seed: u64,
    #[serde(default)]
    replicate: u64,
    clock: ClockKind,
    folder: PathBuf,
    listen: SocketAddr,
    status: Option<SocketAddr>,
    terminals: Real,
    evaluator: bool,
    #[serde(default = "patience")]
    patience_s: f64,
    #[serde(default = "heartbeat")]
    heartbeat_s: f64,
    #[serde(default = "silence")]
    silence_s: f64,
    #[serde(default = "checkpoint_every")]
    checkpoint_every: u64,
    #[serde(default)]
    power_safe: bool,
    tls: Option<TlsFiles>,
}

fn patience() -> f64 {
    60.0
}

fn heartbeat() -> f64 {
    2.0
}

fn silence() -> f64 {
    15.0
}

fn checkpoint_every() -> u64 {
    25
}

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
    /// Certificates; none on the loopback interface.
    pub tls: Option<TlsFiles>,
}

/// What is wrong with a testbed file.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("{path}: {reason}")]
    Unreadable {
        /// The file.
        path: String,
        /// Why.
        reason: String,
    },
    /// A value that cannot be.
    #[error("{path}: testbed.{field} = {value}, expected {expected}")]
    Value {
        /// The file.
        path: String,
        /// The field.
        field: &'static str,
        /// Its value.
        value: String,
        /// What would be right.
        expected: String,
    },
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
        let unreadable = |reason: String| FileError::Unreadable { path: place.clone(), reason };
        let text = std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
        let raw: Raw = toml::from_str(&text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start).min(text.len());
            let line = text.as_bytes()[..start].iter().filter(|byte| **byte == b'\n').count() + 1;
            unreadable(format!("line {line}: {}", error.message().replace('\n', " ")))
        })?;
        Self::checked(raw.testbed, path, &place)
    }

    fn checked(raw: RawTestbed, path: &Path, place: &str) -> Result<Self, FileError> {
        let folder = path.parent().unwrap_or(Path::new("."));
        let beside = |path: &Path| folder.join(path);
        let file = beside(Path::new(&raw.scenario));
        let name = if file.is_file() { file.display().to_string() } else { raw.scenario.clone() };
        let wrong = |error| FileError::Scenario(error, place.to_owned());
        let scenario = Scenario::load(&name, &raw.set).map_err(wrong)?;
        let method = method(&raw.method).map_err(wrong)?;
        let value = |field, value: String, expected: &str| FileError::Value {
            path: place.to_owned(),
            field,
            value,
            expected: expected.to_owned(),
        };
        if scenario.note().is_some() {
            return Err(value("scenario", raw.scenario, "a scenario with robots, not a profile"));
        }
        let terminals = real(&raw.terminals, scenario.n_terminals())
            .map_err(|(found, expected)| value("terminals", found, &expected))?;
        let seconds = |field, found: f64| match found {
            found if (0.1..=86400.0).contains(&found) => Ok(Duration::from_secs_f64(found)),
            found => Err(value(field, found.to_string(), "0.1 to 86400")),
        };
        if raw.silence_s < 2.0 * raw.heartbeat_s {
            let expected = "at least twice testbed.heartbeat_s";
            return Err(value("silence_s", raw.silence_s.to_string(), expected));
        }
        if raw.checkpoint_every == 0 {
            return Err(value("checkpoint_every", "0".into(), "at least 1"));
        }
        if raw.tls.is_none() && !raw.listen.ip().is_loopback() {
            let expected = "a loopback address, or certificates in [testbed.tls]";
            return Err(value("listen", raw.listen.to_string(), expected));
        }
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
            patience: seconds("patience_s", raw.patience_s)?,
            heartbeat: seconds("heartbeat_s", raw.heartbeat_s)?,
            silence: seconds("silence_s", raw.silence_s)?,
            checkpoint_every: raw.checkpoint_every,
            power_safe: raw.power_safe,
            tls: raw.tls.map(|tls| TlsFiles {
                server: beside(&tls.server),
                denied: tls.denied.map(|path| beside(&path)),
            }),
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
