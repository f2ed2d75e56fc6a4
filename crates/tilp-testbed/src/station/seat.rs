//! One terminal as the base station sees it: its stream, and which request comes next.

use std::io;
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::{Log, Party};
use crate::contract::journal::Exchange;
use crate::contract::v1::{Down, Grant, Key, Request, Up};
use crate::session::{Pace, Question, Reply, StationEnd, Violation};

/// What a checkpoint must contain of a seat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeatState {
    /// Round of the last request.
    pub round: u64,
    /// Its step.
    pub step: u32,
    /// Counts how often the terminal joined; 0 is the first time, when it holds the start weights.
    pub membership: u64,
    /// The last request belongs to this membership.
    pub continues: bool,
}

/// Why a seat cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum SeatError {
    /// The log cannot be written.
    #[error("journal: {0}")]
    Journal(#[from] io::Error),
    /// The log holds another request under the key of this one.
    #[error("journal: round {round}, {party}, step {step}: another request than now")]
    OtherRequest {
        /// Round of the request.
        round: u64,
        /// The party that got the request.
        party: Party,
        /// Step of the request.
        step: u32,
    },
}

/// State of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Asked {
    /// It was answered before the station was started again, or the terminal was lost then.
    Answered(Exchange),
    /// It is open. These frames go to the terminal now, if it has a stream.
    Open(Vec<Down>),
}

/// The seat of one terminal or of the evaluator.
#[derive(Debug)]
pub struct Seat {
    party: Party,
    end: StationEnd,
    state: SeatState,
    open: Option<(Key, Vec<u8>, Duration)>,
    answered: Option<Exchange>,
    away_since: Option<Duration>,
}

impl Seat {
    /// An empty seat.
    pub fn new(party: Party, pace: Pace, most_bytes: u64) -> Self {
        Self {
            party,
            end: StationEnd::new(pace, most_bytes),
            state: SeatState::default(),
            open: None,
            answered: None,
            away_since: None,
        }
    }

    /// What a checkpoint must contain.
    pub fn state(&self) -> SeatState {
        self.state
    }

    /// Takes over what a checkpoint contains.
    pub fn restore(&mut self, state: SeatState) {
        self.state = state;
    }

    /// Begins a new membership: the terminal forgets everything with the next request.
    pub fn rejoin(&mut self) {
        self.state.membership += 1;
        self.state.continues = false;
    }

    /// Start of the absence of the party; `None` if it is connected or never was.
    pub fn away_since(&self) -> Option<Duration> {
        self.away_since
    }

    /// The stream in use.
    pub fn connection(&self) -> Option<u64> {
        self.end.connection()
    }

    fn key(&self, round: u64, step: u32) -> Key {
        Key { round, terminal: self.party.number(), step }
    }

    /// Opens the next request of a round, unless the log holds its answer.
    pub fn ask(
        &mut self,
        now: Duration,
        round: u64,
        payload: &[u8],
        grant: Option<Grant>,
        log: &dyn Log,
    ) -> Result<Asked, SeatError> {
        let SeatState { round: last, step, membership, continues } = self.state;
        let next = if last == round { step + 1 } else { 1 };
        let previous = continues.then(|| self.key(last, step));
        let key = self.key(round, next);
        self.state = SeatState { round, step: next, membership, continues: true };
        let digest = Sha256::digest(payload).to_vec();
        if let Some(known) = log.find(&key) {
            if known.digest != digest {
                return Err(SeatError::OtherRequest { round, party: self.party, step: next });
            }
            return Ok(Asked::Answered(known.clone()));
        }
        let request = Request { key: Some(key), previous, membership, grant, ..Request::default() };
        self.open = Some((key, digest, now));
        self.answered = None;
        let question = Question { request, payload: payload.to_vec() };
        Ok(Asked::Open(self.end.ask(now, question)))
    }

    /// Ends the open request without an answer, and writes that down.
    pub fn give_up(
        &mut self,
        now: Duration,
        why: &str,
        log: &mut dyn Log,
    ) -> Result<(), SeatError> {
        self.end.withdraw();
        if let Some((key, digest, asked)) = self.open.take() {
            let took_s = now.saturating_sub(asked).as_secs_f64();
            let (key, lost) = (Some(key), why.to_owned());
            log.append(Exchange { key, digest, took_s, lost, ..Exchange::default() })?;
        }
        Ok(())
    }

    /// Withdraws the open request without a trace: the station will ask again after a restart.
    pub fn suspend(&mut self) {
        self.end.withdraw();
        self.open = None;
    }

    /// Writes down that the last request had no usable answer.
    pub fn note_loss(&mut self, exchange: Exchange, log: &mut dyn Log) -> Result<(), SeatError> {
        Ok(log.append(exchange)?)
    }

    /// The answer to the request, once.
    pub fn take_answer(&mut self) -> Option<Exchange> {
        self.answered.take()
    }

    /// The party connects. Returns the frames of the open request.
    pub fn attach(&mut self, now: Duration, connection: u64) -> Vec<Down> {
        self.away_since = None;
        self.end.attach(now, connection)
    }

    /// A stream ended.
    pub fn detach(&mut self, now: Duration, connection: u64) {
        if self.end.detach(connection) {
            self.away_since = Some(now);
        }
    }

    /// Takes a frame. An answer is in the log when this returns.
    pub fn receive(
        &mut self,
        now: Duration,
        connection: u64,
        frame: Up,
        log: &mut dyn Log,
    ) -> Result<Result<(), Violation>, SeatError> {
        let reply = match self.end.receive(now, connection, frame) {
            Ok(reply) => reply,
            Err(violation) => {
                self.detach(now, connection);
                return Ok(Err(violation));
            }
        };
        if let Some(Reply { answer, payload }) = reply
            && let Some((key, digest, asked)) = self.open.take()
        {
            let took_s = now.saturating_sub(asked).as_secs_f64();
            let (key, answer, lost) = (Some(key), Some(answer), String::new());
            let exchange = Exchange { key, digest, answer, payload, took_s, lost };
            // A terminal that is out of step has done nothing that must not be done again.
            if !exchange.answer.as_ref().is_some_and(|answer| answer.out_of_step) {
                log.append(exchange.clone())?;
            }
            self.answered = Some(exchange);
        }
        Ok(Ok(()))
    }

    /// Time passes. Returns a heartbeat if one is due.
    pub fn tick(&mut self, now: Duration) -> Option<Down> {
        let before = self.end.connection();
        let beat = self.end.tick(now);
        if before.is_some() && self.end.connection().is_none() {
            self.away_since = Some(now);
        }
        beat
    }
}
