//! The parts of decisions and outcomes that histories need. Everything else is skipped unread.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tilp::record::event::Number;

/// What a line says; none if it is damaged.
pub(super) fn parsed<T: DeserializeOwned>(line: &[u8]) -> Option<T> {
    serde_json::from_slice(line).ok()
}

/// The gains in a decision.
#[derive(Debug, Deserialize)]
pub(super) struct GainsLine {
    /// Gains of the terminals.
    pub terminals: Gains,
}

/// Gains of the terminals.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Gains {
    /// Ids.
    pub terminal: Vec<u32>,
    /// Large-scale gain, linear.
    pub gain: Vec<Number>,
}

/// A decision.
#[derive(Debug, Deserialize)]
pub(super) struct SlimDecided {
    /// Report and decision.
    pub terminals: DecidedColumns,
    /// What was predicted.
    pub rationale: Option<Prediction>,
}

/// Report and decision, terminal by terminal.
#[derive(Debug, Default, Deserialize)]
#[allow(missing_docs)] // The names of docs/reference/run-folder.md.
pub(super) struct DecidedColumns {
    pub terminal: Vec<u32>,
    pub gain: Vec<Number>,
    pub fading_power: Vec<Number>,
    pub scheduled: Vec<bool>,
    pub bandwidth_hz: Vec<Number>,
    pub power_w: Vec<Number>,
    pub cut: Vec<u32>,
    pub compression: Vec<Number>,
}

/// What was predicted of a round.
#[derive(Debug, Deserialize)]
#[allow(missing_docs)]
pub(super) struct Prediction {
    pub duration_s: Number,
    pub energy_j: Number,
    pub loss_decrease: Number,
    pub success_before: Number,
    pub success_after: Number,
    pub terminals: PredictedColumns,
}

/// What was predicted of every terminal.
#[derive(Debug, Default, Deserialize)]
#[allow(missing_docs)]
pub(super) struct PredictedColumns {
    pub delay_s: Vec<Number>,
    pub sure_delay_s: Vec<Number>,
    pub energy_j: Vec<Number>,
}

/// An outcome.
#[derive(Debug, Deserialize)]
#[allow(missing_docs)]
pub(super) struct SlimExecuted {
    pub duration_s: Number,
    pub terminals: ExecutedColumns,
    pub books: Option<SlimBooks>,
}

/// What was observed of every terminal.
#[derive(Debug, Default, Deserialize)]
#[allow(missing_docs)]
pub(super) struct ExecutedColumns {
    pub late: Vec<bool>,
    pub delay_s: Vec<Number>,
    pub energy_j: Vec<Number>,
    pub loss: Vec<Option<Number>>,
}

/// What really happened.
#[derive(Debug, Deserialize)]
#[allow(missing_docs)]
pub(super) struct SlimBooks {
    pub terminals: BookedColumns,
    pub losses: Option<LossColumns>,
}

/// What really happened to every terminal.
#[derive(Debug, Default, Deserialize)]
#[allow(missing_docs)]
pub(super) struct BookedColumns {
    pub delay_s: Vec<Number>,
    pub energy_radio_j: Vec<Number>,
    pub energy_compute_j: Vec<Number>,
}

/// Losses of the deployed policy around a round.
#[derive(Debug, Default, Deserialize)]
#[allow(missing_docs)]
pub(super) struct LossColumns {
    pub before: Vec<Number>,
    pub after: Vec<Number>,
}
