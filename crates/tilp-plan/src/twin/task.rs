//! The task sub-twin: from loss to success.
//!
//! Success is predicted by curves that rise as the loss falls, one for each task
//! ([`By::Task`]: `groups`) or one for each terminal ([`By::Terminal`]: `terminals`).

mod groups;
mod terminals;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counts::nearest_interval;
use super::normal::Z_90;
use super::track::Track;
use crate::round::SuccessCount;
use crate::snapshot::{Persist, Snapshot, SnapshotError};
use groups::GroupCurves;
pub use groups::Pair;
use terminals::{Count, TerminalCurves};
pub(super) use terminals::{Deviation, deviation_of};

/// Unit that a success curve belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// A task, with the counts of all its terminals together: version 1.
    #[default]
    Task,
    /// A terminal, with its own counts and those of the others.
    Terminal,
}

impl By {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Assumptions of the task sub-twin.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
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
    /// Weight of a measurement relative to the one after it. This key and those up to `turns` apply
    /// to curves by task.
    pub keep: f64,
    /// Standard deviation, in logits, by which success differs from its curve.
    pub scatter: f64,
    /// Prior of the distance from the curve: its weight, in square logits.
    pub wander_weight: f64,
    /// Weight of a distance from the curve relative to that of the measurement after it.
    pub wander_keep: f64,
    /// Largest square of a distance that counts, over its expected square.
    pub wander_most_square: f64,
    /// Largest variance of the distance from the curve, in square logits.
    pub wander_most: f64,
    /// Measurements that are kept of each group.
    pub most_pairs: usize,
    /// Number of alternating fits of the curves of the groups and of all groups.
    pub turns: usize,
    /// Bounds of the success that the group's curve adds as one episode to a true success.
    pub anchor_bounds: [f64; 2],
    /// Unit that a success curve belongs to: `task` or `terminal`.
    #[serde(default, skip_serializing_if = "By::is_default")]
    pub by: By,
    /// Assumptions of curves by terminal.
    #[serde(default, skip_serializing_if = "TerminalOptions::is_default")]
    pub terminal: TerminalOptions,
}

/// Assumptions of curves by terminal, in addition to those of all curves. Everything is in logits;
/// drifts are from one measurement to the next.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TerminalOptions {
    /// Standard deviation of a terminal's level around that of its group.
    pub sd: f64,
    /// Share of a terminal's distance from its group that remains at the next measurement.
    pub keep: f64,
    /// Standard deviation of an additional drift of a terminal.
    pub drift: f64,
    /// Standard deviation of the drift of a group.
    pub group_drift: f64,
    /// Standard deviation of the common drift of all.
    pub all_drift: f64,
}

/// Chosen on recorded runs of tuning seeds: docs/explain/tilp.md.
impl Default for TerminalOptions {
    fn default() -> Self {
        Self { sd: 2.0, keep: 0.97, drift: 0.2, group_drift: 0.1, all_drift: 0.15 }
    }
}

impl TerminalOptions {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Predicted change of a terminal's log-loss until the end of training, independent of the present decision.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outlook {
    /// Its predicted decrease.
    pub fall: f64,
    /// Its standard deviation.
    pub sd: f64,
}

/// State of one terminal's success.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TaskPart {
    /// Log-loss and logit of its curve, if the true success was received.
    pub anchor: Option<[f64; 2]>,
    /// Deviation from the level of its group; nothing for curves by task.
    pub deviation: Deviation,
    /// Variance of its part in common with others.
    pub shared_doubt: f64,
}

impl TaskPart {
    /// The terminal leaves: the common part changes without it.
    pub(super) fn leave(&mut self) {
        self.deviation = self.deviation.untied(self.shared_doubt);
        self.shared_doubt = 0.0;
    }
}

/// The curves.
#[derive(Clone, Debug, PartialEq)]
enum Curves {
    Groups(GroupCurves),
    Terminals(TerminalCurves),
}

/// The task sub-twin.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskTwin {
    options: TaskOptions,
    curves: Curves,
    n_groups: usize,
    /// Number of measurements.
    n_measured: u64,
    track: Track,
    own_track: Track,
    /// Log-loss and logit of success on a terminal's curve, if the true success was received.
    anchors: Vec<Option<[f64; 2]>>,
}

impl TaskTwin {
    /// The twin of terminals that belong to these groups.
    pub fn new(groups: Vec<usize>, n_groups: usize, options: TaskOptions) -> Self {
        let anchors = vec![None; groups.len()];
        let curves = match options.by {
            By::Task => Curves::Groups(GroupCurves::new(groups, n_groups, options)),
            By::Terminal => Curves::Terminals(TerminalCurves::new(groups, n_groups, options)),
        };
        let (track, own_track) = (Track::default(), Track::default());
        Self { options, curves, n_groups, n_measured: 0, track, own_track, anchors }
    }

    /// Sets the terminals' log-losses; the first known ones centre a group's curves.
    pub fn centre(&mut self, log_loss_of: impl Fn(usize) -> Option<f64>) {
        match &mut self.curves {
            Curves::Groups(curves) => curves.centre(log_loss_of),
            Curves::Terminals(curves) => curves.centre(log_loss_of),
        }
    }

    /// Expected success of a terminal at this log-loss.
    #[inline]
    pub fn predict(&self, terminal: usize, log_loss: f64) -> f64 {
        let (start, slope) = self.line_ahead(terminal, Outlook::default());
        logistic(start - slope * log_loss)
    }

    /// The line of a terminal: its most likely logit is the first minus the second times its
    /// log-loss.
    #[inline]
    pub fn line(&self, terminal: usize) -> (f64, f64) {
        let (start, slope) = match &self.curves {
            Curves::Groups(curves) => curves.line(terminal),
            Curves::Terminals(curves) => curves.line(terminal),
        };
        match self.anchors[terminal] {
            Some([log_loss, logit]) => (logit + slope * log_loss, slope),
            None => (start, slope),
        }
    }

    /// Remaining variance of a terminal's logit, given its curve.
    fn doubt(&self, terminal: usize) -> f64 {
        match &self.curves {
            Curves::Groups(_) => 0.0,
            Curves::Terminals(curves) => curves.doubt(terminal),
        }
    }

    /// Receives true successes of single terminals, each with its log-loss of that moment. A curve
    /// by task then passes through them, with its slope unchanged; curves by terminal learn from
    /// them as from any count.
    pub(super) fn be_told(&mut self, told: &[(usize, f64, SuccessCount)]) {
        match &mut self.curves {
            Curves::Groups(_) => {
                told.iter().for_each(|&(n, log_loss, count)| self.anchor(n, log_loss, count));
            }
            Curves::Terminals(curves) => {
                let counts = told.iter().filter(|(.., count)| count.episodes > 0);
                let counts = counts.map(|&(n, log_loss, count)| Count::of(n, log_loss, count));
                curves.learn(&counts.collect::<Vec<_>>());
            }
        }
    }

    /// Shifts a terminal's curve, with its slope unchanged, through a true success at this loss.
    /// The group's curve counts as one episode, so that no success in few episodes does not mean
    /// zero.
    fn anchor(&mut self, terminal: usize, log_loss: f64, count: SuccessCount) {
        self.anchors[terminal] = None;
        let [least, most] = self.options.anchor_bounds;
        let prior = self.predict(terminal, log_loss).clamp(least, most);
        let success = (count.successes as f64 + prior) / (count.episodes as f64 + 1.0);
        self.anchors[terminal] = Some([log_loss, (success / (1.0 - success)).ln()]);
    }

    /// State of a terminal.
    pub(super) fn part(&self, terminal: usize) -> TaskPart {
        let (deviation, shared_doubt) = match &self.curves {
            Curves::Groups(_) => (Deviation::default(), 0.0),
            Curves::Terminals(curves) => {
                (curves.deviation(terminal), curves.shared_doubt(terminal))
            }
        };
        TaskPart { anchor: self.anchors[terminal], deviation, shared_doubt }
    }

    /// State of a terminal without measurements.
    pub(super) fn new_part(&self) -> TaskPart {
        let deviation = match &self.curves {
            Curves::Groups(_) => Deviation::default(),
            Curves::Terminals(curves) => curves.new_deviation(),
        };
        TaskPart { anchor: None, deviation, shared_doubt: 0.0 }
    }

    /// State of an absent terminal after a measurement without it.
    pub(super) fn after_measurement(&self, part: TaskPart) -> TaskPart {
        match &self.curves {
            Curves::Groups(_) => part,
            Curves::Terminals(curves) => {
                TaskPart { deviation: curves.drifted(part.deviation), ..part }
            }
        }
    }

    /// Replaces the terminals, each with its group and its state.
    pub(super) fn set_terminals(&mut self, groups: Vec<usize>, parts: &[TaskPart]) {
        self.anchors = parts.iter().map(|part| part.anchor).collect();
        match &mut self.curves {
            Curves::Groups(curves) => curves.set_terminals(groups),
            Curves::Terminals(curves) => {
                curves.set_terminals(groups, parts.iter().map(|part| part.deviation).collect());
            }
        }
    }

    /// Anchors of the curves.
    pub(super) fn anchors(&self) -> impl Iterator<Item = Option<[f64; 2]>> + '_ {
        self.anchors.iter().copied()
    }

    /// Restores the anchors of the curves.
    pub(super) fn set_anchors(&mut self, anchors: Vec<Option<[f64; 2]>>) {
        self.anchors = anchors;
    }

    /// The line of expected success at the end of training, after the predicted change of the
    /// log-loss: the expectation of a logistic over a normal law is approximately a flatter
    /// logistic.
    pub fn line_ahead(&self, terminal: usize, outlook: Outlook) -> (f64, f64) {
        let (start, slope) = self.line(terminal);
        let flatter = flatter((slope * outlook.sd).powi(2) + self.doubt(terminal));
        ((start + slope * outlook.fall) / flatter, slope / flatter)
    }

    /// Success over all terminals.
    pub fn success(&self, log_losses: &[f64]) -> f64 {
        let all = log_losses.iter().enumerate().map(|(n, log_loss)| self.predict(n, *log_loss));
        all.sum::<f64>() / log_losses.len() as f64
    }

    /// Success of a group.
    pub fn group_success(&self, group: usize, log_losses: &[f64]) -> f64 {
        match &self.curves {
            Curves::Groups(curves) => curves.group_success(group, log_losses),
            Curves::Terminals(curves) => curves.group_success(group, log_losses),
        }
    }

    /// Standard deviation of the success over all terminals.
    pub fn success_sd(&self, log_losses: &[f64]) -> f64 {
        match &self.curves {
            Curves::Groups(curves) => curves.success_sd(log_losses),
            Curves::Terminals(curves) => {
                curves.success_sd(&(0..log_losses.len()).collect::<Vec<_>>(), log_losses)
            }
        }
    }

    /// 90 % interval of a group's true success at these losses of all terminals.
    pub fn interval(&self, group: usize, log_losses: &[f64]) -> (f64, f64) {
        match &self.curves {
            Curves::Groups(curves) => curves.interval(group, log_losses),
            Curves::Terminals(curves) => {
                let success = self.group_success(group, log_losses);
                let reach = Z_90 * curves.success_sd(&curves.group(group), log_losses);
                ((success - reach).max(0.0), (success + reach).min(1.0))
            }
        }
    }

    /// 90 % interval of the successes in this number of episodes of a group.
    pub fn count_interval(&self, group: usize, log_losses: &[f64], episodes: u64) -> (u64, u64) {
        let law = match &self.curves {
            Curves::Groups(curves) => curves.count_law(group, log_losses, episodes),
            Curves::Terminals(curves) => curves.count_law(group, log_losses, episodes),
        };
        nearest_interval(&law, 0.9)
    }

    /// Probability of each number of successes in this number of episodes of one terminal.
    pub fn own_law(&self, terminal: usize, log_loss: f64, episodes: u64) -> Vec<f64> {
        match &self.curves {
            Curves::Groups(_) => {
                let (start, slope) = self.line(terminal);
                super::counts::mixed_binomial(start - slope * log_loss, 0.0, episodes)
            }
            Curves::Terminals(curves) => curves.own_law(terminal, log_loss, episodes),
        }
    }

    /// 90 % interval of that number.
    pub fn own_interval(&self, terminal: usize, log_loss: f64, episodes: u64) -> (u64, u64) {
        nearest_interval(&self.own_law(terminal, log_loss, episodes), 0.9)
    }

    /// Errors of the success per group, each predicted before the measurement was known.
    pub fn track(&self) -> &Track {
        &self.track
    }

    /// Errors of the success per terminal, where it was measured per terminal.
    pub fn own_track(&self) -> &Track {
        &self.own_track
    }

    /// Number of measurements.
    pub fn n_measured(&self) -> u64 {
        self.n_measured
    }

    /// Measured points to which a group's curve is fitted, oldest first; `None` for curves by
    /// terminal.
    pub fn pairs(&self, group: usize) -> &[Pair] {
        match &self.curves {
            Curves::Groups(curves) => curves.pairs(group),
            Curves::Terminals(_) => &[],
        }
    }

    /// Learns from a measurement of all groups at these log-losses of all terminals, with the
    /// counts of each terminal if they are known.
    pub fn calibrate(
        &mut self,
        log_losses: &[f64],
        counts: &[SuccessCount],
        own: &[Option<SuccessCount>],
    ) {
        self.keep_track(log_losses, counts, own);
        self.n_measured += 1;
        match &mut self.curves {
            Curves::Groups(curves) => curves.calibrate(log_losses, counts),
            Curves::Terminals(curves) => curves.calibrate(log_losses, counts, own),
        }
    }

    fn keep_track(
        &mut self,
        log_losses: &[f64],
        counts: &[SuccessCount],
        own: &[Option<SuccessCount>],
    ) {
        for (group, count) in counts.iter().enumerate() {
            let Some(rate) = count.rate() else { continue };
            let (low, high) = self.count_interval(group, log_losses, count.episodes);
            let covered = (low..=high).contains(&count.successes);
            self.track.add_covered(rate - self.group_success(group, log_losses), covered);
        }
        for (n, count) in own.iter().enumerate() {
            let Some((count, rate)) = count.and_then(|one| Some((one, one.rate()?))) else {
                continue;
            };
            let (low, high) = self.own_interval(n, log_losses[n], count.episodes);
            let covered = (low..=high).contains(&count.successes);
            self.own_track.add_covered(rate - self.predict(n, log_losses[n]), covered);
        }
    }
}

fn logistic(logit: f64) -> f64 {
    1.0 / (1.0 + (-logit).exp())
}

/// Factor by which a logistic is flatter in the mean over a normal law of its logit with this
/// variance.
fn flatter(variance: f64) -> f64 {
    (1.0 + std::f64::consts::FRAC_PI_8 * variance).sqrt()
}

impl Persist for TaskTwin {
    fn save(&self, snapshot: &mut Snapshot) {
        match &self.curves {
            Curves::Groups(curves) => curves.save(snapshot),
            Curves::Terminals(curves) => curves.save(snapshot),
        }
        snapshot.put_f64("twin/task/track", self.track.to_array().to_vec());
        snapshot.put_f64("twin/task/own_track", self.own_track.to_array().to_vec());
        snapshot.put_u64("twin/task/measured", vec![self.n_measured]);
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        match &mut self.curves {
            Curves::Groups(curves) => curves.restore(snapshot)?,
            Curves::Terminals(curves) => curves.restore(snapshot)?,
        }
        self.track = Track::from_slice(snapshot.finite_f64("twin/task/track", 4)?);
        // Snapshots of version 1 have neither.
        if snapshot.len_of("twin/task/own_track") > 0 {
            self.own_track = Track::from_slice(snapshot.finite_f64("twin/task/own_track", 4)?);
        }
        if snapshot.len_of("twin/task/measured") > 0 {
            self.n_measured = snapshot.u64("twin/task/measured", 1)?[0];
        }
        Ok(())
    }
}
