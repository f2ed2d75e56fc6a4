//! The questions of the paper's tables and figures.

use super::{Plan, PlannedPoint, StudyKind, Subject};
use crate::scenario::{Scenario, method};

/// The settings that all questions share.
#[derive(Clone, Debug)]
pub struct Question {
    /// The base scenario of all runs.
    pub scenario: Scenario,
    /// Methods; empty for those of the paper.
    pub methods: Vec<String>,
    /// Seeds.
    pub seeds: Vec<u64>,
    /// Replicates of every seed.
    pub replicates: u64,
}

/// The eight published methods.
const EIGHT: [&str; 8] =
    ["fedavg", "splitnn", "splitfed", "adaptsfl", "ga-sfl", "hsfl", "asfl", "fedsl"];

/// Names of groups of methods: the rows of the main table, the eight published methods, and the
/// eight with guard and fixed compressions.
pub const GROUPS: [&str; 3] = ["main", "published", "compressed"];

/// The methods that a name stands for.
fn group(name: &str) -> Vec<String> {
    let eight = |suffix: &str| EIGHT.map(|method| format!("{method}{suffix}"));
    match name {
        "main" => {
            let mut rows = owned(&["tilp"]);
            rows.extend(eight("+guard"));
            rows.extend(owned(&["random", "greedy", "deficit", "clairvoyant", "oracle"]));
            rows
        }
        "published" => eight("").to_vec(),
        "compressed" => ["+guard+q0.75", "+guard+q0.9"].iter().flat_map(|one| eight(one)).collect(),
        _ => vec![name.to_owned()],
    }
}

/// The methods of the paper's figures.
const SHOWN: [&str; 4] = ["tilp", "hsfl+guard", "asfl+guard", "fedsl+guard"];

/// TiLP without one of its parts: name and override.
const WITHOUT: [(&str, &[&str]); 8] = [
    ("no network calibration", &["methods.tilp.calibrate_network=false"]),
    ("no training calibration", &["methods.tilp.calibrate_training=false"]),
    ("no task calibration", &["methods.tilp.calibrate_task=false"]),
    (
        "no calibration",
        &[
            "methods.tilp.calibrate_network=false",
            "methods.tilp.calibrate_training=false",
            "methods.tilp.calibrate_task=false",
        ],
    ),
    ("no actor", &["methods.tilp.actor=false"]),
    ("no critic", &["methods.tilp.critic=false"]),
    ("no CEM", &["methods.tilp.cem=false"]),
    ("not task-driven", &["methods.tilp.task_driven=false"]),
];

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// The named methods, each once; the usual ones if none is named.
fn or_else(named: &[String], usual: &[&str]) -> Vec<String> {
    let named = if named.is_empty() { owned(usual) } else { named.to_vec() };
    let mut methods: Vec<String> = Vec::new();
    for method in named.iter().flat_map(|name| group(name)) {
        if !methods.contains(&method) {
            methods.push(method);
        }
    }
    methods
}

/// The row that the others are compared with: TiLP, else the first.
pub(super) fn reference(points: &[PlannedPoint]) -> Subject {
    let subject = |point: &PlannedPoint, method: &str| Subject {
        point: point.label.clone(),
        method: method.to_owned(),
    };
    let first = points.iter().find(|point| !point.methods.is_empty());
    let has = |point: &&PlannedPoint| point.methods.iter().any(|method| method == "tilp");
    match (points.iter().find(has), first) {
        (Some(point), _) => subject(point, "tilp"),
        (None, Some(point)) => subject(point, &point.methods[0]),
        (None, None) => Subject { point: String::new(), method: String::new() },
    }
}

fn plan(question: StudyKind, asked: &Question, points: Vec<PlannedPoint>) -> Plan {
    Plan {
        question,
        scenario: asked.scenario.name().to_owned(),
        reference: reference(&points),
        points,
        seeds: asked.seeds.clone(),
        replicates: asked.replicates,
    }
}

/// Table II: methods against each other.
pub fn comparison(asked: &Question) -> Plan {
    let methods = or_else(&asked.methods, &["main"]);
    let label = asked.scenario.name().to_owned();
    let point = PlannedPoint { label, overrides: Vec::new(), budgets: None, methods };
    plan(StudyKind::Compare, asked, vec![point])
}

/// Table III: TiLP without each of its parts.
pub fn ablations(asked: &Question) -> Plan {
    let point = |label: &str, overrides: &[&str]| PlannedPoint {
        label: label.to_owned(),
        overrides: owned(overrides),
        budgets: None,
        methods: owned(&["tilp"]),
    };
    let without = WITHOUT.iter().map(|(label, overrides)| point(label, overrides));
    let points = std::iter::once(point("full", &[])).chain(without).collect();
    plan(StudyKind::Ablate, asked, points)
}

/// What a sweep varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// Share of the activations that is kept, 1 - q.
    Retention,
    /// The admissible cuts.
    Split,
    /// Number of terminals.
    Terminals,
    /// Shift of the signal-to-noise ratio in decibels.
    Snr,
    /// Mass added to what robots carry, in kilograms.
    Mass,
    /// The band in megahertz.
    Bandwidth,
    /// Treatment of terminals that miss the deadline.
    Late,
    /// Which payload is billed.
    Payload,
    /// Largest deviation of the true hardware and noise from the data sheet, as a factor.
    Hidden,
}

impl Axis {
    /// All axes, with their names on the command line.
    pub const ALL: [(&str, Self); 9] = [
        ("retention", Self::Retention),
        ("split", Self::Split),
        ("terminals", Self::Terminals),
        ("snr", Self::Snr),
        ("mass", Self::Mass),
        ("bandwidth", Self::Bandwidth),
        ("late", Self::Late),
        ("payload", Self::Payload),
        ("hidden", Self::Hidden),
    ];

    /// The axis with a name.
    pub fn named(name: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, axis)| *axis);
        let known = Self::ALL.map(|(name, _)| name).join(", ");
        found.ok_or_else(|| format!("axis is `{name}`, expected one of {known}"))
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, axis)| *axis == self).map_or("", |(name, _)| name)
    }

    /// Its title on an axis of a figure, with its unit.
    pub fn title(self) -> &'static str {
        match self {
            Self::Retention => "retention 1 - q",
            Self::Split => "split",
            Self::Terminals => "terminals",
            Self::Snr => "shift of the SNR in dB",
            Self::Mass => "added mass in kg",
            Self::Bandwidth => "band in MHz",
            Self::Late => "who is late",
            Self::Payload => "billed payload",
            Self::Hidden => "largest hidden factor",
        }
    }

    /// The values of the figures.
    pub fn usual(self) -> &'static [&'static str] {
        match self {
            Self::Retention => &["0.1", "0.3", "0.5", "0.7", "1"],
            Self::Split => &["shallow", "middle", "deep", "any"],
            Self::Terminals => &["10", "25", "50", "100"],
            Self::Snr => &["-10", "-5", "0", "5"],
            Self::Mass => &["0", "0.1", "0.2", "0.4"],
            Self::Bandwidth => &["5", "10", "20", "50", "100"],
            Self::Late => &["drop", "wait"],
            Self::Payload => &["encoded", "nominal"],
            Self::Hidden => &["1", "1.3", "2", "3"],
        }
    }

    /// The methods of the figures. Late terminals matter without the guard only; with hidden errors
    /// TiLP is compared with a rule that uses no twin.
    fn shown(self) -> &'static [&'static str] {
        match self {
            Self::Late => &["tilp", "hsfl", "asfl", "fedsl"],
            Self::Hidden => &["tilp", "hsfl+guard", "asfl+guard", "deficit"],
            _ => &SHOWN,
        }
    }

    fn number(self, value: &str, low: f64, high: f64) -> Result<f64, String> {
        let range = || {
            let name = self.name();
            format!("{name} is `{value}`, expected a number from {low} to {high}")
        };
        let number: f64 = value.parse().map_err(|_| range())?;
        if (low..=high).contains(&number) { Ok(number) } else { Err(range()) }
    }

    /// One of the usual values, as a string of TOML.
    fn word(self, value: &str) -> Result<String, String> {
        let expected = self.usual();
        if expected.contains(&value) {
            return Ok(format!("\"{value}\""));
        }
        Err(format!("{} is `{value}`, expected {}", self.name(), expected.join(" or ")))
    }

    /// Overrides and methods at a value.
    fn point(
        self,
        value: &str,
        base: &Scenario,
        methods: &[String],
    ) -> Result<PlannedPoint, String> {
        let mut methods = methods.to_vec();
        let mut set = Vec::new();
        let main = match self {
            Self::Retention => {
                let q = 1.0 - self.number(value, 0.0, 1.0)?;
                let rounded = (q * 1e6).round() / 1e6;
                // In floating point 1 - 0.8 is slightly below 0.2: the bound must not be below the
                // given q.
                let q = q.max(rounded);
                // TiLP decides q up to this bound. Reference rules and published methods do not
                // decide q; they get this value.
                for label in &mut methods {
                    let given = format!("{label}+q{rounded}");
                    if q > 0.0 && method(&given).is_ok() {
                        *label = given;
                    }
                }
                set.push(format!("methods.reference.compression={q}"));
                format!("limits.compression={q}")
            }
            Self::Split => {
                let cuts = base.cuts();
                let chosen = match value {
                    "shallow" => &cuts[..1],
                    "middle" => &cuts[cuts.len() / 2..][..1],
                    "deep" => &cuts[cuts.len() - 1..],
                    "any" => cuts,
                    _ => {
                        let expected = "expected shallow, middle, deep or any";
                        return Err(format!("split is `{value}`, {expected}"));
                    }
                };
                if chosen.len() < cuts.len() {
                    set.push(format!("methods.cut={}", chosen[0]));
                }
                format!("model.cuts={chosen:?}")
            }
            Self::Terminals => format!("cell.n_terminals={}", self.number(value, 1.0, 1e5)? as u64),
            // A lower noise figure is a higher signal-to-noise ratio.
            Self::Snr => {
                let figure = base.noise_figure_db() - self.number(value, -60.0, 60.0)?;
                format!("cell.noise_figure_db={figure}")
            }
            Self::Mass => format!("tasks.extra_mass_kg={}", self.number(value, 0.0, 100.0)?),
            Self::Bandwidth => {
                format!("limits.bandwidth_hz={}", 1e6 * self.number(value, 1e-3, 1e6)?)
            }
            Self::Late => format!("limits.late={}", self.word(value)?),
            Self::Payload => format!("learning.payload={}", self.word(value)?),
            Self::Hidden => {
                let factor = self.number(value, 1.0, 10.0)?;
                set.push(format!("cell.hidden_noise_figure_db={}", 10.0 * factor.log10()));
                format!("hardware.hidden_share={}", factor - 1.0)
            }
        };
        set.push(main);
        Ok(PlannedPoint { label: value.to_owned(), overrides: set, budgets: None, methods })
    }
}

/// A figure: methods along an axis. Without methods or values the usual ones are used.
pub fn sweep(axis: Axis, values: &[String], asked: &Question) -> Result<Plan, String> {
    let methods = or_else(&asked.methods, axis.shown());
    let values = if values.is_empty() { owned(axis.usual()) } else { values.to_vec() };
    let points: Result<Vec<_>, _> =
        values.iter().map(|value| axis.point(value, &asked.scenario, &methods)).collect();
    Ok(plan(StudyKind::Sweep(axis), asked, points?))
}
