//! The loop: observe, decide, execute, learn, record. It reads like Algorithm 1 of the paper.

use std::ops::ControlFlow;

use crate::round::{Allocator, Executed, Feasible, Limits, Observation, World};

/// Everything about one executed round.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundRecord {
    /// What the base station saw.
    pub seen: Observation,
    /// What was executed.
    pub plan: Feasible,
    /// What came of it.
    pub done: Executed,
}

/// Why the loop ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stop {
    /// All rounds were executed.
    Finished,
    /// The recorder asked to stop; the round in progress was completed.
    Asked,
    /// The method decided on something that is no number; the round was not executed.
    NotANumber {
        /// The round.
        round: u64,
        /// The terminal.
        terminal: usize,
        /// What was decided.
        what: &'static str,
        /// On what.
        value: f64,
    },
}

/// Sees each round as it is completed, and may ask to stop.
pub trait Recorder {
    /// Takes one round. World and allocator are there to be saved, not to be changed.
    fn record(
        &mut self,
        round: RoundRecord,
        world: &dyn World,
        allocator: &dyn Allocator,
    ) -> ControlFlow<()>;
}

/// Runs until round `last` is done, the recorder asks to stop, or a decision is no number.
pub fn run(
    world: &mut dyn World,
    allocator: &mut dyn Allocator,
    limits: &Limits,
    last: u64,
    recorder: &mut dyn Recorder,
) -> Stop {
    loop {
        let seen = world.observe();
        if seen.round > last {
            return Stop::Finished;
        }
        if let Some(confidant) = allocator.confidant() {
            confidant.hear(&world.reveal(&confidant.question()));
        }
        let wanted = allocator.decide(&seen);
        if let Some((terminal, what, value)) = wanted.not_a_number() {
            return Stop::NotANumber { round: seen.round, terminal, what, value };
        }
        let plan = limits.project(wanted).conducted(allocator.conduct());
        let done = world.execute(&plan);
        allocator.learn(&seen, &plan, &done.outcome);
        let round = RoundRecord { seen, plan, done };
        if recorder.record(round, &*world, &*allocator).is_break() {
            return Stop::Asked;
        }
    }
}
