//! Small-scale fading: a complex first-order auto-regressive process per link.

use rand_distr::{Distribution, StandardNormal};

use crate::rng::Seed;

/// A complex number, real part first.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Complex {
    /// Real part.
    pub re: f64,
    /// Imaginary part.
    pub im: f64,
}

impl Complex {
    /// |z|^2.
    pub fn power(self) -> f64 {
        self.re * self.re + self.im * self.im
    }
}

/// Correlation of the fading between rounds `interval_s` apart, rho_H = J0(2 pi f_D dt).
pub fn correlation(doppler_hz: f64, interval_s: f64) -> f64 {
    libm::j0(std::f64::consts::TAU * doppler_hz * interval_s)
}

/// One step of the process: stays CN(0, 1) if it was, with correlation `rho` to the step before.
pub fn autoregressive_step(value: Complex, rho: f64, innovation: Complex) -> Complex {
    let fresh = (1.0 - rho * rho).sqrt();
    Complex {
        re: rho * value.re + fresh * innovation.re,
        im: rho * value.im + fresh * innovation.im,
    }
}

/// The fading of all links of a cell. Draws depend on seed, link and round only.
#[derive(Clone, Debug, PartialEq)]
pub struct Fading {
    seed: Seed,
    rho: f64,
    round: u64,
    values: Vec<Complex>,
}

impl Fading {
    /// The process at round 1.
    pub fn new(n_links: usize, rho: f64, seed: Seed) -> Self {
        let values = (0..n_links).map(|link| draw(seed, link, 1)).collect();
        Self { seed, rho, round: 1, values }
    }

    /// The same process later: at this round, with these values.
    pub fn at(&self, round: u64, values: Vec<Complex>) -> Self {
        Self { round, values, ..self.clone() }
    }

    /// H_n of every link in the current round.
    pub fn values(&self) -> &[Complex] {
        &self.values
    }

    /// Moves to the next round.
    pub fn advance(&mut self) {
        self.round += 1;
        for (link, value) in self.values.iter_mut().enumerate() {
            *value = autoregressive_step(*value, self.rho, draw(self.seed, link, self.round));
        }
    }
}

/// One draw of CN(0, 1).
fn draw(seed: Seed, link: usize, round: u64) -> Complex {
    let mut rng = seed.at(link as u64).at(round).rng();
    let mut part = || {
        let normal: f64 = StandardNormal.sample(&mut rng);
        normal * std::f64::consts::FRAC_1_SQRT_2
    };
    Complex { re: part(), im: part() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_correlation_is_one_at_rest_and_zero_at_the_first_zero_of_j0() {
        assert_eq!(correlation(0.0, 5.0), 1.0);
        let first_zero = 2.404_825_557_695_773;
        assert!(correlation(first_zero / std::f64::consts::TAU, 1.0).abs() < 1e-12);
    }

    #[test]
    fn fading_has_unit_mean_power_and_the_asked_correlation() {
        let (n, rho) = (20_000, 0.9);
        let mut fading = Fading::new(n, rho, Seed::new(2));
        for _ in 0..5 {
            fading.advance();
        }
        let before = fading.values().to_vec();
        fading.advance();
        let power: f64 = before.iter().map(|h| h.power()).sum::<f64>() / n as f64;
        let pairs = before.iter().zip(fading.values());
        let product: f64 = pairs.map(|(a, b)| a.re * b.re + a.im * b.im).sum::<f64>() / n as f64;
        let bound = 5.0 / (n as f64).sqrt();
        assert!((power - 1.0).abs() < bound);
        assert!((product - rho).abs() < bound);
    }

    #[test]
    fn a_link_fades_alike_whoever_else_is_in_the_cell() {
        let (mut few, mut many) =
            (Fading::new(2, 0.9, Seed::new(4)), Fading::new(9, 0.9, Seed::new(4)));
        few.advance();
        many.advance();
        assert_eq!(few.values()[..], many.values()[..2]);
    }
}
