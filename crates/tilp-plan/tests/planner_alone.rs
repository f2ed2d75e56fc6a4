//! The planner without scenario, simulation or command line.

#[path = "../examples/plan_a_cell.rs"]
mod plan_a_cell;

use tilp_plan::prelude::*;

#[test]
fn the_example_runs_on_the_planner_crate_alone_in_at_most_fifty_lines() {
    let text = include_str!("../examples/plan_a_cell.rs");
    let is_code = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with("//");
    let n_lines = text.lines().filter(is_code).count();
    assert!(n_lines <= 50, "{n_lines} lines of code");
    let named: Vec<&str> = text.lines().filter(|line| line.starts_with("use ")).collect();
    assert_eq!(named, ["use tilp_plan::prelude::*;"]);
    plan_a_cell::main().unwrap();
}

fn description() -> CellDescription {
    let cuts = vec![
        CutProfile::new(1, 512, Operations(4e6), Bytes(20_000), Bytes(160_000)),
        CutProfile::new(2, 128, Operations(12e6), Bytes(80_000), Bytes(640_000)),
    ];
    let (deadline, bandwidth, power) = (Seconds(1.0), Hertz(2e6), Watts(0.2));
    let limits = Limits { deadline, bandwidth, power, compression: 0.9, cuts: vec![1, 2] };
    CellDescription::new(limits, Profile { batch: 32, action: 7, cuts }, 2)
}

fn report(n: u32, task: usize) -> TerminalReport {
    let (clock, operations_per_cycle) = (Hertz(1.5e9), 0.2);
    let (energy_coefficient, noise_w_per_hz) = (1e-28, 3.2e-20);
    TerminalReport {
        id: TerminalId(n),
        hardware: Hardware { clock, operations_per_cycle, energy_coefficient, noise_w_per_hz },
        memory: Bytes(2_000_000),
        n_samples: 400,
        task,
        gain: Gain::from_loss_db(100.0),
        fading_power: 1.0,
        held_layers: 0,
        owed_layers: 0,
    }
}

/// What a description is refused for, if the change makes it wrong.
fn refusal(change: impl FnOnce(&mut CellDescription)) -> String {
    let mut cell = description();
    change(&mut cell);
    cell.station(&[report(0, 0)], 0).map(|_| ()).unwrap_err().to_string()
}

#[test]
fn a_description_that_no_cell_can_have_is_refused_with_field_value_and_expectation() {
    let too_deep = refusal(|cell| cell.cost.limits.cuts = vec![1, 3]);
    assert_eq!(
        too_deep,
        "limits.cuts is [1, 3], expected ascending layers of 1..=2, at most 8 of them"
    );
    let no_deadline = refusal(|cell| cell.cost.limits.deadline = Seconds(f64::NAN));
    assert_eq!(no_deadline, "limits.deadline is NaN, expected 1e-6 to 1e6");
    let never = refusal(|cell| cell.training.aggregate_every = 0);
    assert_eq!(never, "training.aggregate_every is 0, expected at least 1");
    let task = description().station(&[report(7, 2)], 0).map(|_| ()).unwrap_err();
    let expected = "report of terminal 7: task is 2, expected an index below n_tasks = 2";
    assert_eq!(task.to_string(), expected);
    let nobody = description().station(&[], 0).map(|_| ()).unwrap_err();
    assert_eq!(nobody.to_string(), "number of reports is 0, expected at least 1");
}

#[test]
fn the_same_reports_and_seed_give_the_same_order() {
    let reports = [report(0, 0), report(1, 1), report(2, 0)];
    let order = |seed: u64| {
        let mut station = description().station(&reports, seed).unwrap();
        let seen = station.observe(&reports);
        station.decide(&seen).unwrap()
    };
    assert_eq!(order(3), order(3));
    assert!(order(3).plan.decision().scheduled().count() > 0);
}

#[test]
fn terminals_join_and_leave_between_rounds() {
    let round = |ids: &[u32]| ids.iter().map(|&n| report(n, 0)).collect::<Vec<_>>();
    let mut station = description().station(&round(&[3, 7]), 0).unwrap();
    for ids in [&[3, 7][..], &[7, 12], &[3, 7, 12]] {
        let reports = round(ids);
        let seen = station.observe(&reports);
        let order = station.decide(&seen).unwrap();
        assert_eq!(order.terminals, ids.iter().map(|&n| TerminalId(n)).collect::<Vec<_>>());
        let idle = order.terminals.iter().map(|&id| TerminalOutcome::idle(id)).collect();
        station.learn(&seen, &order.plan, &mut Outcome::of(order.round, idle), None);
    }
    assert_eq!(station.round(), 4);
}

#[test]
fn a_round_lasts_until_its_slowest_terminal_and_its_loss_is_the_mean_of_those_that_took_part() {
    let done = |n: u32, delay: f64, loss: f64| {
        let (id, half) = (TerminalId(n), Seconds(delay / 2.0));
        TerminalOutcome::trained(id, Seconds(delay), half, Joules(1.0), loss)
    };
    let late = TerminalOutcome::cut_off(TerminalId(2), Seconds(1.0));
    let idle = TerminalOutcome::idle(TerminalId(3));
    let outcome = Outcome::of(4, vec![done(0, 0.5, 0.2), done(1, 0.75, 0.4), late, idle]);
    assert_eq!(outcome.duration, Seconds(1.0));
    assert!((outcome.loss.unwrap() - 0.3).abs() < 1e-12);
    assert!(late.late && late.unfinished && !late.took_part);
    assert_eq!(Outcome::of(5, vec![idle]).loss, None);
}
