//! A curve from loss to success for each terminal, and a filter that follows them.
//!
//! A terminal $n$ of group $g$ succeeds with
//! $\mathrm{logit}\,p_n = \mu + \alpha_g + \delta_n - (\beta + \beta_g)(\ln l_n - c_g)$, with
//! $\beta + \beta_g \ge 0$. Level $\mu$ and slope $\beta$ are common to all terminals. $\alpha_g$
//! and $\beta_g$ are the differences between tasks, $\delta_n \sim N(0, \sigma^2)$ those between
//! terminals of one task. The estimate of a terminal with few episodes therefore depends on all
//! others (partial pooling).
//!
//! Success drifts during training. From one measurement to the next $\mu$ and $\alpha_g$ follow
//! random walks, and $\delta_n$ follows one that returns to zero, so that old counts lose weight. A
//! measurement corrects everything as in a Kalman filter: the counts of a terminal are replaced by
//! the normal observation of its logit with the same mean and variance.
//!
//! Given the common part, terminals are independent. A terminal therefore has three numbers, which
//! it keeps when it leaves: mean and variance of $\delta_n$ given the common part, and the change
//! of the mean with the common part. Without drift this is the exact filter. With drift,
//! dependences between terminals that arise from the drift of the common part are neglected.

use super::{TaskOptions, TerminalOptions, logistic};
use crate::round::SuccessCount;
use crate::snapshot::{Snapshot, SnapshotError};
use crate::twin::counts::{NORMAL_NODES, mixed_binomial, sum_law};

/// Up to this number of episodes the law of a group's count is summed exactly.
const MOST_SUMMED: u64 = 256;

/// Steps to either side of a peak, up to six standard deviations.
const STEPS: i32 = 24;

/// Successes of one terminal and its episodes. Counts of a group that are divided evenly are
/// fractions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Count {
    pub terminal: usize,
    pub log_loss: f64,
    pub successes: f64,
    pub episodes: f64,
}

impl Count {
    pub(super) fn of(terminal: usize, log_loss: f64, count: SuccessCount) -> Self {
        let (successes, episodes) = (count.successes as f64, count.episodes as f64);
        Self { terminal, log_loss, successes, episodes }
    }
}

/// Deviation of a terminal from the level of its group.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::twin) struct Deviation {
    /// Its mean if the common part of the logit is at its estimate.
    pub mean: f64,
    /// Its variance if the common part were known.
    pub variance: f64,
    /// Decrease of the mean per unit of the common part: 0 for a terminal without measurements, 1
    /// for a terminal with a known logit.
    pub tie: f64,
}

impl Deviation {
    /// The same, made independent of the common part, which has this variance.
    pub(crate) fn untied(self, shared_variance: f64) -> Self {
        let variance = self.variance + self.tie * self.tie * shared_variance;
        Self { variance, tie: 0.0, ..self }
    }
}

/// A normal observation of a logit: value and variance.
struct Sighting {
    value: f64,
    variance: f64,
}

/// Dependence of a logit on the common part: factor 1 on the first, depth on the second of each
/// pair.
struct Row {
    places: [usize; 4],
    factors: [f64; 4],
}

/// The curves of all terminals.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TerminalCurves {
    options: TaskOptions,
    /// Task group of each terminal.
    groups: Vec<usize>,
    n_groups: usize,
    /// Log-loss at which the levels of a group are defined: that of the last measurement; before it
    /// the first known ones; before them that of a loss of 1.
    centres: Vec<Option<f64>>,
    /// Common level, deviation of each group from it, common slope, deviation of each group from
    /// it.
    shared: Vec<f64>,
    /// Covariance of these, row by row.
    covariance: Vec<f64>,
    /// Deviation of each terminal from the level of its group.
    deviations: Vec<Deviation>,
}

impl TerminalCurves {
    /// The curves before any measurement, for terminals of these groups.
    pub(super) fn new(groups: Vec<usize>, n_groups: usize, options: TaskOptions) -> Self {
        let (n, slope) = (2 + 2 * n_groups, 1 + n_groups);
        let mut shared = vec![0.0; n];
        shared[0] = (options.start / (1.0 - options.start)).ln();
        shared[slope] = options.slope;
        let mut covariance = vec![0.0; n * n];
        for i in 0..n {
            let sd = match i {
                0 => options.start_sd,
                i if i < slope => options.group_sd,
                i if i == slope => options.slope_sd,
                _ => options.group_slope_sd,
            };
            covariance[i * n + i] = sd * sd;
        }
        let deviations = vec![new_deviation(&options.terminal); groups.len()];
        let centres = vec![None; n_groups];
        Self { options, groups, n_groups, centres, shared, covariance, deviations }
    }

    /// Sets the terminals' log-losses; the first known ones centre a group's curves.
    pub(super) fn centre(&mut self, log_loss_of: impl Fn(usize) -> Option<f64>) {
        for group in
            (0..self.n_groups).filter(|&group| self.centres[group].is_none()).collect::<Vec<_>>()
        {
            self.centres[group] = self.mean_of(group, &log_loss_of);
        }
    }

    fn mean_of(&self, group: usize, log_loss_of: impl Fn(usize) -> Option<f64>) -> Option<f64> {
        let known = self.members(group).filter_map(log_loss_of);
        let (sum, n) = known.fold((0.0, 0.0), |(sum, n), one| (sum + one, n + 1.0));
        (n > 0.0).then(|| sum / n)
    }

    fn members(&self, group: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.groups.len()).filter(move |&n| self.groups[n] == group)
    }

    fn slope(&self, group: usize) -> f64 {
        let first = 1 + self.n_groups;
        (self.shared[first] + self.shared[first + 1 + group]).max(0.0)
    }

    fn centre_of(&self, group: usize) -> f64 {
        self.centres[group].unwrap_or(0.0)
    }

    /// The line of a terminal: its most likely logit is the first minus the second times its
    /// log-loss.
    pub(super) fn line(&self, terminal: usize) -> (f64, f64) {
        let group = self.groups[terminal];
        let (level, slope) = (self.shared[0] + self.shared[1 + group], self.slope(group));
        let own = self.deviations[terminal].mean;
        (level + own + slope * self.centre_of(group), slope)
    }

    /// Variance of a terminal's logit at the centre of its curve.
    pub(super) fn doubt(&self, terminal: usize) -> f64 {
        self.logit_variance(terminal, self.centre_of(self.groups[terminal]))
    }

    fn logit_variance(&self, terminal: usize, log_loss: f64) -> f64 {
        let Deviation { variance, tie, .. } = self.deviations[terminal];
        (1.0 - tie).powi(2) * self.shared_variance(terminal, log_loss) + variance
    }

    fn row(&self, terminal: usize, log_loss: f64) -> Row {
        let (group, slope) = (self.groups[terminal], 1 + self.n_groups);
        let depth = self.centre_of(group) - log_loss;
        Row { places: [0, 1 + group, slope, slope + 1 + group], factors: [1.0, 1.0, depth, depth] }
    }

    /// Covariance of the whole common part with a row.
    fn with_row(&self, row: &Row) -> Vec<f64> {
        let n = self.shared.len();
        let pairs = || row.places.iter().zip(row.factors);
        (0..n).map(|i| pairs().map(|(&j, x)| x * self.covariance[i * n + j]).sum()).collect()
    }

    fn shared_variance(&self, terminal: usize, log_loss: f64) -> f64 {
        let row = self.row(terminal, log_loss);
        row.of(&self.with_row(&row)).max(0.0)
    }

    /// Most likely logit of a terminal at this log-loss.
    fn logit(&self, terminal: usize, log_loss: f64) -> f64 {
        let (start, slope) = self.line(terminal);
        start - slope * log_loss
    }

    /// Standard deviation of the logit of a terminal at this log-loss.
    fn logit_sd(&self, terminal: usize, log_loss: f64) -> f64 {
        self.logit_variance(terminal, log_loss).sqrt()
    }

    /// Expected success of a group's terminals at these log-losses of all terminals.
    pub(super) fn group_success(&self, group: usize, log_losses: &[f64]) -> f64 {
        let success = |n: usize| {
            let variance = self.logit_variance(n, log_losses[n]);
            logistic(self.logit(n, log_losses[n]) / super::flatter(variance))
        };
        let (sum, n) =
            self.members(group).fold((0.0, 0.0), |(sum, count), n| (sum + success(n), count + 1.0));
        if n > 0.0 { sum / n } else { logistic(self.shared[0] + self.shared[1 + group]) }
    }

    /// Standard deviation of the mean success of some terminals, to first order.
    pub(super) fn success_sd(&self, terminals: &[usize], log_losses: &[f64]) -> f64 {
        let mut sums = vec![0.0; self.shared.len()];
        let (share, mut own) = (1.0 / terminals.len().max(1) as f64, 0.0);
        for &n in terminals {
            let success = logistic(self.logit(n, log_losses[n]));
            let bend = share * success * (1.0 - success);
            let row = self.row(n, log_losses[n]);
            let Deviation { variance, tie, .. } = self.deviations[n];
            let loose = bend * (1.0 - tie);
            row.places.iter().zip(row.factors).for_each(|(&i, x)| sums[i] += loose * x);
            own += bend * bend * variance;
        }
        let n = sums.len();
        let row = |i: usize| (0..n).map(|j| self.covariance[i * n + j] * sums[j]).sum::<f64>();
        let shared: f64 = (0..n).map(|i| sums[i] * row(i)).sum();
        (shared.max(0.0) + own).sqrt()
    }

    /// The terminals of a group.
    pub(super) fn group(&self, group: usize) -> Vec<usize> {
        self.members(group).collect()
    }

    /// Probability of each number of successes of one terminal.
    pub(super) fn own_law(&self, terminal: usize, log_loss: f64, episodes: u64) -> Vec<f64> {
        let sd = self.logit_sd(terminal, log_loss);
        mixed_binomial(self.logit(terminal, log_loss), sd, episodes)
    }

    /// Probability of each number of successes of a group whose episodes are divided evenly. The
    /// terminals have a common error and one of their own.
    pub(super) fn count_law(&self, group: usize, log_losses: &[f64], episodes: u64) -> Vec<f64> {
        let members = self.group(group);
        if members.is_empty() {
            let sd = self.options.start_sd.hypot(self.options.group_sd);
            return mixed_binomial(self.shared[0] + self.shared[1 + group], sd, episodes);
        }
        if episodes > MOST_SUMMED {
            return self.rough_count_law(&members, log_losses, episodes);
        }
        let n = members.len() as u64;
        let until = |k: usize| episodes * k as u64 / n;
        let mut law = vec![0.0; episodes as usize + 1];
        for z in *NORMAL_NODES {
            let mut sum = vec![1.0 / NORMAL_NODES.len() as f64];
            for (k, &terminal) in members.iter().enumerate() {
                let log_loss = log_losses[terminal];
                let Deviation { variance, tie, .. } = self.deviations[terminal];
                let shared = (1.0 - tie) * self.shared_variance(terminal, log_loss).sqrt();
                let logit = self.logit(terminal, log_loss) + shared * z;
                let own = mixed_binomial(logit, variance.sqrt(), until(k + 1) - until(k));
                sum = sum_law(&sum, &own);
            }
            law.iter_mut().zip(sum).for_each(|(share, one)| *share += one);
        }
        law
    }

    /// The same for many episodes, as if all were of one terminal with the mean success.
    fn rough_count_law(&self, members: &[usize], log_losses: &[f64], episodes: u64) -> Vec<f64> {
        let success = |n: usize| logistic(self.logit(n, log_losses[n]));
        let mean = members.iter().map(|&n| success(n)).sum::<f64>() / members.len() as f64;
        let mean = mean.clamp(1e-9, 1.0 - 1e-9);
        let sd = self.success_sd(members, log_losses) / (mean * (1.0 - mean));
        mixed_binomial((mean / (1.0 - mean)).ln(), sd, episodes)
    }

    /// Learns from a measurement. Terminals without counts of their own divide those of their
    /// group.
    pub(super) fn calibrate(
        &mut self,
        log_losses: &[f64],
        counts: &[SuccessCount],
        own: &[Option<SuccessCount>],
    ) {
        self.move_centres(log_losses);
        self.pass_time();
        let own = |n: usize| own.get(n).copied().flatten().filter(|count| count.episodes > 0);
        let mut all = Vec::new();
        for (group, count) in counts.iter().enumerate() {
            let members = self.group(group);
            let is_told = members.iter().any(|&n| own(n).is_some());
            let share = 1.0 / members.len().max(1) as f64;
            for n in members {
                match own(n) {
                    Some(count) => all.push(Count::of(n, log_losses[n], count)),
                    None if is_told || count.episodes == 0 => {}
                    None => all.push(Count {
                        terminal: n,
                        log_loss: log_losses[n],
                        successes: share * count.successes as f64,
                        episodes: share * count.episodes as f64,
                    }),
                }
            }
        }
        self.learn(&all);
    }

    /// Moves the reference points of the levels to the present losses. The curves stay where they
    /// are.
    fn move_centres(&mut self, log_losses: &[f64]) {
        let (n, slope) = (self.shared.len(), 1 + self.n_groups);
        for group in 0..self.n_groups {
            let Some(new) = self.mean_of(group, |n| log_losses.get(n).copied()) else { continue };
            let old = self.centres[group].replace(new);
            let depth = old.unwrap_or(new) - new;
            let (level, own) = (1 + group, slope + 1 + group);
            self.shared[level] += depth * (self.shared[slope] + self.shared[own]);
            for j in 0..n {
                let moved = self.covariance[slope * n + j] + self.covariance[own * n + j];
                self.covariance[level * n + j] += depth * moved;
            }
            for i in 0..n {
                let moved = self.covariance[i * n + slope] + self.covariance[i * n + own];
                self.covariance[i * n + level] += depth * moved;
            }
        }
    }

    /// Success has drifted since the last measurement.
    fn pass_time(&mut self) {
        let TerminalOptions { all_drift, group_drift, .. } = self.options.terminal;
        let fresh = all_drift * all_drift + group_drift * group_drift;
        for terminal in 0..self.groups.len() {
            let shared = self.shared_variance(terminal, self.centre_of(self.groups[terminal]));
            let Deviation { mean, variance, tie } = self.deviations[terminal];
            // A terminal depended on the former common part.
            let kept = shared / (shared + fresh).max(f64::MIN_POSITIVE);
            let variance = variance + tie * tie * kept * fresh;
            self.deviations[terminal] = self.drifted(Deviation { mean, variance, tie: tie * kept });
        }
        let n = self.shared.len();
        for i in 0..=self.n_groups {
            let drift = if i == 0 { all_drift } else { group_drift };
            self.covariance[i * n + i] += drift * drift;
        }
    }

    /// State of a deviation at the next measurement.
    pub(super) fn drifted(&self, one: Deviation) -> Deviation {
        let TerminalOptions { sd, keep, drift, .. } = self.options.terminal;
        let fresh = (1.0 - keep * keep) * sd * sd + drift * drift;
        let variance = keep * keep * one.variance + fresh;
        Deviation { mean: keep * one.mean, variance, tie: keep * one.tie }
    }

    /// Corrects the estimates by counts of single terminals, each at most once.
    pub(super) fn learn(&mut self, counts: &[Count]) {
        let sightings: Vec<Sighting> = counts.iter().map(|count| self.sighting(count)).collect();
        let before = self.shared.clone();
        for (count, seen) in counts.iter().zip(&sightings) {
            self.learn_shared(count, seen, &before);
        }
        let slope = 1 + self.n_groups;
        self.shared[slope] = self.shared[slope].max(0.0);
        let mut log_losses: Vec<f64> =
            self.groups.iter().map(|&group| self.centre_of(group)).collect();
        counts.iter().for_each(|count| log_losses[count.terminal] = count.log_loss);
        for (n, log_loss) in log_losses.into_iter().enumerate() {
            let row = self.row(n, log_loss);
            let deviation = &mut self.deviations[n];
            deviation.mean -= deviation.tie * (row.of(&self.shared) - row.of(&before));
        }
        for (count, seen) in counts.iter().zip(&sightings) {
            let level = self.row(count.terminal, count.log_loss).of(&self.shared);
            let Deviation { mean, variance, tie } = self.deviations[count.terminal];
            let gain = variance / (variance + seen.variance);
            self.deviations[count.terminal] = Deviation {
                mean: mean + gain * (seen.value - level - mean),
                variance: variance * (1.0 - gain),
                tie: tie + gain * (1.0 - tie),
            };
        }
    }

    /// The normal observation that replaces a count: with it the logit has the same mean and
    /// variance as with the count. Both are sums over a grid around the peak.
    fn sighting(&self, count: &Count) -> Sighting {
        let Count { terminal, log_loss, successes, episodes } = *count;
        let (mean, variance) =
            (self.logit(terminal, log_loss), self.logit_variance(terminal, log_loss).max(1e-12));
        let (peak, width) = peak(mean, variance, successes, episodes);
        let height = |logit: f64| {
            let away = logit - mean;
            successes * -(-logit).exp().ln_1p()
                - (episodes - successes) * logit.exp().ln_1p()
                - 0.5 * away * away / variance
        };
        let (top, mut sums) = (height(peak), [0.0; 3]);
        for node in -STEPS..=STEPS {
            let away = 6.0 * width * f64::from(node) / f64::from(STEPS);
            let weight = (height(peak + away) - top).exp();
            sums = [sums[0] + weight, sums[1] + weight * away, sums[2] + weight * away * away];
        }
        let away = sums[1] / sums[0];
        let left = (sums[2] / sums[0] - away * away).max(1e-12);
        let precision = (1.0 / left - 1.0 / variance).max(1e-9);
        let value = ((peak + away) / left - mean / variance) / precision;
        Sighting { value, variance: 1.0 / precision }
    }

    fn learn_shared(&mut self, count: &Count, seen: &Sighting, before: &[f64]) {
        let Deviation { mean, variance, tie } = self.deviations[count.terminal];
        let (n, loose) = (self.shared.len(), 1.0 - tie);
        let row = self.row(count.terminal, count.log_loss);
        let covariance: Vec<f64> = self.with_row(&row).iter().map(|one| loose * one).collect();
        let total = loose * row.of(&covariance) + variance + seen.variance;
        let expected = loose * row.of(&self.shared) + tie * row.of(before) + mean;
        for i in 0..n {
            let gain = covariance[i] / total;
            self.shared[i] += gain * (seen.value - expected);
            (0..n).for_each(|j| self.covariance[i * n + j] -= gain * covariance[j]);
        }
    }

    /// State of a single terminal.
    pub(super) fn deviation(&self, terminal: usize) -> Deviation {
        self.deviations[terminal]
    }

    /// Variance of a terminal's part in common with others.
    pub(super) fn shared_doubt(&self, terminal: usize) -> f64 {
        self.shared_variance(terminal, self.centre_of(self.groups[terminal]))
    }

    /// State of a terminal without measurements.
    pub(super) fn new_deviation(&self) -> Deviation {
        new_deviation(&self.options.terminal)
    }

    /// Replaces the terminals, each with its group and its state.
    pub(super) fn set_terminals(&mut self, groups: Vec<usize>, deviations: Vec<Deviation>) {
        (self.groups, self.deviations) = (groups, deviations);
    }

    /// Writes the estimates.
    pub(super) fn save(&self, snapshot: &mut Snapshot) {
        let centres = self.centres.iter().map(|centre| centre.unwrap_or(f64::NAN)).collect();
        snapshot.put_f64("twin/task/centres", centres);
        snapshot.put_f64("twin/task/shared", self.shared.clone());
        snapshot.put_f64("twin/task/covariance", self.covariance.clone());
        let deviations = self.deviations.iter().flat_map(|one| [one.mean, one.variance, one.tie]);
        snapshot.put_f64("twin/task/deviations", deviations.collect());
    }

    /// Restores them.
    pub(super) fn restore(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        const COVARIANCE: &str = "twin/task/covariance";
        let n = self.shared.len();
        let centres = snapshot.f64("twin/task/centres", self.n_groups)?;
        if let Some(centre) = centres.iter().find(|centre| centre.is_infinite()) {
            return Err(SnapshotError::value("twin/task/centres", centre, "a finite number"));
        }
        self.centres = centres.iter().map(|c| (!c.is_nan()).then_some(*c)).collect();
        self.shared = snapshot.finite_f64("twin/task/shared", n)?.to_vec();
        self.covariance = snapshot.finite_f64(COVARIANCE, n * n)?.to_vec();
        if let Some(i) = (0..n).find(|i| self.covariance[i * n + i] < 0.0) {
            let variance = self.covariance[i * n + i];
            return Err(SnapshotError::value(
                COVARIANCE,
                variance,
                "variances that are not negative",
            ));
        }
        let deviations = snapshot.f64("twin/task/deviations", 3 * self.groups.len())?;
        let belief = |numbers: &[f64; 3]| deviation_of("twin/task/deviations", numbers);
        self.deviations =
            deviations.as_chunks::<3>().0.iter().map(belief).collect::<Result<_, _>>()?;
        Ok(())
    }
}

impl Row {
    fn of(&self, values: &[f64]) -> f64 {
        self.places.iter().zip(self.factors).map(|(&i, x)| x * values[i]).sum()
    }
}

fn new_deviation(options: &TerminalOptions) -> Deviation {
    Deviation { mean: 0.0, variance: options.sd * options.sd, tie: 0.0 }
}

/// Most likely value of a logit with this normal law and its counts, and the standard deviation of
/// the normal law with the same curvature there; by Newton's method.
fn peak(mean: f64, variance: f64, successes: f64, episodes: f64) -> (f64, f64) {
    let (mut logit, precision) = (mean, 1.0 / variance);
    let curvature = |success: f64| precision + episodes * success * (1.0 - success);
    for _ in 0..60 {
        let success = logistic(logit);
        let pull = successes - episodes * success - precision * (logit - mean);
        let step = pull / curvature(success);
        // A long step is shortened: far from the peak the likelihood is flat.
        logit += step.clamp(-1.0, 1.0);
        if step.abs() < 1e-12 {
            break;
        }
    }
    (logit, curvature(logistic(logit)).powf(-0.5))
}

/// A deviation from the numbers of a snapshot.
pub(in crate::twin) fn deviation_of(
    name: &str,
    numbers: &[f64; 3],
) -> Result<Deviation, SnapshotError> {
    let [mean, variance, tie] = *numbers;
    if !mean.is_finite() {
        return Err(SnapshotError::value(name, mean, "a finite number"));
    }
    if !(variance.is_finite() && variance >= 0.0) {
        return Err(SnapshotError::value(name, variance, "a variance"));
    }
    if !(0.0..=1.0).contains(&tie) {
        return Err(SnapshotError::value(name, tie, "a share"));
    }
    Ok(Deviation { mean, variance, tie })
}
