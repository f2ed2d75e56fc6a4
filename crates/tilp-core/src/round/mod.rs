//! The words of one round, and the roles that exchange them.
//!
//! A [`Cell`] reports what its terminals are and what their channels look like; the base station
//! turns that into an [`Observation`]; a method, an [`Allocator`], answers with a [`Decision`];
//! [`Limits::project`] makes it a [`ProjectedDecision`]; the cell executes it as a [`RoundOrder`]
//! and returns an [`Outcome`]. What really happened, measurement noise aside, stands in the
//! [`Ledger`], which only the experimenter of a simulated cell reads.

mod books;
mod budget;
mod decision;
mod observation;
mod oracle;
mod outcome;
mod rationale;
mod roles;

pub use books::{Ledger, LossChange, TerminalLedger, Violation};
pub use budget::{Budget, BudgetState, BudgetUse};
pub use decision::{
    DecideError, Decision, Limits, ProjectedDecision, RoundOrder, TerminalDecision, Tiers,
    TrainingPlan,
};
pub use observation::{
    MeasuredSuccess, Observation, SuccessCount, TerminalId, TerminalReport, TerminalView,
};
pub use oracle::{NetworkTruth, OracleAccess, Question, TrueHardware, Truth};
pub use outcome::{Outcome, TerminalOutcome, TerminalSuccess};
pub use rationale::{ExpectedRound, Rationale, Reason, TerminalRationale};
pub use roles::{Allocator, Cell, CellError, Evaluator, Experimenter, NoExperimenter};
