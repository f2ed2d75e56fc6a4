//! Curves by terminal against closed forms and simulated counts.

use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

use super::fake::{DEFAULT, Fake};
use super::run;
use crate::rng::{Rng, Seed};
use crate::round::{SuccessCount, Truth};
use crate::snapshot::{Persist, Snapshot};
use crate::twin::{By, Outlook, TaskOptions, TaskTwin, TerminalOptions, TwinOptions};

const GROUPS: usize = 6;
const TERMINALS: usize = 48;

fn options() -> TaskOptions {
    TaskOptions { by: By::Terminal, ..TaskOptions::default() }
}

/// Nothing drifts, so measurements accumulate.
fn still() -> TaskOptions {
    let terminal = TerminalOptions {
        keep: 1.0,
        drift: 0.0,
        group_drift: 0.0,
        all_drift: 0.0,
        ..TerminalOptions::default()
    };
    TaskOptions { terminal, ..options() }
}

fn groups() -> Vec<usize> {
    (0..TERMINALS).map(|n| n % GROUPS).collect()
}

fn new_twin(options: TaskOptions) -> TaskTwin {
    let mut twin = TaskTwin::new(groups(), GROUPS, options);
    twin.centre(|_| Some(0.0));
    twin
}

fn logistic(logit: f64) -> f64 {
    1.0 / (1.0 + (-logit).exp())
}

fn by_group(own: &[Option<SuccessCount>]) -> Vec<SuccessCount> {
    let mut counts = vec![SuccessCount::default(); GROUPS];
    for (n, count) in own.iter().enumerate() {
        counts[n % GROUPS] = counts[n % GROUPS].plus(count.unwrap_or_default());
    }
    counts
}

/// A cell drawn from the law that the twin assumes.
struct World {
    options: TaskOptions,
    all: f64,
    group: Vec<f64>,
    own: Vec<f64>,
    slope: f64,
    rng: Rng,
}

impl World {
    fn draw(options: TaskOptions, seed: u64) -> Self {
        let mut rng = Seed::new(seed).stream("world");
        let mut normal = |sd: f64| -> f64 {
            let z: f64 = StandardNormal.sample(&mut rng);
            sd * z
        };
        let all = (options.start / (1.0 - options.start)).ln() + normal(options.start_sd);
        let slope = (options.slope + normal(options.slope_sd)).max(0.0);
        let group = (0..GROUPS).map(|_| normal(options.group_sd)).collect();
        let own = (0..TERMINALS).map(|_| normal(options.terminal.sd)).collect();
        Self { options, all, group, own, slope, rng }
    }

    /// From one measurement to the next.
    fn drift(&mut self) {
        let TerminalOptions { sd, keep, drift, group_drift, all_drift } = self.options.terminal;
        let rng = &mut self.rng;
        let mut normal = |sd: f64| -> f64 {
            let z: f64 = StandardNormal.sample(rng);
            sd * z
        };
        self.all += normal(all_drift);
        self.group.iter_mut().for_each(|one| *one += normal(group_drift));
        let fresh = ((1.0 - keep * keep) * sd * sd + drift * drift).sqrt();
        self.own.iter_mut().for_each(|one| *one = keep * *one + normal(fresh));
    }

    fn success(&self, n: usize, log_loss: f64) -> f64 {
        logistic(self.all + self.group[n % GROUPS] + self.own[n] - self.slope * log_loss)
    }

    fn measure(&mut self, log_losses: &[f64], episodes: u64) -> Vec<Option<SuccessCount>> {
        let one = |n: usize| {
            let success = self.success(n, log_losses[n]);
            let hits = (0..episodes).filter(|_| self.rng.random::<f64>() < success).count();
            Some(SuccessCount { successes: hits as u64, episodes })
        };
        (0..TERMINALS).map(one).collect()
    }
}

/// Terminals at some depth, those of a group around each other.
fn scattered(depth: f64) -> Vec<f64> {
    (0..TERMINALS).map(|n| -depth + 0.3 * ((n / GROUPS) as f64 - 3.5) / 3.5).collect()
}

#[test]
fn without_data_every_terminal_is_as_the_prior_says() {
    let (twin, options) = (new_twin(options()), options());
    let variance =
        options.start_sd.powi(2) + options.group_sd.powi(2) + options.terminal.sd.powi(2);
    let logit = (options.start / (1.0 - options.start)).ln();
    let expected = logistic(logit / (1.0 + std::f64::consts::FRAC_PI_8 * variance).sqrt());
    for n in 0..TERMINALS {
        assert_eq!(twin.line(n), (logit, options.slope));
        assert!((twin.predict(n, 0.0) - expected).abs() < 1e-12);
        assert!(twin.predict(n, -0.5) > expected);
    }
    let law = twin.own_law(0, 0.0, 2);
    assert!((law.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    assert!(law[0] > law[1] && law[2] > law[1], "few of nothing known: {law:?}");
    assert_eq!((twin.own_track().coverage(), twin.n_measured()), (None, 0));
}

#[test]
fn with_endless_data_every_terminal_is_as_measured() {
    let (mut world, mut twin) = (World::draw(options(), 3), new_twin(options()));
    let log_losses = scattered(0.4);
    for _ in 0..4 {
        let own = world.measure(&log_losses, 2_000);
        twin.calibrate(&log_losses, &by_group(&own), &own);
    }
    for (n, &log_loss) in log_losses.iter().enumerate() {
        let (found, truth) = (twin.predict(n, log_loss), world.success(n, log_loss));
        assert!((found - truth).abs() < 0.02, "{n}: {found} {truth}");
    }
    for group in 0..GROUPS {
        let (low, high) = twin.interval(group, &log_losses);
        assert!(high - low < 0.03, "{low} {high}");
    }
}

#[test]
fn one_count_of_one_terminal_gives_the_posterior_of_its_logit() {
    let options = still();
    let sd = options.start_sd.hypot(options.group_sd).hypot(options.terminal.sd);
    let start = (options.start / (1.0 - options.start)).ln();
    for (successes, episodes) in [(0u64, 2u64), (1, 2), (2, 2), (3, 16), (15, 16)] {
        let mut twin = TaskTwin::new(vec![0], 1, options);
        twin.centre(|_| Some(0.0));
        let own = [Some(SuccessCount { successes, episodes })];
        twin.calibrate(&[0.0], &[own[0].unwrap()], &own);
        // By brute force over the prior of the logit.
        let (mut sum, mut weights) = (0.0, 0.0);
        for k in -4000..=4000 {
            let z = f64::from(k) / 500.0;
            let success = logistic(start + sd * z);
            let likelihood = success.powi(successes as i32)
                * (1.0 - success).powi((episodes - successes) as i32);
            let weight = (-0.5 * z * z).exp() * likelihood;
            (sum, weights) = (sum + weight * success, weights + weight);
        }
        let found = twin.predict(0, 0.0);
        assert!((found - sum / weights).abs() < 0.02, "{found} {}", sum / weights);
    }
}

#[test]
fn terminals_are_exchangeable_within_their_group() {
    let mut world = World::draw(options(), 7);
    let (mut twin, mut turned) = (new_twin(options()), new_twin(options()));
    // Terminals of a group change places in a circle.
    let place = |n: usize| (n + GROUPS) % TERMINALS;
    for k in 0..12 {
        let log_losses = scattered(0.1 * f64::from(k));
        let own = world.measure(&log_losses, 2);
        twin.calibrate(&log_losses, &by_group(&own), &own);
        let mut moved = (log_losses.clone(), own.clone());
        for n in 0..TERMINALS {
            (moved.0[place(n)], moved.1[place(n)]) = (log_losses[n], own[n]);
        }
        turned.calibrate(&moved.0, &by_group(&moved.1), &moved.1);
    }
    for n in 0..TERMINALS {
        let (a, b) = (twin.predict(n, -1.0), turned.predict(place(n), -1.0));
        assert!((a - b).abs() < 1e-9, "{a} {b}");
    }
}

#[test]
fn who_was_not_measured_moves_with_its_task_and_less_with_the_others() {
    let mut twin = new_twin(options());
    let before = twin.predict(0, 0.0);
    let mut own = vec![None; TERMINALS];
    for n in (0..TERMINALS).filter(|n| n % GROUPS == 0).skip(1) {
        own[n] = Some(SuccessCount { successes: 8, episodes: 8 });
    }
    twin.calibrate(&[0.0; TERMINALS], &by_group(&own), &own);
    let rise = |n: usize| twin.predict(n, 0.0) - before;
    assert!(rise(GROUPS) > rise(0) && rise(0) > rise(1) && rise(1) > 0.0);
    assert!(rise(0) > 0.05, "{}", rise(0));
}

#[test]
fn counts_of_a_task_alone_are_shared_by_its_terminals() {
    let mut twin = new_twin(options());
    let mut counts = vec![SuccessCount { successes: 4, episodes: 16 }; GROUPS];
    counts[2].successes = 15;
    for _ in 0..8 {
        twin.calibrate(&[0.0; TERMINALS], &counts, &[]);
    }
    for n in 0..TERMINALS {
        let wanted = if n % GROUPS == 2 { 15.0 / 16.0 } else { 0.25 };
        assert!((twin.predict(n, 0.0) - wanted).abs() < 0.1, "{}", twin.predict(n, 0.0));
        assert_eq!(twin.line(n), twin.line(n % GROUPS));
    }
}

#[test]
fn a_measurement_of_nothing_leaves_the_curves_wherever_the_losses_are() {
    let (mut world, mut twin) = (World::draw(still(), 5), new_twin(still()));
    for k in 0..6 {
        let log_losses = scattered(0.2 * f64::from(k));
        let own = world.measure(&log_losses, 2);
        twin.calibrate(&log_losses, &by_group(&own), &own);
    }
    let mut moved = twin.clone();
    moved.calibrate(&scattered(2.5), &[SuccessCount::default(); GROUPS], &[]);
    for n in 0..TERMINALS {
        let ((a, b), (c, d)) = (twin.line(n), moved.line(n));
        assert!((a - c).abs() < 1e-9 && (b - d).abs() < 1e-12);
        let (law, other) = (twin.own_law(n, -1.7, 2), moved.own_law(n, -1.7, 2));
        assert!(law.iter().zip(other).all(|(a, b)| (a - b).abs() < 1e-9));
    }
}

/// Brier scores of the next measurement: of the twin, the last count of the terminal and of its
/// task, and the terminal's mean so far; and coverage of the intervals of terminals and of tasks.
fn forecast(seed: u64) -> [f64; 6] {
    let (mut world, mut twin) = (World::draw(options(), seed), new_twin(options()));
    let (mut scores, mut inside, mut n_scores) = ([0.0; 4], [0.0; 2], 0.0);
    let mut sums = vec![SuccessCount::default(); TERMINALS];
    let mut last: Vec<Option<SuccessCount>> = Vec::new();
    for k in 0..20 {
        let log_losses = scattered(0.08 * f64::from(k));
        let own = world.measure(&log_losses, 2);
        let counts = by_group(&own);
        for n in (0..TERMINALS).filter(|_| k > 0) {
            let group = by_group(&last)[n % GROUPS];
            let rivals = [last[n].unwrap(), group, sums[n]].map(|count| count.rate().unwrap());
            let forecasts = [twin.predict(n, log_losses[n]), rivals[0], rivals[1], rivals[2]];
            let rate = own[n].unwrap().rate().unwrap();
            for (score, p) in scores.iter_mut().zip(forecasts) {
                *score += rate * (1.0 - p).powi(2) + (1.0 - rate) * p * p;
            }
            let (low, high) = twin.own_interval(n, log_losses[n], 2);
            inside[0] += f64::from((low..=high).contains(&own[n].unwrap().successes));
            n_scores += 1.0;
        }
        for (group, count) in counts.iter().enumerate().filter(|_| k > 0) {
            let (low, high) = twin.count_interval(group, &log_losses, count.episodes);
            let held = f64::from((low..=high).contains(&count.successes));
            inside[1] += held * (TERMINALS / GROUPS) as f64;
        }
        twin.calibrate(&log_losses, &counts, &own);
        sums.iter_mut().zip(&own).for_each(|(sum, one)| *sum = sum.plus(one.unwrap()));
        last = own;
        world.drift();
    }
    let [a, b, c, d] = scores.map(|sum| sum / n_scores);
    [a, b, c, d, inside[0] / n_scores, inside[1] / n_scores]
}

#[test]
fn forecasts_beat_the_naive_rules_and_intervals_hold_what_they_say() {
    const SEEDS: u64 = 8;
    let mut mean = [0.0; 6];
    for seed in 0..SEEDS {
        mean.iter_mut().zip(forecast(100 + seed)).for_each(|(sum, one)| *sum += one / SEEDS as f64);
    }
    let [own, last, task, running, terminals, tasks] = mean;
    assert!(own < 0.9 * last.min(task).min(running), "{mean:?}");
    assert!((0.88..=0.95).contains(&terminals), "{terminals}");
    assert!((0.87..=0.94).contains(&tasks), "{tasks}");
}

#[test]
fn the_slope_is_found_where_the_losses_move_and_is_never_negative() {
    let wide = TaskOptions { slope: 2.0, slope_sd: 2.0, group_slope_sd: 1e-3, ..still() };
    let mut found = Vec::new();
    for seed in 0..6 {
        let (mut world, mut twin) = (World::draw(wide, 40 + seed), new_twin(wide));
        world.slope = 3.0;
        for k in 0..30 {
            let log_losses = scattered(0.05 * f64::from(k));
            let own = world.measure(&log_losses, 8);
            twin.calibrate(&log_losses, &by_group(&own), &own);
        }
        found.push(twin.line(0).1);
    }
    let mean = found.iter().sum::<f64>() / 6.0;
    assert!((2.3..3.5).contains(&mean), "{found:?}");
    let mut twin = new_twin(wide);
    for k in 0..30 {
        // Success that falls with the loss: no curve follows it.
        let own = vec![Some(SuccessCount { successes: (30 - k) / 4, episodes: 8 }); TERMINALS];
        twin.calibrate(&scattered(0.1 * k as f64), &by_group(&own), &own);
    }
    for n in 0..TERMINALS {
        let success: Vec<f64> = (0..60).map(|k| twin.predict(n, -0.1 * f64::from(k))).collect();
        assert!(success.windows(2).all(|pair| pair[0] <= pair[1]));
    }
}

#[test]
fn doubt_about_a_terminal_flattens_what_a_plan_counts_on() {
    let mut twin = new_twin(options());
    let mut own = vec![Some(SuccessCount { successes: 1, episodes: 2 }); TERMINALS];
    own[0] = Some(SuccessCount { successes: 200, episodes: 400 });
    twin.calibrate(&[0.0; TERMINALS], &by_group(&own), &own);
    let slope = |n: usize| twin.line_ahead(n, Outlook::default()).1;
    assert!(slope(0) > 1.1 * slope(GROUPS), "{} {}", slope(0), slope(GROUPS));
    assert_eq!(twin.line(0).1, twin.line(GROUPS).1);
}

fn whole() -> TwinOptions {
    TwinOptions { task: options(), ..TwinOptions::default() }
}

#[test]
fn a_true_success_that_was_told_is_believed_more_than_few_counts() {
    let mut fake = Fake::new(12, DEFAULT, 5);
    let mut twin = fake.twin(whole());
    run(&mut fake, &mut twin, 41);
    let count = |n: u64| SuccessCount { successes: 40 * n, episodes: 480 };
    let success: Vec<SuccessCount> = (0..12).map(count).collect();
    twin.be_told(&Truth { round: 42, success: Some(success.clone()), ..Truth::default() });
    for (n, told) in success.iter().enumerate() {
        let log_loss = twin.training.known_log_loss(n).unwrap();
        let found = twin.task.predict(n, log_loss);
        assert!((found - told.rate().unwrap()).abs() < 0.05, "{n} {found}");
    }
}

#[test]
fn curves_by_terminal_come_back_bit_for_bit_and_forged_ones_are_refused() {
    let mut fake = Fake::new(12, DEFAULT, 8);
    let mut twin = fake.twin(whole());
    run(&mut fake, &mut twin, 45);
    let mut snapshot = Snapshot::default();
    twin.save(&mut snapshot);
    let mut back = fake.twin(whole());
    back.restore(&snapshot).unwrap();
    assert!(back == twin && back != fake.twin(whole()));
    let forge = |name: &str, idx: usize, value: f64| {
        let mut forged = snapshot.clone();
        let mut values = forged.f64(name, forged.len_of(name)).unwrap().to_vec();
        values[idx] = value;
        forged.put_f64(name, values);
        let said = fake.twin(whole()).restore(&forged).expect_err(name).to_string();
        assert!(said.contains(name), "{said}");
    };
    forge("twin/task/centres", 0, f64::INFINITY);
    forge("twin/task/shared", 3, f64::NAN);
    forge("twin/task/covariance", 0, -1.0);
    forge("twin/task/covariance", 5, f64::INFINITY);
    forge("twin/task/deviations", 0, f64::NAN);
    forge("twin/task/deviations", 1, -0.1);
    forge("twin/task/deviations", 2, 1.5);
    forge("twin/task/own_track", 0, f64::NAN);
    let mut short = snapshot.clone();
    short.put_f64("twin/task/deviations", vec![0.0; 3]);
    assert!(fake.twin(whole()).restore(&short).unwrap_err().to_string().contains("expected 36"));
}

#[test]
fn what_is_known_of_a_terminals_success_goes_with_it_and_fades_while_it_is_away() {
    let mut fake = Fake::new(12, DEFAULT, 9);
    let mut twin = fake.twin(whole());
    run(&mut fake, &mut twin, 41);
    let before: Vec<_> = (0..12).map(|n| twin.task.line(n)).collect();
    let known = twin.task.part(3).deviation;
    let mut seen = fake.observe();
    let gone = seen.terminals.remove(3);
    twin.attend(&seen);
    for n in 0..11 {
        assert_eq!(twin.task.line(n), before[n + usize::from(n >= 3)]);
    }
    let mut snapshot = Snapshot::default();
    twin.save(&mut snapshot);
    let mut back = fake.twin(whole());
    back.restore(&snapshot).unwrap();
    assert!(back == twin);
    // Success is measured once without it.
    let plan = fake.any_plan(4);
    let mut outcome = fake.execute(&plan);
    while outcome.success.is_none() {
        outcome = fake.execute(&plan);
    }
    let mut decision = plan.decision().clone();
    decision.terminals.remove(3);
    outcome.terminals.remove(3);
    let plan = fake.nominal.cost.limits.project(decision);
    twin.calibrate(&seen, &plan, &outcome);
    seen.terminals.insert(3, gone);
    twin.attend(&seen);
    let TerminalOptions { keep, .. } = options().terminal;
    let after = twin.task.part(3).deviation;
    assert_eq!((after.tie, after.mean), (0.0, keep * known.mean));
    assert!(after.variance > known.variance && known.tie > 0.0 && known.mean != 0.0);
}
