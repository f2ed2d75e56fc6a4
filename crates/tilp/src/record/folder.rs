//! The run folder. A new folder appears all at once. Files that grow with the run are appended to
//! (`stream.rs`); every other file is written aside and renamed.

use std::collections::hash_map::RandomState;
use std::fs::{self, File, TryLockError};
use std::hash::{BuildHasher, Hasher};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::event::{Event, read_events};
use super::files::{
    CALIBRATION, CHECKPOINT, EPISODES, EVENTS, LOCK, MANIFEST, ROUNDS, SCALARS, SCENARIO, SUMMARY,
    TERMINALS,
};
use super::{
    CalibrationRow, Checkpoint, EpisodeRow, Files, History, Identity, RecordError, RoundRow,
    StreamMark, Summary, TerminalRow, calibrations_from_csv, episodes_from_parquet, format,
    rounds_from_csv, terminals_from_parquet,
};

/// Where a run leaves its files.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    /// Nothing has been written yet.
    new: bool,
    /// Locked: no other process writes into the folder.
    lock: Option<File>,
}

impl RunFolder {
    /// A folder for a new run. Nothing is made on disk before the first [`RunFolder::write`].
    pub fn create(path: &Path) -> Result<Self, RecordError> {
        Self::check_unused(path)?;
        Ok(Self { path: path.to_owned(), new: true, lock: None })
    }

    /// The folder of a run that has been written to.
    pub fn open(path: &Path) -> Result<Self, RecordError> {
        if !path.join(MANIFEST).is_file() {
            return Err(RecordError::Absent { path: path.to_owned(), name: MANIFEST });
        }
        Ok(Self { path: path.to_owned(), new: false, lock: None })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps every other process from writing into the folder until this value is dropped. A new
    /// folder is locked when it appears.
    pub fn lock(&mut self) -> Result<(), RecordError> {
        if self.lock.is_none() {
            self.lock = Some(locked(&self.path, &self.path)?);
        }
        Ok(())
    }

    /// Writes files, each whole or not at all. If the folder does not exist yet it appears with
    /// all of them at once; if that fails, nothing is left behind.
    pub fn write(&mut self, files: &Files) -> Result<(), RecordError> {
        if self.new {
            // Another run may have taken the folder since it was found empty.
            Self::check_unused(&self.path)?;
        }
        if self.path.exists() {
            self.replace(files)?
        } else {
            self.appear(files)?
        }
        self.new = false;
        Ok(())
    }

    /// The checkpoint, which must be of this run.
    pub fn read_checkpoint(&self, expected: &Identity) -> Result<Checkpoint, RecordError> {
        let (path, bytes) = self.read(CHECKPOINT)?;
        let checkpoint = Checkpoint::from_bytes(&bytes, &path)?;
        checkpoint.check(expected, &path)?;
        Ok(checkpoint)
    }

    /// The checkpoint, which must be of this run, for what its planner has learned. Checkpoints of
    /// earlier versions of the program are read too.
    pub fn read_planner(&self, expected: &Identity) -> Result<Checkpoint, RecordError> {
        let (path, bytes) = self.read(CHECKPOINT)?;
        let checkpoint = Checkpoint::planner_from_bytes(&bytes, &path)?;
        checkpoint.check(expected, &path)?;
        Ok(checkpoint)
    }

    /// `manifest.json`. An error if the folder is of a later version than this program reads.
    pub fn read_manifest(&self) -> Result<Value, RecordError> {
        let manifest = self.read_json(MANIFEST)?;
        format::run_folder(&manifest, &self.path.join(MANIFEST))?;
        Ok(manifest)
    }

    /// `summary.json`, there once the run is complete.
    pub fn read_summary(&self) -> Result<Summary, RecordError> {
        self.read_json(SUMMARY)
    }

    /// The text of `summary.json`.
    pub(crate) fn read_summary_value(&self) -> Result<Value, RecordError> {
        self.read_json(SUMMARY)
    }

    /// Whether it holds events; folders of version 1 do not.
    pub fn has_events(&self) -> bool {
        self.path.join(EVENTS).exists()
    }

    /// The text of `scenario.toml`.
    pub fn read_scenario(&self) -> Result<String, RecordError> {
        self.read_text(SCENARIO).map(|(_, text)| text)
    }

    /// The rows of `rounds.csv`.
    pub fn read_rounds(&self) -> Result<Vec<RoundRow>, RecordError> {
        let (path, text) = self.read_text(ROUNDS)?;
        rounds_from_csv(&text, &path)
    }

    /// The rows of `terminals.parquet`.
    pub fn read_terminals(&self) -> Result<Vec<TerminalRow>, RecordError> {
        let path = self.path.join(TERMINALS);
        let file = File::open(&path).map_err(|e| self.unreadable(TERMINALS, e))?;
        terminals_from_parquet(file, &path)
    }

    /// The rows of `calibration.csv`.
    pub fn read_calibrations(&self) -> Result<Vec<CalibrationRow>, RecordError> {
        let (path, text) = self.read_text(CALIBRATION)?;
        calibrations_from_csv(&text, &path)
    }

    /// The rows of `episodes.parquet`.
    pub fn read_episodes(&self) -> Result<Vec<EpisodeRow>, RecordError> {
        let path = self.path.join(EPISODES);
        let file = File::open(&path).map_err(|e| self.unreadable(EPISODES, e))?;
        episodes_from_parquet(file, &path)
    }

    /// The events of `events.jsonl`, as far as its lines are complete.
    pub fn read_events(&self) -> Result<Vec<Event>, RecordError> {
        let (path, bytes) = self.read(EVENTS)?;
        let malformed = |reason| RecordError::Malformed { path: path.clone(), reason };
        read_events(&bytes).map(|event| event.map_err(malformed)).collect()
    }

    /// All rows up to the last complete round: made of the events where there are any, else read
    /// from the files of rows that a folder of version 1 holds.
    pub fn read_history(&self) -> Result<History, RecordError> {
        match self.read(EVENTS) {
            Ok((path, bytes)) => {
                History::of_stream(&bytes).map_err(|reason| RecordError::Malformed { path, reason })
            }
            Err(RecordError::Absent { .. }) => self.read_rows(),
            Err(error) => Err(error),
        }
    }

    /// All rows, from the files of rows alone.
    pub(crate) fn read_rows(&self) -> Result<History, RecordError> {
        let episodes = match self.read_episodes() {
            Err(RecordError::Absent { .. }) => Vec::new(), // in folders of version 1
            read => read?,
        };
        Ok(History {
            rounds: self.read_rounds()?,
            terminals: self.read_terminals()?,
            calibrations: self.read_calibrations()?,
            episodes,
            ..History::default()
        })
    }

    /// The file that the rows of [`RunFolder::read_history`] come from, if `rows` is the one that
    /// a folder of version 1 has them in.
    pub fn source(&self, rows: &'static str) -> PathBuf {
        let events = self.path.join(EVENTS);
        if events.exists() { events } else { self.path.join(rows) }
    }

    /// The summary of a run that is complete: every file of its end is there, and its last event
    /// is the one after those of its last checkpoint.
    pub(crate) fn complete(&self, last: &StreamMark) -> Option<Summary> {
        let (_, bytes) = self.read(EVENTS).ok()?;
        let end = bytes.get(usize::try_from(last.bytes).ok()?..)?;
        let event = Event::from_line(std::str::from_utf8(end).ok()?).ok()?;
        let is_end = matches!(event, Event::Finished(_)) && end.ends_with(b"\n");
        let is_whole = self.read_episodes().is_ok() && self.read_terminals().is_ok();
        self.read_summary().ok().filter(|_| is_end && is_whole)
    }

    /// Takes `summary.json` away: the run is not complete any more.
    pub(crate) fn reopen(&self) -> Result<(), RecordError> {
        let path = self.path.join(SUMMARY);
        match fs::remove_file(&path) {
            Err(e) if e.kind() != ErrorKind::NotFound => Err(RecordError::io("remove", &path)(e)),
            _ => Ok(()),
        }
    }

    /// The start time in the name of the TensorBoard file. Of several files the earliest is kept:
    /// the others would show the same rounds again.
    pub(super) fn keep_one_board(&self) -> Result<Option<u64>, RecordError> {
        let entries = fs::read_dir(&self.path).map_err(RecordError::io("list", &self.path))?;
        let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
        let mut boards: Vec<String> = entries.flatten().map(name).collect();
        boards.retain(|name| name.trim_start_matches('.').starts_with(SCALARS));
        boards.sort_by_key(|name| (start_of_board(name).is_none(), name.clone()));
        let start = boards.first().and_then(|name| start_of_board(name));
        for name in boards.iter().skip(usize::from(start.is_some())) {
            let path = self.path.join(name);
            fs::remove_file(&path).map_err(RecordError::io("remove", &path))?;
        }
        Ok(start)
    }

    /// An error unless a new run may be written there.
    fn check_unused(path: &Path) -> Result<(), RecordError> {
        match fs::read_dir(path) {
            Ok(mut entries) => {
                if entries.next().is_some() {
                    return Err(RecordError::InUse { path: path.to_owned() });
                }
            }
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(_) if path.is_file() => {
                return Err(RecordError::NotAFolder { path: path.to_owned() });
            }
            Err(e) => return Err(RecordError::io("list", path)(e)),
        }
        Ok(())
    }

    pub(super) fn read(&self, name: &'static str) -> Result<(PathBuf, Vec<u8>), RecordError> {
        let path = self.path.join(name);
        match fs::read(&path) {
            Ok(bytes) => Ok((path, bytes)),
            Err(e) => Err(self.unreadable(name, e)),
        }
    }

    fn unreadable(&self, name: &'static str, error: std::io::Error) -> RecordError {
        match error.kind() {
            ErrorKind::NotFound => RecordError::Absent { path: self.path.clone(), name },
            _ => RecordError::io("read", &self.path.join(name))(error),
        }
    }

    fn read_text(&self, name: &'static str) -> Result<(PathBuf, String), RecordError> {
        let (path, bytes) = self.read(name)?;
        match String::from_utf8(bytes) {
            Ok(text) => Ok((path, text)),
            Err(e) => Err(RecordError::Malformed { path, reason: format!("not text: {e}") }),
        }
    }

    fn read_json<T: serde::de::DeserializeOwned>(
        &self,
        name: &'static str,
    ) -> Result<T, RecordError> {
        let (path, bytes) = self.read(name)?;
        serde_json::from_slice(&bytes)
            .map_err(|e| RecordError::Malformed { path, reason: e.to_string() })
    }

    /// Builds the whole folder beside its place and renames it.
    fn appear(&mut self, files: &Files) -> Result<(), RecordError> {
        let missing: Vec<_> = self
            .path
            .ancestors()
            .skip(1)
            .take_while(|p| !p.as_os_str().is_empty() && !p.exists())
            .map(Path::to_owned)
            .collect();
        let result = self.stage(files);
        if result.is_err() {
            // Only folders made here, and only while they are empty.
            missing.into_iter().for_each(|folder| drop(fs::remove_dir(folder)));
        }
        result
    }

    fn stage(&mut self, files: &Files) -> Result<(), RecordError> {
        let staged = aside(&self.path)?;
        fs::create_dir_all(&staged).map_err(RecordError::io("create", &staged))?;
        // The holder of the lock may remove files that a killed process left.
        let lock = locked(&staged, &self.path)?;
        let built = clear(&staged)
            .and_then(|()| files.in_order().try_for_each(|(n, b)| write_atomic(&staged, n, b)))
            .and_then(|()| {
                let taken = RecordError::io("create", &self.path);
                fs::rename(&staged, &self.path).map_err(taken)
            });
        if built.is_err() {
            let _ = fs::remove_dir_all(&staged);
            // Another process may have been quicker.
            return Self::check_unused(&self.path).and(built);
        }
        self.lock = Some(lock);
        sync_parent(&self.path)
    }

    /// Writes file by file into a folder that is there.
    fn replace(&mut self, files: &Files) -> Result<(), RecordError> {
        self.lock()?;
        let result = files.in_order().try_for_each(|(n, b)| write_atomic(&self.path, n, b));
        if result.is_err() && self.new {
            for (name, _) in files.in_order() {
                let file = self.path.join(name);
                let _ = fs::remove_file(&file);
                let _ = file.parent().filter(|p| *p != self.path).map(fs::remove_dir);
            }
            let _ = fs::remove_file(self.path.join(LOCK));
        }
        result
    }
}

/// A folder that this process alone may write into, as long as this value lives.
#[derive(Debug)]
pub struct FolderLock {
    _file: File,
}

impl FolderLock {
    /// Locks a folder; an error if another process has done so.
    pub fn take(folder: &Path) -> Result<Self, RecordError> {
        Ok(Self { _file: locked(folder, folder)? })
    }
}

/// Locks a folder for this process. `named` is what an error calls it.
fn locked(folder: &Path, named: &Path) -> Result<File, RecordError> {
    let path = folder.join(LOCK);
    let open = File::options().create(true).truncate(false).write(true).open(&path);
    let file = open.map_err(RecordError::io("open", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(RecordError::Locked { path: named.to_owned() }),
        // Some file systems of clusters have no locks. A run there is not kept from running.
        Err(TryLockError::Error(e)) if e.kind() == ErrorKind::Unsupported => Ok(file),
        Err(TryLockError::Error(e)) => Err(RecordError::io("lock", &path)(e)),
    }
}

/// Removes everything from a folder but its lock.
fn clear(folder: &Path) -> Result<(), RecordError> {
    let entries = fs::read_dir(folder).map_err(RecordError::io("list", folder))?;
    for path in entries.flatten().map(|entry| entry.path()) {
        let removed = match path.file_name() {
            Some(name) if name == LOCK => continue,
            _ if path.is_dir() => fs::remove_dir_all(&path),
            _ => fs::remove_file(&path),
        };
        removed.map_err(RecordError::io("remove", &path))?;
    }
    Ok(())
}

/// The start time in the name of a TensorBoard file of this program.
fn start_of_board(name: &str) -> Option<u64> {
    name.strip_prefix(SCALARS)?.strip_prefix('.')?.strip_suffix(".tilp")?.parse().ok()
}

/// Writes what was made of a run (figures, tables) into a folder of its own, each file whole or
/// not at all; files of these names that are there are replaced.
pub fn write_beside(
    folder: &Path,
    files: &[(String, impl AsRef<[u8]>)],
) -> Result<(), RecordError> {
    fs::create_dir_all(folder).map_err(RecordError::io("create", folder))?;
    files.iter().try_for_each(|(name, bytes)| write_atomic(folder, name, bytes.as_ref()))
}

/// Writes one file of a folder: aside, down to the disk, then in place. A kill at any moment
/// leaves the old file or the new one.
fn write_atomic(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), RecordError> {
    let path = folder.join(name);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(RecordError::io("create", parent))?;
    }
    let part = aside(&path)?;
    let written = File::create(&part)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .map_err(RecordError::io("write", &path))
        .and_then(|()| fs::rename(&part, &path).map_err(RecordError::io("replace", &path)));
    if written.is_err() {
        let _ = fs::remove_file(&part);
        return written;
    }
    sync_parent(&path)
}

/// A hidden neighbour. The name is fixed, so that what a kill left behind is written over.
fn aside(path: &Path) -> Result<PathBuf, RecordError> {
    let Some(name) = path.file_name() else {
        let source = std::io::Error::new(ErrorKind::InvalidInput, "expected a path with a name");
        return Err(RecordError::io("create", path)(source));
    };
    Ok(path.with_file_name(format!(".{}.part", name.to_string_lossy())))
}

/// A hidden, unique name for a temporary file, also across threads and machines
/// on the same disk. The number of the process would not do, it is 1 in every container.
pub fn unique_name(name: &str) -> String {
    // The standard library's keys of maps are the one source of chance that the system hands out.
    let number = RandomState::new().build_hasher().finish();
    format!(".{name}.{number:016x}.part")
}

/// Makes a rename last. Not every system lets a folder be opened; there it is left to the system.
fn sync_parent(path: &Path) -> Result<(), RecordError> {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match File::open(parent) {
        Ok(folder) if cfg!(unix) => {
            folder.sync_all().map_err(RecordError::io("write to disk", parent))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
#[path = "folder_tests.rs"]
mod tests;
