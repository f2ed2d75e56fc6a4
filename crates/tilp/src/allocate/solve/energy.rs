//! An energy budget kept in the long run, and bandwidth that weighs time against energy.

use super::bandwidth::{Need, finish_at, finish_together};
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

/// Bandwidths with the least V T + Q sum p s_n / R_n(b_n), where everybody is done by T, which is
/// not put off beyond `latest`; `sent` are the bits s_n that each sends. Without a price on energy
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

/// Deals out the rest of the band where it saves most energy: above its least bandwidth everybody
/// has the same marginal saving.
fn fill(needs: &[Need], sent: &[f64], least: &[Hertz], band: Hertz) -> Vec<Hertz> {
    let saving = |n: usize, bandwidth: f64| {
        let rate = |b: f64| needs[n].channel.rate(Hertz(b)).0;
        let step = 1e-4 * bandwidth;
        let slope = (rate(bandwidth + step) - rate(bandwidth - step)) / (2.0 * step);
        sent[n] * slope / (rate(bandwidth) * rate(bandwidth))
    };
    let at_price = |price: f64, n: usize| {
        let (mut low, mut high) = (least[n].0.max(1e-9 * band.0), band.0);
        if saving(n, low) <= price {
            return low;
        }
        for _ in 0..24 {
            let middle = (low * high).sqrt();
            if saving(n, middle) > price { low = middle } else { high = middle }
        }
        low
    };
    let each = 0..needs.len();
    let most = |n: usize| saving(n, least[n].0.max(1e-9 * band.0));
    let mut dear = each.clone().map(most).fold(0.0, f64::max);
    let mut cheap = each.map(|n| saving(n, band.0)).fold(f64::INFINITY, f64::min);
    for _ in 0..30 {
        if !(cheap > 0.0 && dear.is_finite()) {
            break; // nothing to send
        }
        let price = (cheap * dear).sqrt();
        let used: f64 = (0..needs.len()).map(|n| at_price(price, n)).sum();
        if used > band.0 { cheap = price } else { dear = price }
    }
    let mut split: Vec<f64> = (0..needs.len()).map(|n| at_price(dear, n)).collect();
    let used: f64 = split.iter().sum();
    split.iter_mut().for_each(|bandwidth| *bandwidth *= band.0 / used);
    split.into_iter().map(Hertz).collect()
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
