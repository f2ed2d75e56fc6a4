//! The hidden truth about the terminals, drawn around nominal values.

use rand::RngExt;
use rand::seq::SliceRandom;

use crate::cost::{Hardware, Profile};
use crate::rng::Seed;
use crate::units::{Bytes, Hertz, from_db};

/// How hardware is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HardwareRange {
    /// Processor frequency, the same for all.
    pub clock: Hertz,
    /// Nominal operations per cycle, lowest and highest.
    pub operations_per_cycle: [f64; 2],
    /// Nominal energy coefficient, lowest and highest.
    pub energy_coefficient: [f64; 2],
    /// True values differ from nominal ones by up to this share.
    pub hidden_share: f64,
    /// Noise power spectral density with the nominal noise figure, W/Hz.
    pub noise_w_per_hz: f64,
    /// The true noise figure differs from the nominal one by up to this many dB.
    pub hidden_noise_figure_db: f64,
}

/// Nominal hardware of every terminal: what a data sheet says.
pub fn draw_nominal(n_terminals: usize, range: &HardwareRange, seed: Seed) -> Vec<Hardware> {
    let one = |n: usize| {
        let mut rng = seed.named("nominal").at(n as u64).rng();
        let mut log_uniform = |[low, high]: [f64; 2]| low * (high / low).powf(rng.random::<f64>());
        Hardware {
            operations_per_cycle: log_uniform(range.operations_per_cycle),
            clock: range.clock,
            energy_coefficient: log_uniform(range.energy_coefficient),
            noise_w_per_hz: range.noise_w_per_hz,
        }
    };
    (0..n_terminals).map(one).collect()
}

/// True hardware: nominal values times hidden factors, log-uniform between `1 / (1 + h)` and
/// `1 + h`.
pub fn draw_truth(nominal: &[Hardware], range: &HardwareRange, seed: Seed) -> Vec<Hardware> {
    let one = |(n, nominal): (usize, &Hardware)| {
        let mut rng = seed.named("truth").at(n as u64).rng();
        let mut symmetric = || 2.0 * rng.random::<f64>() - 1.0;
        let mut factor = || (1.0 + range.hidden_share).powf(symmetric());
        let (speed, hunger) = (factor(), factor());
        Hardware {
            operations_per_cycle: nominal.operations_per_cycle * speed,
            energy_coefficient: nominal.energy_coefficient * hunger,
            noise_w_per_hz: nominal.noise_w_per_hz
                * from_db(range.hidden_noise_figure_db * symmetric()),
            ..*nominal
        }
    };
    nominal.iter().enumerate().map(one).collect()
}

/// Memory budgets: the given share of the terminals cannot hold the deepest cut, the others can
/// (D17). Everybody can hold the shallowest.
pub fn draw_memory(
    n_terminals: usize,
    short: f64,
    profile: &Profile,
    cuts: &[usize],
    seed: Seed,
) -> Vec<Bytes> {
    let least = profile.memory(cuts[0]).0 as f64;
    let deepest = profile.memory(cuts[cuts.len() - 1]).0 as f64;
    let n_short = (short * n_terminals as f64).round() as usize;
    let mut order: Vec<usize> = (0..n_terminals).collect();
    order.shuffle(&mut seed.named("memory").rng());
    let mut budgets = vec![Bytes((1.5 * deepest) as u64); n_terminals];
    for &n in &order[..n_short] {
        let share: f64 = seed.named("memory").at(n as u64).rng().random();
        budgets[n] = Bytes((least + share * 0.999 * (deepest - least)) as u64);
    }
    budgets
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANGE: HardwareRange = HardwareRange {
        clock: Hertz(1.5e9),
        operations_per_cycle: [0.1, 1.0],
        energy_coefficient: [1e-28, 2e-28],
        hidden_share: 0.3,
        noise_w_per_hz: 4e-21,
        hidden_noise_figure_db: 1.5,
    };

    #[test]
    fn the_truth_stays_within_the_hidden_share_of_the_data_sheet() {
        let nominal = draw_nominal(300, &RANGE, Seed::new(1));
        let truth = draw_truth(&nominal, &RANGE, Seed::new(1));
        let ratios = |pick: fn(&Hardware) -> f64| -> Vec<f64> {
            truth.iter().zip(&nominal).map(|(t, n)| pick(t) / pick(n)).collect()
        };
        for ratio in ratios(|hardware| hardware.operations_per_cycle) {
            assert!((1.0 / 1.3 - 1e-9..=1.3 + 1e-9).contains(&ratio));
        }
        let noise = ratios(|hardware| hardware.noise_w_per_hz);
        assert!(noise.iter().all(|ratio| (from_db(-1.5)..=from_db(1.5)).contains(ratio)));
        assert!(noise.iter().any(|ratio| *ratio > 1.1) && noise.iter().any(|ratio| *ratio < 0.9));
    }

    #[test]
    fn without_hidden_factors_the_truth_is_the_data_sheet() {
        let mirror = HardwareRange { hidden_share: 0.0, hidden_noise_figure_db: 0.0, ..RANGE };
        let nominal = draw_nominal(20, &mirror, Seed::new(2));
        assert_eq!(draw_truth(&nominal, &mirror, Seed::new(2)), nominal);
    }
}
