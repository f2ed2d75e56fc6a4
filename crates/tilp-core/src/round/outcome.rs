//! What comes back of an executed round: what the base station observes of it.

use super::{SuccessCount, TerminalId};
use crate::units::{Bytes, Joules, Seconds};

/// What the base station observes of an executed round. Delays and energies carry measurement
/// noise.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The round that was executed.
    pub round: u64,
    /// How long the round took, by the base station's clock.
    pub duration: Seconds,
    /// J of the round: weighted loss over the terminals that took part; none if nobody did.
    pub loss: Option<f64>,
    /// One entry per terminal.
    pub terminals: Vec<TerminalOutcome>,
    /// Success per task, if this round ended with a calibration.
    pub success: Option<Vec<SuccessCount>>,
}

/// What the base station observes of one terminal in one round.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TerminalOutcome {
    /// Its identity.
    pub id: TerminalId,
    /// It was scheduled and finished in time, so it counted in learning.
    pub took_part: bool,
    /// It was scheduled and did not make it.
    pub late: bool,
    /// The round closed before it had finished what it had to do.
    pub unfinished: bool,
    /// Measured delay of the round, zero if it had nothing to do. If the terminal did not finish:
    /// the time at which the round closed (a lower bound).
    pub delay: Seconds,
    /// Measured part of the delay that was computation.
    pub computation: Seconds,
    /// Measured energy.
    pub energy: Joules,
    /// Bytes that it exchanged with the base station, both ways.
    pub bytes: Bytes,
    /// Loss on its minibatch, if it took part.
    pub loss: Option<f64>,
    /// Norm of its client-side gradient, if it took part.
    pub gradient_norm: Option<f64>,
    /// Its own success, if this round ended with a calibration.
    pub success: Option<SuccessCount>,
}

/// Success of one terminal on the episodes of one measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalSuccess {
    /// The terminal.
    pub id: TerminalId,
    /// Index of its task.
    pub task: usize,
    /// Its episodes.
    pub count: SuccessCount,
}
