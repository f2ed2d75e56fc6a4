//! Sixteen futures at once against one at a time.

use rand::RngExt;

use super::fake::{DEFAULT, Fake};
use super::run;
use crate::lanes::LANES;
use crate::round::TerminalDecision;
use crate::twin::{
    COMPRESSION_LEVELS, Field, Moves, Sureness, Twin, TwinOptions, TwinState, compression_at,
};
use crate::units::{Hertz, Watts};

const STEPS: usize = 12;

/// Moves of one terminal drawn at random, lane by lane.
fn draw(fake: &mut Fake) -> Moves {
    let mut moves = Moves::ZERO;
    for lane in 0..LANES {
        let mut draw = |low: f32, high: f32| low + (high - low) * fake.rng.random::<f32>();
        moves.scheduled[lane] = if draw(0.0, 1.0) < 0.4 { 1.0 } else { 0.0 };
        moves.bandwidth[lane] = draw(0.3e6, 8e6);
        moves.power[lane] = draw(0.02, 0.2);
        moves.cut[lane] = draw(0.0, 4.99).floor();
        moves.level[lane] = draw(60.0, COMPRESSION_LEVELS as f32 - 0.01).floor();
    }
    moves
}

fn decision(twin: &Twin, moves: &[Moves], lane: usize) -> Vec<TerminalDecision> {
    let limits = &twin.nominal().limits;
    let one = |moves: &Moves| TerminalDecision {
        scheduled: moves.scheduled[lane] > 0.5,
        bandwidth: Hertz(f64::from(moves.bandwidth[lane])),
        power: Watts(f64::from(moves.power[lane])),
        cut: limits.cuts[moves.cut[lane] as usize],
        compression: compression_at(limits, moves.level[lane] as usize),
    };
    moves.iter().map(one).collect()
}

fn near(found: f32, wanted: f64, tolerance: f64, what: &str) {
    let error = (f64::from(found) - wanted).abs();
    assert!(error < tolerance * (1.0 + wanted.abs()), "{what}: {found} instead of {wanted}");
}

/// Goes the same way in both and compares rewards and states step by step.
fn compare(options: TwinOptions, seed: u64) {
    let mut fake = Fake::new(12, DEFAULT, seed);
    let mut twin = fake.twin(options);
    run(&mut fake, &mut twin, 43);
    let start = twin.state(&fake.observe());
    let field = Field::new(&twin, &start, STEPS, false);
    let mut futures = field.start().clone();
    let mut states: Vec<TwinState> = vec![start; LANES];
    let mut scratch = twin.scratch();
    // In the first round the field is sure for everybody, the twin for those scheduled.
    for step in 0..STEPS {
        let mut moves: Vec<Moves> = (0..12).map(|_| draw(&mut fake)).collect();
        // Some are left out by all candidates, which is a short cut.
        moves.iter_mut().skip(step % 3).step_by(3).for_each(|one| one.scheduled = [0.0; LANES]);
        moves.iter_mut().enumerate().for_each(|(n, one)| field.job(&futures, step, n, one));
        let mut rewards = [0.0; LANES];
        field.step(&mut futures, step, &moves, &mut rewards);
        for (lane, state) in states.iter_mut().enumerate() {
            let actions = decision(&twin, &moves, lane);
            let found = twin.step(state, &actions, Sureness::Likely, &mut scratch);
            let reward = found.reward.total();
            if step > 0 {
                near(rewards[lane], reward, 2e-4, "reward");
            }
            near(futures.success[lane], found.success, 1e-5, "success");
            for n in 0..12 {
                near(futures.log_loss[n][lane], state.log_loss[n], 1e-5, "log-loss");
                near(futures.variance[n][lane], state.variance[n], 1e-5, "variance");
                assert_eq!(futures.held[n][lane] as usize, state.held[n]);
                assert_eq!(futures.owed[n][lane] as usize, state.owed[n]);
            }
        }
    }
}

#[test]
fn sixteen_futures_at_once_are_the_sixteen_one_by_one() {
    for seed in 20..26 {
        compare(TwinOptions::default(), seed);
        compare(TwinOptions { task_driven: false, ..TwinOptions::default() }, seed);
    }
}

#[test]
fn whoever_is_not_surely_in_time_is_dropped_if_so_asked() {
    let mut fake = Fake::new(12, DEFAULT, 30);
    let twin = fake.twin(TwinOptions::default());
    let start = twin.state(&fake.observe());
    let field = Field::new(&twin, &start, 1, true);
    let mut moves: Vec<Moves> = (0..12).map(|_| draw(&mut fake)).collect();
    moves.iter_mut().for_each(|one| (one.scheduled, one.bandwidth) = ([1.0; LANES], [1e6; LANES]));
    moves.iter_mut().enumerate().for_each(|(n, one)| field.job(field.start(), 0, n, one));
    let (mut futures, mut rewards) = (field.start().clone(), [0.0; LANES]);
    field.step(&mut futures, 0, &moves, &mut rewards);
    let mut scratch = twin.scratch();
    let mut dropped = 0;
    for lane in 0..LANES {
        let actions = decision(&twin, &moves, lane);
        twin.step(&mut start.clone(), &actions, Sureness::Safe, &mut scratch);
        for (n, action) in actions.iter().enumerate() {
            let fits = twin.nominal().profile.memory(action.cut) <= start.memory[n];
            let sure = fits && scratch.safe_delays[n] <= twin.nominal().limits.deadline;
            assert_eq!(futures.trained[n][lane] > 0.5, sure, "terminal {n}, lane {lane}");
            dropped += usize::from(!sure);
        }
    }
    assert!(dropped > 0 && dropped < 12 * LANES, "{dropped}");
}
