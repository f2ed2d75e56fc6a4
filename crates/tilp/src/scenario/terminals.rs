//! Terminals that a scenario lists one by one: `[[terminals]]`, or the table of a profile scenario.
//! `docs/howto/own-scenario.md` explains the list.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ScenarioError;
use super::check::Checker;
use super::lerobot;
use super::raw::Raw;
use super::robots::suite;
use crate::cost::Hardware;
use crate::units::{Bytes, Gain, Hertz, from_db};
use crate::wireless::Place;

/// A terminal of the list. What is not given is drawn as for terminals that are not listed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListedTerminal {
    /// Its name. Events of the scenario may use it instead of the id.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// East of the base station; with `y_m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x_m: Option<f64>,
    /// North of the base station; with `x_m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y_m: Option<f64>,
    /// Large-scale gain of its link; it needs no position then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain_db: Option<f64>,
    /// Operations per cycle by data sheet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations_per_cycle: Option<f64>,
    /// Processor frequency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_hz: Option<f64>,
    /// Energy coefficient by data sheet, J s^2 per operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_coefficient: Option<f64>,
    /// Memory budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Samples in its data set; in profile scenarios only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n_samples: Option<u64>,
    /// Demonstrations that it has at the start; not in profile scenarios.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub demonstrations: Option<u64>,
    /// Its task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Folder of a LeRobotDataset of version 3 whose frames are its demonstrations at the start, instead of
    /// the expert's; not in profile scenarios.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub data: String,
    /// Which episodes of `data` it has: the first, and one past the last. All if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_episodes: Option<[u64; 2]>,
    /// SHA-256 over description and tables of `data`; filled in when a scenario is read.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub data_sha256: String,
}

/// The listed terminals, in the order of their ids; none without a list. Terminals beyond the list
/// are drawn.
fn listed(raw: &Raw) -> &[ListedTerminal] {
    match (&raw.profile, &raw.terminals[..]) {
        (Some(profile), []) => &profile.listed,
        (_, listed) => listed,
    }
}

/// Names of all terminals by id, empty for those without; none if no terminal has a name.
pub(super) fn names(raw: &Raw) -> Vec<String> {
    let rows = listed(raw);
    if rows.iter().all(|row| row.name.is_empty()) {
        return Vec::new();
    }
    let name = |n: usize| rows.get(n).map_or(String::new(), |row| row.name.clone());
    (0..raw.cell.n_terminals).map(name).collect()
}

/// The id of the terminal with this name.
pub(super) fn id_of(raw: &Raw, name: &str) -> Option<u32> {
    let place = listed(raw).iter().position(|row| !name.is_empty() && row.name == name)?;
    u32::try_from(place).ok()
}

/// Hardware by data sheet, with what the list gives.
pub(super) fn nominal(raw: &Raw, mut drawn: Vec<Hardware>) -> Vec<Hardware> {
    for (one, row) in drawn.iter_mut().zip(listed(raw)) {
        *one = Hardware {
            operations_per_cycle: row.operations_per_cycle.unwrap_or(one.operations_per_cycle),
            clock: row.clock_hz.map_or(one.clock, Hertz),
            energy_coefficient: row.energy_coefficient.unwrap_or(one.energy_coefficient),
            ..*one
        };
    }
    drawn
}

/// Memory budgets, with what the list gives.
pub(super) fn memory(raw: &Raw, mut drawn: Vec<Bytes>) -> Vec<Bytes> {
    for (one, row) in drawn.iter_mut().zip(listed(raw)) {
        *one = row.memory_bytes.map_or(*one, Bytes);
    }
    drawn
}

/// Places of the terminals, with what the list gives.
pub(super) fn places(raw: &Raw, mut drawn: Vec<Place>) -> Vec<Place> {
    for (one, row) in drawn.iter_mut().zip(listed(raw)) {
        if let (Some(x_m), Some(y_m)) = (row.x_m, row.y_m) {
            *one = Place { x_m, y_m };
        }
    }
    drawn
}

/// Large-scale gains, with what the list gives.
pub(super) fn gains(raw: &Raw, mut drawn: Vec<Gain>) -> Vec<Gain> {
    for (one, row) in drawn.iter_mut().zip(listed(raw)) {
        *one = row.gain_db.map_or(*one, |db| Gain(from_db(db)));
    }
    drawn
}

/// Whether the list gives the gain of a terminal without its place.
pub(super) fn has_gains(raw: &Raw) -> bool {
    listed(raw).iter().any(|row| row.gain_db.is_some() && row.x_m.is_none())
}

/// Tasks of the terminals, with what the list gives.
pub(super) fn tasks(raw: &Raw, mut dealt: Vec<usize>) -> Vec<usize> {
    for (one, row) in dealt.iter_mut().zip(listed(raw)) {
        let named = row.task.as_ref().and_then(|task| suite(raw).task_index(task));
        *one = named.unwrap_or(*one);
    }
    dealt
}

/// Numbers of demonstrations, with what the list gives.
pub(super) fn demonstrations(raw: &Raw, mut drawn: Vec<usize>) -> Vec<usize> {
    for (one, row) in drawn.iter_mut().zip(listed(raw)) {
        *one = row.demonstrations.map_or(*one, |count| count as usize);
        if !row.data.is_empty() {
            *one = 0;
        }
    }
    drawn
}

/// Listed terminals with data of their own, by place.
pub(super) fn with_data(raw: &Raw) -> impl Iterator<Item = (usize, &ListedTerminal)> {
    listed(raw).iter().enumerate().filter(|(_, row)| !row.data.is_empty())
}

/// Samples of a terminal, if the list gives them.
pub(super) fn n_samples(raw: &Raw, n: usize) -> Option<usize> {
    listed(raw).get(n)?.n_samples.map(|count| count as usize)
}

/// Refuses a list with a value out of range.
pub(super) fn check(checker: &Checker, raw: &Raw) -> Result<(), ScenarioError> {
    let own = raw.profile.as_ref().map_or(&[][..], |profile| &profile.listed);
    if !raw.terminals.is_empty() && !own.is_empty() {
        let expected = "none beside profile.terminals, which lists them already";
        return Err(checker.wrong(
            "terminals",
            format!("{} entries", raw.terminals.len()),
            expected,
        ));
    }
    let (field, rows) = match own {
        [] => ("terminals", &raw.terminals[..]),
        own => ("profile.listed", own),
    };
    if rows.len() > raw.cell.n_terminals {
        let expected = format!("at most cell.n_terminals = {}", raw.cell.n_terminals);
        return Err(checker.wrong(field, format!("{} entries", rows.len()), &expected));
    }
    for (n, row) in rows.iter().enumerate() {
        let at = |name: &str| format!("{field}[{n}].{name}");
        check_name(checker, &at("name"), row, &rows[..n])?;
        check_numbers(checker, at, row)?;
        check_kind(checker, raw, at, row)?;
        check_data(checker, raw, at, row)?;
    }
    Ok(())
}

/// Longest name of a terminal, in bytes.
const MOST_NAME: usize = 64;

fn check_name(
    checker: &Checker,
    field: &str,
    row: &ListedTerminal,
    before: &[ListedTerminal],
) -> Result<(), ScenarioError> {
    let name = &row.name;
    if name.len() > MOST_NAME || name.chars().any(char::is_control) {
        let expected = format!("at most {MOST_NAME} bytes without control characters");
        return Err(checker.wrong(field, format!("{name:?}"), &expected));
    }
    match before.iter().position(|other| !name.is_empty() && other.name == *name) {
        Some(other) => {
            let expected = format!("another name than terminal {other} has");
            Err(checker.wrong(field, name, &expected))
        }
        None => Ok(()),
    }
}

fn check_numbers(
    checker: &Checker,
    at: impl Fn(&str) -> String,
    row: &ListedTerminal,
) -> Result<(), ScenarioError> {
    let numbers = [
        ("x_m", row.x_m, -1e5, 1e5),
        ("y_m", row.y_m, -1e5, 1e5),
        ("gain_db", row.gain_db, -300.0, 50.0),
        ("operations_per_cycle", row.operations_per_cycle, 1e-6, 1e6),
        ("clock_hz", row.clock_hz, 1e3, 1e12),
        ("energy_coefficient", row.energy_coefficient, 1e-40, 1e-15),
    ];
    for (name, value, least, most) in numbers {
        value.map_or(Ok(()), |value| checker.between(&at(name), value, least, most))?;
    }
    if row.x_m.is_some() != row.y_m.is_some() {
        let given = if row.x_m.is_some() { "x_m alone" } else { "y_m alone" };
        return Err(checker.wrong(&at("x_m"), given, "both x_m and y_m, or neither"));
    }
    let counts = [
        ("memory_bytes", row.memory_bytes, 1 << 50),
        ("n_samples", row.n_samples, 1 << 30),
        ("demonstrations", row.demonstrations, 10_000),
    ];
    for (name, value, most) in counts {
        value.map_or(Ok(()), |value| checker.within(&at(name), value, 1, most))?;
    }
    Ok(())
}

/// Data from outside: instead of demonstrations, and where there are robots.
fn check_data(
    checker: &Checker,
    raw: &Raw,
    at: impl Fn(&str) -> String,
    row: &ListedTerminal,
) -> Result<(), ScenarioError> {
    if row.data.is_empty() {
        let given = [
            ("data_episodes", row.data_episodes.is_some()),
            ("data_sha256", !row.data_sha256.is_empty()),
        ];
        return match given.into_iter().find(|(_, given)| *given) {
            Some((name, _)) => Err(checker.wrong(&at(name), "given", "none without data")),
            None => Ok(()),
        };
    }
    if raw.profile.is_some() {
        let expected = "none: a profile has no robots, n_samples is the size of its data";
        return Err(checker.wrong(&at("data"), &row.data, expected));
    }
    if let Some(count) = row.demonstrations {
        let expected = "none beside data, which contains them";
        return Err(checker.wrong(&at("demonstrations"), count, expected));
    }
    if !lerobot::is_digest(&row.data_sha256) {
        return Err(checker.wrong(&at("data_sha256"), &row.data_sha256, "64 hexadecimal digits"));
    }
    match row.data_episodes {
        Some([first, end]) if first >= end => {
            let value = format!("[{first}, {end}]");
            Err(checker.wrong(&at("data_episodes"), value, "the first, and one past the last"))
        }
        _ => Ok(()),
    }
}

/// What a terminal may be given depends on the kind of scenario.
fn check_kind(
    checker: &Checker,
    raw: &Raw,
    at: impl Fn(&str) -> String,
    row: &ListedTerminal,
) -> Result<(), ScenarioError> {
    if !raw.cell.trace.is_empty() && (row.x_m.is_some() || row.gain_db.is_some()) {
        let given = if row.gain_db.is_some() { "gain_db" } else { "x_m" };
        let expected = "none: the channel is recorded (cell.trace)";
        return Err(checker.wrong(&at(given), "given", expected));
    }
    match (raw.profile.is_some(), row.n_samples, row.demonstrations) {
        (true, _, Some(count)) => {
            let expected = "none: a profile has no robots, n_samples is the size of its data";
            return Err(checker.wrong(&at("demonstrations"), count, expected));
        }
        (false, Some(count), _) => {
            let expected = "none: robots have demonstrations, whose samples are counted";
            return Err(checker.wrong(&at("n_samples"), count, expected));
        }
        _ => {}
    }
    let tasks = suite(raw).tasks;
    match row.task.as_ref().filter(|task| !tasks.contains(&task.as_str())) {
        Some(task) => {
            let expected = format!("one of {}", tasks.join(", "));
            Err(checker.wrong(&at("task"), task, &expected))
        }
        None => Ok(()),
    }
}
