//! The file that describes a testbed, before its scenario is read, and the adapters of a machine.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::adapters::Program;

/// Largest file that is read.
const MOST_BYTES: u64 = 1 << 20;

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
pub enum Real {
    /// These.
    Some(Vec<u32>),
    /// `all` or `none`.
    Word(String),
}

/// Programs between a machine and its equipment. `{terminal}` in an argument stands for the id of
/// the terminal.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Adapters {
    /// Measures the channel.
    pub probe: Option<Program>,
    /// Applies band and power.
    pub actuator: Option<Program>,
    /// Measures energy.
    pub meter: Option<Program>,
    /// Runs episodes; for the evaluator.
    pub robot: Option<Program>,
}

/// A file with adapters. A testbed's file is one, too.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AdapterFile {
    #[serde(default)]
    adapters: Adapters,
    #[serde(default, rename = "testbed")]
    _testbed: Option<toml::Table>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    testbed: Description,
    #[serde(default)]
    adapters: Adapters,
}

/// The keys of a testbed.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// Name or file of the scenario.
    pub scenario: String,
    /// Overrides of the scenario.
    #[serde(default)]
    pub set: Vec<String>,
    /// Name of the method.
    pub method: String,
    /// The seed.
    pub seed: u64,
    /// Which replicate of it.
    #[serde(default)]
    pub replicate: u64,
    /// Which clock rules.
    pub clock: ClockKind,
    /// Where everything is kept.
    pub folder: PathBuf,
    /// Where the base station listens.
    pub listen: SocketAddr,
    /// Where `/metrics` and `/healthz` are.
    pub status: Option<SocketAddr>,
    /// Which terminals are processes.
    pub terminals: Real,
    /// Whether the evaluator is a process.
    pub evaluator: bool,
    /// Seconds; a party that is away for longer is lost.
    #[serde(default = "patience")]
    pub patience_s: f64,
    /// Seconds between heartbeats.
    #[serde(default = "heartbeat")]
    pub heartbeat_s: f64,
    /// Seconds; a party that is silent for longer is away.
    #[serde(default = "silence")]
    pub silence_s: f64,
    /// Rounds between checkpoints.
    #[serde(default = "checkpoint_every")]
    pub checkpoint_every: u64,
    /// Journals survive power failures too.
    #[serde(default)]
    pub power_safe: bool,
    /// Control socket of the proxy that the links pass through.
    pub proxy: Option<PathBuf>,
    /// Certificates; none on the loopback interface.
    pub tls: Option<TlsFiles>,
    /// Adapters of the machines.
    #[serde(skip)]
    pub adapters: Adapters,
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

/// What is wrong with a description.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DescriptionError {
    /// It cannot be read.
    #[error("{path}: {reason}")]
    Unreadable {
        /// The file.
        path: String,
        /// Why.
        reason: String,
    },
    /// A value that cannot be.
    #[error("{path}: {field} = {value}, expected {expected}")]
    Value {
        /// The file.
        path: String,
        /// The field.
        field: String,
        /// Its value.
        value: String,
        /// What would be right.
        expected: String,
    },
}

/// The text of a file of sensible size.
fn text(path: &Path) -> Result<String, DescriptionError> {
    use std::io::Read;
    let place = path.display().to_string();
    let unreadable = |reason| DescriptionError::Unreadable { path: place.clone(), reason };
    let file = std::fs::File::open(path).map_err(|error| unreadable(error.to_string()))?;
    let mut text = String::new();
    let read = file.take(MOST_BYTES + 1).read_to_string(&mut text);
    read.map_err(|error| unreadable(error.to_string()))?;
    if text.len() as u64 > MOST_BYTES {
        return Err(unreadable(format!("more than {MOST_BYTES} bytes")));
    }
    Ok(text)
}

fn from_toml<T: DeserializeOwned>(text: &str, place: &str) -> Result<T, DescriptionError> {
    toml::from_str(text).map_err(|error: toml::de::Error| {
        let start = error.span().map_or(0, |span| span.start).min(text.len());
        let line = text.as_bytes()[..start].iter().filter(|byte| **byte == b'\n').count() + 1;
        let reason = format!("line {line}: {}", error.message().replace('\n', " "));
        DescriptionError::Unreadable { path: place.to_owned(), reason }
    })
}

impl Description {
    /// Reads and checks a file.
    pub fn read(path: &Path) -> Result<Self, DescriptionError> {
        Self::parse(&text(path)?, &path.display().to_string())
    }

    /// Reads and checks the text of a file.
    pub fn parse(text: &str, place: &str) -> Result<Self, DescriptionError> {
        let Raw { testbed, adapters } = from_toml(text, place)?;
        let description = Self { adapters, ..testbed };
        description.check(place)?;
        Ok(description)
    }

    fn check(&self, place: &str) -> Result<(), DescriptionError> {
        let value = |field: &str, value: String, expected: &str| {
            let (path, field) = (place.to_owned(), format!("testbed.{field}"));
            Err(DescriptionError::Value { path, field, value, expected: expected.to_owned() })
        };
        let times = [
            ("patience_s", self.patience_s),
            ("heartbeat_s", self.heartbeat_s),
            ("silence_s", self.silence_s),
        ];
        for (field, found) in times {
            if !(0.1..=86400.0).contains(&found) {
                return value(field, found.to_string(), "0.1 to 86400");
            }
        }
        if self.silence_s < 2.0 * self.heartbeat_s {
            let expected = "at least twice testbed.heartbeat_s";
            return value("silence_s", self.silence_s.to_string(), expected);
        }
        if self.checkpoint_every == 0 {
            return value("checkpoint_every", "0".into(), "at least 1");
        }
        if self.tls.is_none() && !self.listen.ip().is_loopback() {
            let expected = "a loopback address, or certificates in [testbed.tls]";
            return value("listen", self.listen.to_string(), expected);
        }
        if let (Some(socket), ClockKind::Virtual) = (&self.proxy, self.clock) {
            let expected = "no proxy under the virtual clock, which has no real rates";
            return value("proxy", format!("{:?}", socket.display().to_string()), expected);
        }
        self.adapters.check(place)
    }

    /// Seconds as a duration; they were checked.
    pub fn duration(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }
}

impl Adapters {
    /// Reads the table `[adapters]` of a file: a testbed's, or one of its own.
    pub fn read(path: &Path) -> Result<Self, DescriptionError> {
        let place = path.display().to_string();
        let AdapterFile { adapters, .. } = from_toml(&text(path)?, &place)?;
        adapters.check(&place)?;
        Ok(adapters)
    }

    fn check(&self, place: &str) -> Result<(), DescriptionError> {
        let Self { probe, actuator, meter, robot } = self;
        let all = [("probe", probe), ("actuator", actuator), ("meter", meter), ("robot", robot)];
        for (name, program) in all {
            let Some(program) = program else { continue };
            let value = |field: &str, value: String, expected: &str| {
                let (path, field) = (place.to_owned(), format!("adapters.{name}.{field}"));
                Err(DescriptionError::Value { path, field, value, expected: expected.to_owned() })
            };
            if program.command.first().is_none_or(String::is_empty) {
                return value("command", "[]".into(), "a program and its arguments");
            }
            if !(0.001..=86_400.0).contains(&program.timeout_s) {
                return value("timeout_s", program.timeout_s.to_string(), "0.001 to 86400");
            }
        }
        Ok(())
    }
}

/// The program for one terminal: `{terminal}` in its arguments becomes the id.
pub fn program_of(program: &Program, terminal: u32) -> Program {
    let id = terminal.to_string();
    let command = program.command.iter().map(|word| word.replace("{terminal}", &id)).collect();
    Program { command, timeout_s: program.timeout_s }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOUND: &str = "[testbed]\nscenario = \"tiny\"\nmethod = \"tilp\"\nseed = 0\n\
        clock = \"wall\"\nfolder = \"bed\"\nlisten = \"127.0.0.1:0\"\nterminals = [0, 5]\n\
        evaluator = true\nproxy = \"proxy.sock\"\n\n[adapters]\n\
        meter = { command = [\"meter\", \"--for={terminal}\"], timeout_s = 2 }\n";

    #[test]
    fn adapters_are_part_of_a_description_and_are_made_for_a_terminal() {
        let description = Description::parse(SOUND, "bed.toml").unwrap();
        assert_eq!(description.proxy, Some("proxy.sock".into()));
        let meter = program_of(&description.adapters.meter.unwrap(), 3);
        assert_eq!(meter.command, ["meter", "--for=3"]);
        assert_eq!(meter.timeout_s, 2.0);
        let alone: AdapterFile = from_toml(SOUND, "bed.toml").unwrap();
        assert!(alone.adapters.meter.is_some() && alone.adapters.probe.is_none());
    }

    #[test]
    fn what_is_wrong_is_named_in_one_line() {
        for (from, to, expected) in [
            ("\"wall\"", "\"virtual\"", "testbed.proxy = \"proxy.sock\", expected no proxy under"),
            ("timeout_s = 2", "timeout_s = 0", "adapters.meter.timeout_s = 0, expected 0.001"),
            ("[\"meter\", \"--for={terminal}\"]", "[]", "adapters.meter.command = []"),
            ("meter =", "metre =", "unknown field `metre`"),
            ("seed = 0", "seed = 0\nheartbeat_s = nan", "testbed.heartbeat_s = NaN"),
            ("seed = 0", "seed = 0\nsilence_s = 3", "testbed.silence_s = 3, expected at least"),
        ] {
            assert!(SOUND.contains(from));
            let error = Description::parse(&SOUND.replace(from, to), "bed.toml").unwrap_err();
            let said = error.to_string();
            assert!(said.starts_with("bed.toml: ") && said.contains(expected), "{said}");
            assert_eq!(said.lines().count(), 1);
        }
    }
}
