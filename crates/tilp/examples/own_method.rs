//! A user-defined method: one file, one line of registration. `cargo run -p tilp --example own_method`
//!
//! The method takes the terminals in turn, as many as are predicted to make the deadline together.

use tilp::allocate::{Problem, ReferenceKnobs};
use tilp::experiment::RunError;
use tilp::record::Event;
use tilp::round::{Allocator, DecideError, Decision, Observation};
use tilp::run::{Observer, run};
use tilp::scenario::{Method, Parts, Scenario, assemble};
use tilp::snapshot::Persist;

/// All terminals in turn.
struct Turns {
    problem: Problem,
    knobs: ReferenceKnobs,
}

/// Nothing to save: a turn follows from the number of the round.
impl Persist for Turns {}

impl Allocator for Turns {
    fn decide(&mut self, seen: &Observation) -> Result<Decision, DecideError> {
        let n_terminals = seen.terminals.len();
        let first = (seen.round as usize - 1) * self.knobs.n_scheduled;
        let order: Vec<usize> = (0..n_terminals).map(|step| (first + step) % n_terminals).collect();
        Ok(self.problem.admit(seen, &order, &self.knobs))
    }
}

/// The method under a name; `n_scheduled` terminals at most take part in a round.
///
/// The closure captures what the method needs. `registry.add(turns(2))` puts it beside the methods
/// of the library, and [`assemble`] takes it directly.
pub fn turns(n_scheduled: usize) -> Method {
    Method::own(format!("turns-{n_scheduled}"), "all terminals in turn", move |inputs| {
        let knobs = ReferenceKnobs { n_scheduled, ..inputs.knobs };
        Box::new(Turns { problem: inputs.problem, knobs })
    })
}

/// Keeps the scheduled terminals and the training loss of every round.
#[derive(Default)]
pub struct Rounds(pub Vec<(Vec<usize>, Option<f64>)>);

impl Observer for Rounds {
    fn event(&mut self, event: &Event) {
        match event {
            Event::Decided(decided) => {
                let ids = decided.scheduled().map(|id| id as usize);
                self.0.push((ids.collect(), None));
            }
            Event::Executed(executed) => {
                let loss = executed.loss.map(|loss| loss.value());
                self.0.last_mut().expect("a round is decided first").1 = loss;
            }
            _ => {}
        }
    }
}

/// Runs the method on a scenario for some rounds.
pub fn rounds_of(scenario: &str, rounds: u64) -> Result<Rounds, RunError> {
    let scenario = Scenario::load(scenario, &[])?;
    let Parts { mut cell, mut station, mut evaluator, mut laboratory, .. } =
        assemble(&scenario, turns(3), 0, None, &|_, _| {})?;
    let mut kept = Rounds::default();
    run(&mut cell, &mut station, &mut evaluator, &mut laboratory, rounds, &mut kept)?;
    Ok(kept)
}

/// Six rounds in a cell of six terminals.
pub fn main() -> Result<(), RunError> {
    for (index, (scheduled, loss)) in rounds_of("tiny", 6)?.0.iter().enumerate() {
        println!("round {}: terminals {scheduled:?}, loss {loss:.4?}", index + 1);
    }
    Ok(())
}
