//! Progress of a study: a bar on a terminal, a line for every run when piped, nothing when quiet.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};

use indicatif::{ProgressBar, ProgressStyle};
use tilp::experiment::Time;
use tilp::experiment::study::{Shard, StudyFolder};
use tilp::record::ProcessEvent;
use tilp::run::Observer;

use crate::clock::WallTime;
use crate::output::tell;
use crate::signals::Signals;

/// Shows a study on standard error.
pub(crate) struct StudyProgress {
    bar: Option<ProgressBar>,
    quiet: bool,
    names: Vec<String>,
    signals: Signals,
    time: WallTime,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    n_jobs: usize,
    kept: usize,
    done: usize,
    failed: usize,
    /// Share of the rounds done, of those that run: when they began here, and now.
    running: BTreeMap<usize, [f64; 2]>,
}

impl StudyProgress {
    /// Progress of a shard of a study; `signals` may ask to stop.
    pub(crate) fn new(quiet: bool, study: &StudyFolder, shard: Shard, signals: Signals) -> Self {
        let n_jobs = (shard.index..study.jobs.len()).step_by(shard.count).count();
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::new(n_jobs as u64);
            let style = ProgressStyle::with_template("runs [{bar:20}] {pos}/{len} {wide_msg}");
            bar.set_style(style.expect("the template is valid").progress_chars("=> "));
            bar
        });
        let name = |job: &tilp::experiment::study::Job| {
            format!("{} at {}, seed {}", job.subject.method, job.subject.point, job.seed)
        };
        Self {
            bar,
            quiet,
            names: study.jobs.iter().map(name).collect(),
            signals,
            time: WallTime::start(),
            state: Mutex::new(State { n_jobs, ..State::default() }),
        }
    }

    /// Takes the bar off the screen.
    pub(crate) fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn show(&self, state: &State, line: Option<String>) {
        let left = state.time_left(self.time.seconds());
        let summary = format!(
            "{} done, {} running, {} failed, left {left}",
            state.kept + state.done,
            state.running.len(),
            state.failed
        );
        match (&self.bar, line) {
            _ if self.quiet => {}
            (Some(bar), _) => {
                bar.set_position((state.kept + state.done + state.failed) as u64);
                bar.set_message(summary);
            }
            (None, Some(line)) => tell(&format!("{line} ({summary} of {})", state.n_jobs)),
            (None, None) => {}
        }
    }
}

impl State {
    /// Time left at the pace so far, which runs that were kept say nothing about.
    fn time_left(&self, elapsed: f64) -> String {
        let partly: f64 = self.running.values().map(|[first, now]| now - first).sum();
        let worked = (self.done + self.failed) as f64 + partly;
        if worked <= 0.0 {
            return "-".to_owned();
        }
        let begun: f64 = self.running.values().map(|[_, now]| now).sum();
        let ahead = (self.n_jobs - self.kept - self.done - self.failed) as f64 - begun;
        let seconds = (elapsed / worked * ahead.max(0.0)) as u64;
        match seconds / 3600 {
            0 => format!("{}:{:02}", seconds / 60, seconds % 60),
            hours => format!("{hours} h {:02}", seconds / 60 % 60),
        }
    }
}

/// One run of a study on the screen.
pub(crate) struct JobProgress<'a> {
    study: &'a StudyProgress,
    job: usize,
    /// Rounds in all.
    rounds: u64,
}

impl StudyProgress {
    /// The observer of a job.
    pub(crate) fn job(&self, job: usize) -> JobProgress<'_> {
        JobProgress { study: self, job, rounds: 0 }
    }

    /// The clock.
    pub(crate) fn time(&self) -> &dyn Time {
        &self.time
    }
}

impl JobProgress<'_> {
    /// Updates the state of the study and shows it, with an extra line if given.
    fn change(&self, change: impl FnOnce(&mut State, &str) -> Option<String>) {
        let mut state = self.study.state.lock().unwrap_or_else(PoisonError::into_inner);
        let line = change(&mut state, &self.study.names[self.job]);
        self.study.show(&state, line);
    }
}

impl Observer for JobProgress<'_> {
    fn process(&mut self, event: &ProcessEvent<'_>) {
        let job = self.job;
        match *event {
            ProcessEvent::Kept => self.change(|state, _| {
                state.kept += 1;
                None
            }),
            ProcessEvent::Started { rounds } => self.begin(0, rounds),
            ProcessEvent::Resumed { round, rounds } => self.begin(round, rounds),
            ProcessEvent::Finished { summary } => self.change(|state, name| {
                state.running.remove(&job);
                state.done += 1;
                let success = summary.success_final.map(|rate| format!(" {:.1} %", 100.0 * rate));
                Some(format!("{name}: success{}", success.unwrap_or_else(|| " -".into())))
            }),
            ProcessEvent::Failed { reason } => self.change(|state, name| {
                state.running.remove(&job);
                state.failed += 1;
                Some(format!("{name}: failed: {reason}"))
            }),
            ProcessEvent::Interrupted { .. } => self.change(|state, _| {
                state.running.remove(&job);
                None
            }),
            ProcessEvent::Locked => self.change(|state, name| {
                state.n_jobs -= 1;
                Some(format!("{name}: left to another process that is running it"))
            }),
            ProcessEvent::Demonstrations { .. }
            | ProcessEvent::Deciding { .. }
            | ProcessEvent::Decided { .. }
            | ProcessEvent::Checkpointed { .. } => {}
        }
    }

    fn completed(&mut self, round: u64) {
        let (job, now) = (self.job, round as f64 / self.rounds.max(1) as f64);
        self.change(|state, _| {
            if let Some([_, last]) = state.running.get_mut(&job) {
                *last = now;
            }
            None
        });
    }

    fn asked_to_stop(&self) -> bool {
        self.study.signals.asked().is_some()
    }
}

impl JobProgress<'_> {
    /// The run starts, or resumes after a round.
    fn begin(&mut self, round: u64, rounds: u64) {
        self.rounds = rounds;
        let (job, share) = (self.job, round as f64 / rounds.max(1) as f64);
        self.change(|state, _| {
            state.running.insert(job, [share; 2]);
            None
        });
    }
}
