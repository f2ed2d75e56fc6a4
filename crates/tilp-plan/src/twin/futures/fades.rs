//! Fades of the rounds to come, drawn instead of averaged.

use rand_distr::{Distribution, StandardNormal};

use super::RolloutTables;
use crate::rng::Seed;
use crate::twin::{Twin, TwinState};
use crate::wireless::{Complex, RateModel, autoregressive_step};

impl RolloutTables {
    /// Replaces the mean fades after the first round by one drawn sequence, the same for all
    /// candidates. A plan on mean fades postpones terminals in a fade, because it assumes that the
    /// next round is better. Fades that were received stay as they are.
    pub fn draw_fades(&mut self, twin: &Twin, state: &TwinState, seed: Seed) {
        let nominal = twin.nominal();
        if nominal.cost.rate_model == RateModel::Averaged || state.foresight.is_some() {
            return;
        }
        let (n_terminals, n_steps) = (self.n_terminals(), self.n_steps());
        for n in 0..n_terminals {
            let mut rng = seed.at(n as u64).rng();
            let mut part = || {
                let normal: f64 = StandardNormal.sample(&mut rng);
                normal * std::f64::consts::FRAC_1_SQRT_2
            };
            let noise = twin.network.hardware(n).noise_w_per_hz;
            // Only its power is known; the phase of a circular process does not matter.
            let mut fading = Complex { re: state.fading(n).mean().max(0.0).sqrt(), im: 0.0 };
            for step in 1..n_steps {
                let fresh = Complex { re: part(), im: part() };
                fading = autoregressive_step(fading, nominal.rho, fresh);
                self.snr[step * n_terminals + n] = (state.gain[n] * fading.power() / noise) as f32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::twin::TwinOptions;
    use crate::twin::tests::fake::{DEFAULT, Fake};

    #[test]
    fn drawn_fades_begin_with_the_observed_one_and_have_the_mean_of_the_process() {
        let fake = Fake::new(12, DEFAULT, 31);
        let twin = fake.twin(TwinOptions::default());
        let state = twin.state(&fake.observe());
        let mean = RolloutTables::new(&twin, &state, 4, true);
        let mut sums = [0.0; 12];
        for seed in 0..2000 {
            let mut drawn = mean.clone();
            drawn.draw_fades(&twin, &state, Seed::new(seed));
            for (n, sum) in sums.iter_mut().enumerate() {
                assert_eq!(drawn.signal(0, n), mean.signal(0, n));
                *sum += drawn.signal(3, n) / 2000.0;
            }
        }
        for (n, sum) in sums.iter().enumerate() {
            assert!((sum / mean.signal(3, n) - 1.0).abs() < 0.15, "terminal {n}: {sum}");
        }
    }
}
