//! Doing the runs of a study, several at a time.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use super::{Job, Outcome, Shard, StudyError, StudyFolder};
use crate::experiment::{Ended, RunSpec, Time, Watcher, run_single};
use crate::record::{RoundRow, Summary};
use crate::scenario::Cache;

/// Something happened to a job, named by its place in [`StudyFolder::jobs`].
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// It was complete before.
    Kept,
    /// It begins or goes on.
    Begun,
    /// A round is done, of so many.
    Round(&'a RoundRow, u64),
    /// It is complete.
    Done(&'a Summary),
    /// It failed.
    Failed(&'a str),
    /// It was asked to stop and holds a checkpoint.
    Stopped,
}

/// Who watches a study: shows progress, tells the time, asks to stop. Called from several threads.
pub trait Host: Sync {
    /// Something happened to a job.
    fn happened(&self, job: usize, event: Event<'_>);
    /// Whether to stop after the rounds in progress.
    fn asked_to_stop(&self) -> bool;
    /// What time it is.
    fn time(&self) -> &dyn Time;
}

/// How runs are done.
pub struct Executor<'a> {
    /// Runs at a time.
    pub workers: usize,
    /// Threads of each.
    pub threads: usize,
    /// Demonstrations made before.
    pub cache: Option<&'a Cache>,
    /// What manifests say besides: versions and host.
    pub about: Value,
    /// Rounds between checkpoints.
    pub checkpoint_every: u64,
}

/// How many runs ended how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Complete, now or before.
    pub done: usize,
    /// Failed.
    pub failed: usize,
    /// Stopped with a checkpoint, or not begun.
    pub left: usize,
}

impl Executor<'_> {
    /// Does the jobs of a shard that are not complete yet. A run that fails is noted and does not
    /// stop the others; an error is a folder that cannot be used.
    pub fn execute(
        &self,
        study: &StudyFolder,
        shard: Shard,
        host: &dyn Host,
    ) -> Result<Tally, StudyError> {
        let mine: Vec<usize> = (shard.index..study.jobs.len()).step_by(shard.count).collect();
        let next = AtomicUsize::new(0);
        let ended = Mutex::new(Ok(Tally::default()));
        let work = || {
            while let Some(&job) = mine.get(next.fetch_add(1, Ordering::Relaxed)) {
                let result = if host.asked_to_stop() {
                    Ok(Tally { left: 1, ..Tally::default() })
                } else {
                    self.job(study, job, host)
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

    fn job(&self, study: &StudyFolder, index: usize, host: &dyn Host) -> Result<Tally, StudyError> {
        let job = &study.jobs[index];
        if matches!(study.outcome(job)?, Outcome::Done(_)) {
            host.happened(index, Event::Kept);
            return Ok(Tally { done: 1, ..Tally::default() });
        }
        host.happened(index, Event::Begun);
        let watcher = Watched { host, index };
        // A panic is the failure of one run. What it leaves behind is its folder, which holds whole
        // files only.
        let ended = catch_unwind(AssertUnwindSafe(|| self.run(study, job, &watcher)));
        match ended {
            Ok(Ok(Ended::Finished(summary))) => {
                study.forget_failure(job);
                host.happened(index, Event::Done(&summary));
                Ok(Tally { done: 1, ..Tally::default() })
            }
            Ok(Ok(Ended::Interrupted(_))) => {
                host.happened(index, Event::Stopped);
                Ok(Tally { left: 1, ..Tally::default() })
            }
            Ok(Err(error)) => self.failed(study, index, &error.to_string(), host),
            Err(panic) => self.failed(study, index, &message(&*panic), host),
        }
    }

    fn run(
        &self,
        study: &StudyFolder,
        job: &Job,
        watcher: &dyn Watcher,
    ) -> Result<Ended, StudyError> {
        let (folder, begun) = study.run_folder(job)?;
        let spec = RunSpec {
            scenario: job.scenario.clone(),
            method: job.method.clone(),
            seed: job.seed.seed,
            replicate: job.seed.replicate,
            checkpoint_every: self.checkpoint_every,
            about: self.about.clone(),
        };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(self.threads).build();
        let run = || run_single(&spec, folder, begun, self.cache, watcher);
        // Without threads of its own it shares those that there are.
        Ok(match pool {
            Ok(pool) => pool.install(run)?,
            Err(_) => run()?,
        })
    }

    fn failed(
        &self,
        study: &StudyFolder,
        index: usize,
        reason: &str,
        host: &dyn Host,
    ) -> Result<Tally, StudyError> {
        study.note_failure(&study.jobs[index], reason)?;
        host.happened(index, Event::Failed(reason));
        Ok(Tally { failed: 1, ..Tally::default() })
    }
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

/// What a panic said, in one line.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (None, Some(text)) => text.as_str(),
        (None, None) => "no message",
    };
    format!("panicked: {}", text.lines().next().unwrap_or_default())
}

/// One run of a study as its watcher sees it.
struct Watched<'a> {
    host: &'a dyn Host,
    index: usize,
}

impl Watcher for Watched<'_> {
    fn demonstrations(&self, _done: usize, _total: usize) {}

    fn round(&self, row: &RoundRow, total: u64) {
        self.host.happened(self.index, Event::Round(row, total));
    }

    fn asked_to_stop(&self) -> bool {
        self.host.asked_to_stop()
    }

    fn time(&self) -> &dyn Time {
        self.host.time()
    }
}
