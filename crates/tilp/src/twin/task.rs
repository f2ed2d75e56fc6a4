//! The task sub-twin: per task group a monotone curve from loss to success.
//!
//! $\mathrm{logit}\,p = \alpha_g - \beta_g (\ln l - \ln l_g^0)$ with $\beta_g \ge 0$ and $l_g^0$ the
//! first loss known of the group. Level and slope of a group lie around those of all groups, which
//! are estimated with them; counts weigh as binomial counts do, and less the older they are.

use super::normal::{self, Z_90};
use super::track::Track;
use crate::round::SuccessCount;
use crate::snapshot::{Persist, Snapshot, SnapshotError};

/// Assumptions of the task sub-twin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TaskOptions {
    /// Success of the base policy, before any measurement.
    pub start: f64,
    /// Standard deviation of the level of all groups, in logits.
    pub start_sd: f64,
    /// Slope before any measurement: logits per halving of the loss, times 1 / ln 2.
    pub slope: f64,
    /// Standard deviation of the slope of all groups.
    pub slope_sd: f64,
    /// Standard deviation of a group's level around that of all.
    pub group_sd: f64,
    /// Standard deviation of a group's slope around that of all.
    pub group_slope_sd: f64,
    /// Weight of a measurement relative to the one after it.
    pub keep: f64,
    /// Standard deviation, in logits, by which success differs from its curve.
    pub scatter: f64,
}

impl Default for TaskOptions {
    fn default() -> Self {
        Self {
            start: 0.4,
            start_sd: 1.0,
            slope: 2.0,
            slope_sd: 1.0,
            group_sd: 1.0,
            group_slope_sd: 0.5,
            keep: 0.9,
            scatter: 0.2,
        }
    }
}

/// Measurements that are kept of each group.
const MOST_PAIRS: usize = 64;

/// A measured point of a group's curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// The group's loss when it was measured.
    pub loss: f64,
    /// What was measured.
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

/// The task sub-twin.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskTwin {
    options: TaskOptions,
    shares: Vec<f64>,
    /// Log-loss at which the level of each curve is read, that of a loss of 1 before one is known.
    centres: Vec<Option<f64>>,
    curves: Vec<Curve>,
    pairs: Vec<Vec<Pair>>,
    track: Track,
}

impl TaskTwin {
    /// The twin of groups that hold these shares of the terminals.
    pub fn new(shares: Vec<f64>, options: TaskOptions) -> Self {
        let n = shares.len();
        let mut twin = Self {
            options,
            shares,
            centres: vec![None; n],
            curves: Vec::new(),
            pairs: vec![Vec::new(); n],
            track: Track::default(),
        };
        twin.curves = (0..n).map(|group| twin.fit_group(group, twin.far_around())).collect();
        twin
    }

    /// Says what the groups' losses are; the first ones known centre the curves.
    pub fn centre(&mut self, loss_of: impl Fn(usize) -> Option<f64>) {
        for (group, centre) in self.centres.iter_mut().enumerate() {
            *centre = centre.or_else(|| loss_of(group).map(f64::ln));
        }
    }

    /// Success of a group at this loss.
    #[inline]
    pub fn predict(&self, group: usize, loss: f64) -> f64 {
        logistic(self.logit(group, loss))
    }

    /// Success over all groups, each weighted by its terminals.
    #[inline]
    pub fn success(&self, losses: &[f64]) -> f64 {
        let groups = self.shares.iter().zip(losses).enumerate();
        groups.map(|(group, (share, loss))| share * self.predict(group, *loss)).sum()
    }

    /// Standard deviation of the success over all groups.
    pub fn success_sd(&self, losses: &[f64]) -> f64 {
        let one = |(group, (share, loss)): (usize, (&f64, &f64))| {
            let success = self.predict(group, *loss);
            let own = share * success * (1.0 - success) * self.logit_sd(group, *loss);
            own * own
        };
        self.shares.iter().zip(losses).enumerate().map(one).sum::<f64>().sqrt()
    }

    /// 90 % interval of a group's true success at this loss.
    pub fn interval(&self, group: usize, loss: f64) -> (f64, f64) {
        let (logit, reach) = (self.logit(group, loss), Z_90 * self.logit_sd(group, loss));
        (logistic(logit - reach), logistic(logit + reach))
    }

    /// 90 % interval of the successes that so many episodes will show.
    pub fn count_interval(&self, group: usize, loss: f64, episodes: u64) -> (u64, u64) {
        let law = self.count_law(group, loss, episodes);
        let (mut below, mut low, mut high) = (0.0, None, episodes);
        for (count, share) in law.iter().enumerate() {
            // Half of a count's own probability stands on either side of it.
            let middle = below + 0.5 * share;
            if middle >= 0.05 && low.is_none() {
                low = Some(count as u64);
            }
            if middle <= 0.95 {
                high = count as u64;
            }
            below += share;
        }
        let low = low.unwrap_or(0);
        (low, high.max(low))
    }

    /// Errors of the success per group, each predicted before the measurement was known.
    pub fn track(&self) -> &Track {
        &self.track
    }

    /// Measured points of a group, oldest first.
    pub fn pairs(&self, group: usize) -> &[Pair] {
        &self.pairs[group]
    }

    /// Learns from a measurement of all groups at these losses.
    pub fn calibrate(&mut self, losses: &[f64], counts: &[SuccessCount]) {
        for (group, (&loss, &count)) in losses.iter().zip(counts).enumerate() {
            let Some(rate) = count.rate() else { continue };
            let (low, high) = self.count_interval(group, loss, count.episodes);
            let covered = (low..=high).contains(&count.successes);
            self.track.add_covered(rate - self.predict(group, loss), covered);
            let pairs = &mut self.pairs[group];
            if pairs.len() == MOST_PAIRS {
                pairs.remove(0);
            }
            pairs.push(Pair { loss, count });
        }
        self.refit();
    }

    /// Groups around all, all around the prior, in turns.
    fn refit(&mut self) {
        let far = self.far_around();
        let TaskOptions { group_sd, group_slope_sd, .. } = self.options;
        let (between, slope_between) = (group_sd * group_sd, group_slope_sd * group_slope_sd);
        let (mut level, mut slope) = (far.level, far.slope);
        let measured: Vec<usize> =
            (0..self.pairs.len()).filter(|&group| !self.pairs[group].is_empty()).collect();
        let n = measured.len() as f64;
        let TaskOptions { start_sd, slope_sd, .. } = self.options;
        // What is left unknown about all groups once so many of them are measured.
        let rest = |prior: f64, between: f64| 1.0 / (1.0 / prior + n / between);
        let level_rest = rest(start_sd * start_sd, between);
        let slope_rest = rest(slope_sd * slope_sd, slope_between);
        for _ in 0..20 {
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

    /// Most likely level and slope of a group, the slope not negative; Newton's method.
    fn fit_group(&self, group: usize, around: Around) -> Curve {
        let (mut level, mut slope) = (around.level, around.slope.max(0.0));
        let mut curvature = [0.0; 3];
        for _ in 0..40 {
            let (mut pull, mut slope_pull) = (
                (around.level - level) / around.level_variance,
                (around.slope - slope) / around.slope_variance,
            );
            curvature = [1.0 / around.level_variance, 0.0, 1.0 / around.slope_variance];
            for (age, pair) in self.pairs[group].iter().rev().enumerate() {
                let x = self.depth(group, pair.loss);
                let success = logistic(level + slope * x);
                let spread = (success * (1.0 - success)).max(1e-9);
                let episodes = pair.count.episodes as f64;
                // Scatter about the curve makes many episodes worth fewer.
                let worth = 1.0 / (1.0 + episodes * spread * self.options.scatter.powi(2));
                let weight = self.options.keep.powi(age as i32) * worth;
                let surplus = weight * (pair.count.successes as f64 - episodes * success);
                pull += surplus;
                slope_pull += surplus * x;
                let bend = weight * episodes * spread;
                curvature[0] += bend;
                curvature[1] += bend * x;
                curvature[2] += bend * x * x;
            }
            let (step, slope_step) = newton(curvature, pull, slope_pull, slope);
            // A long step is cut: far from the optimum the curve is flat.
            level += step.clamp(-1.0, 1.0);
            slope = (slope + slope_step.clamp(-1.0, 1.0)).max(0.0);
            if step.abs() + slope_step.abs() < 1e-10 {
                break;
            }
        }
        let [a, b, c] = curvature;
        let determinant = a * c - b * b;
        Curve { level, slope, variance: [c / determinant, -b / determinant, a / determinant] }
    }

    /// How far a loss lies below the centre of the group's curve, in logarithms.
    #[inline]
    fn depth(&self, group: usize, loss: f64) -> f64 {
        self.centres[group].unwrap_or(0.0) - loss.max(1e-300).ln()
    }

    #[inline]
    fn logit(&self, group: usize, loss: f64) -> f64 {
        let curve = &self.curves[group];
        curve.level + curve.slope * self.depth(group, loss)
    }

    fn logit_sd(&self, group: usize, loss: f64) -> f64 {
        let ([a, b, c], x) = (self.curves[group].variance, self.depth(group, loss));
        let scatter = self.options.scatter * self.options.scatter;
        (a + 2.0 * b * x + c * x * x + scatter).max(0.0).sqrt()
    }

    /// Probability of each number of successes.
    fn count_law(&self, group: usize, loss: f64, episodes: u64) -> Vec<f64> {
        const NODES: usize = 15;
        let (logit, sd) = (self.logit(group, loss), self.logit_sd(group, loss));
        let mut law = vec![0.0; episodes as usize + 1];
        for node in 0..NODES {
            let z = normal::quantile((node as f64 + 0.5) / NODES as f64);
            let success = logistic(logit + sd * z).clamp(1e-12, 1.0 - 1e-12);
            let (yes, no) = (success.ln(), (1.0 - success).ln());
            let mut ways = 0.0f64; // logarithm of the binomial coefficient
            for (count, share) in law.iter_mut().enumerate() {
                let (k, n) = (count as f64, episodes as f64);
                *share += (ways + k * yes + (n - k) * no).exp() / NODES as f64;
                ways += ((n - k) / (k + 1.0)).ln();
            }
        }
        law
    }
}

/// A Newton step; along the level alone where the slope is held at zero.
fn newton([a, b, c]: [f64; 3], pull: f64, slope_pull: f64, slope: f64) -> (f64, f64) {
    let determinant = a * c - b * b;
    let slope_step = (a * slope_pull - b * pull) / determinant;
    if slope <= 0.0 && slope_step <= 0.0 {
        return (pull / a, 0.0);
    }
    ((c * pull - b * slope_pull) / determinant, slope_step)
}

fn logistic(logit: f64) -> f64 {
    1.0 / (1.0 + (-logit).exp())
}

impl Persist for TaskTwin {
    fn save(&self, snapshot: &mut Snapshot) {
        let centres = self.centres.iter().map(|centre| centre.unwrap_or(f64::NAN)).collect();
        snapshot.put_f64("twin/task/centres", centres);
        let curve = |one: &Curve| {
            let [a, b, c] = one.variance;
            [one.level, one.slope, a, b, c]
        };
        snapshot.put_f64("twin/task/curves", self.curves.iter().flat_map(curve).collect());
        snapshot.put_f64("twin/task/track", self.track.to_array().to_vec());
        let pairs = || self.pairs.iter().flatten();
        snapshot.put_f64("twin/task/losses", pairs().map(|pair| pair.loss).collect());
        let counts = pairs().flat_map(|pair| [pair.count.successes, pair.count.episodes]);
        snapshot.put_u64("twin/task/counts", counts.collect());
        let lengths = self.pairs.iter().map(|pairs| pairs.len() as u64).collect();
        snapshot.put_u64("twin/task/lengths", lengths);
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        let n = self.curves.len();
        let centres = snapshot.f64("twin/task/centres", n)?;
        self.centres = centres.iter().map(|c| (!c.is_nan()).then_some(*c)).collect();
        let curves = snapshot.f64("twin/task/curves", 5 * n)?.as_chunks::<5>().0;
        let curve =
            |&[level, slope, a, b, c]: &[f64; 5]| Curve { level, slope, variance: [a, b, c] };
        self.curves = curves.iter().map(curve).collect();
        self.track = Track::from_slice(snapshot.f64("twin/task/track", 4)?);
        let lengths = snapshot.u64("twin/task/lengths", n)?;
        let n_pairs = lengths.iter().sum::<u64>() as usize;
        let losses = snapshot.f64("twin/task/losses", n_pairs)?;
        let counts = snapshot.u64("twin/task/counts", 2 * n_pairs)?.as_chunks::<2>().0;
        let mut pairs = losses.iter().zip(counts).map(|(&loss, &[successes, episodes])| Pair {
            loss,
            count: SuccessCount { successes, episodes },
        });
        self.pairs = lengths.iter().map(|&n| pairs.by_ref().take(n as usize).collect()).collect();
        Ok(())
    }
}
