//! The twin against a small radio with hidden truth, and against synthetic laws.

pub(crate) mod fake;
mod futures;
mod laws;
mod members;
mod tempo;
mod terminals;
mod truth;

use super::*;
use crate::round::{TerminalDecision, TerminalOutcome};
use crate::units::Hertz;
use fake::{DEFAULT, Fake, Hidden, MIRROR};

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
fn in_the_mirror_delay_and_energy_are_exact() {
    let mut fake = Fake::new(12, MIRROR, 1);
    let twin = fake.twin(TwinOptions::default());
    let mut scratch = twin.scratch();
    for _ in 0..25 {
        let (seen, plan) = (fake.observe(), fake.any_plan(5));
        let prediction = twin.step(
            &mut twin.state(&seen),
            &plan.decision().terminals,
            Sureness::Likely,
            &mut scratch,
        );
        let (mut latency, mut energy) = (0.0f64, 0.0);
        for (n, cost) in fake.true_costs(&plan).iter().enumerate() {
            let Some((cost, power)) = cost else {
                assert_eq!(scratch.delays[n], Seconds(0.0));
                continue;
            };
            let spent = cost.until(Seconds(5.0), *power);
            assert_eq!(scratch.delays[n], cost.delay());
            assert_eq!(scratch.energies[n], spent.energy_compute + spent.energy_radio);
            energy += scratch.energies[n].0;
            if plan.decision().terminals[n].scheduled {
                latency = latency.max(cost.delay().0);
            }
        }
        assert_eq!((prediction.latency.0, prediction.energy.0), (latency.min(60.0), energy));
        fake.execute(&plan);
    }
}

#[test]
fn in_the_mirror_calibration_changes_nothing() {
    let mut fake = Fake::new(12, MIRROR, 2);
    let mut twin = fake.twin(TwinOptions::default());
    for _ in 0..30 {
        let (seen, plan) = (fake.observe(), fake.any_plan(5));
        let costs = fake.true_costs(&plan);
        for (n, exchange) in twin.exchanges(&twin.state(&seen), &plan).iter().enumerate() {
            let Some(exchange) = exchange else { continue };
            let truth = costs[n].unwrap().0.delay().0;
            assert!((twin.network.predict(n, exchange).delay().0 / truth - 1.0).abs() < 1e-9);
        }
        let outcome = fake.execute(&plan);
        twin.calibrate(&seen, &plan, &outcome);
    }
}

#[test]
fn the_loss_decrease_in_total_is_that_of_the_groups_and_that_of_the_imagined_round() {
    let mut fake = Fake::new(18, MIRROR, 5);
    let mut twin = fake.twin(TwinOptions::default());
    for _ in 0..25 {
        let (seen, plan) = (fake.observe(), fake.any_plan(6));
        let outcome = fake.execute(&plan);
        twin.calibrate(&seen, &plan, &outcome);
    }
    let (seen, plan) = (fake.observe(), fake.any_plan(6));
    let actions = &plan.decision().terminals;
    let found = twin.decreases(&seen, actions);
    let (mut state, mut scratch) = (twin.state(&seen), twin.scratch());
    let before = state.loss();
    let step = twin.step(&mut state, actions, Sureness::Likely, &mut scratch);
    let close = |a: f64, b: f64| (a - b).abs() < 1e-12;
    assert!(close(found.total.fall, step.loss_decrease) && found.total.fall != 0.0);
    assert!(close(found.total.before, before));
    assert!(close(found.total.share.mid, found.total.fall / before));
    // Four groups of 5, 5, 4 and 4 terminals.
    let sizes = [5.0, 5.0, 4.0, 4.0];
    let falls = found.groups.iter().zip(sizes).map(|(one, size)| size * one.unwrap().fall);
    assert!(close(falls.sum::<f64>() / 18.0, found.total.fall));
    let widths = found.groups.iter().map(|one| one.unwrap().share.high - one.unwrap().share.low);
    let total = found.total.share.high - found.total.share.low;
    assert!(widths.into_iter().all(|width| width > total), "a mean of more swings less");
}

/// Errors of true delays after 30 reports of a terminal, and coverage of measured delays.
fn learn(hidden: Hidden, seed: u64) -> (f64, f64, f64, f64) {
    let mut fake = Fake::new(50, hidden, seed);
    let mut twin = fake.twin(TwinOptions::default());
    let (mut errors, mut blind) = (Vec::new(), Vec::new());
    let (mut n, mut delays, mut energies) = (0.0, 0.0, 0.0);
    for _ in 0..260 {
        let (seen, plan) = (fake.observe(), fake.any_plan(10));
        let costs = fake.true_costs(&plan);
        let outcome = fake.execute(&plan);
        for (t, exchange) in twin.exchanges(&twin.state(&seen), &plan).iter().enumerate() {
            let Some(exchange) = exchange else { continue };
            let truth = costs[t].unwrap().0.delay().0;
            let error = (twin.network.predict(t, exchange).delay().0 / truth - 1.0).abs();
            match twin.network.calibrations()[t].n_seen {
                0 => blind.push(error),
                30.. => errors.push(error),
                _ => {}
            }
            let (low, high) = twin.network.delay_interval(t, exchange);
            n += 1.0;
            delays += f64::from((low..=high).contains(&outcome.terminals[t].delay));
            let (low, high) = twin.network.energy_interval(t, exchange);
            energies += f64::from((low..=high).contains(&outcome.terminals[t].energy.0));
        }
        twin.calibrate(&seen, &plan, &outcome);
    }
    let tracked = twin.network.delay_track().coverage().unwrap();
    assert!((tracked - delays / n).abs() < 0.05, "{tracked}");
    (median(&mut errors), median(&mut blind), delays / n, energies / n)
}

#[test]
fn hidden_factors_are_learned_below_three_percent_and_intervals_cover() {
    for (seed, one_clock) in [(3, true), (4, true), (5, false)] {
        let (error, blind, delays, energies) = learn(Hidden { one_clock, ..DEFAULT }, seed);
        assert!(error < 0.03 && error < 0.2 * blind, "{error} {blind}");
        assert!((0.85..=0.95).contains(&delays), "{delays}");
        assert!((0.85..=0.95).contains(&energies), "{energies}");
    }
}

/// Schedules `n_scheduled` terminals, each with the least band that its safe delay allows: each of
/// them finishes just in time.
fn plan_at_the_edge(fake: &mut Fake, twin: &Twin, n_scheduled: usize) -> Option<ProjectedDecision> {
    let seen = fake.observe();
    let mut decision = fake.any_plan(n_scheduled).decision().clone();
    decision.terminals.iter_mut().for_each(|one| one.bandwidth = Hertz(1e-3));
    let z = twin.sure_z(n_scheduled);
    for n in 0..decision.terminals.len() {
        if !decision.terminals[n].scheduled {
            continue;
        }
        decision.terminals[n].cut = 4;
        let (mut low, mut high) = (0.0, 1.5e6);
        for _ in 0..40 {
            decision.terminals[n].bandwidth = Hertz(0.5 * (low + high));
            let plan = fake.nominal.cost.limits.project(decision.clone());
            let exchange = twin.exchanges(&twin.state(&seen), &plan)[n].unwrap();
            let delay = twin.network.safe_delay(n, &exchange, z);
            if delay <= Seconds(5.0) { high = 0.5 * (low + high) } else { low = 0.5 * (low + high) }
        }
        if high == 1.5e6 {
            return None;
        }
        decision.terminals[n].bandwidth = Hertz(high);
    }
    Some(fake.nominal.cost.limits.project(decision))
}

#[test]
fn sure_rounds_are_late_once_in_a_thousand_at_most() {
    let (mut rounds, mut late) = (0, 0);
    for seed in 0..12 {
        let mut fake = Fake::new(12, Hidden { one_clock: seed % 3 > 0, ..DEFAULT }, 100 + seed);
        let mut twin = fake.twin(TwinOptions::default());
        for _ in 0..500 {
            let seen = fake.observe();
            let edge = plan_at_the_edge(&mut fake, &twin, 3);
            let plan = edge.clone().unwrap_or_else(|| fake.any_plan(3));
            let costs = fake.true_costs(&plan);
            if edge.is_some() {
                rounds += 1;
                let is_late = |n: usize| costs[n].unwrap().0.delay() > Seconds(5.0);
                late += u32::from(plan.decision().scheduled().any(is_late));
            }
            let outcome = fake.execute(&plan);
            twin.calibrate(&seen, &plan, &outcome);
        }
    }
    assert!(rounds > 1500, "{rounds}");
    assert!(f64::from(late) <= 0.001 * f64::from(rounds) + 2.0, "{late} of {rounds}");
}

fn run(fake: &mut Fake, twin: &mut Twin, rounds: usize) {
    for _ in 0..rounds {
        let (seen, plan) = (fake.observe(), fake.any_plan(4));
        let outcome = fake.execute(&plan);
        twin.calibrate(&seen, &plan, &outcome);
    }
}

#[test]
fn who_is_cut_off_teaches_no_more_than_that_it_takes_longer() {
    let mut fake = Fake::new(1, MIRROR, 3);
    let twin = fake.twin(TwinOptions::default());
    let (seen, plan) = (fake.observe(), fake.any_plan(1));
    let exchange = twin.exchanges(&twin.state(&seen), &plan)[0].unwrap();
    let likely = twin.network.predict(0, &exchange).delay();
    let told = |unfinished: bool, delay: Seconds| {
        let mut network = twin.network.clone();
        let seen = TerminalOutcome { unfinished, delay, ..TerminalOutcome::default() };
        network.calibrate(0, &exchange, &seen);
        network.predict(0, &exchange).delay()
    };
    let (sooner, later) = (likely * 0.8, likely * 1.25);
    // A measured delay counts in either case, one that was cut off only if it was unexpected.
    assert!(told(false, sooner) < likely && told(false, later) > likely);
    assert_eq!(told(true, sooner), likely);
    assert_eq!(told(true, later), told(false, later));
}

#[test]
fn a_frozen_loop_learns_nothing() {
    let learned = |freeze: Freeze| {
        let mut fake = Fake::new(12, DEFAULT, 7);
        let start = fake.twin(TwinOptions { freeze, ..TwinOptions::default() });
        let mut twin = start.clone();
        run(&mut fake, &mut twin, 60);
        [
            start.network.calibrations() != twin.network.calibrations(),
            start.training.weights() != twin.training.weights(),
            twin.task.n_measured() > 0,
        ]
    };
    assert_eq!(learned(Freeze::default()), [true; 3]);
    assert_eq!(learned(Freeze { network: true, ..Freeze::default() }), [false, true, true]);
    assert_eq!(learned(Freeze { training: true, ..Freeze::default() }), [true, false, true]);
    assert_eq!(learned(Freeze { task: true, ..Freeze::default() }), [true, true, false]);
    assert_eq!(learned(Freeze { network: true, training: true, task: true }), [false; 3]);
}

#[test]
fn a_processor_that_throttles_is_noticed_at_once() {
    let mut fake = Fake::new(12, DEFAULT, 14);
    let mut twin = fake.twin(TwinOptions::default());
    run(&mut fake, &mut twin, 80);
    fake.truth.iter_mut().for_each(|one| one.operations_per_cycle *= 0.5);
    run(&mut fake, &mut twin, 20);
    let speed = |n: usize| {
        let (found, truth) = (twin.network.hardware(n), &fake.truth[n]);
        (found.operations_per_cycle / truth.operations_per_cycle - 1.0).abs()
    };
    let mut errors: Vec<f64> = (0..12).map(speed).collect();
    assert!(median(&mut errors) < 0.04, "{errors:?}");
}

#[test]
fn being_sure_costs_little_once_a_terminal_is_known() {
    let mut fake = Fake::new(12, DEFAULT, 15);
    let mut twin = fake.twin(TwinOptions::default());
    run(&mut fake, &mut twin, 120);
    let (seen, plan) = (fake.observe(), fake.any_plan(10));
    for exchange in twin.exchanges(&twin.state(&seen), &plan).iter().enumerate() {
        let (n, Some(exchange)) = exchange else { continue };
        let safe = twin.network.safe_delay(n, exchange, twin.sure_z(10));
        assert!(safe < twin.network.predict(n, exchange).delay() * 1.08);
    }
}

#[test]
fn what_was_learned_comes_back_bit_for_bit() {
    let mut fake = Fake::new(12, DEFAULT, 8);
    let mut twin = fake.twin(TwinOptions::default());
    run(&mut fake, &mut twin, 45);
    let mut snapshot = Snapshot::default();
    twin.save(&mut snapshot);
    let mut back = fake.twin(TwinOptions::default());
    assert_ne!(back, twin);
    back.restore(&snapshot).unwrap();
    assert_eq!(back, twin);
    let (seen, plan) = (fake.observe(), fake.any_plan(4));
    let outcome = fake.execute(&plan);
    twin.calibrate(&seen, &plan, &outcome);
    back.calibrate(&seen, &plan, &outcome);
    assert_eq!(back, twin);
}

/// A future of `steps` rounds under the same decision.
fn imagine(twin: &Twin, start: &TwinState, actions: &[TerminalDecision], steps: usize) -> f64 {
    let (mut state, mut scratch) = (start.clone(), twin.scratch());
    let step = |_| twin.step(&mut state, actions, Sureness::Safe, &mut scratch).reward.total();
    (0..steps).map(step).sum()
}

#[test]
fn imagining_leaves_no_trace() {
    let mut fake = Fake::new(12, DEFAULT, 9);
    let mut twin = fake.twin(TwinOptions::default());
    run(&mut fake, &mut twin, 25);
    let (before, start) = (twin.clone(), twin.state(&fake.observe()));
    let plans: Vec<ProjectedDecision> = (0..20).map(|_| fake.any_plan(4)).collect();
    let of = |plan: &ProjectedDecision| imagine(&twin, &start, &plan.decision().terminals, 16);
    let once: Vec<f64> = plans.iter().map(of).collect();
    let back: Vec<f64> = plans.iter().rev().map(of).collect();
    assert!(once.iter().eq(back.iter().rev()));
    assert!(once.iter().all(|reward| reward.is_finite()));
    assert_eq!(before, twin);
}

#[test]
fn the_imagined_state_goes_the_way_of_the_real_one() {
    let mut fake = Fake::new(12, MIRROR, 10);
    let twin = fake.twin(TwinOptions::default());
    let (mut state, mut scratch) = (twin.state(&fake.observe()), twin.scratch());
    for _ in 0..23 {
        let plan = fake.any_plan(4);
        // The real fade is inserted in each round; everything else must follow.
        let seen = twin.state(&fake.observe());
        (state.known, state.fresh) = (seen.known.clone(), 0.0);
        assert_eq!(state.copies, seen.copies);
        assert_eq!(state.round, seen.round);
        twin.step(&mut state, &plan.decision().terminals, Sureness::Likely, &mut scratch);
        let outcome = fake.execute(&plan);
        let trained = outcome.terminals.iter().map(|one| one.took_part);
        assert!(trained.eq(scratch.trains.iter().copied()));
    }
}

#[test]
fn a_terminal_that_would_be_late_contributes_nothing() {
    let mut fake = Fake::new(12, MIRROR, 11);
    // Without scatter a single terminal in time is already worth something.
    let free = WeightPrior { mean: 0.0, ..TrainingOptions::default().scatter };
    let training = TrainingOptions { scatter: free, any: free, ..TrainingOptions::default() };
    let options = TwinOptions { training, caution: 0.0, ..TwinOptions::default() };
    let twin = fake.twin(options);
    let (seen, mut scratch) = (fake.observe(), twin.scratch());
    let mut decision = fake.any_plan(3).decision().clone();
    decision.terminals.iter_mut().for_each(|one| one.bandwidth = Hertz(1.0));
    let mut step = |actions: &[TerminalDecision]| {
        twin.step(&mut twin.state(&seen), actions, Sureness::Likely, &mut scratch)
    };
    let late = step(&decision.terminals);
    assert_eq!((late.n_late, late.loss_decrease, late.reward.task), (3, 0.0, 0.0));
    assert!(late.violation.relative > 1.0 && late.latency == Seconds(60.0));
    assert_eq!(late.duration, Seconds(5.0));
    let n = decision.scheduled().find(|n| n % 4 != 0).unwrap();
    decision.terminals[n].bandwidth = Hertz(15e6);
    let some = step(&decision.terminals);
    assert!(some.n_late < 3 && some.loss_decrease > 0.0 && some.reward.task > 0.0);
}

#[test]
fn being_sure_costs_delay_and_more_so_for_more_terminals() {
    let mut fake = Fake::new(12, DEFAULT, 12);
    let twin = fake.twin(TwinOptions::default());
    assert!(twin.sure_z(10) > twin.sure_z(2) && twin.sure_z(1) > 3.0);
    assert!((normal_probability(twin.sure_z(10)).powi(10) - 0.999).abs() < 1e-9);
    let (seen, plan) = (fake.observe(), fake.any_plan(5));
    let mut scratch = twin.scratch();
    let actions = &plan.decision().terminals;
    twin.step(&mut twin.state(&seen), actions, Sureness::Safe, &mut scratch);
    for n in plan.decision().scheduled() {
        assert!(scratch.safe_delays[n] > scratch.delays[n] * 1.05);
    }
}

#[test]
fn the_outlook_is_over_when_training_is() {
    let mut fake = Fake::new(12, DEFAULT, 16);
    let twin = fake.twin(TwinOptions::default());
    let mut fall = |round: u64| {
        fake.round = round;
        twin.state(&fake.observe()).outlook.fall
    };
    assert!(fall(1) > fall(100) && fall(100) > fall(500) && fall(500) > fall(999));
    assert_eq!(fall(1000), 0.0);
}
