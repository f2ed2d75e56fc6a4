//! The lines between a program and its adapter.

use std::io::{self, BufRead, Read, Write};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::kinds::Kind;

/// Version of the lines.
pub const VERSION: u32 = 1;
/// Largest line.
pub const MAX_LINE_BYTES: usize = 64 << 10;

/// The first line of an adapter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// Version of the lines: 1.
    pub version: u32,
    /// The kind: `probe`, `actuator`, `meter` or `robot`.
    pub adapter: String,
    /// Name of the implementation, for the log.
    pub name: String,
    /// Whether its answers come from a model instead of equipment.
    pub modelled: bool,
}

/// A question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Request<A> {
    /// Version of the lines: 1.
    pub version: u32,
    /// Number of the question, which the answer repeats.
    pub id: u64,
    /// The question.
    pub ask: A,
}

/// An answer: either of the two.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Answer<A> {
    /// Version of the lines: 1.
    pub version: u32,
    /// Number of the question.
    pub id: u64,
    /// The answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<A>,
    /// Why there is none, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Error in a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// It is longer than allowed.
    #[error("a line has more than {MAX_LINE_BYTES} bytes")]
    TooLong,
    /// It is not what was expected.
    #[error("a line is no {expected}: {reason}")]
    Garbage {
        /// Expected value.
        expected: &'static str,
        /// Error of the parser.
        reason: String,
    },
    /// A value in it.
    #[error("{field} = {value}, expected {expected}")]
    Value {
        /// The field.
        field: &'static str,
        /// Its value.
        value: String,
        /// Expected value.
        expected: String,
    },
}

fn parsed<T: DeserializeOwned>(line: &[u8], expected: &'static str) -> Result<T, LineError> {
    if line.len() > MAX_LINE_BYTES {
        return Err(LineError::TooLong);
    }
    serde_json::from_slice(line).map_err(|error| {
        let reason = error.to_string().chars().take(200).collect();
        LineError::Garbage { expected, reason }
    })
}

fn expect(
    field: &'static str,
    value: impl ToString,
    expected: impl ToString,
) -> Result<(), LineError> {
    let (value, expected) = (value.to_string(), expected.to_string());
    if value == expected {
        return Ok(());
    }
    let value = value.chars().take(80).collect();
    Err(LineError::Value { field, value, expected })
}

impl Hello {
    /// The first line of an adapter of this kind.
    pub fn new<K: Kind>(name: &str, modelled: bool) -> Self {
        Self { version: VERSION, adapter: K::NAME.into(), name: name.into(), modelled }
    }

    /// Reads the first line of an adapter of this kind.
    pub fn parse<K: Kind>(line: &[u8]) -> Result<Self, LineError> {
        let hello: Self = parsed(line, "greeting")?;
        expect("version", hello.version, VERSION)?;
        expect("adapter", &hello.adapter, K::NAME)?;
        if hello.name.is_empty() || hello.name.len() > 100 {
            let expected = "1 to 100 bytes".into();
            let value = format!("{} bytes", hello.name.len());
            return Err(LineError::Value { field: "name", value, expected });
        }
        Ok(hello)
    }
}

impl<A: DeserializeOwned> Request<A> {
    /// Reads a question.
    pub fn parse(line: &[u8]) -> Result<Self, LineError> {
        let request: Self = parsed(line, "question")?;
        expect("version", request.version, VERSION)?;
        Ok(request)
    }
}

/// Reads the answer to a question: what it says, or the reason that the adapter gave.
pub fn parse_answer<K: Kind>(line: &[u8], id: u64) -> Result<Result<K::Answer, String>, LineError> {
    let answer: Answer<K::Answer> = parsed(line, "answer")?;
    expect("version", answer.version, VERSION)?;
    expect("id", answer.id, id)?;
    match (answer.answer, answer.error) {
        (Some(answer), None) => {
            K::check(&answer)?;
            Ok(Ok(answer))
        }
        (None, Some(error)) => {
            let is_plain = |c: &char| !c.is_control();
            Ok(Err(error.chars().filter(is_plain).take(300).collect()))
        }
        _ => {
            let reason = "it has not exactly one of answer and error".into();
            Err(LineError::Garbage { expected: "answer", reason })
        }
    }
}

/// Reads a line of at most [`MAX_LINE_BYTES`]; `None` at the end.
pub(super) fn read_line(
    source: &mut impl BufRead,
) -> io::Result<Option<Result<Vec<u8>, LineError>>> {
    let mut line = Vec::new();
    let limit = MAX_LINE_BYTES as u64 + 1;
    if source.by_ref().take(limit).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.len() > MAX_LINE_BYTES {
        return Ok(Some(Err(LineError::TooLong)));
    }
    Ok(Some(Ok(line.trim_ascii_end().to_vec())))
}

/// The side of an adapter: greets, then answers questions until there are no more. A line that is no
/// question ends it, since the question is unknown.
pub fn serve<K: Kind>(
    mut source: impl BufRead,
    mut sink: impl Write,
    name: &str,
    modelled: bool,
    mut answer: impl FnMut(&K::Ask) -> Result<K::Answer, String>,
) -> io::Result<()> {
    let mut say = |line: String| {
        sink.write_all(line.as_bytes())?;
        sink.write_all(b"\n")?;
        sink.flush()
    };
    say(serde_json::to_string(&Hello::new::<K>(name, modelled)).expect("plain data"))?;
    while let Some(line) = read_line(&mut source)? {
        let request = line.and_then(|line| Request::<K::Ask>::parse(&line));
        let request = request.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        let (version, id) = (VERSION, request.id);
        let answer = match answer(&request.ask) {
            Ok(answer) => Answer { version, id, answer: Some(answer), error: None },
            Err(error) => Answer { version, id, answer: None, error: Some(error) },
        };
        say(serde_json::to_string(&answer).expect("plain data"))?;
    }
    Ok(())
}
