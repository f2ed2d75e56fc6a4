//! Sixteen futures at once, compared with one at a time.

use rand::RngExt;

use super::fake::{DEFAULT, Fake};
use super::run;
use super::tempo::scheduled;
use crate::cost::Downlink;
use crate::lanes::LANES;
use crate::round::TerminalDecision;
use crate::twin::{
    ActionLanes, By, COMPRESSION_LEVELS, RolloutTables, Sureness, TaskOptions, Twin, TwinOptions,
    TwinState, compression_at,
};
use crate::units::{Hertz, Watts};
use crate::wireless::RateModel;

const STEPS: usize = 12;

/// Random actions of one terminal, lane by lane, with at most this share of the band.
fn draw(fake: &mut Fake, most: f32) -> ActionLanes {
    let mut actions = ActionLanes::ZERO;
    for lane in 0..LANES {
        let mut draw = |low: f32, high: f32| low + (high - low) * fake.rng.random::<f32>();
        actions.scheduled[lane] = if draw(0.0, 1.0) < 0.4 { 1.0 } else { 0.0 };
        actions.bandwidth[lane] = draw(0.3e6, most);
        actions.power[lane] = draw(0.02, 0.2);
        actions.cut[lane] = draw(0.0, 4.99).floor();
        actions.level[lane] = draw(60.0, COMPRESSION_LEVELS as f32 - 0.01).floor();
    }
    actions
}

fn decision(twin: &Twin, actions: &[ActionLanes], lane: usize) -> Vec<TerminalDecision> {
    let limits = &twin.nominal().cost.limits;
    let one = |actions: &ActionLanes| TerminalDecision {
        scheduled: actions.scheduled[lane] > 0.5,
        bandwidth: Hertz(f64::from(actions.bandwidth[lane])),
        power: Watts(f64::from(actions.power[lane])),
        cut: limits.cuts[actions.cut[lane] as usize],
        compression: compression_at(limits, actions.level[lane] as usize),
    };
    actions.iter().map(one).collect()
}

fn near(found: f32, wanted: f64, tolerance: f64, what: &str) {
    let error = (f64::from(found) - wanted).abs();
    assert!(error < tolerance * (1.0 + wanted.abs()), "{what}: {found} instead of {wanted}");
}

/// The remaining terminals of a lane without those that are late or do not fit their memory; in the
/// first step with the safety margin of a round that schedules all.
fn in_time(
    twin: &Twin,
    state: &TwinState,
    mut actions: Vec<TerminalDecision>,
) -> Vec<TerminalDecision> {
    let band = twin.band(state, &actions);
    let deadline = twin.nominal().cost.limits.deadline;
    for n in 0..actions.len() {
        let exchange = twin.exchange(state, &actions[n], &band, n);
        let Some(exchange) = exchange.filter(|_| actions[n].scheduled) else { continue };
        let delay = match state.lead {
            0 => twin.network.safe_delay(n, &exchange, twin.sure_z(actions.len())),
            _ => twin.network.predict(n, &exchange).delay(),
        };
        let fits = twin.nominal().cost.profile.memory(actions[n].cut) <= state.memory[n];
        actions[n].scheduled = fits && delay <= deadline;
    }
    actions
}

/// Advances both by the same actions and compares rewards and states step by step.
fn compare(mut fake: Fake, options: TwinOptions, drops_late: bool) {
    let mut twin = fake.twin(options);
    run(&mut fake, &mut twin, 43);
    let start = twin.state(&fake.observe());
    // A dropped terminal still has its share of the band and delivers nothing. The comparison
    // therefore ends at the next aggregation, and the band is wide enough for all.
    let (n_steps, most) = if drops_late { (6, 1.6e6) } else { (STEPS, 8e6) };
    let rollout = RolloutTables::new(&twin, &start, n_steps, drops_late);
    let mut futures = rollout.start().clone();
    let mut states: Vec<TwinState> = vec![start; LANES];
    let mut scratch = twin.scratch();
    for step in 0..n_steps {
        let mut actions: Vec<ActionLanes> = (0..12).map(|_| draw(&mut fake, most)).collect();
        // Some terminals are unscheduled in all candidates, which the rollout skips.
        actions.iter_mut().skip(step % 3).step_by(3).for_each(|one| one.scheduled = [0.0; LANES]);
        actions.iter_mut().enumerate().for_each(|(n, one)| rollout.job(&futures, step, n, one));
        let mut rewards = [0.0; LANES];
        rollout.step(&mut futures, step, &actions, &mut rewards);
        for (lane, state) in states.iter_mut().enumerate() {
            let mut actions = decision(&twin, &actions, lane);
            if drops_late {
                actions = in_time(&twin, state, actions);
            }
            let found = twin.step(state, &actions, Sureness::Likely, &mut scratch);
            // In the first round the rollout uses the safety margin for all terminals, the twin
            // only for the scheduled ones; the violation of late terminals differs.
            if step > 0 || drops_late {
                near(rewards[lane], found.reward.total(), 2e-4, "reward");
            }
            near(futures.success[lane], found.success, 1e-5, "success");
            let trained = scratch.trains.iter().filter(|one| **one).count();
            assert_eq!(futures.n_trained[lane] as usize, trained);
            for n in 0..12 {
                near(futures.log_loss[n][lane], state.log_loss[n], 1e-5, "log-loss");
                near(futures.variance[n][lane], state.variance[n], 1e-5, "variance");
                if options.training.forgetting > 0.0 {
                    near(futures.advantage[n][lane], state.advantage[n], 1e-5, "advantage");
                }
                assert_eq!(futures.held[n][lane] as usize, state.copies[n].held);
                assert_eq!(futures.pending[n][lane] as usize, state.copies[n].pending);
            }
        }
    }
}

#[test]
fn sixteen_futures_at_once_are_the_sixteen_one_by_one() {
    for seed in 20..26 {
        for drops_late in [false, true] {
            let fake = || Fake::new(12, DEFAULT, seed);
            compare(fake(), TwinOptions::default(), drops_late);
            let by_loss = TwinOptions { task_driven: false, ..TwinOptions::default() };
            compare(fake(), by_loss, drops_late);
            // Curves by terminal, and rounds that forget.
            let task = TaskOptions { by: By::Terminal, ..TaskOptions::default() };
            let second = TwinOptions { task, training: scheduled(), ..TwinOptions::default() };
            compare(fake(), second, drops_late);
            let mut averaged = fake();
            averaged.nominal.cost.rate_model = RateModel::Averaged;
            compare(averaged, TwinOptions::default(), drops_late);
            // The base station sends with its own power.
            let mut own = fake();
            own.nominal.cost.downlink = Downlink::Own(Watts(1.5));
            compare(own, TwinOptions::default(), drops_late);
            let mut both = fake();
            both.nominal.cost.downlink = Downlink::Own(Watts(0.05));
            both.nominal.cost.rate_model = RateModel::Averaged;
            compare(both, TwinOptions::default(), drops_late);
            // Some have fewer samples than the 64 of a minibatch.
            let mut short = fake();
            short.n_samples = (0..12).map(|n| if n % 3 == 1 { 5 + n } else { 1000 }).collect();
            compare(short, TwinOptions::default(), drops_late);
        }
    }
}

#[test]
fn whoever_is_not_surely_in_time_is_dropped_if_so_asked() {
    let mut fake = Fake::new(12, DEFAULT, 30);
    let twin = fake.twin(TwinOptions::default());
    let start = twin.state(&fake.observe());
    let rollout = RolloutTables::new(&twin, &start, 1, true);
    let mut actions: Vec<ActionLanes> = (0..12).map(|_| draw(&mut fake, 8e6)).collect();
    actions
        .iter_mut()
        .for_each(|one| (one.scheduled, one.bandwidth) = ([1.0; LANES], [1e6; LANES]));
    actions.iter_mut().enumerate().for_each(|(n, one)| rollout.job(rollout.start(), 0, n, one));
    let (mut futures, mut rewards) = (rollout.start().clone(), [0.0; LANES]);
    rollout.step(&mut futures, 0, &actions, &mut rewards);
    let mut scratch = twin.scratch();
    let mut dropped = 0;
    for lane in 0..LANES {
        let actions = decision(&twin, &actions, lane);
        twin.step(&mut start.clone(), &actions, Sureness::Safe, &mut scratch);
        for (n, action) in actions.iter().enumerate() {
            let fits = twin.nominal().cost.profile.memory(action.cut) <= start.memory[n];
            let sure = fits && scratch.safe_delays[n] <= twin.nominal().cost.limits.deadline;
            assert_eq!(futures.trained[n][lane] > 0.5, sure, "terminal {n}, lane {lane}");
            dropped += usize::from(!sure);
        }
    }
    assert!(dropped > 0 && dropped < 12 * LANES, "{dropped}");
}
