//! Files of an enrolment: bounded when read, written aside and renamed, secrets readable by their
//! owner alone.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use super::EnrolError;

/// Reads a text file of at most `most` bytes.
pub(super) fn read(path: &Path, limit: u64) -> Result<String, EnrolError> {
    let wrong = |error| EnrolError::file("read", path, error);
    let mut text = String::new();
    let file = File::open(path).map_err(wrong)?;
    file.take(limit + 1).read_to_string(&mut text).map_err(wrong)?;
    if text.len() as u64 > limit {
        let expected = format!("at most {limit}");
        return Err(EnrolError::field("bytes", "more", expected, path.display()));
    }
    Ok(text)
}

/// Reads a file that others must not be able to read.
pub(super) fn read_secret(path: &Path, limit: u64) -> Result<String, EnrolError> {
    let wrong = |error| EnrolError::file("read", path, error);
    let mode = fs::metadata(path).map_err(wrong)?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        let (value, expected) = (format!("{mode:04o}"), "0600: readable by its owner alone");
        return Err(EnrolError::field("mode", value, expected, path.display()));
    }
    read(path, limit)
}

/// Writes a file that is readable by all users.
pub(super) fn write(path: &Path, text: &str) -> Result<(), EnrolError> {
    replace(path, text, 0o644)
}

/// Writes a file that only its owner may read.
pub(super) fn write_secret(path: &Path, text: &str) -> Result<(), EnrolError> {
    replace(path, text, 0o600)
}

fn replace(path: &Path, text: &str, mode: u32) -> Result<(), EnrolError> {
    let wrong = |error| EnrolError::file("write", path, error);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.aside", std::process::id()));
    let aside = path.with_file_name(name);
    // A file left by a killed process may have another mode.
    let _ = fs::remove_file(&aside);
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(mode).open(&aside).map_err(wrong)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(wrong)?;
    fs::rename(&aside, path).map_err(wrong)
}

/// Appends a line and waits until it is on the disk.
pub(super) fn append(path: &Path, line: &str) -> Result<(), EnrolError> {
    let wrong = |error| EnrolError::file("write", path, error);
    let mut options = OpenOptions::new();
    let mut file = options.append(true).create(true).mode(0o644).open(path).map_err(wrong)?;
    file.write_all(format!("{line}\n").as_bytes()).and_then(|()| file.sync_all()).map_err(wrong)
}

/// Makes a folder that only its owner may enter, if it does not exist.
pub(super) fn make_folder(path: &Path) -> Result<(), EnrolError> {
    let mut builder = fs::DirBuilder::new();
    let made = builder.recursive(true).mode(0o700).create(path);
    made.map_err(|error| EnrolError::file("make the folder", path, error))
}

/// Holds a folder for one process at a time, until it is dropped.
pub(super) struct Lock(#[allow(dead_code)] File);

impl Lock {
    /// Waits for the lock of a folder.
    pub(super) fn take(folder: &Path) -> Result<Self, EnrolError> {
        let path = folder.join("lock");
        let wrong = |error| EnrolError::file("lock", &path, error);
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(&path).map_err(wrong)?;
        file.lock().map_err(wrong)?;
        Ok(Self(file))
    }
}
