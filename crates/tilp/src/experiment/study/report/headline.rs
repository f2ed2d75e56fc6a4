//! The result of a study, in a few sentences.

use super::columns::COLUMNS;
use super::equal_budget;
use crate::experiment::study::{Pairing, Plan, Row, StudyKind, Table};
use crate::statistics::Estimate;

/// The result of a study.
pub(super) fn headline(plan: &Plan, table: &Table) -> String {
    let found = match plan.question {
        StudyKind::EqualBudget => equal_budget::headline(plan, table),
        _ if table.by_point => along(plan, table),
        _ => beside(plan, table),
    };
    let found = found.unwrap_or_else(|| alone(plan, table));
    match table.note() {
        Some(note) => format!("{found} ({note}.)"),
        None => found,
    }
}

/// Without a comparison: the success of the only row with runs, or the number of rows with runs.
fn alone(plan: &Plan, table: &Table) -> String {
    let with_runs: Vec<&Row> = table.rows.iter().filter(|row| !row.runs.is_empty()).collect();
    match with_runs[..] {
        [row] => format!("{}.", ending(plan, row)),
        _ => format!("{} of {} rows have runs.", with_runs.len(), table.rows.len()),
    }
}

fn ending(plan: &Plan, row: &Row) -> String {
    let n_seeds = row.n_seeds();
    let seeds = if n_seeds == 1 { "seed" } else { "seeds" };
    let success = COLUMNS[0].text(row);
    format!("{} ends at {success} % success over {n_seeds} {seeds}", name(plan, row))
}

fn name(plan: &Plan, row: &Row) -> String {
    match plan.points.len() {
        1 => row.subject.method.clone(),
        _ => format!("{} at {}", row.subject.method, row.subject.point),
    }
}

fn mean(row: &Row) -> Option<f64> {
    row.estimate(COLUMNS[0].metric()).map(|estimate| estimate.mean)
}

/// The reference, the best other row, and the rows that are no worse in the mean.
fn beside(plan: &Plan, table: &Table) -> Option<String> {
    let reference = &table.rows[table.reference];
    let own = mean(reference)?;
    let rivals: Vec<(f64, usize)> = rivals(table)
        .filter(|index| *index != table.reference)
        .filter_map(|index| Some((mean(&table.rows[index])?, index)))
        .collect();
    let (_, best) = rivals.iter().copied().max_by(|a, b| a.0.total_cmp(&b.0))?;
    let row = &table.rows[best];
    let mut text = format!(
        "{}; the best other row, {}, at {} %.",
        ending(plan, reference),
        name(plan, row),
        COLUMNS[0].text(row)
    );
    if let Some(pairing) = table.pairing(best, COLUMNS[0].metric()) {
        text += &format!(" Paired by seed the difference is {}.", difference(&pairing));
    }
    let level = rivals.iter().filter(|(mean, _)| *mean >= own);
    let level: Vec<String> = level.map(|(_, index)| name(plan, &table.rows[*index])).collect();
    if !level.is_empty() {
        text += &format!(" No less success in the mean: {}.", level.join(", "));
    }
    Some(text)
}

fn difference(pairing: &Pairing) -> String {
    let Estimate { mean, interval } = pairing.difference;
    let interval = interval.map_or(String::new(), |[low, high]| {
        format!(" [{:+.1}, {:+.1}]", 100.0 * low, 100.0 * high)
    });
    let p = pairing.p.map_or(String::new(), |p| format!(", p = {p:.3}"));
    format!("{:+.1}{interval} points{p}", 100.0 * mean)
}

/// The compared rows: without `oracle` and `clairvoyant`, which get hidden true values.
fn rivals(table: &Table) -> impl Iterator<Item = usize> {
    (0..table.rows.len()).filter(|index| !table.rows[*index].is_told())
}

/// The number of points of a sweep at which the reference's method has the highest success, paired
/// by seed, and the methods that are level or ahead elsewhere.
fn along(plan: &Plan, table: &Table) -> Option<String> {
    let (mut compared, mut highest, mut elsewhere) = (0, 0, Vec::new());
    for point in &plan.points {
        let at = |index: &usize| table.rows[*index].subject.point == point.label;
        let pair = |index: usize| Some((index, table.pairing(index, COLUMNS[0].metric())?));
        let pairs: Vec<(usize, Pairing)> = rivals(table).filter(at).filter_map(pair).collect();
        // A difference by rounding only counts as level.
        let is_level = |pair: &&(usize, Pairing)| pair.1.difference.mean <= 1e-12;
        let level = pairs.iter().filter(is_level);
        let level: Vec<&str> =
            level.map(|(index, _)| table.rows[*index].subject.method.as_str()).collect();
        compared += usize::from(!pairs.is_empty());
        highest += usize::from(!pairs.is_empty() && level.is_empty());
        if !level.is_empty() {
            elsewhere.push(format!("at {}: {}", point.label, level.join(", ")));
        }
    }
    let method = &plan.reference.method;
    let mut text = format!("{method} has the highest success at {highest} of {compared} points");
    if compared < plan.points.len() {
        text += &format!(" ({} more are not compared yet)", plan.points.len() - compared);
    }
    if !elsewhere.is_empty() {
        text += &format!("; level or ahead {}", elsewhere.join("; "));
    }
    (compared > 0).then(|| text + ".")
}
