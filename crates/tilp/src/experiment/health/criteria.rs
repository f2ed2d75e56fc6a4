//! The criteria of a scenario, their requirements, and the findings.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Findings;

/// A criterion that a scenario is measured by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Criterion {
    /// Expert, centralised training, random robot and base policy.
    Health,
    /// Success never falls far below the base policy, and no run is lost.
    Stable,
    /// Replicates that differ only in the order of minibatches end with similar success.
    Repeatable,
    /// `random` leaves room for better decisions.
    Saturation,
    /// Never scheduling the far third costs success.
    Far,
    /// Bandwidth, power and cut are decisions that matter.
    Allocation,
    /// Compression and schedule are decisions that matter.
    Participation,
    /// The share of terminals that miss the deadline, and of those that can meet it.
    Radio,
    /// Wall time of a run.
    Cost,
    /// The gain of `clairvoyant` over `random`: reported, not judged.
    Headroom,
}

impl Criterion {
    /// All criteria, with their names on the command line, in the order of tables.
    pub const ALL: [(&str, Self); 10] = [
        ("health", Self::Health),
        ("stable", Self::Stable),
        ("repeatable", Self::Repeatable),
        ("saturation", Self::Saturation),
        ("far", Self::Far),
        ("allocation", Self::Allocation),
        ("participation", Self::Participation),
        ("radio", Self::Radio),
        ("cost", Self::Cost),
        ("headroom", Self::Headroom),
    ];

    /// The criterion with a name.
    pub fn named(name: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, one)| *one);
        let known = Self::ALL.map(|(name, _)| name).join(", ");
        found.ok_or_else(|| format!("criterion is `{name}`, expected one of {known}"))
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, one)| *one == self).map_or("", |(name, _)| name)
    }

    /// The requirement.
    pub fn wanted(self) -> &'static str {
        match self {
            Self::Health => {
                "expert at least 95 % on every task; centralised training at least 95 %; robot \
                 acting at random at most 2 %; base policy 20 to 50 %"
            }
            Self::Stable => {
                "random, deficit, splitfed+guard+q0.9: success at rounds 50, 100, 150, 200 never \
                 more than 5 points below the base policy; none of these and of \
                 splitnn+guard+q0.75 ends more than 15 points below its own best"
            }
            Self::Repeatable => {
                "standard deviation of final success over replicates at most 2 points for each of \
                 the four methods"
            }
            Self::Saturation => "random ends at 65 to 80 %, mean over seeds",
            Self::Far => "never scheduling the far third costs at least 10 points",
            Self::Allocation => {
                "an even band, full power, the best single cut: each at least 10 % more joules than \
                 the least, for the same participants, compression and finishing time"
            }
            Self::Participation => {
                "the best single compression, and everybody who is in time: each at least 10 % more \
                 joules and seconds to the same success than the best mixed rule"
            }
            Self::Radio => {
                "with an even split and no compression 20 to 33 % late in a median round; at most \
                 compression with ten sharing the band at least 95 % can make it at their median fade"
            }
            Self::Cost => "1000 rounds with all terminals in at most 180 s on two cores",
            Self::Headroom => "reported: clairvoyant less random, points of final success",
        }
    }
}

/// The finding on one criterion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Its name.
    pub criterion: String,
    /// The requirement.
    pub wanted: String,
    /// The measured values as text.
    pub measured: String,
    /// Whether it holds; `None` if it is only reported, or could not be measured.
    pub holds: Option<bool>,
    /// The numbers behind it.
    pub details: Value,
}

impl Finding {
    /// A finding about a criterion.
    pub(super) fn new(
        criterion: Criterion,
        measured: String,
        holds: Option<bool>,
        details: Value,
    ) -> Self {
        let (name, wanted) = (criterion.name().to_owned(), criterion.wanted().to_owned());
        Self { criterion: name, wanted, measured, holds, details }
    }

    /// The verdict as a word.
    pub fn verdict(&self) -> &'static str {
        match self.holds {
            Some(true) => "holds",
            Some(false) => "falls short",
            None => "-",
        }
    }
}

/// A table as details: its columns in order, and a row for each object with these fields.
pub(super) fn table(columns: &[&str], rows: Vec<Value>) -> Value {
    json!({ "columns": columns, "table": rows })
}

/// Findings as a table in Markdown, followed by the tables of single criteria.
pub fn as_markdown(findings: &Findings) -> String {
    let Findings { scenario, version, hash, quick, criteria } = findings;
    let quick = if *quick { " A first look: verdicts mean nothing." } else { "" };
    let mut text = format!("{scenario} version {version}, hash `{hash}`.{quick}\n\n");
    text += "| criterion | wanted | measured | verdict |\n|---|---|---|---|\n";
    for one in criteria {
        let Finding { criterion, wanted, measured, .. } = one;
        text += &format!("| {criterion} | {wanted} | {measured} | {} |\n", one.verdict());
    }
    for one in criteria {
        let array = |name: &str| one.details.get(name).and_then(Value::as_array);
        if let (Some(columns), Some(table)) = (array("columns"), array("table")) {
            let columns: Vec<&str> = columns.iter().filter_map(Value::as_str).collect();
            text += &format!("\n{}:\n\n{}", one.criterion, rows(&columns, table));
        }
    }
    text
}

/// Objects with the same fields as a table.
fn rows(names: &[&str], objects: &[Value]) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut text = line(names.iter().map(|name| name.replace('_', " ")).collect());
    text += &format!("|{}\n", "---|".repeat(names.len()));
    for object in objects {
        let cell = |name: &&str| match &object[*name] {
            Value::Number(number) => number.as_f64().map_or(number.to_string(), short),
            Value::String(text) => text.clone(),
            Value::Null => "-".to_owned(),
            other => other.to_string(),
        };
        text += &line(names.iter().map(cell).collect());
    }
    text
}

/// A number with about three significant digits.
fn short(number: f64) -> String {
    match number.abs() {
        size if size >= 100.0 || number.fract() == 0.0 => format!("{number:.0}"),
        size if size >= 10.0 => format!("{number:.1}"),
        size if size >= 1.0 => format!("{number:.2}"),
        _ => format!("{number:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_criterion_is_found_by_its_name_and_no_other() {
        for (name, criterion) in Criterion::ALL {
            assert_eq!(Criterion::named(name), Ok(criterion));
            assert_eq!(criterion.name(), name);
        }
        let said = Criterion::named("luck").unwrap_err();
        assert!(said.contains("criterion is `luck`, expected one of health, stable"), "{said}");
    }

    #[test]
    fn findings_become_a_table_with_verdicts_and_the_tables_behind_them() {
        let row = |cut: u64, share: Option<f64>| json!({ "share_of_all": share, "cut": cut });
        let behind = table(&["cut", "share_of_all"], vec![row(2, Some(0.5)), row(3, None)]);
        let one = |criterion, holds, details| Finding::new(criterion, "x".into(), holds, details);
        let findings = Findings {
            scenario: "tiny".into(),
            version: 2,
            hash: "abc".into(),
            quick: true,
            criteria: vec![
                one(Criterion::Far, Some(false), Value::Null),
                one(Criterion::Headroom, None, behind),
            ],
        };
        let text = as_markdown(&findings);
        assert!(text.contains("tiny version 2, hash `abc`. A first look"), "{text}");
        assert!(text.contains("| far | never scheduling the far third"), "{text}");
        assert!(text.contains("| x | falls short |") && text.contains("| x | - |"), "{text}");
        assert!(
            text.contains("| cut | share of all |\n|---|---|\n| 2 | 0.500 |\n| 3 | - |"),
            "{text}"
        );
    }
}
