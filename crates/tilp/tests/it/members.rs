//! Terminals that join and leave during a run.

use std::collections::BTreeMap;

use tilp::round::TerminalId;
use tilp::run::RoundRecord;
use tilp::scenario::{Parts, methods};
use tilp::snapshot::{Persist, Snapshot};

use crate::rounds::{Keep, go_on, observe, until};
use crate::runs::PINNED;
use crate::worlds;

/// A cell in which the first ten terminals leave and ten others join at the start of a round, in the
/// middle between two aggregations.
struct Turnover {
    /// Terminals in every round.
    n_terminals: u32,
    /// The round of the change.
    change: u64,
    /// Rounds in all.
    rounds: u64,
}

const SMALL: Turnover = Turnover { n_terminals: 20, change: 8, rounds: 13 };
const LARGE: Turnover = Turnover { n_terminals: 50, change: 50, rounds: 56 };

fn ids(from: u32, to: u32) -> Vec<TerminalId> {
    (from..to).map(TerminalId).collect()
}

impl Turnover {
    fn parts(&self, method: &str) -> Parts {
        let Self { n_terminals: n, change, rounds } = *self;
        let joined: Vec<u32> = (n..n + 10).collect();
        let leave = "leave=[0,1,2,3,4,5,6,7,8,9]";
        let set = [
            format!("cell.n_terminals={}", n + 10),
            format!("events=[{{round={change}, {leave}, join={joined:?}}}]"),
            format!("rounds={rounds}"),
            "methods.reference.n_scheduled=8".to_owned(),
            "methods.tilp.samples=64".to_owned(),
        ];
        let set: Vec<&str> = PINNED.into_iter().chain(set.iter().map(String::as_str)).collect();
        worlds::parts(method, &set)
    }

    fn check(&self, method: &str, rounds: &[RoundRecord]) {
        let n = self.n_terminals;
        assert_eq!(rounds.len() as u64, self.rounds, "{method}");
        for round in rounds {
            let before = round.seen.round < self.change;
            let expected = if before { ids(0, n) } else { ids(10, n + 10) };
            assert_eq!(round.seen.ids(), expected, "{method}");
            assert_eq!(round.order.terminals, expected, "{method}");
        }
    }

    /// A run that is stopped after some round and resumed is the run that was not.
    fn check_resume(&self, method: &str, stops: &[u64]) {
        let whole = until(&mut self.parts(method), self.rounds);
        self.check(method, &whole);
        for &stop in stops {
            let mut keep = Keep { stop_after: Some(stop), ..Keep::default() };
            let mut first = self.parts(method);
            go_on(&mut first, self.rounds, &mut keep);
            let mut snapshot = Snapshot::default();
            first.cell.save(&mut snapshot);
            first.station.save(&mut snapshot);
            let mut second = self.parts(method);
            second.cell.restore(&snapshot).unwrap();
            second.station.restore(&snapshot).unwrap();
            keep.stop_after = None;
            go_on(&mut second, self.rounds, &mut keep);
            assert!(keep.rounds == whole, "{method} after round {stop}");
        }
    }

    /// What TiLP believes of those who stay is the same, to the last bit, before and after it first
    /// sees who has come and gone.
    fn check_beliefs(&self) {
        let n = u64::from(self.n_terminals);
        let mut parts = self.parts("tilp");
        until(&mut parts, self.change - 1);
        let before = beliefs(&parts);
        let seen = observe(&mut parts);
        parts.station.decide(&seen).unwrap();
        let after = beliefs(&parts);
        assert_eq!(before.keys().copied().collect::<Vec<_>>(), (0..n).collect::<Vec<u64>>());
        assert_eq!(after.keys().copied().collect::<Vec<_>>(), (10..n + 10).collect::<Vec<u64>>());
        let fresh = &after[&(n + 9)];
        for id in 10..n {
            assert_eq!(before[&id], after[&id], "terminal {id}");
        }
        let learned = (10..n).filter(|id| &before[id] != fresh).count() as u64;
        // Not everybody need have been scheduled by then.
        assert!(2 * learned > n - 10, "something was learned of {learned} terminals");
    }
}

#[test]
fn every_method_copes_with_ten_terminals_that_leave_and_ten_that_join() {
    for method in methods() {
        let rounds = until(&mut SMALL.parts(method.name()), SMALL.rounds);
        SMALL.check(method.name(), &rounds);
        let joined = |round: &RoundRecord| {
            round.order.plan.decision().scheduled().any(|n| round.order.terminals[n].0 >= 20)
        };
        assert!(rounds.iter().any(joined), "{}: no one who joined is scheduled", method.name());
    }
}

#[test]
fn a_run_goes_on_from_a_snapshot_on_either_side_of_the_change() {
    for method in ["random", "deficit", "tilp", "oracle", "splitnn+guard", "hsfl+guard"] {
        SMALL.check_resume(method, &[SMALL.change - 1, SMALL.change, SMALL.change + 2]);
    }
}

#[test]
fn what_tilp_has_learned_of_the_others_does_not_change_with_the_members() {
    SMALL.check_beliefs();
}

/// `tools/turnover` runs it and says what it shows.
#[test]
#[ignore = "takes half a minute: tools/turnover"]
fn ten_of_fifty_terminals_leave_and_ten_join_at_round_50() {
    for method in ["tilp", "deficit", "hsfl+guard"] {
        LARGE.check_resume(method, &[LARGE.change - 1, LARGE.change]);
    }
    LARGE.check_beliefs();
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
