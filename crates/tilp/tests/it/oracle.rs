//! The references `oracle` and `clairvoyant`: they are told the truth, nobody else is, and telling
//! changes nothing.

use std::fmt::Write as _;

use tilp::allocate::Random;
use tilp::round::{
    Allocator, CellError, DecideError, Decision, Experimenter, Ledger, Observation, OracleAccess,
    ProjectedDecision, Question, RoundOrder, TerminalSuccess, Truth,
};
use tilp::run::{RoundRecord, round};
use tilp::scenario::{Method, Parts, methods};
use tilp::snapshot::{Persist, Snapshot};
use tilp::world::{Laboratory, SimulatedCell};

use crate::rounds::{books, observe, reveal, step, until};
use crate::runs::{PINNED, assert_golden};
use crate::worlds;

const ROUNDS: u64 = 10;
const EVERYTHING: Question = Question { rounds: Some(5), samples: Some(40), episodes: Some(1) };
const OFF: [&str; 3] =
    ["methods.oracle.network=false", "methods.oracle.training=false", "methods.oracle.task=false"];

/// An experimenter that requests all truth before every round and discards it.
struct Nosy<'a> {
    laboratory: &'a mut Laboratory,
    asked: u64,
}

impl Experimenter<SimulatedCell> for Nosy<'_> {
    fn reveal(&mut self, cell: &mut SimulatedCell, asked: &Question) -> Result<Truth, CellError> {
        self.laboratory.reveal(cell, asked)
    }

    fn before(&mut self, cell: &mut SimulatedCell, order: &RoundOrder) -> Result<(), CellError> {
        let truth = self.laboratory.reveal(cell, &EVERYTHING)?;
        self.asked += 1;
        assert_eq!(truth.round, self.asked);
        self.laboratory.before(cell, order)
    }

    fn after(
        &mut self,
        cell: &mut SimulatedCell,
        order: &RoundOrder,
        calibration: Option<&[TerminalSuccess]>,
    ) -> Result<Option<Ledger>, CellError> {
        self.laboratory.after(cell, order, calibration)
    }
}

/// `random` that receives all truth and does not use it.
struct Told {
    random: Random,
    rounds: u64,
}

fn told() -> Method {
    Method::own("random", "random that is told the truth", |inputs| {
        Box::new(Told { random: Random::new(inputs.problem, inputs.knobs, inputs.seed), rounds: 0 })
    })
}

impl Persist for Told {
    fn save(&self, snapshot: &mut Snapshot) {
        snapshot.put_u64("told/rounds", vec![self.rounds]);
    }
}

impl Allocator for Told {
    fn decide(&mut self, seen: &Observation) -> Result<Decision, DecideError> {
        assert_eq!(self.rounds, seen.round, "the truth is told before the decision");
        self.random.decide(seen)
    }

    fn oracle_access(&mut self) -> Option<&mut dyn OracleAccess> {
        Some(self)
    }
}

impl OracleAccess for Told {
    fn question(&self) -> Question {
        EVERYTHING
    }

    fn receive(&mut self, truth: &Truth) {
        self.rounds += 1;
        assert_eq!(truth.round, self.rounds);
        assert!(truth.network.is_some() && truth.losses.is_some());
    }
}

fn overrides<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let measured = ["evaluation.calibrate_every=4", "methods.oracle.success_episodes=2"];
    [&PINNED[..], &measured, more].concat()
}

fn go(method: &str, more: &[&str]) -> Vec<RoundRecord> {
    until(&mut worlds::parts(method, &overrides(more)), ROUNDS)
}

#[test]
fn the_books_hold_the_loss_of_what_is_deployed_before_and_after_every_seventh_round() {
    let mut parts = worlds::parts("random", &PINNED);
    let losses = |parts: &mut Parts| {
        reveal(parts, &Question { samples: Some(32), ..Question::default() }).losses.unwrap()
    };
    for round in 1..=14 {
        let before = losses(&mut parts);
        let done = step(&mut parts);
        let after = losses(&mut parts);
        let Some(changes) = &books(&done).losses else {
            assert!(round % 7 != 0, "round {round} was not looked at");
            continue;
        };
        assert_eq!(round % 7, 0, "round {round} was looked at");
        assert_eq!(changes.iter().map(|one| one.before).collect::<Vec<_>>(), before);
        assert_eq!(changes.iter().map(|one| one.after).collect::<Vec<_>>(), after);
        assert_ne!(before, after, "at least one terminal trained");
    }
}

#[test]
fn every_method_runs_the_same_whether_or_not_the_experimenter_is_asked_for_the_truth() {
    let told = ["clairvoyant", "oracle"];
    for method in methods().iter().filter(|method| !told.contains(&method.name())) {
        let Parts { mut cell, mut station, mut evaluator, mut laboratory, .. } =
            worlds::parts(method.name(), &overrides(&[]));
        assert!(station.oracle_access().is_none(), "{} is told the truth", method.name());
        let mut nosy = Nosy { laboratory: &mut laboratory, asked: 0 };
        let mut rounds = Vec::new();
        while station.round() <= ROUNDS {
            let record = round(&mut cell, &mut station, &mut evaluator, &mut nosy, &mut ());
            rounds.extend(record.expect("every role does its part"));
        }
        assert_eq!(nosy.asked, ROUNDS);
        assert!(rounds == go(method.name(), &[]), "{}", method.name());
    }
}

#[test]
fn who_has_access_is_told_the_truth_before_every_decision_and_nothing_else_changes() {
    let mut parts = worlds::parts_of(told(), &overrides(&[]));
    let rounds = until(&mut parts, ROUNDS);
    let mut snapshot = Snapshot::default();
    parts.station.save(&mut snapshot);
    assert_eq!(snapshot.u64("told/rounds", 1).unwrap(), [ROUNDS]);
    assert!(rounds == go("random", &[]));
}

#[test]
fn with_every_part_off_the_oracle_is_tilp() {
    assert!(go("oracle", &OFF) == go("tilp", &[]));
    assert!(worlds::parts("oracle", &OFF).station.oracle_access().is_none());
}

#[test]
fn each_part_alone_changes_what_is_decided() {
    let tilp = go("tilp", &[]);
    let plans = |rounds: &[RoundRecord]| -> Vec<ProjectedDecision> {
        rounds.iter().map(|round| round.order.plan.clone()).collect()
    };
    for (part, name) in ["network", "training", "task"].iter().enumerate() {
        let mut off = OFF.to_vec();
        off.remove(part);
        assert_ne!(plans(&go("oracle", &off)), plans(&tilp), "{name}");
    }
}

#[test]
fn the_episodes_of_the_truth_are_no_evaluation() {
    let episodes = |method: &str| -> Vec<u64> {
        go(method, &[]).iter().map(|round| books(round).episodes).collect()
    };
    assert_eq!(episodes("oracle"), episodes("greedy"));
    assert_eq!(episodes("clairvoyant"), episodes("greedy"));
}

#[test]
fn asking_on_behalf_of_clairvoyant_leaves_no_trace_in_the_cell() {
    let asked =
        worlds::parts("clairvoyant", &overrides(&[])).station.oracle_access().map(|access| {
            let question = access.question();
            assert_eq!(question, Question { episodes: Some(16), ..Question::default() });
            question
        });
    let mut asking = worlds::parts("random", &overrides(&[]));
    for round in go("random", &[]) {
        reveal(&mut asking, &asked.expect("it is told the truth"));
        assert!(step(&mut asking) == round, "round {}", round.seen.round);
    }
}

#[test]
fn clairvoyant_decides_by_the_truth_where_deficit_has_measured_nothing_yet() {
    // With so much weight on deficits every draw is decided by them.
    let by_deficit = ["methods.reference.uniform_share=1e-6", "methods.reference.n_scheduled=2"];
    let plans = |method: &str| -> Vec<ProjectedDecision> {
        go(method, &by_deficit).into_iter().map(|round| round.order.plan).collect()
    };
    assert_ne!(plans("clairvoyant")[..4], plans("deficit")[..4]);
}

#[test]
fn the_truth_is_what_happens() {
    let mut parts = worlds::parts("greedy", &overrides(&[]));
    let first = reveal(&mut parts, &EVERYTHING);
    assert_eq!(first, reveal(&mut parts, &EVERYTHING));
    let network = first.network.expect("asked for");
    for (done, powers) in network.fading_powers.iter().enumerate() {
        let seen = observe(&mut parts);
        let truth = reveal(&mut parts, &EVERYTHING);
        assert_eq!(truth.success.is_some(), done % 4 == 0);
        let now: Vec<f64> = seen.reports().iter().map(|one| one.fading_power).collect();
        assert_eq!(*powers, now);
        step(&mut parts);
    }
    let nothing = reveal(&mut parts, &Question::default());
    assert_eq!(nothing, Truth { round: 6, ..Truth::default() });
}

#[test]
fn the_truth_about_tiny_is_what_it_was_before() {
    let truth = reveal(&mut worlds::parts("greedy", &PINNED), &EVERYTHING);
    let network = truth.network.expect("asked for");
    let mut text = String::new();
    for (n, one) in network.hardware.iter().enumerate() {
        let noise = 1e20 * one.noise_w_per_hz;
        let hunger = 1e28 * one.energy_coefficient;
        let _ = write!(text, "terminal {n} hardware {noise:.6} {:.6}", one.operations_per_cycle);
        let _ = write!(text, " {hunger:.6} fading");
        for powers in &network.fading_powers {
            let _ = write!(text, " {:.6}", powers[n]);
        }
        let loss = truth.losses.as_ref().expect("asked for")[n];
        let _ = writeln!(text, " loss {loss:.6}");
    }
    assert_golden("truth.txt", &text);
}
