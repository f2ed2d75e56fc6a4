//! One run folder, followed while it grows.
//!
//! Rows come from `rounds.csv`, everything else from `events.jsonl`. Both are appended to; what is
//! sent to a page is what it has not got yet.

mod about;
mod cursor;
mod events;
mod rows;
mod slim;
mod tail;
mod tracks;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tilp::record::RoundRow;

pub(crate) use about::{About, State};
pub(crate) use cursor::Cursor;
use events::{Events, Measured, Span, interval, line};
use rows::Rows;
use tail::Change;
use tracks::Tracks;

use crate::discover::Place;

/// A run folder.
#[derive(Debug)]
pub struct Run {
    /// Its id, and where it is.
    pub place: Place,
    about: Mutex<About>,
    data: Mutex<Data>,
    tracks: Mutex<Tracks>,
    /// Pages that look at it.
    watchers: AtomicUsize,
    /// Rises with every change that was read.
    version: AtomicU64,
    /// The version that streams were woken for.
    told: AtomicU64,
    shared: Mutex<Shared>,
}

/// Messages of one version: pages that have the same get the same text.
#[derive(Debug, Default)]
struct Shared {
    version: u64,
    messages: BTreeMap<String, Option<(Cursor, Arc<str>)>>,
}

/// Messages that are kept at a time. Pages that listen all have the same cursor.
const MOST_MESSAGES: usize = 16;

#[derive(Debug, Default)]
struct Data {
    rows: Rows,
    events: Events,
}

/// Something that was asked of a run and is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing(pub String);

/// A page that looks at a run, until it is dropped.
pub struct Watch(Arc<Run>);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.watchers.fetch_sub(1, Ordering::SeqCst);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Run {
    /// A run of which nothing was read yet.
    pub fn new(place: Place) -> Self {
        Self {
            place,
            about: Mutex::default(),
            data: Mutex::default(),
            tracks: Mutex::default(),
            watchers: AtomicUsize::new(0),
            version: AtomicU64::new(1),
            told: AtomicU64::new(0),
            shared: Mutex::default(),
        }
    }

    /// Counts a page that looks at it.
    pub fn watch(self: &Arc<Self>) -> Watch {
        self.watchers.fetch_add(1, Ordering::SeqCst);
        Watch(Arc::clone(self))
    }

    /// Whether a page looks at it.
    pub fn is_watched(&self) -> bool {
        self.watchers.load(Ordering::SeqCst) > 0
    }

    fn file(&self, name: &str) -> PathBuf {
        self.place.path.join(name)
    }

    /// What a list shows of it.
    pub fn about(&self) -> About {
        let mut about = locked(&self.about);
        let before = about.state;
        about.refresh(&self.place.path);
        if about.state != before {
            self.version.fetch_add(1, Ordering::SeqCst);
        }
        about.clone()
    }

    /// The name of its scenario.
    pub fn scenario(&self) -> Option<String> {
        let about = locked(&self.about);
        about.manifest.get("scenario").and_then(Value::as_str).map(str::to_owned)
    }

    /// Calls `of` with the rows so far.
    pub fn with_rows<T>(&self, of: impl FnOnce(&[RoundRow]) -> T) -> T {
        let mut data = locked(&self.data);
        if data.rows.refresh(&self.file("rounds.csv")) != Change::None {
            self.version.fetch_add(1, Ordering::SeqCst);
        }
        of(&data.rows.all)
    }

    /// Reads what was appended, unless another thread does. True if there is something that
    /// streams were not yet woken for.
    pub fn poll(&self) -> bool {
        match self.data.try_lock() {
            Ok(mut data) => self.read(&mut data),
            Err(TryLockError::Poisoned(data)) => self.read(&mut data.into_inner()),
            Err(TryLockError::WouldBlock) => {}
        }
        self.about();
        let now = self.version.load(Ordering::SeqCst);
        self.told.swap(now, Ordering::SeqCst) != now
    }

    fn read(&self, data: &mut Data) {
        let changes = [
            data.events.refresh(&self.file("events.jsonl")),
            data.rows.refresh(&self.file("rounds.csv")),
        ];
        if changes.contains(&Change::Reset) {
            *locked(&self.tracks) = Tracks::default();
        }
        if changes.iter().any(|change| *change != Change::None) {
            self.version.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn data(&self) -> MutexGuard<'_, Data> {
        let mut data = locked(&self.data);
        self.read(&mut data);
        data
    }

    /// The same as [`Run::message`], made once for all pages at a cursor. It is as new as the last
    /// [`Run::poll`].
    pub fn shared_message(&self, from: Option<&Cursor>) -> Option<(Cursor, Arc<str>)> {
        let key = from.map_or(String::new(), Cursor::to_string);
        let mut shared = locked(&self.shared);
        let version = self.version.load(Ordering::SeqCst);
        if shared.version != version || shared.messages.len() >= MOST_MESSAGES {
            *shared = Shared { version, messages: BTreeMap::new() };
        }
        if let Some(known) = shared.messages.get(&key) {
            return known.clone();
        }
        let message: Option<(Cursor, Arc<str>)> =
            self.message(from).map(|(cursor, text)| (cursor, text.into()));
        shared.messages.insert(key, message.clone());
        message
    }

    /// What a page at a cursor lacks, and its cursor then; none if it has everything. A page
    /// without a cursor, or with one of other files, gets everything.
    pub fn message(&self, from: Option<&Cursor>) -> Option<(Cursor, String)> {
        let about = self.about();
        let data = self.data();
        let now = Cursor {
            fingerprint: data.events.fingerprint,
            rows: data.rows.all.len() as u64,
            events: data.events.n,
            state: about.state,
        };
        if from == Some(&now) {
            return None;
        }
        let from = from.filter(|from| from.is_before(&now));
        let (rows, events) = from.map_or((0, 0), |from| (from.rows, from.events));
        // The far third is known from the first decision on: earlier measurements are sent again.
        let first = if events <= 2 { 0 } else { events };
        let measured = data.events.measured.iter().filter(|one| one.place >= first);
        let n_tasks = data.events.header.as_ref().map_or(0, |header| header.tasks.len());
        let mut message = json!({
            "run": self.place.id,
            "reset": from.is_none(),
            "first_row": rows,
            "rows": data.rows.columns(rows as usize),
            "measured": measured.map(|one| summary(one, n_tasks)).collect::<Vec<_>>(),
            "state": about.state.name(),
            "decided": data.events.rounds.len(),
            "error": data.events.error.as_ref().or(data.rows.error.as_ref()),
        });
        if from.is_none() {
            message["about"] = about.details(data.events.header.as_ref());
        }
        if about.state == State::Finished {
            message["summary"] = about.summary.clone();
        }
        Some((now, message.to_string()))
    }

    /// The events of a round, as they are in the file, with the success of the terminals then.
    pub fn round(&self, round: u64) -> Result<String, Missing> {
        let data = self.data();
        let index = (round as usize).checked_sub(1);
        let place = index.and_then(|index| data.events.rounds.get(index)).copied();
        let place = place.ok_or_else(|| Missing(format!("round {round} is not there")))?;
        let success = data.events.success_at(round).map(|one| {
            json!({
                "kind": one.kind.name(),
                "round": one.round,
                "terminal": one.counts.terminal,
                "successes": one.counts.successes,
                "episodes": one.counts.episodes,
            })
        });
        drop(data);
        let decided = self.raw(place.decided, round)?;
        let executed = self.raw(place.executed, round)?;
        Ok(format!(
            "{{\"round\":{round},\"decided\":{},\"executed\":{},\"success\":{}}}",
            decided.as_deref().unwrap_or("null"),
            executed.as_deref().unwrap_or("null"),
            success.map_or("null".to_owned(), |success| success.to_string()),
        ))
    }

    /// A line of the events, which must be JSON: it goes into an answer as it is.
    fn raw(&self, span: Option<Span>, round: u64) -> Result<Option<String>, Missing> {
        let Some(span) = span else { return Ok(None) };
        let damaged = || Missing(format!("round {round} is damaged in events.jsonl"));
        let bytes =
            line(&self.file("events.jsonl"), span).map_err(|error| Missing(error.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|_| damaged())?;
        serde_json::from_str::<IgnoredAny>(&text).map_err(|_| damaged())?;
        Ok(Some(text.trim_end().to_owned()))
    }

    /// The last round that was executed; 0 before the first.
    pub fn last_round(&self) -> u64 {
        let data = self.data();
        let executed = data.events.rounds.iter().rposition(|place| place.executed.is_some());
        executed.map_or(0, |index| index as u64 + 1)
    }

    /// A number that tells this run from another in the same folder.
    pub fn fingerprint(&self) -> u64 {
        self.data().events.fingerprint
    }

    /// Successes and episodes of a terminal at a measurement of this kind.
    pub fn counts(&self, kind: &str, round: u64, terminal: u32) -> Option<[u64; 2]> {
        let data = self.data();
        let mut all = data.events.measured.iter();
        let found = all.find(|one| one.kind.name() == kind && one.round == round)?;
        let n = found.counts.terminal.iter().position(|own| *own == terminal)?;
        Some([found.counts.successes[n], found.counts.episodes[n]])
    }

    /// Calls `of` with the histories of all rounds so far.
    fn with_tracks<T>(&self, of: impl FnOnce(&Tracks) -> T) -> T {
        let rounds = self.data().events.rounds.clone();
        let mut tracks = locked(&self.tracks);
        tracks.extend(&self.file("events.jsonl"), &rounds);
        of(&tracks)
    }

    /// The history of a terminal, with its success at every measurement.
    pub fn terminal(&self, id: u32) -> Result<Value, Missing> {
        let track = self.with_tracks(|tracks| tracks.terminal(id));
        let mut track = track.ok_or_else(|| Missing(format!("terminal {id} is not there")))?;
        let data = self.data();
        let own = data.events.measured.iter().filter_map(|one| {
            let n = one.counts.terminal.iter().position(|own| *own == id)?;
            let counts = (one.counts.successes[n], one.counts.episodes[n]);
            Some(json!([one.kind.name(), one.round, counts.0, counts.1]))
        });
        track["measured"] = own.collect();
        track["terminal"] = json!(id);
        Ok(track)
    }

    /// Energy of every terminal up to a round.
    pub fn spent(&self, round: u64) -> Value {
        self.with_tracks(|tracks| tracks.spent(round))
    }

    /// Predictions beside what came of them.
    pub fn predictions(&self) -> Value {
        self.with_tracks(Tracks::predictions)
    }
}

/// A measurement without its terminals.
fn summary(one: &Measured, n_tasks: usize) -> Value {
    json!({
        "kind": one.kind.name(),
        "round": one.round,
        "all": interval(one.all()),
        "far": one.far.map(interval),
        "tasks": (0..n_tasks.min(256)).map(|task| interval(one.of_task(task))).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests;
