//! The stream of a run: one event for everything that happens in it, in the order in which it
//! happens. It is the one source of rows, metrics and views.
//!
//! An event depends on scenario, method and seed alone: it contains no wall time. Lists over
//! terminals are columns: entry `n` of every list in `terminals` belongs to the same terminal.

mod decided;
mod executed;
mod number;

pub use decided::{Decided, DecidedTerminals, RationaleLine, RationaleTerminals, ReasonLine};
pub use executed::{BookedTerminals, Books, Executed, ExecutedTerminals, LossesLine};
pub use number::Number;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Identity, Summary, format, success_rate};
use crate::round::{SuccessCount, TerminalSuccess};

/// Round and place in the round, both of which count without gaps. Round 0 is what comes before
/// the first round.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct EventId(pub u64, pub u64);

impl EventId {
    /// The id of the next event of the same round.
    pub fn next(self) -> Self {
        Self(self.0, self.1 + 1)
    }

    /// Whether an event with this id may come right after one with the id `before`.
    pub fn follows(self, before: Self) -> bool {
        self == before.next() || self == Self(before.0 + 1, 0)
    }
}

/// Something that happened in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Event {
    /// The first event: which run this is.
    Header(Header),
    /// The base station decided.
    Decided(Box<Decided>),
    /// The cell executed the decision.
    Executed(Box<Executed>),
    /// Success was measured for calibration.
    Calibrated(Measurement),
    /// Success was measured for the report. No method sees it. Round 0 is the base policy.
    Measured(Measurement),
    /// The last event: success on final episodes, and the metrics of the run.
    Finished(Box<Finished>),
}

impl Event {
    /// Its id.
    pub fn id(&self) -> EventId {
        match self {
            Self::Header(event) => event.id,
            Self::Decided(event) => event.id,
            Self::Executed(event) => event.id,
            Self::Calibrated(event) | Self::Measured(event) => event.id,
            Self::Finished(event) => event.id,
        }
    }

    /// The event as a line of `events.jsonl`, with its end.
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).expect("an event is plain data") + "\n"
    }

    /// The event in an untrusted line.
    pub fn from_line(line: &str) -> Result<Self, String> {
        serde_json::from_str(line).map_err(|error| error.to_string())
    }
}

/// Which run this is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Header {
    /// Always `[0, 0]`.
    pub id: EventId,
    /// Always `tilp-events`.
    pub format: String,
    /// Version of the format.
    pub version: u64,
    /// Name of the method.
    pub method: String,
    /// The seed.
    pub seed: u64,
    /// Replicate of the seed; not written if it is 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub replicate: u64,
    /// Hash of the resolved scenario.
    pub scenario_hash: String,
    /// Names of the tasks, in the order of their indices.
    pub tasks: Vec<String>,
    /// Names of the terminals by id, empty for those without; not written if none has a name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Header {
    /// The header of a run.
    pub fn new(identity: &Identity, tasks: &[String]) -> Self {
        Self {
            id: EventId(0, 0),
            format: format::EVENTS_NAME.to_owned(),
            version: format::EVENTS,
            method: identity.method.clone(),
            seed: identity.seed,
            replicate: identity.replicate,
            scenario_hash: identity.scenario.clone(),
            tasks: tasks.to_vec(),
            names: Vec::new(),
        }
    }

    /// The same with names of terminals.
    pub fn with_names(self, names: Vec<String>) -> Self {
        Self { names, ..self }
    }

    /// An error unless this version of the program reads the stream.
    pub fn check(&self) -> Result<(), String> {
        match (&self.format[..], self.version) {
            (format::EVENTS_NAME, format::EVENTS) => Ok(()),
            (format::EVENTS_NAME, found) => {
                Err(format!("format version {found}, expected {}", format::EVENTS))
            }
            (found, _) => Err(format!("format {found:?}, expected {:?}", format::EVENTS_NAME)),
        }
    }
}

/// Success of each terminal at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measurement {
    /// Its id; the round is the one at whose end the episodes were run.
    pub id: EventId,
    /// One entry per terminal that was measured.
    pub terminals: SuccessColumns,
}

impl Measurement {
    /// Success of these terminals.
    pub fn new(id: EventId, counts: &[TerminalSuccess]) -> Self {
        Self { id, terminals: counts.iter().collect() }
    }

    /// Success over all its episodes; none without an episode.
    pub fn rate(&self) -> Option<f64> {
        success_rate(self.terminals.counts())
    }
}

/// Successes among episodes, terminal by terminal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SuccessColumns {
    /// Ids of the terminals.
    pub terminal: Vec<u32>,
    /// Indices of their tasks.
    pub task: Vec<usize>,
    /// Episodes that ended in success.
    pub successes: Vec<u64>,
    /// Episodes run.
    pub episodes: Vec<u64>,
}

impl SuccessColumns {
    /// The counts alone.
    pub fn counts(&self) -> impl Iterator<Item = SuccessCount> + Clone + '_ {
        let pairs = self.successes.iter().zip(&self.episodes);
        pairs.map(|(&successes, &episodes)| SuccessCount { successes, episodes })
    }

    /// An error unless the columns are of one length and their counts are possible.
    pub(super) fn check(&self) -> Result<(), String> {
        let n = self.terminal.len();
        let lengths = [self.task.len(), self.successes.len(), self.episodes.len()];
        if lengths.iter().any(|length| *length != n) {
            return Err("columns of different lengths, expected one entry per terminal".into());
        }
        match self.counts().find(|one| one.successes > one.episodes || one.episodes > MOST) {
            Some(SuccessCount { successes, episodes }) => {
                Err(format!("{successes} successes in {episodes} episodes, expected fewer"))
            }
            None => Ok(()),
        }
    }
}

/// No measurement has more episodes of a terminal; sums of them cannot overflow.
const MOST: u64 = 1 << 32;

impl<'a> FromIterator<&'a TerminalSuccess> for SuccessColumns {
    fn from_iter<I: IntoIterator<Item = &'a TerminalSuccess>>(counts: I) -> Self {
        let mut columns = Self::default();
        for one in counts {
            columns.terminal.push(one.id.0);
            columns.task.push(one.task);
            columns.successes.push(one.count.successes);
            columns.episodes.push(one.count.episodes);
        }
        columns
    }
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finished {
    /// Its id, in the last round.
    pub id: EventId,
    /// Success on final episodes, one entry per terminal.
    pub terminals: SuccessColumns,
    /// The metrics of `summary.json`.
    pub summary: Summary,
}

/// The events in the complete lines of a stream, each of which must follow the one before.
pub fn read_events(bytes: &[u8]) -> impl Iterator<Item = Result<Event, String>> + '_ {
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let mut last: Option<EventId> = None;
    let lines = bytes[..whole].split_inclusive(|byte| *byte == b'\n').zip(1..);
    lines.map(move |(line, number)| {
        let event = read_event(line, last).map_err(|error| format!("line {number}: {error}"))?;
        last = Some(event.id());
        Ok(event)
    })
}

fn read_event(line: &[u8], last: Option<EventId>) -> Result<Event, String> {
    let text = std::str::from_utf8(line).map_err(|error| format!("not text: {error}"))?;
    let event = Event::from_line(text)?;
    match (&event, last) {
        (Event::Header(header), None) => header.check()?,
        (_, None) => return Err("no header, expected one at the start".into()),
        (Event::Header(_), Some(_)) => return Err("a second header, expected one".into()),
        (_, Some(last)) if !event.id().follows(last) => {
            return Err(format!("id {:?} after {last:?}, expected the next one", event.id()));
        }
        _ => {}
    }
    Ok(event)
}
