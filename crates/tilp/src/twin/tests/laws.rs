//! Training and task sub-twins against synthetic laws.

use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

use crate::rng::{Rng, Seed};
use crate::round::SuccessCount;
use crate::twin::{Part, Tally, TaskOptions, TaskTwin, TrainingOptions, TrainingTwin};

const GROUPS: usize = 8;
const TERMINALS: usize = 48;

/// A law that does not depend on the loss.
const LEVEL: TrainingOptions = TrainingOptions {
    any: 0.002,
    scatter: 0.0,
    own: 0.002,
    saturation: 0.0,
    spread: 0.01,
    group_spread: 0.003,
    most: 0.1,
    window: 200,
    memory: 60.0,
    minibatch: 0.2,
    drift: 0.01,
};

/// The law that the training twin must find.
fn true_rate(tally: &Tally, group: usize) -> f64 {
    let features = tally.features(group);
    0.009 * features[0] + 0.003 * features[1] + 0.002 * features[4]
}

/// Ten terminals, half of them from groups that change every 20 rounds.
fn draw_round(round: u64, rng: &mut Rng) -> (Vec<usize>, Tally) {
    let mut tally = Tally::new(GROUPS);
    let favoured = (round / 20 % GROUPS as u64) as usize;
    let mut chosen: Vec<usize> = Vec::new();
    while chosen.len() < 10 {
        let n = (rng.random::<f64>() * TERMINALS as f64) as usize;
        let wanted = chosen.len() >= 5 || n % GROUPS == favoured;
        if wanted && !chosen.contains(&n) {
            chosen.push(n);
        }
    }
    let compression = if rng.random::<f64>() < 0.5 { 0.75 } else { 0.9 };
    for &n in &chosen {
        let group = n % GROUPS;
        tally.add(&Part { group, samples: 64.0, compression, depth: 0.5, push: 0.0 });
    }
    (chosen, tally)
}

/// A twin after so many rounds of the law, with minibatch noise.
fn trained(rounds: u64, noise: f64, seed: u64) -> TrainingTwin {
    let mut rng = Seed::new(seed).stream("law");
    let groups = (0..TERMINALS).map(|n| n % GROUPS).collect();
    let mut twin = TrainingTwin::new(groups, GROUPS, LEVEL);
    let mut levels: Vec<f64> = (0..TERMINALS).map(|_| rng.random::<f64>() - 0.5).collect();
    for round in 1..=rounds {
        let (chosen, tally) = draw_round(round, &mut rng);
        let mut losses = vec![None; TERMINALS];
        for n in chosen {
            let scatter: f64 = StandardNormal.sample(&mut rng);
            losses[n] = Some((levels[n] + noise * scatter).exp());
        }
        twin.follow(round, &losses, &tally);
        for (n, level) in levels.iter_mut().enumerate() {
            *level -= true_rate(&tally, n % GROUPS);
        }
        if round % 10 == 0 {
            twin.calibrate();
        }
    }
    twin
}

#[test]
fn the_training_twin_recovers_a_synthetic_law() {
    let prior = trained(0, 0.15, 1);
    for seed in 1..4 {
        let twin = trained(400, 0.15, seed);
        let mut rng = Seed::new(seed).stream("new");
        let (mut error, mut blind, mut sum) = (0.0, 0.0, 0.0);
        for round in 0..300 {
            let (_, tally) = draw_round(round, &mut rng);
            let group = round as usize % GROUPS;
            let truth = true_rate(&tally, group);
            error += (twin.predict(&tally, group, 1.0) - truth).abs();
            blind += (prior.predict(&tally, group, 1.0) - truth).abs();
            sum += truth;
        }
        assert!(error < 0.25 * sum && error < 0.5 * blind, "{error} {blind} of {sum}");
        let coverage = twin.track().coverage().unwrap();
        assert!((0.85..=0.95).contains(&coverage), "{coverage}");
        assert!(twin.weights()[0] > 1.5 * twin.weights()[1], "{:?}", twin.weights());
    }
}

#[test]
fn the_training_twin_is_safe_with_few_and_with_wild_data() {
    let twin = trained(12, 2.0, 4);
    let mut rng = Seed::new(4).stream("new");
    for round in 0..50 {
        let (_, tally) = draw_round(round, &mut rng);
        let rate = twin.predict(&tally, 3, 1.0);
        assert!(rate.abs() < 0.05, "{rate}");
    }
    let empty = Tally::new(GROUPS);
    assert_eq!(twin.predict(&empty, 0, 1.0), 0.0);
    let fresh = TrainingTwin::new(vec![0, 1], 2, TrainingOptions::default());
    assert_eq!((fresh.loss(0), fresh.track().rmse()), (None, None));
}

#[test]
fn more_of_its_own_terminals_help_a_group_more() {
    let twin = trained(400, 0.1, 5);
    let of = |own: usize| {
        let mut tally = Tally::new(GROUPS);
        for n in 0..10 {
            let group = if n < own { 0 } else { 1 + n % 7 };
            let part = Part { group, samples: 64.0, compression: 0.75, depth: 0.5, push: 0.0 };
            tally.add(&part);
        }
        twin.predict(&tally, 0, 1.0)
    };
    assert!((0..10).all(|own| of(own) < of(own + 1)));
}

/// A true curve per group, drawn around the same centre as the twin's belief.
struct Curves(Vec<(f64, f64)>);

impl Curves {
    fn draw(rng: &mut Rng) -> Self {
        let mut normal = || -> f64 { StandardNormal.sample(rng) };
        let (level, slope) = (-0.4 + normal(), (2.0 + normal()).max(0.0));
        Self((0..GROUPS).map(|_| (level + normal(), (slope + 0.5 * normal()).max(0.0))).collect())
    }

    fn success(&self, group: usize, loss: f64) -> f64 {
        let (level, slope) = self.0[group];
        1.0 / (1.0 + (-(level - slope * loss.ln())).exp())
    }

    fn measure(&self, losses: &[f64], episodes: u64, rng: &mut Rng) -> Vec<SuccessCount> {
        let mut one = |(group, loss): (usize, &f64)| {
            let success = self.success(group, *loss);
            let hit = |_: &u64| rng.random::<f64>() < success;
            SuccessCount { successes: (0..episodes).filter(hit).count() as u64, episodes }
        };
        losses.iter().enumerate().map(&mut one).collect()
    }
}

fn new_task_twin() -> TaskTwin {
    let mut twin = TaskTwin::new(vec![1.0 / GROUPS as f64; GROUPS], TaskOptions::default());
    twin.centre(|_| Some(1.0));
    twin
}

#[test]
fn the_task_twin_recovers_a_synthetic_logistic() {
    let mut errors = Vec::new();
    for seed in 0..5 {
        let mut rng = Seed::new(seed).stream("task");
        let (curves, mut twin) = (Curves::draw(&mut rng), new_task_twin());
        for k in 0..40 {
            let losses = [(-0.04 * f64::from(k)).exp(); GROUPS];
            twin.calibrate(&losses, &curves.measure(&losses, 48, &mut rng));
        }
        for group in 0..GROUPS {
            let loss = (-1.7f64).exp();
            let error = (twin.predict(group, loss) - curves.success(group, loss)).abs();
            errors.push(error);
            assert!(error < 0.15, "{error}");
        }
    }
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    assert!(mean < 0.03, "{mean}");
}

#[test]
fn the_task_twin_says_how_sure_it_is() {
    let (mut inside, mut truth_inside, mut n) = (0.0, 0.0, 0.0);
    for seed in 0..40 {
        let mut rng = Seed::new(100 + seed).stream("task");
        let (curves, mut twin) = (Curves::draw(&mut rng), new_task_twin());
        for k in 0..20 {
            let losses: Vec<f64> =
                (0..GROUPS).map(|g| (-0.05 * f64::from(k) - 0.02 * g as f64).exp()).collect();
            let counts = curves.measure(&losses, 12, &mut rng);
            for (group, count) in counts.iter().enumerate() {
                let (low, high) = twin.count_interval(group, losses[group], 12);
                inside += f64::from((low..=high).contains(&count.successes));
                let (low, high) = twin.interval(group, losses[group]);
                let success = curves.success(group, losses[group]);
                truth_inside += f64::from((low..=high).contains(&success));
                n += 1.0;
            }
            twin.calibrate(&losses, &counts);
        }
    }
    assert!((0.85..=0.95).contains(&(inside / n)), "{}", inside / n);
    assert!((0.85..=0.97).contains(&(truth_inside / n)), "{}", truth_inside / n);
}

#[test]
fn the_task_twin_is_monotone_whatever_it_saw() {
    let mut rng = Seed::new(6).stream("task");
    let mut twin = new_task_twin();
    for k in 0..30 {
        // Success that falls with the loss: no curve should say so.
        let losses = [(-0.05 * f64::from(k)).exp(); GROUPS];
        let successes = (30 - k as u64) / 3;
        let count = SuccessCount { successes, episodes: 12 };
        let mut counts = vec![count; GROUPS];
        counts[0].successes = (rng.random::<f64>() * 12.0) as u64;
        twin.calibrate(&losses, &counts);
    }
    for group in 0..GROUPS {
        let success: Vec<f64> =
            (0..60).map(|k| twin.predict(group, (-0.1 * f64::from(k)).exp())).collect();
        assert!(success.windows(2).all(|pair| pair[0] <= pair[1]));
        assert!(success.iter().all(|s| (0.0..=1.0).contains(s)));
    }
}

#[test]
fn the_task_twin_is_safe_without_data() {
    let twin = TaskTwin::new(vec![0.5, 0.5], TaskOptions::default());
    assert!((twin.success(&[1.0, 1.0]) - 0.4).abs() < 1e-9);
    let twin = new_task_twin();
    let success = |loss: f64| twin.success(&[loss; GROUPS]);
    assert!((success(1.0) - 0.4).abs() < 1e-9 && success(0.5) > 0.5 && success(0.5) < 0.9);
    let (low, high) = twin.interval(0, 1.0);
    assert!(low < 0.1 && high > 0.8);
    assert!(twin.success_sd(&[1.0; GROUPS]) > 0.05);
    assert_eq!(twin.track().coverage(), None);
}
