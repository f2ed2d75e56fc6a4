//! Checks of what came from outside.

use std::fmt::{Display, LowerExp};

use serde::de::DeserializeOwned;

use super::MOST_BYTES;

/// Why something from outside was refused. Each message is one line: field, value, expected.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ExchangeError {
    /// Nothing was given.
    #[error("the {what} is empty, expected JSON{hint}")]
    Empty {
        /// An observation, a decision, an outcome, a line.
        what: &'static str,
        /// How to get one to begin with, if there is a way.
        hint: &'static str,
    },
    /// Too much was given.
    #[error("the {what} has more than {MOST_BYTES} bytes, expected at most {MOST_BYTES}")]
    TooLong {
        /// An observation, a decision, an outcome, a line.
        what: &'static str,
    },
    /// Not JSON, or a field is unknown, missing or of the wrong type.
    #[error("{what}{field}: {reason}")]
    Malformed {
        /// An observation, a decision, an outcome, a line.
        what: &'static str,
        /// Where, as ` at terminals[3].gain_db`; nothing for the whole.
        field: String,
        /// What the parser says: value and expectation.
        reason: String,
    },
    /// A value is outside its range or does not fit the scenario.
    #[error("{what} at {field} = {value}, expected {expected}")]
    Range {
        /// An observation, a decision, an outcome, a line.
        what: &'static str,
        /// Path of the field.
        field: String,
        /// Its value.
        value: String,
        /// What was expected.
        expected: String,
    },
}

/// JSON in untrusted bytes.
pub(super) fn parse<T: DeserializeOwned>(
    what: &'static str,
    hint: &'static str,
    bytes: &[u8],
) -> Result<T, ExchangeError> {
    if bytes.len() > MOST_BYTES {
        return Err(ExchangeError::TooLong { what });
    }
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(ExchangeError::Empty { what, hint });
    }
    let malformed = |field: String, error: &serde_json::Error| ExchangeError::Malformed {
        what,
        field: if field == "." { String::new() } else { format!(" at {}", short(&field)) },
        reason: short(&in_words(&error.to_string())),
    };
    let mut source = serde_json::Deserializer::from_slice(bytes);
    let written = serde_path_to_error::deserialize(&mut source)
        .map_err(|error| malformed(error.path().to_string(), error.inner()))?;
    source.end().map_err(|error| malformed(".".into(), &error))?;
    Ok(written)
}

/// A message of a parser with types named in words.
pub(crate) fn in_words(message: &str) -> String {
    const WORDS: [(&str, &str); 12] = [
        ("expected f64", "expected a number"),
        ("expected f32", "expected a number"),
        ("expected usize", "expected a whole number from 0 on"),
        ("expected u64", "expected a whole number from 0 on"),
        ("expected u32", "expected a whole number from 0 on"),
        ("expected u8", "expected a whole number from 0 to 255"),
        ("expected a boolean", "expected true or false"),
        ("expected a string", "expected text"),
        ("expected a borrowed string", "expected text"),
        ("expected a sequence", "expected a list"),
        ("expected a map", "expected a table"),
        ("invalid type: floating point", "invalid type: number"),
    ];
    let struct_free = match message.split_once("expected struct ") {
        Some((before, _)) => format!("{before}expected a table"),
        None => message.to_owned(),
    };
    WORDS.iter().fold(struct_free, |text, (from, to)| text.replace(from, to))
}

/// Long values are cut in the middle: the end of a message says what was expected.
pub(super) fn short(text: &str) -> String {
    let n = text.chars().count();
    if n <= 300 {
        return text.to_owned();
    }
    let start: String = text.chars().take(100).collect();
    let end: String = text.chars().skip(n - 190).collect();
    format!("{start} ... {end}")
}

/// Refuses what is outside its range.
#[derive(Clone, Copy)]
pub(super) struct Checker {
    /// What is checked.
    pub what: &'static str,
}

impl Checker {
    pub(super) fn fail<T>(
        self,
        field: impl Display,
        value: impl Display,
        expected: impl Display,
    ) -> Result<T, ExchangeError> {
        Err(ExchangeError::Range {
            what: self.what,
            field: short(&field.to_string()),
            value: short(&value.to_string()),
            expected: expected.to_string(),
        })
    }

    /// Between both, or at an end. What is not a number is not.
    pub(super) fn within<T: PartialOrd + Display + LowerExp + Copy>(
        self,
        field: impl Display,
        value: T,
        [least, most]: [T; 2],
    ) -> Result<T, ExchangeError> {
        if value >= least && value <= most {
            return Ok(value);
        }
        self.fail(field, value, format!("{} to {}", bound(least), bound(most)))
    }

    pub(super) fn maybe(
        self,
        field: impl Display,
        value: Option<f64>,
        ends: [f64; 2],
    ) -> Result<Option<f64>, ExchangeError> {
        value.map(|value| self.within(field, value, ends)).transpose()
    }
}

/// A bound as people write it: in powers of ten if that is shorter.
fn bound<T: Display + LowerExp>(value: T) -> String {
    let (plain, power) = (value.to_string(), format!("{value:e}"));
    if power.len() < plain.len() { power } else { plain }
}

/// Bounds of a loss: its logarithm is taken.
pub(super) const LOSS: [f64; 2] = [1e-12, 1e12];
