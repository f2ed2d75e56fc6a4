//! A file that another process appends lines to.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use crate::bounded;

/// Longest line. A round of ten thousand terminals has ten megabytes.
const MOST_LINE: u64 = 32 << 20;
/// Bytes at the start by which a file is recognised.
const START: u64 = 512;

/// What happened to a file since it was read last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Change {
    /// Nothing.
    #[default]
    None,
    /// Lines were appended.
    Grown,
    /// It was cut back or replaced, and was read from its start.
    Reset,
}

/// How far a file was read.
#[derive(Debug, Default)]
pub(super) struct Tail {
    /// Complete lines end here.
    offset: u64,
    /// How the file begins: another beginning is another file.
    start: Vec<u8>,
    /// It cannot be read on from here, until it is cut back or replaced.
    is_over: bool,
}

impl Tail {
    /// Gives every complete line that is new, with its end, whether the file starts anew with it,
    /// and its offset. Reading ends early, for good, if `take` says no.
    pub(super) fn read(
        &mut self,
        path: &Path,
        mut take: impl FnMut(&[u8], bool, u64) -> bool,
    ) -> io::Result<Change> {
        let length = match fs::symlink_metadata(path) {
            Ok(about) if about.is_file() => about.len(),
            Ok(_) => return Ok(Change::None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) => return Err(error),
        };
        if length == self.offset || self.is_over && length > self.offset {
            return Ok(Change::None);
        }
        let mut change = Change::None;
        if length < self.offset {
            *self = Self::default();
            change = Change::Reset;
        }
        if length == 0 {
            return Ok(change);
        }
        let mut file = bounded::open(path)?;
        let mut start = Vec::new();
        file.by_ref().take(START).read_to_end(&mut start)?;
        if !start.starts_with(&self.start) {
            *self = Self::default();
            change = Change::Reset;
        }
        self.start = start;
        file.seek(SeekFrom::Start(self.offset))?;
        let mut reader = BufReader::with_capacity(1 << 20, file);
        let (mut line, mut is_start) = (Vec::new(), change == Change::Reset);
        loop {
            line.clear();
            let n = reader.by_ref().take(MOST_LINE).read_until(b'\n', &mut line)?;
            if n as u64 == MOST_LINE {
                let at = self.offset;
                self.is_over = true;
                return Err(io::Error::other(format!(
                    "a line of more than {MOST_LINE} bytes at byte {at}"
                )));
            }
            if line.last() != Some(&b'\n') {
                return Ok(change);
            }
            if !take(&line, is_start, self.offset) {
                self.is_over = true;
                return Ok(Change::Grown.max(change));
            }
            (is_start, self.offset) = (false, self.offset + n as u64);
            change = change.max(Change::Grown);
        }
    }
}

impl Change {
    /// The graver of two.
    pub(super) fn max(self, other: Self) -> Self {
        if self as u8 > other as u8 { self } else { other }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Scratch;
    use std::fs::File;
    use std::io::Write;

    fn lines(tail: &mut Tail, path: &Path) -> (Change, String) {
        let mut all = String::new();
        let change = tail.read(path, |line, _, _| {
            all += std::str::from_utf8(line).unwrap();
            true
        });
        (change.unwrap(), all)
    }

    #[test]
    fn lines_are_read_once_when_they_are_complete() {
        let scratch = Scratch::new("tail");
        let path = scratch.path().join("file");
        let mut tail = Tail::default();
        assert_eq!(lines(&mut tail, &path), (Change::None, String::new()));
        let mut file = File::create(&path).unwrap();
        file.write_all(b"a\nb").unwrap();
        assert_eq!(lines(&mut tail, &path), (Change::Grown, "a\n".into()));
        assert_eq!(lines(&mut tail, &path), (Change::None, String::new()));
        file.write_all(b"c\nd\n").unwrap();
        assert_eq!(lines(&mut tail, &path), (Change::Grown, "bc\nd\n".into()));
    }

    #[test]
    fn a_file_that_is_cut_back_or_replaced_is_read_again() {
        let scratch = Scratch::new("tail-cut");
        let path = scratch.path().join("file");
        let mut tail = Tail::default();
        fs::write(&path, "header\n1\n2\n3\n").unwrap();
        lines(&mut tail, &path);
        fs::write(&path, "header\n1\n").unwrap();
        assert_eq!(lines(&mut tail, &path), (Change::Reset, "header\n1\n".into()));
        fs::write(&path, "other\n1\n2\n3\n4\n").unwrap();
        assert_eq!(lines(&mut tail, &path), (Change::Reset, "other\n1\n2\n3\n4\n".into()));
        fs::remove_file(&path).unwrap();
        assert_eq!(lines(&mut tail, &path), (Change::Reset, String::new()));
    }

    #[test]
    fn a_line_without_end_is_refused_and_not_kept() {
        let scratch = Scratch::new("tail-long");
        let path = scratch.path().join("file");
        let file = File::create(&path).unwrap();
        // A hole in the file: no disk is filled by it.
        file.set_len(MOST_LINE + 1).unwrap();
        let mut tail = Tail::default();
        let error = tail.read(&path, |_, _, _| true).unwrap_err();
        assert!(error.to_string().contains("a line of more than"), "{error}");
        assert_eq!(tail.read(&path, |_, _, _| true).unwrap(), Change::None, "it is read once");
    }
}
