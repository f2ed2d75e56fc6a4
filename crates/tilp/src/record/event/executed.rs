//! What was executed: what the base station observed of it, and the experimenter's books.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Decided, EventId, Number};
use crate::round::{Ledger, LossChange, Outcome};

/// The cell executed the decision. Lists over terminals are in the order of the decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Executed {
    /// Its id.
    pub id: EventId,
    /// How long the round took, by the base station's clock.
    pub duration_s: Number,
    /// Weighted training loss over the terminals that took part; null without any.
    pub loss: Option<Number>,
    /// What was observed of each terminal.
    pub terminals: ExecutedTerminals,
    /// What really happened; none for a cell without a known truth.
    pub books: Option<Books>,
}

/// What the base station observed, terminal by terminal. Delays and energies carry measurement
/// noise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExecutedTerminals {
    /// It counted in learning.
    pub took_part: Vec<bool>,
    /// It was scheduled, fits its memory, and did not finish before the round closed.
    pub late: Vec<bool>,
    /// It was scheduled with a cut that does not fit its memory. Events of the first builds have no
    /// such list: `late` is true there for both.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unfit: Vec<bool>,
    /// The round closed before it had finished.
    pub unfinished: Vec<bool>,
    /// Measured delay.
    pub delay_s: Vec<Number>,
    /// The part of it that was computation.
    pub computation_s: Vec<Number>,
    /// Measured energy.
    pub energy_j: Vec<Number>,
    /// Loss on its minibatch, if it took part.
    pub loss: Vec<Option<Number>>,
    /// Norm of its client-side gradient, if it took part.
    pub gradient_norm: Vec<Option<Number>>,
}

/// The experimenter's books of a round. No method sees them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Books {
    /// Slowest involved terminal, uncut up to the give-up time.
    pub latency_s: Number,
    /// By how much the clock advanced.
    pub duration_s: Number,
    /// Violation, each part relative to its own limit.
    pub violation: Number,
    /// Seconds beyond the deadline, summed.
    pub violation_deadline_s: Number,
    /// Bytes beyond the memory budgets, summed.
    pub violation_memory_bytes: u64,
    /// Hertz beyond the band.
    pub violation_spectrum_hz: Number,
    /// Episodes run in this round for calibration and report.
    pub episodes: u64,
    /// What really happened to each terminal.
    pub terminals: BookedTerminals,
    /// Loss of the deployed policy on each terminal's data, in the rounds in which it is measured.
    pub losses: Option<LossesLine>,
}

/// What really happened, terminal by terminal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BookedTerminals {
    /// Bandwidth it really had.
    pub bandwidth_hz: Vec<Number>,
    /// True delay.
    pub delay_s: Vec<Number>,
    /// True energy spent on transmission.
    pub energy_radio_j: Vec<Number>,
    /// True energy spent on computation.
    pub energy_compute_j: Vec<Number>,
    /// Activation bytes sent up.
    pub bytes_up: Vec<u64>,
    /// Gradient bytes sent down.
    pub bytes_down: Vec<u64>,
    /// Bytes of model exchange, both ways.
    pub bytes_sync: Vec<u64>,
}

/// Losses before and after a round, terminal by terminal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LossesLine {
    /// Before the round.
    pub before: Vec<Number>,
    /// After it.
    pub after: Vec<Number>,
}

impl Executed {
    /// What came of a round.
    pub fn new(id: EventId, outcome: &Outcome, books: Option<&Ledger>) -> Self {
        Self {
            id,
            duration_s: outcome.duration.0.into(),
            loss: outcome.loss.map(Number::from),
            terminals: ExecutedTerminals::new(outcome),
            books: books.map(Books::from),
        }
    }

    /// The true values; in a cell without them, the measured values.
    pub(in crate::record) fn books(&self, decided: &Decided) -> Cow<'_, Books> {
        match &self.books {
            Some(books) => Cow::Borrowed(books),
            None => Cow::Owned(Books::as_measured(decided, self)),
        }
    }

    /// An error unless every list has `n` entries.
    pub(in crate::record) fn check(&self, n: usize) -> Result<(), String> {
        let observed = self.terminals.lengths();
        let booked = self.books.iter().flat_map(Books::lengths);
        if let Some(found) = observed.into_iter().chain(booked).find(|length| *length != n) {
            return Err(format!("a list of {found} entries, expected {n} terminals"));
        }
        let sizes = self.books.iter().flat_map(|books| books.terminals.sizes());
        match sizes.copied().chain(self.books.iter().map(|books| books.episodes)).max() {
            Some(found) if found > MOST => Err(format!("{found} bytes, expected at most {MOST}")),
            _ => Ok(()),
        }
    }
}

/// No terminal exchanges more bytes in a round. Sums over a run cannot overflow.
const MOST: u64 = 1 << 36;

impl ExecutedTerminals {
    fn new(outcome: &Outcome) -> Self {
        let mut columns = Self::default();
        for one in &outcome.terminals {
            columns.took_part.push(one.took_part);
            columns.late.push(one.late);
            columns.unfit.push(one.unfit);
            columns.unfinished.push(one.unfinished);
            columns.delay_s.push(one.delay.0.into());
            columns.computation_s.push(one.computation.0.into());
            columns.energy_j.push(one.energy.0.into());
            columns.loss.push(one.loss.map(Number::from));
            columns.gradient_norm.push(one.gradient_norm.map(Number::from));
        }
        columns
    }

    /// Whether a terminal did not fit its memory.
    pub(in crate::record) fn is_unfit(&self, n: usize) -> bool {
        self.unfit.get(n).is_some_and(|unfit| *unfit)
    }

    fn lengths(&self) -> [usize; 9] {
        // A list that was not written yet is as long as the others.
        let unfit = if self.unfit.is_empty() { self.late.len() } else { self.unfit.len() };
        [
            self.took_part.len(),
            self.late.len(),
            unfit,
            self.unfinished.len(),
            self.delay_s.len(),
            self.computation_s.len(),
            self.energy_j.len(),
            self.loss.len(),
            self.gradient_norm.len(),
        ]
    }
}

impl Books {
    /// Books of a real cell, whose truth is unknown. All energy counts as computation, since a
    /// meter does not separate the parts. Bytes, violations and episodes are unknown and stay
    /// zero.
    fn as_measured(decided: &Decided, executed: &Executed) -> Self {
        let (plan, measured) = (&decided.terminals, &executed.terminals);
        let n = measured.delay_s.len();
        let scheduled = plan.scheduled.iter().zip(&measured.delay_s).filter(|(yes, _)| **yes);
        let latency = scheduled.map(|(_, delay)| delay.value()).fold(0.0, f64::max);
        let zero = Number::default();
        Self {
            latency_s: latency.into(),
            duration_s: executed.duration_s,
            violation: zero,
            violation_deadline_s: zero,
            violation_memory_bytes: 0,
            violation_spectrum_hz: zero,
            episodes: 0,
            terminals: BookedTerminals {
                bandwidth_hz: plan.bandwidth_hz.clone(),
                delay_s: measured.delay_s.clone(),
                energy_radio_j: vec![zero; n],
                energy_compute_j: measured.energy_j.clone(),
                bytes_up: vec![0; n],
                bytes_down: vec![0; n],
                bytes_sync: vec![0; n],
            },
            losses: None,
        }
    }

    fn lengths(&self) -> Vec<usize> {
        let one = &self.terminals;
        let losses = self.losses.iter().flat_map(|both| [both.before.len(), both.after.len()]);
        let columns = [
            one.bandwidth_hz.len(),
            one.delay_s.len(),
            one.energy_radio_j.len(),
            one.energy_compute_j.len(),
            one.bytes_up.len(),
            one.bytes_down.len(),
            one.bytes_sync.len(),
        ];
        columns.into_iter().chain(losses).collect()
    }
}

impl From<&Ledger> for Books {
    fn from(ledger: &Ledger) -> Self {
        Self {
            latency_s: ledger.latency.0.into(),
            duration_s: ledger.duration.0.into(),
            violation: ledger.violation.relative.into(),
            violation_deadline_s: ledger.violation.deadline.0.into(),
            violation_memory_bytes: ledger.violation.memory.0,
            violation_spectrum_hz: ledger.violation.spectrum.0.into(),
            episodes: ledger.episodes,
            terminals: BookedTerminals::new(ledger),
            losses: ledger.losses.as_deref().map(LossesLine::from),
        }
    }
}

impl BookedTerminals {
    fn sizes(&self) -> impl Iterator<Item = &u64> {
        self.bytes_up.iter().chain(&self.bytes_down).chain(&self.bytes_sync)
    }

    fn new(ledger: &Ledger) -> Self {
        let mut columns = Self::default();
        for one in &ledger.terminals {
            columns.bandwidth_hz.push(one.bandwidth.0.into());
            columns.delay_s.push(one.delay.0.into());
            columns.energy_radio_j.push(one.energy_radio.0.into());
            columns.energy_compute_j.push(one.energy_compute.0.into());
            columns.bytes_up.push(one.bytes_up.0);
            columns.bytes_down.push(one.bytes_down.0);
            columns.bytes_sync.push(one.bytes_sync.0);
        }
        columns
    }
}

impl From<&[LossChange]> for LossesLine {
    fn from(changes: &[LossChange]) -> Self {
        Self {
            before: changes.iter().map(|one| one.before.into()).collect(),
            after: changes.iter().map(|one| one.after.into()).collect(),
        }
    }
}
