//! Fading ahead: what the observed fading power says about a later round.
//!
//! The complex process is auto-regressive of first order, so k rounds ahead
//! $H = \rho^k h + \sqrt{1-\rho^{2k}}\,w$ with $w \sim CN(0, 1)$. Only $|h|^2$ is observed; the phase
//! does not matter for the law of $|H|^2$, which is a noncentral chi-square law of two degrees of
//! freedom, scaled.

/// The law of a fading power some rounds ahead.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FadingAhead {
    /// What is left of the observed power, rho^{2k} |h|^2.
    pub known: f64,
    /// Mean power of the part that is new, 1 - rho^{2k}.
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

    /// P(|H|^2 <= power).
    pub fn probability(self, power: f64) -> f64 {
        if power <= 0.0 {
            return 0.0;
        }
        if self.fresh <= 0.0 {
            return if power >= self.known { 1.0 } else { 0.0 };
        }
        let (ratio, reach) = (self.known / self.fresh, power / self.fresh);
        if ratio > 300.0 {
            // Nearly no surprise left: the amplitude is close to normal.
            let sd = (0.5 * self.fresh).sqrt();
            return super::normal::probability((power.sqrt() - self.known.sqrt()) / sd);
        }
        // A Poisson mixture of gamma laws.
        let last = (ratio + 12.0 * ratio.sqrt() + 40.0) as u32;
        let (mut weight, mut term) = ((-ratio).exp(), (-reach).exp());
        let (mut above, mut sum) = (term, 0.0);
        for j in 1..=last {
            sum += weight * above;
            weight *= ratio / f64::from(j);
            term *= reach / f64::from(j);
            above += term;
        }
        (1.0 - sum).clamp(0.0, 1.0)
    }

    /// The power that is not reached with probability `share`.
    pub fn quantile(self, share: f64) -> f64 {
        if self.fresh <= 0.0 {
            return self.known;
        }
        let (mut low, mut high) = (0.0, self.mean());
        while self.probability(high) < share {
            high *= 2.0;
        }
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if self.probability(middle) < share { low = middle } else { high = middle }
        }
        0.5 * (low + high)
    }

    /// Closed form of the quantile at the normal quantile `z`: the cube root of the power is
    /// nearly normal. Right within three hundredths of probability for shares from 0.05 to 0.95; beyond
    /// use [`FadingAhead::quantile`].
    pub fn rough_quantile(self, z: f64) -> f64 {
        if self.fresh <= 0.0 {
            return self.known;
        }
        let ratio = self.known / self.fresh;
        let spread = (1.0 + 2.0 * ratio) / (9.0 * (1.0 + ratio) * (1.0 + ratio));
        let root = (1.0 - spread + z * spread.sqrt()).max(0.0);
        self.mean() * root * root * root
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seed;
    use crate::twin::normal;
    use crate::wireless::{Complex, autoregressive_step};
    use rand_distr::{Distribution, StandardNormal};

    /// Powers `rounds` after |h|^2 = power, drawn step by step.
    fn drawn(power: f64, rho: f64, rounds: u32, n: usize) -> Vec<f64> {
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
        let mut powers: Vec<f64> = (0..n).map(|_| walk()).collect();
        powers.sort_by(f64::total_cmp);
        powers
    }

    #[test]
    fn mean_and_law_ahead_are_those_of_the_process() {
        let n = 20_000;
        for (power, rounds) in [(0.02, 1), (0.3, 4), (2.5, 1), (4.0, 16)] {
            let law = FadingAhead::after(power, 0.9, rounds);
            let powers = drawn(power, 0.9, rounds, n);
            let mean = powers.iter().sum::<f64>() / n as f64;
            assert!((mean / law.mean() - 1.0).abs() < 0.03, "{mean} {law:?}");
            for share in [0.01, 0.1, 0.5, 0.9] {
                let below = powers.partition_point(|p| *p <= law.quantile(share)) as f64;
                let error = 5.0 * (share * (1.0 - share) / n as f64).sqrt();
                assert!((below / n as f64 - share).abs() < error, "{law:?} {share}");
            }
        }
    }

    #[test]
    fn the_closed_form_is_right_within_three_hundredths_of_probability() {
        for power in [0.0, 0.01, 0.2, 1.0, 3.0, 8.0] {
            for rounds in [1, 2, 5, 15] {
                let law = FadingAhead::after(power, 0.9, rounds);
                for share in [0.05, 0.1, 0.25, 0.5, 0.75, 0.95] {
                    let rough = law.rough_quantile(normal::quantile(share));
                    let off = law.probability(rough) - share;
                    assert!(off.abs() < 0.03, "{law:?} {share} {off}");
                }
            }
        }
    }

    #[test]
    fn the_round_at_hand_holds_no_surprise() {
        let law = FadingAhead::after(0.7, 0.9, 0);
        assert_eq!((law.mean(), law.quantile(0.01), law.rough_quantile(-2.0)), (0.7, 0.7, 0.7));
    }
}
