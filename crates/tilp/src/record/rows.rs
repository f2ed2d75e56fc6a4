//! The rows of a run: one per round, one per terminal and round, one per terminal and measurement.
//! All of them are made of events.

use super::event::{Books, Decided, Executed, LossesLine, Measurement, Number, SuccessColumns};
use super::table::{Cell, Kind, row};
use crate::round::SuccessCount;
use crate::units::{Hertz, Joules, to_db};

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
        /// Scheduled terminals that fit their memory and did not finish in time.
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
        /// Scheduled terminals that did not fit their memory. Files of earlier builds count them in
        /// `n_late`.
        n_unfit: u64,
    }
    added "n_unfit"
);

row!(
    /// One row of `terminals.parquet`. NaN means no value.
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
        /// It was scheduled, fits its memory, and did not finish in time.
        late: bool,
        /// The round closed before it had finished, its pending upload included.
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
        /// Delay as the base station measured it, with measurement noise. If the terminal did not
        /// finish: the time at which the round closed (a lower bound).
        delay_observed_s: f64,
        /// The part of the measured delay that was computation.
        computation_observed_s: f64,
        /// True energy spent on transmission.
        energy_radio_j: f64,
        /// True energy spent on computation.
        energy_compute_j: f64,
        /// Energy as the base station measured it, with measurement noise.
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
        /// Loss of the deployed policy on its data before the round, every `evaluation.loss_every`
        /// rounds.
        deployed_loss_before: f64,
        /// The same after the round.
        deployed_loss_after: f64,
        /// Front layers it held in their current version before the round.
        held_layers: u64,
        /// Front layers it had trained and not yet uploaded before the round.
        owed_layers: u64,
        /// Samples in its data set.
        n_samples: u64,
        /// Its memory budget.
        memory_bytes: u64,
        /// It was scheduled with a cut that does not fit its memory. Files of earlier builds have it
        /// in `late`.
        unfit: bool,
    }
    added "unfit"
    named by task
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
    named by task
);

row!(
    /// One row of `episodes.parquet`: success of one terminal at one measurement.
    EpisodeRow {
        /// Which episodes.
        kind: EpisodeKind,
        /// The round at whose end they were run; 0 is the base policy.
        round: u64,
        /// Id of the terminal.
        terminal: u64,
        /// Index of its task.
        task: u64,
        /// Episodes that ended in success.
        successes: u64,
        /// Episodes run.
        episodes: u64,
    }
    named by task
);

/// The three disjoint sets of episodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EpisodeKind {
    /// For calibration: the only success that a method sees.
    #[default]
    Calibration,
    /// For the report: curves and first passages.
    Report,
    /// After the last round.
    Final,
}

impl Cell for EpisodeKind {
    const KIND: Kind = Kind::Word(&["calibration", "report", "final"]);

    fn to_cell(&self) -> u64 {
        *self as u64
    }

    fn from_cell(bits: u64) -> Self {
        match bits {
            0 => Self::Calibration,
            1 => Self::Report,
            _ => Self::Final,
        }
    }
}

impl EpisodeRow {
    /// The rows of a measurement, in the order of its terminals.
    pub fn all_of(
        kind: EpisodeKind,
        round: u64,
        counts: &SuccessColumns,
    ) -> impl Iterator<Item = Self> + '_ {
        let whose = counts.terminal.iter().zip(&counts.task);
        whose.zip(counts.counts()).map(move |((terminal, task), count)| Self {
            kind,
            round,
            terminal: u64::from(*terminal),
            task: *task as u64,
            successes: count.successes,
            episodes: count.episodes,
        })
    }
}

impl CalibrationRow {
    /// The rows of a calibration, one per task.
    pub fn all_of(event: &Measurement, n_tasks: usize) -> impl Iterator<Item = Self> + '_ {
        let counts = event.terminals.task.iter().zip(event.terminals.counts());
        (0..n_tasks).map(move |task| {
            let of_task = counts.clone().filter(|(own, _)| **own == task).map(|(_, count)| count);
            let count = of_task.fold(SuccessCount::default(), SuccessCount::plus);
            Self {
                round: event.id.0,
                task: task as u64,
                successes: count.successes,
                episodes: count.episodes,
            }
        })
    }
}

impl RoundRow {
    /// The row of an executed round. Successes are filled in when they are measured.
    pub fn of(decided: &Decided, executed: &Executed) -> Self {
        let (plan, books) = (&decided.terminals, executed.books(decided));
        let count = |which: &[bool]| which.iter().filter(|yes| **yes).count() as u64;
        let bytes = |of: &[u64]| of.iter().sum::<u64>();
        let joules = |of: &[Number]| of.iter().map(|one| Joules(one.value())).sum::<Joules>().0;
        let asked = plan.scheduled.iter().zip(&plan.bandwidth_hz).filter(|(yes, _)| **yes);
        let asked: Hertz = asked.map(|(_, hz)| Hertz(hz.value())).sum();
        let radio_j = joules(&books.terminals.energy_radio_j);
        let compute_j = joules(&books.terminals.energy_compute_j);
        let volume = bytes(&books.terminals.bytes_up);
        let sync = bytes(&books.terminals.bytes_sync);
        Self {
            round: decided.id.0,
            clock_s: decided.clock_s.value() + books.duration_s.value(),
            n_scheduled: count(&plan.scheduled),
            n_took_part: count(&executed.terminals.took_part),
            n_late: count(&executed.terminals.late),
            bandwidth_hz: asked.0,
            latency_s: books.latency_s.value(),
            duration_s: books.duration_s.value(),
            energy_j: radio_j + compute_j,
            energy_radio_j: radio_j,
            energy_compute_j: compute_j,
            volume_bytes: volume,
            sync_bytes: sync,
            air_bytes: volume + sync + bytes(&books.terminals.bytes_down),
            loss: executed.loss.map(Number::value),
            violation: books.violation.value(),
            violation_deadline_s: books.violation_deadline_s.value(),
            violation_memory_bytes: books.violation_memory_bytes,
            violation_spectrum_hz: books.violation_spectrum_hz.value(),
            aggregated: decided.aggregates,
            fallback: decided.fallback,
            calibration_success: None,
            report_success: None,
            episodes: books.episodes,
            n_unfit: count(&executed.terminals.unfit),
        }
    }
}

impl TerminalRow {
    /// The rows of an executed round, in the order of the terminals.
    pub fn all_of(decided: &Decided, executed: &Executed) -> Vec<Self> {
        let books = executed.books(decided);
        let n_terminals = decided.terminals.terminal.len();
        (0..n_terminals).map(|n| Self::of(decided, executed, &books, n)).collect()
    }

    fn of(decided: &Decided, executed: &Executed, books: &Books, n: usize) -> Self {
        let (plan, observed, truth) = (&decided.terminals, &executed.terminals, &books.terminals);
        let known = |value: Option<Number>| value.map_or(f64::NAN, Number::value);
        let loss = |of: fn(&LossesLine) -> &[Number]| {
            books.losses.as_ref().map_or(f64::NAN, |losses| of(losses)[n].value())
        };
        Self {
            round: decided.id.0,
            terminal: u64::from(plan.terminal[n]),
            task: plan.task[n] as u64,
            gain_db: to_db(plan.gain[n].value()),
            gain: plan.gain[n].value(),
            fading_power: plan.fading_power[n].value(),
            scheduled: plan.scheduled[n],
            took_part: observed.took_part[n],
            late: observed.late[n],
            unfinished: observed.unfinished[n],
            bandwidth_asked_hz: plan.bandwidth_hz[n].value(),
            bandwidth_hz: truth.bandwidth_hz[n].value(),
            power_w: plan.power_w[n].value(),
            cut: plan.cut[n] as u64,
            compression: plan.compression[n].value(),
            delay_s: truth.delay_s[n].value(),
            delay_observed_s: observed.delay_s[n].value(),
            computation_observed_s: observed.computation_s[n].value(),
            energy_radio_j: truth.energy_radio_j[n].value(),
            energy_compute_j: truth.energy_compute_j[n].value(),
            energy_observed_j: observed.energy_j[n].value(),
            bytes_up: truth.bytes_up[n],
            bytes_down: truth.bytes_down[n],
            bytes_sync: truth.bytes_sync[n],
            loss: known(observed.loss[n]),
            gradient_norm: known(observed.gradient_norm[n]),
            deployed_loss_before: loss(|losses| &losses.before),
            deployed_loss_after: loss(|losses| &losses.after),
            held_layers: plan.held_layers[n] as u64,
            owed_layers: plan.owed_layers[n] as u64,
            n_samples: plan.n_samples[n] as u64,
            memory_bytes: plan.memory_bytes[n],
            unfit: observed.is_unfit(n),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fixture::{decided, executed, history, record};

    fn round_row(round: u64) -> RoundRow {
        RoundRow::of(&decided(round), &executed(round))
    }

    fn terminal_rows(round: u64) -> Vec<TerminalRow> {
        TerminalRow::all_of(&decided(round), &executed(round))
    }

    #[test]
    fn a_round_row_sums_what_happened_to_the_terminals() {
        let row = round_row(4);
        assert_eq!((row.round, row.n_scheduled, row.n_took_part), (4, 2, 1));
        assert_eq!((row.n_late, row.n_unfit), (1, 1));
        assert_eq!((row.clock_s, row.duration_s), (8.0, 2.0));
        assert_eq!((row.volume_bytes, row.sync_bytes, row.air_bytes), (300, 7, 337));
        assert_eq!(row.energy_j, row.energy_radio_j + row.energy_compute_j);
        assert_eq!(row.bandwidth_hz, 120.0);
        let rows = history(4).rounds;
        assert_eq!((rows[3].report_success, rows[2].report_success), (Some(0.5), None));
        assert_eq!((rows[3].calibration_success, rows[2].calibration_success), (Some(0.25), None));
    }

    #[test]
    fn events_of_earlier_builds_do_not_tell_late_and_unfit_apart() {
        let mut before = executed(4);
        before.terminals.unfit.clear();
        assert_eq!(before.check(3), Ok(()));
        assert_eq!(RoundRow::of(&decided(4), &before).n_unfit, 0);
        assert!(TerminalRow::all_of(&decided(4), &before).iter().all(|row| !row.unfit));
        let rows = terminal_rows(4);
        assert_eq!(rows.iter().map(|row| row.unfit).collect::<Vec<_>>(), [false, false, true]);
        before.terminals.unfit.push(true);
        assert!(before.check(3).is_err(), "one entry for three terminals");
    }

    #[test]
    fn a_terminal_without_a_loss_has_nan() {
        let rows = terminal_rows(4);
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
        let rows = terminal_rows(3);
        assert_eq!((rows[2].deployed_loss_before, rows[2].deployed_loss_after), (0.2, 0.9 * 0.2));
        let others = terminal_rows(4);
        assert!(others.iter().all(|row| row.deployed_loss_before.is_nan()));
        assert!(others.iter().all(|row| row.deployed_loss_after.is_nan()));
    }

    #[test]
    fn a_measured_round_has_a_calibration_row_per_task_and_others_none() {
        let count = |round, task, successes| CalibrationRow { round, task, successes, episodes: 8 };
        assert_eq!(history(4).calibrations, [count(4, 0, 4), count(4, 1, 0)]);
        assert_eq!(history(3).calibrations, []);
    }

    #[test]
    fn without_books_what_was_measured_stands_for_what_is_true() {
        let (decided, mut executed) = (decided(4), executed(4));
        executed.books = None;
        let row = RoundRow::of(&decided, &executed);
        assert_eq!((row.latency_s, row.duration_s, row.volume_bytes), (2.9, 2.0, 0));
        assert_eq!((row.energy_j, row.energy_radio_j), (0.3 + 0.3 + 0.3, 0.0));
        let rows = TerminalRow::all_of(&decided, &executed);
        assert_eq!((rows[1].delay_s, rows[1].bandwidth_hz), (2.9, 60.0));
        assert!(record(4).books.is_some(), "the fixture has books otherwise");
    }

    #[test]
    fn every_measurement_of_every_terminal_is_an_episode_row() {
        let rows = history(4).episodes;
        let kinds: Vec<_> = rows.iter().map(|row| (row.kind, row.round, row.terminal)).collect();
        let (report, calibration) = (EpisodeKind::Report, EpisodeKind::Calibration);
        let expected = [
            (report, 0, 0),
            (report, 2, 0),
            (calibration, 4, 0),
            (calibration, 4, 1),
            (report, 4, 0),
        ];
        assert_eq!(kinds, expected);
    }
}
