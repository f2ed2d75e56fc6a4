//! Knobs of the methods, as they are written in a scenario; those of TiLP itself are in `raw`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::Checker;
use super::load::ScenarioError;
use crate::allocate::{FedSlKnobs, GaSflKnobs, Hierarchy, OracleOptions, TierKnobs};
use crate::split::rule::Local;

/// Knobs of the published methods.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Baselines {
    /// The deadline guard of the variants `+guard`.
    pub guard: Guard,
    /// FedAvg.
    pub fedavg: FedAvg,
    /// SplitFed.
    pub splitfed: SplitFed,
    /// GA-SFL.
    pub ga_sfl: GaSflKnobs,
    /// HSFL.
    pub hsfl: Hsfl,
    /// FedSL.
    pub fedsl: FedSl,
    /// Common knobs of AdaptSFL and HSFL.
    pub tiers: TierKnobs,
}

/// The deadline guard.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Guard {
    /// Share of the deadline that a predicted delay may use.
    pub margin: f64,
}

/// FedAvg.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FedAvg {
    /// Share of the terminals per round, C.
    pub fraction: f64,
    /// How much a terminal trains in one round.
    pub local: Local,
}

/// SplitFed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SplitFed {
    /// 1: the server averages; 2: it steps after every terminal.
    pub version: u32,
}

/// HSFL.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hsfl {
    /// 3: terminals, edge servers, cloud; 2: AdaptSFL.
    pub tiers: u32,
    /// Edge servers.
    pub edges: usize,
    /// Rate between an edge server and the cloud, in bit/s.
    pub backhaul_bps: f64,
}

/// FedSL.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FedSl {
    /// Long-run energy budget per round of all terminals together; 0 for no budget.
    pub energy_budget_j: f64,
    /// Weight V of a second of latency.
    pub time_weight: f64,
    /// Least share of the terminals that takes part.
    pub threshold: f64,
    /// Largest number of alternations of cuts and bandwidths per plan.
    pub turns: usize,
    /// The same while energy has a price.
    pub priced_turns: usize,
}

/// Parts of the hidden truth that the reference `oracle` receives. It is TiLP otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Oracle {
    /// Hardware, and the fading of the rounds to come.
    pub network: bool,
    /// The loss of every terminal before every round.
    pub training: bool,
    /// The success of every terminal, once per calibration interval.
    pub task: bool,
    /// Samples of each terminal for a true loss.
    pub loss_samples: usize,
    /// Episodes of each terminal for a true success.
    pub success_episodes: usize,
}

impl Oracle {
    /// The same for the method.
    pub(super) fn options(&self) -> OracleOptions {
        OracleOptions {
            network: self.network,
            training: self.training,
            task: self.task,
            samples: self.loss_samples,
            episodes: self.success_episodes,
        }
    }
}

impl Baselines {
    /// The wired side of HSFL; none with two tiers.
    pub fn hierarchy(&self) -> Option<Hierarchy> {
        let Hsfl { tiers, edges, backhaul_bps } = self.hsfl;
        (tiers > 2).then_some(Hierarchy { edges, backhaul_bps })
    }

    /// The knobs of FedSL.
    pub fn fedsl(&self) -> FedSlKnobs {
        let FedSl { energy_budget_j, time_weight, threshold, turns, priced_turns } = self.fedsl;
        let budget_j = (energy_budget_j > 0.0).then_some(energy_budget_j);
        FedSlKnobs { budget_j, time_weight, threshold, turns, priced_turns }
    }

    /// Refuses values out of range.
    pub(super) fn check(&self, checker: &Checker) -> Result<(), ScenarioError> {
        let field = |name: &str| format!("methods.baselines.{name}");
        checker.between(&field("guard.margin"), self.guard.margin, 0.01, 1.0)?;
        checker.between(&field("fedavg.fraction"), self.fedavg.fraction, 0.0, 1.0)?;
        let (name, amount) = match self.fedavg.local {
            Local::Steps(steps) => ("fedavg.local.steps", steps),
            Local::Epochs(epochs) => ("fedavg.local.epochs", epochs),
        };
        checker.within(&field(name), amount as u64, 1, 1000)?;
        checker.within(&field("splitfed.version"), self.splitfed.version.into(), 1, 2)?;
        checker.between(&field("ga-sfl.bound_weight_s"), self.ga_sfl.bound_weight_s, 0.0, 1e9)?;
        checker.between(&field("ga-sfl.privacy"), self.ga_sfl.privacy, 0.0, 1.0)?;
        checker.within(&field("hsfl.tiers"), self.hsfl.tiers.into(), 2, 3)?;
        checker.within(&field("hsfl.edges"), self.hsfl.edges as u64, 1, 1000)?;
        checker.between(&field("hsfl.backhaul_bps"), self.hsfl.backhaul_bps, 1.0, 1e15)?;
        checker.between(&field("fedsl.energy_budget_j"), self.fedsl.energy_budget_j, 0.0, 1e9)?;
        checker.between(&field("fedsl.time_weight"), self.fedsl.time_weight, 1e-9, 1e9)?;
        checker.between(&field("fedsl.threshold"), self.fedsl.threshold, 0.0, 1.0)?;
        checker.within(&field("fedsl.turns"), self.fedsl.turns as u64, 1, 1000)?;
        checker.within(&field("fedsl.priced_turns"), self.fedsl.priced_turns as u64, 1, 1000)?;
        let TierKnobs { longest_interval, pace } = self.tiers;
        checker.within(&field("tiers.longest_interval"), longest_interval, 1, 1_000_000)?;
        checker.between(&field("tiers.pace"), pace, 0.0, 1.0)
    }
}
