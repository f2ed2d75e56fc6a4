//! The simulators behind an environment.

use tilp::round::{Decision, Limits, TerminalId};
use tilp::twin::Reward;

use crate::errors::Failure;

/// A cell that is decided for from outside, real or imagined.
pub(crate) trait Simulator {
    /// Starts an episode.
    fn reset(&mut self, seed: u64) -> Result<(), Failure>;
    /// Executes one round.
    fn step(&mut self, decision: Decision) -> Result<Step, Failure>;
    /// The terminals that are present.
    fn ids(&self) -> Vec<TerminalId>;
    /// The limits of a round.
    fn limits(&self) -> &Limits;
    /// Writes what an agent sees.
    fn look(&self, out: &mut [f32]);
}

/// Result of a round.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Step {
    /// Terms of the reward.
    pub reward: Reward,
    /// Slowest scheduled terminal, in seconds.
    pub latency_s: f64,
    /// Advance of the clock.
    pub duration_s: f64,
    /// Energy of all terminals.
    pub energy_j: f64,
    /// Violation relative to the limits.
    pub violation: f64,
    /// Scheduled terminals.
    pub n_scheduled: f64,
    /// Scheduled terminals that missed the deadline or did not fit their memory.
    pub n_late: f64,
    /// Success at the end of training as the twin sees it after the round.
    pub success: f64,
    /// Growth of that value.
    pub success_gain: f64,
    /// Success on report episodes; NaN if it was not measured.
    pub report_success: f64,
    /// Whether this was the last round.
    pub ended: bool,
}

type Column = (&'static str, fn(&Step) -> f64);

/// The contents of `info` after a step.
pub(crate) const COLUMNS: [Column; 13] = [
    ("reward", |one| one.reward.total()),
    ("reward_task", |one| one.reward.task),
    ("reward_communication", |one| one.reward.communication),
    ("reward_penalty", |one| one.reward.penalty),
    ("latency_s", |one| one.latency_s),
    ("duration_s", |one| one.duration_s),
    ("energy_j", |one| one.energy_j),
    ("violation", |one| one.violation),
    ("n_scheduled", |one| one.n_scheduled),
    ("n_late", |one| one.n_late),
    ("success", |one| one.success),
    ("success_gain", |one| one.success_gain),
    ("report_success", |one| one.report_success),
];
