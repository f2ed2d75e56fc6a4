//! The folder of a study: the plan, the scenario, and the runs.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::finished::kept;
use super::grow::scenarios_differ;
use super::{Episodes, Finished, Job, Plan, StudyKind, Subject, folder_name};
use crate::experiment::RunError;
use crate::experiment::open::declaration;
use crate::record::{RecordError, RunFolder, unique_name, write_beside};
use crate::scenario::{Method, Registry, Scenario, ScenarioError, Seeds};

pub(super) const PLAN: &str = "study.json";
pub(super) const SCENARIO: &str = "scenario.toml";

/// The folder of a study, or of a shard of it.
#[derive(Clone, Debug)]
pub struct StudyFolder {
    path: PathBuf,
    /// The plan.
    pub plan: Plan,
    /// The base scenario of all runs.
    pub scenario: Scenario,
    /// All runs, of all shards.
    pub jobs: Vec<Job>,
    /// Results of finished runs from `runs.jsonl`, by the index of their jobs.
    kept: Vec<Option<Finished>>,
}

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It is complete.
    Done(Box<Finished>),
    /// It failed, for this reason.
    Failed(String),
    /// It has not begun, or is not finished.
    Missing,
}

/// One run of a study and its outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct RunResult {
    /// The row it belongs to.
    pub subject: Subject,
    /// Its seed and replicate.
    pub seed: Seeds,
    /// Its outcome.
    pub outcome: Outcome,
    /// Its folder, relative to that of the study.
    pub folder: PathBuf,
    /// Number of its final episodes.
    pub episodes: Episodes,
}

/// Why a study cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// A file of the study.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A run of the study.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A point of the study.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The plan is invalid.
    #[error("{0}")]
    Plan(String),
    /// The folder holds something else.
    #[error("{path}: holds another study ({reason}), expected an empty folder or the same study")]
    Other {
        /// The folder.
        path: PathBuf,
        /// The difference.
        reason: String,
    },
    /// The folder holds no study.
    #[error("{path}: no `study.json`, expected the folder of a study")]
    Absent {
        /// The folder.
        path: PathBuf,
    },
}

impl StudyFolder {
    /// Begins a study, continues the same one, or extends it: methods, seeds, points and replicates
    /// of the same question on the same scenario are added to the existing ones.
    pub fn create(path: &Path, plan: Plan, scenario: &Scenario) -> Result<Self, StudyError> {
        Self::create_with(path, plan, scenario, &Registry::builtin())
    }

    /// The same with user-defined methods.
    pub fn create_with(
        path: &Path,
        plan: Plan,
        scenario: &Scenario,
        registry: &Registry,
    ) -> Result<Self, StudyError> {
        plan.jobs(scenario, registry)?; // everything in the plan exists
        plan.check(scenario, registry).map_err(StudyError::Plan)?;
        let files = [(SCENARIO.to_owned(), scenario.to_toml()), (PLAN.to_owned(), plan.to_json())];
        let other = |reason: String| StudyError::Other { path: path.to_owned(), reason };
        if !path.join(PLAN).exists() {
            if is_free(path, &files[0].1)? {
                appear(path, &files)?;
            } else if !path.join(PLAN).exists() {
                return Err(other("files without a study.json".into()));
            }
        }
        // Another shard may have begun the same study in the meantime, or another process another
        // one.
        let there = Self::open_with(path, registry)?;
        if !holds(path, &files[..1])? {
            let reason = scenarios_differ(&there.scenario, scenario);
            return Err(other(reason.unwrap_or_else(|| "scenario.toml has another form".into())));
        }
        let grown = there.plan.joined(&plan).map_err(other)?;
        if grown == there.plan {
            return Ok(there);
        }
        grown.check(scenario, registry).map_err(StudyError::Plan)?;
        appear(path, &[(PLAN.to_owned(), grown.to_json())])?;
        Self::open_with(path, registry)
    }

    /// Runs in a folder without a plan, which holds only their folders.
    pub fn of_jobs(path: &Path, scenario: &Scenario, jobs: Vec<Job>) -> Self {
        let plan = Plan {
            question: StudyKind::Compare,
            scenario: scenario.name().to_owned(),
            points: Vec::new(),
            reference: Subject { point: String::new(), method: String::new() },
            seeds: Vec::new(),
            replicates: 1,
        };
        let kept = vec![None; jobs.len()];
        Self { path: path.to_owned(), plan, scenario: scenario.clone(), jobs, kept }
    }

    /// The study in a folder.
    pub fn open(path: &Path) -> Result<Self, StudyError> {
        Self::open_with(path, &Registry::builtin())
    }

    /// The same with user-defined methods.
    pub fn open_with(path: &Path, registry: &Registry) -> Result<Self, StudyError> {
        let file = path.join(PLAN);
        let text = fs::read_to_string(&file).map_err(|error| match error.kind() {
            ErrorKind::NotFound => StudyError::Absent { path: path.to_owned() },
            _ => RecordError::io("read", &file)(error).into(),
        })?;
        let malformed = |reason: String| {
            StudyError::Record(RecordError::Malformed { path: file.clone(), reason })
        };
        let plan: Plan = serde_json::from_str(&text).map_err(|e| malformed(e.to_string()))?;
        let scenario = Scenario::load(&path.join(SCENARIO).display().to_string(), &[])?;
        let registry = &recorded_too(path, &plan, registry);
        plan.check(&scenario, registry).map_err(malformed)?;
        let jobs = plan.jobs(&scenario, registry)?;
        let kept = kept(path, &jobs)?;
        Ok(Self { path: path.to_owned(), plan, scenario, jobs, kept })
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The base scenario of all runs, as TOML.
    pub fn scenario_text(&self) -> Result<String, StudyError> {
        let path = self.path.join(SCENARIO);
        Ok(fs::read_to_string(&path).map_err(RecordError::io("read", &path))?)
    }

    /// The outcome of a run.
    pub fn outcome(&self, job: &Job) -> Result<Outcome, StudyError> {
        let path = self.path.join(job.folder());
        if let Some(folder) = begun(&path, job)? {
            match Finished::of(&folder) {
                Ok(finished) => {
                    check_subject(&folder, job)?;
                    return Ok(Outcome::Done(Box::new(finished)));
                }
                Err(RecordError::Absent { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if let Some(finished) = self.kept(job) {
            return Ok(Outcome::Done(Box::new(finished.clone())));
        }
        Ok(match fs::read_to_string(note(&path)) {
            Ok(text) => {
                let note: Value = serde_json::from_str(&text).unwrap_or_default();
                let reason = note["reason"].as_str().unwrap_or("no reason given");
                Outcome::Failed(reason.to_owned())
            }
            Err(_) => Outcome::Missing,
        })
    }

    fn kept(&self, job: &Job) -> Option<&Finished> {
        let same = |other: &&Job| other.subject == job.subject && other.seed == job.seed;
        let at = self.jobs.iter().position(|other| same(&other))?;
        self.kept[at].as_ref()
    }

    /// Writes a note beside the folder of a run on why it failed.
    pub(super) fn note_failure(&self, job: &Job, reason: &str) -> Result<(), RecordError> {
        let path = note(&self.path.join(job.folder()));
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
        write_beside(folder, &[(name.to_string_lossy().into_owned(), note_text(reason))])
    }

    /// Removes such a note.
    pub(super) fn forget_failure(&self, job: &Job) {
        let _ = fs::remove_file(note(&self.path.join(job.folder())));
    }

    /// The folder of a run, and whether it has begun.
    pub(super) fn run_folder(&self, job: &Job) -> Result<(RunFolder, bool), StudyError> {
        let path = self.path.join(job.folder());
        Ok(match begun(&path, job)? {
            Some(folder) => (folder, true),
            None => (RunFolder::create(&path)?, false),
        })
    }
}

/// A registry with the methods of a plan that are known from the runs of the study only: those with
/// a declaration in the manifest.
fn recorded_too(path: &Path, plan: &Plan, registry: &Registry) -> Registry {
    let mut registry = registry.clone();
    for Subject { point, method } in plan.subjects() {
        if registry.method(&method).is_ok() {
            continue;
        }
        let runs = path.join("runs").join(folder_name(&point));
        let entries = fs::read_dir(runs).into_iter().flatten().flatten();
        let of_run = |entry: fs::DirEntry| {
            let manifest = RunFolder::open(&entry.path()).ok()?.read_manifest().ok()?;
            declaration(&manifest).ok().flatten().filter(|_| manifest["method"] == json!(method))
        };
        if let Some(declared) = entries.into_iter().find_map(of_run) {
            // An invalid name is refused with the plan.
            let _ = registry.add(Method::recorded(&method, declared));
        }
    }
    registry
}

/// Whether a folder holds these files with the same content.
fn holds(path: &Path, files: &[(String, String)]) -> Result<bool, RecordError> {
    for (name, text) in files {
        let file = path.join(name);
        match fs::read(&file) {
            Ok(found) if found == text.as_bytes() => {}
            Err(error)
                if ![ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&error.kind()) =>
            {
                return Err(RecordError::io("read", &file)(error));
            }
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// Whether a study may begin in a folder. Files that another shard is writing there are hidden or
/// are the same scenario; a different scenario belongs to the user.
fn is_free(path: &Path, scenario: &str) -> Result<bool, RecordError> {
    let is_ours = |entry: &fs::DirEntry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_same = || fs::read(entry.path()).is_ok_and(|found| found == scenario.as_bytes());
        name.starts_with('.') || name == SCENARIO && is_same()
    };
    match fs::read_dir(path) {
        Ok(entries) => Ok(entries.flatten().all(|entry| is_ours(&entry))),
        Err(error) => match error.kind() {
            ErrorKind::NotFound => Ok(true),
            ErrorKind::NotADirectory => Ok(false),
            _ => Err(RecordError::io("read", path)(error)),
        },
    }
}

/// Writes files that other shards may be writing at the same time, with the same content: each
/// under a unique name first, then renamed.
fn appear(path: &Path, files: &[(String, String)]) -> Result<(), RecordError> {
    fs::create_dir_all(path).map_err(RecordError::io("create", path))?;
    for (name, text) in files {
        let (file, part) = (path.join(name), path.join(unique_name(name)));
        fs::write(&part, text).map_err(RecordError::io("write", &part))?;
        fs::rename(&part, &file).map_err(RecordError::io("create", &file))?;
    }
    Ok(())
}

/// The text of the note on a failed run.
pub(super) fn note_text(reason: &str) -> String {
    serde_json::to_string_pretty(&json!({ "reason": reason })).unwrap_or_default() + "\n"
}

/// The path of the note on a failed run: beside the run folder.
pub(super) fn note(run: &Path) -> PathBuf {
    let name = run.file_name().map(|name| name.to_string_lossy().into_owned());
    run.with_file_name(format!("{}.failed.json", name.unwrap_or_default()))
}

/// The folder of a run that has begun. A run of the same name must have the same scenario: a study
/// must not mix the runs of two.
fn begun(path: &Path, job: &Job) -> Result<Option<RunFolder>, RecordError> {
    let folder = match RunFolder::open(path) {
        Ok(folder) => folder,
        Err(RecordError::Absent { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let manifest = folder.read_manifest()?;
    let hash = job.scenario.hash();
    if manifest["scenario_hash"] == json!(hash) {
        return Ok(Some(folder));
    }
    let reason = format!("scenario_hash is {}, expected {hash}", manifest["scenario_hash"]);
    Err(RecordError::Malformed { path: folder.path().join("manifest.json"), reason })
}

/// A finished run must have the method and the seed in the name of its folder: a copy under another
/// name would count twice. An unfinished run is checked by its checkpoint.
fn check_subject(folder: &RunFolder, job: &Job) -> Result<(), RecordError> {
    let manifest = folder.read_manifest()?;
    let Seeds { seed, replicate } = job.seed;
    let replicate = if replicate > 0 { json!(replicate) } else { Value::Null };
    for (field, expected) in
        [("method", json!(job.method.name())), ("seed", json!(seed)), ("replicate", replicate)]
    {
        if manifest[field] != expected {
            let reason = format!("{field} is {}, expected {expected}", manifest[field]);
            return Err(RecordError::Malformed {
                path: folder.path().join("manifest.json"),
                reason,
            });
        }
    }
    Ok(())
}

/// Groups the folders by study, in the order in which they are given.
pub fn by_study(folders: &[StudyFolder]) -> Vec<Vec<&StudyFolder>> {
    let scenario = |folder: &StudyFolder| fs::read(folder.path.join(SCENARIO)).ok();
    let same = |a: &StudyFolder, b: &StudyFolder| a.plan == b.plan && scenario(a) == scenario(b);
    let mut studies: Vec<Vec<&StudyFolder>> = Vec::new();
    for folder in folders {
        match studies.iter_mut().find(|study| same(study[0], folder)) {
            Some(study) => study.push(folder),
            None => studies.push(vec![folder]),
        }
    }
    studies
}

/// The runs of one study from the folders of its shards. A run is complete if it is complete in any
/// of them.
pub fn merged(shards: &[&StudyFolder]) -> Result<Vec<RunResult>, StudyError> {
    let result = |job: &Job| {
        let mut outcome = Outcome::Missing;
        for folder in shards {
            let found = folder.outcome(job)?;
            let better = match &outcome {
                Outcome::Done(_) => false,
                Outcome::Failed(_) => matches!(found, Outcome::Done(_)),
                Outcome::Missing => true,
            };
            if better {
                outcome = found;
            }
        }
        Ok(RunResult {
            subject: job.subject.clone(),
            seed: job.seed,
            outcome,
            folder: job.folder(),
            episodes: job.episodes(),
        })
    };
    shards.first().map_or(Ok(Vec::new()), |first| first.jobs.iter().map(result).collect())
}
