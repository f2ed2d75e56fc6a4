//! Budgets of a whole run: its end, terminals that leave, and quantities that follow the used share.

use std::collections::BTreeMap;

use tilp::round::{BudgetState, TerminalId};
use tilp::run::{RoundRecord, Stop};
use tilp::scenario::{Parts, methods};
use tilp::snapshot::{Persist, Snapshot};

use crate::rounds::{Keep, books, go_on, observe, until};
use crate::runs::PINNED;
use crate::worlds;

fn parts(method: &str, budget: &[&str]) -> Parts {
    worlds::parts(method, &[&PINNED[..], budget].concat())
}

/// All rounds of a run that ends with its budget.
fn spent(parts: &mut Parts) -> Vec<RoundRecord> {
    let mut keep = Keep::default();
    assert_eq!(go_on(parts, u64::MAX, &mut keep), Stop::BudgetUsed);
    keep.rounds
}

/// True seconds, joules and bytes of a round.
fn used(round: &RoundRecord) -> [f64; 3] {
    let books = books(round);
    let joules = |one: &tilp::round::TerminalLedger| one.energy_compute.0 + one.energy_radio.0;
    let bytes = |one: &tilp::round::TerminalLedger| {
        (one.bytes_up.0 + one.bytes_down.0 + one.bytes_sync.0) as f64
    };
    let all = || books.terminals.iter();
    [books.duration.0, all().map(joules).sum(), all().map(bytes).sum()]
}

#[test]
fn a_run_ends_with_the_last_round_that_fits_inside_the_true_budget() {
    // `greedy` looks at channels only: with a budget its rounds are the same up to the end of it.
    let free = until(&mut parts("greedy", &[]), 30);
    for (index, name) in ["seconds", "joules", "bytes"].into_iter().enumerate() {
        let total: f64 = free[..12].iter().map(|round| used(round)[index]).sum();
        // Half of the thirteenth round would still fit.
        let budget = total + 0.5 * used(&free[12])[index];
        let set = format!("limits.budget.{name}={budget}");
        let rounds = spent(&mut parts("greedy", &[&set]));
        assert_eq!(rounds.len(), 12, "{name}");
        for (round, other) in rounds.iter().zip(&free) {
            assert_eq!(used(round), used(other), "{name}");
        }
        // The scenario's own number of rounds, 20, is no limit.
        let more: f64 = free.iter().map(|round| used(round)[index]).sum();
        let set = format!("limits.budget.{name}={more}");
        assert_eq!(spent(&mut parts("greedy", &[&set])).len(), 30, "{name}");
    }
}

#[test]
fn a_budget_that_no_round_fits_into_leaves_the_base_policy() {
    let mut parts = parts("greedy", &["limits.budget.bytes=100"]);
    assert!(spent(&mut parts).is_empty());
    assert_eq!(parts.laboratory.final_success(&mut parts.cell).unwrap().len(), 6);
}

#[test]
fn budgets_are_enforced_for_every_method() {
    for method in methods() {
        let set = ["limits.budget.seconds=30", "limits.budget.joules=15"];
        let rounds = spent(&mut parts(method.name(), &set));
        let sums = rounds
            .iter()
            .map(used)
            .fold([0.0; 3], |sum, one| std::array::from_fn(|index| sum[index] + one[index]));
        assert!(!rounds.is_empty(), "{}", method.name());
        assert!(sums[0] <= 30.0 && sums[1] <= 15.0, "{}: {sums:?}", method.name());
    }
}

#[test]
fn a_terminal_that_has_used_up_its_energy_leaves_and_none_uses_more() {
    const OWN: f64 = 0.4;
    for method in ["splitfed", "random", "splitnn", "fedavg"] {
        let mut parts = parts(method, &["limits.budget.joules_per_terminal=0.4"]);
        let rounds = spent(&mut parts);
        let mut spent: BTreeMap<TerminalId, f64> = BTreeMap::new();
        for round in &rounds {
            let books = books(round);
            for (id, one) in round.order.terminals.iter().zip(&books.terminals) {
                let own = spent.entry(*id).or_default();
                assert!(*own < OWN * (1.0 - 1e-9), "{method}: terminal {id} is still there");
                *own += one.energy_compute.0 + one.energy_radio.0;
                assert!(*own <= OWN * (1.0 + 1e-9), "{method}: terminal {id} used {own}");
            }
        }
        assert_eq!(spent.len(), 6);
        assert!(spent.values().all(|own| *own > OWN * (1.0 - 1e-9)), "{method}: all are used up");
        // One whose energy ends in the middle of a round contributes nothing to it.
        let ended = rounds.iter().flat_map(|round| {
            let last = |id: &TerminalId| {
                !rounds.iter().any(|later| {
                    later.seen.round > round.seen.round && later.order.terminals.contains(id)
                })
            };
            round.outcome.terminals.iter().filter(move |one| last(&one.id))
        });
        let ended: Vec<_> = ended.collect();
        assert_eq!(ended.len(), 6);
        assert!(ended.iter().all(|one| one.unfinished && !one.took_part), "{method}");
        // The policy is for all of them.
        let counts = parts.laboratory.final_success(&mut parts.cell).unwrap();
        assert_eq!(counts.len(), 6);
    }
}

#[test]
fn learning_rates_follow_the_used_share_of_the_budget() {
    let set = ["limits.budget.seconds=20", "learning.final_rate_share=0.1"];
    let rounds = spent(&mut parts("greedy", &set));
    assert!(rounds.len() > 5);
    let start = rounds[0].order.rates.server;
    let mut clock = 0.0;
    for round in &rounds {
        let share = clock / 20.0;
        let cosine = 0.5 * (1.0 + (std::f64::consts::PI * share).cos());
        let expected = start * (0.1 + 0.9 * cosine) as f32;
        assert!((round.order.rates.server / expected - 1.0).abs() < 1e-5);
        let told = round.seen.budget.as_ref().map(BudgetState::share);
        assert!((told.unwrap() - share).abs() < 1e-12);
        clock += books(round).duration.0;
    }
    // Nearly all of the budget was used, so the rates have fallen nearly all the way.
    assert!(rounds.last().unwrap().order.rates.server < 0.2 * start);
}

#[test]
fn a_base_station_meters_what_it_measures_and_not_the_truth() {
    let set = ["limits.budget.joules=4", "hardware.measurement_noise=0.3"];
    let mut parts = parts("greedy", &set);
    let rounds = spent(&mut parts);
    let truth: f64 = rounds.iter().map(|round| used(round)[1]).sum();
    let seen = observe(&mut parts).budget.expect("there is a budget");
    let measured: f64 = rounds
        .iter()
        .flat_map(|round| round.outcome.terminals.iter().map(|one| one.energy.0))
        .sum();
    assert!((seen.used.joules.0 - measured).abs() < 1e-9);
    assert!((measured - truth).abs() > 1e-3, "{measured} {truth}");
    let bytes: f64 = rounds.iter().map(|round| used(round)[2]).sum();
    assert_eq!(seen.used.bytes.0 as f64, bytes);
}

#[test]
fn a_run_with_budgets_goes_on_from_a_snapshot_as_if_nothing_had_happened() {
    let set = ["limits.budget.seconds=20", "limits.budget.joules_per_terminal=1.5"];
    for method in ["deficit", "clairvoyant", "asfl+guard"] {
        let whole = spent(&mut parts(method, &set));
        assert!(whole.len() > 4, "{method}: {}", whole.len());
        for stop in [1, whole.len() as u64 / 2, whole.len() as u64 - 1] {
            let mut first = parts(method, &set);
            let mut keep = Keep { stop_after: Some(stop), ..Keep::default() };
            go_on(&mut first, u64::MAX, &mut keep);
            let mut snapshot = Snapshot::default();
            first.cell.save(&mut snapshot);
            first.station.save(&mut snapshot);
            let mut second = parts(method, &set);
            second.cell.restore(&snapshot).unwrap();
            second.station.restore(&snapshot).unwrap();
            keep.stop_after = None;
            go_on(&mut second, u64::MAX, &mut keep);
            assert!(keep.rounds == whole, "{method} after round {stop}");
        }
    }
}
