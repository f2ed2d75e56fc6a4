//! Dated events of a scenario as they are written. `docs/events.md` explains them.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A change of the cell at the start of a round, given by `round` or `at`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Event {
    /// The round, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<u64>,
    /// The share of the run's rounds that is done before, 0 up to 1: with 0.25 and 1000 rounds
    /// the event happens at the start of round 251.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<f64>,
    /// Its name in summaries and reports; empty for a generated description.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Terminals that leave.
    #[serde(default)]
    pub leave: Vec<TerminalRef>,
    /// Terminals that join. A terminal whose first event is a join is absent before it;
    /// `cell.n_terminals` includes it.
    #[serde(default)]
    pub join: Vec<TerminalRef>,
    /// Work of some terminals changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<Change>,
    /// An interferer raises the noise of some links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interferer: Option<Interferer>,
    /// A blockage lowers the gain of some links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blockage: Option<Blockage>,
}

/// A terminal by its id, or by the name under which the scenario lists it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum TerminalRef {
    /// The id, counted from 0.
    Id(u32),
    /// The name.
    Name(String),
}

impl fmt::Display for TerminalRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => id.fmt(f),
            Self::Name(name) => write!(f, "\"{name}\""),
        }
    }
}

/// From this round on the work of some terminals differs. Either `terminals` names them, or they are
/// the first `count` present terminals with one of these `tasks`. Fields that are not given remain
/// unchanged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Change {
    /// The terminals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub terminals: Vec<TerminalRef>,
    /// Names of tasks; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<String>,
    /// How many terminals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<usize>,
    /// Additional mass of the payload; the robot's observations do not contain it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_kg: Option<f64>,
    /// Rotation of the goal place relative to the drawn one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal_turn_rad: Option<f64>,
    /// Demonstrations that arrive at each of the terminals, shown by the expert in the changed
    /// cell. They are added to the terminal's data.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub demonstrations: usize,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// For some rounds an interferer raises the noise of the links that `terminals` or `sector_deg`
/// select.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Interferer {
    /// The terminals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub terminals: Vec<TerminalRef>,
    /// Terminals between these two angles, seen from the base station: counter-clockwise from the
    /// first to the second, east is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sector_deg: Option<[f64; 2]>,
    /// Rise of the noise.
    pub noise_db: f64,
    /// Duration in rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lasts_rounds: Option<u64>,
    /// Duration as a share of the run's rounds, at least one round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lasts_share: Option<f64>,
}

/// For some rounds a blockage lowers the gain of the links that `terminals` or `sector_deg`
/// select.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Blockage {
    /// The terminals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub terminals: Vec<TerminalRef>,
    /// Terminals between these two angles, seen from the base station: counter-clockwise from the
    /// first to the second, east is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sector_deg: Option<[f64; 2]>,
    /// Loss of gain.
    pub loss_db: f64,
    /// Duration in rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lasts_rounds: Option<u64>,
    /// Duration as a share of the run's rounds, at least one round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lasts_share: Option<f64>,
}
