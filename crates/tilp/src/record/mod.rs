//! What a run leaves behind: events, rows, checkpoint, metrics, and the folder that holds them.
//!
//! Everything that happens in a run is an [`Event`]. A [`Journal`] appends events to
//! `events.jsonl` and the rows that a [`History`] makes of them to their files, round by round.
//! [`Summary::of`] computes the metrics from the rows. [`Files`] encodes what is written whole, and
//! [`RunFolder::write`] puts it on disk so that no such file and no new folder is ever seen half
//! written. Wall times come from the caller: there is no clock here.

mod appended;
mod checkpoint;
mod columns;
mod csv_file;
mod error;
pub mod event;
mod files;
mod fingerprint;
#[cfg(test)]
mod fixture;
mod folder;
pub mod format;
mod history;
mod kept;
mod metrics;
mod parquet_file;
pub(crate) mod parquet_guard;
mod process;
mod recovery;
mod reference;
mod rows;
mod stream;
mod summary;
mod table;
mod tfevents;

pub use checkpoint::{Checkpoint, Identity, StreamMark};
pub use columns::{Column, Values, episode_columns, round_columns, terminal_columns};
pub use csv_file::{calibrations_from_csv, calibrations_to_csv, rounds_from_csv, rounds_to_csv};
pub use error::RecordError;
pub use event::{Event, EventId};
pub use files::{Files, RESULT_FILES};
pub use fingerprint::fingerprint;
pub use folder::{FolderLock, RunFolder, unique_name, write_beside};
pub use history::History;
pub(crate) use history::rows_differ;
pub use kept::kept_round;
pub use metrics::{
    FirstPassage, joules_to_accuracy, mean_latency, mean_violation, rounds_to_accuracy,
    seconds_to_accuracy, server_steps, success_improvement, success_rate, total_energy,
    total_volume, wilson_95,
};
pub use parquet_file::{
    episodes_from_parquet, episodes_to_parquet, terminals_from_parquet, terminals_to_parquet,
};
pub use process::{Moment, ProcessEvent, Times};
pub use recovery::{EventMark, EventSummary, event_summaries, success_area};
pub use reference::{ColumnAbout, FileColumns, file_columns};
pub use rows::{CalibrationRow, EpisodeKind, EpisodeRow, RoundRow, TerminalRow};
pub use stream::{Journal, Stream};
pub use summary::{AtThresholds, Evaluation, Summary, n_far};
pub use tfevents::ScalarEvents;
