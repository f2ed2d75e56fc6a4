//! What can go wrong with a run folder, each in one line.

use std::io;
use std::path::{Path, PathBuf};

/// Why a run folder or one of its files could not be used.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The operating system refused.
    #[error("cannot {operation} {}: {source}", path.display())]
    Io {
        /// What was tried.
        operation: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A new run was to be written over an old one.
    #[error(
        "run folder {} already holds files, expected a new or empty folder: choose another \
         --out, or resume this run with --resume {}",
        path.display(), path.display()
    )]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// Another process is at work in the folder.
    #[error(
        "run folder {} is in use by another process, expected one process at a time: wait for it \
         or stop it", path.display()
    )]
    Locked {
        /// The folder.
        path: PathBuf,
    },
    /// There is a file where a folder should be.
    #[error("run folder {} is a file, expected a new or empty folder", path.display())]
    NotAFolder {
        /// The file.
        path: PathBuf,
    },
    /// There is no checkpoint to resume from.
    #[error(
        "run folder {} has no {}, expected a folder that a run has written",
        path.display(), name
    )]
    Absent {
        /// The folder.
        path: PathBuf,
        /// The missing file, relative to the folder.
        name: &'static str,
    },
    /// A checkpoint cannot be read, or its content is not what was written.
    #[error("checkpoint {} is truncated or corrupt ({reason}), expected a whole one: \
             put back a copy or start the run anew", path.display())]
    Corrupt {
        /// The checkpoint file.
        path: PathBuf,
        /// What does not fit.
        reason: String,
    },
    /// A checkpoint in a form this version does not read.
    #[error("checkpoint {} has format version {found:?}, expected {expected}: go on with the \
             version of tilp that wrote it", path.display())]
    Version {
        /// The checkpoint file.
        path: PathBuf,
        /// Version found.
        found: String,
        /// Version expected.
        expected: u64,
    },
    /// A checkpoint of another run.
    #[error("checkpoint {} belongs to another run: {what} = {found:?}, expected {expected:?}",
            path.display())]
    OtherRun {
        /// The checkpoint file.
        path: PathBuf,
        /// Which part of the identity differs.
        what: &'static str,
        /// Value in the checkpoint.
        found: String,
        /// Value of the run to be resumed.
        expected: String,
    },
    /// A text file of the folder has wrong contents.
    #[error("{}: {reason}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where, what was found and what was expected.
        reason: String,
    },
    /// Rows could not be encoded.
    #[error("cannot encode {name}: {reason}")]
    Encode {
        /// The file that was to be written.
        name: &'static str,
        /// What the encoder said.
        reason: String,
    },
}

impl RecordError {
    /// Ties a system error to what was tried on which path.
    pub(crate) fn io(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { operation, path, source }
    }
}

/// A value from an untrusted file, shortened to fit in one line.
pub(super) fn shortened(text: &str) -> String {
    let flat = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    flat.take(120).collect()
}
