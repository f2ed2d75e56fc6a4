//! The robots: what they see and do, demonstrations by an expert, success of a policy.
//!
//! A [`Suite`] describes the common properties of its robots. Each terminal has a [`Workcell`], in which a
//! [`Robot`] runs one episode at a time. [`demonstrate`] makes the scripted expert fill a
//! data set, [`rollout`] measures a policy; both know no suite.
//!
//! - [`tabletop`]: eight families of tasks for a gantry with two fingers, embedded;
//! - [`libero`]: LIBERO's ten tasks with objects, in MuJoCo; its worlds need the feature `mujoco`.

mod demonstrate;
mod episodes;
pub mod libero;
mod rollout;
mod scene;
mod suite;
pub mod tabletop;

pub use demonstrate::{Demonstrations, demonstrate, demonstrate_episodes};
pub use episodes::{EpisodeSet, Start};
pub use rollout::{Episode, Policy, rollout};
pub use scene::{Form, Part, Scene, Solid};
pub use suite::{Robot, Suite, Workcell};
