//! The health of a scenario: whether it distinguishes good decisions from bad ones.
//!
//! Every criterion is measured on tuning seeds, with reference rules and published methods only.
//! Criteria that need whole runs use ordinary runs in one folder, which are kept. An examination
//! can therefore be done in parts, several at a time, and continues after a stop.

mod allocation;
mod criteria;
mod participation;
mod robots;
mod runs;

pub use allocation::{AllocationRow, allocation_rows};
pub use criteria::{Criterion, Finding, as_markdown};
pub use participation::{Setting, SettingRow, settings};
pub use robots::{CutSizes, Health, health};

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::study::{Job, StudyError, StudyFolder};
use crate::record::{RecordError, write_beside};
use crate::scenario::{Cache, Scenario, ScenarioError};

/// The scope of an examination.
#[derive(Clone, Debug)]
pub struct Examination {
    /// The scenario.
    pub scenario: Scenario,
    /// The criteria, in the order of measurement.
    pub criteria: Vec<Criterion>,
    /// Tuning seeds. Criteria that need fewer take the first.
    pub seeds: Vec<u64>,
    /// Steps of centralised training; 0 leaves it out.
    pub steps: usize,
    /// A first look: at most 100 rounds, few seeds, replicates and episodes. Its verdicts have no
    /// meaning.
    pub quick: bool,
}

/// The file of the findings.
const FOUND: &str = "health.json";

/// The findings so far, as in `health.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    /// Name of the scenario.
    pub scenario: String,
    /// Its version.
    pub version: u32,
    /// Hash of the complete scenario.
    pub hash: String,
    /// Whether it was a first look.
    pub quick: bool,
    /// One entry per criterion, in the order of [`Criterion::ALL`].
    pub criteria: Vec<Finding>,
}

impl Examination {
    /// The default folder of an examination; every scenario has a different one.
    pub fn usual_folder(&self) -> PathBuf {
        let quick = if self.quick { "-quick" } else { "" };
        let name: String = (self.scenario.name().chars())
            .map(|c| if c.is_alphanumeric() || "-_+.".contains(c) { c } else { '_' })
            .collect();
        PathBuf::from(format!("studies/health-{name}-{}{quick}", &self.scenario.hash()[..8]))
    }

    /// The runs that the criteria need, in one folder. Those of [`Examination::timed`] are
    /// separate.
    pub fn study(&self, folder: &Path) -> Result<StudyFolder, ScenarioError> {
        let mut jobs: Vec<Job> = Vec::new();
        for criterion in &self.criteria {
            for job in self.jobs_of(*criterion)? {
                let same = |other: &Job| other.folder() == job.folder();
                if !jobs.iter().any(same) {
                    jobs.push(job);
                }
            }
        }
        // Ordered by seed: an interrupted examination has whole seeds.
        jobs.sort_by_key(|job| job.seed);
        Ok(StudyFolder::of_jobs(folder, &self.scenario, jobs))
    }

    /// The runs whose wall time is judged. They are done one at a time, each on all threads.
    pub fn timed(&self, folder: &Path) -> Result<StudyFolder, ScenarioError> {
        let jobs = match self.criteria.contains(&Criterion::Cost) {
            true => self.timed_jobs()?,
            false => Vec::new(),
        };
        Ok(StudyFolder::of_jobs(folder, &self.scenario, jobs))
    }

    /// Measures the criteria with the complete runs, and adds the findings to the earlier ones.
    pub fn measure(
        &self,
        folder: &Path,
        cache: Option<&Cache>,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Findings, StudyError> {
        let study = self.study(folder)?;
        let timed = self.timed(folder)?;
        let mut findings = self.before(folder)?;
        for criterion in &self.criteria {
            let found = self.finding(*criterion, &study, &timed, cache, progress)?;
            findings.criteria.retain(|one| one.criterion != criterion.name());
            findings.criteria.push(found);
        }
        let place =
            |one: &Finding| Criterion::ALL.iter().position(|(name, _)| *name == one.criterion);
        findings.criteria.sort_by_key(place);
        let json = serde_json::to_string_pretty(&findings).expect("findings are plain data") + "\n";
        let files = [(FOUND.to_owned(), json), ("health.md".to_owned(), as_markdown(&findings))];
        write_beside(folder, &files)?;
        Ok(findings)
    }

    /// The earlier findings in the same folder, on the same scenario.
    fn before(&self, folder: &Path) -> Result<Findings, StudyError> {
        let fresh = Findings {
            scenario: self.scenario.name().to_owned(),
            version: self.scenario.version(),
            hash: self.scenario.hash(),
            quick: self.quick,
            criteria: Vec::new(),
        };
        let path = folder.join(FOUND);
        let Ok(text) = std::fs::read_to_string(&path) else { return Ok(fresh) };
        let malformed = |reason: String| RecordError::Malformed { path: path.clone(), reason };
        let before: Findings =
            serde_json::from_str(&text).map_err(|error| malformed(error.to_string()))?;
        if before.hash != fresh.hash || before.quick != fresh.quick {
            let reason = format!("hash is {}, expected {}", before.hash, fresh.hash);
            return Err(malformed(reason).into());
        }
        Ok(before)
    }
}
