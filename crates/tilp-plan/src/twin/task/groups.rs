//! A curve from loss to success for each task group, as in version 1 of TiLP.
//!
//! A terminal $n$ of group $g$ succeeds with
//! $\mathrm{logit}\,p_n = \alpha_g - \beta_g (\ln l_n - c_g)$, with $\beta_g \ge 0$ and $c_g$ the mean
//! of the first losses known of the group; a group's success is the mean over its terminals. Level
//! and slope of a group lie around those of all groups, which are estimated with them; counts weigh
//! as binomial counts do, and less the older they are.

use super::{TaskOptions, logistic};
use crate::round::SuccessCount;
use crate::snapshot::{Snapshot, SnapshotError};
use crate::twin::counts::mixed_binomial;
use crate::twin::normal::Z_90;

/// A measured point of a group's curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// Logarithms of the losses of the group's terminals when it was measured.
    pub log_losses: Vec<f64>,
    /// The measurements.
    pub count: SuccessCount,
}

/// Level, slope and their covariance.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Curve {
    level: f64,
    slope: f64,
    variance: [f64; 3],
}

/// The law that a group's curve is drawn from.
#[derive(Clone, Copy)]
struct Around {
    level: f64,
    level_variance: f64,
    slope: f64,
    slope_variance: f64,
}

/// The curves of all groups.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct GroupCurves {
    options: TaskOptions,
    /// Task group of each terminal.
    groups: Vec<usize>,
    /// Log-loss at which the level of each curve is read, that of a loss of 1 before one is known.
    centres: Vec<Option<f64>>,
    curves: Vec<Curve>,
    pairs: Vec<Vec<Pair>>,
    /// Recent distance of measurements from their curve: squares in excess of what the number of
    /// episodes and the uncertainty of the curve explain, and the expectation of such a square for
    /// a variance of one square logit. Only intervals use it.
    wander: [f64; 2],
}

/// Success of a group's terminals and its derivatives with respect to level and slope.
struct Mean {
    success: f64,
    by_level: f64,
    by_slope: f64,
}

impl GroupCurves {
    /// The curves before any measurement, for terminals of these groups.
    pub(super) fn new(groups: Vec<usize>, n_groups: usize, options: TaskOptions) -> Self {
        let mut twin = Self {
            options,
            groups,
            centres: vec![None; n_groups],
            curves: Vec::new(),
            pairs: vec![Vec::new(); n_groups],
            wander: [options.wander_weight * options.scatter.powi(2), options.wander_weight],
        };
        twin.curves = (0..n_groups).map(|group| twin.fit_group(group, twin.far_around())).collect();
        twin
    }

    /// Sets the terminals' log-losses; the first known ones centre a group's curve.
    pub(super) fn centre(&mut self, log_loss_of: impl Fn(usize) -> Option<f64>) {
        for (group, centre) in self.centres.iter_mut().enumerate().filter(|(_, c)| c.is_none()) {
            let members = (0..self.groups.len()).filter(|&n| self.groups[n] == group);
            let known: Vec<f64> = members.filter_map(&log_loss_of).collect();
            if !known.is_empty() {
                *centre = Some(known.iter().sum::<f64>() / known.len() as f64);
            }
        }
    }

    /// The line of a terminal: its success is the logistic of the first minus the second times its
    /// log-loss.
    #[inline]
    pub(super) fn line(&self, terminal: usize) -> (f64, f64) {
        let group = self.groups[terminal];
        let curve = &self.curves[group];
        (curve.level + curve.slope * self.centres[group].unwrap_or(0.0), curve.slope)
    }

    /// Replaces the terminals, each with its group.
    pub(super) fn set_terminals(&mut self, groups: Vec<usize>) {
        self.groups = groups;
    }

    /// Success of a group.
    pub(super) fn group_success(&self, group: usize, log_losses: &[f64]) -> f64 {
        self.mean(&self.curves[group], group, &self.members(group, log_losses)).success
    }

    /// Standard deviation of the success over all terminals.
    pub(super) fn success_sd(&self, log_losses: &[f64]) -> f64 {
        let one = |group: usize| {
            let members = self.members(group, log_losses);
            let share = members.len() as f64 / log_losses.len() as f64;
            (share * self.mean_sd(group, &members)).powi(2)
        };
        (0..self.curves.len()).map(one).sum::<f64>().sqrt()
    }

    /// 90 % interval of a group's true success at these losses of all terminals.
    pub(super) fn interval(&self, group: usize, log_losses: &[f64]) -> (f64, f64) {
        let (logit, sd) = self.logit(group, &self.members(group, log_losses));
        (logistic(logit - Z_90 * sd), logistic(logit + Z_90 * sd))
    }

    /// Measured points of a group, oldest first.
    pub(super) fn pairs(&self, group: usize) -> &[Pair] {
        &self.pairs[group]
    }

    /// Learns from a measurement of all groups at these log-losses of all terminals.
    pub(super) fn calibrate(&mut self, log_losses: &[f64], counts: &[SuccessCount]) {
        self.wander(log_losses, counts);
        for (group, &count) in counts.iter().enumerate().filter(|(_, count)| count.episodes > 0) {
            let log_losses = self.members(group, log_losses);
            let pairs = &mut self.pairs[group];
            if pairs.len() == self.options.most_pairs {
                pairs.remove(0);
            }
            pairs.push(Pair { log_losses, count });
        }
        self.refit();
    }

    /// Updates the distances of measurements from their curves.
    fn wander(&mut self, log_losses: &[f64], counts: &[SuccessCount]) {
        let TaskOptions { wander_keep, wander_most_square, .. } = self.options;
        let expected = self.wandering();
        self.wander = self.wander.map(|sum| wander_keep * sum);
        for (group, count) in counts.iter().enumerate() {
            let Some(rate) = count.rate() else { continue };
            let success = self.group_success(group, log_losses);
            let spread = success * (1.0 - success);
            // The part that chance and the uncertainty of the curve explain does not count.
            let explained = spread / count.episodes as f64
                + self.curve_variance(group, &self.members(group, log_losses));
            // A single outlier must not make all other measurements uncertain.
            let most = wander_most_square * (explained + expected * spread * spread);
            self.wander[0] += (rate - success).powi(2).min(most) - explained;
            self.wander[1] += spread * spread;
        }
    }

    fn members(&self, group: usize, log_losses: &[f64]) -> Vec<f64> {
        let all = self.groups.iter().zip(log_losses);
        all.filter(|(g, _)| **g == group).map(|(_, log_loss)| *log_loss).collect()
    }

    /// Alternates between the groups' curves, given the common one, and the common one, given its
    /// prior.
    fn refit(&mut self) {
        let far = self.far_around();
        let TaskOptions { group_sd, group_slope_sd, .. } = self.options;
        let (between, slope_between) = (group_sd * group_sd, group_slope_sd * group_slope_sd);
        let (mut level, mut slope) = (far.level, far.slope);
        let measured: Vec<usize> =
            (0..self.pairs.len()).filter(|&group| !self.pairs[group].is_empty()).collect();
        let n = measured.len() as f64;
        let TaskOptions { start_sd, slope_sd, .. } = self.options;
        // Remaining variance of the common part once this number of groups is measured.
        let rest = |prior: f64, between: f64| 1.0 / (1.0 / prior + n / between);
        let level_rest = rest(start_sd * start_sd, between);
        let slope_rest = rest(slope_sd * slope_sd, slope_between);
        for _ in 0..self.options.turns {
            let around = Around {
                level,
                level_variance: between + level_rest,
                slope,
                slope_variance: slope_between + slope_rest,
            };
            for group in 0..self.curves.len() {
                self.curves[group] = self.fit_group(group, around);
            }
            let sum = |pick: fn(&Curve) -> f64| -> f64 {
                measured.iter().map(|&group| pick(&self.curves[group])).sum()
            };
            let prior = far.level / (start_sd * start_sd);
            level = level_rest * (prior + sum(|curve| curve.level) / between);
            let prior = far.slope / (slope_sd * slope_sd);
            slope = slope_rest * (prior + sum(|curve| curve.slope) / slope_between);
        }
    }

    fn far_around(&self) -> Around {
        let options = &self.options;
        Around {
            level: (options.start / (1.0 - options.start)).ln(),
            level_variance: options.start_sd.powi(2) + options.group_sd.powi(2),
            slope: options.slope,
            slope_variance: options.slope_sd.powi(2) + options.group_slope_sd.powi(2),
        }
    }

    /// Most likely level and slope of a group, the slope not negative; Fisher scoring.
    fn fit_group(&self, group: usize, around: Around) -> Curve {
        let mut curve = Curve {
            level: around.level,
            slope: around.slope.max(0.0),
            variance: [around.level_variance, 0.0, around.slope_variance],
        };
        let mut curvature = [1.0 / around.level_variance, 0.0, 1.0 / around.slope_variance];
        for _ in 0..40 {
            let (mut pull, mut slope_pull) = (
                (around.level - curve.level) / around.level_variance,
                (around.slope - curve.slope) / around.slope_variance,
            );
            curvature = [1.0 / around.level_variance, 0.0, 1.0 / around.slope_variance];
            for (age, pair) in self.pairs[group].iter().rev().enumerate() {
                let Mean { success, by_level, by_slope } =
                    self.mean(&curve, group, &pair.log_losses);
                let spread = (success * (1.0 - success)).max(1e-9);
                let episodes = pair.count.episodes as f64;
                // Scatter around the curve reduces the weight of many episodes.
                let worth = 1.0 / (1.0 + episodes * spread * self.options.scatter.powi(2));
                let weight = self.options.keep.powi(age as i32) * worth / spread;
                let surplus = weight * (pair.count.successes as f64 - episodes * success);
                pull += surplus * by_level;
                slope_pull += surplus * by_slope;
                curvature[0] += weight * episodes * by_level * by_level;
                curvature[1] += weight * episodes * by_level * by_slope;
                curvature[2] += weight * episodes * by_slope * by_slope;
            }
            let (step, slope_step) = newton(curvature, pull, slope_pull, curve.slope);
            // A long step is shortened: far from the optimum the likelihood is flat.
            curve.level += step.clamp(-1.0, 1.0);
            curve.slope = (curve.slope + slope_step.clamp(-1.0, 1.0)).max(0.0);
            if step.abs() + slope_step.abs() < 1e-10 {
                break;
            }
        }
        let [a, b, c] = curvature;
        let determinant = a * c - b * b;
        curve.variance = [c / determinant, -b / determinant, a / determinant];
        curve
    }

    /// Mean success of a group's terminals on a curve, and its derivatives.
    fn mean(&self, curve: &Curve, group: usize, log_losses: &[f64]) -> Mean {
        let centre = self.centres[group].unwrap_or(0.0);
        let mut mean = Mean { success: 0.0, by_level: 0.0, by_slope: 0.0 };
        for log_loss in log_losses {
            // How far the loss lies below the centre of the curve.
            let depth = centre - log_loss;
            let success = logistic(curve.level + curve.slope * depth);
            let bend = success * (1.0 - success);
            mean.success += success;
            mean.by_level += bend;
            mean.by_slope += bend * depth;
        }
        let share = 1.0 / log_losses.len().max(1) as f64;
        Mean {
            success: mean.success * share,
            by_level: mean.by_level * share,
            by_slope: mean.by_slope * share,
        }
    }

    /// Variance of a group's mean success from the uncertainty of its curve.
    fn curve_variance(&self, group: usize, members: &[f64]) -> f64 {
        let curve = &self.curves[group];
        let Mean { by_level: x, by_slope: y, .. } = self.mean(curve, group, members);
        let [a, b, c] = curve.variance;
        (a * x * x + 2.0 * b * x * y + c * y * y).max(0.0)
    }

    /// Variance, in square logits, of success around its curve.
    fn wandering(&self) -> f64 {
        let least = self.options.scatter.powi(2);
        (self.wander[0] / self.wander[1].max(1e-9))
            .clamp(least, self.options.wander_most.max(least))
    }

    /// Standard deviation of a group's mean success.
    fn mean_sd(&self, group: usize, members: &[f64]) -> f64 {
        let success = self.mean(&self.curves[group], group, members).success;
        let wander = self.wandering() * (success * (1.0 - success)).powi(2);
        (self.curve_variance(group, members) + wander).sqrt()
    }

    /// Logit of a group's mean success, and its standard deviation.
    fn logit(&self, group: usize, members: &[f64]) -> (f64, f64) {
        let success = self.mean(&self.curves[group], group, members).success;
        let success = success.clamp(1e-9, 1.0 - 1e-9);
        let spread = success * (1.0 - success);
        ((success / (1.0 - success)).ln(), self.mean_sd(group, members) / spread)
    }

    /// Probability of each number of successes.
    pub(super) fn count_law(&self, group: usize, log_losses: &[f64], episodes: u64) -> Vec<f64> {
        let (logit, sd) = self.logit(group, &self.members(group, log_losses));
        mixed_binomial(logit, sd, episodes)
    }
}

/// A Newton step; along the level alone if the slope is held at zero.
fn newton([a, b, c]: [f64; 3], pull: f64, slope_pull: f64, slope: f64) -> (f64, f64) {
    let determinant = a * c - b * b;
    let slope_step = (a * slope_pull - b * pull) / determinant;
    if slope <= 0.0 && slope_step <= 0.0 {
        return (pull / a, 0.0);
    }
    ((c * pull - b * slope_pull) / determinant, slope_step)
}

impl GroupCurves {
    /// Writes the curves and the points to which they were fitted.
    pub(super) fn save(&self, snapshot: &mut Snapshot) {
        let centres = self.centres.iter().map(|centre| centre.unwrap_or(f64::NAN)).collect();
        snapshot.put_f64("twin/task/centres", centres);
        let curve = |one: &Curve| {
            let [a, b, c] = one.variance;
            [one.level, one.slope, a, b, c]
        };
        snapshot.put_f64("twin/task/curves", self.curves.iter().flat_map(curve).collect());
        snapshot.put_f64("twin/task/wander", self.wander.to_vec());
        let pairs = || self.pairs.iter().flatten();
        let log_losses = pairs().flat_map(|pair| pair.log_losses.iter().copied());
        snapshot.put_f64("twin/task/log_losses", log_losses.collect());
        let counts = pairs().flat_map(|pair| [pair.count.successes, pair.count.episodes]);
        snapshot.put_u64("twin/task/counts", counts.collect());
        let sizes = pairs().map(|pair| pair.log_losses.len() as u64).collect();
        snapshot.put_u64("twin/task/sizes", sizes);
        let lengths = self.pairs.iter().map(|pairs| pairs.len() as u64).collect();
        snapshot.put_u64("twin/task/lengths", lengths);
    }

    /// Restores them.
    pub(super) fn restore(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        let n = self.curves.len();
        let centres = snapshot.f64("twin/task/centres", n)?;
        self.centres = centres.iter().map(|c| (!c.is_nan()).then_some(*c)).collect();
        let curves = snapshot.f64("twin/task/curves", 5 * n)?.as_chunks::<5>().0;
        let curve =
            |&[level, slope, a, b, c]: &[f64; 5]| Curve { level, slope, variance: [a, b, c] };
        self.curves = curves.iter().map(curve).collect();
        let wander = snapshot.f64("twin/task/wander", 2)?;
        self.wander = [wander[0], wander[1]];
        let lengths = snapshot.u64_up_to("twin/task/lengths", n, self.options.most_pairs as u64)?;
        let n_pairs = lengths.iter().sum::<u64>() as usize;
        let counts = snapshot.u64("twin/task/counts", 2 * n_pairs)?.as_chunks::<2>().0;
        let sizes = self.pair_sizes(snapshot, lengths)?;
        let n_log_losses = sizes.iter().sum();
        let mut log_losses = snapshot.f64("twin/task/log_losses", n_log_losses)?.iter().copied();
        let mut kept = counts.iter().zip(sizes).map(|(&[successes, episodes], size)| Pair {
            log_losses: log_losses.by_ref().take(size).collect(),
            count: SuccessCount { successes, episodes },
        });
        self.pairs = lengths.iter().map(|&n| kept.by_ref().take(n as usize).collect()).collect();
        Ok(())
    }
}

impl GroupCurves {
    /// Number of terminals in each measurement. Snapshots of version 1 do not contain it: there the
    /// members of a group never change.
    fn pair_sizes(
        &self,
        snapshot: &Snapshot,
        lengths: &[u64],
    ) -> Result<Vec<usize>, SnapshotError> {
        let n_pairs = lengths.iter().sum::<u64>() as usize;
        if snapshot.len_of("twin/task/sizes") == 0 {
            let size = |group: usize| self.groups.iter().filter(|g| **g == group).count();
            let of = |(group, &n): (usize, &u64)| vec![size(group); n as usize];
            return Ok(lengths.iter().enumerate().flat_map(of).collect());
        }
        let most = snapshot.len_of("twin/task/log_losses") as u64;
        let sizes = snapshot.u64_up_to("twin/task/sizes", n_pairs, most)?;
        Ok(sizes.iter().map(|&size| size as usize).collect())
    }
}
