//! The record of a running run: its events, its files, its checkpoints.

use serde_json::{Value, json};

use super::single::{Ended, RunError, RunSpec, Time};
use crate::record::event::{Finished, Header, Measurement};
use crate::record::{
    Checkpoint, EpisodeKind, Evaluation, Event, EventId, Files, Journal, Moment, ProcessEvent,
    RecordError, RunFolder, Stream, Summary, Times,
};
use crate::round::{SuccessCount, TerminalSuccess};
use crate::run::Observer;
use crate::snapshot::{Persist, Snapshot, SnapshotError};
use crate::station::Station;

/// The state in a folder to resume from, checked as far as possible without the run's parts.
pub(super) struct Saved {
    checkpoint: Checkpoint,
    stream: Stream,
}

impl Saved {
    /// Reads checkpoint and events, and locks the folder. If they cannot be used, the folder is
    /// as it was.
    pub(super) fn read(spec: &RunSpec, folder: &mut RunFolder) -> Result<Self, RunError> {
        folder.read_checkpoint(&spec.identity())?;
        folder.lock()?;
        // Another process may have resumed the run before the folder was locked.
        let checkpoint = folder.read_checkpoint(&spec.identity())?;
        let (done, total) = (checkpoint.round, spec.last_round());
        if done > total {
            return Err(SnapshotError::value("round", done, format!("at most {total}")).into());
        }
        let stream = Stream::of_checkpoint(folder, &checkpoint)?;
        Ok(Self { checkpoint, stream })
    }

    /// The metrics, if nothing is left to be done.
    pub(super) fn complete(&self, spec: &RunSpec, folder: &RunFolder) -> Option<Summary> {
        // With a budget the last round is unknown in advance; the folder shows it.
        let may_be_last = [self.checkpoint.round, u64::MAX].contains(&spec.last_round());
        may_be_last.then(|| folder.complete(&self.checkpoint.stream)).flatten()
    }

    /// Takes the state back. Round, events, cell and base station must agree. Only then the files
    /// are cut back.
    pub(super) fn resume<'a>(
        self,
        spec: &'a RunSpec,
        folder: RunFolder,
        cell: &mut dyn Persist,
        station: &mut Station,
        time: &'a dyn Time,
        observer: &'a mut dyn Observer,
    ) -> Result<Keeper<'a>, RunError> {
        let Self { checkpoint, stream } = self;
        let done = checkpoint.round;
        for name in ["cell/round", "station/round"] {
            let next = checkpoint.state.u64(name, 1)?[0];
            if next != done + 1 {
                return Err(SnapshotError::value(name, next, done + 1).into());
            }
        }
        cell.restore(&checkpoint.state)?;
        station.restore(&checkpoint.state)?;
        checkpoint.state.check_restored(&state_of(cell, station))?;
        folder.reopen()?;
        let journal = stream.open(&folder, time.epoch_seconds())?;
        let mut keeper = Keeper::new(spec, folder, journal, time, observer)?;
        keeper.go_on()?;
        let rounds = spec.scenario.rounds();
        keeper.process(&ProcessEvent::Resumed { round: done, rounds });
        keeper.check()?;
        Ok(keeper)
    }
}

/// The state of cell and base station.
fn state_of(cell: &dyn Persist, station: &Station) -> Snapshot {
    let mut state = Snapshot::default();
    cell.save(&mut state);
    station.save(&mut state);
    state
}

/// Writes the record of a run: an observer that passes everything on to another one.
pub(super) struct Keeper<'a> {
    spec: &'a RunSpec,
    folder: RunFolder,
    journal: Journal,
    times: Times,
    time: &'a dyn Time,
    observer: &'a mut dyn Observer,
    /// When the process took up the run.
    start_s: f64,
    /// When the decision in progress was asked for.
    asked_s: f64,
    /// How long decisions took.
    plan_s: Vec<f64>,
    error: Option<RunError>,
}

impl<'a> Keeper<'a> {
    fn new(
        spec: &'a RunSpec,
        folder: RunFolder,
        journal: Journal,
        time: &'a dyn Time,
        observer: &'a mut dyn Observer,
    ) -> Result<Self, RecordError> {
        let times = Times::open(&folder, &spec.about)?;
        let (start_s, asked_s) = (time.seconds(), 0.0);
        let (plan_s, error) = (Vec::new(), None);
        Ok(Self { spec, folder, journal, times, time, observer, start_s, asked_s, plan_s, error })
    }

    /// The events before the first round, and the checkpoint there.
    pub(super) fn start(
        spec: &RunSpec,
        tasks: &[String],
        base: &[TerminalSuccess],
        cell: &dyn Persist,
        station: &Station,
    ) -> Result<(Stream, Checkpoint), RecordError> {
        let mut stream = Stream::default();
        let header = Header::new(&spec.identity(), tasks);
        stream.push(&Event::Header(header.with_names(spec.scenario.terminal_names())))?;
        stream.push(&Event::Measured(Measurement::new(EventId(0, 1), base)))?;
        let (state, identity) = (state_of(cell, station), spec.identity());
        let checkpoint = Checkpoint { identity, round: 0, stream: stream.mark(), state };
        Ok((stream, checkpoint))
    }

    /// The folder appears, complete enough to resume.
    pub(super) fn begin(
        spec: &'a RunSpec,
        mut folder: RunFolder,
        manifest: &Value,
        stream: Stream,
        state: &Checkpoint,
        time: &'a dyn Time,
        observer: &'a mut dyn Observer,
    ) -> Result<Self, RunError> {
        let files = stream.files().tables(&stream.history)?.checkpoint(state);
        // The manifest is written last: a folder with a manifest contains a run that has started.
        let files = files.scenario(&spec.scenario.to_toml()).manifest(manifest);
        folder.write(&files)?;
        let events = stream.events();
        let journal = stream.open(&folder, time.epoch_seconds())?;
        let mut keeper = Self::new(spec, folder, journal, time, observer)?;
        keeper.process(&ProcessEvent::Started { rounds: spec.scenario.rounds() });
        events.iter().for_each(|event| keeper.observer.event(event));
        keeper.check()?;
        Ok(keeper)
    }

    /// If a program of another commit resumes a run, the manifest names it too.
    fn go_on(&mut self) -> Result<(), RecordError> {
        let mut manifest = self.folder.read_manifest()?;
        let now = &self.spec.about["commit"];
        let last = manifest.get("resumed_by").or_else(|| manifest.get("commit"));
        if now.is_null() || last == Some(now) {
            return Ok(());
        }
        manifest["resumed_by"] = now.clone();
        self.folder.write(&Files::new().manifest(&manifest))
    }

    /// The last round that was done.
    pub(super) fn last_round(&self) -> u64 {
        self.journal.history().last_round()
    }

    /// Wall time.
    pub(super) fn seconds(&self) -> f64 {
        self.time.seconds()
    }

    /// Success of the base policy.
    pub(super) fn base_success(&self) -> Option<SuccessCount> {
        let rows = self.journal.history().episodes.iter();
        let base = rows.take_while(|row| row.kind == EpisodeKind::Report && row.round == 0);
        let count =
            base.map(|row| SuccessCount { successes: row.successes, episodes: row.episodes });
        count.reduce(SuccessCount::plus)
    }

    /// How long decisions took.
    pub(super) fn plan_times(&self) -> Value {
        let mut sorted = self.plan_s.clone();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        let p99 = sorted.get((n * 99 / 100).min(n.saturating_sub(1))).copied().unwrap_or(0.0);
        let mean = self.plan_s.iter().sum::<f64>() / n.max(1) as f64;
        json!({ "plan_ms_mean": 1e3 * mean, "plan_ms_p99": 1e3 * p99 })
    }

    /// The first error that came up while events were written.
    pub(super) fn check(&mut self) -> Result<(), RunError> {
        self.error.take().map_or(Ok(()), Err)
    }

    /// Writes a checkpoint, and the tables that are written whole.
    pub(super) fn checkpoint(
        &mut self,
        cell: &dyn Persist,
        station: &Station,
    ) -> Result<(), RunError> {
        let (round, identity) = (self.last_round(), self.spec.identity());
        self.journal.sync()?;
        let (state, stream) = (state_of(cell, station), self.journal.mark());
        let checkpoint = Checkpoint { identity, round, stream, state };
        self.folder.write(&Files::new().checkpoint(&checkpoint))?;
        // At the end they are written with the final episodes.
        if round < self.spec.last_round() {
            self.folder.write(&Files::new().tables(self.journal.history())?)?;
        }
        self.process(&ProcessEvent::Checkpointed { round });
        self.check()
    }

    /// Writes what the planner has learned beside the checkpoint, for questions about later rounds.
    pub(super) fn keep_planner(&mut self, station: &Station) -> Result<(), RunError> {
        let (identity, round, stream) =
            (self.spec.identity(), self.last_round(), self.journal.mark());
        let mut state = Snapshot::default();
        station.method().save(&mut state);
        let kept = Checkpoint { identity, round, stream, state };
        Ok(self.folder.write(&Files::new().kept_planner(&kept))?)
    }

    /// The run was asked to stop.
    pub(super) fn interrupted(&mut self) -> Ended {
        let round = self.last_round();
        self.process(&ProcessEvent::Interrupted { round });
        Ended::Interrupted(round)
    }

    /// Writes why the run failed. The caller gets the error itself.
    pub(super) fn failed(&mut self, reason: &str) {
        let at = self.now();
        let _ = self.times.note(&ProcessEvent::Failed { reason }, at);
    }

    fn now(&self) -> Moment {
        let elapsed_s = self.time.seconds() - self.start_s;
        Moment { epoch_s: self.time.epoch_seconds(), elapsed_s }
    }

    /// The last event, and the files that a complete run has.
    pub(super) fn finish(
        &mut self,
        evaluation: &Evaluation,
        model: Option<Vec<u8>>,
        timing: &Value,
    ) -> Result<Box<Summary>, RunError> {
        let history = self.journal.history();
        let summary = Summary::of(history, evaluation);
        let id = history.last_event().map_or(EventId(0, 0), EventId::next);
        let terminals = evaluation.terminals.iter().collect();
        let event = Finished { id, terminals, summary: summary.clone() };
        self.event(&Event::Finished(Box::new(event)));
        self.check()?;
        self.journal.flush()?;
        self.journal.sync()?;
        let files = Files::new()
            .tables(self.journal.history())?
            .model(model)
            .timing(timing)
            .summary(&summary);
        self.folder.write(&files)?;
        self.process(&ProcessEvent::Finished { summary: &summary });
        self.check()?;
        Ok(Box::new(summary))
    }

    /// Keeps the first error.
    fn note(&mut self, result: Result<(), RecordError>) {
        if let Err(error) = result {
            self.error.get_or_insert(error.into());
        }
    }
}

impl Observer for Keeper<'_> {
    fn event(&mut self, event: &Event) {
        let taken = self.journal.push(event);
        self.note(taken);
        if let Event::Executed(executed) = event {
            let loss = executed.loss.map(|loss| loss.value());
            if let Some(loss) = loss.filter(|loss| !loss.is_finite()) {
                let round = executed.id.0;
                self.error.get_or_insert(RunError::Diverged { round, loss });
            }
        }
        self.observer.event(event);
    }

    fn process(&mut self, event: &ProcessEvent<'_>) {
        match event {
            ProcessEvent::Deciding { .. } => self.asked_s = self.seconds(),
            ProcessEvent::Decided { .. } => self.plan_s.push(self.seconds() - self.asked_s),
            _ => {
                let at = self.now();
                let taken = self.times.note(event, at);
                self.note(taken);
            }
        }
        self.observer.process(event);
    }

    fn completed(&mut self, round: u64) {
        let taken = self.journal.flush();
        self.note(taken);
        self.observer.completed(round);
    }

    fn asked_to_stop(&self) -> bool {
        self.error.is_some() || self.observer.asked_to_stop()
    }
}
