//! Rate of a link.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{BitsPerSecond, Gain, Hertz, Watts};

/// How fading enters the rate of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RateModel {
    /// Fading is held during a round.
    Held,
    /// The rate is the average over Rayleigh fading within the round.
    Averaged,
}

/// Achievable rate of one link.
///
/// $$ R_n = b_n \log_2\left(1 + \frac{G_n |H_n|^2 p_n}{N_0 b_n}\right) $$
///
/// With [`RateModel::Averaged`] the expectation of this over |H|^2 ~ Exp(1).
///
/// Eq. `sys-R`
pub fn rate(
    model: RateModel,
    bandwidth: Hertz,
    power: Watts,
    gain: Gain,
    fading_power: f64,
    noise_w_per_hz: f64,
) -> BitsPerSecond {
    if bandwidth.0 <= 0.0 {
        return BitsPerSecond(0.0); // limit for b -> 0, avoids 0/0
    }
    let mean_snr = gain.0 * power.0 / (noise_w_per_hz * bandwidth.0);
    let efficiency = match model {
        RateModel::Held => (mean_snr * fading_power).ln_1p() / std::f64::consts::LN_2,
        RateModel::Averaged => ergodic_efficiency(mean_snr),
    };
    BitsPerSecond(bandwidth.0 * efficiency)
}

/// E[log2(1 + snr X)] for X ~ Exp(1), which is exp(1/snr) E1(1/snr) / ln 2.
pub fn ergodic_efficiency(mean_snr: f64) -> f64 {
    if mean_snr <= 0.0 {
        return 0.0;
    }
    scaled_exponential_integral(1.0 / mean_snr) / std::f64::consts::LN_2
}

/// exp(x) E1(x): power series for small x, continued fraction (Lentz) beyond.
fn scaled_exponential_integral(x: f64) -> f64 {
    const EULER: f64 = 0.577_215_664_901_532_9;
    if x < 1.0 {
        let (mut sum, mut term) = (-EULER - x.ln(), 1.0);
        for k in 1..60 {
            let k = f64::from(k);
            term *= -x / k;
            sum -= term / k;
        }
        return sum * x.exp();
    }
    let (mut b, mut c) = (x + 1.0, f64::MAX);
    let mut d = 1.0 / b;
    let mut value = d;
    for k in 1..200 {
        let a = -f64::from(k * k);
        b += 2.0;
        d = 1.0 / (a * d + b);
        c = b + a / c;
        let factor = c * d;
        value *= factor;
        if (factor - 1.0).abs() < 1e-15 {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOISE: f64 = 4e-21;

    fn held(bandwidth: f64, power: f64) -> f64 {
        rate(RateModel::Held, Hertz(bandwidth), Watts(power), Gain(1e-12), 1.0, NOISE).0
    }

    #[test]
    fn eq_sys_r_equals_a_hand_calculation() {
        // snr = 1e-12 * 0.2 / (4e-21 * 1e6) = 50; 1 MHz * log2(51).
        assert!((held(1e6, 0.2) - 1e6 * 51f64.log2()).abs() < 1e-3);
    }

    #[test]
    fn eq_sys_r_grows_with_bandwidth_up_to_the_power_limit() {
        let limit = 1e-12 * 0.2 / (NOISE * std::f64::consts::LN_2);
        let rates: Vec<f64> = (0..12).map(|k| held(10f64.powi(k), 0.2)).collect();
        assert!(rates.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(rates[11] < limit && rates[11] > 0.999 * limit);
        assert_eq!(held(0.0, 0.2), 0.0);
        assert_eq!(held(1e6, 0.0), 0.0);
    }

    #[test]
    fn eq_sys_r_averaged_equals_numerical_integration() {
        for snr in [0.01, 0.3, 0.99, 1.01, 10.0, 1e4] {
            // Midpoint rule over x = -ln(u), which turns Exp(1) into a uniform u.
            let n = 400_000;
            let mean: f64 = (0..n)
                .map(|i| (1.0 - ((f64::from(i) + 0.5) / f64::from(n)).ln() * snr).log2())
                .sum::<f64>()
                / f64::from(n);
            assert!((ergodic_efficiency(snr) / mean - 1.0).abs() < 2e-4, "snr {snr}");
        }
    }
}
