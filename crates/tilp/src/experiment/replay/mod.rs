//! Replay of a finished run: observations, decisions and measurements of the base station, round by
//! round, rebuilt from the run folder. Whatever learns from rounds can learn from these, whichever
//! method had decided.

mod contest;
mod figures;
mod forecasts;
mod report;
mod score;

pub use contest::{ContestReport, NaiveReport};
pub use figures::figures;
pub use forecasts::{Forecasts, OwnSuccess, Sample, Span, forecasts};
pub use report::{
    CurveReport, DecreaseReport, FactorReport, GroupReport, SubTwinReport, TwinReport, report,
};

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{RunError, read_run_identity};
use crate::cost::Hardware;
use crate::record::{
    CalibrationRow, EpisodeKind, EpisodeRow, History, RecordError, RoundRow, RunFolder, TerminalRow,
};
use crate::round::{
    Decision, Observation, Outcome, ProjectedDecision, SuccessCount, TerminalDecision, TerminalId,
    TerminalOutcome, TerminalReport, TrainingPlan,
};
use crate::scenario::{Method, Registry, Scenario, ScenarioError, Seeds, TwinParts, assemble_twin};
use crate::station::StationMemory;
use crate::units::{Bytes, Gain, Hertz, Joules, Seconds, Watts};

/// A run to be replayed.
#[derive(Clone, Debug)]
pub struct Replay {
    /// The scenario.
    pub scenario: Scenario,
    /// The method that decided.
    pub method: Method,
    /// The seed.
    pub seed: u64,
    /// The twin of the cell, and the truth behind it.
    pub twin: TwinParts,
    rounds: Vec<RoundRow>,
    terminals: Vec<TerminalRow>,
    calibrations: Vec<CalibrationRow>,
    /// Success of single terminals at calibrations, by round and id; none in runs of version 1.
    success: BTreeMap<(u64, u64), SuccessCount>,
}

/// A round from the view of the base station.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayedRound<'a> {
    /// Its observation.
    pub seen: Observation,
    /// The executed decision.
    pub plan: ProjectedDecision,
    /// The measured outcome.
    pub outcome: Outcome,
    /// The experimenter's rows: the true outcome of each terminal.
    pub truth: &'a [TerminalRow],
}

impl Replay {
    /// Reads and checks the folder of a finished run.
    pub fn open(folder: &RunFolder) -> Result<Self, RunError> {
        Self::open_with(folder, &[])
    }

    /// The same for a twin with other settings than in the run: overrides of keys of `methods.tilp`.
    pub fn open_with(folder: &RunFolder, overrides: &[String]) -> Result<Self, RunError> {
        let (scenario, method, Seeds { seed, .. }) =
            read_run_identity(folder, &Registry::builtin())?;
        if let Some(other) = overrides.iter().find(|one| !one.starts_with("methods.tilp.")) {
            let reason = "expected a key of methods.tilp: a run that is over does not change";
            let (field, place) = (other.clone(), "--set".into());
            return Err(ScenarioError::Field { field, reason: reason.into(), place }.into());
        }
        let scenario = if overrides.is_empty() { scenario } else { scenario.varied(overrides)? };
        let history = folder.read_history()?;
        Self::of_history(scenario, method, seed, history, &|name| folder.source(name))
    }

    /// The run with the rows of its events.
    pub fn of_events(
        scenario: Scenario,
        method: Method,
        seed: u64,
        history: History,
    ) -> Result<Self, RunError> {
        Self::of_history(scenario, method, seed, history, &|_| PathBuf::from("events.jsonl"))
    }

    /// The run with these rows. `source` gives the file that an error names for a table.
    fn of_history(
        scenario: Scenario,
        method: Method,
        seed: u64,
        history: History,
        source: &dyn Fn(&'static str) -> PathBuf,
    ) -> Result<Self, RunError> {
        let twin = assemble_twin(&scenario, &method, seed)?;
        let History { rounds, terminals, calibrations, episodes, .. } = history;
        let own = episodes.into_iter().filter(|row| row.kind == EpisodeKind::Calibration);
        let own = own.map(|EpisodeRow { round, terminal, successes, episodes, .. }| {
            ((round, terminal), SuccessCount { successes, episodes })
        });
        let success = own.collect();
        let replay =
            Self { scenario, method, seed, twin, rounds, terminals, calibrations, success };
        let malformed = |(name, reason): (&'static str, String)| RecordError::Malformed {
            path: source(name),
            reason,
        };
        replay.check_rounds().map_err(malformed)?;
        replay.check_terminals().map_err(malformed)?;
        replay.check_calibrations().map_err(malformed)?;
        Ok(replay)
    }

    /// Number of rounds.
    pub fn n_rounds(&self) -> u64 {
        self.rounds.len() as u64
    }

    /// The rounds, oldest first.
    pub fn rounds(&self) -> impl Iterator<Item = ReplayedRound<'_>> {
        let mut memory = StationMemory::new(self.twin.nominal.n_tasks);
        let rows = self.terminals.chunk_by(|a, b| a.round == b.round);
        self.rounds.iter().zip(rows).map(move |(round, rows)| {
            let sheet = |row: &TerminalRow| self.twin.nominal.hardware[row.terminal as usize];
            let reports: Vec<TerminalReport> =
                rows.iter().map(|row| terminal_report(row, sheet(row))).collect();
            let seen = memory.observation(&reports, round.aggregated);
            let plan = self.twin.nominal.cost.limits.project(decision(round, rows));
            let outcome = self.outcome(round, rows);
            memory.remember(&seen, &plan, &outcome);
            ReplayedRound { seen, plan, outcome, truth: rows }
        })
    }

    fn n_terminals(&self) -> usize {
        self.twin.nominal.hardware.len()
    }

    fn outcome(&self, round: &RoundRow, rows: &[TerminalRow]) -> Outcome {
        let start = self.calibrations.partition_point(|row| row.round < round.round);
        let counts: Vec<SuccessCount> = self.calibrations[start..]
            .iter()
            .take_while(|row| row.round == round.round)
            .map(|row| SuccessCount { successes: row.successes, episodes: row.episodes })
            .collect();
        Outcome {
            round: round.round,
            duration: Seconds(round.duration_s),
            loss: round.loss,
            terminals: rows.iter().map(|row| self.terminal_outcome(row)).collect(),
            success: (!counts.is_empty()).then_some(counts),
        }
    }

    fn terminal_outcome(&self, row: &TerminalRow) -> TerminalOutcome {
        let known = |value: f64| (!value.is_nan()).then_some(value);
        TerminalOutcome {
            id: TerminalId(row.terminal as u32),
            took_part: row.took_part,
            late: row.late,
            unfit: row.unfit,
            unfinished: row.unfinished,
            delay: Seconds(row.delay_observed_s),
            computation: Seconds(row.computation_observed_s),
            energy: Joules(row.energy_observed_j),
            bytes: Bytes(row.bytes_up + row.bytes_down + row.bytes_sync),
            loss: known(row.loss),
            gradient_norm: known(row.gradient_norm),
            success: self.success.get(&(row.round, row.terminal)).copied(),
        }
    }

    fn check_rounds(&self) -> Result<(), (&'static str, String)> {
        const NAME: &str = "rounds.csv";
        if self.rounds.is_empty() {
            return Err((NAME, "no rounds, expected at least one".into()));
        }
        let mut numbers = self.rounds.iter().zip(1u64..);
        match numbers.find(|(row, expected)| row.round != *expected) {
            Some((row, expected)) => {
                Err((NAME, format!("round {}, expected {expected}", row.round)))
            }
            None => Ok(()),
        }
    }

    fn check_terminals(&self) -> Result<(), (&'static str, String)> {
        let wrong = |reason: String| Err(("terminals.parquet", reason));
        let present = |round: &RoundRow| {
            let ids = self.scenario.members(round.round).into_iter();
            ids.map(move |id| (round.round, id.0 as usize)).collect::<Vec<_>>()
        };
        let places: Vec<(u64, usize)> = self.rounds.iter().flat_map(present).collect();
        let (found, expected) = (self.terminals.len(), places.len());
        if found != expected {
            let n_rounds = self.rounds.len();
            return wrong(format!(
                "{found} rows, expected {expected}: {n_rounds} rounds of the terminals present"
            ));
        }
        let n_layers = self.twin.nominal.cost.profile.cuts.len() as u64;
        for (idx, (row, (round, terminal))) in self.terminals.iter().zip(places).enumerate() {
            let checks = [
                ("round", row.round, round),
                ("terminal", row.terminal, terminal as u64),
                ("task", row.task, self.twin.nominal.tasks[terminal] as u64),
                ("held_layers", row.held_layers, row.held_layers.min(n_layers)),
                ("owed_layers", row.owed_layers, row.owed_layers.min(n_layers)),
            ];
            if let Some((name, value, expected)) = checks.iter().find(|(_, v, e)| v != e) {
                return wrong(format!("row {}: {name} = {value}, expected {expected}", idx + 1));
            }
        }
        Ok(())
    }

    fn check_calibrations(&self) -> Result<(), (&'static str, String)> {
        let (n_tasks, mut last) = (self.twin.nominal.n_tasks, 0);
        let is_whole = self.calibrations.chunks(n_tasks).all(|rows| {
            let round = rows[0].round;
            let later = round > std::mem::replace(&mut last, round);
            let counts = rows.iter().zip(0..);
            later
                && rows.len() == n_tasks
                && counts.into_iter().all(|(row, task)| {
                    row.round == round && row.task == task && row.successes <= row.episodes
                })
        });
        let in_run = self.calibrations.iter().all(|row| row.round <= self.n_rounds());
        // Counts are summed and tabulated: no experiment has as many episodes as would overflow.
        let bounded = self.calibrations.iter().all(|row| row.episodes <= 1_000_000);
        if is_whole && in_run && bounded {
            return Ok(());
        }
        let expected =
            format!("expected rows of {n_tasks} tasks for each measured round, in order");
        Err(("calibration.csv", expected))
    }
}

fn terminal_report(row: &TerminalRow, hardware: Hardware) -> TerminalReport {
    TerminalReport {
        id: TerminalId(row.terminal as u32),
        hardware,
        memory: Bytes(row.memory_bytes),
        n_samples: row.n_samples as usize,
        task: row.task as usize,
        gain: Gain(row.gain),
        fading_power: row.fading_power,
        held_layers: row.held_layers as usize,
        owed_layers: row.owed_layers as usize,
    }
}

fn decision(round: &RoundRow, rows: &[TerminalRow]) -> Decision {
    let one = |row: &TerminalRow| TerminalDecision {
        scheduled: row.scheduled,
        bandwidth: Hertz(row.bandwidth_asked_hz),
        power: Watts(row.power_w),
        cut: row.cut as usize,
        compression: row.compression,
    };
    Decision {
        terminals: rows.iter().map(one).collect(),
        training: TrainingPlan::default(),
        fallback: round.fallback,
    }
}
