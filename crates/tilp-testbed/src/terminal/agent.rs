//! Answers requests once each, whatever happens to the process or the network in between.
//!
//! The state after a request and the answer to it are saved together before the answer is given.
//! So a request that comes again has the same answer, and is not worked on again.

use prost::Message;

use super::Store;
use crate::contract::journal::Step;
use crate::contract::v1::{Answer, Grant, Key, Request, Welcome};

/// What a stream of the base station is answered by.
pub trait Responder: Send {
    /// A stream was opened. An error ends the process: it cannot take part in this run.
    fn welcome(&mut self, welcome: &Welcome, work: &[u8]) -> Result<(), String>;
    /// The answer to a request, and its payload.
    fn respond(&mut self, request: &Request, payload: &[u8]) -> Result<(Answer, Vec<u8>), String>;
}

/// The work behind an [`Agent`]: state that changes with every message.
pub trait Worker: Send {
    /// Takes over what the base station says about the run. Returns an error if it cannot be used.
    fn prepare(&mut self, work: &[u8]) -> Result<(), String>;
    /// Begins a membership. The first of a run holds the start weights, later ones hold nothing.
    fn reset(&mut self, membership: u64) -> Result<(), String>;
    /// The base station has granted band and power for the messages of a round.
    fn granted(&mut self, _round: u64, _grant: &Grant) {}
    /// Answers a message. After an error nothing has changed.
    fn handle(&mut self, round: u64, message: &[u8]) -> Result<Worked, String>;
    /// Its state.
    fn save(&self) -> Vec<u8>;
    /// Takes the state after a step of this round back. A reset for the same membership came
    /// before.
    fn restore(&mut self, round: u64, state: &[u8]) -> Result<(), String>;
}

/// A message of the split engine, and what it took.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Worked {
    /// The answer.
    pub message: Vec<u8>,
    /// Seconds of computation.
    pub compute_s: f64,
    /// Metered energy.
    pub energy_j: Option<f64>,
}

/// A worker whose every step is journalled.
pub struct Agent<W, S> {
    worker: W,
    store: S,
    run: String,
    membership: Option<u64>,
    last: Option<(Key, Answer, Vec<u8>)>,
}

impl<W: Worker, S: Store> Agent<W, S> {
    /// An agent that continues what the store holds.
    pub fn new(worker: W, store: S) -> Self {
        Self { worker, store, run: String::new(), membership: None, last: None }
    }

    /// The worker.
    pub fn worker(&self) -> &W {
        &self.worker
    }

    /// Key of the last request that it worked on.
    pub fn last_key(&self) -> Option<Key> {
        self.last.as_ref().map(|(key, ..)| *key)
    }

    /// Takes back what was saved, if it belongs to this run.
    fn recover(&mut self) -> Result<(), String> {
        (self.membership, self.last) = (None, None);
        let Some(bytes) = self.store.load().map_err(|error| format!("journal: {error}"))? else {
            return Ok(());
        };
        let journal = Step::decode(&bytes[..]).map_err(|error| format!("journal: {error}"))?;
        if journal.run != self.run {
            return Ok(());
        }
        let Step { membership, key, answer, payload, state, .. } = journal;
        let (Some(key), Some(answer)) = (key, answer) else {
            return Err("journal: a step without its key or answer".into());
        };
        self.worker.reset(membership)?;
        self.worker.restore(key.round, &state)?;
        self.membership = Some(membership);
        self.last = Some((key, answer, payload));
        Ok(())
    }

    /// Why a new request cannot follow what was done last; none if it can.
    fn out_of_step(&self, request: &Request) -> Option<String> {
        let last = self.last_key();
        let follows = match self.membership {
            Some(known) if known == request.membership => request.previous == last,
            Some(known) => known < request.membership && request.previous.is_none(),
            None => request.previous.is_none(),
        };
        let name = |key: Option<Key>| {
            key.map_or("none".into(), |key| format!("({}, {})", key.round, key.step))
        };
        (!follows).then(|| {
            format!(
                "out of step: request after {} of membership {}, expected after {} of {}",
                name(request.previous),
                request.membership,
                name(last),
                self.membership.map_or("any".into(), |known| known.to_string())
            )
        })
    }

    fn save(&mut self, membership: u64) -> Result<(), String> {
        let Some((key, answer, payload)) = &self.last else { return Ok(()) };
        let journal = Step {
            run: self.run.clone(),
            membership,
            key: Some(*key),
            answer: Some(answer.clone()),
            payload: payload.clone(),
            state: self.worker.save(),
        };
        let saved = self.store.save(&journal.encode_to_vec());
        saved.map_err(|error| format!("journal: {error}"))
    }
}

fn refusal(request: &Request, why: String) -> (Answer, Vec<u8>) {
    (Answer { key: request.key, refused: true, ..Answer::default() }, why.into_bytes())
}

impl<W: Worker, S: Store> Responder for Agent<W, S> {
    fn welcome(&mut self, welcome: &Welcome, work: &[u8]) -> Result<(), String> {
        // The same run again: the stream was lost, the process was not.
        if !self.run.is_empty() && self.run == welcome.run {
            return Ok(());
        }
        self.run.clone_from(&welcome.run);
        self.worker.prepare(work)?;
        self.recover()
    }

    fn respond(&mut self, request: &Request, payload: &[u8]) -> Result<(Answer, Vec<u8>), String> {
        let Some(key) = request.key else { return Ok(refusal(request, "no key".into())) };
        if let Some((last, answer, payload)) = &self.last
            && *last == key
            && self.membership == Some(request.membership)
        {
            return Ok((answer.clone(), payload.clone()));
        }
        if let Some(why) = self.out_of_step(request) {
            let (answer, why) = refusal(request, why);
            return Ok((Answer { out_of_step: true, ..answer }, why));
        }
        if self.membership != Some(request.membership) {
            self.worker.reset(request.membership)?;
            self.membership = Some(request.membership);
        }
        if let Some(grant) = &request.grant {
            self.worker.granted(key.round, grant);
        }
        let (answer, payload) = match self.worker.handle(key.round, payload) {
            Ok(Worked { message, compute_s, energy_j }) => {
                let answer = Answer { key: Some(key), compute_s, energy_j, ..Answer::default() };
                (answer, message)
            }
            Err(why) => refusal(request, why),
        };
        self.last = Some((key, answer.clone(), payload.clone()));
        self.save(request.membership)?;
        Ok((answer, payload))
    }
}
