//! TiLP as the method of an external base station: observations and outcomes in, decisions with reasons
//! out, state on disk.
//!
//! The learned state is written after every outcome, and the observation before
//! its decision is printed. The server can therefore be killed at any moment and continues later,
//! and a line that is sent twice gets the same answer.

use std::fs;
use std::io::{self, BufRead, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{PlanError, PlanReport, PlanSpec};
use crate::allocate::{Clock, Tilp};
use crate::exchange::{
    Asked, Declaration, ExchangeError, Expected, MOST_BYTES, ObservationMessage, OutcomeMessage,
    Reply, Training, VERSION,
};
use crate::record::{Checkpoint, FolderLock, Identity, RecordError, StreamMark, write_beside};
use crate::round::{Allocator, DecideError, Limits, Observation, Outcome, ProjectedDecision};
use crate::scenario::{hexadecimal, limits_of, method, planner, rates_of, suite_of, tasks};
use crate::snapshot::{Persist, Snapshot};

const STATE: &str = "state.safetensors";
const OPEN: &str = "open.json";
const TASKS: &str = "server/tasks";
const DIGEST: &str = "server/outcome";

/// A planner with its state on disk.
pub struct PlanServer {
    spec: PlanSpec,
    expected: Expected,
    limits: Limits,
    clock: Option<Clock>,
    folder: PathBuf,
    tilp: Option<Tilp>,
    /// The learned state after the last round with a given outcome.
    learned: Option<Snapshot>,
    /// That round; 0 before the first.
    round: u64,
    /// Digest of that outcome, as four words.
    last: [u64; 4],
    /// The round that is being executed.
    open: Option<Open>,
    _lock: FolderLock,
}

/// A decision that waits for its outcome.
struct Open {
    message: ObservationMessage,
    seen: Observation,
    plan: ProjectedDecision,
    tasks: Vec<usize>,
    answer: String,
}

/// A plan just made, and the tasks of all terminals that it was made for.
struct Planned {
    plan: ProjectedDecision,
    report: PlanReport,
    tasks: Vec<usize>,
}

/// `open.json`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OpenFile {
    version: u64,
    scenario: String,
    seed: u64,
    observation: ObservationMessage,
    answer: String,
}

/// Why a line was answered with an error.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Decide(#[from] DecideError),
    #[error("{0}")]
    Order(String),
}

impl PlanServer {
    /// Starts with what a folder holds, or anew in an empty one.
    pub fn open(spec: PlanSpec, folder: &Path, clock: Option<Clock>) -> Result<Self, PlanError> {
        fs::create_dir_all(folder).map_err(RecordError::io("create", folder))?;
        let lock = FolderLock::take(folder)?;
        let mut server = Self {
            expected: Expected { tasks: None, ..spec.expected()? },
            limits: limits_of(&spec.scenario)?,
            clock,
            folder: folder.to_owned(),
            tilp: None,
            learned: None,
            round: 0,
            last: [0; 4],
            open: None,
            _lock: lock,
            spec,
        };
        match server.read(STATE)? {
            Some(bytes) => server.take_up(&bytes)?,
            None => server.begin(),
        }
        if let Some(bytes) = server.read(OPEN)? {
            server.reopen(&bytes)?;
        }
        Ok(server)
    }

    /// The last round whose outcome was given.
    pub fn round(&self) -> u64 {
        self.round
    }

    /// Answers every line until the input ends or an `end` line arrives.
    pub fn serve(&mut self, mut input: impl BufRead, mut output: impl Write) -> io::Result<()> {
        while let Some(line) = next_line(&mut input)? {
            let (answer, is_last) = match line {
                Some(line) => self.answer(&line),
                None => (error_line(&ExchangeError::TooLong { what: "line" }), false),
            };
            output.write_all(answer.as_bytes())?;
            output.flush()?;
            if is_last {
                break;
            }
        }
        Ok(())
    }

    /// The answer to a line, with its end of line, and whether it is the last. Nothing is answered
    /// to `end`. A line that cannot be answered changes nothing.
    pub fn answer(&mut self, line: &[u8]) -> (String, bool) {
        let answer = match Asked::read(line) {
            Ok(Asked::End) => return (String::new(), true),
            Ok(Asked::Setup) => self.declaration().map_err(Refusal::from),
            Ok(Asked::Observe(message)) => self.decide(*message),
            Ok(Asked::Outcome(message)) => self.learn(*message),
            Err(error) => Err(error.into()),
        };
        (answer.unwrap_or_else(|refusal| error_line(&refusal)), false)
    }

    fn declaration(&self) -> Result<String, PlanError> {
        let rates = rates_of(&self.spec.scenario, &method("tilp")?);
        let declaration = Declaration {
            version: VERSION,
            name: "tilp".to_owned(),
            training: Training::Parallel,
            server_rate: Some(f64::from(rates.server)),
            terminal_rate: Some(f64::from(rates.terminal)),
            aggregate_every: None,
            state: None,
            timeout_s: None,
        };
        Ok(Reply::Method(declaration).line())
    }

    fn decide(&mut self, message: ObservationMessage) -> Result<String, Refusal> {
        if let Some(open) = self.open.as_ref().filter(|open| open.message == message) {
            return Ok(open.answer.clone());
        }
        let seen = message.clone().checked(&self.expected)?;
        if seen.round <= self.round {
            let (found, least) = (seen.round, self.round + 1);
            return Err(Refusal::Order(format!(
                "observation at round = {found}, expected {least} or later: its outcome is known"
            )));
        }
        let Planned { plan, report, tasks } = self.planned(&seen)?;
        let answer = answer_line(&report);
        let identity = self.identity();
        let file = OpenFile {
            version: VERSION,
            scenario: identity.scenario,
            seed: identity.seed,
            observation: message.clone(),
            answer: answer.clone(),
        };
        let text = serde_json::to_string(&file).expect("an observation is plain data");
        self.write(OPEN, text.as_bytes())?;
        self.open = Some(Open { message, seen, plan, tasks, answer: answer.clone() });
        Ok(answer)
    }

    /// Plans from the learned state, independent of decisions made since.
    fn planned(&mut self, seen: &Observation) -> Result<Planned, Refusal> {
        let is_open = self.open.take().is_some();
        let kept = self.tilp.take().filter(|_| !is_open);
        let tasks = self.tasks(seen);
        let mut tilp = match kept {
            Some(tilp) => tilp,
            None => self.planner(tasks.clone())?,
        };
        let decision = tilp.decide(seen)?;
        decision.check(seen)?;
        let reasons = tilp.explained(seen).expect("a decision was just made");
        self.tilp = Some(tilp);
        let (note, suite) = (self.spec.scenario.note(), suite_of(&self.spec.scenario));
        let on_priors = super::on_priors(seen, self.learned.is_some());
        let report = PlanReport { note, on_priors, ..PlanReport::new(seen, &reasons, suite) };
        Ok(Planned { plan: self.limits.project(decision), report, tasks })
    }

    /// The tasks of all terminals. Before anything was learned they are those observed; of a terminal
    /// that is absent, that of the scenario.
    fn tasks(&self, seen: &Observation) -> Vec<usize> {
        let known = || tasks(&self.spec.scenario, self.spec.seed);
        let mut all = self.expected.tasks.clone().unwrap_or_else(known);
        for view in &seen.terminals {
            all[view.report.id.0 as usize] = view.report.task;
        }
        all
    }

    /// The planner after the last outcome.
    fn planner(&self, tasks: Vec<usize>) -> Result<Tilp, PlanError> {
        let mut tilp = planner(&self.spec.scenario, self.spec.seed, tasks, self.clock)?;
        if let Some(learned) = &self.learned {
            tilp.restore(learned)?;
        }
        Ok(tilp)
    }

    fn learn(&mut self, message: OutcomeMessage) -> Result<String, Refusal> {
        let (round, digest) = (message.round(), digest(&message));
        if round == self.round && digest == self.last && self.round > 0 {
            return Ok(learned_line(round));
        }
        let (Some(open), Some(_)) = (&self.open, &self.tilp) else {
            let first = format!("outcome at round = {round}, expected its observation first");
            return Err(Refusal::Order(first));
        };
        let suite = suite_of(&self.spec.scenario);
        let (outcome, executed) = message.checked(&open.seen, suite, self.expected.n_layers)?;
        let plan = executed.map_or_else(|| open.plan.clone(), |one| self.limits.project(one));
        check_participants(&plan, &outcome)?;
        // If something fails from here on, the earlier state remains and the observation is sent again.
        let (Some(open), Some(mut tilp)) = (self.open.take(), self.tilp.take()) else {
            unreachable!("both were just there");
        };
        tilp.learn(&open.seen, &plan, &outcome);
        let mut state = Snapshot::default();
        tilp.save(&mut state);
        state.put_u64(TASKS, open.tasks.iter().map(|&task| task as u64).collect());
        state.put_u64(DIGEST, digest.to_vec());
        let (identity, stream) = (self.identity(), StreamMark::default());
        let checkpoint = Checkpoint { identity, round, stream, state };
        self.write(STATE, &checkpoint.to_bytes())?;
        // A remaining file belongs to a finished round and is ignored.
        let _ = fs::remove_file(self.folder.join(OPEN));
        self.expected.tasks = Some(open.tasks);
        (self.round, self.last) = (round, digest);
        (self.learned, self.tilp) = (Some(checkpoint.state), Some(tilp));
        Ok(learned_line(round))
    }

    fn identity(&self) -> Identity {
        Identity {
            method: "tilp".to_owned(),
            seed: self.spec.seed,
            replicate: 0,
            scenario: self.spec.scenario.hash(),
        }
    }

    /// Starts from the learned state of a run, or without one.
    fn begin(&mut self) {
        if let Some(checkpoint) = self.spec.learned.take() {
            self.expected.tasks = Some(tasks(&self.spec.scenario, self.spec.seed));
            self.learned = Some(checkpoint.state);
        }
    }

    fn take_up(&mut self, bytes: &[u8]) -> Result<(), PlanError> {
        let path = self.folder.join(STATE);
        let checkpoint = Checkpoint::from_bytes(bytes, &path)?;
        checkpoint.check(&self.identity(), &path)?;
        let state = checkpoint.state;
        let (n, most) = (self.expected.hardware.len(), self.expected.suite.tasks.len() as u64 - 1);
        let tasks = state.u64_up_to(TASKS, n, most)?.iter().map(|&task| task as usize).collect();
        self.expected.tasks = Some(tasks);
        self.last.copy_from_slice(state.u64(DIGEST, 4)?);
        (self.round, self.learned) = (checkpoint.round, Some(state));
        Ok(())
    }

    /// Resumes the round that was being executed. A round with a written outcome is finished.
    fn reopen(&mut self, bytes: &[u8]) -> Result<(), PlanError> {
        let path = self.folder.join(OPEN);
        let malformed = |reason: String| RecordError::Malformed { path: path.clone(), reason };
        let file: OpenFile =
            serde_json::from_slice(bytes).map_err(|error| malformed(error.to_string()))?;
        let identity = self.identity();
        if (&file.scenario, file.seed) != (&identity.scenario, identity.seed) {
            let expected = "that of another scenario or seed, expected the same as before";
            return Err(malformed(expected.to_owned()).into());
        }
        if file.observation.round() <= self.round {
            return Ok(());
        }
        let seen = file.observation.clone().checked(&self.expected)?;
        let again = self.planned(&seen).map_err(|refusal| malformed(refusal.to_string()))?;
        let Planned { plan, tasks, .. } = again;
        let OpenFile { observation: message, answer, .. } = file;
        self.open = Some(Open { message, seen, plan, tasks, answer });
        Ok(())
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, RecordError> {
        let path = self.folder.join(name);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(RecordError::io("read", &path)(error)),
        }
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), PlanError> {
        Ok(write_beside(&self.folder, &[(name.to_owned(), bytes)])?)
    }
}

/// A terminal that was not scheduled can neither take part nor be late.
fn check_participants(plan: &ProjectedDecision, outcome: &Outcome) -> Result<(), Refusal> {
    let both = plan.decision().terminals.iter().zip(&outcome.terminals);
    for (n, (one, found)) in both.enumerate() {
        if !one.scheduled && (found.took_part || found.late) {
            return Err(Refusal::Order(format!(
                "outcome at terminals[{n}] = took part or late, expected a scheduled terminal"
            )));
        }
    }
    Ok(())
}

/// The next line without its end; an inner none for one that is too long.
fn next_line(input: &mut impl BufRead) -> io::Result<Option<Option<Vec<u8>>>> {
    let mut line = Vec::new();
    let most = MOST_BYTES as u64 + 1;
    if input.by_ref().take(most).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.len() <= MOST_BYTES || line.last() == Some(&b'\n') {
        return Ok(Some(Some(line)));
    }
    loop {
        let buffer = input.fill_buf()?;
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let (used, is_over) = (end.map_or(buffer.len(), |at| at + 1), buffer.is_empty());
        input.consume(used);
        if end.is_some() || is_over {
            return Ok(Some(None));
        }
    }
}

fn answer_line(report: &PlanReport) -> String {
    let mut value = serde_json::to_value(report).expect("a plan is plain data");
    value["type"] = json!("decision");
    Value::to_string(&value) + "\n"
}

fn learned_line(round: u64) -> String {
    Reply::Learned { round: Some(round), state: None }.line()
}

fn error_line(error: &impl std::fmt::Display) -> String {
    Reply::Error { error: error.to_string() }.line()
}

/// Digest of an outcome.
fn digest(message: &OutcomeMessage) -> [u64; 4] {
    let text = serde_json::to_string(message).expect("an outcome is plain data");
    let hex = hexadecimal(&text);
    let word = |n: usize| u64::from_str_radix(&hex[16 * n..16 * (n + 1)], 16).unwrap_or(0);
    [word(0), word(1), word(2), word(3)]
}
