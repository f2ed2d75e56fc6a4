//! The deny list: serial numbers of certificates that are no longer accepted.
//!
//! The file has one serial number a line; lines that begin with `#` are remarks. The list is read
//! again whenever the file has changed, so a revoked certificate is refused from the next question
//! on. If the list is missing or cannot be read, all are refused.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::{EnrolError, Serial, files};

/// Largest deny list: some 30,000 certificates.
const MAX_BYTES: u64 = 1 << 20;

/// What changes when a file is replaced: device, inode, seconds, nanoseconds, length.
type Version = (u64, u64, i64, i64, u64);

/// A deny list that follows its file.
#[derive(Debug)]
pub struct DenyList {
    path: PathBuf,
    read: Mutex<Option<(Version, BTreeSet<Serial>)>>,
}

impl DenyList {
    /// The deny list in a file, which is read when it is asked.
    pub fn at(path: &Path) -> Self {
        Self { path: path.to_owned(), read: Mutex::new(None) }
    }

    /// Whether a certificate is refused, by the present file.
    pub fn denies(&self, serial: &Serial) -> Result<bool, EnrolError> {
        let wrong = |error| EnrolError::file("read", &self.path, error);
        // The version is taken before the text: a file replaced in between is read once more.
        let found = fs::metadata(&self.path).map_err(wrong)?;
        let version = (found.dev(), found.ino(), found.mtime(), found.mtime_nsec(), found.len());
        let mut read = self.read.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if read.as_ref().is_none_or(|(known, _)| *known != version) {
            *read = None;
            *read = Some((version, parse(&files::read(&self.path, MAX_BYTES)?, &self.path)?));
        }
        Ok(read.as_ref().is_some_and(|(_, denied)| denied.contains(serial)))
    }
}

/// The serial numbers in the text of a deny list.
pub fn parse(text: &str, place: &Path) -> Result<BTreeSet<Serial>, EnrolError> {
    let is_entry = |(_, line): &(usize, &str)| !line.is_empty() && !line.starts_with('#');
    let lines = text.lines().map(str::trim).enumerate().filter(is_entry);
    let entry = |(index, line): (usize, &str)| {
        let place = || format!("{}, line {}", place.display(), index + 1);
        let expected = "2 to 40 lower-case hexadecimal digits";
        line.parse().map_err(|_| EnrolError::field("serial", line, expected, place()))
    };
    lines.map(entry).collect()
}

/// The list with more serial numbers and a remark.
pub(super) fn add(path: &Path, serials: &[Serial], remark: &str) -> Result<(), EnrolError> {
    let mut text = files::read(path, MAX_BYTES)?;
    let denied = parse(&text, path)?;
    for serial in serials.iter().filter(|serial| !denied.contains(serial)) {
        text += &format!("# {remark}\n{serial}\n");
    }
    // With an unreadable list all would be refused.
    if text.len() as u64 > MAX_BYTES {
        return Err(EnrolError::field(
            "bytes",
            text.len(),
            format!("at most {MAX_BYTES}"),
            path.display(),
        ));
    }
    files::write(path, &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deny_list_names_the_line_that_is_wrong() {
        let place = Path::new("denied.txt");
        let good = parse("# lost\n7f01\n\n7f02\n", place).unwrap();
        assert_eq!(good.len(), 2);
        let error = parse("7f01\nnonsense\n", place).unwrap_err().to_string();
        assert!(error.starts_with("serial = nonsense, expected 2 to 40"), "{error}");
        assert!(error.ends_with("(denied.txt, line 2)"), "{error}");
    }
}
