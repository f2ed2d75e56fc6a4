//! LIBERO's cells of a scenario: where the data are, and whether they are the expected ones.

use std::collections::BTreeMap;

use super::{Scenario, ScenarioError};
use crate::rng::Seed;
use crate::tasks::Workcell;

#[cfg(feature = "mujoco")]
mod loaded;
#[cfg(feature = "mujoco")]
pub(super) use loaded::LiberoRoster;

/// Nobody has one without the feature `mujoco`.
#[cfg(not(feature = "mujoco"))]
pub(super) enum LiberoRoster {}

#[cfg(not(feature = "mujoco"))]
impl LiberoRoster {
    pub(super) fn draw(
        scenario: &Scenario,
        _tasks: Vec<usize>,
        _share: f32,
        _seed: Seed,
    ) -> Result<Self, ScenarioError> {
        Err(ScenarioError::Range {
            field: "tasks.suite".into(),
            value: "libero-object".into(),
            expected: "a program that is built with `--features mujoco`".into(),
            place: scenario.place.clone(),
        })
    }

    pub(super) fn tasks(&self) -> Vec<usize> {
        match *self {}
    }

    pub(super) fn cell(&self, _n: usize, _kg: f64) -> Result<Box<dyn Workcell>, ScenarioError> {
        match *self {}
    }

    pub(super) fn key(&self) -> String {
        match *self {}
    }

    pub(super) fn environment(&self) -> BTreeMap<String, String> {
        match *self {}
    }
}
