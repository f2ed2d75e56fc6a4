//! The training law at the pace of the learning rate, and what rounds forget.

use super::fake::{DEFAULT, Fake};
use super::run;
use crate::round::Decision;
use crate::snapshot::{Persist, Snapshot};
use crate::twin::{
    Pace, Part, Sureness, Tally, Tempo, TrainingOptions, TrainingTwin, TwinOptions, WeightPrior,
};

pub fn scheduled() -> TrainingOptions {
    let weight = |mean: f64| WeightPrior { mean, sd: 0.05, least: 0.0 };
    TrainingOptions {
        pace: Pace::Schedule,
        earliest: 40,
        forgetting: 0.03,
        own: weight(0.2),
        any: weight(0.3),
        scatter_power: 3,
        ..TrainingOptions::default()
    }
}

fn part(n: usize) -> Part {
    Part { terminal: n, group: 0, samples: 64.0, compression: 0.75, depth: 0.5, push: 0.0 }
}

/// A round of these terminals out of four.
fn round_of(terminals: &[usize], tempo: Tempo, advantage: &[f64; 4]) -> Tally {
    let mut tally = Tally::new(4, 1);
    tally.begin(tempo, advantage);
    terminals.iter().for_each(|&n| tally.add(&part(n)));
    tally
}

#[test]
fn the_tempo_is_that_of_the_learning_rate_and_of_the_curve() {
    let mut fake = Fake::new(12, DEFAULT, 3);
    fake.nominal.rates.warm_up = 20;
    let twin = fake.twin(TwinOptions { training: scheduled(), ..TwinOptions::default() });
    let plain = fake.twin(TwinOptions::default());
    for round in [1, 5, 20, 39, 60, 500, 1000] {
        fake.round = round;
        let seen = fake.observe();
        let Tempo { rate, curve, forgetting, .. } = twin.state(&seen).tempo;
        let rates = &fake.nominal.rates;
        let share = f64::from(rates.at(round).terminal / rates.start.terminal);
        assert!((rate - share).abs() < 1e-12);
        assert!((curve - share / round.max(40) as f64).abs() < 1e-12);
        assert!((forgetting - 0.03 * share).abs() < 1e-12);
        assert_eq!(plain.state(&seen).tempo, Tempo::default());
    }
}

#[test]
fn a_constant_pace_without_forgetting_is_the_law_of_version_1() {
    let mut plain = Tally::new(4, 1);
    [0, 2].iter().for_each(|&n| plain.add(&part(n)));
    let begun = round_of(&[0, 2], Tempo::default(), &[3.0; 4]);
    for n in 0..4 {
        assert_eq!(begun.features(n, 0), plain.features(n, 0));
    }
    assert_eq!(plain.features(0, 0)[..3], [0.5, 0.5, 1.0]);
}

#[test]
fn everything_in_a_round_goes_with_the_learning_rate() {
    let whole = Tempo { rate: 1.0, curve: 0.02, forgetting: 0.1, ..Tempo::default() };
    let half = Tempo { rate: 0.5, curve: 0.01, forgetting: 0.05, ..Tempo::default() };
    let advantage = [0.4, 0.0, 0.2, 0.1];
    let (fast, slow) = (round_of(&[0, 2], whole, &advantage), round_of(&[0, 2], half, &advantage));
    for n in 0..4 {
        for (a, b) in fast.features(n, 0).iter().zip(slow.features(n, 0)) {
            assert!((0.5 * a - b).abs() < 1e-12);
        }
    }
}

#[test]
fn the_scatter_of_a_round_falls_with_the_power_of_its_participants() {
    const SCATTER: usize = 4;
    for (scatter_power, expected) in [(1, 0.5), (3, 0.125)] {
        let options = TrainingOptions { scatter_power, ..scheduled() };
        let tempo = Tempo::at(&options, 100, 1.0);
        let alone = round_of(&[0], tempo, &[0.0; 4]).features(3, 0)[SCATTER];
        let pair = round_of(&[0, 1], tempo, &[0.0; 4]).features(3, 0)[SCATTER];
        assert_eq!((alone, pair / alone), (-1.0, expected));
    }
}

#[test]
fn a_round_without_somebody_takes_back_a_share_of_what_its_own_samples_gave_it() {
    let twin = TrainingTwin::new(vec![0; 4], 1, scheduled());
    let tempo = Tempo { rate: 1.0, curve: 0.0, forgetting: 0.1, ..Tempo::default() };
    let mut advantage = [0.5, 0.0, 0.0, 0.0];
    let (mut risen, mut others) = (0.0, 0.0);
    for _ in 0..200 {
        let tally = round_of(&[1], tempo, &advantage);
        risen -= twin.predict(&tally, 0) - twin.predict(&tally, 2);
        others -= twin.predict(&tally, 2);
        for (n, advantage) in advantage.iter_mut().enumerate() {
            *advantage += tally.gained(n);
        }
    }
    // In the limit all of the advantage; a terminal without advantage loses nothing.
    assert!((risen - 0.5 * twin.own_weight(0)).abs() < 1e-9, "{risen} {others}");
    assert!(advantage[0] < 1e-9 && advantage[2] == 0.0);
    // In the limit a terminal that trains alone gains as much as it forgets.
    assert!((advantage[1] - 10.0).abs() < 1e-6, "{}", advantage[1]);
    let nobody = round_of(&[], tempo, &advantage);
    assert_eq!((nobody.gained(1), twin.predict(&nobody, 1)), (0.0, 0.0));
}

#[test]
fn an_imagined_round_forgets_as_a_real_one_does() {
    let mut fake = Fake::new(12, DEFAULT, 5);
    let mut twin = fake.twin(TwinOptions { training: scheduled(), ..TwinOptions::default() });
    run(&mut fake, &mut twin, 60);
    assert!(twin.training.advantage().iter().all(|one| *one >= 0.0));
    assert!(twin.training.advantage().iter().any(|one| *one > 0.0));
    let (seen, plan) = (fake.observe(), fake.any_plan(4));
    let (mut state, mut scratch) = (twin.state(&seen), twin.scratch());
    assert_eq!(state.advantage, twin.training.advantage());
    twin.step(&mut state, &plan.decision().terminals, Sureness::Likely, &mut scratch);
    let outcome = fake.execute(&plan);
    let same = outcome.terminals.iter().map(|one| one.took_part).eq(scratch.trains.iter().copied());
    twin.calibrate(&seen, &plan, &outcome);
    for (imagined, real) in state.advantage.iter().zip(twin.training.advantage()) {
        assert!(!same || (imagined - real).abs() < 1e-12);
    }
    let before = state.advantage.clone();
    twin.step(&mut state, &Decision::idle(12, 2).terminals, Sureness::Likely, &mut scratch);
    assert_eq!(state.advantage, before, "nobody trains, nothing is forgotten");
}

#[test]
fn advantages_come_back_bit_for_bit_and_forged_ones_are_refused() {
    let mut fake = Fake::new(12, DEFAULT, 6);
    let options = TwinOptions { training: scheduled(), ..TwinOptions::default() };
    let mut twin = fake.twin(options);
    run(&mut fake, &mut twin, 33);
    let mut snapshot = Snapshot::default();
    twin.save(&mut snapshot);
    let mut back = fake.twin(options);
    back.restore(&snapshot).unwrap();
    assert!(back == twin);
    snapshot.put_f64("twin/training/advantage", vec![f64::NAN; 12]);
    let said = back.restore(&snapshot).unwrap_err().to_string();
    assert!(said.contains("twin/training/advantage"), "{said}");
}
