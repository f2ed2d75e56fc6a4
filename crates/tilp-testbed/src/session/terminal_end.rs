//! A terminal's or an evaluator's end of its stream.

use std::time::Duration;

use super::{Pace, Violation};
use crate::contract::v1::{
    Answer, Down, Goodbye, Heartbeat, Hello, Part, Request, Up, Welcome, down, up,
};
use crate::contract::{Assembly, MOST_BYTES, PartError, VERSION, first_part, later_parts};

/// What a frame of the base station completes. Payloads are apart from their messages.
#[derive(Clone, Debug, PartialEq)]
pub enum Incoming {
    /// Nothing yet.
    Nothing,
    /// The welcome.
    Welcome(Welcome, Vec<u8>),
    /// A request.
    Request(Request, Vec<u8>),
    /// The end of the stream.
    Goodbye(Goodbye),
}

/// The far end of one stream, from its hello to its end.
#[derive(Clone, Debug)]
pub struct TerminalEnd {
    pace: Pace,
    most_bytes: u64,
    heard: Duration,
    sent: Duration,
    beats: u64,
    is_welcome: bool,
    arriving: Option<Arriving>,
}

#[derive(Clone, Debug)]
struct Arriving {
    head: Head,
    assembly: Assembly,
}

#[derive(Clone, Debug)]
enum Head {
    Welcome(Welcome),
    Request(Request),
}

fn frame(body: up::Body) -> Up {
    Up { body: Some(body) }
}

impl TerminalEnd {
    /// A new stream, and its first frame.
    pub fn open(now: Duration, hello: Hello) -> (Self, Up) {
        let end = Self {
            pace: Pace::default(),
            most_bytes: MOST_BYTES,
            heard: now,
            sent: now,
            beats: 0,
            is_welcome: false,
            arriving: None,
        };
        (end, frame(up::Body::Hello(hello)))
    }

    /// Whether the base station has answered the hello.
    pub fn is_welcome(&self) -> bool {
        self.is_welcome
    }

    /// Takes a frame of the base station.
    pub fn receive(&mut self, now: Duration, frame: Down) -> Result<Incoming, Violation> {
        self.heard = now;
        let head = match frame.body {
            Some(down::Body::Heartbeat(_)) => return Ok(Incoming::Nothing),
            Some(down::Body::Goodbye(goodbye)) => return Ok(Incoming::Goodbye(goodbye)),
            Some(down::Body::Part(part)) => {
                let arriving = self.arriving.as_mut().ok_or(PartError::Unexpected)?;
                arriving.assembly.add(&part.payload)?;
                return Ok(self.completed());
            }
            Some(_) if self.arriving.is_some() => {
                return Err(Violation::Frame { found: "a new message", expected: "a part" });
            }
            Some(down::Body::Welcome(welcome)) => {
                self.greet(&welcome)?;
                Head::Welcome(welcome)
            }
            Some(down::Body::Request(_)) if !self.is_welcome => {
                return Err(Violation::Frame { found: "a request", expected: "a welcome" });
            }
            Some(down::Body::Request(request)) => Head::Request(request),
            None => return Err(Violation::Frame { found: "an empty frame", expected: "a body" }),
        };
        self.begin(head)
    }

    fn greet(&mut self, welcome: &Welcome) -> Result<(), Violation> {
        if welcome.version != VERSION {
            return Err(Violation::Version { found: welcome.version, expected: VERSION });
        }
        if self.is_welcome {
            return Err(Violation::Frame { found: "a second welcome", expected: "a request" });
        }
        let seconds = |value: f64, default: Duration| {
            let is_sound = (0.01..=3600.0).contains(&value);
            if is_sound { Duration::from_secs_f64(value) } else { default }
        };
        self.pace = Pace {
            heartbeat: seconds(welcome.heartbeat_s, self.pace.heartbeat),
            silence: seconds(welcome.silence_s, self.pace.silence),
        };
        self.most_bytes = welcome.most_bytes.min(MOST_BYTES);
        Ok(())
    }

    fn begin(&mut self, mut head: Head) -> Result<Incoming, Violation> {
        let (n_bytes, payload) = match &mut head {
            Head::Welcome(one) => (one.n_bytes, std::mem::take(&mut one.payload)),
            Head::Request(one) => (one.n_bytes, std::mem::take(&mut one.payload)),
        };
        let assembly = Assembly::begin(n_bytes, payload, self.most_bytes)?;
        self.arriving = Some(Arriving { head, assembly });
        Ok(self.completed())
    }

    fn completed(&mut self) -> Incoming {
        let Some(Arriving { head, assembly }) =
            self.arriving.take_if(|arriving| arriving.assembly.is_complete())
        else {
            return Incoming::Nothing;
        };
        match head {
            Head::Welcome(welcome) => {
                self.is_welcome = true;
                Incoming::Welcome(welcome, assembly.into_payload())
            }
            Head::Request(request) => Incoming::Request(request, assembly.into_payload()),
        }
    }

    /// The frames of an answer.
    pub fn answer(&mut self, now: Duration, answer: &Answer, payload: &[u8]) -> Vec<Up> {
        self.sent = now;
        let n_bytes = payload.len() as u64;
        let head = Answer { n_bytes, payload: first_part(payload).to_vec(), ..answer.clone() };
        let rest = later_parts(payload).map(|part| up::Body::Part(Part { payload: part.to_vec() }));
        std::iter::once(up::Body::Answer(head)).chain(rest).map(frame).collect()
    }

    /// Advances the time. Returns a heartbeat if one is due, and whether the base station is lost.
    pub fn tick(&mut self, now: Duration) -> (Option<Up>, bool) {
        if now.saturating_sub(self.heard) > self.pace.silence {
            return (None, true);
        }
        if !self.is_welcome || now.saturating_sub(self.sent) < self.pace.heartbeat {
            return (None, false);
        }
        self.sent = now;
        self.beats += 1;
        (Some(frame(up::Body::Heartbeat(Heartbeat { count: self.beats, gain_db: None }))), false)
    }
}
