//! Prices of time, energy and bytes while a run has budgets.
//!
//! Rounds raise success and use up budgets. The most success for a budget results if each round
//! has, in its state, the largest gain per used share of the budget. Such a round also has the
//! largest gain less price times share if the price is that ratio. So the price follows the ratio
//! of the planned rounds (Dinkelbach's method). If there are several budgets, the price of one that
//! is used faster than the others rises and the price of one that is used more slowly falls, so
//! that all are used up together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::round::{BudgetState, Observation};
use crate::snapshot::{Snapshot, SnapshotError};
use crate::twin::{RewardWeights, Scale, StepPrediction};
use crate::units::Bytes;

/// How budgets become prices, as a scenario holds it in `[methods.tilp.prices]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PriceOptions {
    /// Whether budgets become prices; otherwise the weights of the reward are fixed.
    pub adaptive: bool,
    /// Weight of the rounds so far relative to the last one in the ratio of gain to use.
    pub memory: f64,
    /// Rise of a budget's price, as a power of e, if its used share is above the mean of all by one.
    pub balance: f64,
    /// Share of its fixed weight that a quantity without a budget keeps.
    pub unbudgeted: f64,
    /// Least gain of a round in the computation of the price.
    pub least_gain: f64,
}

impl Default for PriceOptions {
    fn default() -> Self {
        Self { adaptive: false, memory: 0.9, balance: 20.0, unbudgeted: 0.1, least_gain: 1e-6 }
    }
}

impl PriceOptions {
    /// Whether a scenario may leave it out.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Running means of gain and use of the planned rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Prices {
    gain: f64,
    used: f64,
}

/// The prices of one round.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RoundPrices {
    pub weights: RewardWeights,
    /// Price of a transmitted bit, in reward.
    pub bit: f64,
    /// Price of a joule of each terminal, relative to the common price.
    pub joules: Vec<f64>,
}

/// Prices per unit of each budget, for whole budgets of value one.
struct UnitPrices {
    second: f64,
    joule: f64,
    byte: f64,
    /// Price of a joule from the budget of each terminal.
    own: Vec<f64>,
}

impl Prices {
    /// The prices of a round; `None` without budgets or before the first planned round.
    pub(super) fn of_round(
        &self,
        options: &PriceOptions,
        seen: &Observation,
        fixed: &RewardWeights,
        scale: &Scale,
    ) -> Option<RoundPrices> {
        let budget = seen.budget.as_ref().filter(|_| options.adaptive)?;
        if self.used <= 0.0 {
            return None;
        }
        let value = fixed.task * self.gain.max(options.least_gain) / self.used;
        let unit = unit_prices(options, budget, seen);
        let is_timed = budget.budget.seconds.is_some();
        let second = match is_timed {
            true => value * unit.second,
            false => fixed.delay / scale.deadline.0 * options.unbudgeted,
        };
        let has_joules = budget.budget.joules.or(budget.budget.joules_per_terminal).is_some();
        // A quantity without a budget keeps a part of its fixed price.
        let least = fixed.energy / scale.energy.0 * options.unbudgeted;
        let joule = |own: f64| if has_joules { value * (unit.joule + own) } else { least };
        let n = unit.own.len().max(1) as f64;
        let common = joule(unit.own.iter().sum::<f64>() / n);
        let own = |one: &f64| if common > 0.0 { joule(*one) / common } else { 1.0 };
        let (delay, energy) = (second * scale.deadline.0, common * scale.energy.0);
        Some(RoundPrices {
            weights: RewardWeights { delay, energy, ..*fixed },
            bit: value * unit.byte / 8.0,
            joules: unit.own.iter().map(own).collect(),
        })
    }

    /// Updates the means with a planned round: its gain and its expected use.
    pub(super) fn follow(
        &mut self,
        options: &PriceOptions,
        seen: &Observation,
        gain: f64,
        step: &StepPrediction,
        energies: &[f64],
        bytes: Bytes,
    ) {
        let Some(budget) = seen.budget.as_ref().filter(|_| options.adaptive) else { return };
        let unit = unit_prices(options, budget, seen);
        let own: f64 = unit.own.iter().zip(energies).map(|(price, joules)| price * joules).sum();
        let used = unit.second * step.duration.0
            + unit.joule * step.energy.0
            + unit.byte * bytes.0 as f64
            + own;
        let keep = if self.used > 0.0 { options.memory } else { 0.0 };
        self.gain = keep * self.gain + (1.0 - keep) * gain;
        self.used = keep * self.used + (1.0 - keep) * used;
    }

    pub(super) fn save(&self, snapshot: &mut Snapshot) {
        snapshot.put_f64("tilp/prices", vec![self.gain, self.used]);
    }

    pub(super) fn restore(snapshot: &Snapshot) -> Result<Self, SnapshotError> {
        let values = snapshot.finite_f64("tilp/prices", 2)?;
        Ok(Self { gain: values[0], used: values[1] })
    }
}

fn unit_prices(options: &PriceOptions, state: &BudgetState, seen: &Observation) -> UnitPrices {
    let BudgetState { budget, used } = state;
    let shares = state.shares();
    let mean = shares.values().sum::<f64>() / shares.len().max(1) as f64;
    let weight = |share: f64| (options.balance * (share - mean)).exp();
    let price = |name: &str, budget: Option<f64>| match (budget, shares.get(name)) {
        (Some(budget), Some(&share)) => weight(share) / budget.max(1e-300),
        _ => 0.0,
    };
    let n = seen.terminals.len().max(1) as f64;
    let own = |id| match budget.joules_per_terminal {
        Some(budget) => {
            let spent = used.terminals.get(&id).map_or(0.0, |joules| joules.0);
            weight(spent / budget.0) / (n * budget.0.max(1e-300))
        }
        None => 0.0,
    };
    UnitPrices {
        second: price("seconds", budget.seconds.map(|one| one.0)),
        joule: price("joules", budget.joules.map(|one| one.0)),
        byte: price("bytes", budget.bytes.map(|one| one.0 as f64)),
        own: seen.ids().into_iter().map(own).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::round::{Budget, BudgetUse};
    use crate::twin::tests::fake::{DEFAULT, Fake};
    use crate::units::{Joules, Seconds};

    const OPTIONS: PriceOptions = PriceOptions {
        adaptive: true,
        memory: 0.5,
        balance: 10.0,
        unbudgeted: 0.1,
        least_gain: 1e-6,
    };
    const FIXED: RewardWeights =
        RewardWeights { task: 1.0, delay: 1e-3, energy: 1e-2, penalty: 1.0 };

    fn seen(budget: Budget, used: BudgetUse) -> Observation {
        let mut seen = Fake::new(4, DEFAULT, 1).observe();
        seen.budget = Some(BudgetState { budget, used });
        seen
    }

    fn scale() -> Scale {
        Scale { deadline: Seconds(5.0), energy: Joules(50.0) }
    }

    fn followed(seen: &Observation, gain: f64, seconds: f64, joules: f64) -> Prices {
        let mut prices = Prices::default();
        let step = StepPrediction {
            duration: Seconds(seconds),
            energy: Joules(joules),
            ..StepPrediction::default()
        };
        prices.follow(&OPTIONS, seen, gain, &step, &[joules / 4.0; 4], Bytes(0));
        prices
    }

    #[test]
    fn a_second_costs_what_planned_rounds_gain_in_a_second() {
        let budget = Budget { seconds: Some(Seconds(100.0)), ..Budget::default() };
        let seen = seen(budget, BudgetUse::default());
        let prices = followed(&seen, 2e-3, 0.5, 1.0);
        let found = prices.of_round(&OPTIONS, &seen, &FIXED, &scale()).unwrap();
        assert!((found.weights.delay / 5.0 - 2e-3 / 0.5).abs() < 1e-12);
        // Energy has no budget and keeps a tenth of its weight.
        assert!((found.weights.energy - 1e-3).abs() < 1e-12);
        assert_eq!(found.bit, 0.0);
    }

    #[test]
    fn the_budget_that_is_used_faster_is_dearer() {
        let budget = Budget {
            seconds: Some(Seconds(100.0)),
            joules: Some(Joules(100.0)),
            ..Budget::default()
        };
        let used =
            BudgetUse { seconds: Seconds(60.0), joules: Joules(20.0), ..BudgetUse::default() };
        let seen = seen(budget, used);
        let prices = followed(&seen, 1e-3, 1.0, 1.0);
        let found = prices.of_round(&OPTIONS, &seen, &FIXED, &scale()).unwrap();
        let [second, joule] = [found.weights.delay / 5.0, found.weights.energy / 50.0];
        assert!((second / joule - 4f64.exp()).abs() < 1e-6 * 4f64.exp(), "{second} {joule}");
        assert!((second + joule - 1e-3).abs() < 1e-12, "together they take the whole gain");
    }

    #[test]
    fn a_terminal_that_has_used_more_of_its_own_energy_pays_more_for_it() {
        let budget = Budget { joules_per_terminal: Some(Joules(10.0)), ..Budget::default() };
        let mut used = BudgetUse::default();
        let mut seen = seen(budget, used.clone());
        for (n, id) in seen.ids().into_iter().enumerate() {
            used.terminals.insert(id, Joules(n as f64));
        }
        seen.budget = Some(BudgetState { budget, used });
        let prices = followed(&seen, 1e-3, 1.0, 1.0);
        let found = prices.of_round(&OPTIONS, &seen, &FIXED, &scale()).unwrap();
        assert!(found.joules.windows(2).all(|pair| (pair[1] / pair[0] - 1f64.exp()).abs() < 1e-9));
    }

    #[test]
    fn without_budgets_there_are_no_prices() {
        let mut seen = seen(Budget::default(), BudgetUse::default());
        seen.budget = None;
        let prices = followed(&seen, 1e-3, 1.0, 1.0);
        assert_eq!(prices, Prices::default());
        assert_eq!(prices.of_round(&OPTIONS, &seen, &FIXED, &scale()), None);
    }
}
