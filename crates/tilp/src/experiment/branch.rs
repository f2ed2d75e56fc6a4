//! A run that continues another one from some round, with changed values.
//!
//! Runs are deterministic: the rounds before are repeated from the parent's checkpoint, if it is not
//! later, or else from the start. Then the folder becomes a run of its own.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{Ended, RunError, RunSpec, Time, run_single};
use crate::record::event::Header;
use crate::record::{
    Checkpoint, Event, Files, ProcessEvent, RecordError, RunFolder, Stream, unique_name,
};
use crate::run::Observer;
use crate::scenario::Cache;

/// Inputs of a branch.
#[derive(Clone, Debug)]
pub struct Branch {
    /// The run that is there.
    pub parent: RunSpec,
    /// Its folder.
    pub folder: PathBuf,
    /// The last round that the two have in common, from 1 on.
    pub round: u64,
    /// The continued run. Its scenario may differ.
    pub child: RunSpec,
    /// The requested changes.
    pub overrides: Vec<String>,
}

/// Files that are needed to resume from a checkpoint.
const NEEDED: [&str; 6] = [
    "manifest.json",
    "scenario.toml",
    "events.jsonl",
    "rounds.csv",
    "calibration.csv",
    "checkpoint/state.safetensors",
];

impl Branch {
    /// Runs the branch into a new folder. If it is stopped before the round of the branch, nothing
    /// is left behind.
    pub fn run(
        &self,
        out: &Path,
        cache: Option<&Cache>,
        time: &dyn Time,
        observer: &mut dyn Observer,
    ) -> Result<Ended, RunError> {
        let folder = RunFolder::create(out)?;
        let mut until = Until { round: self.round, done: 0, observer: &mut *observer };
        let resume = self.take_over(out)?;
        let folder = if resume { RunFolder::open(out)? } else { folder };
        let is_there = resume && self.kept_round() == Some(self.round);
        if !is_there {
            let spec = RunSpec { checkpoint_every: u64::MAX, ..self.parent.clone() };
            let ended = run_single(&spec, folder, resume, cache, time, &mut until);
            match ended {
                Ok(Ended::Interrupted(round)) if round == self.round => {}
                ended => {
                    // The folder was created by this branch.
                    let _ = fs::remove_dir_all(out);
                    return ended;
                }
            }
        } else {
            drop(folder);
        }
        self.fork(out)?;
        run_single(&self.child, RunFolder::open(out)?, true, cache, time, observer)
    }

    /// The round of the parent's checkpoint.
    fn kept_round(&self) -> Option<u64> {
        let folder = RunFolder::open(&self.folder).ok()?;
        folder.read_checkpoint(&self.parent.identity()).ok().map(|checkpoint| checkpoint.round)
    }

    /// Copies what the parent has up to its checkpoint, if that is not later than the branch.
    fn take_over(&self, out: &Path) -> Result<bool, RecordError> {
        if self.kept_round().is_none_or(|kept| kept == 0 || kept > self.round) {
            return Ok(false);
        }
        let aside = out.with_file_name(unique_name("branch"));
        let copied = copy(&self.folder, &aside).and_then(|()| fs::rename(&aside, out));
        copied.map(|()| true).or_else(|_| {
            // A parent that is still running may change during the copy; the rounds are then repeated.
            let _ = fs::remove_dir_all(&aside);
            Ok(false)
        })
    }

    /// Makes the folder that of the child: another scenario, and a header and a checkpoint that
    /// name it.
    fn fork(&self, out: &Path) -> Result<(), RunError> {
        let mut folder = RunFolder::open(out)?;
        folder.lock()?;
        let checkpoint = folder.read_checkpoint(&self.parent.identity())?;
        let mut stream = Stream::default();
        for event in Stream::of_checkpoint(&folder, &checkpoint)?.events() {
            let event = match event {
                Event::Header(header) => {
                    Event::Header(Header::new(&self.child.identity(), &header.tasks))
                }
                other => other,
            };
            stream.push(&event)?;
        }
        let identity = self.child.identity();
        let state = Checkpoint { identity, stream: stream.mark(), ..checkpoint };
        let mut manifest: Value = folder.read_manifest()?;
        manifest["scenario_hash"] = json!(self.child.scenario.hash());
        manifest["branch"] = json!({
            "of": self.parent.scenario.hash(),
            "round": self.round,
            "set": self.overrides,
        });
        let files: Files = stream.files().tables(&stream.history)?.checkpoint(&state);
        let files = files.scenario(&self.child.scenario.to_toml()).manifest(&manifest);
        // The rounds before were decided with other values, so they cannot be repeated with these.
        let files = match self.overrides.is_empty() || self.child.planner_states == 0 {
            true => files,
            false => files.kept_planner(&state),
        };
        folder.write(&files)?;
        Ok(())
    }
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to.join("checkpoint"))?;
    for name in NEEDED {
        fs::copy(from.join(name), to.join(name))?;
    }
    Ok(())
}

/// Asks to stop after a round.
struct Until<'a> {
    round: u64,
    done: u64,
    observer: &'a mut dyn Observer,
}

impl Observer for Until<'_> {
    fn event(&mut self, event: &Event) {
        self.observer.event(event);
    }

    fn process(&mut self, event: &ProcessEvent<'_>) {
        self.observer.process(event);
    }

    fn completed(&mut self, round: u64) {
        self.done = round;
        self.observer.completed(round);
    }

    fn asked_to_stop(&self) -> bool {
        self.done >= self.round || self.observer.asked_to_stop()
    }
}
