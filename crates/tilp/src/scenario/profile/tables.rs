//! Tables of a profile scenario: CSV with a line of column names, and comments after `#`.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use super::raw::{CutRow, Profile};
use crate::scenario::ScenarioError;
use crate::scenario::load::Loaded;
use crate::scenario::terminals::ListedTerminal;

/// Tables that come with the program.
const BUILTIN: [(&str, &str); 2] = [
    ("builtin:openvla", include_str!("../../../../../configs/profiles/openvla.csv")),
    ("builtin:smolvla", include_str!("../../../../../configs/profiles/smolvla.csv")),
];

/// No table may be longer than this.
const MOST_BYTES: u64 = 4 << 20;
/// Parts of a model, at most.
const MOST_CUTS: usize = 512;
/// Terminals, at most.
const MOST_TERMINALS: usize = 10_000;

/// Puts the tables that a scenario names into it.
pub(in crate::scenario) fn read_tables(loaded: &mut Loaded) -> Result<(), ScenarioError> {
    let Some(profile) = &mut loaded.raw.profile else { return Ok(()) };
    let source = Source { folder: &loaded.folder, place: &loaded.place };
    if !profile.model.is_empty() {
        profile.cuts = source.cuts(&profile.model)?;
        profile.model.clear();
    }
    if !profile.terminals.is_empty() {
        profile.listed = source.terminals(&profile.terminals)?;
        profile.terminals.clear();
        loaded.raw.cell.n_terminals = profile.listed.len();
        count_tasks(profile);
    }
    Ok(())
}

/// Where the table gives every terminal its task, there are no others.
fn count_tasks(profile: &mut Profile) {
    let mut counts = BTreeMap::new();
    for row in &profile.listed {
        let Some(task) = &row.task else { return };
        *counts.entry(task.clone()).or_insert(0) += 1;
    }
    profile.tasks = counts;
}

/// Whether a scenario names a table that is not in it yet.
pub(in crate::scenario) fn names_tables(profile: &Profile) -> bool {
    !profile.model.is_empty() || !profile.terminals.is_empty()
}

/// Where the tables of a scenario are looked for.
struct Source<'a> {
    folder: &'a Path,
    place: &'a str,
}

impl Source<'_> {
    fn cuts(&self, name: &str) -> Result<Vec<CutRow>, ScenarioError> {
        const COLUMNS: [&str; 5] =
            ["name", "activation_elements", "operations", "trained_parameters", "memory_bytes"];
        let table = self.table("profile.model", name, &COLUMNS, &COLUMNS, MOST_CUTS)?;
        let row = |line: &Line| {
            Ok(CutRow {
                name: line.text("name").unwrap_or_default(),
                activation_elements: line.needed("activation_elements")?,
                operations: line.needed("operations")?,
                trained_parameters: line.needed("trained_parameters")?,
                memory_bytes: line.needed("memory_bytes")?,
            })
        };
        self.rows("profile.model", name, &table, row)
    }

    fn terminals(&self, name: &str) -> Result<Vec<ListedTerminal>, ScenarioError> {
        const COLUMNS: [&str; 10] = [
            "name",
            "x_m",
            "y_m",
            "gain_db",
            "operations_per_cycle",
            "clock_hz",
            "energy_coefficient",
            "memory_bytes",
            "n_samples",
            "task",
        ];
        let table = self.table("profile.terminals", name, &COLUMNS, &[], MOST_TERMINALS)?;
        let row = |line: &Line| {
            Ok(ListedTerminal {
                name: line.text("name").unwrap_or_default(),
                x_m: line.number("x_m")?,
                y_m: line.number("y_m")?,
                gain_db: line.number("gain_db")?,
                operations_per_cycle: line.number("operations_per_cycle")?,
                clock_hz: line.number("clock_hz")?,
                energy_coefficient: line.number("energy_coefficient")?,
                memory_bytes: line.number("memory_bytes")?,
                n_samples: line.number("n_samples")?,
                task: line.text("task"),
                ..ListedTerminal::default()
            })
        };
        self.rows("profile.terminals", name, &table, row)
    }

    fn rows<T>(
        &self,
        field: &str,
        name: &str,
        table: &Table,
        row: impl Fn(&Line) -> Result<T, String>,
    ) -> Result<Vec<T>, ScenarioError> {
        let one = |(number, values): &(u64, Vec<String>)| {
            let line = Line { columns: &table.columns, values };
            row(&line).map_err(|reason| self.wrong(field, name, Some(*number), reason))
        };
        table.lines.iter().map(one).collect()
    }

    /// Reads a table whose columns are among `known` and include `needed`.
    fn table(
        &self,
        field: &str,
        name: &str,
        known: &[&str],
        needed: &[&str],
        most: usize,
    ) -> Result<Table, ScenarioError> {
        let text = self.text(field, name)?;
        let wrong = |line: Option<u64>, reason: String| self.wrong(field, name, line, reason);
        // A byte-order mark is no part of the first name.
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let is_content = |line: &str| !line.trim().is_empty() && !line.starts_with('#');
        let mut content = text.lines().zip(1..).filter(|(line, _)| is_content(line));
        let nothing = || wrong(None, "no line of column names, expected one".into());
        let (header, number) = content.next().ok_or_else(nothing)?;
        let columns = values(header).map_err(|reason| wrong(Some(number), reason))?;
        check_columns(&columns, known, needed).map_err(|reason| wrong(Some(number), reason))?;
        let mut lines = Vec::new();
        for (line, number) in content {
            let values = values(line).map_err(|reason| wrong(Some(number), reason))?;
            if values.len() != columns.len() {
                let reason = format!("{} values, expected {}", values.len(), columns.len());
                return Err(wrong(Some(number), reason));
            }
            if lines.len() == most {
                return Err(wrong(Some(number), format!("more than {most} lines of values")));
            }
            lines.push((number, values));
        }
        match lines.is_empty() {
            true => Err(wrong(None, "no line of values, expected at least one".into())),
            false => Ok(Table { columns, lines }),
        }
    }

    fn text(&self, field: &str, name: &str) -> Result<String, ScenarioError> {
        if let Some((_, text)) = BUILTIN.iter().find(|(builtin, _)| *builtin == name) {
            return Ok((*text).to_owned());
        }
        let wrong = |reason: String| self.wrong(field, name, None, reason);
        if name.starts_with("builtin") {
            let known: Vec<&str> = BUILTIN.iter().map(|(builtin, _)| *builtin).collect();
            return Err(wrong(format!("no such table, expected a file or {}", known.join(", "))));
        }
        let file = std::fs::File::open(self.folder.join(name));
        let mut bytes = Vec::new();
        file.and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes))
            .map_err(|error| wrong(error.to_string()))?;
        if bytes.len() as u64 > MOST_BYTES {
            return Err(wrong(format!("longer than {MOST_BYTES} bytes")));
        }
        String::from_utf8(bytes).map_err(|_| wrong("not text in UTF-8".into()))
    }

    fn wrong(&self, field: &str, name: &str, line: Option<u64>, reason: String) -> ScenarioError {
        let line = line.map_or(String::new(), |line| format!(", line {line}"));
        let reason: Vec<&str> = reason.split_whitespace().collect();
        ScenarioError::Field {
            field: field.to_owned(),
            reason: format!("{name}{line}: {}", reason.join(" ")),
            place: self.place.to_owned(),
        }
    }
}

/// The values of one line.
fn values(line: &str) -> Result<Vec<String>, String> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .trim(csv::Trim::All)
        .from_reader(line.as_bytes());
    let record = reader.records().next().transpose().map_err(|error| error.to_string())?;
    Ok(record.iter().flatten().map(str::to_owned).collect())
}

fn check_columns(columns: &[String], known: &[&str], needed: &[&str]) -> Result<(), String> {
    for (place, column) in columns.iter().enumerate() {
        if !known.contains(&&column[..]) {
            return Err(format!("column `{column}`, expected some of {}", known.join(", ")));
        }
        if columns[..place].contains(column) {
            return Err(format!("column `{column}` twice, expected it once"));
        }
    }
    let missing = needed.iter().find(|name| !columns.iter().any(|column| column == *name));
    missing.map_or(Ok(()), |name| Err(format!("no column `{name}`, expected one")))
}

/// A table as text.
struct Table {
    columns: Vec<String>,
    /// Values with the number of their line.
    lines: Vec<(u64, Vec<String>)>,
}

/// One line of a table.
struct Line<'a> {
    columns: &'a [String],
    values: &'a [String],
}

impl Line<'_> {
    /// The text of a column; none if it is empty or there is no such column.
    fn text(&self, column: &str) -> Option<String> {
        let place = self.columns.iter().position(|name| name == column)?;
        Some(self.values[place].clone()).filter(|text| !text.is_empty())
    }

    /// The number in a column; none if it is empty or there is no such column.
    fn number<T: Number>(&self, column: &str) -> Result<Option<T>, String> {
        let Some(text) = self.text(column) else { return Ok(None) };
        let value = T::read(&text);
        value.map(Some).ok_or_else(|| format!("{column} = {text}, expected {}", T::EXPECTED))
    }

    /// The number in a column that must have one.
    fn needed<T: Number>(&self, column: &str) -> Result<T, String> {
        let value = self.number(column)?;
        value.ok_or_else(|| format!("{column} is empty, expected {}", T::EXPECTED))
    }
}

/// A kind of number in a table.
trait Number: Sized {
    const EXPECTED: &'static str;
    fn read(text: &str) -> Option<Self>;
}

impl Number for f64 {
    const EXPECTED: &'static str = "a finite number";
    fn read(text: &str) -> Option<Self> {
        text.parse().ok().filter(|value: &f64| value.is_finite())
    }
}

/// Whole numbers may be written as 8e9.
impl Number for u64 {
    const EXPECTED: &'static str = "a whole number from 0 to 2^53";
    fn read(text: &str) -> Option<Self> {
        let value = f64::read(text)?;
        let whole = value >= 0.0 && value <= (1u64 << 53) as f64 && value.fract() == 0.0;
        whole.then_some(value as u64)
    }
}
