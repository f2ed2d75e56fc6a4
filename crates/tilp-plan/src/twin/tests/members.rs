//! Terminals that join and leave.

use super::*;
use crate::round::{Decision, Outcome, TerminalId, TrainingPlan};

const N: usize = 12;

/// The entries of these terminals.
fn of_those<T: Copy>(all: &[T], members: &[u32]) -> Vec<T> {
    members.iter().map(|&n| all[n as usize]).collect()
}

/// The part of an observation that is of these terminals.
fn of_members(mut seen: Observation, members: &[u32]) -> Observation {
    seen.terminals.retain(|view| members.contains(&view.report.id.0));
    seen
}

/// A round of the whole cell of which only these terminals are observed.
fn round(fake: &mut Fake, members: &[u32]) -> (Observation, ProjectedDecision, Outcome) {
    let (seen, plan) = (of_members(fake.observe(), members), fake.any_plan(9));
    let mut outcome = fake.execute(&plan);
    outcome.terminals = of_those(&outcome.terminals, members);
    let terminals = of_those(&plan.decision().terminals, members);
    let decision = Decision { terminals, training: TrainingPlan::default(), fallback: false };
    (seen, fake.nominal.cost.limits.project(decision), outcome)
}

fn go(fake: &mut Fake, twin: &mut Twin, members: &[u32], rounds: usize) {
    for _ in 0..rounds {
        let (seen, plan, outcome) = round(fake, members);
        twin.calibrate(&seen, &plan, &outcome);
    }
}

fn calibrated() -> (Fake, Twin) {
    let mut fake = Fake::new(N, DEFAULT, 21);
    let mut twin = fake.twin(TwinOptions::default());
    let all: Vec<u32> = (0..N as u32).collect();
    go(&mut fake, &mut twin, &all, 25);
    (fake, twin)
}

const REST: [u32; 7] = [0, 2, 3, 5, 8, 9, 11];

#[test]
fn what_was_learned_of_the_others_does_not_change_when_terminals_leave_and_join() {
    let (fake, mut twin) = calibrated();
    let before = twin.clone();
    let mut seen = of_members(fake.observe(), &REST);
    let mut stranger = seen.terminals[0].clone();
    stranger.report.id = TerminalId(40);
    stranger.report.hardware.clock.0 *= 2.0;
    seen.terminals.push(stranger);
    let from = twin.attend(&seen).expect("the members have changed");
    let places: Vec<Option<usize>> = REST.iter().map(|&n| Some(n as usize)).collect();
    assert_eq!(from, [&places[..], &[None]].concat());
    for n in 0..N as u32 {
        assert_eq!(twin.calibration(TerminalId(n)), before.calibration(TerminalId(n)));
    }
    let log_losses = twin.training.log_losses(None);
    for (place, &n) in REST.iter().enumerate() {
        assert_eq!(log_losses[place], before.training.log_losses(None)[n as usize]);
        assert_eq!(twin.network.hardware(place), before.network.hardware(n as usize));
        assert_eq!(twin.task.line(place), before.task.line(n as usize));
    }
    assert_eq!(twin.training.weights(), before.training.weights());
    // The new one starts from the data sheet that it reports.
    assert_eq!(twin.network.hardware(REST.len()), &seen.terminals[REST.len()].report.hardware);
    assert_eq!(twin.calibration(TerminalId(40)).unwrap().n_seen, 0);
    assert_eq!(twin.calibration(TerminalId(41)), None);
    assert_eq!(twin.scale().energy.0, 8.0 * 0.2 * 5.0);
    assert_eq!(twin.attend(&seen), None, "nothing has changed since");
}

#[test]
fn a_terminal_that_returns_is_known_but_less_certainly() {
    let (mut fake, mut twin) = calibrated();
    let known = twin.calibration(TerminalId(1)).unwrap();
    let level = twin.training.variances()[1];
    go(&mut fake, &mut twin, &REST, 15);
    assert_eq!(twin.calibration(TerminalId(1)), Some(known));
    twin.attend(&fake.observe());
    let back = twin.calibration(TerminalId(1)).unwrap();
    assert_eq!((back.noise.mean, back.speed.mean), (known.noise.mean, known.speed.mean));
    assert_eq!(back.n_seen, known.n_seen);
    assert!(back.speed.variance > known.speed.variance);
    assert!(twin.training.variances()[1] > level);
    // It still serves for calibration.
    let all: Vec<u32> = (0..N as u32).collect();
    go(&mut fake, &mut twin, &all, 25);
    assert!(twin.calibration(TerminalId(1)).unwrap().n_seen > known.n_seen);
    assert!(twin.training.weights().iter().all(|weight| weight.is_finite()));
}

#[test]
fn a_twin_with_absent_terminals_comes_back_from_a_snapshot_bit_for_bit() {
    let (mut fake, mut twin) = calibrated();
    go(&mut fake, &mut twin, &REST, 7);
    let mut snapshot = Snapshot::default();
    twin.save(&mut snapshot);
    let mut other = fake.twin(TwinOptions::default());
    other.restore(&snapshot).unwrap();
    assert!(other == twin);
    let all: Vec<u32> = (0..N as u32).collect();
    for members in [&REST[..], &all[..], &REST[2..]] {
        let (seen, plan, outcome) = round(&mut fake, members);
        for twin in [&mut twin, &mut other] {
            twin.calibrate(&seen, &plan, &outcome);
        }
        assert!(other == twin, "{members:?}");
    }
}

#[test]
fn forged_members_are_refused() {
    let (mut fake, mut twin) = calibrated();
    go(&mut fake, &mut twin, &REST, 2);
    let mut snapshot = Snapshot::default();
    twin.save(&mut snapshot);
    let forge = |name: &str, change: &dyn Fn(&mut Vec<u64>)| {
        let mut forged = snapshot.clone();
        let mut values = forged.u64(name, forged.len_of(name)).unwrap().to_vec();
        change(&mut values);
        forged.put_u64(name, values);
        fake.twin(TwinOptions::default()).restore(&forged).expect_err(name).to_string()
    };
    assert!(forge("twin/members", &|ids| ids[0] = 1 << 40).contains("twin/members"));
    assert!(forge("twin/members", &|ids| ids[2] = ids[0]).contains("ascending"));
    assert!(forge("twin/members", &|ids| ids[1] = 4).contains("a task below 4"));
    assert!(forge("twin/absent/counts", &|counts| counts[2] = 9).contains("a task below 4"));
    assert!(forge("twin/training/groups", &|groups| groups[0] = 1 << 33).contains("groups"));
    assert!(
        forge("twin/training/whose", &|whose| whose[0] = u64::MAX).contains("twin/training/whose")
    );
}
