//! From a name or a file to a complete scenario: extend, override, parse.

use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::format;
use super::profile;
use super::program::ProgramError;
use super::raw::Raw;
use crate::exchange::in_words;

/// The scenarios that come with the program: name and text.
pub const BUILTIN: &[(&str, &str)] = &[
    ("default", include_str!("../../../../configs/default.toml")),
    ("factory-rt", include_str!("../../../../configs/factory-rt.toml")),
    ("homogeneous", include_str!("../../../../configs/homogeneous.toml")),
    ("libero-object", include_str!("../../../../configs/libero-object.toml")),
    ("mild", include_str!("../../../../configs/mild.toml")),
    ("profile-openvla", include_str!("../../../../configs/profile-openvla.toml")),
    ("profile-smolvla", include_str!("../../../../configs/profile-smolvla.toml")),
    ("quick", include_str!("../../../../configs/quick.toml")),
    ("scarce", include_str!("../../../../configs/scarce.toml")),
    ("shift", include_str!("../../../../configs/shift.toml")),
    ("street-rt", include_str!("../../../../configs/street-rt.toml")),
    ("strong", include_str!("../../../../configs/strong.toml")),
    ("tiny", include_str!("../../../../configs/tiny.toml")),
    ("v1-default", include_str!("../../../../configs/v1-default.toml")),
    ("v1-scarce", include_str!("../../../../configs/v1-scarce.toml")),
];

/// What is wrong with a scenario. Each message is one line: field, value, expected, where.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// Neither a built-in name nor a file.
    #[error("scenario `{name}` is neither a file nor one of {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The built-in names.
        known: String,
    },
    /// The file cannot be read.
    #[error("cannot read scenario {path}: {reason}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The text is not TOML.
    #[error("{place}, line {line}: {reason}")]
    Syntax {
        /// File or built-in.
        place: String,
        /// Line, counted from 1.
        line: usize,
        /// What the parser says.
        reason: String,
    },
    /// A field is unknown, missing or of the wrong type.
    #[error("{field}: {reason} (in {place})")]
    Field {
        /// Dotted path of the field.
        field: String,
        /// What is wrong.
        reason: String,
        /// File, built-in or `--set`.
        place: String,
    },
    /// A value is outside its range.
    #[error("{field} = {value}, expected {expected} (in {place})")]
    Range {
        /// Dotted path of the field.
        field: String,
        /// Its value.
        value: String,
        /// What was expected.
        expected: String,
        /// File, built-in or `--set`.
        place: String,
    },
    /// An external program did not start as a method.
    #[error(transparent)]
    Program(Box<ProgramError>),
}

impl From<ProgramError> for ScenarioError {
    fn from(error: ProgramError) -> Self {
        Self::Program(Box::new(error))
    }
}

/// A scenario before it is checked, and where it came from.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Loaded {
    /// The complete scenario.
    pub raw: Raw,
    /// File or built-in, for messages.
    pub place: String,
    /// Folder against which paths inside the scenario are read.
    pub folder: PathBuf,
}

/// Loads a built-in name or a file, and applies `key=value` overrides with dotted keys.
pub(super) fn load(name: &str, overrides: &[String]) -> Result<Loaded, ScenarioError> {
    let (table, place, folder) = resolve(name, 0)?;
    vary(format::complete(table), &place, folder, overrides)
}

/// Reads a complete scenario that extends nothing.
pub(super) fn from_text(text: &str, place: &str) -> Result<Loaded, ScenarioError> {
    let table = parse_table(text, place)?;
    if table.contains_key("extends") {
        return Err(ScenarioError::Field {
            field: "extends".into(),
            reason: "expected a complete scenario".into(),
            place: place.to_owned(),
        });
    }
    let loaded = vary(format::complete(table), place, PathBuf::from("."), &[])?;
    if loaded.raw.profile.as_ref().is_some_and(profile::names_tables) {
        return Err(ScenarioError::Field {
            field: "profile".into(),
            reason: "names a table, expected a complete scenario".into(),
            place: place.to_owned(),
        });
    }
    Ok(loaded)
}

/// Applies overrides to a complete table.
pub(super) fn vary(
    mut table: Table,
    place: &str,
    folder: PathBuf,
    overrides: &[String],
) -> Result<Loaded, ScenarioError> {
    for text in overrides {
        apply_override(&mut table, text)?;
    }
    let with = if overrides.is_empty() { "" } else { " with " };
    let place = format!("{place}{with}{}", overrides.join(", "));
    let mut raw = parse(table, &place)?;
    format::settle(&mut raw);
    Ok(Loaded { raw, place, folder })
}

/// The table of a scenario with everything it extends merged in.
fn resolve(name: &str, depth: usize) -> Result<(Table, String, PathBuf), ScenarioError> {
    let (text, place, folder) = read(name)?;
    let mut table = parse_table(&text, &place)?;
    let Some(base) = table.remove("extends") else { return Ok((table, place, folder)) };
    let wrong = |reason: &str| ScenarioError::Field {
        field: "extends".into(),
        reason: reason.into(),
        place: place.clone(),
    };
    let base = base.as_str().ok_or_else(|| wrong("expected the name of a scenario or a file"))?;
    if depth >= 8 {
        return Err(wrong("more than 8 scenarios extend each other"));
    }
    let beside = folder.join(base);
    let base = if beside.is_file() { beside.display().to_string() } else { base.to_owned() };
    let (mut merged, ..) = resolve(&base, depth + 1)?;
    merge(&mut merged, table);
    Ok((merged, place, folder))
}

fn read(name: &str) -> Result<(String, String, PathBuf), ScenarioError> {
    if let Some((_, text)) = BUILTIN.iter().find(|(builtin, _)| *builtin == name) {
        return Ok(((*text).to_owned(), format!("built-in `{name}`"), PathBuf::from(".")));
    }
    let path = Path::new(name);
    if !path.exists() && !name.contains('/') && !name.ends_with(".toml") {
        let known: Vec<&str> = BUILTIN.iter().map(|(builtin, _)| *builtin).collect();
        return Err(ScenarioError::Unknown { name: name.to_owned(), known: known.join(", ") });
    }
    let text = std::fs::read_to_string(path).map_err(|error| ScenarioError::Unreadable {
        path: path.to_owned(),
        reason: error.to_string(),
    })?;
    let folder = path.parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf);
    Ok((text, name.to_owned(), folder))
}

fn parse_table(text: &str, place: &str) -> Result<Table, ScenarioError> {
    text.parse::<Table>().map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start).min(text.len());
        ScenarioError::Syntax {
            place: place.to_owned(),
            line: text.as_bytes()[..offset].iter().filter(|&&byte| byte == b'\n').count() + 1,
            reason: one_line(error.message()),
        }
    })
}

/// Values of `over` replace those of `base`; tables are merged.
pub(super) fn merge(base: &mut Table, over: Table) {
    for (key, value) in over {
        match (base.get_mut(&key), value) {
            (Some(Value::Table(inner)), Value::Table(table)) => merge(inner, table),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}

/// Fields that a scenario need not hold.
const UNWRITTEN: &[&str] = &[
    "evaluation.first_passage",
    "events",
    "heterogeneity",
    "learning.adamw.beta1",
    "learning.adamw.beta2",
    "learning.adamw.epsilon",
    "learning.adamw.weight_decay",
    "learning.clip",
    "learning.exchange_bits",
    "learning.lora_scale",
    "learning.optimiser",
    "learning.server",
    "learning.state_at_aggregation",
    "learning.trainable",
    "learning.warm_up",
    "limits.budget.bytes",
    "limits.budget.joules",
    "limits.budget.joules_per_terminal",
    "limits.budget.seconds",
    "methods.reference.clairvoyant_episodes",
    "methods.reference.deficit",
    "methods.reference.deficit_prior",
    "methods.reference.near_compression",
    "methods.tilp.twin.network.channel.memory",
    "methods.tilp.twin.network.channel.prior",
    "methods.tilp.twin.network.channel.source",
    "methods.tilp.twin.task.by",
    "methods.tilp.twin.task.terminal.all_drift",
    "methods.tilp.twin.task.terminal.drift",
    "methods.tilp.twin.task.terminal.group_drift",
    "methods.tilp.twin.task.terminal.keep",
    "methods.tilp.twin.task.terminal.sd",
    "methods.tilp.twin.training.earliest",
    "methods.tilp.twin.training.forgetting",
    "methods.tilp.twin.training.pace",
    "methods.tilp.twin.training.scatter_power",
    "methods.tilp.twin.training.swing_by",
    "profile.model",
    "profile.terminals",
    "radio.downlink",
    "radio.station_power_w",
    "tasks.demonstrations_spread",
    "tasks.engine",
    "terminals",
];

/// Applies `a.b.c=value`. The value is read as TOML; what is no TOML value is taken as text.
fn apply_override(table: &mut Table, text: &str) -> Result<(), ScenarioError> {
    let wrong = |field: &str, reason: String| ScenarioError::Field {
        field: field.to_owned(),
        reason,
        place: "--set".into(),
    };
    let (key, value) = text
        .split_once('=')
        .ok_or_else(|| wrong(text, "expected key=value with a dotted key".into()))?;
    let key = key.trim();
    let value = format!("value = {value}")
        .parse::<Table>()
        .ok()
        .and_then(|mut parsed| parsed.remove("value"))
        .unwrap_or_else(|| Value::String(value.trim().to_owned()));
    let mut parts: Vec<&str> = key.split('.').collect();
    let last = parts.pop().unwrap_or_default();
    let near = hint(table, key);
    let mut section = table;
    let unwritten = UNWRITTEN.contains(&key);
    for part in parts {
        if unwritten && !section.contains_key(part) {
            section.insert(part.to_owned(), Value::Table(Table::new()));
        }
        section = section
            .get_mut(part)
            .and_then(Value::as_table_mut)
            .ok_or_else(|| wrong(key, format!("there is no section `{part}`{near}")))?;
    }
    let old = section.get(last);
    if old.is_none() && !unwritten {
        return Err(wrong(key, format!("there is no such field{near}")));
    }
    // `--set x=1` for a field that holds 1.0 means 1.0.
    let value = match (old, value) {
        (Some(Value::Float(_)), Value::Integer(whole)) => Value::Float(whole as f64),
        (_, value) => value,
    };
    section.insert(last.to_owned(), value);
    Ok(())
}

/// Keys that may have been meant, as the end of a message.
fn hint(table: &Table, key: &str) -> String {
    let mut values = Vec::new();
    super::flatten("", table, &mut values);
    let names = values.iter().map(|(name, _)| name.as_str()).chain(UNWRITTEN.iter().copied());
    match &super::near::near(key, names)[..] {
        [] => ", see `tilp scenario show default`".to_owned(),
        near => format!(", did you mean {}?", near.join(" or ")),
    }
}

/// Of these tables, those that a file has only a part of, and what the rest comes from.
pub(super) fn merged_tables(name: &str, tables: &[&str]) -> Result<Vec<String>, ScenarioError> {
    let (text, place, folder) = read(name)?;
    let own = parse_table(&text, &place)?;
    let Some(base) = own.get("extends").and_then(Value::as_str) else { return Ok(Vec::new()) };
    let beside = folder.join(base);
    let path = if beside.is_file() { beside.display().to_string() } else { base.to_owned() };
    let (inherited, ..) = resolve(&path, 1)?;
    let line = |table: &&str| {
        let (mine, theirs) = (section(&own, table)?, section(&inherited, table)?);
        let names = |keys: Vec<&String>| -> String {
            keys.into_iter().map(String::as_str).collect::<Vec<_>>().join(", ")
        };
        let rest: Vec<&String> = theirs
            .iter()
            .filter(|(key, value)| !mine.contains_key(*key) && value.as_integer() != Some(0))
            .map(|(key, _)| key)
            .collect();
        let (set, n_rest) = (names(mine.keys().collect()), rest.len());
        let rest = names(rest);
        (n_rest > 0).then(|| {
            format!("{table} sets {set} and keeps {rest} of `{base}`; write 0 for those not wanted")
        })
    };
    Ok(tables.iter().filter_map(line).collect())
}

/// The table at a dotted path.
fn section<'a>(table: &'a Table, path: &str) -> Option<&'a Table> {
    path.split('.').try_fold(table, |table, part| table.get(part)?.as_table())
}

fn parse(table: Table, place: &str) -> Result<Raw, ScenarioError> {
    serde_path_to_error::deserialize(Value::Table(table.clone())).map_err(|error| {
        let field = error.path().to_string();
        let value = lookup(&table, &field).map(|value| format!("{} is wrong: ", compact(value)));
        let message = in_words(&one_line(error.inner().message()));
        let message = match message.starts_with("missing field") {
            true => format!(
                "{message}; a file that begins with `extends = \"default\"` contains only what differs"
            ),
            false => message,
        };
        ScenarioError::Field {
            field: if field == "." { "scenario".into() } else { field },
            reason: format!("{}{message}", value.unwrap_or_default()),
            place: place.to_owned(),
        }
    })
}

/// The value at a dotted path, if it is not a table.
fn lookup<'a>(table: &'a Table, path: &str) -> Option<&'a Value> {
    let mut value = None;
    let mut section = Some(table);
    for part in path.split('.') {
        value = section?.get(part);
        section = value.and_then(Value::as_table);
    }
    value.filter(|value| !value.is_table())
}

fn compact(value: &Value) -> String {
    one_line(&value.to_string())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
