//! An energy budget kept in the long run, and bandwidth that weighs time against energy.

use super::bandwidth::{Need, crossing, finish_at, finish_together};
use crate::units::{Hertz, Seconds};

/// A virtual queue: what has been spent beyond the budget so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EnergyQueue {
    /// Energy allowed a round; none for no budget.
    pub budget_j: Option<f64>,
    /// The backlog Q.
    pub backlog_j: f64,
}

impl EnergyQueue {
    /// An empty queue.
    pub fn new(budget_j: Option<f64>) -> Self {
        Self { budget_j, backlog_j: 0.0 }
    }

    /// Q <- max(Q + E - budget, 0). Without a budget the backlog stays zero.
    pub fn spend(&mut self, energy_j: f64) {
        if let Some(budget) = self.budget_j {
            self.backlog_j = (self.backlog_j + energy_j - budget).max(0.0);
        }
    }
}

/// How time and energy are weighed: V T + Q E.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tradeoff {
    /// V.
    pub time: f64,
    /// Q.
    pub energy: f64,
    /// Transmit power.
    pub power_w: f64,
}

/// Bandwidths with the least V T + Q sum p s_n / R_n(b_n), where every terminal finishes by T, which is
/// at most `latest`; `sent` are the bits s_n that each sends. Without a price on energy
/// this is equal finishing time.
pub fn share_by_energy(
    needs: &[Need],
    sent: &[f64],
    band: Hertz,
    weigh: Tradeoff,
    latest: Seconds,
) -> Option<(Seconds, Vec<Hertz>)> {
    let (earliest, together) = finish_together(needs, band)?;
    if weigh.energy <= 0.0 {
        return Some((earliest, together));
    }
    let value = |finish: f64, split: &[Hertz]| {
        let joules = needs.iter().zip(sent).zip(split);
        let joules = joules.map(|((need, sent), b)| weigh.power_w * sent / need.channel.rate(*b).0);
        weigh.time * finish + weigh.energy * joules.sum::<f64>()
    };
    let share = |finish: f64| {
        let least = finish_at(needs, band, Seconds(finish))?;
        let split = fill(needs, sent, &least, band);
        Some((value(finish, &split), split))
    };
    let mut best = (value(earliest.0, &together), earliest.0, together);
    // Convex in T: golden section from the earliest time to one at which little binds.
    let (mut low, mut high) = (earliest.0, (8.0 * earliest.0).min(latest.0).max(earliest.0));
    let mut inner = [0.382, 0.618].map(|part| low + part * (high - low));
    let mut found = inner.map(share);
    for _ in 0..16 {
        let of = |one: &Option<(f64, Vec<Hertz>)>| one.as_ref().map_or(f64::INFINITY, |one| one.0);
        for (at, one) in inner.iter().zip(&found) {
            if let Some((value, split)) = one.as_ref().filter(|one| one.0 < best.0) {
                best = (*value, *at, split.clone());
            }
        }
        let [left, right] = found;
        if of(&left) <= of(&right) {
            high = inner[1];
            inner = [low + 0.382 * (high - low), inner[0]];
            found = [share(inner[0]), left];
        } else {
            low = inner[0];
            inner = [inner[1], low + 0.618 * (high - low)];
            found = [right, share(inner[1])];
        }
    }
    Some((Seconds(best.1), best.2))
}

/// How closely logarithms of bandwidths and prices are searched: near its least the value is flat.
const CLOSE: f64 = 1e-6;

/// Assigns the rest of the band where it saves most energy: above its least bandwidth every terminal
/// has the same marginal saving, s R' / R^2. Bandwidths and prices are searched by their logarithms,
/// in which savings are nearly straight.
fn fill(needs: &[Need], sent: &[f64], least: &[Hertz], band: Hertz) -> Vec<Hertz> {
    let saving = |n: usize, log_bandwidth: f64| {
        let (rate, slope) = needs[n].channel.rate_and_slope(Hertz(log_bandwidth.exp()));
        (sent[n] * slope / rate.0.powi(2)).ln()
    };
    let low: Vec<f64> = least.iter().map(|least| least.0.max(1e-9 * band.0).ln()).collect();
    let high = band.0.ln();
    let each = 0..needs.len();
    let most: Vec<f64> = each.clone().map(|n| saving(n, low[n])).collect();
    let fewest: Vec<f64> = each.clone().map(|n| saving(n, high)).collect();
    let at_price = |price: f64, n: usize| {
        if fewest[n] > price {
            return high;
        }
        if most[n] > price {
            return crossing(low[n], high, CLOSE, |log_bandwidth| saving(n, log_bandwidth) - price);
        }
        low[n] // dear enough already, or nothing to send
    };
    let used = |price: f64| each.clone().map(|n| at_price(price, n).exp()).sum::<f64>();
    let dear = most.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let cheap = fewest.iter().copied().fold(f64::INFINITY, f64::min);
    let price = if cheap.is_finite() && dear.is_finite() && used(dear) < band.0 {
        // Shifted, so that a price is known to a share of its range.
        cheap + crossing(0.0, dear - cheap, CLOSE, |price| used(cheap + price) - band.0)
    } else {
        dear
    };
    let split: Vec<f64> = each.map(|n| at_price(price, n).exp()).collect();
    let stretch = band.0 / split.iter().sum::<f64>();
    split.into_iter().map(|bandwidth| Hertz(bandwidth * stretch)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocate::solve::Channel;
    use crate::wireless::RateModel;

    fn needs() -> (Vec<Need>, Vec<f64>) {
        let need = |bits, fixed_s, strength_hz| Need {
            bits,
            fixed_s,
            channel: Channel { strength_hz, model: RateModel::Held },
            down: None,
        };
        let needs = vec![need(4e5, 0.5, 1e7), need(1e6, 0.1, 5e8), need(2e5, 0.01, 3e6)];
        (needs, vec![2e5, 6e5, 1e5])
    }

    #[test]
    fn without_a_price_on_energy_all_finish_together() {
        let (needs, sent) = needs();
        let free = Tradeoff { time: 1.0, energy: 0.0, power_w: 0.2 };
        let shared = share_by_energy(&needs, &sent, Hertz(1e6), free, Seconds(60.0)).unwrap();
        assert_eq!(Some(shared), finish_together(&needs, Hertz(1e6)));
    }

    #[test]
    fn no_split_of_a_fine_grid_is_better() {
        let (needs, sent) = needs();
        for energy in [0.3, 3.0, 100.0] {
            let weigh = Tradeoff { time: 1.0, energy, power_w: 0.2 };
            let value = |split: &[f64]| {
                let each = || needs.iter().zip(&sent).zip(split);
                let time = each().map(|((need, _), b)| need.finish(Hertz(*b))).fold(0.0, f64::max);
                let joules =
                    each().map(|((need, sent), b)| 0.2 * sent / need.channel.rate(Hertz(*b)).0);
                time + energy * joules.sum::<f64>()
            };
            let (_, found) =
                share_by_energy(&needs, &sent, Hertz(1e6), weigh, Seconds(60.0)).unwrap();
            let found = value(&found.iter().map(|b| b.0).collect::<Vec<_>>());
            let mut least = f64::INFINITY;
            for i in 1..200 {
                for j in 1..200 - i {
                    let (a, b) = (i as f64 * 5e3, j as f64 * 5e3);
                    least = least.min(value(&[a, b, 1e6 - a - b]));
                }
            }
            assert!(found <= least * (1.0 + 2e-3), "price {energy}: {found}, grid {least}");
        }
    }

    #[test]
    fn a_queue_holds_what_was_spent_beyond_the_budget_and_never_less_than_nothing() {
        let mut queue = EnergyQueue::new(Some(2.0));
        for (spent, backlog) in [(1.0, 0.0), (5.0, 3.0), (2.5, 3.5), (0.0, 1.5), (0.0, 0.0)] {
            queue.spend(spent);
            assert_eq!(queue.backlog_j, backlog);
        }
        let mut free = EnergyQueue::new(None);
        free.spend(1e9);
        assert_eq!(free.backlog_j, 0.0);
    }
}
