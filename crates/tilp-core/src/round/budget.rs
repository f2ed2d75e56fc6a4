//! Budgets of a whole run, beside the limits of each round.

use std::collections::BTreeMap;

use super::TerminalId;
use crate::snapshot::{Snapshot, SnapshotError};
use crate::units::{Bytes, Joules, Seconds};

/// Total budgets of a run. `None` means no bound.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Budget {
    /// Time of all rounds, waiting for copies included.
    pub seconds: Option<Seconds>,
    /// Energy of all terminals together.
    pub joules: Option<Joules>,
    /// Energy of each terminal. One that has used it up leaves.
    pub joules_per_terminal: Option<Joules>,
    /// Bytes on the air, both ways.
    pub bytes: Option<Bytes>,
}

/// Use so far, by the meter of its owner.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BudgetUse {
    /// Time of all rounds.
    pub seconds: Seconds,
    /// Energy of all terminals together.
    pub joules: Joules,
    /// Bytes on the air, both ways.
    pub bytes: Bytes,
    /// Energy of every terminal that was ever there.
    pub terminals: BTreeMap<TerminalId, Joules>,
}

/// A budget and what is used of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BudgetState {
    /// The budget.
    pub budget: Budget,
    /// Its use.
    pub used: BudgetUse,
}

/// Sums of energies that agree but for the last bits are the same.
const ROUNDING: f64 = 1e-9;

impl Budget {
    /// Whether there is no bound.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a use stays within the bounds for all terminals together.
    pub fn holds(&self, used: &BudgetUse) -> bool {
        let within = |used: f64, budget: Option<f64>| {
            budget.is_none_or(|budget| used <= budget * (1.0 + ROUNDING))
        };
        within(used.seconds.0, self.seconds.map(|one| one.0))
            && within(used.joules.0, self.joules.map(|one| one.0))
            && within(used.bytes.0 as f64, self.bytes.map(|one| one.0 as f64))
    }
}

impl BudgetUse {
    /// Adds a round: how long it took, and energy and bytes of each terminal.
    pub fn add(
        &mut self,
        duration: Seconds,
        terminals: impl Iterator<Item = (TerminalId, Joules, Bytes)>,
    ) {
        self.seconds += duration;
        for (id, joules, bytes) in terminals {
            self.joules += joules;
            self.bytes += bytes;
            *self.terminals.entry(id).or_default() += joules;
        }
    }

    /// Energy left in a terminal's own budget.
    pub fn left(&self, id: TerminalId, budget: Joules) -> Joules {
        let used = self.terminals.get(&id).copied().unwrap_or_default();
        Joules((budget.0 - used.0).max(0.0))
    }

    /// Whether a terminal has used up its own budget.
    pub fn is_empty(&self, id: TerminalId, budget: Joules) -> bool {
        self.left(id, budget).0 <= budget.0 * ROUNDING
    }

    /// Saves under names that begin with `prefix`.
    pub fn save(&self, prefix: &str, snapshot: &mut Snapshot) {
        snapshot.put_f64(&format!("{prefix}/seconds"), vec![self.seconds.0]);
        snapshot.put_f64(&format!("{prefix}/joules"), vec![self.joules.0]);
        snapshot.put_u64(&format!("{prefix}/bytes"), vec![self.bytes.0]);
        let ids = self.terminals.keys().map(|id| u64::from(id.0)).collect();
        snapshot.put_u64(&format!("{prefix}/terminals"), ids);
        let own = self.terminals.values().map(|joules| joules.0).collect();
        snapshot.put_f64(&format!("{prefix}/terminal_joules"), own);
    }

    /// Restores the values saved under names that begin with `prefix`.
    pub fn restored(prefix: &str, snapshot: &Snapshot) -> Result<Self, SnapshotError> {
        let name = |part: &str| format!("{prefix}/{part}");
        let quantities = |part: &str, n: usize| {
            let (name, expected) = (name(part), "0 or more");
            let values = snapshot.finite_f64(&name, n)?.to_vec();
            match values.iter().find(|value| **value < 0.0) {
                Some(value) => Err(SnapshotError::value(&name, value, expected)),
                None => Ok(values),
            }
        };
        let n = snapshot.len_of(&name("terminals"));
        let ids = snapshot.u64_up_to(&name("terminals"), n, u32::MAX.into())?;
        let own = quantities("terminal_joules", n)?;
        let ids = ids.iter().map(|&id| TerminalId(id as u32));
        Ok(Self {
            seconds: Seconds(quantities("seconds", 1)?[0]),
            joules: Joules(quantities("joules", 1)?[0]),
            bytes: Bytes(snapshot.u64_up_to(&name("bytes"), 1, 1 << 62)?[0]),
            terminals: ids.zip(own.into_iter().map(Joules)).collect(),
        })
    }
}

impl BudgetState {
    /// A budget without any use.
    pub fn new(budget: Budget) -> Self {
        Self { budget, used: BudgetUse::default() }
    }

    /// The used share of every budget that is set, by its name in scenarios. That of a budget per
    /// terminal is the mean over the terminals.
    pub fn shares(&self) -> BTreeMap<&'static str, f64> {
        let Self { budget, used } = self;
        let own = budget.joules_per_terminal.map(|budget| {
            let n = used.terminals.len().max(1) as f64;
            used.terminals.values().map(|joules| (joules.0 / budget.0).min(1.0)).sum::<f64>() / n
        });
        [
            ("seconds", budget.seconds.map(|budget| used.seconds.0 / budget.0)),
            ("joules", budget.joules.map(|budget| used.joules.0 / budget.0)),
            ("joules_per_terminal", own),
            ("bytes", budget.bytes.map(|budget| used.bytes.0 as f64 / budget.0 as f64)),
        ]
        .into_iter()
        .filter_map(|(name, share)| Some((name, share?)))
        .collect()
    }

    /// The used share of the budget that is nearest to its end, 0 to 1.
    pub fn share(&self) -> f64 {
        self.shares().into_values().fold(0.0, f64::max).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used() -> BudgetUse {
        let mut used = BudgetUse::default();
        let one = |id, joules, bytes| (TerminalId(id), Joules(joules), Bytes(bytes));
        used.add(Seconds(2.0), [one(0, 1.0, 10), one(3, 0.5, 20)].into_iter());
        used.add(Seconds(1.0), [one(0, 1.0, 5)].into_iter());
        used
    }

    #[test]
    fn a_use_sums_seconds_joules_and_bytes_and_the_joules_of_every_terminal() {
        let used = used();
        assert_eq!((used.seconds, used.joules, used.bytes), (Seconds(3.0), Joules(2.5), Bytes(35)));
        assert_eq!(used.left(TerminalId(0), Joules(3.0)), Joules(1.0));
        assert_eq!(used.left(TerminalId(9), Joules(3.0)), Joules(3.0));
        assert!(used.is_empty(TerminalId(0), Joules(2.0)));
        assert!(!used.is_empty(TerminalId(3), Joules(2.0)));
    }

    #[test]
    fn a_budget_holds_up_to_its_end_and_not_beyond() {
        let used = used();
        assert!(Budget::default().holds(&used));
        let seconds = |seconds| Budget { seconds: Some(Seconds(seconds)), ..Budget::default() };
        assert!(seconds(3.0).holds(&used) && !seconds(2.9).holds(&used));
        let joules = |joules| Budget { joules: Some(Joules(joules)), ..Budget::default() };
        assert!(joules(2.5).holds(&used) && !joules(2.4).holds(&used));
        let bytes = |bytes| Budget { bytes: Some(Bytes(bytes)), ..Budget::default() };
        assert!(bytes(35).holds(&used) && !bytes(34).holds(&used));
        let own = Budget { joules_per_terminal: Some(Joules(0.1)), ..Budget::default() };
        assert!(own.holds(&used), "a terminal that is used up ends nothing for the others");
    }

    #[test]
    fn the_share_is_that_of_the_budget_nearest_to_its_end() {
        let budget = Budget {
            seconds: Some(Seconds(12.0)),
            joules_per_terminal: Some(Joules(1.0)),
            bytes: Some(Bytes(100)),
            joules: None,
        };
        let state = BudgetState { budget, used: used() };
        let shares = state.shares();
        assert_eq!(shares["seconds"], 0.25);
        assert_eq!(shares["bytes"], 0.35);
        // Terminal 0 has used 2 J of 1 J, which counts as all of it; terminal 3 a half.
        assert_eq!(shares["joules_per_terminal"], 0.75);
        assert_eq!(state.share(), 0.75);
        assert_eq!(BudgetState::new(budget).share(), 0.0);
    }

    #[test]
    fn a_use_comes_back_from_a_snapshot_and_a_negative_one_is_refused() {
        let mut snapshot = Snapshot::default();
        used().save("cell/used", &mut snapshot);
        assert_eq!(BudgetUse::restored("cell/used", &snapshot).unwrap(), used());
        snapshot.put_f64("cell/used/terminal_joules", vec![1.0, -1.0]);
        let error = BudgetUse::restored("cell/used", &snapshot).unwrap_err().to_string();
        assert!(error.contains("cell/used/terminal_joules"), "{error}");
    }
}
