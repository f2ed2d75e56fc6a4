//! Observed outcome of an executed round.

use super::{SuccessCount, TerminalId};
use crate::units::{Bytes, Joules, Seconds};

/// What the base station observes of an executed round. Delays and energies carry measurement
/// noise.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The round that was executed.
    pub round: u64,
    /// Duration of the round, by the base station's clock.
    pub duration: Seconds,
    /// J of the round: weighted loss over the terminals that took part; `None` without any.
    pub loss: Option<f64>,
    /// One entry per terminal.
    pub terminals: Vec<TerminalOutcome>,
    /// Success per task, if this round ended with a calibration.
    pub success: Option<Vec<SuccessCount>>,
}

/// Observed outcome of one terminal in one round.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TerminalOutcome {
    /// Its identity.
    pub id: TerminalId,
    /// It was scheduled and finished in time, so it counted in learning.
    pub took_part: bool,
    /// It was scheduled, fits its memory, and did not finish before the round closed.
    pub late: bool,
    /// It was scheduled with a cut that does not fit its memory. It is not late then, whatever it
    /// took.
    pub unfit: bool,
    /// The round closed before the terminal had finished.
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

impl TerminalOutcome {
    /// A terminal that was not scheduled.
    pub fn idle(id: TerminalId) -> Self {
        Self { id, ..Self::default() }
    }

    /// A scheduled terminal that trained and finished in time.
    pub fn trained(
        id: TerminalId,
        delay: Seconds,
        computation: Seconds,
        energy: Joules,
        loss: f64,
    ) -> Self {
        let loss = Some(loss);
        Self { id, took_part: true, delay, computation, energy, loss, ..Self::default() }
    }

    /// A scheduled terminal that had not finished when the round closed. Nothing else was measured
    /// of it.
    pub fn cut_off(id: TerminalId, closed: Seconds) -> Self {
        Self { id, late: true, unfinished: true, delay: closed, ..Self::default() }
    }
}

impl Outcome {
    /// The outcome of a round that lasted until its slowest terminal was done or cut off. The loss
    /// is the mean over the terminals that took part.
    pub fn of(round: u64, terminals: Vec<TerminalOutcome>) -> Self {
        let duration = terminals.iter().map(|one| one.delay).fold(Seconds(0.0), Seconds::max);
        let losses: Vec<f64> = terminals.iter().filter_map(|one| one.loss).collect();
        let loss = (!losses.is_empty()).then(|| losses.iter().sum::<f64>() / losses.len() as f64);
        Self { round, duration, loss, terminals, success: None }
    }
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
