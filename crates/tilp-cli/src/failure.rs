//! How a command ends when it does not end well.

use std::fmt::Display;

use tilp::experiment::study::StudyError;
use tilp::record::RecordError;

use crate::output::tell;

/// A message for a person, in one line, and an exit code.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    /// Bad usage or bad input: exit code 2.
    pub fn input(message: impl Display) -> Self {
        Self { code: 2, message: message.to_string() }
    }

    /// Something went wrong on the way: exit code 1.
    pub fn failed(message: impl Display) -> Self {
        Self { code: 1, message: message.to_string() }
    }

    /// A study that cannot be opened or begun: what the system refused may be granted another time and
    /// is exit code 1; everything else is bad input.
    pub fn study(error: StudyError) -> Self {
        match error {
            StudyError::Record(RecordError::Io { .. }) => Self::failed(error),
            _ => Self::input(error),
        }
    }

    /// Ended by a signal: exit code 128 + signal.
    pub fn signal(signal: i32, message: impl Display) -> Self {
        Self { code: 128 + signal as u8, message: message.to_string() }
    }

    /// Prints the message and gives the exit code.
    pub fn report(self) -> u8 {
        let message = one_line(&self.message);
        if self.code < 128 {
            tell(&format!("error: {message}"));
        } else {
            tell(&message);
        }
        self.code
    }
}

/// Names and values come from files and arguments: whatever they hold, a message stays one line.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
