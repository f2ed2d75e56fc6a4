//! Events of the process that does a run. They depend on the machine and on kills, so they are no
//! part of the result: they go to `timing.jsonl`, with wall times.

use serde_json::{Value, json};

use super::appended::Appended;
use super::files::TIMES;
use super::{RecordError, RunFolder, Summary, format};

/// Something about the process that does a run.
#[derive(Clone, Copy, Debug)]
pub enum ProcessEvent<'a> {
    /// Number of terminals whose demonstrations are complete.
    Demonstrations {
        /// Terminals done.
        done: usize,
        /// Terminals in all.
        total: usize,
    },
    /// The run is complete already: nothing is done.
    Kept,
    /// The run begins.
    Started {
        /// Rounds in all.
        rounds: u64,
    },
    /// The run continues.
    Resumed {
        /// The last round that was done before.
        round: u64,
        /// Rounds in all.
        rounds: u64,
    },
    /// The method is asked for its decision.
    Deciding {
        /// The round.
        round: u64,
    },
    /// The method has decided.
    Decided {
        /// The round.
        round: u64,
    },
    /// A checkpoint was written.
    Checkpointed {
        /// The last round in it.
        round: u64,
    },
    /// The run was asked to stop. Its folder holds a checkpoint.
    Interrupted {
        /// The last round that was done.
        round: u64,
    },
    /// The run is complete.
    Finished {
        /// Its metrics.
        summary: &'a Summary,
    },
    /// The run failed.
    Failed {
        /// Why.
        reason: &'a str,
    },
    /// Another process is at work in the folder of the run: it is left to that one.
    Locked,
}

impl ProcessEvent<'_> {
    /// What `timing.jsonl` says of it; none for what is not kept.
    fn line(&self) -> Option<Value> {
        Some(match self {
            Self::Started { .. } => json!({ "kind": "started" }),
            Self::Resumed { round, .. } => json!({ "kind": "resumed", "round": round }),
            Self::Checkpointed { round } => json!({ "kind": "checkpointed", "round": round }),
            Self::Interrupted { round } => json!({ "kind": "interrupted", "round": round }),
            Self::Finished { .. } => json!({ "kind": "finished" }),
            Self::Failed { reason } => json!({ "kind": "failed", "reason": reason }),
            Self::Demonstrations { .. }
            | Self::Kept
            | Self::Deciding { .. }
            | Self::Decided { .. }
            | Self::Locked => return None,
        })
    }
}

/// Wall times of a process event.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Seconds since 1970.
    pub epoch_s: f64,
    /// Seconds since the process took up the run.
    pub elapsed_s: f64,
}

/// `timing.jsonl`: one line for each process event that is kept. It is never cut back.
#[derive(Debug)]
pub struct Times {
    file: Appended,
    /// What the lines of a start say besides: versions and host.
    about: Value,
}

impl Times {
    /// The file of a folder.
    pub fn open(folder: &RunFolder, about: &Value) -> Result<Self, RecordError> {
        let file = Appended::open(folder.path().join(TIMES))?;
        Ok(Self { file, about: about.clone() })
    }

    /// Appends a line, if the event is kept.
    pub fn note(&mut self, event: &ProcessEvent<'_>, at: Moment) -> Result<(), RecordError> {
        let Some(mut line) = event.line() else { return Ok(()) };
        line["at_s"] = json!(at.epoch_s);
        line["elapsed_s"] = json!(at.elapsed_s);
        if matches!(event, ProcessEvent::Started { .. } | ProcessEvent::Resumed { .. }) {
            line["format"] = json!(format::TIMING);
            for name in ["version", "commit", "host"] {
                line[name] = self.about.get(name).cloned().unwrap_or_default();
            }
        }
        self.file.append(format!("{line}\n").as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Files;
    use crate::record::fixture::Scratch;

    #[test]
    fn what_is_kept_of_a_process_is_one_line_each_with_its_times() {
        let scratch = Scratch::new("times");
        let mut folder = RunFolder::create(&scratch.path().join("run")).unwrap();
        folder.write(&Files::new().manifest(&json!({}))).unwrap();
        let mut times = Times::open(&folder, &json!({"version": "1.2", "host": "a"})).unwrap();
        let at = Moment { epoch_s: 1e9, elapsed_s: 0.5 };
        for event in [
            ProcessEvent::Started { rounds: 9 },
            ProcessEvent::Deciding { round: 1 },
            ProcessEvent::Checkpointed { round: 3 },
            ProcessEvent::Failed { reason: "no\nluck" },
        ] {
            times.note(&event, at).unwrap();
        }
        let text = std::fs::read_to_string(folder.path().join("timing.jsonl")).unwrap();
        let lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let kinds: Vec<_> = lines.iter().map(|line| line["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["started", "checkpointed", "failed"]);
        assert_eq!((&lines[0]["version"], &lines[0]["format"]), (&json!("1.2"), &json!(1)));
        assert_eq!((&lines[1]["round"], &lines[1]["at_s"]), (&json!(3), &json!(1e9)));
    }
}
