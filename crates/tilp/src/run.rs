//! The loop: sense, decide, execute, learn, record. It reads like Algorithm 1 of the paper.

use std::borrow::Cow;
use std::ops::ControlFlow;

use crate::round::{
    Cell, CellError, DecideError, Evaluator, Experimenter, Ledger, Observation, Outcome,
    RoundOrder, TerminalSuccess,
};
use crate::station::Station;

/// Everything about one executed round.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundRecord {
    /// What the base station saw.
    pub seen: Observation,
    /// What was executed.
    pub order: RoundOrder,
    /// What the base station observed of it.
    pub outcome: Outcome,
    /// Success per terminal on calibration episodes, if this round ended with a calibration.
    pub calibration: Option<Vec<TerminalSuccess>>,
    /// The experimenter's books; none for a cell without a known truth.
    pub books: Option<Ledger>,
}

impl RoundRecord {
    /// The experimenter's books; without them, what the base station measured.
    pub fn ledger(&self) -> Cow<'_, Ledger> {
        match &self.books {
            Some(books) => Cow::Borrowed(books),
            None => Cow::Owned(Ledger::as_measured(&self.order, &self.outcome)),
        }
    }
}

/// Why the loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// All rounds were executed.
    Finished,
    /// The observer asked to stop; the round in progress was completed.
    Asked,
    /// The next round would not fit inside the budget, or every terminal has used up its own.
    BudgetUsed,
}

/// Why the loop failed. The round in progress was not completed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LoopError {
    /// The method has no decision.
    #[error(transparent)]
    Decide(#[from] DecideError),
    /// The cell could not report, execute, or be evaluated.
    #[error(transparent)]
    Cell(#[from] CellError),
}

/// Watches a run and may ask to stop.
pub trait Observer<C: ?Sized> {
    /// A decision is about to be made.
    fn deciding(&mut self, _seen: &Observation) {}
    /// A decision was made and is about to be executed.
    fn decided(&mut self, _seen: &Observation, _order: &RoundOrder, _station: &Station) {}
    /// A round is complete. Cell and station are there to be saved, not to be changed.
    fn completed(&mut self, round: &RoundRecord, cell: &C, station: &Station) -> ControlFlow<()>;
}

/// Runs until round `last` is done, the observer asks to stop, or a role fails.
pub fn run<C: Cell + ?Sized>(
    cell: &mut C,
    station: &mut Station,
    evaluator: &mut dyn Evaluator,
    experimenter: &mut dyn Experimenter<C>,
    last: u64,
    observer: &mut dyn Observer<C>,
) -> Result<Stop, LoopError> {
    while station.round() <= last {
        let seen = station.observe(&cell.sense()?);
        if seen.budget.is_some() && seen.terminals.is_empty() {
            return Ok(Stop::BudgetUsed);
        }
        if let Some(access) = station.oracle_access() {
            access.receive(&experimenter.reveal(cell, &access.question())?);
        }
        observer.deciding(&seen);
        let order = station.decide(&seen)?;
        if !experimenter.fits(cell, &order)? {
            return Ok(Stop::BudgetUsed);
        }
        observer.decided(&seen, &order, station);
        experimenter.before(cell, &order)?;
        let mut outcome = cell.execute(&order)?;
        let calibration = calibrate(cell, evaluator, &order)?;
        station.learn(&seen, &order.plan, &mut outcome, calibration.as_deref());
        let books = experimenter.after(cell, &order, calibration.as_deref())?;
        let round = RoundRecord { seen, order, outcome, calibration, books };
        if observer.completed(&round, cell, station).is_break() {
            return Ok(Stop::Asked);
        }
    }
    Ok(Stop::Finished)
}

/// Success on calibration episodes, if it is time.
fn calibrate<C: Cell + ?Sized>(
    cell: &mut C,
    evaluator: &mut dyn Evaluator,
    order: &RoundOrder,
) -> Result<Option<Vec<TerminalSuccess>>, CellError> {
    if !evaluator.is_due(order.round) {
        return Ok(None);
    }
    let model = cell.model()?;
    evaluator.evaluate(order.round, &order.terminals, &model).map(Some)
}
