//! Execution of the runs of a study, several at a time.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use super::{Job, Outcome, Shard, StudyError, StudyFolder};
use crate::experiment::{Ended, RunError, RunSpec, Time, run_single};
use crate::record::{ProcessEvent, RecordError};
use crate::run::Observer;
use crate::scenario::Cache;

/// Makes the observer of a job, given its index in [`StudyFolder::jobs`]. Called from several
/// threads.
pub type Observers<'a> = dyn Fn(usize) -> Box<dyn Observer + 'a> + Sync + 'a;

/// How runs are executed.
pub struct Executor<'a> {
    /// Number of runs at a time.
    pub workers: usize,
    /// Threads of each run.
    pub threads: usize,
    /// The cache of demonstrations.
    pub cache: Option<&'a Cache>,
    /// Further entries of manifests: versions and host.
    pub about: Value,
    /// Rounds between checkpoints.
    pub checkpoint_every: u64,
}

/// Number of runs by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Complete, now or before.
    pub done: usize,
    /// Failed.
    pub failed: usize,
    /// Stopped with a checkpoint, not begun, or executed by another process.
    pub left: usize,
}

impl Executor<'_> {
    /// Executes the jobs of a shard that are not complete yet. A failed run is recorded and does
    /// not stop the others; an error is a folder that cannot be used.
    pub fn execute(
        &self,
        study: &StudyFolder,
        shard: Shard,
        time: &dyn Time,
        observers: &Observers<'_>,
    ) -> Result<Tally, StudyError> {
        let mine: Vec<usize> = (shard.index..study.jobs.len()).step_by(shard.count).collect();
        let next = AtomicUsize::new(0);
        let ended = Mutex::new(Ok(Tally::default()));
        let work = || {
            while let Some(&job) = mine.get(next.fetch_add(1, Ordering::Relaxed)) {
                let mut observer = observers(job);
                let result = if observer.asked_to_stop() {
                    Ok(Tally { left: 1, ..Tally::default() })
                } else {
                    self.job(study, job, time, &mut *observer)
                };
                let mut ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
                match (&mut *ended, result) {
                    (Ok(sum), Ok(one)) => *sum = sum.plus(one),
                    (Ok(_), Err(error)) => {
                        *ended = Err(error);
                        return;
                    }
                    (Err(_), _) => return,
                }
            }
        };
        let workers = self.workers.min(mine.len());
        std::thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
        ended.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn job(
        &self,
        study: &StudyFolder,
        index: usize,
        time: &dyn Time,
        observer: &mut dyn Observer,
    ) -> Result<Tally, StudyError> {
        let job = &study.jobs[index];
        if matches!(study.outcome(job)?, Outcome::Done(_)) {
            observer.process(&ProcessEvent::Kept);
            return Ok(Tally { done: 1, ..Tally::default() });
        }
        // A panic fails one run only. Its folder can be read up to the last complete round.
        let run = || self.run(study, job, time, &mut *observer);
        let ended = catch_unwind(AssertUnwindSafe(run));
        match ended {
            Ok(Ok(Ended::Finished(_))) => {
                study.forget_failure(job);
                Ok(Tally { done: 1, ..Tally::default() })
            }
            Ok(Ok(Ended::Interrupted(_))) => Ok(Tally { left: 1, ..Tally::default() }),
            Ok(Err(error)) if is_locked(&error) => {
                observer.process(&ProcessEvent::Locked);
                Ok(Tally { left: 1, ..Tally::default() })
            }
            Ok(Err(error)) => failed(study, job, &error.to_string(), observer),
            Err(panic) => failed(study, job, &message(&*panic), observer),
        }
    }

    fn run(
        &self,
        study: &StudyFolder,
        job: &Job,
        time: &dyn Time,
        observer: &mut dyn Observer,
    ) -> Result<Ended, StudyError> {
        let (folder, begun) = study.run_folder(job)?;
        let spec = RunSpec {
            scenario: job.scenario.clone(),
            method: job.method.clone(),
            seed: job.seed.seed,
            replicate: job.seed.replicate,
            checkpoint_every: self.checkpoint_every,
            planner_states: 0,
            about: self.about.clone(),
        };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(self.threads).build();
        let run = || run_single(&spec, folder, begun, self.cache, time, observer);
        // Without a thread pool of its own the run shares the global one.
        Ok(match pool {
            Ok(pool) => pool.install(run)?,
            Err(_) => run()?,
        })
    }
}

fn failed(
    study: &StudyFolder,
    job: &Job,
    reason: &str,
    observer: &mut dyn Observer,
) -> Result<Tally, StudyError> {
    study.note_failure(job, reason)?;
    observer.process(&ProcessEvent::Failed { reason });
    Ok(Tally { failed: 1, ..Tally::default() })
}

/// Whether another process executes the same run.
fn is_locked(error: &StudyError) -> bool {
    matches!(error, StudyError::Run(RunError::Record(RecordError::Locked { .. })))
}

impl Tally {
    fn plus(self, other: Self) -> Self {
        Self {
            done: self.done + other.done,
            failed: self.failed + other.failed,
            left: self.left + other.left,
        }
    }
}

/// The message of a panic, in one line.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (None, Some(text)) => text.as_str(),
        (None, None) => "no message",
    };
    format!("panicked: {}", text.lines().next().unwrap_or_default())
}
