//! The events of a run: where each round lies in `events.jsonl`, and every measurement.
//!
//! A long run has gigabytes of events. Only small events are parsed when the file is followed;
//! decisions and outcomes are parsed when a page asks for their round.

use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use tilp::record::event::{Header, SuccessColumns};
use tilp::record::{Event, EventId, n_far, wilson_95};
use tilp::round::SuccessCount;
use tilp::units::to_db;

use crate::bounded;

use super::slim::{GainsLine, parsed};
use super::tail::{Change, Tail};

/// Rounds that are indexed.
const MOST_ROUNDS: u64 = 2_000_000;

/// Events so far.
#[derive(Debug, Default)]
pub(super) struct Events {
    tail: Tail,
    last: Option<EventId>,
    /// Events so far.
    pub n: u64,
    /// Which run it is.
    pub header: Option<Header>,
    /// A number that tells this run from another in the same folder.
    pub fingerprint: u64,
    /// Where the events of round n + 1 are.
    pub rounds: Vec<RoundPlace>,
    /// All measurements.
    pub measured: Vec<Measured>,
    /// Large-scale gain of every terminal in the first round in which it was there.
    gains_db: BTreeMap<u32, f64>,
    /// What is wrong with the file, and where.
    pub error: Option<String>,
}

/// Offset and length of a line.
pub(super) type Span = (u64, u32);

/// Where the events of a round are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RoundPlace {
    /// The decision.
    pub decided: Option<Span>,
    /// The outcome.
    pub executed: Option<Span>,
}

/// Which episodes were run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Episodes {
    /// For calibration.
    Calibration,
    /// For the report.
    Report,
    /// At the end.
    Final,
}

impl Episodes {
    /// Its name in files.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Calibration => "calibration",
            Self::Report => "report",
            Self::Final => "final",
        }
    }
}

/// Success of the terminals at one moment.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    /// How many events were before it.
    pub place: u64,
    /// Which episodes.
    pub kind: Episodes,
    /// After this round.
    pub round: u64,
    /// Counts per terminal.
    pub counts: SuccessColumns,
    /// Counts of the far third; none while gains are not known.
    pub far: Option<SuccessCount>,
}

impl Measured {
    /// Counts of all terminals.
    pub(super) fn all(&self) -> SuccessCount {
        self.counts.counts().fold(SuccessCount::default(), SuccessCount::plus)
    }

    /// Counts of a task.
    pub(super) fn of_task(&self, task: usize) -> SuccessCount {
        let own = self.counts.task.iter().zip(self.counts.counts());
        own.filter(|(own, _)| **own == task)
            .map(|(_, count)| count)
            .fold(SuccessCount::default(), SuccessCount::plus)
    }
}

/// Successes, episodes, and the ends of the 95 % interval, if there is one.
pub(super) fn interval(count: SuccessCount) -> [Option<f64>; 4] {
    let ends = wilson_95(count);
    let SuccessCount { successes, episodes } = count;
    [
        Some(successes as f64),
        Some(episodes as f64),
        ends.map(|ends| ends[0]),
        ends.map(|ends| ends[1]),
    ]
}

impl Events {
    /// Reads what was appended.
    pub(super) fn refresh(&mut self, path: &Path) -> Change {
        let mut tail = std::mem::take(&mut self.tail);
        let change = tail.read(path, |line, is_start, offset| {
            if is_start {
                *self = Self::default();
            }
            match self.push(line, offset) {
                Ok(()) => true,
                Err(reason) => {
                    self.error = Some(format!("events.jsonl, line {}: {reason}", self.n + 1));
                    false
                }
            }
        });
        if matches!(change, Ok(Change::Reset)) && self.n == 0 {
            *self = Self { error: self.error.take(), ..Self::default() };
        }
        self.tail = tail;
        let change = change.unwrap_or_else(|error| {
            self.error = Some(format!("events.jsonl: {error}"));
            Change::Grown
        });
        if change != Change::None {
            self.find_far(path);
        }
        change
    }

    fn push(&mut self, line: &[u8], offset: u64) -> Result<(), String> {
        let event = match quick(line) {
            Some((_, id)) if self.last.is_some_and(|last| id <= last) => {
                return Err(format!("id {id:?} again, expected the next one"));
            }
            Some((kind, id)) => {
                self.check(id)?;
                let span = Some((offset, u32::try_from(line.len()).unwrap_or(u32::MAX)));
                let place = self.round_place(id)?;
                match kind {
                    Big::Decided => place.decided = span,
                    Big::Executed => place.executed = span,
                }
                self.step(id);
                return Ok(());
            }
            None => {
                let text =
                    std::str::from_utf8(line).map_err(|error| format!("not text: {error}"))?;
                Event::from_line(text)?
            }
        };
        let id = event.id();
        match event {
            Event::Header(header) if self.last.is_none() => {
                header.check()?;
                self.fingerprint = fnv(line);
                self.header = Some(header);
            }
            _ => {
                self.check(id)?;
                match event {
                    Event::Calibrated(one) => {
                        self.measure(Episodes::Calibration, id, one.terminals)?
                    }
                    Event::Measured(one) => self.measure(Episodes::Report, id, one.terminals)?,
                    Event::Finished(one) => self.measure(Episodes::Final, id, one.terminals)?,
                    // A decision or an outcome is recognised by its first bytes.
                    _ => return Err("an event out of its place".into()),
                }
            }
        }
        self.step(id);
        Ok(())
    }

    fn check(&self, id: EventId) -> Result<(), String> {
        match self.last {
            None => Err("no header, expected one at the start".into()),
            Some(last) if !id.follows(last) => {
                Err(format!("id {id:?} after {last:?}, expected the next one"))
            }
            Some(_) => Ok(()),
        }
    }

    fn step(&mut self, id: EventId) {
        self.last = Some(id);
        self.n += 1;
    }

    fn round_place(&mut self, id: EventId) -> Result<&mut RoundPlace, String> {
        let index = id.0.checked_sub(1).filter(|index| *index < MOST_ROUNDS);
        let index = index.ok_or_else(|| format!("round {}, expected 1 to {MOST_ROUNDS}", id.0))?;
        let index = index as usize;
        if self.rounds.len() <= index {
            self.rounds.resize(index + 1, RoundPlace::default());
        }
        Ok(&mut self.rounds[index])
    }

    fn measure(
        &mut self,
        kind: Episodes,
        id: EventId,
        counts: SuccessColumns,
    ) -> Result<(), String> {
        let n = counts.terminal.len();
        let lengths = [counts.task.len(), counts.successes.len(), counts.episodes.len()];
        let most =
            counts.counts().any(|one| one.successes > one.episodes || one.episodes > 1 << 32);
        if lengths.iter().any(|length| *length != n) || most {
            return Err("counts that cannot be, expected one entry per terminal".into());
        }
        self.measured.push(Measured { place: self.n, kind, round: id.0, counts, far: None });
        Ok(())
    }

    /// Counts of the far third wherever they are missing and gains are known.
    fn find_far(&mut self, path: &Path) {
        if self.rounds.is_empty() || self.measured.iter().all(|one| one.far.is_some()) {
            return;
        }
        let mut looked_at = 0;
        for n in 0..self.measured.len() {
            let (first, last) = (looked_at, (self.measured[n].round as usize).max(1));
            looked_at = last;
            if self.measured[n].far.is_some() {
                continue;
            }
            for round in first..last.min(self.rounds.len()) {
                let missing = |id: &u32| !self.gains_db.contains_key(id);
                if !self.measured[n].counts.terminal.iter().any(missing) {
                    break;
                }
                let Some(span) = self.rounds[round].decided else { continue };
                let read = line(path, span).ok().and_then(|line| parsed::<GainsLine>(&line));
                let Some(GainsLine { terminals }) = read else { continue };
                for (id, gain) in terminals.terminal.iter().zip(terminals.gain) {
                    self.gains_db.entry(*id).or_insert(to_db(gain.value()));
                }
            }
            let counts = &self.measured[n].counts;
            let own = counts.terminal.iter().zip(counts.counts());
            let own = own.filter_map(|(id, count)| Some((*self.gains_db.get(id)?, count)));
            let mut by_gain: Vec<(f64, SuccessCount)> = own.collect();
            if by_gain.is_empty() {
                continue;
            }
            by_gain.sort_by(|a, b| a.0.total_cmp(&b.0));
            let far = by_gain[..n_far(by_gain.len())].iter().map(|(_, count)| *count);
            self.measured[n].far = Some(far.fold(SuccessCount::default(), SuccessCount::plus));
        }
    }

    /// The measurement that shows the terminals after a round: the last one of the report, else of
    /// calibration; at the end the final one.
    pub(super) fn success_at(&self, round: u64) -> Option<&Measured> {
        let of = |kind: Episodes| {
            let mut all = self.measured.iter().rev();
            all.find(move |one| one.kind == kind && one.round <= round)
        };
        of(Episodes::Final).or_else(|| of(Episodes::Report)).or_else(|| of(Episodes::Calibration))
    }
}

/// Events that are not parsed at once.
enum Big {
    Decided,
    Executed,
}

/// Kind and id of a decision or an outcome by its first bytes, as they are written.
fn quick(line: &[u8]) -> Option<(Big, EventId)> {
    let (kind, rest) = if let Some(rest) = line.strip_prefix(br#"{"kind":"decided","id":["#) {
        (Big::Decided, rest)
    } else {
        (Big::Executed, line.strip_prefix(br#"{"kind":"executed","id":["#)?)
    };
    let head = std::str::from_utf8(rest.get(..rest.len().min(48))?).ok()?;
    let (numbers, _) = head.split_once(']')?;
    let (round, index) = numbers.split_once(',')?;
    Some((kind, EventId(round.parse().ok()?, index.parse().ok()?)))
}

fn fnv(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// A line of a file.
pub(super) fn line(path: &Path, (offset, length): Span) -> io::Result<Vec<u8>> {
    let mut file = bounded::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = vec![0; length as usize];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}
