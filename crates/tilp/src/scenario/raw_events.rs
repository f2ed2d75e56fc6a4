//! Dated events of a scenario as they are written. `docs/events.md` explains them.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something happens to the cell at the start of a round. `round` or `at` says when.
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
    /// What it is called in summaries and reports; empty for a description.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Terminals that leave.
    #[serde(default)]
    pub leave: Vec<TerminalRef>,
    /// Terminals that join. A terminal whose first event is a join is absent before it;
    /// `cell.n_terminals` counts it all the same.
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

/// From this round on some terminals have other work. Either `terminals` names them, or they are
/// the first `count` of those that are there and have one of these `tasks`. What is not given stays
/// as it was.
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
    /// Mass on top of the payload's, which no observation of the robot shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_kg: Option<f64>,
    /// Angle of the goal place against the one that was drawn.
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

/// For some rounds an interferer raises the noise of links. Either `terminals` or `sector_deg`
/// says whose.
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
    /// How many rounds it lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lasts_rounds: Option<u64>,
    /// The share of the run's rounds that it lasts, at least one round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lasts_share: Option<f64>,
}

/// For some rounds a blockage lowers the gain of links. Either `terminals` or `sector_deg` says
/// whose.
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
    /// How many rounds it lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lasts_rounds: Option<u64>,
    /// The share of the run's rounds that it lasts, at least one round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lasts_share: Option<f64>,
}
