//! A study: every method with every seed at every point of a question, one run each.
//!
//! A study is a fixed list of [`Job`]s, so that shards, restarts and machines agree on the jobs of
//! each and on their folders. Finished runs are not repeated; interrupted ones continue. Methods,
//! seeds, points and replicates can be added to a study.

mod check;
mod equal_budget;
mod execute;
mod finished;
mod folder;
mod grow;
mod kind;
mod questions;
mod report;
mod table;

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::record::n_far;
use crate::scenario::{Method, Registry, Scenario, ScenarioError, Seeds};

pub use check::folder_name;
pub use equal_budget::{BudgetKind, Budgets, Spent, equal_budgets};
pub use execute::{Executor, Observers, Tally};
use finished::LATENCY_STEP;
pub(super) use finished::Line;
pub use finished::{Finished, Sample};
pub use folder::{Outcome, RunResult, StudyError, StudyFolder, by_study, merged};
pub use kind::StudyKind;
pub use questions::{Axis, GROUPS, Question, ablations, comparison, sweep};
pub use report::{EVENT_COLUMNS, Report, Section};
pub(super) use report::{STYLE, escaped};
pub use table::{Episodes, METRICS, Metric, Pairing, RUN_COLUMNS, Row, TABLE_COLUMNS, Table};

/// What a study asks, as `study.json` has it: enough to know all its runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// What is asked.
    pub question: StudyKind,
    /// Name of the scenario that everything starts from.
    pub scenario: String,
    /// The points.
    pub points: Vec<PlannedPoint>,
    /// The method that the others are compared with.
    pub reference: Subject,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// Runs of every method and seed that differ in the order of minibatches only.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub replicates: u64,
}

fn one() -> u64 {
    1
}

fn is_one(replicates: &u64) -> bool {
    *replicates == 1
}

/// One point of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedPoint {
    /// What it is called in tables and folders.
    pub label: String,
    /// Overrides of the runs at this point.
    pub overrides: Vec<String>,
    /// Budgets that differ from seed to seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budgets: Option<Budgets>,
    /// Methods that run at this point.
    pub methods: Vec<String>,
}

/// A row of a table: a method at a point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Subject {
    /// Label of the point.
    pub point: String,
    /// Label of the method.
    pub method: String,
}

/// One run of a study.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its row in the tables.
    pub subject: Subject,
    /// The scenario with all overrides.
    pub scenario: Scenario,
    /// The method.
    pub method: Method,
    /// The seed and its replicate.
    pub seed: Seeds,
}

/// A share of a study: every `count`-th job from `index` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Its index, from zero.
    pub index: usize,
    /// Number of shards.
    pub count: usize,
}

impl Shard {
    /// The whole study.
    pub const WHOLE: Self = Self { index: 0, count: 1 };

    /// Reads `i/N`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').map(|(index, count)| (index.parse(), count.parse()));
        match numbers {
            Some((Ok(index), Ok(count))) if index < count => Ok(Self { index, count }),
            _ => Err(format!("shard is `{text}`, expected i/N with i from 0 to N - 1")),
        }
    }
}

impl Job {
    /// Its folder, relative to that of the study.
    pub fn folder(&self) -> PathBuf {
        let point = folder_name(&self.subject.point);
        let method = folder_name(&self.subject.method);
        let name = format!("{method}-{}", self.seed.folder());
        PathBuf::from("runs").join(point).join(name)
    }

    /// Number of its final episodes.
    pub fn episodes(&self) -> Episodes {
        let (n, each) = (self.scenario.n_terminals_at_end(), self.scenario.final_episodes());
        Episodes { all: (n * each) as u64, far: (n_far(n) * each) as u64 }
    }
}

impl PlannedPoint {
    /// The scenario of the point's runs with a seed; `None` if the point has budgets, but none for
    /// this seed.
    fn scenario_of(
        &self,
        scenario: &Scenario,
        seed: u64,
    ) -> Result<Option<Scenario>, ScenarioError> {
        match &self.budgets {
            None => Ok(Some(scenario.clone())),
            Some(budgets) => budgets.overrides(seed).map(|set| scenario.varied(&set)).transpose(),
        }
    }
}

impl Plan {
    /// All runs on variants of the scenario, seeds outermost: an interrupted study then has whole
    /// seeds, not whole methods.
    pub fn jobs(
        &self,
        scenario: &Scenario,
        registry: &Registry,
    ) -> Result<Vec<Job>, ScenarioError> {
        let mut points = Vec::new();
        for point in &self.points {
            let scenario = scenario.varied(&point.overrides)?;
            for label in &point.methods {
                let method = registry.method(label)?;
                method.training(&scenario)?; // checks that a fixed compression is within the limit
                points.push((point, scenario.clone(), method));
            }
        }
        let mut jobs = Vec::new();
        for &seed in &self.seeds {
            for replicate in 0..self.replicates {
                for (point, scenario, method) in &points {
                    let Some(scenario) = point.scenario_of(scenario, seed)? else { continue };
                    let subject =
                        Subject { point: point.label.clone(), method: method.name().to_owned() };
                    let seed = Seeds { seed, replicate };
                    jobs.push(Job { subject, scenario, method: method.clone(), seed });
                }
            }
        }
        Ok(jobs)
    }

    /// The plan as text of `study.json`.
    fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a plan is plain data") + "\n"
    }

    /// The rows of its tables, in order.
    pub fn subjects(&self) -> Vec<Subject> {
        let of = |point: &PlannedPoint| {
            let label = point.label.clone();
            let subject =
                move |method: &String| Subject { point: label.clone(), method: method.clone() };
            point.methods.iter().map(subject).collect::<Vec<_>>()
        };
        self.points.iter().flat_map(of).collect()
    }
}

#[cfg(test)]
mod tests;
