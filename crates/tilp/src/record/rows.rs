//! The rows of a run: one per round, and one per terminal and round.

use super::table::row;
use crate::round::{Ledger, LossChange, TerminalLedger, TerminalOutcome, TerminalSuccess};
use crate::run::RoundRecord;
use crate::units::{Bytes, Joules, to_db};

row!(
    /// One line of `rounds.csv`.
    RoundRow {
        /// The round, counted from 1.
        round: u64,
        /// Simulated time after the round.
        clock_s: f64,
        /// Terminals that were scheduled.
        n_scheduled: u64,
        /// Terminals that counted in learning.
        n_took_part: u64,
        /// Terminals that did not make it.
        n_late: u64,
        /// Bandwidth asked for by all scheduled terminals together.
        bandwidth_hz: f64,
        /// Slowest involved terminal, uncut up to the give-up time.
        latency_s: f64,
        /// By how much the clock advanced.
        duration_s: f64,
        /// True energy of all terminals.
        energy_j: f64,
        /// The part of it spent on transmission.
        energy_radio_j: f64,
        /// The part of it spent on computation.
        energy_compute_j: f64,
        /// Activations sent up (for full-model methods, the model).
        volume_bytes: u64,
        /// Model exchange, both ways.
        sync_bytes: u64,
        /// Everything on the air, both ways.
        air_bytes: u64,
        /// Weighted training loss over the terminals that took part.
        loss: Option<f64>,
        /// Violation, each part relative to its own limit.
        violation: f64,
        /// Seconds beyond the deadline, summed.
        violation_deadline_s: f64,
        /// Bytes beyond the memory budgets, summed.
        violation_memory_bytes: u64,
        /// Hertz beyond the band.
        violation_spectrum_hz: f64,
        /// Copies were aggregated at the end of the round.
        aggregated: bool,
        /// The method found nothing it believed feasible.
        fallback: bool,
        /// Success on calibration episodes.
        calibration_success: Option<f64>,
        /// Success on report episodes, unseen by any method.
        report_success: Option<f64>,
        /// Episodes run in this round.
        episodes: u64,
    }
);

row!(
    /// One row of `terminals.parquet`. NaN stands where there is no value.
    TerminalRow {
        /// The round, counted from 1.
        round: u64,
        /// Id of the terminal.
        terminal: u64,
        /// Index of its task.
        task: u64,
        /// Large-scale channel gain.
        gain_db: f64,
        /// The same, linear: what the base station computes with, to the last bit.
        gain: f64,
        /// Small-scale fading power.
        fading_power: f64,
        /// It was scheduled.
        scheduled: bool,
        /// It counted in learning.
        took_part: bool,
        /// It was scheduled and did not make it.
        late: bool,
        /// The round closed before it had finished, what it owed included.
        unfinished: bool,
        /// Bandwidth decided.
        bandwidth_asked_hz: f64,
        /// Bandwidth it really had.
        bandwidth_hz: f64,
        /// Transmit power decided.
        power_w: f64,
        /// Cut decided.
        cut: u64,
        /// Compression decided.
        compression: f64,
        /// True delay.
        delay_s: f64,
        /// Delay as the base station measured it: no longer than the round was open.
        delay_observed_s: f64,
        /// The part of it that was computation, as measured.
        computation_observed_s: f64,
        /// True energy spent on transmission.
        energy_radio_j: f64,
        /// True energy spent on computation.
        energy_compute_j: f64,
        /// Energy as the base station measured it.
        energy_observed_j: f64,
        /// Activation bytes sent up.
        bytes_up: u64,
        /// Gradient bytes sent down.
        bytes_down: u64,
        /// Bytes of model exchange, both ways.
        bytes_sync: u64,
        /// Loss on its minibatch.
        loss: f64,
        /// Norm of its client-side gradient.
        gradient_norm: f64,
        /// Loss of the deployed policy on its data before the round, in the rounds that are looked at.
        deployed_loss_before: f64,
        /// The same after the round.
        deployed_loss_after: f64,
        /// Front layers it held in their current version before the round.
        held_layers: u64,
        /// Front layers it had trained and owed before the round.
        owed_layers: u64,
        /// Samples in its data set.
        n_samples: u64,
        /// Its memory budget.
        memory_bytes: u64,
    }
);

row!(
    /// One line of `calibration.csv`: what the calibration episodes of a task showed.
    CalibrationRow {
        /// The round at whose end they were run.
        round: u64,
        /// Index of the task.
        task: u64,
        /// Episodes that ended in success.
        successes: u64,
        /// Episodes run.
        episodes: u64,
    }
);

impl CalibrationRow {
    /// The rows of an executed round, one per task; none if it was not measured.
    pub fn all_of(record: &RoundRecord) -> impl Iterator<Item = Self> + '_ {
        let counts = record.outcome.success.iter().flatten().zip(0..);
        counts.map(|(count, task)| Self {
            round: record.seen.round,
            task,
            successes: count.successes,
            episodes: count.episodes,
        })
    }
}

impl RoundRow {
    /// The row of an executed round.
    pub fn of(record: &RoundRecord) -> Self {
        let RoundRecord { seen, order, outcome, .. } = record;
        let (plan, ledger) = (&order.plan, &record.ledger());
        let count = |held: fn(&TerminalOutcome) -> bool| {
            outcome.terminals.iter().filter(|one| held(one)).count() as u64
        };
        let bytes =
            |of: fn(&TerminalLedger) -> Bytes| ledger.terminals.iter().map(of).sum::<Bytes>().0;
        let joules =
            |of: fn(&TerminalLedger) -> Joules| ledger.terminals.iter().map(of).sum::<Joules>().0;
        let (radio_j, compute_j) =
            (joules(|one| one.energy_radio), joules(|one| one.energy_compute));
        let (volume, sync) = (bytes(|one| one.bytes_up), bytes(|one| one.bytes_sync));
        Self {
            round: seen.round,
            clock_s: (seen.clock + ledger.duration).0,
            n_scheduled: plan.decision().scheduled().count() as u64,
            n_took_part: count(|one| one.took_part),
            n_late: count(|one| one.late),
            bandwidth_hz: plan.decision().bandwidth().0,
            latency_s: ledger.latency.0,
            duration_s: ledger.duration.0,
            energy_j: radio_j + compute_j,
            energy_radio_j: radio_j,
            energy_compute_j: compute_j,
            volume_bytes: volume,
            sync_bytes: sync,
            air_bytes: volume + sync + bytes(|one| one.bytes_down),
            loss: outcome.loss,
            violation: ledger.violation.relative,
            violation_deadline_s: ledger.violation.deadline.0,
            violation_memory_bytes: ledger.violation.memory.0,
            violation_spectrum_hz: ledger.violation.spectrum.0,
            aggregated: plan.aggregates(order.aggregates),
            fallback: plan.decision().fallback,
            calibration_success: pooled(record.calibration.as_deref()),
            report_success: pooled(ledger.report.as_deref()),
            episodes: ledger.episodes,
        }
    }
}

/// Success over all counts together, if there was a measurement.
fn pooled(counts: Option<&[TerminalSuccess]>) -> Option<f64> {
    super::success_rate(counts?.iter().map(|one| one.count))
}

/// Losses that nobody looked at.
const UNKNOWN: LossChange = LossChange { before: f64::NAN, after: f64::NAN };

impl TerminalRow {
    /// The rows of an executed round, in the order of the terminals.
    pub fn all_of(record: &RoundRecord) -> impl Iterator<Item = Self> + '_ {
        let ledger = record.ledger();
        (0..record.seen.terminals.len()).map(move |place| Self::of(record, &ledger, place))
    }

    fn of(record: &RoundRecord, ledger: &Ledger, place: usize) -> Self {
        let view = &record.seen.terminals[place];
        let plan = &record.order.plan.decision().terminals[place];
        let observed = &record.outcome.terminals[place];
        let truth = &ledger.terminals[place];
        let losses = ledger.losses.as_ref().map_or(UNKNOWN, |all| all[place]);
        Self {
            round: record.seen.round,
            terminal: u64::from(view.report.id.0),
            task: view.report.task as u64,
            gain_db: to_db(view.report.gain.0),
            gain: view.report.gain.0,
            fading_power: view.report.fading_power,
            scheduled: plan.scheduled,
            took_part: observed.took_part,
            late: observed.late,
            unfinished: observed.unfinished,
            bandwidth_asked_hz: plan.bandwidth.0,
            bandwidth_hz: truth.bandwidth.0,
            power_w: plan.power.0,
            cut: plan.cut as u64,
            compression: plan.compression,
            delay_s: truth.delay.0,
            delay_observed_s: observed.delay.0,
            computation_observed_s: observed.computation.0,
            energy_radio_j: truth.energy_radio.0,
            energy_compute_j: truth.energy_compute.0,
            energy_observed_j: observed.energy.0,
            bytes_up: truth.bytes_up.0,
            bytes_down: truth.bytes_down.0,
            bytes_sync: truth.bytes_sync.0,
            loss: observed.loss.unwrap_or(f64::NAN),
            gradient_norm: observed.gradient_norm.unwrap_or(f64::NAN),
            deployed_loss_before: losses.before,
            deployed_loss_after: losses.after,
            held_layers: view.report.held_layers as u64,
            owed_layers: view.report.owed_layers as u64,
            n_samples: view.report.n_samples as u64,
            memory_bytes: view.report.memory.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fixture::record;

    #[test]
    fn a_round_row_sums_what_happened_to_the_terminals() {
        let row = RoundRow::of(&record(4));
        assert_eq!((row.round, row.n_scheduled, row.n_took_part, row.n_late), (4, 2, 1, 1));
        assert_eq!((row.clock_s, row.duration_s), (8.0, 2.0));
        assert_eq!((row.volume_bytes, row.sync_bytes, row.air_bytes), (300, 7, 337));
        assert_eq!(row.energy_j, row.energy_radio_j + row.energy_compute_j);
        assert_eq!(row.bandwidth_hz, 120.0);
        assert_eq!(row.report_success, Some(0.5));
        assert_eq!(RoundRow::of(&record(3)).report_success, None);
    }

    #[test]
    fn a_terminal_without_a_loss_has_nan() {
        let rows: Vec<_> = TerminalRow::all_of(&record(4)).collect();
        assert_eq!(rows.len(), 3);
        assert!(rows[2].loss.is_nan() && rows[2].gradient_norm.is_nan());
        assert!(rows[0].loss.is_finite());
        assert_eq!((rows[1].terminal, rows[1].task, rows[1].bytes_up), (1, 1, 200));
        assert!((rows[1].gain_db - -110.0).abs() < 1e-9);
        assert_eq!((rows[1].bandwidth_asked_hz, rows[1].bandwidth_hz), (60.0, 50.0));
        assert_eq!((rows[1].n_samples, rows[1].memory_bytes), (10, 1000));
    }

    #[test]
    fn a_round_that_is_looked_at_has_the_losses_of_the_deployed_policy_and_others_none() {
        let rows: Vec<_> = TerminalRow::all_of(&record(3)).collect();
        assert_eq!((rows[2].deployed_loss_before, rows[2].deployed_loss_after), (0.2, 0.9 * 0.2));
        let others: Vec<_> = TerminalRow::all_of(&record(4)).collect();
        assert!(others.iter().all(|row| row.deployed_loss_before.is_nan()));
        assert!(others.iter().all(|row| row.deployed_loss_after.is_nan()));
    }

    #[test]
    fn a_measured_round_has_a_calibration_row_per_task_and_others_none() {
        let rows: Vec<_> = CalibrationRow::all_of(&record(4)).collect();
        let count = |task, successes| CalibrationRow { round: 4, task, successes, episodes: 8 };
        assert_eq!(rows, [count(0, 4), count(1, 0)]);
        assert_eq!(CalibrationRow::all_of(&record(3)).count(), 0);
    }
}
