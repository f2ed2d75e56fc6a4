//! Methods that are programs of their own: `exec:PROGRAM`. The program is a child process that gets
//! observations and outcomes as lines of JSON and answers decisions: `crates/tilp/src/exchange`.

mod process;

pub use process::ProgramError;

use process::{Process, words};
use rand::Rng as _;
use serde_json::Value;

use super::planner::suite_of;
use super::{Method, Scenario, ScenarioError};
use crate::cost::{CostModel, Hardware};
use crate::exchange::{
    Declaration, ExchangeError, Kind, Question, Setup, SetupParts, StateUse, observation_message,
    outcome_message, read_decision,
};
use crate::rng::Seed;
use crate::round::{Allocator, DecideError, Decision, Observation, Outcome, ProjectedDecision};
use crate::snapshot::{Persist, Snapshot, SnapshotError};
use crate::tasks::Suite;
use crate::wireless::correlation;

/// How the name of such a method begins.
pub(super) const PREFIX: &str = "exec:";

/// Seconds that a program may take until it has declared itself: imports included.
const START_S: f64 = 120.0;

/// A method that is a program of its own.
#[derive(Clone, Debug)]
pub(super) struct Outside {
    words: Vec<String>,
}

impl Outside {
    /// The program of a command.
    pub(super) fn new(command: &str) -> Result<Self, ProgramError> {
        Ok(Self { words: words(command)? })
    }

    /// Starts the program for a run.
    pub(super) fn start(
        &self,
        setup: Setup,
        suite: &'static Suite,
    ) -> Result<Program, ProgramError> {
        let n_layers = setup.model.layers.len();
        let mut process = Process::start(&self.words)?;
        let line = Question::Setup(Box::new(setup)).line();
        let reply = reply(&mut process, "setup", "method", line, START_S)?;
        let declared = Declaration::read(&reply.bytes)
            .map_err(|error| wrong(&process, "setup", "method", &error))?;
        Ok(Program { process, declared, n_layers, suite, learned: 0, state: None, failed: None })
    }
}

/// Starts the program of an external method for a run; other methods are unchanged.
pub(super) fn started(
    scenario: &Scenario,
    method: Method,
    cost: &CostModel,
    hardware: &[Hardware],
    seed: Seed,
) -> Result<(Method, Option<Box<dyn Allocator>>), ScenarioError> {
    let Some(outside) = &method.outside else { return Ok((method, None)) };
    let (raw, suite) = (&scenario.raw, suite_of(scenario));
    let setup = SetupParts {
        scenario: scenario.name(),
        rounds: raw.rounds,
        seed: seed_number(seed.named("allocator")),
        aggregate_every: raw.learning.aggregate_every,
        cost,
        tasks: suite.tasks,
        fading_correlation: correlation(raw.cell.doppler_hz, raw.cell.round_interval_s),
        hardware,
    };
    let program = outside.start(setup.into(), suite)?;
    let method = method.clone().declared(program.declared.clone());
    Ok((method, Some(Box::new(program))))
}

/// A seed as a number, for methods that are not written in Rust.
pub(super) fn seed_number(seed: Seed) -> u64 {
    seed.rng().next_u64()
}

/// A line of the expected type.
struct AnswerLine {
    bytes: Vec<u8>,
    kind: Kind,
}

/// Asks and waits for a line of a type.
fn reply(
    process: &mut Process,
    question: &'static str,
    expected: &'static str,
    line: String,
    seconds: f64,
) -> Result<AnswerLine, ProgramError> {
    let bytes = process.ask(question, line, seconds)?;
    let kind = Kind::read(&bytes).map_err(|error| {
        let hint = match &bytes {
            bytes if has_no_number(bytes) => " (NaN and Infinity are no JSON)",
            _ => "",
        };
        answer(process, question, expected, format!("{error}{hint}: {}", start_of(&bytes)))
    })?;
    match (kind.kind.as_str(), &kind.error) {
        (found, _) if found == expected => Ok(AnswerLine { bytes, kind }),
        ("error", reason) => Err(ProgramError::Refused {
            program: process.program().to_owned(),
            question,
            reason: one_line(reason.as_deref().unwrap_or("no reason given")),
        }),
        (found, _) => {
            let reason = format!("type is {:?}, expected {expected:?}", one_line(found));
            Err(answer(process, question, expected, reason))
        }
    }
}

fn answer(
    process: &Process,
    question: &'static str,
    expected: &'static str,
    reason: String,
) -> ProgramError {
    ProgramError::Answer { program: process.program().to_owned(), question, expected, reason }
}

fn wrong(
    process: &Process,
    question: &'static str,
    expected: &'static str,
    error: &ExchangeError,
) -> ProgramError {
    answer(process, question, expected, error.to_string())
}

/// What Python and others write for numbers that JSON does not have.
fn has_no_number(bytes: &[u8]) -> bool {
    let has = |word: &[u8]| bytes.windows(word.len()).any(|part| part == word);
    has(b"NaN") || has(b"Infinity")
}

/// The beginning of a line, for a message.
fn start_of(bytes: &[u8]) -> String {
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned();
    format!("{:?}", start.trim_end())
}

/// A text from outside in one line of bounded length.
fn one_line(text: &str) -> String {
    text.chars().take(300).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The allocator that asks the program.
pub(super) struct Program {
    process: Process,
    /// Declarations of the program.
    pub declared: Declaration,
    n_layers: usize,
    suite: &'static Suite,
    /// Rounds that it learned from.
    learned: u64,
    /// State that the program gave after the last of these rounds.
    state: Option<Value>,
    /// Why it has no more answers.
    failed: Option<DecideError>,
}

impl Program {
    fn ask(
        &mut self,
        question: &'static str,
        expected: &'static str,
        line: String,
    ) -> Result<AnswerLine, ProgramError> {
        let seconds = self.declared.timeout_s();
        reply(&mut self.process, question, expected, line, seconds)
    }

    fn decided(&mut self, seen: &Observation) -> Result<Decision, ProgramError> {
        let observation = observation_message(seen, self.suite);
        let line = Question::Observe { observation }.line();
        let found = self.ask("observe", "decision", line)?;
        read_decision(&found.bytes, seen.terminals.len(), self.n_layers)
            .map_err(|error| wrong(&self.process, "observe", "decision", &error))
    }

    fn learned(&mut self, plan: &ProjectedDecision, outcome: &Outcome) -> Result<(), ProgramError> {
        let outcome = outcome_message(plan, outcome, self.suite);
        let found = self.ask("outcome", "learned", Question::Outcome { outcome }.line())?;
        if self.declared.state == Some(StateUse::Given) {
            let Some(state) = found.kind.state else {
                let reason = "no field `state`, which it declared to give".to_owned();
                return Err(answer(&self.process, "outcome", "learned", reason));
            };
            self.state = Some(state);
        }
        Ok(())
    }
}

impl Allocator for Program {
    fn decide(&mut self, seen: &Observation) -> Result<Decision, DecideError> {
        self.check()?;
        self.decided(seen).map_err(|error| failure(seen, &error))
    }

    fn learn(&mut self, seen: &Observation, plan: &ProjectedDecision, outcome: &Outcome) {
        match self.learned(plan, outcome) {
            Ok(()) => self.learned += 1,
            Err(error) => self.failed = Some(failure(seen, &error)),
        }
    }

    fn check(&self) -> Result<(), DecideError> {
        self.failed.clone().map_or(Ok(()), Err)
    }
}

fn failure(seen: &Observation, error: &ProgramError) -> DecideError {
    DecideError::Failed { round: seen.round, reason: error.to_string() }
}

const LEARNED: &str = "program/learned";
const STATE: &str = "program/state";
const LENGTH: &str = "program/state_bytes";

impl Persist for Program {
    fn save(&self, snapshot: &mut Snapshot) {
        let text = self.state.as_ref().map_or(String::new(), Value::to_string);
        let words = text.as_bytes().chunks(8).map(|part| {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            u64::from_le_bytes(word)
        });
        snapshot.put_u64(STATE, words.collect());
        snapshot.put_u64(LENGTH, vec![text.len() as u64]);
        snapshot.put_u64(LEARNED, vec![self.learned]);
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        self.learned = snapshot.u64(LEARNED, 1)?[0];
        let Some(kept) = self.declared.state else {
            if self.learned == 0 {
                return Ok(());
            }
            let expected = "a method that declares `state`: start this run anew";
            return Err(SnapshotError::value(STATE, "nothing", expected));
        };
        if kept == StateUse::None || self.learned == 0 {
            return Ok(());
        }
        let n = snapshot.len_of(STATE);
        let length = snapshot.u64_up_to(LENGTH, 1, 8 * n as u64)?[0] as usize;
        let words = snapshot.u64(STATE, n)?.iter();
        let mut bytes: Vec<u8> = words.flat_map(|word| word.to_le_bytes()).collect();
        bytes.truncate(length);
        let state: Value = serde_json::from_slice(&bytes)
            .map_err(|error| SnapshotError::value(STATE, error, "JSON"))?;
        let line = Question::Restore { round: self.learned, state: state.clone() }.line();
        self.ask("restore", "restored", line)
            .map_err(|error| SnapshotError::value(STATE, error, "a state that is taken back"))?;
        self.state = Some(state);
        Ok(())
    }
}
