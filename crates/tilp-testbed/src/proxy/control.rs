//! The control channel of a proxy: JSON lines over a Unix socket that only its owner may use.
//!
//! One line asks, one line answers. `docs/reference/adapters.md` describes both.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Largest line.
pub const MAX_LINE_BYTES: usize = 4096;
/// Version of the lines.
const VERSION: u32 = 1;
/// Most band, power and round that a command may ask for.
const MAX_HERTZ: f64 = 1e12;
const MAX_WATTS: f64 = 1e4;
/// How long a client waits for an answer.
const ANSWER: Duration = Duration::from_secs(5);

/// Commands to a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Command {
    /// Grants band and power to a terminal, from now on.
    Grant {
        /// Version of the lines.
        version: u32,
        /// The terminal.
        terminal: u32,
        /// Band in hertz.
        bandwidth_hz: f64,
        /// Transmit power in watts.
        power_w: f64,
    },
    /// Takes the grant of a terminal back: it has the signalling rate only.
    Release {
        /// Version of the lines.
        version: u32,
        /// The terminal.
        terminal: u32,
    },
    /// Moves all terminals on to the conditions of a round, counted from 1.
    Round {
        /// Version of the lines.
        version: u32,
        /// The round.
        round: u64,
    },
    /// Starts or ends an outage: connections stay, nothing passes.
    Outage {
        /// Version of the lines.
        version: u32,
        /// The terminal.
        terminal: u32,
        /// Whether it starts.
        on: bool,
    },
    /// Cuts the link: connections are closed, and refused until it ends.
    Cut {
        /// Version of the lines.
        version: u32,
        /// The terminal.
        terminal: u32,
        /// Whether it starts.
        on: bool,
    },
    /// Asks for the state of a terminal's link.
    Status {
        /// Version of the lines.
        version: u32,
        /// The terminal.
        terminal: u32,
    },
}

/// The answer of a proxy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, deny_unknown_fields)]
pub enum Reply {
    /// The state of a terminal's link.
    Status {
        /// Version of the lines.
        version: u32,
        /// The terminal.
        terminal: u32,
        /// Round whose conditions hold.
        round: u64,
        /// Rate to the server, in bits a second.
        up_bps: f64,
        /// Rate to the terminal, in bits a second.
        down_bps: f64,
        /// Delay in addition to the transmission, in seconds.
        delay_s: f64,
        /// Total gain in dB; not of a table of rates.
        gain_db: Option<f64>,
        /// Granted band in hertz.
        bandwidth_hz: Option<f64>,
        /// Granted power in watts.
        power_w: Option<f64>,
        /// Nothing passes.
        outage: bool,
        /// Connections at the moment.
        connections: usize,
        /// Bytes that went to the server.
        up_bytes: u64,
        /// Bytes that went to the terminal.
        down_bytes: u64,
    },
    /// The command was refused.
    Refused {
        /// Version of the lines.
        version: u32,
        /// What is wrong with it.
        error: String,
    },
    /// The command was carried out.
    Done {
        /// Version of the lines.
        version: u32,
        /// Always true.
        ok: bool,
    },
}

impl Reply {
    pub(super) fn done() -> Self {
        Self::Done { version: VERSION, ok: true }
    }

    pub(super) fn refused(error: impl ToString) -> Self {
        Self::Refused { version: VERSION, error: error.to_string() }
    }

    /// The reply as one line.
    pub fn to_line(&self) -> String {
        format!("{}\n", serde_json::to_string(self).expect("a reply is plain data"))
    }
}

/// What is wrong with a command, or with the way to the proxy.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The line is no command.
    #[error("line is no command of version 1: {0}")]
    Line(String),
    /// A field of it.
    #[error("{field} = {value}, expected {expected}")]
    Field {
        /// The field.
        field: &'static str,
        /// Its value.
        value: String,
        /// What would be right.
        expected: String,
    },
    /// The proxy refused it.
    #[error("proxy: {0}")]
    Refused(String),
    /// The proxy cannot be reached, or its answer is none.
    #[error("cannot ask the proxy at {socket}: {reason}")]
    Unreachable {
        /// Its socket.
        socket: String,
        /// What happened.
        reason: String,
    },
}

impl Command {
    /// Reads an untrusted line from the socket.
    pub fn parse(line: &[u8]) -> Result<Self, CommandError> {
        if line.len() > MAX_LINE_BYTES {
            return Err(CommandError::Line(format!("it has more than {MAX_LINE_BYTES} bytes")));
        }
        let command: Self =
            serde_json::from_slice(line).map_err(|error| CommandError::Line(error.to_string()))?;
        command.checked()
    }

    fn checked(self) -> Result<Self, CommandError> {
        let wrong = |field, value: String, expected: &str| {
            Err(CommandError::Field { field, value, expected: expected.into() })
        };
        let version = match self {
            Self::Grant { version, .. }
            | Self::Release { version, .. }
            | Self::Round { version, .. }
            | Self::Outage { version, .. }
            | Self::Cut { version, .. }
            | Self::Status { version, .. } => version,
        };
        if version != VERSION {
            return wrong("version", version.to_string(), "1");
        }
        if let Self::Grant { bandwidth_hz, power_w, .. } = self {
            if !(0.0..=MAX_HERTZ).contains(&bandwidth_hz) {
                return wrong("bandwidth_hz", bandwidth_hz.to_string(), "0 to 1e12");
            }
            if !(0.0..=MAX_WATTS).contains(&power_w) {
                return wrong("power_w", power_w.to_string(), "0 to 1e4");
            }
        }
        if matches!(self, Self::Round { round: 0, .. }) {
            return wrong("round", "0".into(), "1 or more");
        }
        Ok(self)
    }
}

/// Sends one command to the proxy behind a socket and waits for its answer.
pub fn ask(socket: &Path, command: &Command) -> Result<Reply, CommandError> {
    let unreachable =
        |reason: String| CommandError::Unreachable { socket: socket.display().to_string(), reason };
    let reply = exchange(socket, command).map_err(|error| unreachable(error.to_string()))?;
    match serde_json::from_str(&reply) {
        Ok(Reply::Refused { error, .. }) => Err(CommandError::Refused(error)),
        Ok(reply) => Ok(reply),
        Err(error) => Err(unreachable(format!("its answer is none: {error}"))),
    }
}

fn exchange(socket: &Path, command: &Command) -> std::io::Result<String> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(ANSWER))?;
    stream.set_write_timeout(Some(ANSWER))?;
    let line = serde_json::to_string(command).expect("a command is plain data");
    stream.write_all(format!("{line}\n").as_bytes())?;
    let mut reply = String::new();
    BufReader::new(stream.take(MAX_LINE_BYTES as u64)).read_line(&mut reply)?;
    Ok(reply)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_read_and_anything_else_is_named() {
        let line = r#"{"do":"grant","version":1,"terminal":3,"bandwidth_hz":1e6,"power_w":0.1}"#;
        let grant = Command::Grant { version: 1, terminal: 3, bandwidth_hz: 1e6, power_w: 0.1 };
        assert_eq!(Command::parse(line.as_bytes()).unwrap(), grant);
        let refused = |line: &str| Command::parse(line.as_bytes()).unwrap_err().to_string();
        assert!(refused("").starts_with("line is no command"));
        assert!(refused(r#"{"do":"halt","version":1}"#).contains("halt"));
        assert!(refused(&line.replace("1,", "2,")).starts_with("version = 2"));
        assert!(refused(&line.replace("1e6", "-1")).starts_with("bandwidth_hz = -1"));
        assert!(refused(&line.replace("0.1", "1e5")).starts_with("power_w = 100000"));
        assert!(refused(&line.replace("\"do\"", "\"x\":1,\"do\"")).contains('x'));
        assert!(refused(r#"{"do":"round","version":1,"round":0}"#).starts_with("round = 0"));
        assert!(refused(&" ".repeat(5000)).contains("more than 4096 bytes"));
    }
}
