//! `rounds.csv` and `calibration.csv`: one line a row, written with the fewest digits that give
//! the number back.

use std::path::Path;

use super::error::shortened;
use super::table::{ABSENT, Kind, Row, TASK_NAME, places, task_name, to_text};
use super::{CalibrationRow, RecordError, RoundRow};

/// The text of `rounds.csv`.
pub fn rounds_to_csv(rows: &[RoundRow]) -> String {
    to_csv(rows, &[])
}

/// The rows of a `rounds.csv`; `path` is named in the error.
pub fn rounds_from_csv(text: &str, path: &Path) -> Result<Vec<RoundRow>, RecordError> {
    from_csv(text, path)
}

/// The text of `calibration.csv`, with these names of tasks.
pub fn calibrations_to_csv(rows: &[CalibrationRow], tasks: &[String]) -> String {
    to_csv(rows, tasks)
}

/// The rows of a `calibration.csv`; `path` is named in the error.
pub fn calibrations_from_csv(text: &str, path: &Path) -> Result<Vec<CalibrationRow>, RecordError> {
    from_csv(text, path)
}

/// The names of the columns.
fn header<R: Row>() -> String {
    let names = R::COLUMNS.iter().map(|column| column.name);
    names.chain(R::TASK.map(|_| TASK_NAME)).collect::<Vec<_>>().join(",") + "\n"
}

/// The lines of these rows, to be appended to those before.
pub(super) fn csv_lines<R: Row>(rows: &[R], tasks: &[String]) -> String {
    let mut text = String::new();
    for row in rows {
        let cells = R::COLUMNS.iter().map(|column| to_text(column.kind, (column.get)(row)));
        let name = R::TASK.map(|task| quoted(task_name(tasks, task(row))));
        let cells = cells.chain(name);
        text += &cells.collect::<Vec<_>>().join(",");
        text.push('\n');
    }
    text
}

fn to_csv<R: Row>(rows: &[R], tasks: &[String]) -> String {
    header::<R>() + &csv_lines(rows, tasks)
}

/// A name as a cell: always one line, in quotes where it must be.
fn quoted(name: &str) -> String {
    let name: String = name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match name.contains([',', '"']) {
        true => format!("\"{}\"", name.replace('"', "\"\"")),
        false => name,
    }
}

fn from_csv<R: Row>(text: &str, path: &Path) -> Result<Vec<R>, RecordError> {
    let malformed = |reason: String| RecordError::Malformed { path: path.to_owned(), reason };
    // The last line of an unfinished run may be incomplete.
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    let mut reader = csv::Reader::from_reader(&text.as_bytes()[..whole]);
    let header = reader.headers().map_err(|e| malformed(e.to_string()))?;
    let names: Vec<&str> = header.iter().collect();
    let is_known = |name: &&str| {
        let is_task = R::TASK.is_some() && *name == TASK_NAME;
        is_task || R::COLUMNS.iter().any(|column| column.name == *name)
    };
    let places = places::<R>(&names).ok().filter(|_| names.iter().all(is_known));
    let other = || malformed("other columns than expected of this version".into());
    let places = places.ok_or_else(other)?;
    let mut rows = Vec::new();
    for (idx, line) in reader.records().enumerate() {
        let line = line.map_err(|e| malformed(e.to_string()))?;
        let mut row = R::default();
        for (column, place) in R::COLUMNS.iter().zip(&places) {
            let Some(cell) = place.and_then(|place| line.get(place)) else { continue };
            let bits = from_text(column.kind, cell).ok_or_else(|| {
                let (name, cell) = (column.name, shortened(cell));
                malformed(format!("line {}: {name} = {cell:?}, expected {}", idx + 2, column.kind))
            })?;
            (column.set)(&mut row, bits);
        }
        rows.push(row);
    }
    Ok(rows)
}

fn from_text(kind: Kind, text: &str) -> Option<u64> {
    match kind {
        Kind::Count => text.parse().ok(),
        Kind::Optional if text.is_empty() => Some(ABSENT),
        Kind::Number | Kind::Optional => text.parse().ok().map(f64::to_bits),
        Kind::Flag => text.parse::<bool>().ok().map(u64::from),
        Kind::Word(words) => words.iter().position(|word| *word == text).map(|at| at as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fixture::history;

    #[test]
    fn numbers_are_short_and_absent_ones_empty() {
        let text = rounds_to_csv(&history(2).rounds);
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[0].starts_with("round,clock_s,n_scheduled,n_took_part,n_late,bandwidth_hz"));
        let last = "aggregated,fallback,calibration_success,report_success,episodes,n_unfit";
        assert!(lines[0].ends_with(last));
        assert_eq!(
            lines[1],
            "1,2.0,2,1,1,120.0,3.0,2.0,1.05,0.30000000000000004,0.75,300,7,337,,0.7,1.0,0,0.0,\
             false,false,,,0,1"
        );
        assert!(lines[2].contains(",inf,"));
    }

    #[test]
    fn the_rows_come_back_from_their_text() {
        let rows = history(6).rounds;
        assert_eq!(rounds_from_csv(&rounds_to_csv(&rows), Path::new("r.csv")).unwrap(), rows);
        let rows = history(8).calibrations;
        let text = calibrations_to_csv(&rows, &["push".into(), "a, \"b\"\n".into()]);
        let start = "round,task,successes,episodes,task_name\n4,0,4,8,push\n";
        assert!(text.starts_with(start), "{text}");
        assert!(text[start.len()..].starts_with("4,1,0,8,\"a, \"\"b\"\" \"\n8,"), "{text}");
        assert_eq!(calibrations_from_csv(&text, Path::new("c.csv")).unwrap(), rows);
        let old = "round,task,successes,episodes\n4,0,4,8\n";
        assert_eq!(calibrations_from_csv(old, Path::new("c.csv")).unwrap(), rows[..1]);
    }

    #[test]
    fn a_line_without_its_end_is_left_out() {
        let rows = history(4).rounds;
        let text = rounds_to_csv(&rows);
        for cut in 1..text.lines().last().unwrap().len() {
            let found = rounds_from_csv(&text[..text.len() - cut], Path::new("r.csv")).unwrap();
            assert_eq!(found, rows[..3], "{cut}");
        }
    }

    #[test]
    fn a_bad_cell_is_named_with_line_and_column() {
        let text = rounds_to_csv(&history(2).rounds).replace("\n2,4.0", "\n2,four");
        let error = rounds_from_csv(&text, Path::new("r.csv")).unwrap_err().to_string();
        assert_eq!(error, "r.csv: line 3: clock_s = \"four\", expected a number");
        assert!(rounds_from_csv("a,b\n1,2\n", Path::new("r.csv")).is_err());
        assert!(rounds_from_csv("", Path::new("r.csv")).is_err());
    }
}
