//! Refuses descriptions that no cell can have, so that the planner cannot fail on them later.

use std::fmt::Debug;

use super::CellDescription;
use crate::cost::Hardware;
use crate::round::TerminalReport;
use crate::twin::MAX_CUTS;

/// A value of a [`CellDescription`] or of a report that is out of range.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{field} is {value}, expected {expected}")]
pub struct DescriptionError {
    /// Place of the value.
    pub field: String,
    /// The value.
    pub value: String,
    /// What was expected.
    pub expected: String,
}

fn refuse(field: &str, value: impl Debug, expected: String) -> DescriptionError {
    DescriptionError { field: field.to_owned(), value: format!("{value:?}"), expected }
}

/// A finite number from `low` to `high`.
fn between(field: &str, value: f64, [low, high]: [f64; 2]) -> Result<(), DescriptionError> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(refuse(field, value, format!("{low:e} to {high:e}")))
}

fn at_least(field: &str, value: u64, least: u64) -> Result<(), DescriptionError> {
    if value >= least { Ok(()) } else { Err(refuse(field, value, format!("at least {least}"))) }
}

pub(super) fn check(
    cell: &CellDescription,
    reports: &[TerminalReport],
) -> Result<(), DescriptionError> {
    let limits = &cell.cost.limits;
    let deadline = limits.deadline.0;
    between("limits.deadline", deadline, [1e-6, 1e6])?;
    between("limits.bandwidth", limits.bandwidth.0, [1.0, 1e12])?;
    between("limits.power", limits.power.0, [1e-9, 1e3])?;
    between("limits.compression", limits.compression, [0.0, 0.99])?;
    between("closes", cell.closes.0, [deadline, 1e9])?;
    between("give_up", cell.give_up.0, [cell.closes.0, 1e9])?;
    between("fading_correlation", cell.fading_correlation, [-1.0, 1.0])?;
    between("measurement_noise", cell.measurement_noise, [0.0, 1.0])?;
    at_least("training.aggregate_every", cell.training.aggregate_every, 1)?;
    at_least("training.rates.rounds", cell.training.rates.rounds, 1)?;
    sizes(cell)?;
    at_least("number of reports", reports.len() as u64, 1)?;
    reports.iter().try_for_each(|report| terminal(cell, report))
}

fn sizes(cell: &CellDescription) -> Result<(), DescriptionError> {
    let profile = &cell.cost.profile;
    at_least("profile.batch", profile.batch as u64, 1)?;
    let n_layers = profile.cuts.len();
    for (index, one) in profile.cuts.iter().enumerate() {
        let field = format!("profile.cuts[{index}]");
        if one.cut != index + 1 {
            return Err(refuse(&format!("{field}.cut"), one.cut, format!("{}", index + 1)));
        }
        at_least(&format!("{field}.activation_elements"), one.activation_elements as u64, 1)?;
        between(&format!("{field}.operations"), one.operations.0, [0.0, 1e18])?;
    }
    let cuts = &cell.cost.limits.cuts;
    let ascending = cuts.windows(2).all(|pair| pair[0] < pair[1]);
    let inside = cuts.iter().all(|cut| (1..=n_layers).contains(cut));
    if cuts.is_empty() || cuts.len() > MAX_CUTS || !ascending || !inside {
        let expected = format!("ascending layers of 1..={n_layers}, at most {MAX_CUTS} of them");
        return Err(refuse("limits.cuts", cuts, expected));
    }
    Ok(())
}

fn terminal(cell: &CellDescription, report: &TerminalReport) -> Result<(), DescriptionError> {
    let field = |name: &str| format!("report of terminal {}: {name}", report.id);
    let Hardware { operations_per_cycle, clock, energy_coefficient, noise_w_per_hz } =
        report.hardware;
    between(&field("operations_per_cycle"), operations_per_cycle, [1e-9, 1e9])?;
    between(&field("clock"), clock.0, [1.0, 1e15])?;
    between(&field("energy_coefficient"), energy_coefficient, [0.0, 1.0])?;
    between(&field("noise_w_per_hz"), noise_w_per_hz, [1e-30, 1.0])?;
    if report.task >= cell.n_tasks {
        let expected = format!("an index below n_tasks = {}", cell.n_tasks);
        return Err(refuse(&field("task"), report.task, expected));
    }
    Ok(())
}
