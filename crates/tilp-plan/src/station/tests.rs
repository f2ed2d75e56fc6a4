//! The base station's memory of success.

use super::*;
use crate::cost::Hardware;
use crate::round::{MeasuredSuccess, SuccessCount, TerminalId, TerminalOutcome};
use crate::split::rates::Rates;
use crate::units::{Bytes, Gain, Hertz, Seconds, Watts};

/// A method that schedules no terminal and keeps its observations.
#[derive(Default)]
struct Witness(Vec<Outcome>);

impl Persist for Witness {}

impl Allocator for Witness {
    fn decide(&mut self, seen: &Observation) -> Result<Decision, DecideError> {
        Ok(Decision::idle(seen.terminals.len(), 2))
    }

    fn learn(&mut self, _seen: &Observation, _plan: &ProjectedDecision, outcome: &Outcome) {
        // Every measured count that a method receives per terminal is also in its task's sum.
        let own = outcome.terminals.iter().filter_map(|one| one.success);
        let all = outcome.success.iter().flatten();
        let sum = |counts: &mut dyn Iterator<Item = SuccessCount>| {
            counts.fold(SuccessCount::default(), SuccessCount::plus)
        };
        assert_eq!(sum(&mut own.into_iter()), sum(&mut all.copied()));
        self.0.push(outcome.clone());
    }
}

fn report(id: u32) -> TerminalReport {
    TerminalReport {
        id: TerminalId(id),
        hardware: Hardware {
            operations_per_cycle: 1.0,
            clock: Hertz(1e9),
            energy_coefficient: 1e-28,
            noise_w_per_hz: 4e-21,
        },
        memory: Bytes(1000),
        n_samples: 10,
        task: (id % 2) as usize,
        gain: Gain(1e-10),
        fading_power: 1.0,
        held_layers: 0,
        owed_layers: 0,
    }
}

fn station() -> Station {
    let limits = Limits {
        deadline: Seconds(5.0),
        bandwidth: Hertz(100.0),
        power: Watts(0.2),
        compression: 0.9,
        cuts: vec![2],
    };
    let rates = RateSchedule {
        start: Rates { server: 0.1, terminal: 0.1 },
        final_share: 1.0,
        rounds: 10,
        warm_up: 0,
    };
    let schedule = TrainingSchedule { rule: Rule::Parallel, aggregate_every: 5, rates };
    Station::new(Box::new(Witness::default()), limits, schedule, 2)
}

/// One round with these terminals, measured at its end if there are counts.
fn round(station: &mut Station, ids: &[u32], counts: Option<&[(u32, u64, u64)]>) {
    let reports: Vec<TerminalReport> = ids.iter().map(|&id| report(id)).collect();
    let seen = station.observe(&reports);
    let order = station.decide(&seen).unwrap();
    let terminals =
        ids.iter().map(|&id| TerminalOutcome { id: TerminalId(id), ..Default::default() });
    let mut outcome = Outcome {
        round: seen.round,
        duration: Seconds(1.0),
        loss: None,
        terminals: terminals.collect(),
        success: None,
    };
    let count = |&(id, successes, episodes): &(u32, u64, u64)| TerminalSuccess {
        id: TerminalId(id),
        task: (id % 2) as usize,
        count: SuccessCount { successes, episodes },
    };
    let counts: Option<Vec<TerminalSuccess>> =
        counts.map(|counts| counts.iter().map(count).collect());
    station.learn(&seen, &order.plan, &mut outcome, counts.as_deref());
}

fn remembered(station: &Station, ids: &[u32]) -> Vec<Option<(u64, u64, u64)>> {
    let reports: Vec<TerminalReport> = ids.iter().map(|&id| report(id)).collect();
    let seen = station.observe(&reports);
    let plain = |MeasuredSuccess { round, count }| (round, count.successes, count.episodes);
    seen.terminals.iter().map(|view| view.success.map(plain)).collect()
}

#[test]
fn every_terminal_is_observed_with_its_own_counts_and_the_round_they_were_measured_in() {
    let mut station = station();
    assert_eq!(remembered(&station, &[0, 1, 2]), [None; 3]);
    round(&mut station, &[0, 1, 2], None);
    round(&mut station, &[0, 1, 2], Some(&[(0, 2, 2), (1, 1, 2), (2, 0, 2)]));
    assert_eq!(remembered(&station, &[0, 1, 2]), [(2, 2, 2), (2, 1, 2), (2, 0, 2)].map(Some));
    // Terminal 1 is away at the next measurement, and terminal 7 is new after it.
    round(&mut station, &[0, 2], Some(&[(0, 1, 4), (2, 3, 4)]));
    let expected = [Some((3, 1, 4)), Some((2, 1, 2)), Some((3, 3, 4)), None];
    assert_eq!(remembered(&station, &[0, 1, 2, 7]), expected);
    let seen = station.observe(&[report(0)]);
    let by_task = seen.success.unwrap();
    assert_eq!(by_task[0], SuccessCount { successes: 4, episodes: 8 });
    assert_eq!(by_task[1], SuccessCount::default());
}

#[test]
fn counts_of_terminals_come_back_from_a_snapshot_and_impossible_ones_are_refused() {
    let mut before = station();
    round(&mut before, &[0, 1], Some(&[(0, 2, 2), (1, 0, 2)]));
    round(&mut before, &[0, 1, 5], None);
    let mut snapshot = Snapshot::default();
    before.save(&mut snapshot);
    let mut after = station();
    after.restore(&snapshot).unwrap();
    assert_eq!(after.memory(), before.memory());
    assert_eq!(remembered(&after, &[0, 1, 5]), [Some((1, 2, 2)), Some((1, 0, 2)), None]);
    for (values, said) in [
        (vec![1, 3, 2, 0, 0, 0, 0, 0, 0], "at most 2 successes"),
        (vec![3, 1, 2, 0, 0, 0, 0, 0, 0], "a round below 3"),
        (vec![1, 1, 2], "station/terminal_success"),
    ] {
        snapshot.put_u64("station/terminal_success", values);
        let error = station().restore(&snapshot).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}
