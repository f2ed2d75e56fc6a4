//! The rows of `rounds.csv`, followed as they are appended.

use std::path::Path;

use serde_json::{Map, Value, json};
use tilp::record::{RoundRow, rounds_from_csv};

use super::tail::{Change, Tail};

/// Rows so far.
#[derive(Debug, Default)]
pub(super) struct Rows {
    tail: Tail,
    header: String,
    /// One per round.
    pub all: Vec<RoundRow>,
    /// What is wrong with the file.
    pub error: Option<String>,
}

impl Rows {
    /// Reads what was appended.
    pub(super) fn refresh(&mut self, path: &Path) -> Change {
        let mut new = String::new();
        let (mut broken, mut is_header) = (None, self.header.is_empty());
        let mut header = std::mem::take(&mut self.header);
        let change = self.tail.read(path, |line, is_start, _| {
            if is_start {
                is_header = true;
                new.clear();
            }
            match std::str::from_utf8(line) {
                Ok(line) if is_header => header = line.to_owned(),
                Ok(line) => new += line,
                Err(_) => broken = Some("rounds.csv is not text".to_owned()),
            }
            is_header = false;
            broken.is_none()
        });
        self.header = header;
        let change = match change {
            Ok(change) => change,
            Err(error) => {
                self.error = Some(format!("rounds.csv: {error}"));
                return Change::None;
            }
        };
        if change == Change::Reset {
            self.all.clear();
            self.error = None;
        }
        if let Some(error) = broken {
            self.error = Some(error);
        } else if !new.is_empty() {
            match rounds_from_csv(&format!("{}{new}", self.header), Path::new("rounds.csv")) {
                Ok(rows) => self.all.extend(rows),
                Err(error) => self.error = Some(error.to_string()),
            }
        }
        change
    }

    /// The rows from one on as columns, with the names that the file has.
    pub(super) fn columns(&self, from: usize) -> Value {
        let rows = self.all.get(from..).unwrap_or_default();
        let mut columns = Map::new();
        macro_rules! column {
            ($($name:ident),*) => {
                $(columns.insert(
                    stringify!($name).into(),
                    rows.iter().map(|row| json!(row.$name)).collect(),
                );)*
            };
        }
        column!(
            round,
            clock_s,
            n_scheduled,
            n_took_part,
            n_late,
            bandwidth_hz,
            latency_s,
            duration_s,
            energy_j,
            energy_radio_j,
            energy_compute_j,
            volume_bytes,
            sync_bytes,
            air_bytes,
            loss,
            violation,
            aggregated,
            fallback,
            calibration_success,
            report_success
        );
        Value::Object(columns)
    }
}
