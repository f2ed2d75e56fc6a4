//! Where training waits for the answers of terminals.
//!
//! Training runs on threads that block in [`Hub::call`]; the transport brings streams and frames.
//! Both meet at the seats.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{Asked, Clock, Log, Party, Seat, SeatError, SeatState};
use crate::contract::journal::Exchange;
use crate::contract::v1::{Answer, Down, Grant, Heartbeat, Part, Up, Welcome, down, up};
use crate::contract::{VERSION, first_part, later_parts};
use crate::session::{Pace, StationEnd, Violation};

/// How often a waiting thread looks at the clock.
const LOOK: Duration = Duration::from_millis(50);

/// Gains that a channel can have, in dB.
const GAINS_DB: std::ops::RangeInclusive<f64> = -250.0..=50.0;

/// How the hub treats terminals.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Heartbeats.
    pub pace: Pace,
    /// Largest payload.
    pub most_bytes: u64,
    /// A terminal that is away for longer is lost.
    pub patience: Duration,
    /// Whether training continues without a lost terminal. If not, the run stops: its
    /// result would be another one.
    pub goes_on: bool,
}

/// Sends frames on one stream. Dropping it ends the stream.
pub trait Line: Send {
    /// Sends a frame; `false` if the stream is gone or its reader is too slow.
    fn send(&self, frame: Down) -> bool;
}

/// What a stream is greeted with.
#[derive(Clone, Debug, Default)]
pub struct Greeting {
    /// Name of the run.
    pub run: String,
    /// What each party works on.
    pub work: BTreeMap<Party, Arc<Vec<u8>>>,
}

/// An answered request.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The answer, without payload.
    pub answer: Answer,
    /// Its payload.
    pub payload: Vec<u8>,
    /// Seconds from request to answer.
    pub took_s: f64,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// The party stayed away.
    #[error("{0} was away for more than {seconds} s", seconds = .1.as_secs_f64())]
    Away(Party, Duration),
    /// The time for the request is over.
    #[error("{0} was late")]
    Late(Party),
    /// The party has lost its state.
    #[error("{0}: {1}")]
    OutOfStep(Party, String),
    /// The run was asked to stop while it waited.
    #[error("stopped while waiting for {0}")]
    Stopped(Party),
    /// The journal of the base station cannot be used.
    #[error("{0}")]
    Journal(String),
    /// It was lost before the station was started again.
    #[error("{0}")]
    Before(String),
}

/// Numbers for people and monitors.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// The round in progress.
    pub round: u64,
    /// Parties with a stream.
    pub attached: Vec<Party>,
    /// Parties without one.
    pub away: Vec<Party>,
    /// Requests answered.
    pub answered: u64,
    /// Requests without an answer.
    pub lost: u64,
    /// Streams that were opened.
    pub streams: u64,
    /// Streams that broke the contract.
    pub violations: u64,
    /// Payload bytes to the parties.
    pub bytes_down: u64,
    /// Payload bytes from them.
    pub bytes_up: u64,
}

#[derive(Default)]
struct Counters {
    round: AtomicU64,
    answered: AtomicU64,
    lost: AtomicU64,
    streams: AtomicU64,
    violations: AtomicU64,
    bytes_down: AtomicU64,
    bytes_up: AtomicU64,
}

struct Post {
    chair: Mutex<Chair>,
    changed: Condvar,
}

struct Chair {
    seat: Seat,
    line: Option<(u64, Box<dyn Line>)>,
    samples: u64,
    gain_db: Option<f64>,
}

impl Chair {
    fn send(&mut self, now: Duration, frames: Vec<Down>) {
        let Some((connection, line)) = &self.line else { return };
        let connection = *connection;
        if !frames.into_iter().all(|frame| line.send(frame)) {
            self.line = None;
            self.seat.detach(now, connection);
        }
    }

    /// Drops a stream that the seat no longer uses.
    fn tidy(&mut self) {
        let used = self.seat.connection();
        self.line.take_if(|(connection, _)| Some(*connection) != used);
    }
}

/// The seats of all parties that are processes.
pub struct Hub {
    settings: Settings,
    clock: Arc<dyn Clock>,
    greeting: Greeting,
    posts: BTreeMap<Party, Post>,
    log: Mutex<Box<dyn Log>>,
    counters: Counters,
    stopping: AtomicBool,
    /// A party was lost and training does not continue without it.
    failed: Mutex<Option<Lost>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hub {
    /// Seats for the parties of the greeting.
    pub fn new(
        settings: Settings,
        clock: Arc<dyn Clock>,
        greeting: Greeting,
        log: Box<dyn Log>,
    ) -> Self {
        let post = |party: &Party| {
            let seat = Seat::new(*party, settings.pace, settings.most_bytes);
            let chair = Mutex::new(Chair { seat, line: None, samples: 0, gain_db: None });
            (*party, Post { chair, changed: Condvar::new() })
        };
        let posts = greeting.work.keys().map(post).collect();
        Self {
            settings,
            clock,
            greeting,
            posts,
            log: Mutex::new(log),
            counters: Counters::default(),
            stopping: AtomicBool::new(false),
            failed: Mutex::new(None),
        }
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The clock.
    pub fn now(&self) -> Duration {
        self.clock.now()
    }

    /// Whether a party has a seat.
    pub fn knows(&self, party: Party) -> bool {
        self.posts.contains_key(&party)
    }

    /// Requests from now on belong to this round.
    pub fn begin_round(&self, round: u64) {
        self.counters.round.store(round, Ordering::SeqCst);
    }

    /// From now on no request waits for a party that is away.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.posts.values().for_each(|post| post.changed.notify_all());
    }

    /// What a checkpoint must contain of a party.
    pub fn seat_state(&self, party: Party) -> Option<SeatState> {
        self.posts.get(&party).map(|post| locked(&post.chair).seat.state())
    }

    /// Takes over what a checkpoint contains.
    pub fn restore_seat(&self, party: Party, state: SeatState) {
        if let Some(post) = self.posts.get(&party) {
            locked(&post.chair).seat.restore(state);
        }
    }

    /// The party starts anew with its next request.
    pub fn rejoin(&self, party: Party) {
        if let Some(post) = self.posts.get(&party) {
            locked(&post.chair).seat.rejoin();
        }
    }

    /// A checkpoint contains everything that was exchanged.
    pub fn checkpointed(&self) -> std::io::Result<()> {
        locked(&self.log).clear()
    }

    /// Waits until all parties have a stream, at most as long as patience lasts.
    pub fn wait_for_all(&self) {
        let start = self.clock.now();
        while !self.status().away.is_empty()
            && self.clock.now().saturating_sub(start) < self.settings.patience
            && !self.stopping.load(Ordering::SeqCst)
        {
            std::thread::sleep(LOOK);
        }
    }

    /// Whether a party has a stream.
    pub fn is_attached(&self, party: Party) -> bool {
        self.posts.get(&party).is_some_and(|post| locked(&post.chair).line.is_some())
    }

    /// Number of samples that a terminal reported.
    pub fn samples(&self, party: Party) -> u64 {
        self.posts.get(&party).map_or(0, |post| locked(&post.chair).samples)
    }

    /// The channel of a terminal as its probe measured it last, in dB.
    pub fn gain_db(&self, party: Party) -> Option<f64> {
        self.posts.get(&party).and_then(|post| locked(&post.chair).gain_db)
    }

    /// Asks a party and waits for its answer, at most until `until`.
    pub fn call(
        &self,
        party: Party,
        payload: &[u8],
        grant: Option<Grant>,
        until: Option<Duration>,
    ) -> Result<Call, Lost> {
        if let Some(lost) = locked(&self.failed).clone() {
            return Err(lost);
        }
        let done = self.exchange(party, payload, grant, until);
        if let Err(lost) = &done {
            self.counters.lost.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(%party, %lost, "no answer");
            if !self.settings.goes_on {
                locked(&self.failed).get_or_insert(lost.clone());
            }
        }
        done
    }

    fn exchange(
        &self,
        party: Party,
        payload: &[u8],
        grant: Option<Grant>,
        until: Option<Duration>,
    ) -> Result<Call, Lost> {
        let post = self.posts.get(&party).ok_or(Lost::Away(party, Duration::ZERO))?;
        let round = self.counters.round.load(Ordering::SeqCst);
        let mut chair = locked(&post.chair);
        let now = self.clock.now();
        let asked = chair.seat.ask(now, round, payload, grant, &**locked(&self.log));
        match asked.map_err(unusable)? {
            Asked::Answered(exchange) => return self.known(&mut chair, exchange),
            Asked::Open(frames) => chair.send(now, frames),
        }
        self.counters.bytes_down.fetch_add(payload.len() as u64, Ordering::Relaxed);
        loop {
            if let Some(exchange) = chair.seat.take_answer() {
                return self.settle(party, &mut chair, exchange);
            }
            if let Some(lost) = self.is_lost(party, &chair, until) {
                return Err(self.lose(&mut chair, lost));
            }
            let woken = post.changed.wait_timeout(chair, LOOK);
            chair = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// What the log holds.
    fn known(&self, chair: &mut Chair, exchange: Exchange) -> Result<Call, Lost> {
        let Exchange { answer, payload, took_s, lost, .. } = exchange;
        match answer {
            Some(answer) => Ok(Call { answer, payload, took_s }),
            None => {
                chair.seat.rejoin();
                Err(Lost::Before(lost))
            }
        }
    }

    fn settle(&self, party: Party, chair: &mut Chair, exchange: Exchange) -> Result<Call, Lost> {
        let Exchange { key, digest, answer, payload, took_s, .. } = exchange;
        let answer = answer.unwrap_or_default();
        if !answer.out_of_step {
            self.counters.answered.fetch_add(1, Ordering::Relaxed);
            self.counters.bytes_up.fetch_add(payload.len() as u64, Ordering::Relaxed);
            return Ok(Call { answer, payload, took_s });
        }
        let lost = Lost::OutOfStep(party, String::from_utf8_lossy(&payload).into_owned());
        if self.settings.goes_on {
            let text = lost.to_string();
            let note = Exchange { key, digest, took_s, lost: text, ..Exchange::default() };
            let noted = chair.seat.note_loss(note, &mut **locked(&self.log));
            noted.map_err(unusable)?;
            chair.seat.rejoin();
        }
        Err(lost)
    }

    fn is_lost(&self, party: Party, chair: &Chair, until: Option<Duration>) -> Option<Lost> {
        let now = self.clock.now();
        if until.is_some_and(|until| now >= until) {
            return Some(Lost::Late(party));
        }
        let away = chair.line.is_none();
        if away && self.stopping.load(Ordering::SeqCst) {
            return Some(Lost::Stopped(party));
        }
        let since = chair.seat.away_since().filter(|_| away)?;
        let patience = self.settings.patience;
        (now.saturating_sub(since) > patience).then_some(Lost::Away(party, patience))
    }

    fn lose(&self, chair: &mut Chair, lost: Lost) -> Lost {
        if !self.settings.goes_on {
            chair.seat.suspend();
            return lost;
        }
        let now = self.clock.now();
        let noted = chair.seat.give_up(now, &lost.to_string(), &mut **locked(&self.log));
        chair.seat.rejoin();
        noted.map_or_else(unusable, |()| lost)
    }

    /// A stream of a party whose hello was accepted. Returns its number.
    pub fn attach(&self, party: Party, samples: u64, line: Box<dyn Line>) -> Option<u64> {
        let post = self.posts.get(&party)?;
        let connection = self.counters.streams.fetch_add(1, Ordering::SeqCst) + 1;
        let now = self.clock.now();
        let mut chair = locked(&post.chair);
        if let Some((_, old)) = chair.line.take() {
            old.send(StationEnd::goodbye("a newer stream took its place", false));
        }
        chair.line = Some((connection, line));
        chair.samples = samples;
        let mut frames = self.welcome(party);
        frames.extend(chair.seat.attach(now, connection));
        chair.send(now, frames);
        post.changed.notify_all();
        tracing::info!(%party, connection, samples, "attached");
        Some(connection)
    }

    fn welcome(&self, party: Party) -> Vec<Down> {
        let empty = Arc::default();
        let payload: &Arc<Vec<u8>> = self.greeting.work.get(&party).unwrap_or(&empty);
        let Pace { heartbeat, silence } = self.settings.pace;
        let head = Welcome {
            version: VERSION,
            run: self.greeting.run.clone(),
            heartbeat_s: heartbeat.as_secs_f64(),
            silence_s: silence.as_secs_f64(),
            most_bytes: self.settings.most_bytes,
            n_bytes: payload.len() as u64,
            payload: first_part(payload).to_vec(),
        };
        let rest =
            later_parts(payload).map(|part| down::Body::Part(Part { payload: part.to_vec() }));
        let bodies = std::iter::once(down::Body::Welcome(head)).chain(rest);
        bodies.map(|body| Down { body: Some(body) }).collect()
    }

    /// A frame of a stream. An error ends the stream.
    pub fn receive(&self, party: Party, connection: u64, frame: Up) -> Result<(), Violation> {
        let Some(post) = self.posts.get(&party) else { return Ok(()) };
        let now = self.clock.now();
        let mut chair = locked(&post.chair);
        if let Some(up::Body::Heartbeat(Heartbeat { gain_db: Some(gain_db), .. })) = frame.body
            && GAINS_DB.contains(&gain_db)
            && chair.seat.connection() == Some(connection)
        {
            chair.gain_db = Some(gain_db);
        }
        let taken = chair.seat.receive(now, connection, frame, &mut **locked(&self.log));
        let result = match taken {
            Ok(result) => result,
            Err(error) => {
                tracing::error!(%party, %error, "the journal cannot be written");
                locked(&self.failed).get_or_insert(unusable(error));
                Ok(())
            }
        };
        if let Err(violation) = &result {
            self.counters.violations.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(%party, connection, %violation, "the contract was broken");
        }
        chair.tidy();
        post.changed.notify_all();
        result
    }

    /// A stream ended.
    pub fn detach(&self, party: Party, connection: u64) {
        let Some(post) = self.posts.get(&party) else { return };
        let mut chair = locked(&post.chair);
        let now = self.clock.now();
        chair.seat.detach(now, connection);
        if chair.line.as_ref().is_some_and(|(used, _)| *used == connection) {
            chair.line = None;
            tracing::info!(%party, connection, "detached");
        }
        post.changed.notify_all();
    }

    /// Time passes: heartbeats, and streams that were silent for too long.
    pub fn tick(&self) {
        let now = self.clock.now();
        for post in self.posts.values() {
            let mut chair = locked(&post.chair);
            let beat = chair.seat.tick(now);
            chair.send(now, beat.into_iter().collect());
            chair.tidy();
        }
    }

    /// Ends all streams.
    pub fn goodbye(&self, reason: &str, finished: bool) {
        for post in self.posts.values() {
            if let Some((_, line)) = locked(&post.chair).line.take() {
                line.send(StationEnd::goodbye(reason, finished));
            }
        }
    }

    /// Numbers for people and monitors.
    pub fn status(&self) -> Status {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut status = Status {
            round: of(&self.counters.round),
            answered: of(&self.counters.answered),
            lost: of(&self.counters.lost),
            streams: of(&self.counters.streams),
            violations: of(&self.counters.violations),
            bytes_down: of(&self.counters.bytes_down),
            bytes_up: of(&self.counters.bytes_up),
            ..Status::default()
        };
        for (party, post) in &self.posts {
            let is_attached = locked(&post.chair).line.is_some();
            (if is_attached { &mut status.attached } else { &mut status.away }).push(*party);
        }
        status
    }
}

fn unusable(error: SeatError) -> Lost {
    Lost::Journal(error.to_string())
}
