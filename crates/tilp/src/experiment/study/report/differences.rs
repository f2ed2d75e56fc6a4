//! Differences from the paper, as far as the scenarios show them.

use super::Section;
use super::page::escaped;

/// The list of differences of these studies.
pub(super) fn list(sections: &[Section]) -> String {
    let tables: Vec<toml::Table> =
        sections.iter().map(|section| section.scenario.parse().unwrap_or_default()).collect();
    let of = |what: fn(&toml::Table) -> String| {
        let mut found: Vec<String> = Vec::new();
        for text in tables.iter().map(what) {
            if !found.contains(&text) {
                found.push(text);
            }
        }
        escaped(&found.join("; "))
    };
    let mut items = vec![
        format!(
            "Radio: {}. The paper has a testbed of four radios and emulates the rest.",
            of(radio)
        ),
        format!("Robots: {}. The paper runs LIBERO.", of(robots)),
    ];
    items.extend(FIXED.map(str::to_owned));
    let late = tables.iter().any(|table| text(table, "limits", "late") != Some("wait"));
    items.extend(late.then(|| LATE.to_owned()));
    let billed = tables.iter().any(|table| text(table, "learning", "sync") != Some("free"));
    items.extend(billed.then(|| BILLED.to_owned()));
    let items: String = items.iter().map(|item| format!("<li>{item}</li>\n")).collect();
    format!("<h2>What differs from the paper</h2>\n<ul>\n{items}</ul>\n{EQUATIONS}")
}

/// The source of the channel gains.
fn radio(scenario: &toml::Table) -> String {
    match text(scenario, "cell", "trace") {
        None | Some("") => {
            let radius = scenario.get("cell").and_then(|cell| cell.get("outer_radius_m"));
            let radius = radius.and_then(toml::Value::as_float);
            let far = radius.map_or("any distance".into(), |radius| format!("up to {radius} m"));
            format!("a cell after TR 38.901 with terminals {far} away")
        }
        Some(trace) => match trace.strip_prefix("builtin:") {
            Some(name) => format!("a ray-traced channel ({name})"),
            None => "a recorded channel".to_owned(),
        },
    }
}

/// The tasks of the robots.
fn robots(scenario: &toml::Table) -> String {
    match text(scenario, "tasks", "suite") {
        Some(suite) if suite.starts_with("libero") => {
            format!("LIBERO's tasks ({suite}) in MuJoCo, with scripted experts and seen as states")
        }
        _ => "eight families of table-top tasks on a rigid-body engine, with scripted experts"
            .to_owned(),
    }
}

fn text<'a>(table: &'a toml::Table, section: &str, key: &str) -> Option<&'a str> {
    table.get(section)?.get(key)?.as_str()
}

const LATE: &str = "Late terminals are dropped at the deadline: a round that waits for its last \
terminal has no bound. <code>tilp sweep late</code> shows both.";
const BILLED: &str = "Copies of the model that are synchronised are billed in time and energy: they \
cross the same air as activations.";
const EQUATIONS: &str = "<p>Equation by equation, with the reason for every deviation: \
<code>crates/tilp/docs/equations.toml</code>.</p>\n";

const FIXED: [&str; 6] = [
    "Policy: a transformer of six small blocks that trains on a processor; the paper does not say \
     how large its policy is. Volumes are those of this policy.",
    "Violation: the paper's unit is not given; ours is the relative excess over the limits, and \
     methods with <code>+guard</code> plan to keep the deadline, which as published they do not.",
    "Success of a candidate is predicted by a curve from loss to success: when a round is planned, \
     no weights exist that a candidate could be tried with.",
    "Memory budgets are drawn so that they bind: some terminals cannot hold the deepest cut, or the \
     limit would never be felt.",
    "Learning rates are picked for each method on tuning seeds, from one grid: one rate for all \
     would be the rate of one of them.",
    "The eight methods were rebuilt from what is public of them: <code>docs/explain/methods.md</code>.",
];
