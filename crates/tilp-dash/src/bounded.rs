//! Files of bounded length, opened only where they are: a link may lead out of the folders shown.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// Bytes of a text that is read whole.
const MOST_TEXT: u64 = 16 << 20;

/// What is known of a file, which is no link; none if there is no such file.
pub(crate) fn about(path: &Path) -> Option<fs::Metadata> {
    fs::symlink_metadata(path).ok().filter(|about| about.is_file())
}

/// Opens a file, which is no link.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    match about(path) {
        Some(_) => File::open(path),
        None => Err(io::Error::new(io::ErrorKind::NotFound, "no file, or a link")),
    }
}

/// The bytes of a file; an error if there are more than `most`.
pub(crate) fn bytes(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(io::Error::other(format!("more than {most} bytes"))),
        false => Ok(bytes),
    }
}

/// The text of a file; none if it is not there, not text or too long.
pub(crate) fn text(path: &Path) -> Option<String> {
    String::from_utf8(bytes(path, MOST_TEXT).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Scratch;

    #[test]
    fn a_file_is_read_up_to_its_bound() {
        let scratch = Scratch::new("bounded");
        scratch.put("file", "four");
        let path = scratch.path().join("file");
        assert_eq!(bytes(&path, 4).unwrap(), b"four");
        assert!(bytes(&path, 3).unwrap_err().to_string().contains("more than 3 bytes"));
        assert!(bytes(scratch.path(), 3).is_err() && text(&scratch.path().join("other")).is_none());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_no_file() {
        let scratch = Scratch::new("bounded-link");
        scratch.put("secret", "secret");
        let link = scratch.path().join("link");
        std::os::unix::fs::symlink(scratch.path().join("secret"), &link).unwrap();
        assert!(about(&link).is_none() && open(&link).is_err() && text(&link).is_none());
    }
}
