//! An observation as JSON: what an integrator writes and `tilp plan` reads.
//!
//! The schema is in `docs/reference/observation.md`. Whatever the bytes, reading ends in an observation that a plan
//! can be made for, or in one line that says what is wrong where.

use std::collections::BTreeMap;
use std::fmt::Display;

use serde::{Deserialize, Serialize};

use crate::cost::Hardware;
use crate::round::{
    MeasuredSuccess, Observation, SuccessCount, TerminalId, TerminalReport, TerminalView,
};
use crate::tasks::Suite;
use crate::units::{Bytes, Gain, Hertz, Seconds, from_db, to_db};

/// An observation may be at most this long: fifty thousand terminals would fit.
pub const MOST_BYTES: usize = 16 << 20;

/// Why an observation was refused. Each message is one line: field, value, expected.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ObservationError {
    /// Nothing was given.
    #[error("the observation is empty, expected JSON as `tilp plan --example` prints it")]
    Empty,
    /// Too much was given.
    #[error("the observation is longer than {MOST_BYTES} bytes, expected at most so many")]
    TooLong,
    /// Not JSON, or a field is unknown, missing or of the wrong type.
    #[error("observation{field}: {reason}")]
    Malformed {
        /// Where, as ` at terminals[3].gain_db`; nothing for the whole.
        field: String,
        /// What the parser says: value and expectation.
        reason: String,
    },
    /// A value is outside its range or does not fit the scenario.
    #[error("observation at {field} = {value}, expected {expected}")]
    Range {
        /// Path of the field.
        field: String,
        /// Its value.
        value: String,
        /// What was expected.
        expected: String,
    },
}

/// What an observation must agree with.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// Hardware of the scenario's terminals, by data sheet.
    pub hardware: Vec<Hardware>,
    /// Layers of the policy.
    pub n_layers: usize,
    /// Rounds between aggregations.
    pub aggregate_every: u64,
    /// The tasks that there are.
    pub suite: &'static Suite,
    /// The task of each terminal, if it was fixed by what was learned.
    pub tasks: Option<Vec<usize>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    round: u64,
    clock_s: f64,
    aggregates: bool,
    loss: Option<f64>,
    success: Option<BTreeMap<String, Count>>,
    terminals: Vec<Terminal>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Count {
    successes: u64,
    episodes: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Terminal {
    gain_db: f64,
    fading_power: f64,
    previous_bandwidth_hz: f64,
    gradient_norm: Option<f64>,
    loss: Option<f64>,
    rounds_since_scheduled: Option<u64>,
    n_samples: usize,
    memory_bytes: u64,
    task: String,
    held_layers: usize,
    owed_layers: usize,
    /// Not in observations of the first version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    success: Option<Measured>,
}

/// Success of one terminal at the last calibration.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Measured {
    round: u64,
    successes: u64,
    episodes: u64,
}

/// An observation as JSON. Reading it gives the same one, but for the last bits of the gains,
/// which are written in decibels.
pub fn write_observation(seen: &Observation, suite: &Suite) -> String {
    let count =
        |count: &SuccessCount| Count { successes: count.successes, episodes: count.episodes };
    let named = |counts: &Vec<SuccessCount>| {
        let tasks = suite.tasks.iter().zip(counts);
        tasks.map(|(&name, one)| (name.to_owned(), count(one))).collect()
    };
    let written = Written {
        round: seen.round,
        clock_s: seen.clock.0,
        aggregates: seen.aggregates,
        loss: seen.loss,
        success: seen.success.as_ref().map(named),
        terminals: seen.terminals.iter().map(|view| write_terminal(view, suite)).collect(),
    };
    serde_json::to_string_pretty(&written).expect("an observation is plain data")
}

fn write_terminal(view: &TerminalView, suite: &Suite) -> Terminal {
    Terminal {
        gain_db: to_db(view.report.gain.0),
        fading_power: view.report.fading_power,
        previous_bandwidth_hz: view.previous_bandwidth.0,
        gradient_norm: view.gradient_norm,
        loss: view.loss,
        rounds_since_scheduled: view.rounds_since_scheduled,
        n_samples: view.report.n_samples,
        memory_bytes: view.report.memory.0,
        task: suite.task_name(view.report.task).to_owned(),
        held_layers: view.report.held_layers,
        owed_layers: view.report.owed_layers,
        success: view.success.map(|MeasuredSuccess { round, count }| Measured {
            round,
            successes: count.successes,
            episodes: count.episodes,
        }),
    }
}

/// The observation in untrusted bytes.
pub fn read_observation(
    bytes: &[u8],
    expected: &Expected,
) -> Result<Observation, ObservationError> {
    if bytes.len() > MOST_BYTES {
        return Err(ObservationError::TooLong);
    }
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(ObservationError::Empty);
    }
    check(parse(bytes)?, expected)
}

fn parse(bytes: &[u8]) -> Result<Written, ObservationError> {
    let malformed = |field: String, error: &serde_json::Error| ObservationError::Malformed {
        field: if field == "." { String::new() } else { format!(" at {}", short(&field)) },
        reason: short(&error.to_string()),
    };
    let mut source = serde_json::Deserializer::from_slice(bytes);
    let written = serde_path_to_error::deserialize(&mut source)
        .map_err(|error| malformed(error.path().to_string(), error.inner()))?;
    source.end().map_err(|error| malformed(".".into(), &error))?;
    Ok(written)
}

/// Long values are cut in the middle: the end of a message says what was expected.
fn short(text: &str) -> String {
    let n = text.chars().count();
    if n <= 300 {
        return text.to_owned();
    }
    let start: String = text.chars().take(100).collect();
    let end: String = text.chars().skip(n - 190).collect();
    format!("{start} ... {end}")
}

/// Refuses what is outside its range.
struct Checker;

impl Checker {
    fn fail<T>(
        &self,
        field: impl Display,
        value: impl Display,
        expected: impl Display,
    ) -> Result<T, ObservationError> {
        Err(ObservationError::Range {
            field: short(&field.to_string()),
            value: short(&value.to_string()),
            expected: expected.to_string(),
        })
    }

    /// Between both, or at an end. What is not a number is not.
    fn within<T: PartialOrd + Display + Copy>(
        &self,
        field: impl Display,
        value: T,
        [least, most]: [T; 2],
    ) -> Result<T, ObservationError> {
        if value >= least && value <= most {
            return Ok(value);
        }
        self.fail(field, value, format!("{least} to {most}"))
    }

    fn maybe(
        &self,
        field: impl Display,
        value: Option<f64>,
        ends: [f64; 2],
    ) -> Result<Option<f64>, ObservationError> {
        value.map(|value| self.within(field, value, ends)).transpose()
    }
}

/// Bounds of a loss: its logarithm is taken.
const LOSS: [f64; 2] = [1e-12, 1e12];

fn check(written: Written, expected: &Expected) -> Result<Observation, ObservationError> {
    let checker = Checker;
    let (found, n_terminals) = (written.terminals.len(), expected.hardware.len());
    if found != n_terminals {
        let scenario = format!("{n_terminals}, as many as the scenario has (cell.n_terminals)");
        return checker.fail("terminals", format!("{found} terminals"), scenario);
    }
    let round = checker.within("round", written.round, [1, 1_000_000_000])?;
    let every = expected.aggregate_every;
    let aggregates = round.is_multiple_of(every);
    if written.aggregates != aggregates {
        let law = format!("{aggregates} in round {round} with learning.aggregate_every = {every}");
        return checker.fail("aggregates", written.aggregates, law);
    }
    let view = |(n, terminal)| terminal_view(n, terminal, round, expected);
    Ok(Observation {
        round,
        clock: Seconds(checker.within("clock_s", written.clock_s, [0.0, 1e12])?),
        aggregates,
        loss: checker.maybe("loss", written.loss, LOSS)?,
        success: written.success.map(|counts| success(counts, expected.suite)).transpose()?,
        budget: None,
        terminals: written.terminals.into_iter().enumerate().map(view).collect::<Result<_, _>>()?,
    })
}

/// Counts by the name of the task; a task that is not named was not measured.
fn success(
    counts: BTreeMap<String, Count>,
    suite: &Suite,
) -> Result<Vec<SuccessCount>, ObservationError> {
    let mut all = vec![SuccessCount::default(); suite.tasks.len()];
    for (name, Count { successes, episodes }) in counts {
        let field = format!("success.{name}");
        let Some(task) = suite.task_index(&name) else {
            return Checker.fail(
                "success",
                name,
                format!("names among {}", suite.tasks.join(", ")),
            );
        };
        all[task] = success_count(&field, successes, episodes)?;
    }
    Ok(all)
}

fn success_count(
    field: &str,
    successes: u64,
    episodes: u64,
) -> Result<SuccessCount, ObservationError> {
    Checker.within(format!("{field}.episodes"), episodes, [0, 1_000_000_000])?;
    Checker.within(format!("{field}.successes"), successes, [0, episodes])?;
    Ok(SuccessCount { successes, episodes })
}

/// A terminal's own success. It was measured before the round that is planned.
fn own_success(
    n: usize,
    written: Option<Measured>,
    round: u64,
) -> Result<Option<MeasuredSuccess>, ObservationError> {
    let Some(Measured { round: measured, successes, episodes }) = written else { return Ok(None) };
    let field = format!("terminals[{n}].success");
    if measured == 0 || measured >= round {
        let expected = format!("a round from 1 on, before round {round}");
        return Checker.fail(format!("{field}.round"), measured, expected);
    }
    let count = success_count(&field, successes, episodes)?;
    Ok(Some(MeasuredSuccess { round: measured, count }))
}

fn terminal_view(
    n: usize,
    written: Terminal,
    round: u64,
    expected: &Expected,
) -> Result<TerminalView, ObservationError> {
    let checker = Checker;
    let at = |field: &str| format!("terminals[{n}].{field}");
    let layers = [0, expected.n_layers];
    let bandwidth = written.previous_bandwidth_hz;
    let report = TerminalReport {
        id: TerminalId(n as u32),
        hardware: expected.hardware[n],
        memory: Bytes(checker.within(at("memory_bytes"), written.memory_bytes, [1, 1 << 53])?),
        n_samples: checker.within(at("n_samples"), written.n_samples, [1, 1_000_000_000])?,
        task: task(n, &written.task, expected)?,
        gain: Gain(from_db(checker.within(at("gain_db"), written.gain_db, [-300.0, 50.0])?)),
        fading_power: checker.within(at("fading_power"), written.fading_power, [0.0, 1e6])?,
        held_layers: checker.within(at("held_layers"), written.held_layers, layers)?,
        owed_layers: checker.within(at("owed_layers"), written.owed_layers, layers)?,
    };
    Ok(TerminalView {
        report,
        previous_bandwidth: Hertz(checker.within(
            at("previous_bandwidth_hz"),
            bandwidth,
            [0.0, 1e12],
        )?),
        gradient_norm: checker.maybe(at("gradient_norm"), written.gradient_norm, [0.0, 1e12])?,
        loss: checker.maybe(at("loss"), written.loss, LOSS)?,
        rounds_since_scheduled: written.rounds_since_scheduled,
        success: own_success(n, written.success, round)?,
    })
}

fn task(n: usize, name: &str, expected: &Expected) -> Result<usize, ObservationError> {
    let field = format!("terminals[{n}].task");
    let suite = expected.suite;
    let Some(named) = suite.task_index(name) else {
        return Checker.fail(field, name, format!("one of {}", suite.tasks.join(", ")));
    };
    let learned = expected.tasks.as_ref().and_then(|tasks| tasks.get(n)).copied();
    match learned {
        Some(task) if task != named => {
            let learned = format!("{}, the task it had in the run", suite.task_name(task));
            Checker.fail(field, name, learned)
        }
        _ => Ok(named),
    }
}
