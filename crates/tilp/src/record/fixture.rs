//! Rounds and folders for the tests of this room.

use std::path::{Path, PathBuf};

use super::event::{Decided, Event, EventId, Executed, Finished, Header, Measurement};
use super::{Evaluation, FirstPassage, History, Identity, Summary};
use crate::cost::Hardware;
use crate::round::{
    Budget, Decision, Ledger, Limits, LossChange, Observation, Outcome, RoundOrder, SuccessCount,
    TerminalDecision, TerminalId, TerminalLedger, TerminalOutcome, TerminalReport, TerminalSuccess,
    TerminalView, Violation,
};
use crate::rule::Rule;
use crate::run::RoundRecord;
use crate::split::rates::Rates;
use crate::units::{Bytes, Gain, Hertz, Joules, Seconds, Watts};

const N: usize = 3;

const HARDWARE: Hardware = Hardware {
    operations_per_cycle: 1.0,
    clock: Hertz(1e9),
    energy_coefficient: 1e-28,
    noise_w_per_hz: 4e-21,
};

/// A round of three terminals: the first takes part, the second is late, the third is idle.
/// Even rounds end with report episodes, every fourth with calibration episodes.
pub(super) fn record(round: u64) -> RoundRecord {
    let seen = observation(round);
    let order = RoundOrder {
        round,
        terminals: seen.ids(),
        plan: limits().project(decision()),
        rule: Rule::Parallel,
        rates: Rates { server: 0.1, terminal: 0.1 },
        aggregates: seen.aggregates,
    };
    let calibration = round.is_multiple_of(4).then(|| calibration(round));
    let (outcome, books) = (outcome(round), Some(ledger(round)));
    RoundRecord { seen, order, outcome, calibration, books }
}

/// The decision of a round as an event.
pub(super) fn decided(round: u64) -> Decided {
    let RoundRecord { seen, order, .. } = record(round);
    Decided::new(EventId(round, 0), &seen, &order, None)
}

/// What came of it.
pub(super) fn executed(round: u64) -> Executed {
    let RoundRecord { outcome, books, .. } = record(round);
    Executed::new(EventId(round, 1), &outcome, books.as_ref())
}

/// The events of that many rounds.
pub(super) fn events(n_rounds: u64) -> Vec<Event> {
    let base = vec![success(0, SuccessCount { successes: 3, episodes: 10 })];
    let header = Header::new(&identity(), &evaluation().task_names);
    let mut events =
        vec![Event::Header(header), Event::Measured(Measurement::new(EventId(0, 1), &base))];
    for round in 1..=n_rounds {
        let RoundRecord { calibration, books, .. } = record(round);
        events.push(Event::Decided(Box::new(decided(round))));
        events.push(Event::Executed(Box::new(executed(round))));
        let mut id = EventId(round, 2);
        if let Some(counts) = calibration {
            events.push(Event::Calibrated(Measurement::new(id, &counts)));
            id = id.next();
        }
        if let Some(counts) = books.and_then(|books| books.report) {
            events.push(Event::Measured(Measurement::new(id, &counts)));
        }
    }
    events
}

/// The end of a run with this number of rounds.
pub(super) fn finished(round: u64) -> Event {
    let summary = Summary::of(&history(round), &evaluation());
    let terminals = evaluation().terminals.iter().collect();
    Event::Finished(Box::new(Finished { id: EventId(round, 9), terminals, summary }))
}

/// The events of that many rounds as bytes.
pub(super) fn stream(n_rounds: u64) -> Vec<u8> {
    events(n_rounds).iter().map(Event::to_line).collect::<String>().into_bytes()
}

/// The rows of that many rounds.
pub(super) fn history(n_rounds: u64) -> History {
    let mut history = History::default();
    events(n_rounds).iter().for_each(|event| history.push(event).unwrap());
    history
}

/// The end of a run of these rounds.
pub(super) fn evaluation() -> Evaluation {
    let count = |successes| SuccessCount { successes, episodes: 10 };
    Evaluation {
        base: Some(count(3)),
        terminals: (0..N).map(|n| success(n, count(9 - 3 * n as u64))).collect(),
        task_names: vec!["push".into(), "reach".into()],
        first_passage: FirstPassage::Single,
        rule: Some(Rule::Parallel),
        events: Vec::new(),
        note: None,
        budget: Budget::default(),
    }
}

/// Whose checkpoint it is.
pub(super) fn identity() -> Identity {
    Identity { method: "deficit".into(), seed: 7, replicate: 0, scenario: "abc123".into() }
}

/// A folder for one test, removed at its end.
pub(super) struct Scratch(PathBuf);

impl Scratch {
    pub(super) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tilp-record-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn limits() -> Limits {
    Limits {
        deadline: Seconds(2.0),
        bandwidth: Hertz(100.0),
        power: Watts(0.2),
        compression: 0.9,
        cuts: vec![1, 2],
    }
}

fn observation(round: u64) -> Observation {
    let view = |n: usize| TerminalView {
        report: TerminalReport {
            id: TerminalId(n as u32),
            hardware: HARDWARE,
            memory: Bytes(1000),
            n_samples: 10,
            task: n.min(1),
            gain: Gain::from_loss_db(100.0 + 10.0 * n as f64),
            fading_power: 0.5 + round as f64 / 7.0,
            held_layers: n,
            owed_layers: 0,
        },
        previous_bandwidth: Hertz(0.0),
        gradient_norm: None,
        loss: None,
        rounds_since_scheduled: None,
        success: None,
    };
    Observation {
        round,
        clock: Seconds(2.0 * (round - 1) as f64),
        aggregates: round.is_multiple_of(5),
        loss: None,
        success: None,
        budget: None,
        terminals: (0..N).map(view).collect(),
    }
}

fn decision() -> Decision {
    let busy = TerminalDecision {
        scheduled: true,
        bandwidth: Hertz(60.0),
        power: Watts(0.1),
        cut: 2,
        compression: 0.75,
    };
    let mut decision = Decision::idle(N, 1);
    decision.terminals[0] = busy;
    decision.terminals[1] = busy;
    decision
}

fn success(n: usize, count: SuccessCount) -> TerminalSuccess {
    TerminalSuccess { id: TerminalId(n as u32), task: n.min(1), count }
}

fn ledger(round: u64) -> Ledger {
    let truth = |n: usize| TerminalLedger {
        delay: Seconds([1.0, 3.0, 0.0][n]),
        energy_compute: Joules([0.5, 0.25, 0.0][n]),
        energy_radio: Joules([0.1, 0.2 / round as f64, 0.0][n]),
        bandwidth: Hertz([50.0, 50.0, 0.0][n]),
        bytes_up: Bytes([100, 200, 0][n]),
        bytes_down: Bytes([10, 20, 0][n]),
        bytes_sync: Bytes([0, 0, 7][n]),
    };
    let counts = SuccessCount { successes: round.min(8), episodes: 8 };
    Ledger {
        terminals: (0..N).map(truth).collect(),
        latency: Seconds(if round == 2 { f64::INFINITY } else { 3.0 }),
        duration: Seconds(2.0),
        violation: Violation { deadline: Seconds(1.0), relative: 0.7, ..Default::default() },
        report: round.is_multiple_of(2).then(|| vec![success(0, counts)]),
        losses: round.is_multiple_of(3).then(|| losses(round)),
        episodes: if round.is_multiple_of(2) { 8 } else { 0 },
    }
}

fn outcome(round: u64) -> Outcome {
    let observed = |n: usize| TerminalOutcome {
        id: TerminalId(n as u32),
        took_part: n == 0,
        late: n == 1,
        unfit: n == 2,
        unfinished: n == 1,
        delay: Seconds([1.1, 2.9, 0.0][n]),
        computation: Seconds(0.5),
        energy: Joules(0.3),
        bytes: Bytes(0),
        loss: (n == 0).then(|| 1.0 / round as f64),
        gradient_norm: (n == 0).then_some(0.1),
        success: None,
    };
    let by_task = |round: u64| vec![round.min(8), 0];
    let count = |successes| SuccessCount { successes, episodes: 8 };
    Outcome {
        round,
        duration: Seconds(2.0),
        loss: (round != 1).then(|| 1.0 / round as f64),
        terminals: (0..N).map(observed).collect(),
        success: round.is_multiple_of(4).then(|| by_task(round).into_iter().map(count).collect()),
    }
}

fn losses(round: u64) -> Vec<LossChange> {
    let before = |n: usize| 1.0 / (round + n as u64) as f64;
    (0..N).map(|n| LossChange { before: before(n), after: 0.9 * before(n) }).collect()
}

fn calibration(round: u64) -> Vec<TerminalSuccess> {
    let count = |successes| SuccessCount { successes, episodes: 8 };
    vec![success(0, count(round.min(8))), success(1, count(0))]
}
