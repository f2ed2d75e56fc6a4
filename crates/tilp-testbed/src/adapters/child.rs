//! An adapter as a child program.

use std::io::{BufReader, Write};
use std::marker::PhantomData;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kinds::Kind;
use super::lines::{Hello, LineError, Request, VERSION, parse_answer, read_line};

/// Unread lines of an adapter.
const QUEUE: usize = 16;
/// Secrets of this program that no child needs.
const SECRETS: [&str; 2] = ["TILP_JOIN_TOKEN", "TILP_TOKEN"];

/// How to start an adapter. The command comes from the operator's own file, never over the network,
/// and no shell reads it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Seconds that a greeting or an answer may take.
    #[serde(default = "five")]
    pub timeout_s: f64,
}

fn five() -> f64 {
    5.0
}

/// Why an adapter gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum AdapterError {
    /// It cannot be started.
    #[error("{kind} `{program}` cannot be started: {reason}")]
    Start {
        /// The kind of adapter.
        kind: &'static str,
        /// The program.
        program: String,
        /// Error of the system.
        reason: String,
    },
    /// No answer within the time limit.
    #[error("{kind} `{program}` said nothing for {seconds} s")]
    Silent {
        /// The kind of adapter.
        kind: &'static str,
        /// The program.
        program: String,
        /// How long.
        seconds: f64,
    },
    /// It ended.
    #[error("{kind} `{program}` ended: {status}")]
    Ended {
        /// The kind of adapter.
        kind: &'static str,
        /// The program.
        program: String,
        /// How.
        status: String,
    },
    /// A line that is not an answer.
    #[error("{kind} `{program}`: {error}")]
    Line {
        /// The kind of adapter.
        kind: &'static str,
        /// The program.
        program: String,
        /// The error.
        error: LineError,
    },
    /// It has no answer, and says why.
    #[error("{kind} `{program}` refused: {reason}")]
    Refused {
        /// The kind of adapter.
        kind: &'static str,
        /// The program.
        program: String,
        /// Its own words.
        reason: String,
    },
}

/// An adapter of one kind. After an error that leaves its lines in doubt the child is ended, and the
/// next question starts it again.
pub struct Adapter<K: Kind> {
    program: Program,
    running: Option<Running>,
    next: u64,
    kind: PhantomData<K>,
}

/// A child and its lines. It is ended when this is dropped.
struct Running {
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<Result<Vec<u8>, LineError>>,
    hello: Hello,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The child before it starts.
pub(super) fn command(program: &str, arguments: &[String]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
    for name in SECRETS {
        command.env_remove(name);
    }
    command
}

impl<K: Kind> Adapter<K> {
    /// Starts an adapter and reads its greeting.
    pub fn start(program: Program) -> Result<Self, AdapterError> {
        let mut adapter = Self { program, running: None, next: 1, kind: PhantomData };
        adapter.running = Some(adapter.launch()?);
        Ok(adapter)
    }

    /// The adapter's description of itself; `None` while it is not running.
    pub fn hello(&self) -> Option<&Hello> {
        self.running.as_ref().map(|running| &running.hello)
    }

    /// Asks and waits for the answer.
    pub fn ask(&mut self, ask: &K::Ask) -> Result<K::Answer, AdapterError> {
        let mut running = match self.running.take() {
            Some(running) => running,
            None => self.launch()?,
        };
        let id = self.next;
        self.next += 1;
        let request = Request { version: VERSION, id, ask: ask.clone() };
        let line = serde_json::to_string(&request).expect("a question is plain data");
        let written = running.stdin.write_all(format!("{line}\n").as_bytes());
        if written.and_then(|()| running.stdin.flush()).is_err() {
            return Err(self.ended(&mut running.child));
        }
        let line = self.next_line(&mut running.child, &running.lines)?;
        let answer = parse_answer::<K>(&line, id).map_err(|error| self.wrong(error))?;
        self.running = Some(running);
        answer.map_err(|reason| AdapterError::Refused {
            kind: K::NAME,
            program: self.name(),
            reason,
        })
    }

    fn launch(&self) -> Result<Running, AdapterError> {
        let failed =
            |reason: String| AdapterError::Start { kind: K::NAME, program: self.name(), reason };
        let [program, arguments @ ..] = &self.program.command[..] else {
            return Err(failed("its command is empty".into()));
        };
        if !(0.001..=86_400.0).contains(&self.program.timeout_s) {
            let seconds = self.program.timeout_s;
            return Err(failed(format!("timeout_s = {seconds}, expected 0.001 to 86400")));
        }
        let mut child =
            command(program, arguments).spawn().map_err(|error| failed(error.to_string()))?;
        let stdin = child.stdin.take().expect("the input is a pipe");
        let mut stdout = BufReader::new(child.stdout.take().expect("the output is a pipe"));
        let (queue, lines) = sync_channel(QUEUE);
        // The thread ends with the child's output, or when the receiver is dropped.
        std::thread::spawn(move || {
            while let Ok(Some(line)) = read_line(&mut stdout) {
                if queue.send(line).is_err() {
                    return;
                }
            }
        });
        let hello = Hello::new::<K>("not yet", false);
        let mut running = Running { child, stdin, lines, hello };
        let line = self.next_line(&mut running.child, &running.lines)?;
        running.hello = Hello::parse::<K>(&line).map_err(|error| self.wrong(error))?;
        Ok(running)
    }

    fn next_line(
        &self,
        child: &mut Child,
        lines: &Receiver<Result<Vec<u8>, LineError>>,
    ) -> Result<Vec<u8>, AdapterError> {
        let seconds = self.program.timeout_s;
        match lines.recv_timeout(Duration::from_secs_f64(seconds)) {
            Ok(Ok(line)) => Ok(line),
            Ok(Err(error)) => Err(self.wrong(error)),
            Err(RecvTimeoutError::Timeout) => {
                Err(AdapterError::Silent { kind: K::NAME, program: self.name(), seconds })
            }
            Err(RecvTimeoutError::Disconnected) => Err(self.ended(child)),
        }
    }

    /// The child has closed its output. If it does not end by itself it is ended.
    fn ended(&self, child: &mut Child) -> AdapterError {
        let mut status: Option<ExitStatus> = None;
        for _ in 0..100 {
            status = child.try_wait().ok().flatten();
            if status.is_some() {
                break;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let status = status.map_or("it closed its output".into(), |status| status.to_string());
        AdapterError::Ended { kind: K::NAME, program: self.name(), status }
    }

    fn wrong(&self, error: LineError) -> AdapterError {
        AdapterError::Line { kind: K::NAME, program: self.name(), error }
    }

    fn name(&self) -> String {
        self.program.command.first().cloned().unwrap_or_default()
    }
}
