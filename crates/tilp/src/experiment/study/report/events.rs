//! Loss of success by the events of a scenario, and the time until recovery. The metrics are
//! defined in `docs/events.md`.

use std::fmt::Write as _;

use super::page::escaped;
use super::tables::{names, with_interval, wrapped};
use crate::experiment::study::table::csv_text;
use crate::experiment::study::{Metric, Plan, Row, Table};
use crate::record::EventSummary;
use crate::statistics::bootstrap_mean;

/// The events of a study: rounds and names, from the first run. All runs at a point have the same
/// events; points may differ in their number of rounds.
fn events(table: &Table) -> &[EventSummary] {
    let first = table.rows.iter().find_map(|row| row.runs.first());
    first.map_or(&[], |(_, run)| &run.summary.events)
}

/// The table as HTML; empty without events.
pub(crate) fn events_table(plan: &Plan, table: &Table) -> String {
    let events = events(table);
    if events.is_empty() {
        return String::new();
    }
    let title = |event: &EventSummary| {
        let (name, round) = (escaped(&event.name), event.round);
        format!("<th>{name}, round {round}: lost, points</th><th>back after, s</th>")
    };
    let titles: String = events.iter().map(title).collect();
    let head = format!("<tr><th></th><th>Mean success over the run, %</th>{titles}</tr>\n");
    let mut body = String::new();
    for row in &table.rows {
        let area = row.estimate(Metric::named("success_area"));
        let area = area.map_or("-".into(), |one| with_interval(one, 1e2, 1, false));
        let cell = |place: usize| {
            let [lost, back] = [lost(row, place), back(row, place)];
            format!("<td>{lost}</td><td>{back}</td>")
        };
        let cells: String = (0..events.len()).map(cell).collect();
        let _ = writeln!(body, "<tr>{}<td>{area}</td>{cells}</tr>", names(plan, row));
    }
    wrapped("Events", &head, &body) + NOTE
}

const NOTE: &str = "<p>Lost: success at the last measurement before the event less the lowest one \
until the next event, at least zero. Back: 90 % of that, for good over three measurements; \"2 of 3\": \
came back in two of the three runs that lost something.</p>\n";

/// The success that a run lost by an event; zero if it lost nothing.
fn loss(event: &EventSummary) -> Option<f64> {
    Some((event.success_before? - event.success_lowest?).max(0.0))
}

fn of_event(row: &Row, place: usize) -> impl Iterator<Item = &EventSummary> {
    row.runs.iter().filter_map(move |(_, run)| run.summary.events.get(place))
}

fn lost(row: &Row, place: usize) -> String {
    let losses: Vec<f64> = of_event(row, place).filter_map(loss).collect();
    bootstrap_mean(&losses).map_or("-".into(), |one| with_interval(one, 1e2, 1, false))
}

fn back(row: &Row, place: usize) -> String {
    let hit: Vec<&EventSummary> =
        of_event(row, place).filter(|event| loss(event).is_some_and(|lost| lost > 0.0)).collect();
    let times: Vec<f64> = hit.iter().filter_map(|event| event.recovery_s).collect();
    match bootstrap_mean(&times) {
        Some(mean) if times.len() == hit.len() => with_interval(mean, 1.0, 0, false),
        _ if hit.is_empty() => "-".into(),
        _ => format!("{} of {}", times.len(), hit.len()),
    }
}

/// Columns of `events.csv`, with their meanings.
pub const EVENT_COLUMNS: [(&str, &str); 9] = [
    ("point", "Label of the point."),
    ("method", "Name of the method."),
    ("seed", "The seed, with its replicate if it is not 0."),
    ("success_area", "Mean success over the run: area under the success curve over its rounds."),
    ("round", "The event happened at the start of this round."),
    ("event", "Name of the event."),
    ("success_before", "Success at the last measurement before the event."),
    ("success_lowest", "The lowest success measured from then on, before the next event."),
    ("recovery_s", "Simulated seconds until 90 % of the difference was back; empty if never."),
];

/// One line per run and event; `None` without events.
pub(crate) fn events_csv(table: &Table) -> Option<String> {
    let head = EVENT_COLUMNS.map(|(name, _)| name);
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    let text = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    for row in &table.rows {
        for (seed, run) in &row.runs {
            let line = |event: &EventSummary| {
                vec![
                    row.subject.point.clone(),
                    row.subject.method.clone(),
                    seed.to_string(),
                    text(run.summary.success_area),
                    event.round.to_string(),
                    event.name.clone(),
                    text(event.success_before),
                    text(event.success_lowest),
                    text(event.recovery_s),
                ]
            };
            lines.extend(run.summary.events.iter().map(line));
        }
    }
    (lines.len() > 1).then(|| csv_text(&lines))
}
