//! Failures of commands and their exit codes.

use std::fmt::Display;
use std::io::ErrorKind;

use tilp::experiment::study::StudyError;
use tilp::record::RecordError;

use crate::output::tell;

/// A message for a person, in one line, and an exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    /// Bad usage or bad input: exit code 2.
    pub(crate) fn input(message: impl Display) -> Self {
        Self { code: 2, message: message.to_string() }
    }

    /// Something went wrong on the way: exit code 1.
    pub(crate) fn failed(message: impl Display) -> Self {
        Self { code: 1, message: message.to_string() }
    }

    /// A study that cannot be opened or begun: what the system refused may be granted another time and
    /// is exit code 1; everything else, bytes that are no text included, is bad input.
    pub(crate) fn study(error: StudyError) -> Self {
        match &error {
            StudyError::Record(RecordError::Io { source, .. })
                if source.kind() != ErrorKind::InvalidData =>
            {
                Self::failed(error)
            }
            _ => Self::input(error),
        }
    }

    /// A file that cannot be written: a place that cannot be used is bad input, a full disk is not.
    pub(crate) fn writing(error: RecordError) -> Self {
        match is_full(&error) {
            true => Self::failed(error),
            false => Self::input(error),
        }
    }

    /// The exit code.
    #[cfg(test)]
    pub(crate) fn code(&self) -> u8 {
        self.code
    }

    /// Ended by a signal: exit code 128 + signal.
    pub(crate) fn signal(signal: i32, message: impl Display) -> Self {
        Self { code: 128 + signal as u8, message: message.to_string() }
    }

    /// Prints the message and gives the exit code.
    pub(crate) fn report(self) -> u8 {
        let message = one_line(&self.message);
        if self.code < 128 {
            tell(&format!("error: {message}"));
        } else {
            tell(&message);
        }
        self.code
    }
}

/// Whether the disk was full.
pub(crate) fn is_full(error: &RecordError) -> bool {
    let full = [ErrorKind::StorageFull, ErrorKind::QuotaExceeded, ErrorKind::FileTooLarge];
    matches!(error, RecordError::Io { source, .. } if full.contains(&source.kind()))
}

/// Names and values come from files and arguments: whatever they hold, a message stays one line.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    fn io(kind: ErrorKind) -> RecordError {
        RecordError::Io { operation: "write", path: "x".into(), source: io::Error::from(kind) }
    }

    #[test]
    fn a_full_disk_is_a_failure_and_a_place_that_cannot_be_used_is_bad_input() {
        assert_eq!(Failure::writing(io(ErrorKind::StorageFull)).code(), 1);
        assert_eq!(Failure::writing(io(ErrorKind::PermissionDenied)).code(), 2);
    }

    #[test]
    fn bytes_that_are_no_text_are_bad_input_in_a_study() {
        assert_eq!(Failure::study(StudyError::Record(io(ErrorKind::InvalidData))).code(), 2);
        assert_eq!(Failure::study(StudyError::Record(io(ErrorKind::PermissionDenied))).code(), 1);
    }
}
