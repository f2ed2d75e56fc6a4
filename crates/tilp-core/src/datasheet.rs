//! Data sheets of terminals, drawn for a scenario: nominal hardware and memory budgets.

use rand::RngExt;
use rand::seq::SliceRandom;

use crate::cost::{Hardware, Profile};
use crate::rng::Seed;
use crate::units::{Bytes, Hertz};

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

/// Memory budgets: the given share of the terminals cannot hold the deepest cut; the others have
/// `ample` times the requirement. Every terminal can hold the shallowest cut.
pub fn draw_memory(
    n_terminals: usize,
    short: f64,
    ample: f64,
    profile: &Profile,
    cuts: &[usize],
    seed: Seed,
) -> Vec<Bytes> {
    let least = profile.memory(cuts[0]).0 as f64;
    let deepest = profile.memory(cuts[cuts.len() - 1]).0 as f64;
    let n_short = (short * n_terminals as f64).round() as usize;
    let mut order: Vec<usize> = (0..n_terminals).collect();
    order.shuffle(&mut seed.named("memory").rng());
    let mut budgets = vec![Bytes((ample * deepest) as u64); n_terminals];
    for &n in &order[..n_short] {
        let share: f64 = seed.named("memory").at(n as u64).rng().random();
        budgets[n] = Bytes((least + share * 0.999 * (deepest - least)) as u64);
    }
    budgets
}
