//! Memory of the base station between rounds.

use std::collections::BTreeMap;

use crate::round::{
    MeasuredSuccess, Observation, Outcome, ProjectedDecision, SuccessCount, TerminalId,
    TerminalReport, TerminalSuccess, TerminalView,
};
use crate::snapshot::{Persist, Snapshot, SnapshotError};
use crate::units::{Hertz, Seconds};

/// Memory of the base station about a terminal, present or absent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TerminalMemory {
    /// Bandwidth of the round before.
    pub bandwidth: Hertz,
    /// Norm of its gradient when it last trained.
    pub gradient_norm: Option<f64>,
    /// Loss when it last trained.
    pub loss: Option<f64>,
    /// The round in which it was last scheduled.
    pub scheduled: Option<u64>,
    /// Its success at the last calibration.
    pub success: Option<MeasuredSuccess>,
}

/// Memory of the base station.
#[derive(Clone, Debug, PartialEq)]
pub struct StationMemory {
    round: u64,
    clock: Seconds,
    loss: Option<f64>,
    success: Option<Vec<SuccessCount>>,
    terminals: BTreeMap<TerminalId, TerminalMemory>,
    n_tasks: usize,
}

impl StationMemory {
    /// Before the first round.
    pub fn new(n_tasks: usize) -> Self {
        Self {
            round: 1,
            clock: Seconds(0.0),
            loss: None,
            success: None,
            terminals: BTreeMap::new(),
            n_tasks,
        }
    }

    /// The next round, counted from 1.
    pub fn round(&self) -> u64 {
        self.round
    }

    /// Time since the start.
    pub fn clock(&self) -> Seconds {
        self.clock
    }

    /// The state before the next round.
    pub fn observation(&self, reports: &[TerminalReport], aggregates: bool) -> Observation {
        let view = |report: &TerminalReport| {
            let known = self.terminals.get(&report.id).copied().unwrap_or_default();
            TerminalView {
                report: *report,
                previous_bandwidth: known.bandwidth,
                gradient_norm: known.gradient_norm,
                loss: known.loss,
                rounds_since_scheduled: known.scheduled.map(|last| self.round - last),
                success: known.success,
            }
        };
        Observation {
            round: self.round,
            clock: self.clock,
            aggregates,
            loss: self.loss,
            success: self.success.clone(),
            budget: None,
            terminals: reports.iter().map(view).collect(),
        }
    }

    /// Keeps the outcome of a round and advances to the next.
    pub fn remember(&mut self, seen: &Observation, plan: &ProjectedDecision, outcome: &Outcome) {
        let decided = plan.decision().terminals.iter().zip(&outcome.terminals);
        for (view, (one, result)) in seen.terminals.iter().zip(decided) {
            let known = self.terminals.entry(view.report.id).or_default();
            known.bandwidth = one.bandwidth;
            known.gradient_norm = result.gradient_norm.or(known.gradient_norm);
            known.loss = result.loss.or(known.loss);
            if one.scheduled {
                known.scheduled = Some(seen.round);
            }
            if let Some(count) = result.success {
                known.success = Some(MeasuredSuccess { round: seen.round, count });
            }
        }
        self.loss = outcome.loss.or(self.loss);
        if outcome.success.is_some() {
            self.success.clone_from(&outcome.success);
        }
        self.clock += outcome.duration;
        self.round = seen.round + 1;
    }

    /// Success per task from success per terminal. Tasks out of range are left out.
    pub fn by_task(&self, counts: &[TerminalSuccess]) -> Vec<SuccessCount> {
        let mut by_task = vec![SuccessCount::default(); self.n_tasks];
        for one in counts {
            if let Some(task) = by_task.get_mut(one.task) {
                *task = task.plus(one.count);
            }
        }
        by_task
    }
}

/// An optional number as a number: an absent one is NaN, which no loss or norm can be.
fn to_nan(value: Option<f64>) -> f64 {
    value.unwrap_or(f64::NAN)
}

fn from_nan(value: f64) -> Option<f64> {
    (!value.is_nan()).then_some(value)
}

/// More episodes than any experiment has; sums of them cannot overflow.
const MOST_EPISODES: u64 = 1 << 40;

impl Persist for StationMemory {
    fn save(&self, snapshot: &mut Snapshot) {
        let known = || self.terminals.values();
        let of = |pick: fn(&TerminalMemory) -> f64| known().map(pick).collect::<Vec<f64>>();
        snapshot.put_u64("station/round", vec![self.round]);
        snapshot.put_f64("station/clock_s", vec![self.clock.0]);
        snapshot.put_f64("station/loss", vec![to_nan(self.loss)]);
        let ids = self.terminals.keys().map(|id| u64::from(id.0)).collect();
        snapshot.put_u64("station/terminals", ids);
        snapshot.put_f64("station/bandwidth_hz", of(|known| known.bandwidth.0));
        snapshot.put_f64("station/gradient_norm", of(|known| to_nan(known.gradient_norm)));
        snapshot.put_f64("station/terminal_loss", of(|known| to_nan(known.loss)));
        // Rounds count from 1; 0 means never.
        let scheduled = known().map(|known| known.scheduled.unwrap_or(0)).collect();
        snapshot.put_u64("station/scheduled", scheduled);
        let success = self.success.iter().flatten().flat_map(|one| [one.successes, one.episodes]);
        snapshot.put_u64("station/success", success.collect());
        let own = known().flat_map(|known| {
            // Round 0 means never.
            known.success.map_or([0; 3], |one| [one.round, one.count.successes, one.count.episodes])
        });
        snapshot.put_u64("station/terminal_success", own.collect());
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        let round = snapshot.u64("station/round", 1)?[0];
        if round == 0 {
            return Err(SnapshotError::value("station/round", round, "at least 1"));
        }
        let clock = snapshot.finite_f64("station/clock_s", 1)?[0];
        if clock < 0.0 {
            return Err(SnapshotError::value("station/clock_s", clock, "at least 0"));
        }
        let loss = from_nan(snapshot.known_f64("station/loss", 1, f64::MAX)?[0]);
        let terminals = terminal_memories(snapshot, round)?;
        let success = self.success_counts(snapshot)?;
        *self = Self { round, clock: Seconds(clock), loss, success, terminals, ..self.clone() };
        Ok(())
    }
}

impl StationMemory {
    fn success_counts(
        &self,
        snapshot: &Snapshot,
    ) -> Result<Option<Vec<SuccessCount>>, SnapshotError> {
        const NAME: &str = "station/success";
        if snapshot.len_of(NAME) == 0 {
            return Ok(None);
        }
        let values = snapshot.u64_up_to(NAME, 2 * self.n_tasks, MOST_EPISODES)?;
        let counts = values.as_chunks::<2>().0.iter();
        let counts = counts.map(|&[successes, episodes]| success_count(NAME, successes, episodes));
        counts.collect::<Result<_, _>>().map(Some)
    }
}

/// A count from a snapshot.
fn success_count(name: &str, successes: u64, episodes: u64) -> Result<SuccessCount, SnapshotError> {
    if successes > episodes {
        let expected = format!("at most {episodes} successes");
        return Err(SnapshotError::value(name, successes, expected));
    }
    Ok(SuccessCount { successes, episodes })
}

/// The success of each terminal from a snapshot.
fn own_success(
    snapshot: &Snapshot,
    n: usize,
    round: u64,
) -> Result<Vec<Option<MeasuredSuccess>>, SnapshotError> {
    const NAME: &str = "station/terminal_success";
    let values = snapshot.u64_up_to(NAME, 3 * n, MOST_EPISODES)?;
    let one = |&[measured, successes, episodes]: &[u64; 3]| {
        if measured >= round {
            return Err(SnapshotError::value(NAME, measured, format!("a round below {round}")));
        }
        let count = success_count(NAME, successes, episodes)?;
        Ok((measured > 0).then_some(MeasuredSuccess { round: measured, count }))
    };
    values.as_chunks::<3>().0.iter().map(one).collect()
}

fn terminal_memories(
    snapshot: &Snapshot,
    round: u64,
) -> Result<BTreeMap<TerminalId, TerminalMemory>, SnapshotError> {
    let n = snapshot.len_of("station/terminals");
    let ids = snapshot.u64_up_to("station/terminals", n, u32::MAX.into())?;
    let bandwidths = snapshot.finite_f64("station/bandwidth_hz", n)?;
    let norms = snapshot.known_f64("station/gradient_norm", n, f64::MAX)?;
    let losses = snapshot.known_f64("station/terminal_loss", n, f64::MAX)?;
    let scheduled = snapshot.u64_up_to("station/scheduled", n, round - 1)?;
    let success = own_success(snapshot, n, round)?;
    let one = |i: usize| {
        let memory = TerminalMemory {
            bandwidth: Hertz(bandwidths[i]),
            gradient_norm: from_nan(norms[i]),
            loss: from_nan(losses[i]),
            scheduled: (scheduled[i] > 0).then_some(scheduled[i]),
            success: success[i],
        };
        (TerminalId(ids[i] as u32), memory)
    };
    Ok((0..n).map(one).collect())
}
