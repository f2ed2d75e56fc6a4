//! Formats of a scenario. This is the one place where an old scenario is completed.
//!
//! Format 2 writes every constant that changes a result. Format 1 has no key `format`: some of these
//! constants were in the code then. A scenario of format 1 is completed from `format-1.toml` when it
//! is read, and is written without these constants again. So its text and its hash stay those that
//! version 1 put into manifests, checkpoints and lists of runs. A scenario of format 1 that sets one
//! of these constants to another value becomes one of format 2.

use std::sync::LazyLock;

use toml::{Table, Value};

use super::load::merge;
use super::raw::Raw;

/// The format of new scenarios.
pub(super) const FORMAT: u32 = 2;

/// What format 1 does not write.
static UNWRITTEN: LazyLock<Table> = LazyLock::new(|| {
    include_str!("format-1.toml").parse().expect("a test reads the values of format 1")
});

/// The sections of format 1 that have new values or new sections inside.
const COMPLETED: [&[&str]; 5] = [
    &["hardware"],
    &["evaluation"],
    &["methods", "reference"],
    &["methods", "baselines", "fedsl"],
    &["methods", "tilp"],
];

/// Completes a scenario without `format`, which is one of format 1. Nothing is added to a file that
/// lacks whole sections of format 1 as well: its errors are about these.
pub(super) fn complete(mut table: Table) -> Table {
    if table.get("format").is_some_and(|format| format.as_integer() != Some(1)) {
        return table;
    }
    let is_whole = COMPLETED.iter().all(|path| section(&table, path).is_some());
    if is_whole {
        let own = std::mem::replace(&mut table, UNWRITTEN.clone());
        merge(&mut table, own);
    }
    table.insert("format".into(), Value::Integer(if is_whole { 1 } else { FORMAT.into() }));
    table
}

/// Makes a scenario of format 1 one of format 2 if format 1 cannot write it.
pub(super) fn settle(raw: &mut Raw) {
    if raw.format == 1 {
        let mut table = Table::try_from(&*raw).expect("a scenario is plain data");
        merge(&mut table, UNWRITTEN.clone());
        let is_old = table.try_into::<Raw>().is_ok_and(|old| old == *raw);
        raw.format = if is_old { 1 } else { FORMAT };
    }
}

/// A scenario as its format writes it.
pub(super) fn text(raw: &Raw) -> String {
    let text = toml::to_string(raw).expect("a checked scenario is plain data");
    if raw.format == 1 { as_format_1(&text) } else { text }
}

/// The values that a scenario's format writes, without `format` itself.
pub(super) fn written(raw: &Raw) -> Table {
    let mut table = Table::try_from(raw).expect("a checked scenario is plain data");
    table.remove("format");
    if raw.format == 1 {
        strip(&mut table, &UNWRITTEN);
    }
    table
}

/// Takes the values of `unwritten` out of a table, and sections that are empty then.
fn strip(table: &mut Table, unwritten: &Table) {
    for (key, value) in unwritten {
        match (table.get_mut(key), value) {
            (Some(Value::Table(inner)), Value::Table(value)) => {
                strip(inner, value);
                if inner.is_empty() {
                    table.remove(key);
                }
            }
            _ => {
                table.remove(key);
            }
        }
    }
}

/// The same on text, which keeps the order of its lines: sections are separated by empty lines.
fn as_format_1(text: &str) -> String {
    let blocks: Vec<String> = text.trim_end().split("\n\n").filter_map(block).collect();
    blocks.join("\n\n") + "\n"
}

/// What format 1 writes of a section; none if all of it is new.
fn block(text: &str) -> Option<String> {
    let header = text.lines().next().and_then(|line| line.strip_prefix('[')?.strip_suffix(']'));
    let path: Vec<&str> = header.map_or(Vec::new(), |header| header.split('.').collect());
    let unwritten = section(&UNWRITTEN, &path);
    let is_new = |line: &&str| {
        let Some((key, _)) = line.split_once(" = ") else { return false };
        unwritten.is_some_and(|section| section.contains_key(key))
            || (header.is_none() && key == "format")
    };
    let kept: Vec<&str> = text.lines().filter(|line| !is_new(line)).collect();
    let is_empty = header.is_some() && kept.len() == 1 && text.lines().count() > 1;
    (!is_empty).then(|| kept.join("\n"))
}

fn section<'a>(table: &'a Table, path: &[&str]) -> Option<&'a Table> {
    path.iter().try_fold(table, |table, key| table.get(*key)?.as_table())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    /// A built-in scenario as version 1 wrote it.
    fn old(name: &str) -> String {
        let mut raw = Scenario::load(name, &[]).unwrap().raw;
        raw.format = 1;
        text(&raw)
    }

    #[test]
    fn format_1_leaves_out_what_it_did_not_know_and_nothing_else() {
        let old: Table = old("tiny").parse().unwrap();
        let raw = Scenario::load("tiny", &[]).unwrap().raw;
        let mut whole = old.clone();
        assert!(!whole.contains_key("format"));
        merge(&mut whole, UNWRITTEN.clone());
        whole.insert("format".into(), Value::Integer(FORMAT.into()));
        assert_eq!(whole, toml::to_string(&raw).unwrap().parse().unwrap());
        let mut stripped = old.clone();
        strip(&mut stripped, &UNWRITTEN);
        assert_eq!(stripped, old, "no value of format 1 is among the new ones");
    }

    #[test]
    fn a_scenario_of_format_1_is_completed_with_the_values_of_the_program_then() {
        let completed = complete(old("v1-default").parse().unwrap());
        let mut raw: Raw = completed.try_into().unwrap();
        assert_eq!(raw.format, 1);
        raw.format = FORMAT;
        assert_eq!(raw, Scenario::load("v1-default", &[]).unwrap().raw);
    }

    #[test]
    fn a_scenario_of_format_1_with_another_value_for_a_new_constant_is_one_of_format_2() {
        let mut raw: Raw = complete(old("tiny").parse().unwrap()).try_into().unwrap();
        settle(&mut raw);
        assert_eq!(raw.format, 1);
        raw.methods.tilp.search.correlation = 0.5;
        settle(&mut raw);
        assert_eq!(raw.format, FORMAT);
    }

    #[test]
    fn a_file_that_lacks_whole_sections_is_not_completed() {
        let table = complete("name = \"mine\"\n".parse().unwrap());
        assert_eq!(table.len(), 2);
    }
}
