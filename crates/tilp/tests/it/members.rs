//! Terminals that join and leave during a run.

use std::collections::BTreeMap;

use tilp::round::TerminalId;
use tilp::run::RoundRecord;
use tilp::scenario::{Parts, methods};
use tilp::snapshot::{Persist, Snapshot};

use crate::rounds::{Keep, go_on, observe, until};
use crate::runs::PINNED;
use crate::worlds;

/// Twenty terminals; ten leave and ten others join at the start of the eighth round, in the middle
/// between two aggregations.
const CHANGE: u64 = 8;
const ROUNDS: u64 = 13;
const TURNOVER: [&str; 4] = [
    "cell.n_terminals=30",
    "events=[{round=8, leave=[0,1,2,3,4,5,6,7,8,9], join=[20,21,22,23,24,25,26,27,28,29]}]",
    "rounds=13",
    "methods.reference.n_scheduled=8",
];

fn parts(method: &str) -> Parts {
    worlds::parts(method, &[&PINNED[..], &TURNOVER].concat())
}

fn ids(from: u32, to: u32) -> Vec<TerminalId> {
    (from..to).map(TerminalId).collect()
}

fn check(method: &str, rounds: &[RoundRecord]) {
    assert_eq!(rounds.len() as u64, ROUNDS, "{method}");
    for round in rounds {
        let expected = if round.seen.round < CHANGE { ids(0, 20) } else { ids(10, 30) };
        assert_eq!(round.seen.ids(), expected, "{method}");
        assert_eq!(round.order.terminals, expected, "{method}");
    }
}

#[test]
fn every_method_copes_with_ten_terminals_that_leave_and_ten_that_join() {
    for method in methods() {
        let rounds = until(&mut parts(method.name()), ROUNDS);
        check(method.name(), &rounds);
        let joined = |round: &RoundRecord| {
            round.order.plan.decision().scheduled().any(|n| round.order.terminals[n].0 >= 20)
        };
        assert!(rounds.iter().any(joined), "{}: no one who joined is scheduled", method.name());
    }
}

#[test]
fn a_run_goes_on_from_a_snapshot_on_either_side_of_the_change() {
    for method in ["random", "deficit", "tilp", "oracle", "splitnn+guard", "hsfl+guard"] {
        let whole = until(&mut parts(method), ROUNDS);
        check(method, &whole);
        for stop in [CHANGE - 1, CHANGE, CHANGE + 2] {
            let mut keep = Keep { stop_after: Some(stop), ..Keep::default() };
            let mut first = parts(method);
            go_on(&mut first, ROUNDS, &mut keep);
            let mut snapshot = Snapshot::default();
            first.cell.save(&mut snapshot);
            first.station.save(&mut snapshot);
            let mut second = parts(method);
            second.cell.restore(&snapshot).unwrap();
            second.station.restore(&snapshot).unwrap();
            keep.stop_after = None;
            go_on(&mut second, ROUNDS, &mut keep);
            assert!(keep.rounds == whole, "{method} after round {stop}");
        }
    }
}

/// What TiLP believes of each terminal that is present: hardware factors, and level of the loss.
fn beliefs(parts: &Parts) -> BTreeMap<u64, Vec<u64>> {
    let mut snapshot = Snapshot::default();
    parts.station.save(&mut snapshot);
    let numbers = |name: &str| snapshot.f64(name, snapshot.len_of(name)).unwrap();
    let members = snapshot.u64("twin/members", snapshot.len_of("twin/members")).unwrap();
    let (network, levels) = (numbers("twin/network/beliefs"), numbers("twin/training/levels"));
    let n_members = members.len() / 2;
    let (wide, narrow) = (network.len() / n_members, levels.len() / n_members);
    let of = |n: usize| {
        let own = network[n * wide..][..wide].iter().chain(&levels[n * narrow..][..narrow]);
        (members[2 * n], own.map(|number| number.to_bits()).collect())
    };
    (0..n_members).map(of).collect()
}

#[test]
fn what_tilp_has_learned_of_the_others_does_not_change_with_the_members() {
    let mut parts = parts("tilp");
    until(&mut parts, CHANGE - 1);
    let before = beliefs(&parts);
    let seen = observe(&mut parts);
    parts.station.decide(&seen).unwrap();
    let after = beliefs(&parts);
    assert_eq!(before.keys().copied().collect::<Vec<_>>(), (0..20).collect::<Vec<u64>>());
    assert_eq!(after.keys().copied().collect::<Vec<_>>(), (10..30).collect::<Vec<u64>>());
    let fresh = &after[&29];
    for id in 10..20 {
        assert_eq!(before[&id], after[&id], "terminal {id}");
        assert_ne!(&before[&id], fresh, "something was learned of terminal {id}");
    }
}
