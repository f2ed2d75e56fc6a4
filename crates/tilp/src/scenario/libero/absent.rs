//! A program without MuJoCo: asking for LIBERO is an error that says what is missing.

use std::collections::BTreeMap;

use super::Camera;
use crate::rng::Seed;
use crate::scenario::{Scenario, ScenarioError};
use crate::tasks::Workcell;

/// Cannot be created without the feature `mujoco`.
pub(in crate::scenario) enum LiberoRoster {}

impl LiberoRoster {
    pub(in crate::scenario) fn draw(
        scenario: &Scenario,
        _tasks: Vec<usize>,
        _camera: Camera,
        _seed: Seed,
    ) -> Result<Self, ScenarioError> {
        Err(ScenarioError::Range {
            field: "tasks.suite".into(),
            value: "libero-object".into(),
            expected: "a program that is built with `--features mujoco`".into(),
            place: scenario.place.clone(),
        })
    }

    pub(in crate::scenario) fn tasks(&self) -> Vec<usize> {
        match *self {}
    }

    pub(in crate::scenario) fn cell(
        &self,
        _n: usize,
        _kg: f64,
    ) -> Result<Box<dyn Workcell>, ScenarioError> {
        match *self {}
    }

    pub(in crate::scenario) fn key(&self) -> String {
        match *self {}
    }

    pub(in crate::scenario) fn environment(&self) -> BTreeMap<String, String> {
        match *self {}
    }
}
