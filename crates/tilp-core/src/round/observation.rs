//! Observation of the base station before a round.

use std::fmt;

use super::BudgetState;
use crate::cost::Hardware;
use crate::rates::{RateSchedule, Rates};
use crate::units::{Bytes, Gain, Hertz, Seconds};

/// The stable identity of a terminal. It outlives rounds, restarts and the terminal's absence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TerminalId(pub u32);

impl fmt::Display for TerminalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Report of a terminal before a round: its data sheet, its channel, and the state of its copy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TerminalReport {
    /// Its identity.
    pub id: TerminalId,
    /// Hardware by data sheet; the true values differ.
    pub hardware: Hardware,
    /// Memory budget M_n^max.
    pub memory: Bytes,
    /// Samples in its private data set.
    pub n_samples: usize,
    /// Index of its task into the list of tasks.
    pub task: usize,
    /// Large-scale channel gain G_n.
    pub gain: Gain,
    /// Small-scale fading power |H_n|^2, held during the round.
    pub fading_power: f64,
    /// Number of front layers that it holds in their current version.
    pub held_layers: usize,
    /// Number of front layers that it has trained since the last aggregation. It uploads them at the
    /// next one.
    pub owed_layers: usize,
}

/// What the base station has before a round: the paper's state, and what a base station
/// naturally remembers besides.
///
/// $$ s\[t\] = (o^{net}\[t\], o^{tr}\[t\], o^{task}\[t\]) $$
///
/// Eq. `method-state`
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// The round to decide, counted from 1.
    pub round: u64,
    /// Time since the start.
    pub clock: Seconds,
    /// Whether copies are aggregated at the end of this round.
    pub aggregates: bool,
    /// Training loss J[t-1]; none before the first trained round.
    pub loss: Option<f64>,
    /// Success per task as last measured for calibration; none before the first measurement.
    pub success: Option<Vec<SuccessCount>>,
    /// Budgets of the run and what is used of them, as the base station metered it; none if the
    /// run has no budget.
    pub budget: Option<BudgetState>,
    /// One view per terminal that is present, in the order of their ids.
    pub terminals: Vec<TerminalView>,
}

/// Information of the base station about one terminal: its report and its stored history.
#[derive(Clone, Debug, PartialEq)]
pub struct TerminalView {
    /// The terminal's report before this round.
    pub report: TerminalReport,
    /// Bandwidth b_n[t-1] of the previous round.
    pub previous_bandwidth: Hertz,
    /// Norm of the client-side gradient when the terminal last trained.
    pub gradient_norm: Option<f64>,
    /// Loss when the terminal last trained.
    pub loss: Option<f64>,
    /// Rounds since the terminal was last scheduled.
    pub rounds_since_scheduled: Option<u64>,
    /// Its own success as last measured for calibration; none before the first measurement.
    pub success: Option<MeasuredSuccess>,
}

/// Success of one terminal on its calibration episodes, and when it was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasuredSuccess {
    /// The round at whose end the episodes were run.
    pub round: u64,
    /// The episodes of this terminal.
    pub count: SuccessCount,
}

impl Observation {
    /// Learning rates of the round: by its number, with a budget by the used share of it.
    pub fn rates(&self, schedule: &RateSchedule) -> Rates {
        match &self.budget {
            Some(budget) => schedule.at_share(self.round, budget.share()),
            None => schedule.at(self.round),
        }
    }

    /// Rounds that training will have had at its end: as many as planned, with a budget as many as
    /// the used share of it suggests.
    pub fn expected_rounds(&self, planned: u64) -> f64 {
        let share = self.budget.as_ref().map_or(0.0, BudgetState::share);
        if share > 0.0 { (self.round - 1) as f64 / share } else { planned as f64 }
    }

    /// The identities of the terminals, in the order of the views.
    pub fn ids(&self) -> Vec<TerminalId> {
        self.terminals.iter().map(|view| view.report.id).collect()
    }

    /// The reports of the terminals, in the order of the views.
    pub fn reports(&self) -> Vec<TerminalReport> {
        self.terminals.iter().map(|view| view.report).collect()
    }
}

/// Successes among episodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SuccessCount {
    /// Episodes that ended in success.
    pub successes: u64,
    /// Episodes run.
    pub episodes: u64,
}

impl SuccessCount {
    /// Share of successes; none without an episode.
    pub fn rate(self) -> Option<f64> {
        (self.episodes > 0).then(|| self.successes as f64 / self.episodes as f64)
    }

    /// Both counts together.
    pub fn plus(self, other: Self) -> Self {
        Self {
            successes: self.successes + other.successes,
            episodes: self.episodes + other.episodes,
        }
    }
}
