//! Names that most programs with TiLP need: `use tilp::prelude::*;`
//!
//! Scenarios and the parts of a run, the traits of the roles, the types for a user-defined method, and
//! the prelude of the planner.

pub use crate::allocate::{Problem, ReferenceKnobs};
pub use crate::rng::Seed;
pub use crate::round::{Cell, Evaluator, Experimenter};
pub use crate::scenario::{
    Method, MethodInputs, Parts, Scenario, ScenarioError, assemble, method, methods,
};
pub use crate::snapshot::Persist;
pub use tilp_plan::prelude::*;
