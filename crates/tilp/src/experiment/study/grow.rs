//! Extension of a study: more methods, seeds, points or replicates of the same question on the same
//! scenario.

use super::questions::reference;
use super::{Plan, PlannedPoint};
use crate::scenario::Scenario;

impl Plan {
    /// This plan extended by another one; existing entries come first. The error names the
    /// difference.
    pub fn joined(&self, other: &Self) -> Result<Self, String> {
        if self.question != other.question {
            return Err(format!("question is `{}`, not `{}`", self.question, other.question));
        }
        let mut points = self.points.clone();
        for new in &other.points {
            match points.iter_mut().find(|point| point.label == new.label) {
                Some(point) => join(point, new)?,
                None => points.push(new.clone()),
            }
        }
        let new_seeds = other.seeds.iter().filter(|seed| !self.seeds.contains(seed));
        Ok(Self {
            question: self.question,
            scenario: self.scenario.clone(),
            reference: reference(&points),
            points,
            seeds: self.seeds.iter().chain(new_seeds).copied().collect(),
            replicates: self.replicates.max(other.replicates),
        })
    }
}

/// Adds the methods of a point with the same label.
fn join(point: &mut PlannedPoint, new: &PlannedPoint) -> Result<(), String> {
    if point.overrides != new.overrides {
        let [old, new] = [&point.overrides, &new.overrides].map(|all| all.join(", "));
        return Err(format!("point `{}` has `{old}`, not `{new}`", point.label));
    }
    match (&mut point.budgets, &new.budgets) {
        (None, None) => {}
        (Some(there), Some(new)) => there.join(new)?,
        _ => return Err(format!("point `{}` has budgets in one of the two only", point.label)),
    }
    let added: Vec<String> =
        new.methods.iter().filter(|method| !point.methods.contains(method)).cloned().collect();
    point.methods.extend(added);
    Ok(())
}

/// The first key in which two scenarios differ: that of a study, and the requested one.
pub(super) fn scenarios_differ(there: &Scenario, asked: &Scenario) -> Option<String> {
    let (there, asked) = (there.values(), asked.values());
    let value = |all: &[(String, String)], key: &str| {
        let found = all.iter().find(|(name, _)| name == key);
        found.map_or("absent".to_owned(), |(_, value)| value.clone())
    };
    let keys = there.iter().chain(&asked).map(|(key, _)| key);
    let mut differing = keys.filter(|key| value(&there, key) != value(&asked, key));
    let key = differing.next()?;
    Some(format!("{key} is {}, not {}", value(&there, key), value(&asked, key)))
}
