//! How often copies are averaged: the interval that needs the least time to a given bound.

/// Total latency as a function of one averaging interval I, up to a factor:
/// (every + exchange / I) / (slack - drift I^2), where the drift vanishes at I = 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latency {
    /// Time of every round, A.
    pub every: f64,
    /// Time of one exchange of copies, C.
    pub exchange: f64,
    /// What the bound leaves without drift, E.
    pub slack: f64,
    /// Drift per squared interval, D.
    pub drift: f64,
}

impl Latency {
    /// The latency at an interval; infinite where the bound is out of reach.
    pub fn at(&self, interval: u64) -> f64 {
        let steps = interval as f64;
        let drift = if interval > 1 { self.drift * steps * steps } else { 0.0 };
        let left = self.slack - drift;
        if left > 0.0 { (self.every + self.exchange / steps) / left } else { f64::INFINITY }
    }
}

/// The only positive root of 2 A D I^3 + 3 C D I^2 - C E = 0, where the latency is stationary;
/// none if there is no drift to stop at.
pub fn stationary_interval(latency: &Latency) -> Option<f64> {
    let Latency { every, exchange, slack, drift } = *latency;
    if drift <= 0.0 || slack <= 0.0 || exchange < 0.0 {
        return None;
    }
    let cubic = |x: f64| 2.0 * every * drift * x * x * x + 3.0 * exchange * drift * x * x;
    // The root is below sqrt(E / D), where the bound is no longer valid.
    let (mut low, mut high) = (0.0, (slack / drift).sqrt());
    while high - low > 1e-14 * high {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if cubic(middle) < exchange * slack { low = middle } else { high = middle }
    }
    Some(high)
}

/// The best interval of 1 to `longest`.
pub fn best_interval(latency: &Latency, longest: u64) -> u64 {
    let root = stationary_interval(latency).unwrap_or(longest as f64);
    let below = (root.floor().max(1.0) as u64).min(longest);
    let above = (root.ceil().max(1.0) as u64).min(longest);
    let candidates = [1, below, above];
    let better = |a: &u64, b: &u64| latency.at(*a).total_cmp(&latency.at(*b)).then(a.cmp(b));
    candidates.into_iter().min_by(better).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::allocate::solve::instances::{power_of_ten, repeatable};

    fn latency() -> impl Strategy<Value = Latency> {
        let slack = power_of_ten(-2.0, 2.0);
        (power_of_ten(-2.0, 1.0), power_of_ten(-3.0, 2.0), slack, power_of_ten(-6.0, 0.5))
            .prop_map(|(every, exchange, slack, drift)| Latency { every, exchange, slack, drift })
    }

    proptest! {
        #![proptest_config(repeatable(20_000))]

        #[test]
        fn the_cubic_finds_the_best_interval_of_all(latency in latency()) {
            let found = best_interval(&latency, 300);
            let better = |a: &u64, b: &u64| latency.at(*a).total_cmp(&latency.at(*b));
            let best = (1..=300).min_by(better).unwrap();
            prop_assert_eq!(latency.at(found), latency.at(best), "{}, best {}", found, best);
        }

        #[test]
        fn the_root_solves_the_cubic_below_the_loss_of_the_bound(latency in latency()) {
            let Latency { every, exchange, slack, drift } = latency;
            let x = stationary_interval(&latency).unwrap();
            prop_assert!(x <= (slack / drift).sqrt());
            let left = 2.0 * every * drift * x.powi(3) + 3.0 * exchange * drift * x * x;
            prop_assert!((left / (exchange * slack) - 1.0).abs() < 1e-9);
        }

        #[test]
        fn a_free_exchange_is_made_every_round_and_without_drift_as_rarely_as_allowed(
            latency in latency(),
        ) {
            prop_assert_eq!(best_interval(&Latency { exchange: 0.0, ..latency }, 100), 1);
            prop_assert_eq!(best_interval(&Latency { exchange: 1e-12, ..latency }, 100), 1);
            prop_assert_eq!(best_interval(&Latency { drift: 0.0, ..latency }, 100), 100);
        }
    }
}
