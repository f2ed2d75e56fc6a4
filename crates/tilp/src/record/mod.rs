//! What a run leaves behind: rows, checkpoint, metrics, and the folder that holds them.
//!
//! A [`History`] takes each [`RoundRecord`](crate::run::RoundRecord) and keeps its rows;
//! [`Summary::of`] computes the metrics from them; [`Files`] encodes everything, and
//! [`RunFolder::write`] puts it on disk so that no file and no new folder is ever seen half
//! written. Wall times come from the caller: there is no clock here.

mod checkpoint;
mod csv_file;
mod error;
mod files;
mod fingerprint;
#[cfg(test)]
mod fixture;
mod folder;
mod history;
mod metrics;
mod parquet_file;
mod recovery;
mod rows;
mod summary;
mod table;
mod tfevents;

pub use checkpoint::{Checkpoint, Identity};
pub use csv_file::{calibrations_from_csv, calibrations_to_csv, rounds_from_csv, rounds_to_csv};
pub use error::RecordError;
pub use files::Files;
pub use fingerprint::fingerprint;
pub use folder::{RunFolder, unique_name, write_beside};
pub use history::History;
pub use metrics::{
    FirstPassage, joules_to_accuracy, mean_latency, mean_violation, rounds_to_accuracy,
    seconds_to_accuracy, server_steps, success_improvement, success_rate, total_energy,
    total_volume, wilson_95,
};
pub use parquet_file::{terminals_from_parquet, terminals_to_parquet};
pub use recovery::{EventMark, EventSummary, event_summaries, success_area};
pub use rows::{CalibrationRow, RoundRow, TerminalRow};
pub use summary::{AtThresholds, Evaluation, Summary, n_far};
pub use tfevents::scalar_events;
