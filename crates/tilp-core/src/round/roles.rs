//! The roles that exchange the words of a round. What passes between them could cross a wire.

use super::{
    DecideError, Decision, Ledger, Observation, OracleAccess, Outcome, ProjectedDecision, Question,
    Rationale, RoundOrder, TerminalId, TerminalReport, TerminalSuccess, Truth,
};
use crate::snapshot::Persist;

/// The physical side: terminals, the air between, and the server half beside the base station. A
/// simulation, a recorded run and real machines are three cells for the same base station.
pub trait Cell {
    /// Reports of the terminals that are present, in the order of their ids.
    fn sense(&mut self) -> Result<Vec<TerminalReport>, CellError>;
    /// Executes one round. The outcome has an entry for each terminal of the order; its success
    /// is empty.
    fn execute(&mut self, order: &RoundOrder) -> Result<Outcome, CellError>;
    /// The model that an aggregation of all copies would give, as the bytes of a
    /// [`LayerWeights`](crate::message::LayerWeights) message. Nothing changes by it.
    fn model(&mut self) -> Result<Vec<u8>, CellError>;
}

/// Runs calibration episodes of a model and counts successes per terminal.
pub trait Evaluator {
    /// Whether success is measured for calibration at the end of this round.
    fn is_due(&self, round: u64) -> bool;
    /// Success of the model on the calibration episodes of this round.
    fn evaluate(
        &mut self,
        round: u64,
        terminals: &[TerminalId],
        model: &[u8],
    ) -> Result<Vec<TerminalSuccess>, CellError>;
}

/// A method that decides.
pub trait Allocator: Persist {
    /// The decision for the round seen, its training plan included.
    fn decide(&mut self, seen: &Observation) -> Result<Decision, DecideError>;
    /// What it says about the decision made last, for the round seen; none if it has no reasons to
    /// give. Asking changes nothing.
    fn rationale(&self, _seen: &Observation) -> Option<Rationale> {
        None
    }
    /// Learns from the observed outcome of the executed round.
    fn learn(&mut self, _seen: &Observation, _plan: &ProjectedDecision, _outcome: &Outcome) {}
    /// An error if the method failed while it learned. The loop asks before the round counts as
    /// done.
    fn check(&self) -> Result<(), DecideError> {
        Ok(())
    }
    /// The way in for the truth. Every method but `oracle` and `clairvoyant` leaves it closed; a
    /// test of the source text checks it.
    fn oracle_access(&mut self) -> Option<&mut dyn OracleAccess> {
        None
    }
}

/// Stands around a simulated cell and knows its hidden truth. A real cell has none: see
/// [`NoExperimenter`].
pub trait Experimenter<C: ?Sized> {
    /// What is hidden before the next round. The loop asks on behalf of an [`OracleAccess`] only;
    /// asking leaves no trace in the cell.
    fn reveal(&mut self, cell: &mut C, question: &Question) -> Result<Truth, CellError>;
    /// Whether the order fits into the rest of the true budget. If it does not, the run ends
    /// with the round before.
    fn fits(&mut self, _cell: &mut C, _order: &RoundOrder) -> Result<bool, CellError> {
        Ok(true)
    }
    /// Looks at the cell before a round is executed.
    fn before(&mut self, cell: &mut C, order: &RoundOrder) -> Result<(), CellError>;
    /// The books of the round that was just executed; none for a cell without a known truth.
    fn after(
        &mut self,
        cell: &mut C,
        order: &RoundOrder,
        calibration: Option<&[TerminalSuccess]>,
    ) -> Result<Option<Ledger>, CellError>;
}

/// The experimenter of a real cell, whose hidden truth is unknown.
pub struct NoExperimenter;

impl<C: ?Sized> Experimenter<C> for NoExperimenter {
    fn reveal(&mut self, _: &mut C, _: &Question) -> Result<Truth, CellError> {
        Ok(Truth::default())
    }

    fn before(&mut self, _: &mut C, _: &RoundOrder) -> Result<(), CellError> {
        Ok(())
    }

    fn after(
        &mut self,
        _: &mut C,
        _: &RoundOrder,
        _: Option<&[TerminalSuccess]>,
    ) -> Result<Option<Ledger>, CellError> {
        Ok(None)
    }
}

/// Why a cell could not report, execute a round, or give its model.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CellError {
    /// The order names a terminal that is not there.
    #[error("round {round}: terminal {terminal} is not in the cell")]
    UnknownTerminal {
        /// The round.
        round: u64,
        /// The terminal.
        terminal: TerminalId,
    },
    /// The order is for another round than the cell's next one.
    #[error("the order is for round {found}, expected round {expected}")]
    Round {
        /// Round of the order.
        found: u64,
        /// The cell's next round.
        expected: u64,
    },
    /// A recorded cell was ordered to do something else than was recorded.
    #[error("round {round}: the record holds another decision for terminal {terminal}")]
    NotRecorded {
        /// The round.
        round: u64,
        /// The first terminal whose decision differs.
        terminal: TerminalId,
    },
    /// The record has no further round.
    #[error("the record ends before round {round}")]
    RecordEnds {
        /// The round asked for.
        round: u64,
    },
    /// A recorded cell has no model.
    #[error("a recorded cell has no model")]
    NoModel,
    /// Training failed: a message could not be read, or a terminal could not be reached.
    #[error("round {round}: training failed: {reason}")]
    Training {
        /// The round.
        round: u64,
        /// Why.
        reason: String,
    },
    /// A model could not be read.
    #[error("the model cannot be read: {0}")]
    Model(String),
}
