//! An observation as JSON: what an integrator writes and `tilp plan` reads.
//!
//! The schema is in `docs/reference/observation.md`. Whatever the bytes, reading ends in an observation that a plan
//! can be made for, or in one line that says what is wrong where.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::{Checker, ExchangeError, LOSS, parse};
use crate::cost::Hardware;
use crate::round::{
    Budget, BudgetState, BudgetUse, MeasuredSuccess, Observation, SuccessCount, TerminalId,
    TerminalReport, TerminalView,
};
use crate::tasks::Suite;
use crate::units::{Bytes, Gain, Hertz, Joules, Seconds, from_db, to_db};

const CHECKER: Checker = Checker { what: "observation" };

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

/// What the base station observes before a round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Observation")]
pub struct ObservationMessage {
    /// The round to decide, counted from 1.
    round: u64,
    /// Seconds since the start.
    clock_s: f64,
    /// Whether copies are aggregated at the end of this round, as `learning.aggregate_every` says.
    aggregates: bool,
    /// Training loss of the round before; null before the first.
    loss: Option<f64>,
    /// What was last measured of each task, by its name; null before the first measurement.
    success: Option<BTreeMap<String, Count>>,
    /// Budgets of the run and what is used of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    budget: Option<BudgetMessage>,
    /// One entry per terminal that is present. Without ids: as many as `cell.n_terminals`.
    terminals: Vec<TerminalMessage>,
}

/// Successes among episodes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Count {
    /// Episodes that ended in success.
    pub successes: u64,
    /// Episodes run.
    pub episodes: u64,
}

/// What the base station observes of one terminal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Terminal")]
struct TerminalMessage {
    /// Its identity, from 0; without it the terminals are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<u32>,
    /// Large-scale gain of the channel in decibels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gain_db: Option<f64>,
    /// The same as a ratio of powers, to the last bit. One of the two is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gain: Option<f64>,
    /// Power of the small-scale fading, 1 in the mean.
    fading_power: f64,
    /// Its bandwidth in the round before.
    previous_bandwidth_hz: f64,
    /// Norm of its gradient when it last trained; null if it never did.
    gradient_norm: Option<f64>,
    /// Its loss when it last trained; null if it never did.
    loss: Option<f64>,
    /// Rounds since it was last scheduled: 1 if it was in the round before; null if it never was.
    rounds_since_scheduled: Option<u64>,
    /// Samples in its data set.
    n_samples: usize,
    /// Its memory budget.
    memory_bytes: u64,
    /// Name of its task. With `--from` it must be the task that the terminal had in the run.
    task: String,
    /// Front layers that it holds in their current version.
    held_layers: usize,
    /// Front layers it has trained since the last aggregation and not yet uploaded.
    owed_layers: usize,
    /// Its own success at the last calibration; null before the first. Observations of the first
    /// version do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    success: Option<Measured>,
    /// Energy that it has used of its own budget, in joules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    used_j: Option<f64>,
}

/// Success of one terminal at the last calibration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Measured {
    /// The round at whose end it was measured, before the one to decide.
    round: u64,
    /// Episodes that ended in success.
    successes: u64,
    /// Episodes run.
    episodes: u64,
}

/// Budgets of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Budget")]
struct BudgetMessage {
    /// Seconds of all rounds; null for no bound.
    seconds: Option<f64>,
    /// Joules of all terminals together.
    joules: Option<f64>,
    /// Joules of each terminal.
    joules_per_terminal: Option<f64>,
    /// Bytes on the air.
    bytes: Option<u64>,
    /// Seconds used so far.
    used_seconds: f64,
    /// Joules used so far.
    used_joules: f64,
    /// Bytes used so far.
    used_bytes: u64,
}

/// An observation as JSON. Reading it gives the same one, but for the last bits of the gains,
/// which are written in decibels only: a person may change them.
pub fn write_observation(seen: &Observation, suite: &Suite) -> String {
    let mut message = observation_message(seen, suite);
    let is_whole = seen.terminals.iter().zip(0..).all(|(view, n)| view.report.id == TerminalId(n));
    for terminal in &mut message.terminals {
        terminal.gain = None;
        terminal.id = terminal.id.filter(|_| !is_whole);
    }
    serde_json::to_string_pretty(&message).expect("an observation is plain data")
}

/// An observation for a program, to the last bit.
pub fn observation_message(seen: &Observation, suite: &Suite) -> ObservationMessage {
    let terminal = |view| terminal_message(view, seen.budget.as_ref(), suite);
    ObservationMessage {
        round: seen.round,
        clock_s: seen.clock.0,
        aggregates: seen.aggregates,
        loss: seen.loss,
        success: seen.success.as_ref().map(|counts| named(counts, suite)),
        budget: seen.budget.as_ref().map(budget_message),
        terminals: seen.terminals.iter().map(terminal).collect(),
    }
}

/// Counts by the name of their task.
pub(super) fn named(counts: &[SuccessCount], suite: &Suite) -> BTreeMap<String, Count> {
    let tasks = suite.tasks.iter().zip(counts);
    tasks.map(|(&name, &one)| (name.to_owned(), Count::from(one))).collect()
}

impl From<SuccessCount> for Count {
    fn from(SuccessCount { successes, episodes }: SuccessCount) -> Self {
        Self { successes, episodes }
    }
}

fn budget_message(state: &BudgetState) -> BudgetMessage {
    let BudgetState { budget, used } = state;
    BudgetMessage {
        seconds: budget.seconds.map(|one| one.0),
        joules: budget.joules.map(|one| one.0),
        joules_per_terminal: budget.joules_per_terminal.map(|one| one.0),
        bytes: budget.bytes.map(|one| one.0),
        used_seconds: used.seconds.0,
        used_joules: used.joules.0,
        used_bytes: used.bytes.0,
    }
}

fn terminal_message(
    view: &TerminalView,
    budget: Option<&BudgetState>,
    suite: &Suite,
) -> TerminalMessage {
    let id = view.report.id;
    TerminalMessage {
        id: Some(id.0),
        gain_db: Some(to_db(view.report.gain.0)),
        gain: Some(view.report.gain.0),
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
        used_j: budget.and_then(|state| state.used.terminals.get(&id)).map(|used| used.0),
    }
}

/// The observation in untrusted bytes.
pub fn read_observation(bytes: &[u8], expected: &Expected) -> Result<Observation, ExchangeError> {
    const HINT: &str = " as `tilp plan --example` prints it";
    parse::<ObservationMessage>(CHECKER.what, HINT, bytes)?.checked(expected)
}

impl ObservationMessage {
    /// The round to decide.
    pub fn round(&self) -> u64 {
        self.round
    }

    /// The observation, if every value is in its range and fits.
    pub fn checked(self, expected: &Expected) -> Result<Observation, ExchangeError> {
        let ids = self.ids(expected.hardware.len())?;
        let round = CHECKER.within("round", self.round, [1, 1_000_000_000])?;
        let every = expected.aggregate_every;
        let aggregates = round.is_multiple_of(every);
        if self.aggregates != aggregates {
            let law =
                format!("{aggregates} in round {round} with learning.aggregate_every = {every}");
            return CHECKER.fail("aggregates", self.aggregates, law);
        }
        let budget = self.budget.map(|one| budget(one, &self.terminals, &ids)).transpose()?;
        let terminals = self.terminals.into_iter().zip(&ids).enumerate();
        let view = |(n, (terminal, &id))| terminal_view(n, id, terminal, round, expected);
        Ok(Observation {
            round,
            clock: Seconds(CHECKER.within("clock_s", self.clock_s, [0.0, 1e12])?),
            aggregates,
            loss: CHECKER.maybe("loss", self.loss, LOSS)?,
            success: self
                .success
                .map(|counts| success(CHECKER, counts, expected.suite))
                .transpose()?,
            budget,
            terminals: terminals.map(view).collect::<Result<_, _>>()?,
        })
    }

    /// The identities of the terminals. Without ids all terminals must be there.
    fn ids(&self, n_terminals: usize) -> Result<Vec<TerminalId>, ExchangeError> {
        let found = self.terminals.len();
        let n_named = self.terminals.iter().filter(|one| one.id.is_some()).count();
        if n_named != found || found == 0 {
            if found != n_terminals {
                let scenario =
                    format!("{n_terminals}, as many as the scenario has (cell.n_terminals)");
                return CHECKER.fail("terminals", format!("{found} terminals"), scenario);
            }
            if n_named > 0 {
                return CHECKER.fail(
                    "terminals",
                    format!("{n_named} ids"),
                    "an id for all or none",
                );
            }
            return Ok((0..n_terminals as u32).map(TerminalId).collect());
        }
        let mut least = 0;
        for (n, id) in self.terminals.iter().filter_map(|one| one.id).enumerate() {
            if id < least || id as usize >= n_terminals {
                let most = n_terminals.saturating_sub(1);
                let expected = format!("ids in ascending order, at most {most}");
                return CHECKER.fail(format!("terminals[{n}].id"), id, expected);
            }
            least = id + 1;
        }
        Ok(self.terminals.iter().filter_map(|one| one.id).map(TerminalId).collect())
    }
}

fn budget(
    written: BudgetMessage,
    terminals: &[TerminalMessage],
    ids: &[TerminalId],
) -> Result<BudgetState, ExchangeError> {
    let bound = |field: &str, value: Option<f64>| {
        CHECKER.maybe(format!("budget.{field}"), value, [1e-12, 1e18])
    };
    let used = |field: String, value: f64| CHECKER.within(field, value, [0.0, 1e18]);
    let bytes = |field: &str, value: u64| {
        CHECKER.within(format!("budget.{field}"), value, [0, 1 << 53]).map(Bytes)
    };
    let mut own = BTreeMap::new();
    for (n, (terminal, &id)) in terminals.iter().zip(ids).enumerate() {
        if let Some(joules) = terminal.used_j {
            own.insert(id, Joules(used(format!("terminals[{n}].used_j"), joules)?));
        }
    }
    Ok(BudgetState {
        budget: Budget {
            seconds: bound("seconds", written.seconds)?.map(Seconds),
            joules: bound("joules", written.joules)?.map(Joules),
            joules_per_terminal: bound("joules_per_terminal", written.joules_per_terminal)?
                .map(Joules),
            bytes: written.bytes.map(|value| bytes("bytes", value)).transpose()?,
        },
        used: BudgetUse {
            seconds: Seconds(used("budget.used_seconds".into(), written.used_seconds)?),
            joules: Joules(used("budget.used_joules".into(), written.used_joules)?),
            bytes: bytes("used_bytes", written.used_bytes)?,
            terminals: own,
        },
    })
}

/// Counts by the name of the task; a task that is not named was not measured.
pub(super) fn success(
    checker: Checker,
    counts: BTreeMap<String, Count>,
    suite: &Suite,
) -> Result<Vec<SuccessCount>, ExchangeError> {
    let mut all = vec![SuccessCount::default(); suite.tasks.len()];
    for (name, count) in counts {
        let field = format!("success.{name}");
        let Some(task) = suite.task_index(&name) else {
            let known = format!("names among {}", suite.tasks.join(", "));
            return checker.fail("success", name, known);
        };
        all[task] = success_count(checker, &field, count)?;
    }
    Ok(all)
}

pub(super) fn success_count(
    checker: Checker,
    field: &str,
    Count { successes, episodes }: Count,
) -> Result<SuccessCount, ExchangeError> {
    checker.within(format!("{field}.episodes"), episodes, [0, 1_000_000_000])?;
    checker.within(format!("{field}.successes"), successes, [0, episodes])?;
    Ok(SuccessCount { successes, episodes })
}

/// A terminal's own success. It was measured before the round that is planned.
fn own_success(
    n: usize,
    written: Option<Measured>,
    round: u64,
) -> Result<Option<MeasuredSuccess>, ExchangeError> {
    let Some(Measured { round: measured, successes, episodes }) = written else { return Ok(None) };
    let field = format!("terminals[{n}].success");
    if measured == 0 || measured >= round {
        let expected = format!("a round from 1 on, before round {round}");
        return CHECKER.fail(format!("{field}.round"), measured, expected);
    }
    let count = success_count(CHECKER, &field, Count { successes, episodes })?;
    Ok(Some(MeasuredSuccess { round: measured, count }))
}

fn terminal_view(
    n: usize,
    id: TerminalId,
    written: TerminalMessage,
    round: u64,
    expected: &Expected,
) -> Result<TerminalView, ExchangeError> {
    let at = |field: &str| format!("terminals[{n}].{field}");
    let layers = [0, expected.n_layers];
    let bandwidth = written.previous_bandwidth_hz;
    let report = TerminalReport {
        id,
        hardware: expected.hardware[id.0 as usize],
        memory: Bytes(CHECKER.within(at("memory_bytes"), written.memory_bytes, [1, 1 << 53])?),
        n_samples: CHECKER.within(at("n_samples"), written.n_samples, [1, 1_000_000_000])?,
        task: task(n, id, &written.task, expected)?,
        gain: gain(n, &written)?,
        fading_power: CHECKER.within(at("fading_power"), written.fading_power, [0.0, 1e6])?,
        held_layers: CHECKER.within(at("held_layers"), written.held_layers, layers)?,
        owed_layers: CHECKER.within(at("owed_layers"), written.owed_layers, layers)?,
    };
    Ok(TerminalView {
        report,
        previous_bandwidth: Hertz(CHECKER.within(
            at("previous_bandwidth_hz"),
            bandwidth,
            [0.0, 1e12],
        )?),
        gradient_norm: CHECKER.maybe(at("gradient_norm"), written.gradient_norm, [0.0, 1e12])?,
        loss: CHECKER.maybe(at("loss"), written.loss, LOSS)?,
        rounds_since_scheduled: written.rounds_since_scheduled,
        success: own_success(n, written.success, round)?,
    })
}

/// The gain, given in decibels, as a ratio, or both ways if they agree.
fn gain(n: usize, written: &TerminalMessage) -> Result<Gain, ExchangeError> {
    let at = |field: &str| format!("terminals[{n}].{field}");
    let ratio = CHECKER.maybe(at("gain"), written.gain, [1e-30, 1e5])?;
    let decibels = CHECKER.maybe(at("gain_db"), written.gain_db, [-300.0, 50.0])?;
    match (ratio, decibels) {
        (None, None) => CHECKER.fail(at("gain_db"), "nothing", "a gain in decibels"),
        (None, Some(decibels)) => Ok(Gain(from_db(decibels))),
        (Some(ratio), Some(decibels)) if (to_db(ratio) - decibels).abs() > 1e-6 => {
            let expected = format!("{} as {} says, or no {}", to_db(ratio), at("gain"), at("gain"));
            CHECKER.fail(at("gain_db"), decibels, expected)
        }
        (Some(ratio), _) => Ok(Gain(ratio)),
    }
}

fn task(n: usize, id: TerminalId, name: &str, expected: &Expected) -> Result<usize, ExchangeError> {
    let field = format!("terminals[{n}].task");
    let suite = expected.suite;
    let Some(named) = suite.task_index(name) else {
        return CHECKER.fail(field, name, format!("one of {}", suite.tasks.join(", ")));
    };
    let learned = expected.tasks.as_ref().and_then(|tasks| tasks.get(id.0 as usize)).copied();
    match learned {
        Some(task) if task != named => {
            let learned = format!("{}, the task it had in the run", suite.task_name(task));
            CHECKER.fail(field, name, learned)
        }
        _ => Ok(named),
    }
}
