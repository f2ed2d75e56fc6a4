//! Checks a profile scenario.

use super::raw::{CutRow, Profile};
use crate::profile::LawRanges;
use crate::scenario::ScenarioError;
use crate::scenario::check::Checker;
use crate::scenario::raw::Raw;

/// Refuses a profile with a value out of range.
pub(in crate::scenario) fn profile(checker: &Checker, raw: &Raw) -> Result<(), ScenarioError> {
    let Some(profile) = &raw.profile else { return Ok(()) };
    checker.within("profile.label_values", profile.label_values as u64, 0, 1_000_000)?;
    checker.bounds("profile.samples", profile.samples, 1.0, 1e9)?;
    law(checker, &profile.law)?;
    cuts(checker, &profile.cuts)?;
    listed(checker, raw, profile)?;
    tasks(checker, profile)?;
    match raw.events.iter().position(|event| event.change.is_some()) {
        Some(index) => {
            let expected = "leave, join, interferer or blockage: a profile has no robots";
            Err(checker.wrong(&format!("events[{index}].change"), "a change of work", expected))
        }
        None => Ok(()),
    }
}

fn law(checker: &Checker, law: &LawRanges) -> Result<(), ScenarioError> {
    // A start of a range at zero has no logarithm; a loss at its floor would have no gradient.
    let fields = [
        ("start_loss", law.start_loss, 1e-9, 1e9),
        ("floor_share", law.floor_share, 1e-6, 0.999),
        ("scale_samples", law.scale_samples, 1e-3, 1e12),
        ("power", law.power, 0.0, 10.0),
        ("kin", law.kin, 0.0, 1.0),
        ("other", law.other, 0.0, 1.0),
        ("passes", law.passes, 1e-3, 1e6),
        ("critical_batch", law.critical_batch, 1e-3, 1e9),
        ("noise", law.noise, 0.0, 1e3),
        ("drift", law.drift, 0.0, 1e3),
        ("broadcast", law.broadcast, 0.0, 1.0),
        ("base_success", law.base_success, 1e-6, 0.999_999),
        ("slope", law.slope, 0.0, 100.0),
        ("gradient", law.gradient, 1e-9, 1e9),
    ];
    for (name, range, least, most) in fields {
        checker.bounds(&format!("profile.law.{name}"), range, least, most)?;
    }
    if law.other[1] > law.kin[0] {
        let expected = "at most profile.law.kin: a foreign task teaches no more than the own one";
        return Err(checker.wrong("profile.law.other", format!("{:?}", law.other), expected));
    }
    checker.between("profile.law.terminal_sd", law.terminal_sd, 0.0, 10.0)?;
    checker.between("profile.law.minibatch_sd", law.minibatch_sd, 0.0, 10.0)
}

fn cuts(checker: &Checker, cuts: &[CutRow]) -> Result<(), ScenarioError> {
    if cuts.len() < 2 {
        let expected = "a table of at least two cuts, the last one the whole model";
        return Err(checker.wrong("profile.model", format!("{} cuts", cuts.len()), expected));
    }
    for (index, row) in cuts.iter().enumerate() {
        let at = |field: &str| format!("profile.cuts[{index}].{field}");
        checker.within(&at("activation_elements"), row.activation_elements, 1, 100_000_000)?;
        checker.between(&at("operations"), row.operations, 1.0, 1e18)?;
        checker.within(&at("trained_parameters"), row.trained_parameters, 0, 1 << 40)?;
        checker.within(&at("memory_bytes"), row.memory_bytes, 1, 1 << 50)?;
    }
    for (index, pair) in cuts.windows(2).enumerate() {
        let fields = [
            ("operations", pair[0].operations, pair[1].operations),
            (
                "trained_parameters",
                pair[0].trained_parameters as f64,
                pair[1].trained_parameters as f64,
            ),
            ("memory_bytes", pair[0].memory_bytes as f64, pair[1].memory_bytes as f64),
        ];
        if let Some((name, before, here)) = fields.iter().find(|(_, before, here)| here < before) {
            let field = format!("profile.cuts[{}].{name}", index + 1);
            let expected = format!("at least the {before} of the cut before");
            return Err(checker.wrong(&field, here, &expected));
        }
    }
    let last = cuts.len() - 1;
    let field = format!("profile.cuts[{last}].trained_parameters");
    checker.at_least(&field, cuts[last].trained_parameters, 1)
}

fn listed(checker: &Checker, raw: &Raw, profile: &Profile) -> Result<(), ScenarioError> {
    let (found, expected) = (raw.cell.n_terminals, profile.listed.len());
    if expected > 0 && found != expected {
        let expected = format!("{expected}, the terminals of profile.terminals");
        return Err(checker.wrong("cell.n_terminals", found, &expected));
    }
    Ok(())
}

fn tasks(checker: &Checker, profile: &Profile) -> Result<(), ScenarioError> {
    let (n, total) = (profile.tasks.len(), profile.tasks.values().map(|n| u64::from(*n)).sum());
    checker.within("profile.tasks", n as u64, 1, 256)?;
    checker.at_least("profile.tasks", total, 1)
}
