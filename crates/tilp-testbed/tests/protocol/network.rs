//! A network in virtual time, with a base station and terminals that can be killed.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use rand::RngExt;
use tilp_core::rng::{Rng, Seed};
use tilp_testbed::contract::v1::{Down, Hello, Up, Welcome, down, up};
use tilp_testbed::contract::{MOST_BYTES, VERSION};
use tilp_testbed::session::{Incoming, Pace, TerminalEnd};
use tilp_testbed::station::{Asked, Exchange, Log, MemoryLog, Party, Seat, SeatState};
use tilp_testbed::terminal::{Agent, MemoryStore, Responder};

use crate::program::{Accumulator, Program, digest};

const PACE: Pace =
    Pace { heartbeat: Duration::from_millis(200), silence: Duration::from_millis(1000) };
/// Faults end here, so that every run can end.
const QUIET_MS: u64 = 20_000;
const END_MS: u64 = 200_000;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Faults {
    None,
    Many,
}

/// How a run went.
pub struct Ran {
    pub result: [u8; 32],
    /// Requests that each terminal worked on, by its own count.
    pub worked: Vec<u64>,
    pub requests_delivered: u64,
    pub trace: Vec<String>,
}

enum Frame {
    Up(Up),
    Down(Down),
}

/// One stream: frames on their way, first in, first out in each direction.
struct Wire {
    terminal: usize,
    up: VecDeque<(u64, Up)>,
    down: VecDeque<(u64, Down)>,
    /// Nothing more gets onto it. What was on its way may arrive: the beginning of it, in order.
    is_dead: bool,
    /// The near end has seen the end of the stream.
    is_cut_at_station: bool,
    is_cut_at_terminal: bool,
}

struct Terminal {
    store: MemoryStore,
    agent: Option<Agent<Accumulator, MemoryStore>>,
    line: Option<(u64, TerminalEnd)>,
    dials_at: u64,
}

/// What a checkpoint of the station contains.
#[derive(Clone)]
struct Checkpoint {
    round: u64,
    whole: [u8; 32],
    seats: Vec<SeatState>,
}

struct Station {
    seats: Vec<Seat>,
    round: u64,
    whole: [u8; 32],
    chains: Vec<[u8; 32]>,
    /// Steps done in this round; whether a request is open.
    steps: Vec<u32>,
    is_open: Vec<bool>,
}

pub struct Network {
    program: Program,
    faults: Faults,
    rng: Rng,
    now: u64,
    wires: BTreeMap<u64, Wire>,
    n_wires: u64,
    terminals: Vec<Terminal>,
    station: Option<Station>,
    starts_at: u64,
    /// What survives the station.
    log: MemoryLog,
    checkpoint: Checkpoint,
    requests_delivered: u64,
    trace: Vec<String>,
}

fn time(now: u64) -> Duration {
    Duration::from_millis(now)
}

impl Network {
    pub fn new(seed: u64, program: Program, faults: Faults) -> Self {
        let n = program.terminals;
        let terminal =
            |_| Terminal { store: MemoryStore::default(), agent: None, line: None, dials_at: 1 };
        Self {
            rng: Seed::new(seed).stream("network"),
            faults,
            now: 0,
            wires: BTreeMap::new(),
            n_wires: 0,
            terminals: (0..n).map(terminal).collect(),
            station: None,
            starts_at: 0,
            log: MemoryLog::default(),
            checkpoint: Checkpoint {
                round: 0,
                whole: [0; 32],
                seats: vec![SeatState::default(); n],
            },
            requests_delivered: 0,
            trace: Vec::new(),
            program,
        }
    }

    fn note(&mut self, what: &str, who: impl std::fmt::Display) {
        self.trace.push(format!("{} {what} {who}", self.now));
    }

    fn chance(&mut self, per_thousand: u32) -> bool {
        let is_on = self.faults == Faults::Many && self.now < QUIET_MS;
        self.rng.random_range(0..1000) < per_thousand && is_on
    }

    /// Runs to the end.
    pub fn run(mut self) -> Ran {
        while self.checkpoint.round < self.program.rounds {
            self.now += 10;
            assert!(self.now < END_MS, "no end: {:?}", self.trace.iter().rev().take(20));
            self.fail();
            self.start_station();
            self.deliver();
            self.tick();
            self.dial();
            self.advance();
        }
        // A worker that was killed after its last step is asked what it has done.
        let worked = (0..self.terminals.len()).map(|one| self.worked(one)).collect();
        let Self { checkpoint, requests_delivered, trace, .. } = self;
        Ran { result: checkpoint.whole, worked, requests_delivered, trace }
    }

    fn worked(&mut self, terminal: usize) -> u64 {
        if self.terminals[terminal].agent.is_none() {
            self.terminals[terminal].agent = Some(self.agent(terminal));
        }
        let agent = self.terminals[terminal].agent.as_mut().unwrap();
        let welcome = Welcome { version: VERSION, run: "run".into(), ..Welcome::default() };
        agent.welcome(&welcome, &[]).unwrap();
        agent.worker().worked()
    }

    fn agent(&self, terminal: usize) -> Agent<Accumulator, MemoryStore> {
        Agent::new(Accumulator::default(), self.terminals[terminal].store.clone())
    }

    /// Something breaks now and then.
    fn fail(&mut self) {
        if self.station.is_some() && self.chance(4) {
            self.note("kill-station", "");
            self.station = None;
            self.starts_at = self.now + self.rng.random_range(10..1500);
            let all: Vec<u64> = self.wires.keys().copied().collect();
            all.into_iter().for_each(|wire| self.cut_at_station(wire));
        }
        for terminal in 0..self.terminals.len() {
            if self.terminals[terminal].agent.is_some() && self.chance(4) {
                self.note("kill-terminal", terminal);
                self.terminals[terminal].agent = None;
                self.terminals[terminal].dials_at = self.now + self.rng.random_range(10..1500);
                self.hang_up(terminal);
            }
        }
        let all: Vec<u64> = self.wires.keys().copied().collect();
        for wire in all {
            if self.chance(6) {
                self.note("cut", wire);
                // Each side learns of it in its own time, or by silence.
                if self.chance(700) {
                    self.cut_at_station(wire);
                }
                if self.chance(700) {
                    self.cut_at_terminal(wire);
                }
                if let Some(wire) = self.wires.get_mut(&wire) {
                    wire.is_dead = true;
                    let keep = self.rng.random_range(0..=wire.up.len());
                    wire.up.truncate(keep);
                    let keep = self.rng.random_range(0..=wire.down.len());
                    wire.down.truncate(keep);
                }
            }
        }
    }

    fn hang_up(&mut self, terminal: usize) {
        if let Some((wire, _)) = self.terminals[terminal].line.take() {
            self.cut_at_terminal(wire);
        }
    }

    /// The station sees the end of a stream. Frames that it has sent may still arrive.
    fn cut_at_station(&mut self, wire: u64) {
        let Some(one) = self.wires.get_mut(&wire) else { return };
        one.is_cut_at_station = true;
        one.up.clear();
        let terminal = one.terminal;
        if let Some(station) = &mut self.station {
            station.seats[terminal].detach(time(self.now), wire);
        }
    }

    fn cut_at_terminal(&mut self, wire: u64) {
        let Some(one) = self.wires.get_mut(&wire) else { return };
        one.is_cut_at_terminal = true;
        one.down.clear();
        let terminal = one.terminal;
        if self.terminals[terminal].line.as_ref().is_some_and(|(line, _)| *line == wire) {
            self.terminals[terminal].line = None;
            let pause = self.rng.random_range(10..400);
            let dials_at = &mut self.terminals[terminal].dials_at;
            *dials_at = (*dials_at).max(self.now + pause);
        }
    }

    fn start_station(&mut self) {
        if self.station.is_some() || self.now < self.starts_at {
            return;
        }
        self.note("start-station", self.checkpoint.round);
        let Checkpoint { round, whole, seats } = self.checkpoint.clone();
        let seats = seats.into_iter().enumerate().map(|(terminal, state)| {
            let mut seat = Seat::new(Party::Terminal(terminal as u32), PACE, MOST_BYTES);
            seat.restore(state);
            seat
        });
        let n = self.program.terminals;
        self.station = Some(Station {
            seats: seats.collect(),
            round: round + 1,
            whole,
            chains: vec![whole; n],
            steps: vec![0; n],
            is_open: vec![false; n],
        });
    }

    fn send(&mut self, wire: u64, frame: Frame) {
        let is_slow = self.chance(150);
        let delay = self.rng.random_range(if is_slow { 80..1200 } else { 1..80 });
        let now = self.now;
        let Some(one) = self.wires.get_mut(&wire).filter(|one| !one.is_dead) else { return };
        match frame {
            Frame::Up(frame) => {
                let after = one.up.back().map_or(0, |(at, _)| *at);
                one.up.push_back((after.max(now + delay), frame));
            }
            Frame::Down(frame) => {
                let after = one.down.back().map_or(0, |(at, _)| *at);
                one.down.push_back((after.max(now + delay), frame));
            }
        }
    }

    fn send_down(&mut self, wire: u64, frames: Vec<Down>) {
        frames.into_iter().for_each(|frame| self.send(wire, Frame::Down(frame)));
    }

    /// All frames whose time has come, stream by stream.
    fn deliver(&mut self) {
        let all: Vec<u64> = self.wires.keys().copied().collect();
        for wire in all {
            while let Some(frame) = self.due_up(wire) {
                self.at_station(wire, frame);
            }
            while let Some(frame) = self.due_down(wire) {
                self.at_terminal(wire, frame);
            }
        }
        self.wires.retain(|_, wire| !(wire.is_cut_at_station && wire.is_cut_at_terminal));
    }

    fn due_up(&mut self, wire: u64) -> Option<Up> {
        let (now, wire) = (self.now, self.wires.get_mut(&wire)?);
        let is_due = wire.up.front().is_some_and(|(at, _)| *at <= now);
        (is_due && !wire.is_cut_at_station).then(|| wire.up.pop_front().unwrap().1)
    }

    fn due_down(&mut self, wire: u64) -> Option<Down> {
        let (now, wire) = (self.now, self.wires.get_mut(&wire)?);
        let is_due = wire.down.front().is_some_and(|(at, _)| *at <= now);
        (is_due && !wire.is_cut_at_terminal).then(|| wire.down.pop_front().unwrap().1)
    }

    fn at_station(&mut self, wire: u64, frame: Up) {
        let terminal = self.wires[&wire].terminal;
        let now = time(self.now);
        let Some(station) = &mut self.station else { return };
        let seat = &mut station.seats[terminal];
        if let Some(up::Body::Hello(_)) = &frame.body {
            let welcome = Welcome {
                version: VERSION,
                run: "run".into(),
                heartbeat_s: PACE.heartbeat.as_secs_f64(),
                silence_s: PACE.silence.as_secs_f64(),
                most_bytes: MOST_BYTES,
                ..Welcome::default()
            };
            let mut frames = vec![Down { body: Some(down::Body::Welcome(welcome)) }];
            frames.extend(seat.attach(now, wire));
            self.send_down(wire, frames);
            return;
        }
        let is_old = seat.connection().is_some_and(|used| used != wire);
        let taken = seat.receive(now, wire, frame, &mut self.log);
        if is_old {
            self.note("late-frame", wire);
        }
        if taken.unwrap().is_err() {
            panic!("the terminal broke the contract");
        }
    }

    fn at_terminal(&mut self, wire: u64, frame: Down) {
        let terminal = self.wires[&wire].terminal;
        let now = time(self.now);
        let Terminal { agent, line, .. } = &mut self.terminals[terminal];
        let (Some(agent), Some((used, end))) = (agent, line) else { return };
        if *used != wire {
            return;
        }
        match end.receive(now, frame).expect("the station keeps the contract") {
            Incoming::Welcome(welcome, payload) => agent.welcome(&welcome, &payload).unwrap(),
            Incoming::Request(request, payload) => {
                self.requests_delivered += 1;
                let is_known = agent.last_key() == request.key;
                let (answer, payload) = agent.respond(&request, &payload).unwrap();
                assert!(!answer.refused, "{}", String::from_utf8_lossy(&payload));
                let frames = end.answer(now, &answer, &payload);
                if is_known {
                    self.note("repeated", terminal);
                }
                frames.into_iter().for_each(|frame| self.send(wire, Frame::Up(frame)));
            }
            Incoming::Nothing | Incoming::Goodbye(_) => {}
        }
    }

    fn tick(&mut self) {
        let now = time(self.now);
        for terminal in 0..self.terminals.len() {
            if let Some(station) = &mut self.station {
                let seat = &mut station.seats[terminal];
                let wire = seat.connection();
                let beat = seat.tick(now);
                let is_gone = seat.connection().is_none();
                match (wire, beat) {
                    (Some(wire), Some(beat)) => self.send(wire, Frame::Down(beat)),
                    (Some(wire), None) if is_gone => self.cut_at_station(wire),
                    _ => {}
                }
            }
            let Some((wire, end)) = &mut self.terminals[terminal].line else { continue };
            let wire = *wire;
            match end.tick(now) {
                (_, true) => self.hang_up(terminal),
                (Some(beat), false) => self.send(wire, Frame::Up(beat)),
                (None, false) => {}
            }
        }
    }

    fn dial(&mut self) {
        for terminal in 0..self.terminals.len() {
            let one = &self.terminals[terminal];
            if one.line.is_some() || self.now < one.dials_at || self.station.is_none() {
                continue;
            }
            if one.agent.is_none() {
                self.terminals[terminal].agent = Some(self.agent(terminal));
            }
            self.n_wires += 1;
            let wire = self.n_wires;
            let hello = Hello { version: VERSION, id: terminal as u32, ..Hello::default() };
            let (end, first) = TerminalEnd::open(time(self.now), hello);
            self.terminals[terminal].line = Some((wire, end));
            let new = Wire {
                terminal,
                up: VecDeque::new(),
                down: VecDeque::new(),
                is_dead: false,
                is_cut_at_station: false,
                is_cut_at_terminal: false,
            };
            self.wires.insert(wire, new);
            self.note("dial", terminal);
            self.send(wire, Frame::Up(first));
        }
    }

    /// The station computes what it can.
    fn advance(&mut self) {
        let Some(mut station) = self.station.take() else { return };
        for terminal in 0..self.program.terminals {
            self.progress(&mut station, terminal);
        }
        let steps = &self.program.steps[station.round as usize - 1];
        let is_done = station.steps == *steps && !station.is_open.contains(&true);
        if is_done && self.complete(&mut station) {
            return; // killed between checkpoint and journal
        }
        self.station = Some(station);
    }

    fn progress(&mut self, station: &mut Station, terminal: usize) {
        let round = station.round;
        loop {
            if station.is_open[terminal] {
                let Some(exchange) = station.seats[terminal].take_answer() else { return };
                station.is_open[terminal] = false;
                self.absorb(station, terminal, exchange);
                continue;
            }
            if station.steps[terminal] == self.program.steps[round as usize - 1][terminal] {
                return;
            }
            let payload = self.program.payload(round, &station.chains[terminal]);
            let seat = &mut station.seats[terminal];
            match seat.ask(time(self.now), round, &payload, None, &self.log).unwrap() {
                Asked::Answered(exchange) => {
                    self.note("replayed", terminal);
                    self.absorb(station, terminal, exchange);
                }
                Asked::Open(frames) => {
                    station.is_open[terminal] = true;
                    if let Some(wire) = station.seats[terminal].connection() {
                        self.send_down(wire, frames);
                    }
                }
            }
        }
    }

    fn absorb(&mut self, station: &mut Station, terminal: usize, exchange: Exchange) {
        let key = exchange.key.unwrap_or_default();
        assert_eq!((key.round, key.step), (station.round, station.steps[terminal] + 1));
        let chain = &mut station.chains[terminal];
        *chain = digest(&[&*chain, &exchange.payload]);
        station.steps[terminal] += 1;
    }

    /// Ends a round. `true` if the station was killed right after its checkpoint.
    fn complete(&mut self, station: &mut Station) -> bool {
        let chains: Vec<&[u8]> = station.chains.iter().map(|chain| &chain[..]).collect();
        station.whole = digest(&chains);
        self.note("round", station.round);
        let last = station.round == self.program.rounds;
        let mut is_killed = false;
        if last || station.round.is_multiple_of(self.program.checkpoint_every) {
            let seats = station.seats.iter().map(Seat::state).collect();
            let (round, whole) = (station.round, station.whole);
            self.checkpoint = Checkpoint { round, whole, seats };
            is_killed = self.chance(200);
            if is_killed {
                self.note("kill-station", "after its checkpoint");
                self.starts_at = self.now + 50;
                let all: Vec<u64> = self.wires.keys().copied().collect();
                all.into_iter().for_each(|wire| self.cut_at_station(wire));
            } else {
                self.log.clear().unwrap();
            }
        }
        station.round += 1;
        let n = self.program.terminals;
        (station.chains, station.steps) = (vec![station.whole; n], vec![0; n]);
        is_killed
    }
}
