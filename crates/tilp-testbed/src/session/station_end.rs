//! The base station's end of the stream of one terminal.

use std::sync::Arc;
use std::time::Duration;

use super::{Pace, Violation};
use crate::contract::v1::{Answer, Down, Goodbye, Heartbeat, Part, Request, Up, down, up};
use crate::contract::{Assembly, first_part, later_parts};

/// A request with its whole payload.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The request; its own payload is empty.
    pub request: Request,
    /// The payload.
    pub payload: Vec<u8>,
}

impl Question {
    /// The frames that carry it.
    fn frames(&self) -> Vec<Down> {
        let n_bytes = self.payload.len() as u64;
        let payload = first_part(&self.payload).to_vec();
        let head = Request { n_bytes, payload, ..self.request.clone() };
        let rest = later_parts(&self.payload)
            .map(|part| down::Body::Part(Part { payload: part.to_vec() }));
        std::iter::once(down::Body::Request(head)).chain(rest).map(frame).collect()
    }
}

/// An answer with its whole payload.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// The answer; its own payload is empty.
    pub answer: Answer,
    /// The payload.
    pub payload: Vec<u8>,
}

/// The station's end. At most one stream is in use; a newer one replaces it.
#[derive(Clone, Debug)]
pub struct StationEnd {
    pace: Pace,
    most_bytes: u64,
    line: Option<Line>,
    open: Option<Arc<Question>>,
}

/// The stream in use.
#[derive(Clone, Debug)]
struct Line {
    connection: u64,
    heard: Duration,
    sent: Duration,
    beats: u64,
    arriving: Option<(Answer, Assembly)>,
}

fn frame(body: down::Body) -> Down {
    Down { body: Some(body) }
}

impl StationEnd {
    /// An end without a stream.
    pub fn new(pace: Pace, most_bytes: u64) -> Self {
        Self { pace, most_bytes, line: None, open: None }
    }

    /// The stream in use.
    pub fn connection(&self) -> Option<u64> {
        self.line.as_ref().map(|line| line.connection)
    }

    /// A stream whose hello was accepted and whose welcome was sent. Returns the frames of the
    /// open question, which the terminal may or may not have seen before.
    pub fn attach(&mut self, now: Duration, connection: u64) -> Vec<Down> {
        let (heard, sent) = (now, now);
        self.line = Some(Line { connection, heard, sent, beats: 0, arriving: None });
        self.open.as_ref().map_or_else(Vec::new, |question| question.frames())
    }

    /// A stream ended. `true` if it was the one in use.
    pub fn detach(&mut self, connection: u64) -> bool {
        let is_current = self.connection() == Some(connection);
        if is_current {
            self.line = None;
        }
        is_current
    }

    /// Opens a question. Returns its frames; without a stream they are sent when there is one.
    ///
    /// # Panics
    /// If a question is open: a terminal has at most one.
    pub fn ask(&mut self, now: Duration, question: Question) -> Vec<Down> {
        assert!(self.open.is_none(), "one question at a time");
        let question = Arc::new(question);
        self.open = Some(question.clone());
        match &mut self.line {
            None => Vec::new(),
            Some(line) => {
                line.sent = now;
                question.frames()
            }
        }
    }

    /// Withdraws the open question. A late answer to it is ignored.
    pub fn withdraw(&mut self) {
        self.open = None;
    }

    /// Takes a frame. Returns the answer to the open question once it is complete. Frames of
    /// streams that are no longer in use, and answers to other questions, are ignored.
    pub fn receive(
        &mut self,
        now: Duration,
        connection: u64,
        frame: Up,
    ) -> Result<Option<Reply>, Violation> {
        let Some(line) = self.line.as_mut().filter(|line| line.connection == connection) else {
            return Ok(None);
        };
        line.heard = now;
        match frame.body {
            Some(up::Body::Heartbeat(_)) => return Ok(None),
            Some(up::Body::Answer(_)) if line.arriving.is_some() => {
                return Err(Violation::Frame { found: "an answer", expected: "a part" });
            }
            Some(up::Body::Answer(mut answer)) => {
                let first = std::mem::take(&mut answer.payload);
                let assembly = Assembly::begin(answer.n_bytes, first, self.most_bytes)?;
                line.arriving = Some((answer, assembly));
            }
            Some(up::Body::Part(part)) => match &mut line.arriving {
                Some((_, assembly)) => assembly.add(&part.payload)?,
                None => return Err(crate::contract::PartError::Unexpected.into()),
            },
            Some(up::Body::Hello(_)) => {
                return Err(Violation::Frame { found: "a second hello", expected: "an answer" });
            }
            None => return Err(Violation::Frame { found: "an empty frame", expected: "a body" }),
        }
        let is_complete = |(_, assembly): &mut (Answer, Assembly)| assembly.is_complete();
        let Some((answer, assembly)) = line.arriving.take_if(is_complete) else { return Ok(None) };
        let is_wanted = self.open.as_ref().is_some_and(|open| open.request.key == answer.key);
        if !is_wanted {
            return Ok(None);
        }
        self.open = None;
        Ok(Some(Reply { answer, payload: assembly.into_payload() }))
    }

    /// Time passes. Returns a heartbeat if one is due. A stream that was silent for too long is
    /// given up: ask [`StationEnd::connection`] afterwards.
    pub fn tick(&mut self, now: Duration) -> Option<Down> {
        let line = self.line.as_mut()?;
        if now.saturating_sub(line.heard) > self.pace.silence {
            self.line = None;
            return None;
        }
        if now.saturating_sub(line.sent) < self.pace.heartbeat {
            return None;
        }
        line.sent = now;
        line.beats += 1;
        Some(frame(down::Body::Heartbeat(Heartbeat { count: line.beats, gain_db: None })))
    }

    /// The last frame of a stream.
    pub fn goodbye(reason: &str, finished: bool) -> Down {
        frame(down::Body::Goodbye(Goodbye { reason: reason.to_owned(), finished }))
    }
}
