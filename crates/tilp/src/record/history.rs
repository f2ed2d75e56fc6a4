//! All rows so far, and their way into a checkpoint and back.

use super::table::{Kind, Row};
use super::{CalibrationRow, RoundRow, TerminalRow};
use crate::run::RoundRecord;
use crate::snapshot::{Persist, Snapshot, SnapshotError};

/// All rows of a run so far. It goes into the checkpoint, so that a resumed run writes the same
/// files as one that was never stopped.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// One row per round.
    pub rounds: Vec<RoundRow>,
    /// One row per terminal and round, round by round.
    pub terminals: Vec<TerminalRow>,
    /// One row per task and measured round.
    pub calibrations: Vec<CalibrationRow>,
}

impl History {
    /// Adds the rows of a round.
    pub fn push(&mut self, record: &RoundRecord) {
        self.rounds.push(RoundRow::of(record));
        self.terminals.extend(TerminalRow::all_of(record));
        self.calibrations.extend(CalibrationRow::all_of(record));
    }
}

impl Persist for History {
    fn save(&self, snapshot: &mut Snapshot) {
        put(snapshot, ROUNDS, &self.rounds);
        put(snapshot, TERMINALS, &self.terminals);
        put(snapshot, CALIBRATIONS, &self.calibrations);
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        *self = Self {
            rounds: get(snapshot, ROUNDS)?,
            terminals: get(snapshot, TERMINALS)?,
            calibrations: get(snapshot, CALIBRATIONS)?,
        };
        Ok(())
    }
}

const ROUNDS: &str = "record/rounds";
const TERMINALS: &str = "record/terminals";
const CALIBRATIONS: &str = "record/calibrations";

/// Writes one array per column; the flags of a row share one word.
fn put<R: Row>(snapshot: &mut Snapshot, table: &str, rows: &[R]) {
    let mut flags = vec![0; rows.len()];
    for (idx, column) in R::COLUMNS.iter().enumerate() {
        let name = format!("{table}/{}", column.name);
        let cells = rows.iter().map(column.get);
        match column.kind {
            Kind::Count => snapshot.put_u64(&name, cells.collect()),
            Kind::Number | Kind::Optional => {
                snapshot.put_f64(&name, cells.map(f64::from_bits).collect());
            }
            Kind::Flag => flags.iter_mut().zip(cells).for_each(|(word, bit)| *word |= bit << idx),
        }
    }
    snapshot.put_u64(&format!("{table}/flags"), flags);
}

fn get<R: Row>(snapshot: &Snapshot, table: &str) -> Result<Vec<R>, SnapshotError> {
    let n_rows = snapshot.len_of(&format!("{table}/flags"));
    let flags = snapshot.u64(&format!("{table}/flags"), n_rows)?;
    let mut rows: Vec<R> = (0..n_rows).map(|_| R::default()).collect();
    for (idx, column) in R::COLUMNS.iter().enumerate() {
        let name = format!("{table}/{}", column.name);
        let mut fill = |cell: &dyn Fn(usize) -> u64| {
            rows.iter_mut().enumerate().for_each(|(n, row)| (column.set)(row, cell(n)));
        };
        match column.kind {
            Kind::Count => {
                let values = snapshot.u64(&name, n_rows)?;
                fill(&|n| values[n]);
            }
            Kind::Number | Kind::Optional => {
                let values = snapshot.f64(&name, n_rows)?;
                fill(&|n| values[n].to_bits());
            }
            Kind::Flag => fill(&|n| flags[n] >> idx & 1),
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fixture::{history, record};

    /// Equality that also holds for NaN.
    fn text(history: &History) -> String {
        format!("{history:?}")
    }

    fn restored(snapshot: &Snapshot) -> Result<History, SnapshotError> {
        let mut history = History::default();
        history.restore(snapshot).map(|()| history)
    }

    #[test]
    fn rows_come_back_from_a_snapshot_bit_for_bit() {
        let before = history(6);
        let mut snapshot = Snapshot::default();
        before.save(&mut snapshot);
        let mut after = restored(&snapshot).unwrap();
        assert_eq!(text(&after), text(&before));
        after.push(&record(7));
        assert_eq!(text(&after), text(&history(7)));
    }

    #[test]
    fn an_absent_loss_stays_apart_from_a_broken_one() {
        let mut before = history(2);
        before.rounds[0].loss = None;
        before.rounds[1].loss = Some(f64::NAN);
        let mut snapshot = Snapshot::default();
        before.save(&mut snapshot);
        let after = restored(&snapshot).unwrap();
        assert_eq!(after.rounds[0].loss, None);
        assert!(after.rounds[1].loss.is_some_and(f64::is_nan));
    }

    #[test]
    fn no_rows_are_rows_too() {
        let mut snapshot = Snapshot::default();
        History::default().save(&mut snapshot);
        assert_eq!(restored(&snapshot), Ok(History::default()));
    }

    #[test]
    fn a_column_that_is_missing_or_short_is_named() {
        let mut snapshot = Snapshot::default();
        history(2).save(&mut snapshot);
        snapshot.put_f64("record/rounds/latency_s", vec![1.0]);
        let error = restored(&snapshot).unwrap_err().to_string();
        assert!(error.contains("record/rounds/latency_s"), "{error}");
        assert!(restored(&Snapshot::default()).is_err());
    }
}
