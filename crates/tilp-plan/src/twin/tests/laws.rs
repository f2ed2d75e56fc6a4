//! Training and task sub-twins against synthetic laws.

use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

use crate::rng::{Rng, Seed};
use crate::round::SuccessCount;
use crate::twin::{Outlook, Part, Tally, TaskOptions, TaskTwin, TrainingOptions, TrainingTwin};

const GROUPS: usize = 8;
const TERMINALS: usize = 48;

fn groups() -> Vec<usize> {
    (0..TERMINALS).map(|n| n % GROUPS).collect()
}

/// The law that the training twin must find: participants learn, the others forget.
fn true_rate(tally: &Tally, n: usize) -> f64 {
    let features = tally.features(n, n % GROUPS);
    0.4 * features[0] - 0.004 * features[2] + 0.002 * features[5]
}

/// Ten terminals, half of them from groups that change every 20 rounds.
fn draw_round(round: u64, rng: &mut Rng) -> (Vec<usize>, Tally) {
    let mut tally = Tally::new(TERMINALS, GROUPS);
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
    chosen.iter().for_each(|&n| tally.add(&part(n, compression)));
    (chosen, tally)
}

fn part(n: usize, compression: f64) -> Part {
    Part { terminal: n, group: n % GROUPS, samples: 64.0, compression, depth: 0.5, push: 0.0 }
}

/// A twin after so many rounds of the law, with minibatch noise and copies that run ahead.
fn trained(rounds: u64, noise: f64, seed: u64) -> TrainingTwin {
    let mut rng = Seed::new(seed).stream("law");
    let mut twin = TrainingTwin::new(groups(), GROUPS, TrainingOptions::default());
    let mut levels: Vec<f64> = (0..TERMINALS).map(|_| rng.random::<f64>() - 0.5).collect();
    let mut since = [0.0; TERMINALS];
    for round in 1..=rounds {
        let (chosen, tally) = draw_round(round, &mut rng);
        let mut losses = vec![None; TERMINALS];
        for n in chosen {
            let scatter: f64 = StandardNormal.sample(&mut rng);
            losses[n] = Some((levels[n] - 0.04 * since[n] + noise * scatter).exp());
        }
        (0..TERMINALS).for_each(|n| since[n] += f64::from(losses[n].is_some()));
        if round % 10 == 0 {
            since.fill(0.0);
        }
        twin.follow(round, &losses, &tally, round % 10 == 0);
        for (n, level) in levels.iter_mut().enumerate() {
            *level -= true_rate(&tally, n);
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
            let (chosen, tally) = draw_round(round, &mut rng);
            for n in [chosen[0], (chosen[0] + 1) % TERMINALS] {
                let truth = true_rate(&tally, n);
                error += (twin.predict(&tally, n) - truth).abs();
                blind += (prior.predict(&tally, n) - truth).abs();
                sum += truth.abs();
            }
        }
        assert!(error < 0.25 * sum && error < 0.5 * blind, "{error} {blind} of {sum}");
        let coverage = twin.track().coverage().unwrap();
        assert!((0.85..=0.95).contains(&coverage), "{coverage}");
    }
}

#[test]
fn doubt_about_a_mean_of_losses_is_shared_where_the_law_is_and_halves_where_terminals_swing_alone()
{
    let twin = trained(200, 0.15, 6);
    let (_, tally) = draw_round(3, &mut Seed::new(6).stream("new"));
    let alone = |n: usize| twin.fall_sd(&tally, &[(n, 1.0)], 0.0);
    assert!((alone(3) - twin.rate_sd(&tally, 3)).abs() < 1e-15);
    // Terminals of one group that do not take part have the same features, so the same doubt.
    let idle: Vec<usize> =
        (0..TERMINALS).filter(|&n| n % GROUPS == 1 && tally.features(n, 1)[0] == 0.0).collect();
    let both = [(idle[0], 0.5), (idle[1], 0.5)];
    assert!((twin.fall_sd(&tally, &both, 0.0) - alone(idle[0])).abs() < 1e-12);
    let TrainingOptions { swing, common_swing, .. } = TrainingOptions::default();
    let expected =
        (alone(idle[0]).powi(2) + 0.01 * (swing * swing / 2.0 + common_swing.powi(2))).sqrt();
    assert!((twin.fall_sd(&tally, &both, 0.1) - expected).abs() < 1e-12);
}

#[test]
fn the_training_twin_is_safe_with_few_and_with_wild_data() {
    let twin = trained(12, 2.0, 4);
    let mut rng = Seed::new(4).stream("new");
    let (least, most) = twin.bounds();
    for round in 0..50 {
        let (_, tally) = draw_round(round, &mut rng);
        let rate = twin.predict(&tally, 3);
        assert!(rate.abs() < 0.1 && (least..=most).contains(&rate), "{rate}");
    }
    let empty = Tally::new(TERMINALS, GROUPS);
    assert_eq!(twin.predict(&empty, 0), 0.0);
    let fresh = TrainingTwin::new(vec![0, 1], 2, TrainingOptions::default());
    assert_eq!((fresh.log_loss(0), fresh.track().rmse()), (None, None));
    assert_eq!(fresh.log_losses(Some(2.0)), [2f64.ln(); 2]);
}

#[test]
fn a_larger_share_of_the_samples_helps_a_terminal_more() {
    let twin = trained(400, 0.1, 5);
    let of = |others: usize| {
        let mut tally = Tally::new(TERMINALS, GROUPS);
        (0..=others).for_each(|n| tally.add(&part(n, 0.75)));
        twin.own_weight(0) * tally.features(0, 0)[0]
    };
    assert!((0..10).all(|others| of(others) > of(others + 1)));
}

#[test]
fn doubt_about_a_terminal_grows_with_silence_and_shrinks_with_a_report() {
    let mut twin = TrainingTwin::new(groups(), GROUPS, TrainingOptions::default());
    let mut losses = vec![Some(1.0); TERMINALS];
    let mut tally = Tally::new(TERMINALS, GROUPS);
    tally.add(&part(0, 0.75));
    twin.follow(1, &losses, &tally, false);
    losses.iter_mut().skip(1).for_each(|loss| *loss = None);
    let before = twin.variances();
    for round in 2..40 {
        twin.follow(round, &losses, &tally, round % 10 == 0);
    }
    let after = twin.variances();
    assert!(after[0] < before[0] && after[1] > before[1], "{before:?} {after:?}");
    assert!(after[1] > twin.next_variance(after[1], true));
}

/// A true curve per group, drawn around the same centre as the twin's belief.
struct Curves(Vec<(f64, f64)>);

impl Curves {
    fn draw(rng: &mut Rng) -> Self {
        let mut normal = || -> f64 { StandardNormal.sample(rng) };
        let (level, slope) = (-0.4 + normal(), (2.0 + normal()).max(0.0));
        Self((0..GROUPS).map(|_| (level + normal(), (slope + 0.5 * normal()).max(0.0))).collect())
    }

    fn of_terminal(&self, n: usize, log_loss: f64) -> f64 {
        let (level, slope) = self.0[n % GROUPS];
        1.0 / (1.0 + (-(level - slope * log_loss)).exp())
    }

    fn success(&self, group: usize, log_losses: &[f64]) -> f64 {
        let members = (0..TERMINALS).filter(|n| n % GROUPS == group);
        let sum: f64 = members.map(|n| self.of_terminal(n, log_losses[n])).sum();
        sum / (TERMINALS / GROUPS) as f64
    }

    /// A number of episodes of every terminal.
    fn measure(&self, log_losses: &[f64], episodes: u64, rng: &mut Rng) -> Vec<SuccessCount> {
        let mut counts = vec![SuccessCount::default(); GROUPS];
        for n in 0..TERMINALS {
            let success = self.of_terminal(n, log_losses[n]);
            let hits = (0..episodes).filter(|_| rng.random::<f64>() < success).count() as u64;
            let count = &mut counts[n % GROUPS];
            *count = count.plus(SuccessCount { successes: hits, episodes });
        }
        counts
    }
}

fn new_task_twin() -> TaskTwin {
    let mut twin = TaskTwin::new(groups(), GROUPS, TaskOptions::default());
    twin.centre(|_| Some(0.0));
    twin
}

/// Terminals at some depth, those of a group around each other.
fn scattered(depth: f64) -> Vec<f64> {
    (0..TERMINALS).map(|n| -depth + 0.3 * ((n / GROUPS) as f64 - 2.5) / 2.5).collect()
}

#[test]
fn the_task_twin_recovers_a_synthetic_logistic() {
    let mut errors = Vec::new();
    for seed in 0..5 {
        let mut rng = Seed::new(seed).stream("task");
        let (curves, mut twin) = (Curves::draw(&mut rng), new_task_twin());
        for k in 0..40 {
            let log_losses = scattered(0.04 * f64::from(k));
            twin.calibrate(&log_losses, &curves.measure(&log_losses, 8, &mut rng), &[]);
        }
        for group in 0..GROUPS {
            let log_losses = scattered(1.7);
            let found = twin.group_success(group, &log_losses);
            let error = (found - curves.success(group, &log_losses)).abs();
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
            let log_losses = scattered(0.05 * f64::from(k));
            let counts = curves.measure(&log_losses, 2, &mut rng);
            for (group, count) in counts.iter().enumerate() {
                let (low, high) = twin.count_interval(group, &log_losses, count.episodes);
                inside += f64::from((low..=high).contains(&count.successes));
                let (low, high) = twin.interval(group, &log_losses);
                let success = curves.success(group, &log_losses);
                truth_inside += f64::from((low..=high).contains(&success));
                n += 1.0;
            }
            twin.calibrate(&log_losses, &counts, &[]);
        }
    }
    assert!((0.85..=0.95).contains(&(inside / n)), "{}", inside / n);
    // Wider than necessary: the distance of a measurement counts as scatter, although part of it is
    // learned later.
    assert!((0.85..=0.98).contains(&(truth_inside / n)), "{}", truth_inside / n);
}

#[test]
fn the_task_twin_is_monotone_whatever_it_saw() {
    let mut rng = Seed::new(6).stream("task");
    let mut twin = new_task_twin();
    for k in 0..30 {
        // Success that falls with the loss: no curve may follow it.
        let successes = (30 - k as u64) / 3;
        let count = SuccessCount { successes, episodes: 12 };
        let mut counts = vec![count; GROUPS];
        counts[0].successes = (rng.random::<f64>() * 12.0) as u64;
        twin.calibrate(&scattered(0.05 * f64::from(k)), &counts, &[]);
    }
    for n in 0..GROUPS {
        let success: Vec<f64> = (0..60).map(|k| twin.predict(n, -0.1 * f64::from(k))).collect();
        assert!(success.windows(2).all(|pair| pair[0] <= pair[1]));
        assert!(success.iter().all(|s| (0.0..=1.0).contains(s)));
    }
}

#[test]
fn the_task_twin_is_safe_without_data() {
    let twin = TaskTwin::new(vec![0, 1], 2, TaskOptions::default());
    assert!((twin.success(&[0.0, 0.0]) - 0.4).abs() < 1e-9);
    let twin = new_task_twin();
    let success = |loss: f64| twin.success(&[loss.ln(); TERMINALS]);
    assert!((success(1.0) - 0.4).abs() < 1e-9 && success(0.5) > 0.5 && success(0.5) < 0.9);
    let (low, high) = twin.interval(0, &[0.0; TERMINALS]);
    assert!(low < 0.1 && high > 0.8);
    assert!(twin.success_sd(&[0.0; TERMINALS]) > 0.05);
    assert_eq!(twin.track().coverage(), None);
}

#[test]
fn an_outlook_raises_and_flattens_a_line_and_none_leaves_it() {
    let twin = new_task_twin();
    let none = Outlook::default();
    assert_eq!(twin.line_ahead(0, none), twin.line(0));
    let success = |outlook: Outlook, log_loss: f64| {
        let (start, slope) = twin.line_ahead(0, outlook);
        1.0 / (1.0 + (slope * log_loss - start).exp())
    };
    let ahead = Outlook { fall: 1.0, sd: 0.5 };
    assert!(success(ahead, 0.0) > success(none, 0.0));
    // A robot that fails today is worth more effort, one that succeeds less.
    let worth = |outlook, log_loss| success(outlook, log_loss - 0.05) - success(outlook, log_loss);
    assert!(worth(ahead, 2.5) > 2.0 * worth(none, 2.5));
    assert!(worth(ahead, -2.0) < worth(none, -2.0));
    // The flatter line is the mean over the possible changes, by brute force.
    let mean = |log_loss: f64| {
        let one = |k: i32| {
            let z = f64::from(k) / 100.0;
            let weight = (-0.5 * z * z).exp();
            (weight * success(none, log_loss - ahead.fall + ahead.sd * z), weight)
        };
        let (sum, weights) =
            (-500..=500).map(one).fold((0.0, 0.0), |(a, b), (x, w)| (a + x, b + w));
        sum / weights
    };
    for log_loss in [-2.0, -0.5, 0.5, 2.0, 3.0] {
        assert!((success(ahead, log_loss) - mean(log_loss)).abs() < 0.01, "{log_loss}");
    }
}
