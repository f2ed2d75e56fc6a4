//! A twin with access to the truth.

use super::fake::{DEFAULT, Fake};
use super::run;
use crate::round::{NetworkTruth, SuccessCount, TrueHardware, Truth};
use crate::twin::{RolloutTables, Sureness, Twin, TwinOptions};

const ROUNDS: usize = 6;

/// Observed fading of the present round, then artificial fading.
fn network(fake: &Fake) -> NetworkTruth {
    let hardware = fake.truth.iter().map(|one| TrueHardware {
        noise_w_per_hz: one.noise_w_per_hz,
        operations_per_cycle: one.operations_per_cycle,
        energy_coefficient: one.energy_coefficient,
    });
    let now: Vec<f64> =
        fake.observe().terminals.iter().map(|one| one.report.fading_power).collect();
    let later = |step: usize| (0..now.len()).map(|n| 0.1 + 0.2 * (step + n) as f64).collect();
    let fading_powers = std::iter::once(now.clone()).chain((1..ROUNDS).map(later)).collect();
    NetworkTruth { hardware: hardware.collect(), fading_powers }
}

fn told(truth: impl Fn(&Fake) -> Truth) -> (Fake, Twin) {
    let mut fake = Fake::new(12, DEFAULT, 5);
    let mut twin = fake.twin(TwinOptions::default());
    run(&mut fake, &mut twin, 31);
    twin.be_told(&Truth { round: fake.round, ..truth(&fake) });
    (fake, twin)
}

#[test]
fn told_the_hardware_it_predicts_exactly_without_doubt_and_does_not_unlearn_it() {
    let (mut fake, mut twin) =
        told(|fake| Truth { network: Some(network(fake)), ..Truth::default() });
    let mut scratch = twin.scratch();
    for _ in 0..12 {
        let (seen, plan) = (fake.observe(), fake.any_plan(5));
        let actions = &plan.decision().terminals;
        twin.step(&mut twin.state(&seen), actions, Sureness::Safe, &mut scratch);
        for (n, cost) in fake.true_costs(&plan).iter().enumerate() {
            let Some((cost, power)) = cost else { continue };
            let spent = cost.until(twin.nominal().closes, *power);
            assert_eq!(scratch.delays[n], cost.delay());
            assert_eq!(scratch.energies[n], spent.energy_compute + spent.energy_radio);
            let safe = scratch.safe_delays[n].0 / cost.delay().0;
            assert!((1.0..1.0 + 1e-7).contains(&safe), "{safe}");
        }
        let outcome = fake.execute(&plan);
        twin.calibrate(&seen, &plan, &outcome);
        twin.be_told(&Truth {
            round: fake.round,
            network: Some(network(&fake)),
            ..Truth::default()
        });
    }
}

#[test]
fn told_the_fading_to_come_it_counts_on_it_and_on_its_law_beyond() {
    let (fake, twin) = told(|fake| Truth { network: Some(network(fake)), ..Truth::default() });
    let state = twin.state(&fake.observe());
    let rollout = RolloutTables::new(&twin, &state, ROUNDS, false);
    let truth = network(&fake);
    for (step, powers) in truth.fading_powers.iter().enumerate() {
        for (n, power) in powers.iter().enumerate() {
            let wanted = state.gain[n] * power / fake.truth[n].noise_w_per_hz;
            assert!((f64::from(rollout.signal(step, n)) / wanted - 1.0).abs() < 1e-6);
        }
    }
    let (mut imagined, mut scratch) = (state.clone(), twin.scratch());
    let idle = crate::round::Decision::idle(12, 2).terminals;
    for powers in &truth.fading_powers {
        assert_eq!((imagined.fading(3).known, imagined.fading(3).fresh), (powers[3], 0.0));
        twin.step(&mut imagined, &idle, Sureness::Likely, &mut scratch);
    }
    assert!(imagined.fading(3).fresh > 0.0);
}

#[test]
fn told_the_losses_it_has_no_doubt_about_them_and_silence_raises_none() {
    let losses: Vec<f64> = (0..12).map(|n| 0.5 + 0.05 * f64::from(n)).collect();
    let (mut fake, twin) = told(|_| Truth { losses: Some(losses.clone()), ..Truth::default() });
    let (plan, mut scratch) = (fake.any_plan(5), twin.scratch());
    let mut state = twin.state(&fake.observe());
    for (log_loss, loss) in state.log_loss.iter().zip(&losses) {
        assert_eq!(*log_loss, loss.ln());
    }
    for _ in 0..5 {
        twin.step(&mut state, &plan.decision().terminals, Sureness::Likely, &mut scratch);
    }
    assert!(state.variance.iter().all(|variance| *variance < 1e-15));
}

#[test]
fn told_the_success_it_anchors_each_terminal_at_its_loss_and_keeps_the_slope() {
    let count = |n: u64| SuccessCount { successes: 2 * n, episodes: 24 };
    let success: Vec<SuccessCount> = (0..12).map(count).collect();
    let (fake, twin) = told(|_| Truth { success: Some(success.clone()), ..Truth::default() });
    let mut plain = fake.twin(TwinOptions::default());
    run(&mut Fake::new(12, DEFAULT, 5), &mut plain, 31);
    for (n, told) in success.iter().enumerate() {
        let log_loss = twin.training.known_log_loss(n).unwrap();
        let found = twin.task.predict(n, log_loss);
        assert!((found - told.rate().unwrap()).abs() < 0.05, "{n} {found}");
        assert!(twin.task.predict(n, log_loss - 0.5) >= found);
        assert_eq!(twin.task.line(n).1, plain.task.line(n).1);
    }
}

#[test]
fn a_success_told_before_any_loss_is_known_waits_for_one_also_in_a_snapshot() {
    let mut fake = Fake::new(12, DEFAULT, 6);
    let mut twin = fake.twin(TwinOptions::default());
    let success = vec![SuccessCount { successes: 9, episodes: 10 }; 12];
    twin.be_told(&Truth { round: 1, success: Some(success), ..Truth::default() });
    assert_eq!(twin.task.line(0), fake.twin(TwinOptions::default()).task.line(0));
    let mut snapshot = crate::snapshot::Snapshot::default();
    twin.save_told(&mut snapshot);
    let mut twin = fake.twin(TwinOptions::default());
    twin.restore_told(&snapshot).unwrap();
    run(&mut fake, &mut twin, 20);
    twin.be_told(&Truth { round: fake.round, ..Truth::default() });
    for n in (0..12).filter(|&n| twin.training.known_log_loss(n).is_some()) {
        let found = twin.task.predict(n, twin.training.known_log_loss(n).unwrap());
        assert!((found - 0.9).abs() < 0.1, "{n} {found}");
    }
}
