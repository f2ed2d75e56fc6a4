//! Whether a run folder is consistent: its summary against its rows, its rows against its events; and
//! whether two folders hold the same run.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::RunError;
use super::open::read_run_identity;
use crate::record::{
    EpisodeKind, EpisodeRow, Evaluation, History, RESULT_FILES, RecordError, RoundRow, RunFolder,
    Summary, rows_differ,
};
use crate::round::{SuccessCount, TerminalId, TerminalSuccess};
use crate::scenario::{Registry, suite_of};

/// Findings in a run folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Completed checks, one line each.
    pub checked: Vec<String>,
    /// What could not be checked, and why.
    pub unchecked: Vec<String>,
    /// The first difference: file, value, expectation. None if there is none.
    pub difference: Option<String>,
}

/// Metrics that need the episodes, which folders of version 1 do not have.
const OF_EPISODES: [&str; 7] = [
    "success_final",
    "success_final_interval",
    "success_far",
    "success_worst_task",
    "success_by_task",
    "eval_episodes_total",
    "success_curve",
];

/// Checks a complete run: rows against events, and every metric of the summary against the rows. An
/// error is a folder that cannot be read.
pub fn verify(folder: &RunFolder, registry: &Registry) -> Result<Verdict, RunError> {
    let (scenario, method, _) = read_run_identity(folder, registry)?;
    let rows = folder.read_rows()?;
    let mut verdict = Verdict::default();
    if folder.has_events() {
        let events = folder.read_history()?;
        verdict.checked.push("rows of every file: those that events.jsonl gives".into());
        verdict.difference = rows_differ(&rows, &events);
    } else {
        verdict.checked.push("counts and bytes of rounds.csv: sums of terminals.parquet".into());
        verdict.unchecked.push(format!("{}: no episodes.parquet", OF_EPISODES.join(", ")));
        verdict.difference = sums_differ(&rows);
    }
    if verdict.difference.is_some() {
        return Ok(verdict);
    }
    let evaluation = Evaluation {
        base: base_success(&rows.episodes),
        terminals: final_success(&rows.episodes),
        task_names: suite_of(&scenario).tasks.iter().map(|&name| name.to_owned()).collect(),
        first_passage: scenario.first_passage(),
        rule: Some(method.training(&scenario)?),
        events: scenario.events(),
        note: scenario.note().map(str::to_owned),
        budget: scenario.budget(),
    };
    let written = folder.read_summary_value()?;
    let skipped: &[&str] = if folder.has_events() { &[] } else { &OF_EPISODES };
    let computed = serde_json::to_value(Summary::of(&rows, &evaluation));
    let computed = computed.expect("a summary is plain data");
    let (n_metrics, difference) = summaries_differ(&written, &computed, skipped);
    verdict.checked.push(format!("{n_metrics} metrics of summary.json: computed from the rows"));
    verdict.difference = difference;
    Ok(verdict)
}

/// Success of the base policy on report episodes.
fn base_success(episodes: &[EpisodeRow]) -> Option<SuccessCount> {
    let base = episodes.iter().filter(|row| row.kind == EpisodeKind::Report && row.round == 0);
    base.map(count).reduce(SuccessCount::plus)
}

fn final_success(episodes: &[EpisodeRow]) -> Vec<TerminalSuccess> {
    let finals = episodes.iter().filter(|row| row.kind == EpisodeKind::Final);
    let one = |row: &EpisodeRow| TerminalSuccess {
        id: TerminalId(row.terminal as u32),
        task: row.task as usize,
        count: count(row),
    };
    finals.map(one).collect()
}

fn count(row: &EpisodeRow) -> SuccessCount {
    SuccessCount { successes: row.successes, episodes: row.episodes }
}

/// How many metrics were compared, and the first that is not the one expected.
fn summaries_differ(
    written: &Value,
    expected: &Value,
    skipped: &[&str],
) -> (usize, Option<String>) {
    let (Value::Object(written), Value::Object(expected)) = (written, expected) else {
        return (0, Some("summary.json is no object, expected one".into()));
    };
    let mut n_metrics = 0;
    for (name, expected) in expected.iter().filter(|(name, _)| !skipped.contains(&name.as_str())) {
        // Metrics that were added later are missing in older summaries.
        let Some(found) = written.get(name) else { continue };
        n_metrics += 1;
        if found != expected {
            let line = format!("summary.json: {name} = {found}, expected {expected} of the rows");
            return (n_metrics, Some(line));
        }
    }
    let unknown = written.keys().find(|name| !expected.contains_key(*name));
    (n_metrics, unknown.map(|name| format!("summary.json: {name}, expected no such metric")))
}

/// The first round whose sums are not those of its terminals.
fn sums_differ(rows: &History) -> Option<String> {
    let of_round = |round: u64| rows.terminals.iter().filter(move |row| row.round == round);
    let differs = |row: &RoundRow| {
        let mine = || of_round(row.round);
        let bytes =
            |row: &crate::record::TerminalRow| row.bytes_up + row.bytes_down + row.bytes_sync;
        [
            ("n_scheduled", row.n_scheduled, mine().filter(|one| one.scheduled).count() as u64),
            ("n_took_part", row.n_took_part, mine().filter(|one| one.took_part).count() as u64),
            ("n_late", row.n_late, mine().filter(|one| one.late).count() as u64),
            ("volume_bytes", row.volume_bytes, mine().map(|one| one.bytes_up).sum()),
            ("sync_bytes", row.sync_bytes, mine().map(|one| one.bytes_sync).sum()),
            ("air_bytes", row.air_bytes, mine().map(bytes).sum()),
        ]
        .into_iter()
        .find(|(_, found, expected)| found != expected)
        .map(|(name, found, expected)| {
            let round = row.round;
            format!(
                "rounds.csv, round {round}: {name} = {found}, expected {expected} of its terminals"
            )
        })
    };
    rows.rounds.iter().find_map(differs)
}

/// The first difference between the results in two run folders, and how many files were compared.
/// Files that depend on the machine are left out.
pub fn first_difference(
    found: &Path,
    expected: &Path,
) -> Result<(usize, Option<String>), RecordError> {
    let mut n_files = 0;
    for name in RESULT_FILES {
        let (a, b) = (read(&found.join(name))?, read(&expected.join(name))?);
        n_files += usize::from(a.is_some() || b.is_some());
        let line = match (a, b) {
            (a, b) if a == b => continue,
            (Some(a), Some(b)) => differs(name, &a, &b),
            (Some(_), None) => format!("{name}: there, expected no such file"),
            (None, _) => format!("{name}: missing, expected the file"),
        };
        return Ok((n_files, Some(line)));
    }
    Ok((n_files, None))
}

/// None if there is no such file.
fn read(path: &Path) -> Result<Option<Vec<u8>>, RecordError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(RecordError::io("read", path)(error)),
    }
}

/// Where two files differ: line and, in a table, column; the byte if they are not text.
fn differs(name: &str, a: &[u8], b: &[u8]) -> String {
    let (Ok(one), Ok(other)) = (std::str::from_utf8(a), std::str::from_utf8(b)) else {
        let at = a.iter().zip(b).position(|(a, b)| a != b).unwrap_or(a.len().min(b.len()));
        let (a, b) = (a.len(), b.len());
        return format!("{name}: differs from byte {at} on ({a} bytes, expected {b})");
    };
    let (mut lines, mut others, mut number) = (one.lines(), other.lines(), 1);
    loop {
        match (lines.next(), others.next()) {
            (Some(line), Some(other)) if line == other => number += 1,
            (None, None) => return format!("{name}: other line ends than expected"),
            (line, other) => {
                let [line, other] = [line, other].map(Option::unwrap_or_default);
                let (cell, found, expected) = match name.ends_with(".csv") {
                    true => cell(one.lines().next().unwrap_or_default(), line, other),
                    false => (String::new(), short(line), short(other)),
                };
                return format!("{name}, line {number}: {cell}{found}, expected {expected}");
            }
        }
    }
}

/// The first cell of a line that differs, with the name of its column.
fn cell(head: &str, line: &str, other: &str) -> (String, String, String) {
    let cells = line.split(',').zip(other.split(',')).zip(head.split(','));
    match cells.into_iter().find(|((a, b), _)| a != b) {
        Some(((a, b), column)) => (format!("{column} = "), short(a), short(b)),
        None => (String::new(), short(line), short(other)),
    }
}

fn short(text: &str) -> String {
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("`{}...`", &text[..end]),
        None => format!("`{text}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_metric_that_differs_is_named() {
        let expected = json!({"a": 1.5, "b": null, "c": [1, 2]});
        assert_eq!(summaries_differ(&expected, &expected, &[]), (3, None));
        let (n, line) = summaries_differ(&json!({"a": 1.5, "c": [1, 3]}), &expected, &[]);
        assert_eq!(n, 2, "a metric that was added later may be missing");
        assert_eq!(line.unwrap(), "summary.json: c = [1,3], expected [1,2] of the rows");
        assert_eq!(summaries_differ(&json!({"c": 0}), &expected, &["c"]), (0, None));
        let (_, line) = summaries_differ(&json!({"z": 0}), &expected, &[]);
        assert_eq!(line.unwrap(), "summary.json: z, expected no such metric");
    }

    #[test]
    fn a_difference_is_named_with_line_and_column_or_byte() {
        let table = |x: &str| format!("round,x\n1,2\n2,{x}\n").into_bytes();
        let line = differs("rounds.csv", &table("3"), &table("4"));
        assert_eq!(line, "rounds.csv, line 3: x = `3`, expected `4`");
        let line = differs("a.jsonl", b"1\n", b"1\n2\n");
        assert_eq!(line, "a.jsonl, line 2: ``, expected `2`");
        let line = differs("m", &[0xff, 1, 2], &[0xff, 1]);
        assert_eq!(line, "m: differs from byte 2 on (3 bytes, expected 2)");
    }
}
