//! Methods on equal budgets: what one method used on a seed is the budget of another.
//!
//! The runs of an ordinary comparison come first. Then TiLP gets on every seed the budget that a
//! rival used there, and each rival gets what TiLP used. `study.json` stores these budgets with the
//! success that was reached with them, so that the table can be made from the folder alone.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Outcome, Plan, PlannedPoint, RunResult, StudyKind, Subject};

/// The method that is compared with its rivals.
pub(super) const OURS: &str = "tilp";

/// Which quantities a run may use no more of than another did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BudgetKind {
    /// Simulated seconds.
    Seconds,
    /// Joules of all terminals.
    Joules,
    /// Seconds, joules and bytes on the air.
    All,
}

impl BudgetKind {
    /// All kinds, with their names on the command line.
    pub const NAMED: [(&str, Self); 3] =
        [("seconds", Self::Seconds), ("joules", Self::Joules), ("all", Self::All)];

    /// The kind with a name.
    pub fn named(name: &str) -> Result<Self, String> {
        let found = Self::NAMED.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind);
        found.ok_or_else(|| format!("budget is `{name}`, expected seconds, joules or all"))
    }

    /// Its name on the command line.
    pub(super) fn name(self) -> &'static str {
        Self::NAMED.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }

    /// The budget as overrides of the scenario.
    fn overrides(self, spent: &Spent) -> Vec<String> {
        let seconds = format!("limits.budget.seconds={}", spent.seconds);
        let joules = format!("limits.budget.joules={}", spent.joules);
        match self {
            Self::Seconds => vec![seconds],
            Self::Joules => vec![joules],
            Self::All => vec![seconds, joules, format!("limits.budget.bytes={}", spent.bytes)],
        }
    }
}

/// What a run used, and the success that it reached with it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spent {
    /// Simulated time.
    pub seconds: f64,
    /// Energy of all terminals.
    pub joules: f64,
    /// Everything on the air.
    pub bytes: u64,
    /// Final success.
    pub success: f64,
}

/// The budgets of a point: whose runs they are taken from, seed by seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Budgets {
    /// The method that used them.
    pub of: String,
    /// What is bounded.
    pub kind: BudgetKind,
    /// What its runs used. Only these seeds are run at the point.
    pub by_seed: BTreeMap<u64, Spent>,
}

impl Budgets {
    /// The overrides of the runs with a seed; `None` if there is no budget for it.
    pub(super) fn overrides(&self, seed: u64) -> Option<Vec<String>> {
        self.by_seed.get(&seed).map(|spent| self.kind.overrides(spent))
    }

    /// Adds the budgets of further seeds.
    pub(super) fn join(&mut self, new: &Self) -> Result<(), String> {
        if (&self.of, self.kind) != (&new.of, new.kind) {
            let [old, new] = [&*self, new].map(|one| format!("{} of {}", one.kind.name(), one.of));
            return Err(format!("budget is {old}, not {new}"));
        }
        for (seed, spent) in &new.by_seed {
            match self.by_seed.insert(*seed, *spent) {
                Some(old) if old != *spent => {
                    return Err(format!("budget of seed {seed} is {old:?}, not {spent:?}"));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// The study after a comparison: TiLP with the budget of each rival, each rival with that of TiLP.
/// The error names a run that is not complete.
pub fn equal_budgets(
    base: &Plan,
    results: &[RunResult],
    rivals: &[String],
    kinds: &[BudgetKind],
) -> Result<Plan, String> {
    let spent = |method: &str| -> Result<BTreeMap<u64, Spent>, String> {
        base.seeds.iter().map(|&seed| Ok((seed, used(results, method, seed)?))).collect()
    };
    let mut points = Vec::new();
    for &kind in kinds {
        let mut point = |of: &str, methods: Vec<String>| -> Result<(), String> {
            let budgets = Budgets { of: of.to_owned(), kind, by_seed: spent(of)? };
            let label = format!("{} of {of}", kind.name());
            let overrides = Vec::new();
            points.push(PlannedPoint { label, overrides, budgets: Some(budgets), methods });
            Ok(())
        };
        rivals.iter().try_for_each(|rival| point(rival, vec![OURS.to_owned()]))?;
        point(OURS, rivals.to_vec())?;
    }
    let first =
        points.first().ok_or("rivals or budgets are none, expected at least one of each")?;
    let reference = Subject { point: first.label.clone(), method: first.methods[0].clone() };
    Ok(Plan {
        question: StudyKind::EqualBudget,
        scenario: base.scenario.clone(),
        points,
        reference,
        seeds: base.seeds.clone(),
        replicates: 1,
    })
}

/// What a complete run of a comparison used.
fn used(results: &[RunResult], method: &str, seed: u64) -> Result<Spent, String> {
    let is_it = |one: &&RunResult| {
        one.subject.method == method && one.seed.seed == seed && one.seed.replicate == 0
    };
    let missing = || format!("{method}, seed {seed}: no complete run to take a budget from");
    let Outcome::Done(run) = &results.iter().find(is_it).ok_or_else(missing)?.outcome else {
        return Err(missing());
    };
    let summary = &run.summary;
    Ok(Spent {
        seconds: summary.clock_total_s,
        joules: summary.energy_total_j,
        bytes: summary.air_total_bytes,
        success: summary.success_final.ok_or_else(missing)?,
    })
}
