//! How much of a run a page has: what it sends when it comes back (`Last-Event-ID`).

use std::fmt;
use std::str::FromStr;

use super::State;

/// A place in the files of a run. It holds for any server that reads the same files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// Which run it is.
    pub fingerprint: u64,
    /// Rows of `rounds.csv`.
    pub rows: u64,
    /// Events.
    pub events: u64,
    /// What was going on.
    pub state: State,
}

impl Cursor {
    /// Whether a page here needs only what came since to be at `now`. Runs are deterministic: a run
    /// that was cut back and has gone on beyond this place has the same rows up to here.
    pub fn is_before(&self, now: &Self) -> bool {
        self.fingerprint == now.fingerprint && self.rows <= now.rows && self.events <= now.events
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { fingerprint, rows, events, state } = self;
        write!(f, "{fingerprint:016x}.{rows}.{events}.{}", state.name())
    }
}

impl FromStr for Cursor {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let parts: Vec<&str> = text.split('.').collect();
        let [fingerprint, rows, events, state] = parts[..] else { return Err(()) };
        Ok(Self {
            fingerprint: u64::from_str_radix(fingerprint, 16).map_err(|_| ())?,
            rows: rows.parse().map_err(|_| ())?,
            events: events.parse().map_err(|_| ())?,
            state: State::from_name(state).ok_or(())?,
        })
    }
}
