//! Files of bounded length.

use std::fs;
use std::path::Path;

/// Bytes of a file that is read whole.
const MOST_BYTES: u64 = 16 << 20;

/// The text of a file; none if it is not there, not text or too long.
pub(crate) fn text(path: &Path) -> Option<String> {
    let length = fs::metadata(path).ok().filter(|about| about.is_file())?.len();
    if length > MOST_BYTES { None } else { fs::read_to_string(path).ok() }
}
