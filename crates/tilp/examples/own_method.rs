//! A method of one's own: one file, one line of registration. `cargo run --example own_method`
//!
//! The method takes the terminals in turn, as many as are predicted to make the deadline together.

use std::ops::ControlFlow;

use tilp::allocate::{Problem, ReferenceKnobs};
use tilp::round::{Allocator, Decision, Observation, World};
use tilp::run::{Recorder, RoundRecord, run};
use tilp::scenario::{Method, Parts, Scenario, ScenarioError, assemble};
use tilp::snapshot::Persist;

/// Everybody in turn.
struct Turns {
    problem: Problem,
    knobs: ReferenceKnobs,
}

/// Nothing to save: a turn follows from the number of the round.
impl Persist for Turns {}

impl Allocator for Turns {
    fn decide(&mut self, seen: &Observation) -> Decision {
        let n_terminals = seen.terminals.len();
        let first = (seen.round as usize - 1) * self.knobs.n_scheduled;
        let order: Vec<usize> = (0..n_terminals).map(|step| (first + step) % n_terminals).collect();
        self.problem.admit(seen, &order, &self.knobs)
    }
}

/// The registration.
const TURNS: Method = Method::own("turns", "everybody in turn", |kit| {
    Box::new(Turns { problem: kit.problem, knobs: kit.knobs })
});

/// Keeps who was scheduled and the training loss of every round.
#[derive(Default)]
pub struct Rounds(pub Vec<(Vec<usize>, Option<f64>)>);

impl Recorder for Rounds {
    fn record(&mut self, round: RoundRecord, _: &dyn World, _: &dyn Allocator) -> ControlFlow<()> {
        let scheduled = round.plan.decision().scheduled().collect();
        self.0.push((scheduled, round.done.outcome.loss));
        ControlFlow::Continue(())
    }
}

/// Runs the method on a scenario for some rounds.
pub fn rounds_of(scenario: &str, rounds: u64) -> Result<Rounds, ScenarioError> {
    let scenario = Scenario::load(scenario, &[])?;
    let Parts { mut world, mut allocator, limits, .. } =
        assemble(&scenario, TURNS, 0, None, &|_, _| {})?;
    let mut kept = Rounds::default();
    run(&mut world, &mut *allocator, &limits, rounds, &mut kept);
    Ok(kept)
}

/// Six rounds in a cell of six terminals.
pub fn main() -> Result<(), ScenarioError> {
    for (index, (scheduled, loss)) in rounds_of("tiny", 6)?.0.iter().enumerate() {
        println!("round {}: terminals {scheduled:?}, loss {loss:.4?}", index + 1);
    }
    Ok(())
}
