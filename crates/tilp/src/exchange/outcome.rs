//! An outcome as JSON.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::{Checker, ExchangeError, LOSS, parse};
use super::decision::DecisionMessage;
use super::observation::{Count, named, success, success_count};
use crate::round::{
    Decision, Observation, Outcome, ProjectedDecision, SuccessCount, TerminalOutcome,
};
use crate::tasks::Suite;
use crate::units::{Bytes, Joules, Seconds};

const CHECKER: Checker = Checker { what: "outcome" };

/// What the base station observed of an executed round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Outcome")]
pub struct OutcomeMessage {
    /// The round that was executed.
    round: u64,
    /// How long it took.
    duration_s: f64,
    /// Weighted loss over the terminals that took part; null if no terminal did.
    loss: Option<f64>,
    /// Success per task if this round ended with a calibration. If it is left out, the success of
    /// the terminals is summed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    success: Option<BTreeMap<String, Count>>,
    /// One entry per terminal of the observation, in its order.
    terminals: Vec<TerminalOutcomeMessage>,
    /// What was executed, if it is not what was decided: within the limits, or changed by the cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    executed: Option<DecisionMessage>,
}

/// What was observed of one terminal. One with nothing to do needs no entry but `{}`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "TerminalOutcome")]
struct TerminalOutcomeMessage {
    /// Its identity; may be left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u32>,
    /// It was scheduled and finished in time.
    took_part: bool,
    /// It was scheduled, fits its memory, and did not finish before the round closed.
    late: bool,
    /// It was scheduled with a cut that does not fit its memory.
    unfit: bool,
    /// The round closed before it had finished.
    unfinished: bool,
    /// Measured delay; of an unfinished terminal the time at which the round closed.
    delay_s: f64,
    /// The part of the delay that was computation.
    computation_s: f64,
    /// Measured energy.
    energy_j: f64,
    /// Bytes exchanged, both ways.
    bytes: u64,
    /// Its loss, if it took part.
    loss: Option<f64>,
    /// Norm of its gradient, if it took part.
    gradient_norm: Option<f64>,
    /// Its success, if this round ended with a calibration.
    #[serde(skip_serializing_if = "Option::is_none")]
    success: Option<Count>,
}

/// An outcome for a program, to the last bit.
pub fn outcome_message(
    plan: &ProjectedDecision,
    outcome: &Outcome,
    suite: &Suite,
) -> OutcomeMessage {
    let terminal = |one: &TerminalOutcome| TerminalOutcomeMessage {
        id: Some(one.id.0),
        took_part: one.took_part,
        late: one.late,
        unfit: one.unfit,
        unfinished: one.unfinished,
        delay_s: one.delay.0,
        computation_s: one.computation.0,
        energy_j: one.energy.0,
        bytes: one.bytes.0,
        loss: one.loss,
        gradient_norm: one.gradient_norm,
        success: one.success.map(Count::from),
    };
    OutcomeMessage {
        round: outcome.round,
        duration_s: outcome.duration.0,
        loss: outcome.loss,
        success: outcome.success.as_ref().map(|counts| named(counts, suite)),
        terminals: outcome.terminals.iter().map(terminal).collect(),
        executed: Some(DecisionMessage::from(plan.decision())),
    }
}

/// The outcome in untrusted bytes, of the round seen, and what was executed if that is said.
pub fn read_outcome(
    bytes: &[u8],
    seen: &Observation,
    suite: &Suite,
    n_layers: usize,
) -> Result<(Outcome, Option<Decision>), ExchangeError> {
    parse::<OutcomeMessage>(CHECKER.what, "", bytes)?.checked(seen, suite, n_layers)
}

impl OutcomeMessage {
    /// The round that was executed.
    pub fn round(&self) -> u64 {
        self.round
    }

    /// The outcome, if every value is in its range and fits the observation.
    pub fn checked(
        self,
        seen: &Observation,
        suite: &Suite,
        n_layers: usize,
    ) -> Result<(Outcome, Option<Decision>), ExchangeError> {
        if self.round != seen.round {
            return CHECKER.fail("round", self.round, seen.round);
        }
        let (found, expected) = (self.terminals.len(), seen.terminals.len());
        if found != expected {
            let expected = format!("{expected}, as many as were observed");
            return CHECKER.fail("terminals", format!("{found} terminals"), expected);
        }
        let executed =
            self.executed.map(|plan| plan.checked(CHECKER.what, found, n_layers)).transpose()?;
        let views = seen.terminals.iter().zip(&self.terminals).enumerate();
        let terminals = views.map(|(n, (view, one))| one.checked(n, view.report.id.0));
        let terminals: Vec<TerminalOutcome> = terminals.collect::<Result<_, _>>()?;
        let counts = match self.success {
            Some(counts) => Some(success(CHECKER, counts, suite)?),
            None => by_task(seen, &terminals, suite),
        };
        let outcome = Outcome {
            round: self.round,
            duration: Seconds(CHECKER.within("duration_s", self.duration_s, [0.0, 1e9])?),
            loss: CHECKER.maybe("loss", self.loss, LOSS)?,
            terminals,
            success: counts,
        };
        Ok((outcome, executed))
    }
}

/// Success per task; none if no terminal was measured.
fn by_task(
    seen: &Observation,
    terminals: &[TerminalOutcome],
    suite: &Suite,
) -> Option<Vec<SuccessCount>> {
    terminals.iter().any(|one| one.success.is_some()).then(|| {
        let mut counts = vec![SuccessCount::default(); suite.tasks.len()];
        for (view, one) in seen.terminals.iter().zip(terminals) {
            let count = &mut counts[view.report.task];
            *count = count.plus(one.success.unwrap_or_default());
        }
        counts
    })
}

impl TerminalOutcomeMessage {
    fn checked(&self, n: usize, id: u32) -> Result<TerminalOutcome, ExchangeError> {
        let at = |field: &str| format!("terminals[{n}].{field}");
        if let Some(other) = self.id.filter(|other| *other != id) {
            return CHECKER.fail(at("id"), other, format!("{id}, as observed"));
        }
        if self.took_part && self.late {
            return CHECKER.fail(at("late"), true, "false, since it took part");
        }
        if self.unfit && (self.took_part || self.late) {
            return CHECKER.fail(at("unfit"), true, "false, since it took part or was late");
        }
        // Logarithms are taken of what is not zero.
        let measured = |field: &str, value: f64| match value {
            0.0 => Ok(0.0),
            value => CHECKER.within(at(field), value, [1e-12, 1e12]),
        };
        let seconds = |field: &str, value: f64| measured(field, value).map(Seconds);
        let count = |count| success_count(CHECKER, &at("success"), count);
        Ok(TerminalOutcome {
            id: crate::round::TerminalId(id),
            took_part: self.took_part,
            late: self.late,
            unfit: self.unfit,
            unfinished: self.unfinished,
            delay: seconds("delay_s", self.delay_s)?,
            computation: seconds("computation_s", self.computation_s)?,
            energy: Joules(measured("energy_j", self.energy_j)?),
            bytes: Bytes(CHECKER.within(at("bytes"), self.bytes, [0, 1 << 53])?),
            loss: CHECKER.maybe(at("loss"), self.loss, LOSS)?,
            gradient_norm: CHECKER.maybe(at("gradient_norm"), self.gradient_norm, [0.0, 1e12])?,
            success: self.success.map(count).transpose()?,
        })
    }
}
