//! The reference `oracle`: it is told the truth, nobody else is, and telling changes nothing.

use std::fmt::Write as _;
use std::ops::ControlFlow;

use tilp::round::{
    Allocator, Decision, Observation, OracleAccess, Outcome, ProjectedDecision, Question,
    TrainingPlan, Truth, World,
};
use tilp::run::{Recorder, RoundRecord, run};
use tilp::scenario::{Parts, methods};
use tilp::snapshot::Persist;

use crate::runs::{PINNED, assert_golden};
use crate::worlds;

const ROUNDS: u64 = 10;
const EVERYTHING: Question = Question { rounds: Some(5), samples: Some(40), episodes: Some(1) };
const OFF: [&str; 3] =
    ["methods.oracle.network=false", "methods.oracle.training=false", "methods.oracle.task=false"];

#[derive(Default)]
struct Keep(Vec<RoundRecord>);

impl Recorder for Keep {
    fn record(&mut self, round: RoundRecord, _: &dyn World, _: &dyn Allocator) -> ControlFlow<()> {
        self.0.push(round);
        ControlFlow::Continue(())
    }
}

/// A method beside somebody who asks for everything and tells nobody.
struct Nosy<'a> {
    method: &'a mut dyn Allocator,
    told: u64,
}

impl Persist for Nosy<'_> {}

impl Allocator for Nosy<'_> {
    fn decide(&mut self, seen: &Observation) -> Decision {
        self.method.decide(seen)
    }

    fn conduct(&self) -> TrainingPlan {
        self.method.conduct()
    }

    fn learn(&mut self, seen: &Observation, plan: &ProjectedDecision, outcome: &Outcome) {
        self.method.learn(seen, plan, outcome);
    }

    fn oracle_access(&mut self) -> Option<&mut dyn OracleAccess> {
        Some(self)
    }
}

impl OracleAccess for Nosy<'_> {
    fn question(&self) -> Question {
        EVERYTHING
    }

    fn receive(&mut self, truth: &Truth) {
        self.told += 1;
        assert_eq!(truth.round, self.told);
    }
}

fn overrides<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let measured = ["evaluation.calibrate_every=4", "methods.oracle.success_episodes=2"];
    [&PINNED[..], &measured, more].concat()
}

fn go(method: &str, more: &[&str]) -> Vec<RoundRecord> {
    let Parts { mut world, mut allocator, limits, .. } = worlds::parts(method, &overrides(more));
    let mut keep = Keep::default();
    run(&mut world, &mut *allocator, &limits, ROUNDS, &mut keep);
    keep.0
}

#[test]
fn the_books_hold_the_loss_of_what_is_deployed_before_and_after_every_seventh_round() {
    let Parts { mut world, mut allocator, limits, .. } = worlds::parts("random", &PINNED);
    let losses = |world: &dyn World| {
        world.reveal(&Question { samples: Some(32), ..Question::default() }).losses.unwrap()
    };
    for round in 1..=14 {
        let (seen, before) = (world.observe(), losses(&world));
        let done = world.execute(&limits.project(allocator.decide(&seen)));
        let after = losses(&world);
        let Some(changes) = done.ledger.losses else {
            assert!(round % 7 != 0, "round {round} was not looked at");
            continue;
        };
        assert_eq!(round % 7, 0, "round {round} was looked at");
        assert_eq!(changes.iter().map(|one| one.before).collect::<Vec<_>>(), before);
        assert_eq!(changes.iter().map(|one| one.after).collect::<Vec<_>>(), after);
        assert_ne!(before, after, "somebody trained");
    }
}

#[test]
fn every_method_runs_the_same_whether_or_not_the_world_is_asked_for_the_truth() {
    for method in methods().iter().filter(|method| method.name != "oracle") {
        let Parts { mut world, mut allocator, limits, .. } =
            worlds::parts(method.name, &overrides(&[]));
        assert!(allocator.oracle_access().is_none(), "{} is told the truth", method.name);
        let mut nosy = Nosy { method: &mut *allocator, told: 0 };
        let mut keep = Keep::default();
        run(&mut world, &mut nosy, &limits, ROUNDS, &mut keep);
        assert_eq!(nosy.told, ROUNDS);
        assert!(keep.0 == go(method.name, &[]), "{}", method.name);
    }
}

#[test]
fn with_every_part_off_the_oracle_is_tilp() {
    assert!(go("oracle", &OFF) == go("tilp", &[]));
    assert!(worlds::parts("oracle", &OFF).allocator.oracle_access().is_none());
}

#[test]
fn each_part_alone_changes_what_is_decided() {
    let tilp = go("tilp", &[]);
    let plans = |rounds: &[RoundRecord]| -> Vec<ProjectedDecision> {
        rounds.iter().map(|round| round.plan.clone()).collect()
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
        go(method, &[]).iter().map(|round| round.done.ledger.episodes).collect()
    };
    assert_eq!(episodes("oracle"), episodes("greedy"));
}

#[test]
fn the_truth_is_what_happens() {
    let mut parts = worlds::parts("greedy", &overrides(&[]));
    let (world, limits) = (&mut parts.world, &parts.limits);
    let first = world.reveal(&EVERYTHING);
    assert_eq!(first, world.reveal(&EVERYTHING));
    let network = first.network.expect("asked for");
    for (step, powers) in network.fading_powers.iter().enumerate() {
        let seen = world.observe();
        let truth = world.reveal(&EVERYTHING);
        assert_eq!(truth.success.is_some(), step % 4 == 0);
        let now: Vec<f64> = seen.terminals.iter().map(|one| one.fading_power).collect();
        assert_eq!(*powers, now);
        let plan = limits.project(parts.allocator.decide(&seen));
        world.execute(&plan);
    }
    assert_eq!(world.reveal(&Question::default()), Truth { round: 6, ..Truth::default() });
}

#[test]
fn the_truth_about_tiny_is_what_it_was_before() {
    let truth = worlds::parts("greedy", &PINNED).world.reveal(&EVERYTHING);
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
