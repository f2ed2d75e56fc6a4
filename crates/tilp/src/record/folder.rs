//! The run folder. Every file is written aside and renamed; a new folder appears all at once.

use std::collections::hash_map::RandomState;
use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::files::{
    CALIBRATION, CHECKPOINT, EVENTS, MANIFEST, ROUNDS, SCENARIO, SUMMARY, TERMINALS,
};
use super::{
    CalibrationRow, Checkpoint, Files, Identity, RecordError, RoundRow, Summary, TerminalRow,
    calibrations_from_csv, rounds_from_csv, terminals_from_parquet,
};

/// Where a run leaves its files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFolder {
    path: PathBuf,
    /// Nothing has been written yet.
    new: bool,
}

impl RunFolder {
    /// A folder for a new run. Nothing is made on disk before the first [`RunFolder::write`].
    pub fn create(path: &Path) -> Result<Self, RecordError> {
        Self::check_unused(path)?;
        Ok(Self { path: path.to_owned(), new: true })
    }

    /// The folder of a run that has been written to.
    pub fn open(path: &Path) -> Result<Self, RecordError> {
        if !path.join(MANIFEST).is_file() {
            return Err(RecordError::Absent { path: path.to_owned(), name: MANIFEST });
        }
        Ok(Self { path: path.to_owned(), new: false })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
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

    /// `manifest.json`.
    pub fn read_manifest(&self) -> Result<Value, RecordError> {
        self.read_json(MANIFEST)
    }

    /// `summary.json`, there once the run is complete.
    pub fn read_summary(&self) -> Result<Summary, RecordError> {
        self.read_json(SUMMARY)
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

    fn read(&self, name: &'static str) -> Result<(PathBuf, Vec<u8>), RecordError> {
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
    fn appear(&self, files: &Files) -> Result<(), RecordError> {
        let missing: Vec<_> = self
            .path
            .ancestors()
            .skip(1)
            .take_while(|p| !p.as_os_str().is_empty() && !p.exists())
            .collect();
        let result = self.stage(files);
        if result.is_err() {
            // Only folders made here, and only while they are empty.
            missing.into_iter().for_each(|folder| drop(fs::remove_dir(folder)));
        }
        result
    }

    fn stage(&self, files: &Files) -> Result<(), RecordError> {
        let staged = aside(&self.path)?;
        if staged.exists() {
            fs::remove_dir_all(&staged).map_err(RecordError::io("remove", &staged))?;
        }
        let built = fs::create_dir_all(&staged)
            .map_err(RecordError::io("create", &staged))
            .and_then(|()| files.in_order().try_for_each(|(n, b)| write_atomic(&staged, n, b)))
            .and_then(|()| {
                fs::rename(&staged, &self.path).map_err(RecordError::io("create", &self.path))
            });
        if built.is_err() {
            let _ = fs::remove_dir_all(&staged);
            return built;
        }
        sync_parent(&self.path)
    }

    /// Writes file by file into a folder that is there.
    fn replace(&self, files: &Files) -> Result<(), RecordError> {
        let result = files.in_order().try_for_each(|(n, b)| write_atomic(&self.path, n, b));
        if result.is_err() && self.new {
            for (name, _) in files.in_order() {
                let file = self.path.join(name);
                let _ = fs::remove_file(&file);
                let _ = file.parent().filter(|p| *p != self.path).map(fs::remove_dir);
            }
        }
        result?;
        self.forget_old_events(files)
    }

    /// A resumed run starts a TensorBoard file with all rounds: the one before would show twice.
    fn forget_old_events(&self, files: &Files) -> Result<(), RecordError> {
        let Some((new, _)) = files.in_order().find(|(name, _)| name.starts_with(EVENTS)) else {
            return Ok(());
        };
        let entries = fs::read_dir(&self.path).map_err(RecordError::io("list", &self.path))?;
        for entry in entries.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            // What a kill left half written is hidden, and its name never comes again.
            if name.trim_start_matches('.').starts_with(EVENTS) && name != new {
                let path = entry.path();
                fs::remove_file(&path).map_err(RecordError::io("remove", &path))?;
            }
        }
        Ok(())
    }
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

/// A hidden name for a file on its way, which nobody else has: not another thread, nor another machine
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
