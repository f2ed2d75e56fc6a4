//! The training sub-twin: how much a round lowers the loss of each terminal.
//!
//! In one round the logarithm of a terminal's loss falls by a rate that is linear in a few features
//! of the participants ([`Tally`]). The unit is the terminal, not its task: in measurements a terminal's
//! own samples lower its loss, those of others hardly do or raise it (`docs/explain/tilp.md`). The weights
//! are refitted every aggregation on a sliding window of reported losses, by ridge regression
//! toward a prior, inside bounds. A terminal is compared only with itself, on the features summed
//! up between its reports, so that it does not matter that terminals differ in the level of their
//! losses. A terminal reports the loss of its own copy on compressed activations; that copy has moved
//! towards its own data in every round since the last aggregation. Both parts are fitted too and
//! subtracted, since the deployed policy is the mean of all copies, uncompressed. A scalar Kalman filter
//! follows the level of each terminal between the reports.

mod options;
mod state;
mod tempo;

use std::collections::{BTreeMap, VecDeque};

use super::linear::{bounded_minimum, inverse};
use super::normal::Z_90;
use super::track::Track;
pub use options::{TrainingOptions, WeightPrior};
pub(super) use state::TrainingPart;
pub use tempo::{Pace, SwingBy, Tempo};

/// Weights that all terminals share; each task group adds one of its own on the first feature.
pub const N_SHARED: usize = 9;

/// Place of the weight of any round.
const ANY: usize = 2;

/// Place of the weight that says how far a terminal's own copy is ahead.
const LOCAL: usize = N_SHARED - 2;

/// Place of the weight that says how much compression blurs a report.
const BLUR: usize = N_SHARED - 1;

/// Summary of the participants of a round; input of the law.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    samples: f64,
    noise: f64,
    depth: f64,
    n: f64,
    own: Vec<f64>,
    /// Compression noise of each terminal's own messages.
    blur: Vec<f64>,
    push: Vec<f64>,
    of_group: Vec<f64>,
    tempo: Tempo,
    /// Shares of samples that were each terminal's own, less what is forgotten of them.
    advantage: Vec<f64>,
}

/// One terminal that takes part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part {
    /// The terminal.
    pub terminal: usize,
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
    /// No participant, for this number of terminals and groups.
    pub fn new(n_terminals: usize, n_groups: usize) -> Self {
        Self {
            own: vec![0.0; n_terminals],
            blur: vec![0.0; n_terminals],
            push: vec![0.0; n_terminals],
            of_group: vec![0.0; n_groups],
            advantage: vec![0.0; n_terminals],
            ..Self::default()
        }
    }

    /// Removes all participants. A round begins with this tempo of training and these
    /// advantages.
    pub fn begin(&mut self, tempo: Tempo, advantage: &[f64]) {
        self.clear();
        self.tempo = tempo;
        self.advantage.copy_from_slice(advantage);
    }

    /// Removes all participants.
    pub fn clear(&mut self) {
        (self.samples, self.noise, self.depth, self.n) = (0.0, 0.0, 0.0, 0.0);
        self.own.fill(0.0);
        self.push.fill(0.0);
        self.of_group.fill(0.0);
    }

    /// Counts one terminal.
    #[inline]
    pub fn add(&mut self, part: &Part) {
        self.samples += part.samples;
        self.n += 1.0;
        let noise = compression_noise(part.compression);
        self.noise += part.samples * noise;
        self.blur[part.terminal] = noise;
        self.depth += part.samples * (part.depth - 0.5);
        self.own[part.terminal] += part.samples;
        self.push[part.terminal] += part.samples * part.push;
        self.of_group[part.group] += part.samples;
    }

    /// Features of a terminal's rate, which is linear in them, in the order of [`TrainingOptions`]: shares of
    /// samples that are its own and its task group's, one if any terminal takes part, excess of its own
    /// gradient, scatter of a small round, compression noise, depth.
    #[inline]
    pub fn features(&self, terminal: usize, group: usize) -> [f64; N_SHARED] {
        if self.samples <= 0.0 {
            return [0.0; N_SHARED];
        }
        let Tempo { rate, curve, scatter_power, .. } = self.tempo;
        let share = rate / self.samples;
        let own = self.own[terminal] * share;
        let kin = self.of_group[group] * share - own;
        let push = self.push[terminal] * share;
        let scatter = -rate / self.n.powi(scatter_power as i32);
        let (noise, depth) = (-self.noise * share, self.depth * share);
        // What only reports show is no matter of what is deployed.
        let (local, blur) = (0.0, 0.0);
        [self.gained(terminal), kin, curve, push, scatter, noise, depth, local, blur]
    }

    /// By how much the round moves the advantage of a terminal: its share of the samples, at the pace
    /// of training, less what is forgotten of those before.
    #[inline]
    pub fn gained(&self, terminal: usize) -> f64 {
        if self.samples <= 0.0 {
            return 0.0;
        }
        let Tempo { rate, forgetting, .. } = self.tempo;
        self.own[terminal] * (rate / self.samples) - forgetting * self.advantage[terminal]
    }
}

/// Variance that compression adds to what is sent, 1 at a tenth of the bits of an f32. Stochastic
/// rounding halves its step with every bit.
pub(super) fn compression_noise(q: f64) -> f64 {
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
    /// Reports of one series are of one terminal, which was there all the time.
    series: u64,
    /// Its task group.
    group: usize,
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
    /// Rounds that each terminal has trained since the last aggregation.
    since: Vec<f64>,
    /// Shares of samples that were each terminal's own, less what is forgotten of them.
    advantage: Vec<f64>,
    sums: Vec<[f64; N_SHARED]>,
    /// The series of each terminal's reports. One that joins begins a new series: what happened
    /// while it was away is not in its sums.
    series: Vec<u64>,
    next_series: u64,
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
            since: vec![0.0; groups.len()],
            advantage: vec![0.0; groups.len()],
            sums: vec![[0.0; N_SHARED]; groups.len()],
            series: (0..groups.len() as u64).collect(),
            next_series: groups.len() as u64,
            reports: VecDeque::new(),
            track: Track::default(),
            options,
            groups,
        };
        let n = N_SHARED + n_groups;
        twin.weights = (0..n).map(|i| twin.prior(i).mean).collect();
        twin.covariance = vec![0.0; n * n];
        for i in 0..n {
            twin.covariance[i * n + i] = twin.prior(i).sd.powi(2);
        }
        twin
    }

    /// The weights of the law: the shared ones, then one per group.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// The weight of a group's terminals on their own samples: they never hurt.
    #[inline]
    pub fn own_weight(&self, group: usize) -> f64 {
        (self.weights[0] + self.weights[N_SHARED + group]).max(0.0)
    }

    /// The shared weights of a round at this tempo.
    pub fn weights_at(&self, tempo: Tempo) -> [f64; N_SHARED] {
        let mut weights: [f64; N_SHARED] = std::array::from_fn(|i| tempo.rate * self.weights[i]);
        weights[ANY] = tempo.curve * self.weights[ANY];
        weights
    }

    /// A rate lies between these.
    pub fn bounds(&self) -> (f64, f64) {
        (-self.options.rise_share * self.options.most, self.options.most)
    }

    /// Errors of the logarithm of a reported loss, each predicted since the terminal's last report.
    pub fn track(&self) -> &Track {
        &self.track
    }

    /// Decrease of the logarithm of a terminal's loss in a round.
    #[inline]
    pub fn predict(&self, tally: &Tally, terminal: usize) -> f64 {
        let group = self.groups[terminal];
        let features = tally.features(terminal, group);
        let own = self.own_weight(group) * features[0];
        let rest = self.weights[1..N_SHARED].iter().zip(&features[1..]);
        let rate = own + rest.map(|(weight, feature)| weight * feature).sum::<f64>();
        let (least, most) = self.bounds();
        rate.clamp(least, most)
    }

    /// Standard deviation of that, as far as the weights are in doubt.
    pub fn rate_sd(&self, tally: &Tally, terminal: usize) -> f64 {
        self.law_sd(tally, &[(terminal, 1.0)])
    }

    /// The same of a weighted sum of rates: terminals share most of the doubt about the law.
    fn law_sd(&self, tally: &Tally, weighed: &[(usize, f64)]) -> f64 {
        let n = self.weights.len();
        let mut sums = vec![0.0; n];
        for &(terminal, weight) in weighed {
            let group = self.groups[terminal];
            let features = tally.features(terminal, group);
            sums.iter_mut().zip(features).for_each(|(sum, x)| *sum += weight * x);
            sums[N_SHARED + group] += weight * features[0];
        }
        let row = |i: usize| (0..n).map(|j| self.covariance[i * n + j] * sums[j]).sum::<f64>();
        let variance = (0..n).map(|i| sums[i] * row(i)).sum::<f64>();
        variance.max(0.0).sqrt()
    }

    /// Standard deviation of the effect of one round on the mean of some losses, each given with its
    /// weight: uncertainty of the law, and scatter that no law of the participants explains, which grows with
    /// the size of an optimiser step.
    pub fn fall_sd(&self, tally: &Tally, weighed: &[(usize, f64)], step: f64) -> f64 {
        let alone: f64 = weighed.iter().map(|(_, weight)| weight * weight).sum();
        let TrainingOptions { swing, common_swing, .. } = self.options;
        let variance = swing.powi(2) * alone + common_swing.powi(2);
        (self.law_sd(tally, weighed).powi(2) + step * step * variance).sqrt()
    }

    /// Logarithm of the loss of a terminal that has reported.
    pub fn known_log_loss(&self, terminal: usize) -> Option<f64> {
        self.levels[terminal].map(|level| level.mean)
    }

    /// Logarithm of the present loss of a terminal; without reports the mean of its group;
    /// otherwise that of all; otherwise `None`.
    pub fn log_loss(&self, terminal: usize) -> Option<f64> {
        if let Some(level) = self.levels[terminal] {
            return Some(level.mean);
        }
        self.group_log_loss(self.groups[terminal]).or_else(|| self.mean_level(|_| true))
    }

    /// Mean over the terminals of a group that have reported.
    pub fn group_log_loss(&self, group: usize) -> Option<f64> {
        self.mean_level(|n| self.groups[n] == group)
    }

    /// Logarithm of the loss of every terminal now; `fallback` is a loss for where nothing is known.
    pub fn log_losses(&self, fallback: Option<f64>) -> Vec<f64> {
        let known = fallback.filter(|loss| loss.is_finite() && *loss > 0.0).map_or(0.0, f64::ln);
        (0..self.groups.len()).map(|n| self.log_loss(n).unwrap_or(known)).collect()
    }

    /// Variance of the logarithm of the loss of every terminal; for terminals without reports, the variance of
    /// the known levels.
    pub fn variances(&self) -> Vec<f64> {
        let known = || self.levels.iter().flatten().map(|level| level.mean);
        let n = known().count().max(1) as f64;
        let mean = known().sum::<f64>() / n;
        let spread = known().map(|level| (level - mean).powi(2)).sum::<f64>() / n;
        let unheard = spread + self.minibatch_variance;
        self.levels.iter().map(|level| level.map_or(unheard, |level| level.variance)).collect()
    }

    /// Change of a level's variance in a round: a report decreases it, time increases it.
    #[inline]
    pub fn next_variance(&self, variance: f64, reports: bool) -> f64 {
        let noise = self.minibatch_variance;
        let left = if reports { variance * noise / (variance + noise) } else { variance };
        left + self.options.drift * self.options.drift
    }

    /// Variance of the logarithm of a minibatch's loss, and of the drift of a level in a round.
    pub fn noise(&self) -> (f64, f64) {
        (self.minibatch_variance, self.options.drift * self.options.drift)
    }

    /// 90 % interval of the loss that a terminal will report if it takes part now at this compression.
    pub fn loss_interval(&self, n: usize, compression: f64) -> Option<(f64, f64)> {
        let level = self.levels[n]?;
        let reach = Z_90 * (level.variance + self.minibatch_variance).sqrt();
        let blur = self.weights[BLUR] * compression_noise(compression);
        let middle = level.mean - self.ahead(n) + blur;
        Some(((middle - reach).exp(), (middle + reach).exp()))
    }

    fn mean_level(&self, counts: impl Fn(usize) -> bool) -> Option<f64> {
        let known = self.levels.iter().enumerate().filter(|(n, _)| counts(*n));
        let (sum, n) = known
            .filter_map(|(_, level)| level.map(|level| level.mean))
            .fold((0.0, 0.0), |(sum, n), level| (sum + level, n + 1.0));
        (n > 0.0).then(|| sum / n)
    }

    /// How far a terminal's own copy is ahead of what is deployed, in logarithms of the loss.
    fn ahead(&self, n: usize) -> f64 {
        self.weights[LOCAL] * self.since[n]
    }

    /// Advantage of each terminal from its own samples, in shares of a round's samples.
    pub fn advantage(&self) -> &[f64] {
        &self.advantage
    }

    /// Takes in the losses reported in a round, then moves all levels by what the round did.
    pub fn follow(&mut self, round: u64, losses: &[Option<f64>], tally: &Tally, aggregates: bool) {
        for (n, loss) in losses.iter().enumerate() {
            if let Some(loss) = loss.filter(|loss| loss.is_finite() && *loss > 0.0) {
                self.receive(round, n, loss.ln(), tally.blur[n]);
            }
        }
        while self.reports.front().is_some_and(|one| one.round + self.options.window < round) {
            self.reports.pop_front();
        }
        for n in 0..self.groups.len() {
            let features = tally.features(n, self.groups[n]);
            self.sums[n].iter_mut().zip(features).for_each(|(sum, f)| *sum += f);
            let (rate, sd) = (self.predict(tally, n), self.rate_sd(tally, n));
            let drift = self.options.drift * self.options.drift + sd * sd;
            if let Some(level) = &mut self.levels[n] {
                level.mean -= rate;
                level.variance += drift;
            }
            self.advantage[n] += tally.gained(n);
            let trained = if tally.own[n] > 0.0 { 1.0 } else { 0.0 };
            self.since[n] = if aggregates { 0.0 } else { self.since[n] + trained };
        }
    }

    fn receive(&mut self, round: u64, terminal: usize, log_loss: f64, blur: f64) {
        let mut features = self.sums[terminal];
        features[LOCAL] = self.since[terminal];
        features[BLUR] = -blur;
        let deployed = log_loss + self.ahead(terminal) - self.weights[BLUR] * blur;
        let (series, group) = (self.series[terminal], self.groups[terminal]);
        self.reports.push_back(Report { round, series, group, log_loss, features });
        let Some(level) = &mut self.levels[terminal] else {
            let variance = self.minibatch_variance;
            self.levels[terminal] = Some(Level { mean: deployed, variance });
            return;
        };
        let innovation = deployed - level.mean;
        let variance = level.variance + self.minibatch_variance;
        self.track.add(innovation, variance.sqrt());
        let gain = level.variance / variance;
        level.mean += gain * innovation;
        level.variance *= 1.0 - gain;
        // The noise is what the level's own doubt does not explain; one report cannot move it far.
        let square = (innovation * innovation).min(self.options.most_square * variance);
        let surplus = self.minibatch_variance * square / variance;
        self.minibatch_variance += self.options.noise_memory * (surplus - self.minibatch_variance);
        self.minibatch_variance = self.minibatch_variance.max(1e-6);
    }

    /// Receives true losses of the deployed policy before a round: they are the levels, and the law is fitted
    /// to them.
    pub(super) fn be_told(&mut self, round: u64, losses: &[f64]) {
        // They arrive before every round, so missing reports add no variance, and no copy runs
        // ahead of them.
        self.options.drift = 0.0;
        self.since.fill(0.0);
        for (n, loss) in losses.iter().enumerate().filter(|(_, loss)| **loss > 0.0) {
            self.receive(round, n, loss.ln(), 0.0);
            self.levels[n] = Some(Level { mean: loss.ln(), variance: super::truth::CERTAIN });
        }
    }

    /// Refits the law on the window.
    pub fn calibrate(&mut self) {
        let n = self.weights.len();
        let (mut curvature, mut pull) = (vec![0.0; n * n], vec![0.0; n]);
        for i in 0..n {
            let prior = self.prior(i);
            curvature[i * n + i] = prior.sd.powi(-2);
            pull[i] = prior.mean * prior.sd.powi(-2);
        }
        self.add_window(&mut curvature, &mut pull);
        let bounds: Vec<(f64, f64)> =
            (0..n).map(|i| (self.prior(i).least, self.options.most)).collect();
        bounded_minimum(&curvature, &pull, &bounds, &mut self.weights);
        self.covariance = inverse(&curvature, n);
    }

    /// Adds what the reports in the window say, each terminal about its own mean.
    fn add_window(&self, curvature: &mut [f64], pull: &mut [f64]) {
        let n = self.weights.len();
        let newest = self.reports.back().map_or(0, |one| one.round);
        let weight = |one: &Report| (-((newest - one.round) as f64) / self.options.memory).exp();
        let mut means = BTreeMap::<u64, ([f64; N_SHARED], f64, f64)>::new();
        for one in &self.reports {
            let (features, loss, count) = means.entry(one.series).or_default();
            let weight = weight(one);
            features.iter_mut().zip(one.features).for_each(|(sum, f)| *sum += weight * f);
            *loss += weight * one.log_loss;
            *count += weight;
        }
        for one in &self.reports {
            let precision = weight(one) / self.minibatch_variance;
            let (features, loss, count) = &means[&one.series];
            let own = N_SHARED + one.group;
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

    fn prior(&self, i: usize) -> WeightPrior {
        let TrainingOptions { group_sd: sd, most, .. } = self.options;
        let between = WeightPrior { mean: 0.0, sd, least: -most };
        self.options.named().get(i).map_or(between, |(_, prior)| *prior)
    }
}
