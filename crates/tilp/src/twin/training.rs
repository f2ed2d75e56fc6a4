//! The training sub-twin: how much a round lowers the loss of each task group.
//!
//! In one round the logarithm of a group's loss falls by a rate that is linear in a few features
//! of who takes part ([`Tally`]) and shrinks with a power of the loss itself. The weights are refitted every aggregation on
//! a sliding window of reported losses, by ridge regression toward a prior, inside bounds. A
//! terminal is compared only with itself, on the features summed up between its reports, so that
//! it does not matter that terminals differ in the level of their losses. The level of each
//! terminal is followed by a scalar Kalman filter between the reports.

use std::collections::VecDeque;

use super::linear::{bounded_minimum, inverse};
use super::normal::Z_90;
use super::track::Track;
use crate::snapshot::{Persist, Snapshot, SnapshotError};

/// Weights that all groups share; each group adds one of its own on its first feature.
pub const N_SHARED: usize = 6;

/// Assumptions of the training sub-twin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrainingOptions {
    /// Rate, at the first loss known, of a round in which only other groups' terminals take part.
    pub any: f64,
    /// What is added if only the group's own terminals take part.
    pub own: f64,
    /// The rate goes with this power of the loss relative to the first one known.
    pub saturation: f64,
    /// What the scatter of one minibatch takes from that rate: with n minibatches an n-th of it.
    /// At a learning rate near the stable limit a step on one minibatch gains nothing.
    pub scatter: f64,
    /// Standard deviation of all weights before any data.
    pub spread: f64,
    /// Standard deviation between groups.
    pub group_spread: f64,
    /// A round lowers the logarithm of a loss by no more than this, and raises it by no more than a
    /// tenth of it.
    pub most: f64,
    /// Rounds of the sliding window.
    pub window: u64,
    /// Rounds after which a report in the window weighs a third.
    pub memory: f64,
    /// Standard deviation of the logarithm of a minibatch's loss, before any data.
    pub minibatch: f64,
    /// Standard deviation by which the level of a terminal drifts in a round.
    pub drift: f64,
}

impl Default for TrainingOptions {
    fn default() -> Self {
        Self {
            any: 0.015,
            own: 0.005,
            saturation: 1.5,
            scatter: 0.02,
            spread: 0.015,
            group_spread: 0.003,
            most: 0.1,
            window: 200,
            memory: 60.0,
            minibatch: 0.2,
            drift: 0.02,
        }
    }
}

/// Who takes part in a round, summed up; what the law reads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    samples: f64,
    noise: f64,
    depth: f64,
    n: f64,
    own: Vec<f64>,
    push: Vec<f64>,
}

/// One terminal that takes part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part {
    /// Its task group.
    pub group: usize,
    /// Samples of its minibatch.
    pub samples: f64,
    /// Its compression q.
    pub compression: f64,
    /// Its cut as a share of the layers.
    pub depth: f64,
    /// Its squared gradient norm over the mean of all, minus one; zero if unknown.
    pub push: f64,
}

impl Tally {
    /// Nobody, in this many groups.
    pub fn new(n_groups: usize) -> Self {
        Self { own: vec![0.0; n_groups], push: vec![0.0; n_groups], ..Self::default() }
    }

    /// Forgets everybody.
    pub fn clear(&mut self) {
        (self.samples, self.noise, self.depth, self.n) = (0.0, 0.0, 0.0, 0.0);
        self.own.fill(0.0);
        self.push.fill(0.0);
    }

    /// Counts one terminal.
    #[inline]
    pub fn add(&mut self, part: &Part) {
        self.samples += part.samples;
        self.n += 1.0;
        self.noise += part.samples * compression_noise(part.compression);
        self.depth += part.samples * (part.depth - 0.5);
        self.own[part.group] += part.samples;
        self.push[part.group] += part.samples * part.push;
    }

    /// What the rate of a group is linear in: share of its own samples, that anybody takes part,
    /// excess push of its own gradients, scatter of a small round, compression noise, depth.
    #[inline]
    pub fn features(&self, group: usize) -> [f64; N_SHARED] {
        if self.samples <= 0.0 {
            return [0.0; N_SHARED];
        }
        let share = 1.0 / self.samples;
        let own = self.own[group] * share;
        [own, 1.0, self.push[group] * share, -1.0 / self.n, -self.noise * share, self.depth * share]
    }
}

/// Variance that compression adds to what is sent, 1 at a tenth of the bits of an f32. Stochastic
/// rounding halves its step with every bit.
fn compression_noise(q: f64) -> f64 {
    const BITS: f64 = 32.0;
    (2.0 * BITS * (q - 0.9)).exp2().min(16.0)
}

/// The level of a terminal's loss, in logarithms.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Level {
    mean: f64,
    variance: f64,
}

/// A reported loss and the features summed up until then.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Report {
    round: u64,
    terminal: usize,
    log_loss: f64,
    features: [f64; N_SHARED],
}

/// The training sub-twin.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainingTwin {
    options: TrainingOptions,
    groups: Vec<usize>,
    n_groups: usize,
    weights: Vec<f64>,
    covariance: Vec<f64>,
    minibatch_variance: f64,
    levels: Vec<Option<Level>>,
    /// First loss known of each group.
    starts: Vec<Option<f64>>,
    sums: Vec<[f64; N_SHARED]>,
    reports: VecDeque<Report>,
    track: Track,
}

impl TrainingTwin {
    /// The twin of terminals that belong to these groups.
    pub fn new(groups: Vec<usize>, n_groups: usize, options: TrainingOptions) -> Self {
        let mut twin = Self {
            n_groups,
            weights: Vec::new(),
            covariance: Vec::new(),
            minibatch_variance: options.minibatch * options.minibatch,
            levels: vec![None; groups.len()],
            starts: vec![None; n_groups],
            sums: vec![[0.0; N_SHARED]; n_groups],
            reports: VecDeque::new(),
            track: Track::default(),
            options,
            groups,
        };
        twin.weights = twin.prior_weights();
        let n = twin.weights.len();
        twin.covariance = vec![0.0; n * n];
        for i in 0..n {
            twin.covariance[i * n + i] = twin.prior_variance(i);
        }
        twin
    }

    /// The weights of the law: the shared ones, then one per group.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// Errors of the logarithm of a reported loss, each predicted since the terminal's last report.
    pub fn track(&self) -> &Track {
        &self.track
    }

    /// By how much the logarithm of a group's loss falls in a round that finds it at `loss`.
    #[inline]
    pub fn predict(&self, tally: &Tally, group: usize, loss: f64) -> f64 {
        let features = tally.features(group);
        // Its own terminals never help a group less than those of others.
        let own = (self.weights[0] + self.weights[N_SHARED + group]).max(0.0) * features[0];
        let rest = self.weights[1..N_SHARED].iter().zip(&features[1..]);
        let rate = own + rest.map(|(weight, feature)| weight * feature).sum::<f64>();
        let rate = rate * self.saturation(group, loss);
        rate.clamp(-0.1 * self.options.most, self.options.most)
    }

    /// Standard deviation of that.
    pub fn rate_sd(&self, tally: &Tally, group: usize, loss: f64) -> f64 {
        let n = self.weights.len();
        let features = tally.features(group);
        let own = (N_SHARED + group, features[0]);
        let entries = || features.iter().copied().enumerate().chain([own]);
        let row = |i: usize| entries().map(|(j, x)| self.covariance[i * n + j] * x).sum::<f64>();
        let variance = entries().map(|(i, x)| x * row(i)).sum::<f64>();
        variance.max(0.0).sqrt() * self.saturation(group, loss)
    }

    /// How much of the first rate is left at this loss.
    #[inline]
    fn saturation(&self, group: usize, loss: f64) -> f64 {
        let share = self.starts[group].map_or(1.0, |start| loss / start);
        share.clamp(0.0, 2.0).powf(self.options.saturation)
    }

    /// The loss of a group now: the mean of its terminals that were ever heard of; failing them
    /// of all; failing those none.
    pub fn loss(&self, group: usize) -> Option<f64> {
        self.mean_loss(|n| self.groups[n] == group).or_else(|| self.mean_loss(|_| true))
    }

    /// 90 % interval of the loss that a terminal will report if it takes part now.
    pub fn loss_interval(&self, n: usize) -> Option<(f64, f64)> {
        let level = self.levels[n]?;
        let reach = Z_90 * (level.variance + self.minibatch_variance).sqrt();
        Some(((level.mean - reach).exp(), (level.mean + reach).exp()))
    }

    fn mean_loss(&self, counts: impl Fn(usize) -> bool) -> Option<f64> {
        let known = self.levels.iter().enumerate().filter(|(n, _)| counts(*n));
        let (sum, n) = known
            .filter_map(|(_, level)| level.map(|level| level.mean.exp()))
            .fold((0.0, 0.0), |(sum, n), loss| (sum + loss, n + 1.0));
        (n > 0.0).then(|| sum / n)
    }

    /// Takes in the losses reported in a round, then moves all levels by what the round did.
    pub fn follow(&mut self, round: u64, losses: &[Option<f64>], tally: &Tally) {
        for (n, loss) in losses.iter().enumerate() {
            if let Some(loss) = loss.filter(|loss| loss.is_finite() && *loss > 0.0) {
                self.hear(round, n, loss.ln());
            }
        }
        while self.reports.front().is_some_and(|one| one.round + self.options.window < round) {
            self.reports.pop_front();
        }
        for group in 0..self.n_groups {
            let Some(loss) = self.loss(group) else { continue };
            self.starts[group].get_or_insert(loss);
            let (features, left) = (tally.features(group), self.saturation(group, loss));
            self.sums[group].iter_mut().zip(features).for_each(|(sum, f)| *sum += left * f);
            let rate = self.predict(tally, group, loss);
            let sd = self.rate_sd(tally, group, loss);
            let drift = self.options.drift * self.options.drift + sd * sd;
            let members = self.levels.iter_mut().zip(&self.groups).filter(|(_, g)| **g == group);
            for level in members.filter_map(|(level, _)| level.as_mut()) {
                level.mean -= rate;
                level.variance += drift;
            }
        }
    }

    fn hear(&mut self, round: u64, terminal: usize, log_loss: f64) {
        let features = self.sums[self.groups[terminal]];
        self.reports.push_back(Report { round, terminal, log_loss, features });
        let Some(level) = &mut self.levels[terminal] else {
            let variance = self.minibatch_variance;
            self.levels[terminal] = Some(Level { mean: log_loss, variance });
            return;
        };
        const MEMORY: f64 = 0.01;
        let innovation = log_loss - level.mean;
        let variance = level.variance + self.minibatch_variance;
        self.track.add(innovation, variance.sqrt());
        let gain = level.variance / variance;
        level.mean += gain * innovation;
        level.variance *= 1.0 - gain;
        // The noise is what the level's own doubt does not explain; one report cannot move it far.
        let square = (innovation * innovation).min(16.0 * variance);
        let surplus = self.minibatch_variance * square / variance;
        self.minibatch_variance += MEMORY * (surplus - self.minibatch_variance);
        self.minibatch_variance = self.minibatch_variance.max(1e-6);
    }

    /// Refits the law on the window.
    pub fn calibrate(&mut self) {
        let n = self.weights.len();
        let prior = self.prior_weights();
        let (mut curvature, mut pull) = (vec![0.0; n * n], vec![0.0; n]);
        for i in 0..n {
            curvature[i * n + i] = 1.0 / self.prior_variance(i);
            pull[i] = prior[i] / self.prior_variance(i);
        }
        self.add_window(&mut curvature, &mut pull);
        let bounds: Vec<(f64, f64)> = (0..n).map(|i| self.bounds(i)).collect();
        bounded_minimum(&curvature, &pull, &bounds, &mut self.weights);
        self.covariance = inverse(&curvature, n);
    }

    /// Adds what the reports in the window say, each terminal about its own mean.
    fn add_window(&self, curvature: &mut [f64], pull: &mut [f64]) {
        let n = self.weights.len();
        let newest = self.reports.back().map_or(0, |one| one.round);
        let weight = |one: &Report| (-((newest - one.round) as f64) / self.options.memory).exp();
        let mut means = vec![([0.0; N_SHARED], 0.0, 0.0); self.groups.len()];
        for one in &self.reports {
            let (features, loss, count) = &mut means[one.terminal];
            let weight = weight(one);
            features.iter_mut().zip(one.features).for_each(|(sum, f)| *sum += weight * f);
            *loss += weight * one.log_loss;
            *count += weight;
        }
        for one in &self.reports {
            let precision = weight(one) / self.minibatch_variance;
            let (features, loss, count) = &means[one.terminal];
            let own = N_SHARED + self.groups[one.terminal];
            let fall = loss / count - one.log_loss;
            let about: [f64; N_SHARED] =
                std::array::from_fn(|i| one.features[i] - features[i] / count);
            let entries =
                || about.iter().copied().enumerate().chain(std::iter::once((own, about[0])));
            for (i, x) in entries() {
                pull[i] += precision * x * fall;
                entries().for_each(|(j, y)| curvature[i * n + j] += precision * x * y);
            }
        }
    }

    fn prior_weights(&self) -> Vec<f64> {
        let mut weights = vec![0.0; N_SHARED + self.n_groups];
        (weights[0], weights[1]) = (self.options.own, self.options.any);
        weights[3] = self.options.scatter;
        weights
    }

    fn prior_variance(&self, i: usize) -> f64 {
        let sd = match i {
            0 | 1 => self.options.spread,
            2..N_SHARED => 0.3 * self.options.spread,
            _ => self.options.group_spread,
        };
        sd * sd
    }

    /// Taking part never hurts; pushing harder, more terminals and finer values never hurt.
    fn bounds(&self, i: usize) -> (f64, f64) {
        let most = self.options.most;
        match i {
            0..5 => (0.0, most),
            _ => (-most, most),
        }
    }
}

/// Numbers kept of a report.
const KEPT: usize = N_SHARED + 1;

impl Persist for TrainingTwin {
    fn save(&self, snapshot: &mut Snapshot) {
        snapshot.put_f64("twin/training/weights", self.weights.clone());
        snapshot.put_f64("twin/training/covariance", self.covariance.clone());
        let [a, b, c, d] = self.track.to_array();
        snapshot.put_f64("twin/training/track", vec![self.minibatch_variance, a, b, c, d]);
        let level = |one: &Option<Level>| one.map_or([f64::NAN; 2], |l| [l.mean, l.variance]);
        snapshot.put_f64("twin/training/levels", self.levels.iter().flat_map(level).collect());
        let starts = self.starts.iter().map(|start| start.unwrap_or(f64::NAN)).collect();
        snapshot.put_f64("twin/training/starts", starts);
        snapshot.put_f64("twin/training/sums", self.sums.concat());
        let numbers =
            self.reports.iter().flat_map(|one| std::iter::once(one.log_loss).chain(one.features));
        snapshot.put_f64("twin/training/reports", numbers.collect());
        let whose = self.reports.iter().flat_map(|one| [one.round, one.terminal as u64]);
        snapshot.put_u64("twin/training/whose", whose.collect());
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        let n = self.weights.len();
        self.weights = snapshot.f64("twin/training/weights", n)?.to_vec();
        self.covariance = snapshot.f64("twin/training/covariance", n * n)?.to_vec();
        let track = snapshot.f64("twin/training/track", 5)?;
        self.minibatch_variance = track[0];
        self.track = Track::from_slice(&track[1..]);
        let levels = snapshot.f64("twin/training/levels", 2 * self.levels.len())?;
        let level =
            |&[mean, variance]: &[f64; 2]| (!mean.is_nan()).then_some(Level { mean, variance });
        self.levels = levels.as_chunks::<2>().0.iter().map(level).collect();
        let starts = snapshot.f64("twin/training/starts", self.n_groups)?;
        self.starts = starts.iter().map(|s| (!s.is_nan()).then_some(*s)).collect();
        let sums = snapshot.f64("twin/training/sums", N_SHARED * self.n_groups)?;
        self.sums = sums.as_chunks::<N_SHARED>().0.to_vec();
        let n_reports = snapshot.len_of("twin/training/whose") / 2;
        let numbers = snapshot.f64("twin/training/reports", KEPT * n_reports)?;
        let whose = snapshot.u64("twin/training/whose", 2 * n_reports)?;
        let pairs = whose.as_chunks::<2>().0.iter().zip(numbers.as_chunks::<KEPT>().0);
        self.reports = pairs
            .map(|(&[round, terminal], v)| Report {
                round,
                terminal: terminal as usize,
                log_loss: v[0],
                features: std::array::from_fn(|i| v[1 + i]),
            })
            .collect();
        Ok(())
    }
}
