//! The files that grow with a run: events, the rows made of them, and the scalars for TensorBoard.

use sha2::{Digest, Sha256};

use super::appended::Appended;
use super::csv_file::csv_lines;
use super::event::{Event, Header, read_events};
use super::files::{CALIBRATION, EVENTS, ROUNDS, SCALARS};
use super::fingerprint::hex;
use super::{
    Checkpoint, Files, History, Identity, RecordError, RunFolder, ScalarEvents, StreamMark,
    calibrations_to_csv, rounds_to_csv,
};

/// The events of a run so far and the rows made of them: in memory, not yet on disk.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// The rows.
    pub history: History,
    bytes: Vec<u8>,
    events: u64,
}

impl Stream {
    /// Adds an event.
    pub fn push(&mut self, event: &Event) -> Result<(), RecordError> {
        self.history.push(event).map_err(|reason| RecordError::Encode { name: EVENTS, reason })?;
        self.bytes.extend(event.to_line().into_bytes());
        self.events += 1;
        Ok(())
    }

    /// The events that belong to a checkpoint, read from its folder. Their number, their digest,
    /// their header, and the round of the last one must be the checkpoint's. What the folder holds
    /// beyond them is ignored.
    pub fn of_checkpoint(folder: &RunFolder, checkpoint: &Checkpoint) -> Result<Self, RecordError> {
        let (path, mut bytes) = folder.read(EVENTS)?;
        let wrong = |reason: String| RecordError::Malformed { path: path.clone(), reason };
        let StreamMark { events, bytes: length, sha256 } = &checkpoint.stream;
        let found = bytes.len();
        let length = usize::try_from(*length).ok().filter(|length| *length <= found);
        let Some(length) = length else {
            let expected = checkpoint.stream.bytes;
            return Err(wrong(format!("{found} bytes, expected {expected} of the checkpoint")));
        };
        bytes.truncate(length);
        if hex(&Sha256::digest(&bytes)) != *sha256 {
            return Err(wrong(format!("the first {length} bytes are not those of the checkpoint")));
        }
        check_identity(&bytes, &checkpoint.identity).map_err(wrong)?;
        let history = History::of_stream(&bytes).map_err(wrong)?;
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        if lines != *events || bytes.last() != Some(&b'\n') {
            return Err(wrong(format!("{lines} events, expected {events} of the checkpoint")));
        }
        let (found, expected) = (history.last_event().map_or(0, |id| id.0), checkpoint.round);
        if found != expected || history.last_round() != expected {
            return Err(wrong(format!("events up to round {found}, expected round {expected}")));
        }
        Ok(Self { history, bytes, events: *events })
    }

    /// The files of a new run that grow with it.
    pub fn files(&self) -> Files {
        Files::new().lines(&self.history).events(self.bytes.clone())
    }

    /// The events.
    pub fn events(&self) -> Vec<Event> {
        read_events(&self.bytes).filter_map(Result::ok).collect()
    }

    /// How much there is.
    pub fn mark(&self) -> StreamMark {
        let sha256 = hex(&Sha256::digest(&self.bytes));
        StreamMark { events: self.events, bytes: self.bytes.len() as u64, sha256 }
    }

    /// Opens the files to append to. They are cut back to these events. `now_s` is the wall time in
    /// seconds since 1970: the start of the run, if its folder does not say another.
    pub fn open(self, folder: &RunFolder, now_s: f64) -> Result<Journal, RecordError> {
        let Self { history, bytes, events } = self;
        let path = |name: &str| folder.path().join(name);
        let rounds = rounds_to_csv(&history.rounds);
        let calibrations = calibrations_to_csv(&history.calibrations, &history.tasks);
        let start_s = folder.keep_one_board()?.unwrap_or(now_s as u64);
        let mut scalars = ScalarEvents::new(start_s);
        let mut drawn = scalars.start();
        history.rounds.iter().for_each(|row| drawn.extend(scalars.round(row)));
        let board = path(&format!("{SCALARS}.{start_s:010}.tilp"));
        Ok(Journal {
            written: Written::of(&history),
            events: Appended::cut_to(path(EVENTS), &bytes)?,
            rounds: Appended::cut_to(path(ROUNDS), rounds.as_bytes())?,
            calibrations: Appended::cut_to(path(CALIBRATION), calibrations.as_bytes())?,
            board: Appended::cut_to(board, &drawn)?,
            scalars,
            hash: Sha256::new_with_prefix(&bytes),
            n_bytes: bytes.len() as u64,
            n_events: events,
            history,
            pending: Vec::new(),
            n_pending: 0,
        })
    }
}

fn check_identity(bytes: &[u8], identity: &Identity) -> Result<(), String> {
    let first = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let found = std::str::from_utf8(first).map_err(|error| error.to_string());
    let Ok(Event::Header(found)) = found.and_then(Event::from_line) else {
        return Err("no header, expected one at the start".into());
    };
    let expected = Header::new(identity, &found.tasks).with_names(found.names.clone());
    match found == expected {
        true => Ok(()),
        false => Err("the header is of another run than the checkpoint".into()),
    }
}

/// How many rows are on disk.
#[derive(Debug)]
struct Written {
    rounds: usize,
    calibrations: usize,
}

impl Written {
    fn of(history: &History) -> Self {
        Self { rounds: history.rounds.len(), calibrations: history.calibrations.len() }
    }
}

/// Writes the files that grow with a run: once a round, when it is complete.
#[derive(Debug)]
pub struct Journal {
    history: History,
    written: Written,
    events: Appended,
    rounds: Appended,
    calibrations: Appended,
    board: Appended,
    scalars: ScalarEvents,
    hash: Sha256,
    n_bytes: u64,
    n_events: u64,
    /// Events that are not on disk yet.
    pending: Vec<u8>,
    n_pending: u64,
}

impl Journal {
    /// Takes an event. It is on disk with the next [`Journal::flush`].
    pub fn push(&mut self, event: &Event) -> Result<(), RecordError> {
        self.history.push(event).map_err(|reason| RecordError::Encode { name: EVENTS, reason })?;
        self.pending.extend(event.to_line().into_bytes());
        self.n_pending += 1;
        Ok(())
    }

    /// The rows.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Appends what has happened since the last time: one write for each file.
    pub fn flush(&mut self) -> Result<(), RecordError> {
        let Written { rounds, calibrations } = self.written;
        self.events.append(&self.pending)?;
        self.hash.update(&self.pending);
        self.n_bytes += self.pending.len() as u64;
        self.n_events += self.n_pending;
        self.pending.clear();
        self.n_pending = 0;
        let new = &self.history.rounds[rounds..];
        let drawn: Vec<u8> = new.iter().flat_map(|row| self.scalars.round(row)).collect();
        self.rounds.append(csv_lines(new, &[]).as_bytes())?;
        let History { calibrations: rows, tasks, .. } = &self.history;
        self.calibrations.append(csv_lines(&rows[calibrations..], tasks).as_bytes())?;
        self.board.append(&drawn)?;
        self.written = Written::of(&self.history);
        Ok(())
    }

    /// Makes what was appended last.
    pub fn sync(&self) -> Result<(), RecordError> {
        [&self.events, &self.rounds, &self.calibrations].into_iter().try_for_each(Appended::sync)
    }

    /// How much is on disk.
    pub fn mark(&self) -> StreamMark {
        let sha256 = hex(&self.hash.clone().finalize());
        StreamMark { events: self.n_events, bytes: self.n_bytes, sha256 }
    }
}
