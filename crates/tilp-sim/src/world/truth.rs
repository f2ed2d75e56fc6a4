//! The hidden truth about the terminals, drawn around their data sheets.

use rand::RngExt;

use crate::cost::Hardware;
use crate::datasheet::HardwareRange;
use crate::rng::Seed;
use crate::units::from_db;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datasheet::draw_nominal;
    use crate::units::Hertz;

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
