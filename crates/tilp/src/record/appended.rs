//! A file that is only appended to during a run. It is never renamed, so a reader
//! may keep it open.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

use super::RecordError;

/// A file that grows at its end.
#[derive(Debug)]
pub(super) struct Appended {
    path: PathBuf,
    file: File,
}

impl Appended {
    /// Opens a file to append to; makes it if there is none.
    pub(super) fn open(path: PathBuf) -> Result<Self, RecordError> {
        let file = OpenOptions::new().create(true).append(true).open(&path);
        Ok(Self { file: file.map_err(RecordError::io("open", &path))?, path })
    }

    /// Opens a file that must begin with `expected` and cuts off what follows. If it begins
    /// otherwise it is written anew.
    pub(super) fn cut_to(path: PathBuf, expected: &[u8]) -> Result<Self, RecordError> {
        let is_begun = match fs::read(&path) {
            Ok(found) => found.starts_with(expected),
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            Err(error) => return Err(RecordError::io("read", &path)(error)),
        };
        let mut appended = Self::open(path)?;
        let length = if is_begun { expected.len() as u64 } else { 0 };
        appended.file.set_len(length).map_err(RecordError::io("cut", &appended.path))?;
        if !is_begun {
            appended.append(expected)?;
        }
        Ok(appended)
    }

    /// Appends with one write.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<(), RecordError> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.file.write_all(bytes).map_err(RecordError::io("write", &self.path))
    }

    /// Makes what was appended last.
    pub(super) fn sync(&self) -> Result<(), RecordError> {
        self.file.sync_data().map_err(RecordError::io("write to disk", &self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fixture::Scratch;

    #[test]
    fn a_file_is_cut_where_it_left_what_is_expected() {
        let scratch = Scratch::new("appended");
        let path = scratch.path().join("f");
        let text = || fs::read_to_string(scratch.path().join("f")).unwrap();
        Appended::open(path.clone()).unwrap().append(b"one\n").unwrap();
        let mut again = Appended::open(path.clone()).unwrap();
        again.append(b"two\n").unwrap();
        again.append(b"thr").unwrap();
        again.sync().unwrap();
        assert_eq!(text(), "one\ntwo\nthr");
        let mut cut = Appended::cut_to(path.clone(), b"one\n").unwrap();
        assert_eq!(text(), "one\n");
        cut.append(b"2\n").unwrap();
        assert_eq!(text(), "one\n2\n");
    }

    #[test]
    fn a_file_that_is_missing_or_begins_otherwise_is_written_anew() {
        let scratch = Scratch::new("anew");
        let path = scratch.path().join("f");
        for before in [None, Some("other\n"), Some("on")] {
            if let Some(before) = before {
                fs::write(&path, before).unwrap();
            }
            Appended::cut_to(path.clone(), b"one\n").unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"one\n", "{before:?}");
        }
    }
}
