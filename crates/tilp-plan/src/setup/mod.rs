//! A base station that plans with TiLP, for a cell that its user describes.
//!
//! A [`CellDescription`] holds what the planner must know of a cell beforehand;
//! [`CellDescription::station`] makes a [`Station`] of it. What the user does not set is as in the
//! default scenario, `configs/default.toml`.

mod check;
mod defaults;

pub use check::DescriptionError;

use crate::allocate::{Tilp, TilpSettings};
use crate::cost::{CostModel, Profile};
use crate::rng::Seed;
use crate::round::{Limits, TerminalReport};
use crate::station::{Station, TrainingSchedule};
use crate::twin::Nominal;
use crate::units::Seconds;

/// A cell as its operator knows it before the first round, apart from the reports of its terminals.
#[derive(Clone, Debug, PartialEq)]
pub struct CellDescription {
    /// Limits, sizes of the model per layer, billing of what is sent, and the rate formula.
    pub cost: CostModel,
    /// How rounds are trained.
    pub training: TrainingSchedule,
    /// When a round ends for terminals that have not finished: at the deadline, or later where
    /// rounds wait for them.
    pub closes: Seconds,
    /// The latency of a terminal never counts as more than this.
    pub give_up: Seconds,
    /// Correlation of the complex fading between two rounds.
    pub fading_correlation: f64,
    /// Standard deviation of the log-normal error with which delays and energies are measured.
    pub measurement_noise: f64,
    /// Number of tasks; a report names one of them by its index.
    pub n_tasks: usize,
    /// How TiLP plans and learns.
    pub planner: TilpSettings,
}

impl CellDescription {
    /// A cell with these limits, sizes and tasks. Rounds close at the deadline. Billing, rate
    /// formula, learning rates, aggregation, fading, measurement noise and planner are those of the
    /// default scenario; set the fields that differ.
    pub fn new(limits: Limits, profile: Profile, n_tasks: usize) -> Self {
        defaults::description(limits, profile, n_tasks)
    }

    /// A base station before its first round, for the terminals that sent these reports. Every
    /// random number of the planner comes from the seed.
    pub fn station(
        &self,
        reports: &[TerminalReport],
        seed: u64,
    ) -> Result<Station, DescriptionError> {
        check::check(self, reports)?;
        let options = self.planner.options(self.measurement_noise);
        let tilp = Tilp::new(self.nominal(reports), options, Seed::new(seed).named("allocator"));
        let limits = self.cost.limits.clone();
        Ok(Station::new(Box::new(tilp), limits, self.training, self.n_tasks))
    }

    fn nominal(&self, reports: &[TerminalReport]) -> Nominal {
        Nominal {
            cost: self.cost.clone(),
            hardware: reports.iter().map(|report| report.hardware).collect(),
            closes: self.closes,
            give_up: self.give_up,
            rho: self.fading_correlation,
            aggregate_every: self.training.aggregate_every,
            rates: self.training.rates,
            tasks: reports.iter().map(|report| report.task).collect(),
            n_tasks: self.n_tasks,
        }
    }
}
