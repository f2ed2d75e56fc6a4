//! The columns of the readable tables, and the ranks in them.

use super::paper::Published;
use crate::experiment::study::{Metric, Row, Table};

/// A column of the readable tables.
pub(super) struct Column {
    /// Its title, with its unit.
    pub title: &'static str,
    metric: &'static str,
    factor: f64,
    digits: usize,
    /// The paper's number, if it has one.
    pub paper: Option<fn(&Published) -> Option<f64>>,
}

const fn column(
    title: &'static str,
    metric: &'static str,
    factor: f64,
    digits: usize,
    paper: Option<fn(&Published) -> Option<f64>>,
) -> Column {
    Column { title, metric, factor, digits, paper }
}

/// The columns of the paper's tables.
pub(super) const COLUMNS: [Column; 8] = [
    column("Success, %", "success_final", 1e2, 1, Some(|row| Some(row.success))),
    column("Rounds to 60 %", "rta_0.6", 1.0, 0, Some(|row| row.rounds_to(0))),
    column("Rounds to 70 %", "rta_0.7", 1.0, 0, Some(|row| row.rounds_to(1))),
    column("Rounds to 80 %", "rta_0.8", 1.0, 0, Some(|row| row.rounds_to(2))),
    column("Latency, s", "latency_mean_s", 1.0, 2, Some(|row| Some(row.latency_s))),
    column("Energy, J", "energy_total_j", 1.0, 0, None),
    column("Volume, GB", "volume_total_bytes", 1e-9, 3, Some(|row| Some(row.volume_gb))),
    column("Violation", "violation_mean", 1.0, 4, Some(|row| Some(row.violation))),
];

/// Columns that the paper does not have.
pub(super) const BESIDE: [Column; 14] = [
    column("Far third, %", "success_far", 1e2, 1, None),
    column("Worst task, %", "success_worst_task", 1e2, 1, None),
    column("s to 60 %", "tta_s_0.6", 1.0, 0, None),
    column("s to 70 %", "tta_s_0.7", 1.0, 0, None),
    column("s to 80 %", "tta_s_0.8", 1.0, 0, None),
    column("J to 60 %", "eta_j_0.6", 1.0, 0, None),
    column("J to 70 %", "eta_j_0.7", 1.0, 0, None),
    column("J to 80 %", "eta_j_0.8", 1.0, 0, None),
    column("Latency p50, s", "latency_p50_s", 1.0, 2, None),
    column("Latency p95, s", "latency_p95_s", 1.0, 2, None),
    column("On the air, GB", "air_total_bytes", 1e-9, 3, None),
    column("Late", "late_total", 1.0, 0, None),
    column("Unfit", "unfit_total", 1.0, 0, None),
    column("Server steps a round", "server_steps_per_round", 1.0, 1, None),
];

impl Column {
    /// The metric it shows.
    pub(super) fn metric(&self) -> &'static Metric {
        Metric::named(self.metric)
    }

    /// A row's value as text.
    pub(super) fn text(&self, row: &Row) -> String {
        row.cell(self.metric(), self.factor, self.digits)
    }

    /// The rank of a row among the complete rows, in a sweep among those at the same point: 0 for
    /// the best. `None` if all values are equal, for references with hidden true values, and for
    /// metrics without a better direction.
    pub(super) fn rank(&self, table: &Table, row: &Row) -> Option<usize> {
        let more_is_better = self.metric().more_is_better?;
        let counts = |other: &&Row| {
            let is_near = !table.by_point || other.subject.point == row.subject.point;
            is_near && !other.is_told() && other.is_complete()
        };
        let value = |row: &Row| row.estimate(self.metric()).map(|estimate| estimate.mean);
        let own = value(row).filter(|_| counts(&row))?;
        let others: Vec<f64> = table.rows.iter().filter(counts).filter_map(value).collect();
        let better = |other: &&f64| if more_is_better { **other > own } else { **other < own };
        let alike = others.iter().all(|other| *other == own);
        (!alike).then(|| others.iter().filter(better).count())
    }
}
