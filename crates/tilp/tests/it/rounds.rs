//! Rounds of a simulated cell, one by one or many, with their records.

use tilp::record::Event;
use tilp::round::{
    Cell, Experimenter, Ledger, Observation, ProjectedDecision, Question, RoundOrder, Truth,
};
use tilp::run::{Observer, RoundRecord, Stop, round};
use tilp::scenario::Parts;

/// Keeps every round and every event; stops after the given round.
#[derive(Default)]
pub struct Keep {
    pub rounds: Vec<RoundRecord>,
    pub events: Vec<Event>,
    pub stop_after: Option<u64>,
}

impl Observer for Keep {
    fn event(&mut self, event: &Event) {
        self.events.push(event.clone());
    }
}

/// Runs round by round until round `last` is done or it is time to stop.
pub fn go_on(parts: &mut Parts, last: u64, keep: &mut Keep) -> Stop {
    let Parts { cell, station, evaluator, laboratory, .. } = parts;
    while station.round() <= last {
        let record = round(cell, station, evaluator, laboratory, keep);
        let Some(record) = record.expect("every role does its part") else {
            return Stop::BudgetUsed;
        };
        let stops = Some(record.seen.round) == keep.stop_after;
        keep.rounds.push(record);
        if stops {
            return Stop::Asked;
        }
    }
    Stop::Finished
}

/// The records of the rounds from the next one to `last`.
pub fn until(parts: &mut Parts, last: u64) -> Vec<RoundRecord> {
    let mut keep = Keep::default();
    assert_eq!(go_on(parts, last, &mut keep), Stop::Finished);
    keep.rounds
}

/// The next round.
pub fn step(parts: &mut Parts) -> RoundRecord {
    let round = parts.station.round();
    until(parts, round).pop().expect("one round was executed")
}

/// What the base station sees before the next round.
pub fn observe(parts: &mut Parts) -> Observation {
    parts.station.observe(&parts.cell.sense().expect("a simulated cell reports"))
}

/// The answer of the experimenter before the next round.
pub fn reveal(parts: &mut Parts, question: &Question) -> Truth {
    parts.laboratory.reveal(&mut parts.cell, question).expect("a simulated cell has a truth")
}

/// The order of the base station for the next round with another plan in it.
pub fn order(parts: &mut Parts, plan: &ProjectedDecision) -> RoundOrder {
    let seen = observe(parts);
    let order = parts.station.decide(&seen).expect("the method decides");
    RoundOrder { plan: plan.clone(), ..order }
}

/// The next round with this plan instead of the method's. Success is not measured.
pub fn execute(parts: &mut Parts, plan: &ProjectedDecision) -> RoundRecord {
    let (seen, order) = (observe(parts), order(parts, plan));
    let Parts { cell, station, laboratory, .. } = parts;
    laboratory.before(cell, &order).expect("the experimenter looks at the cell");
    let mut outcome = cell.execute(&order).expect("the order is sound");
    station.learn(&seen, &order.plan, &mut outcome, None);
    let books = laboratory.after(cell, &order, None).expect("the experimenter keeps books");
    RoundRecord { seen, order, outcome, calibration: None, books }
}

/// The experimenter's books of a round.
pub fn books(round: &RoundRecord) -> &Ledger {
    round.books.as_ref().expect("the experimenter of a simulated cell keeps books")
}
