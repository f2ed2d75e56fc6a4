//! Learning by a law instead of tensors and robots, for models that do not run here.
//!
//! Sizes and work per cut come from tables; radio, hardware, timing and billing are those of
//! [`world`](crate::world). Only learning is different: [`Law`] gives losses and success from the
//! used samples, with hidden parameters; [`LawLearner`] keeps the copies of the layers as the
//! split-learning engine does; [`LawExaminer`] draws episodes. `docs/explain/law.md` explains the
//! law.

mod copies;
mod examiner;
mod law;
mod learner;
mod persist;

#[cfg(test)]
mod tests;

pub use examiner::{LawEvaluator, LawExaminer};
pub use law::{Law, LawRanges, Members};
pub use learner::LawLearner;
