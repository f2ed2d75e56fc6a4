//! Fading of later rounds, given the observed fading power.
//!
//! The complex process is auto-regressive of first order, so k rounds ahead
//! $H = \rho^k h + \sqrt{1-\rho^{2k}}\,w$ with $w \sim CN(0, 1)$. Only $|h|^2$ is observed, which
//! suffices for the mean of $|H|^2$.

/// The law of a fading power some rounds ahead.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FadingAhead {
    /// Remaining part of the observed power, rho^{2k} |h|^2.
    pub known: f64,
    /// Mean power of the new part, 1 - rho^{2k}.
    pub fresh: f64,
}

impl FadingAhead {
    /// The law `rounds` after the power was observed.
    pub fn after(power: f64, rho: f64, rounds: u32) -> Self {
        let kept = (rho * rho).powi(rounds as i32);
        Self { known: kept * power, fresh: 1.0 - kept }
    }

    /// E|H|^2.
    pub fn mean(self) -> f64 {
        self.known + self.fresh
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seed;
    use crate::wireless::{Complex, autoregressive_step};
    use rand_distr::{Distribution, StandardNormal};

    /// Mean of powers `rounds` after |h|^2 = power, drawn step by step.
    fn drawn_mean(power: f64, rho: f64, rounds: u32, n: usize) -> f64 {
        let mut rng = Seed::new(5).stream("fading");
        let mut part = || {
            let normal: f64 = StandardNormal.sample(&mut rng);
            normal * std::f64::consts::FRAC_1_SQRT_2
        };
        let mut walk = || {
            let start = Complex { re: power.sqrt(), im: 0.0 };
            let step = |h, _| autoregressive_step(h, rho, Complex { re: part(), im: part() });
            (0..rounds).fold(start, step).power()
        };
        (0..n).map(|_| walk()).sum::<f64>() / n as f64
    }

    #[test]
    fn the_mean_ahead_is_that_of_the_process() {
        for (power, rounds) in [(0.02, 1), (0.3, 4), (2.5, 1), (4.0, 16)] {
            let law = FadingAhead::after(power, 0.9, rounds);
            let mean = drawn_mean(power, 0.9, rounds, 20_000);
            assert!((mean / law.mean() - 1.0).abs() < 0.03, "{mean} {law:?}");
        }
    }

    #[test]
    fn the_round_at_hand_holds_no_surprise() {
        assert_eq!(FadingAhead::after(0.7, 0.9, 0).mean(), 0.7);
    }
}
