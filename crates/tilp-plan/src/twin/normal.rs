//! The normal law: distribution function and quantile.

use std::f64::consts::FRAC_1_SQRT_2;

/// P(Z <= z) of a standard normal Z.
pub fn probability(z: f64) -> f64 {
    0.5 * libm::erfc(-z * FRAC_1_SQRT_2)
}

/// The z with P(Z <= z) = `share`, by bisection; `share` strictly between 0 and 1.
pub fn quantile(share: f64) -> f64 {
    if share > 0.5 {
        // The upper tail is computed from the lower one, where the function has more digits.
        return -quantile(1.0 - share);
    }
    let (mut low, mut high) = (-38.0, 0.0);
    for _ in 0..90 {
        let middle = 0.5 * (low + high);
        if probability(middle) < share { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// Half width, in standard deviations, of a 90 % interval.
pub(super) const Z_90: f64 = 1.644_853_626_951_472_7;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quantile_is_the_inverse_of_the_distribution_function() {
        for share in [1e-9, 1e-4, 0.05, 0.3, 0.5, 0.9, 0.999, 1.0 - 1e-7] {
            assert!((probability(quantile(share)) / share - 1.0).abs() < 1e-9, "{share}");
        }
        assert!((quantile(0.95) - Z_90).abs() < 1e-12);
    }
}
