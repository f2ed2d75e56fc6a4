//! The stored results of a finished run: all that tables and figures need.
//!
//! A run folder has megabytes. The file `runs.jsonl` of a study of hundreds of runs has a few. With
//! this file a study can be shared, shown again and continued without its run folders.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Job, METRICS, Subject};
use crate::record::{RecordError, RoundRow, RunFolder, Summary, TerminalRow};
use crate::scenario::Seeds;
use crate::statistics::quantile;

/// The file of a study with a line for each finished run.
pub(super) const FINISHED: &str = "runs.jsonl";

/// A finished run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finished {
    /// Version of the program that made it.
    pub version: Option<String>,
    /// Its commit; that of the program that went on with it too, if it is another.
    pub commit: Option<String>,
    /// The metrics.
    pub summary: Summary,
    /// The run wherever its success was measured.
    pub curve: Vec<Sample>,
    /// Quantiles of the latency of its rounds, from 0 to 100 % in steps of 5 %. Studies of earlier
    /// versions do not have them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latency_quantiles_s: Vec<f64>,
    /// Share of the rounds in which each terminal was scheduled, from the best channel to the worst.
    /// Studies of earlier versions do not have it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub participation: Vec<f64>,
}

/// Percent between two quantiles of the latency.
pub(super) const LATENCY_STEP: usize = 5;

/// A run where its success was measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// After this round.
    pub round: u64,
    /// Success on report episodes.
    pub success: f64,
    /// Mean latency of the rounds since the sample before.
    pub latency_s: f64,
    /// Simulated time so far.
    pub clock_s: f64,
    /// Terminal energy so far.
    pub energy_j: f64,
    /// Activations sent up so far.
    pub volume_bytes: u64,
}

/// A line of `runs.jsonl`: a finished run of the study.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(in crate::experiment) struct Line {
    /// Label of the point.
    point: String,
    /// Name of the method.
    method: String,
    /// The seed.
    seed: u64,
    /// Replicate of the seed; not written if it is 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    replicate: u64,
    /// Hash of the resolved scenario.
    scenario_hash: String,
    #[serde(flatten)]
    finished: Finished,
}

fn is_zero(replicate: &u64) -> bool {
    *replicate == 0
}

impl Finished {
    /// The results of the run in a folder; an error if it is not complete.
    pub(super) fn of(folder: &RunFolder) -> Result<Self, RecordError> {
        let summary = folder.read_summary()?;
        let manifest = folder.read_manifest()?;
        let text = |name: &str| manifest.get(name).and_then(Value::as_str).map(str::to_owned);
        let rounds = folder.read_rounds()?;
        let curve = samples(&rounds);
        let latency = |at: usize| {
            quantile(rounds.iter().map(|row| row.latency_s), (at * LATENCY_STEP) as f64 / 100.0)
        };
        let latency_quantiles_s = (0..=100 / LATENCY_STEP).filter_map(latency).collect();
        let participation = participation(&folder.read_terminals()?);
        let commit = match (text("commit"), text("resumed_by")) {
            (Some(first), Some(last)) => Some(format!("{first}, then {last}")),
            (first, _) => first,
        };
        let version = text("version");
        Ok(Self { version, commit, summary, curve, latency_quantiles_s, participation })
    }

    /// The sample of the base policy, before any round, if it was measured.
    pub(super) fn base(&self) -> Option<Sample> {
        let (round, success) = *self.summary.success_curve.first().filter(|(at, _)| *at == 0)?;
        let (latency_s, clock_s, energy_j) = (0.0, 0.0, 0.0);
        Some(Sample { round, success, latency_s, clock_s, energy_j, volume_bytes: 0 })
    }

    /// Refuses impossible values: a success outside 0 to 1, negative or non-finite numbers.
    fn check(&self) -> Result<(), String> {
        for metric in &METRICS {
            let is_share = metric.name.starts_with("success")
                || ["violation_zero_share", "participation_min"].contains(&metric.name);
            let most = if is_share { 1.0 } else { f64::INFINITY };
            (metric.value)(&self.summary)
                .map_or(Ok(()), |value| within(metric.name, value, most))?;
        }
        let tasks = self.summary.success_by_task.values().flatten();
        tasks.copied().try_for_each(|value| within("success_by_task", value, 1.0))?;
        for event in &self.summary.events {
            let values = [event.success_before, event.success_lowest];
            values.into_iter().flatten().try_for_each(|one| within("events.success", one, 1.0))?;
            let back = event.recovery_s;
            back.map_or(Ok(()), |value| within("events.recovery_s", value, f64::INFINITY))?;
        }
        for sample in &self.curve {
            within("curve.success", sample.success, 1.0)?;
            within("curve.latency_s", sample.latency_s, f64::INFINITY)?;
            within("curve.clock_s", sample.clock_s, f64::INFINITY)?;
            within("curve.energy_j", sample.energy_j, f64::INFINITY)?;
        }
        for latency in &self.latency_quantiles_s {
            within("latency_quantiles_s", *latency, f64::INFINITY)?;
        }
        for share in &self.participation {
            within("participation", *share, 1.0)?;
        }
        Ok(())
    }

    /// The run as a line of the file.
    pub(super) fn line(&self, job: &Job) -> String {
        let line = Line {
            point: job.subject.point.clone(),
            method: job.subject.method.clone(),
            seed: job.seed.seed,
            replicate: job.seed.replicate,
            scenario_hash: job.scenario.hash(),
            finished: self.clone(),
        };
        serde_json::to_string(&line).expect("a finished run is plain data") + "\n"
    }
}

fn within(name: &str, value: f64, most: f64) -> Result<(), String> {
    match value {
        _ if value.is_finite() && (0.0..=most).contains(&value) => Ok(()),
        _ if most.is_finite() => Err(format!("{name} is {value}, expected 0 to {most}")),
        _ => Err(format!("{name} is {value}, expected 0 or more")),
    }
}

/// The share of its rounds in which each terminal was scheduled. Terminals are ordered by their
/// channel in their first round, the best first.
fn participation(rows: &[TerminalRow]) -> Vec<f64> {
    let mut terminals: BTreeMap<u64, (f64, u64, u64)> = BTreeMap::new();
    for row in rows {
        let one = terminals.entry(row.terminal).or_insert((row.gain_db, 0, 0));
        one.1 += u64::from(row.scheduled);
        one.2 += 1;
    }
    let mut terminals: Vec<_> = terminals.into_values().collect();
    terminals.sort_by(|a, b| b.0.total_cmp(&a.0));
    terminals.iter().map(|(_, scheduled, there)| *scheduled as f64 / *there as f64).collect()
}

fn samples(rounds: &[RoundRow]) -> Vec<Sample> {
    let (mut energy_j, mut volume_bytes, mut latency, mut count) = (0.0, 0, 0.0, 0.0);
    let mut found = Vec::new();
    for row in rounds {
        energy_j += row.energy_j;
        volume_bytes += row.volume_bytes;
        (latency, count) = (latency + row.latency_s, count + 1.0);
        if let Some(success) = row.report_success {
            found.push(Sample {
                round: row.round,
                success,
                latency_s: latency / count,
                clock_s: row.clock_s,
                energy_j,
                volume_bytes,
            });
            (latency, count) = (0.0, 0.0);
        }
    }
    found
}

/// The finished runs in the file of a study, by the index of their jobs; all `None` without the
/// file. Each must belong to the study.
pub(super) fn kept(study: &Path, jobs: &[Job]) -> Result<Vec<Option<Finished>>, RecordError> {
    let mut kept = vec![None; jobs.len()];
    let path = study.join(FINISHED);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(kept),
        Err(error) => return Err(RecordError::io("read", &path)(error)),
    };
    for (number, line) in text.lines().enumerate() {
        keep(line, jobs, &mut kept).map_err(|reason| RecordError::Malformed {
            path: path.clone(),
            reason: format!("line {}: {reason}", number + 1),
        })?;
    }
    Ok(kept)
}

fn keep(line: &str, jobs: &[Job], kept: &mut [Option<Finished>]) -> Result<(), String> {
    let line: Line = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let Line { point, method, seed, replicate, scenario_hash, finished } = line;
    let seed = Seeds { seed, replicate };
    let run = format!("{point}, {method}, seed {seed}");
    let subject = Subject { point, method };
    let at = jobs.iter().position(|job| job.subject == subject && job.seed == seed);
    let at = at.ok_or_else(|| format!("{run}: no run of this study"))?;
    let hash = jobs[at].scenario.hash();
    if hash != scenario_hash {
        return Err(format!("{run}: scenario_hash is {scenario_hash}, expected {hash}"));
    }
    finished.check().map_err(|reason| format!("{run}: {reason}"))?;
    match kept[at].replace(finished) {
        None => Ok(()),
        Some(_) => Err(format!("{run}: a second time")),
    }
}
