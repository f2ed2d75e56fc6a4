//! The loop: sense, decide, execute, learn, record. It reads like Algorithm 1 of the paper.

use crate::record::event::{Decided, Executed, Measurement};
use crate::record::{Event, EventId, ProcessEvent};
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

/// Reads the stream of a run during the run, and may ask to stop. The files of a run folder, the
/// progress on a screen and callbacks are observers.
pub trait Observer: Send {
    /// Something happened in the run. Events come in the order of their ids, each once.
    fn event(&mut self, _event: &Event) {}
    /// Something happened to the process that does the run.
    fn process(&mut self, _event: &ProcessEvent<'_>) {}
    /// All events of a round were given.
    fn completed(&mut self, _round: u64) {}
    /// Whether to stop before the next round.
    fn asked_to_stop(&self) -> bool {
        false
    }
}

/// An observer that does nothing.
impl Observer for () {}

/// Runs until round `last` is done, the observer asks to stop, or a role fails.
pub fn run<C: Cell + ?Sized>(
    cell: &mut C,
    station: &mut Station,
    evaluator: &mut dyn Evaluator,
    experimenter: &mut dyn Experimenter<C>,
    last: u64,
    observer: &mut dyn Observer,
) -> Result<Stop, LoopError> {
    while station.round() <= last && !station.has_ended() {
        let done = round(cell, station, evaluator, experimenter, observer)?;
        if done.is_none() {
            station.end();
            break;
        }
        if observer.asked_to_stop() {
            return Ok(Stop::Asked);
        }
    }
    Ok(if station.has_ended() { Stop::BudgetUsed } else { Stop::Finished })
}

/// One round; none if the budget does not allow it. Nothing was executed then.
pub fn round<C: Cell + ?Sized>(
    cell: &mut C,
    station: &mut Station,
    evaluator: &mut dyn Evaluator,
    experimenter: &mut dyn Experimenter<C>,
    observer: &mut dyn Observer,
) -> Result<Option<RoundRecord>, LoopError> {
    let seen = station.observe(&cell.sense()?);
    if seen.budget.is_some() && seen.terminals.is_empty() {
        return Ok(None);
    }
    if let Some(access) = station.oracle_access() {
        access.receive(&experimenter.reveal(cell, &access.question())?);
    }
    observer.process(&ProcessEvent::Deciding { round: seen.round });
    let order = station.decide(&seen)?;
    if !experimenter.fits(cell, &order)? {
        return Ok(None);
    }
    observer.process(&ProcessEvent::Decided { round: seen.round });
    observer.event(&decided(&seen, &order, station));
    experimenter.before(cell, &order)?;
    let mut outcome = cell.execute(&order)?;
    let calibration = calibrate(cell, evaluator, &order)?;
    station.learn(&seen, &order.plan, &mut outcome, calibration.as_deref());
    station.method().check()?;
    let books = experimenter.after(cell, &order, calibration.as_deref())?;
    let record = RoundRecord { seen, order, outcome, calibration, books };
    record.events().iter().for_each(|event| observer.event(event));
    observer.completed(record.order.round);
    Ok(Some(record))
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

/// The first event of a round.
fn decided(seen: &Observation, order: &RoundOrder, station: &Station) -> Event {
    let (id, rationale) = (EventId(seen.round, 0), station.rationale(seen));
    Event::Decided(Box::new(Decided::new(id, seen, order, rationale.as_ref())))
}

impl RoundRecord {
    /// The events of the round, from its execution on.
    fn events(&self) -> Vec<Event> {
        let (mut id, books) = (EventId(self.order.round, 1), self.books.as_ref());
        let mut events = vec![Event::Executed(Box::new(Executed::new(id, &self.outcome, books)))];
        if let Some(counts) = &self.calibration {
            id = id.next();
            events.push(Event::Calibrated(Measurement::new(id, counts)));
        }
        if let Some(counts) = books.and_then(|books| books.report.as_ref()) {
            id = id.next();
            events.push(Event::Measured(Measurement::new(id, counts)));
        }
        events
    }
}
