//! The law of learning: losses and success from the samples used.

use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::compress::Compressor;
use crate::rng::Seed;

/// Ranges of the hidden parameters, lowest and highest value. A run draws each parameter once from
/// its seed: uniformly, or log-uniformly where the field's comment states it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LawRanges {
    /// Loss before the first round, of each terminal; in logarithms.
    pub start_loss: [f64; 2],
    /// Share of that loss that no training removes, of each task.
    pub floor_share: [f64; 2],
    /// Effective samples after which the loss falls as a power of them, of each task; in logarithms.
    pub scale_samples: [f64; 2],
    /// That power.
    pub power: [f64; 2],
    /// Worth of a sample of another terminal with the same task, relative to an own one.
    pub kin: [f64; 2],
    /// Worth of a sample of a terminal with another task.
    pub other: [f64; 2],
    /// Passes over the same data after which a further pass is worth a third of the first; in
    /// logarithms.
    pub passes: [f64; 2],
    /// Samples of a step beyond which doubling them gains little; in logarithms.
    pub critical_batch: [f64; 2],
    /// Variance that compression to a tenth adds to a gradient, relative to the variance between
    /// samples.
    pub noise: [f64; 2],
    /// Loss of the mean of separately trained copies by each local step after the first.
    pub drift: [f64; 2],
    /// Remaining share of a front layer's step if its gradient is the mean of all terminals'.
    pub broadcast: [f64; 2],
    /// Success of the base policy, of each task.
    pub base_success: [f64; 2],
    /// Logits of success per unit by which the logarithm of the loss falls, of each task.
    pub slope: [f64; 2],
    /// Standard deviation of a terminal's logit of success around its task's.
    pub terminal_sd: f64,
    /// Standard deviation of the logarithm of a minibatch's loss.
    pub minibatch_sd: f64,
    /// Norm of the gradient of the whole model before the first round; in logarithms.
    pub gradient: [f64; 2],
}

/// Data of all terminals of the run, present or not; entry `n` belongs to the terminal with id `n`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Members {
    /// Index of the task of each.
    pub tasks: Vec<usize>,
    /// Samples in the data set of each.
    pub n_samples: Vec<usize>,
}

/// The law with its hidden parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Law {
    members: Members,
    compressor: Compressor,
    start_loss: Vec<f64>,
    floor: Vec<f64>,
    scale_samples: Vec<f64>,
    base_logit: Vec<f64>,
    slope: Vec<f64>,
    power: f64,
    kin: f64,
    other: f64,
    passes: f64,
    critical_batch: f64,
    noise: f64,
    drift: f64,
    broadcast: f64,
    gradient: f64,
    minibatch_sd: f64,
}

impl Law {
    /// Draws the hidden parameters.
    pub fn draw(ranges: &LawRanges, members: Members, compressor: Compressor, seed: Seed) -> Self {
        let once = |name: &str, range: [f64; 2]| uniform(seed.named(name), range);
        let logarithmic = |name: &str, range: [f64; 2]| log_uniform(seed.named(name), range);
        let tasks = members.tasks.clone();
        let each = |name: &str, of: &dyn Fn(Seed, usize) -> f64| -> Vec<f64> {
            let seed = seed.named(name);
            tasks.iter().enumerate().map(|(n, &task)| of(seed.at(n as u64), task)).collect()
        };
        // A parameter of a task is drawn from the task's own stream, the same for all its terminals.
        let of_task = |name: &str, range: [f64; 2], draw: fn(Seed, [f64; 2]) -> f64| -> Vec<f64> {
            let seed = seed.named(name);
            tasks.iter().map(|&task| draw(seed.at(task as u64), range)).collect()
        };
        let start_loss = each("start_loss", &|seed, _| log_uniform(seed, ranges.start_loss));
        let floor = of_task("floor_share", ranges.floor_share, uniform);
        let base = of_task("base_success", ranges.base_success, uniform);
        let deviation = each("terminal", &|seed, _| ranges.terminal_sd * normal(seed));
        Self {
            floor: floor.iter().zip(&start_loss).map(|(share, loss)| share * loss).collect(),
            start_loss,
            scale_samples: of_task("scale_samples", ranges.scale_samples, log_uniform),
            base_logit: base.iter().zip(deviation).map(|(p, own)| logit(*p) + own).collect(),
            slope: of_task("slope", ranges.slope, uniform),
            power: once("power", ranges.power),
            kin: once("kin", ranges.kin),
            other: once("other", ranges.other),
            passes: logarithmic("passes", ranges.passes),
            critical_batch: logarithmic("critical_batch", ranges.critical_batch),
            noise: once("noise", ranges.noise),
            drift: once("drift", ranges.drift),
            broadcast: once("broadcast", ranges.broadcast),
            gradient: logarithmic("gradient", ranges.gradient),
            minibatch_sd: ranges.minibatch_sd,
            members,
            compressor,
        }
    }

    /// Number of terminals of the run, present or not.
    pub fn n_terminals(&self) -> usize {
        self.members.tasks.len()
    }

    /// Index of the task of a terminal.
    pub fn task(&self, n: usize) -> usize {
        self.members.tasks[n]
    }

    /// Samples in the data set of a terminal.
    pub fn n_samples(&self, n: usize) -> usize {
        self.members.n_samples[n]
    }

    /// Worth of a sample that was compressed by `q`, relative to an uncompressed one: compression
    /// adds variance to the gradient, so more samples are needed for the same mean.
    pub fn worth(&self, q: f64) -> f64 {
        1.0 / (1.0 + self.noise * relative_noise(self.compressor, q))
    }

    /// Increase of the reported loss by compression.
    pub fn blur(&self, q: f64) -> f64 {
        1.0 / self.worth(q)
    }

    /// Remaining share of a front layer's step if its gradient is the mean of all terminals'.
    pub fn broadcast(&self) -> f64 {
        self.broadcast
    }

    /// Worth of a sample in the mean of copies that were trained separately, with `steps` steps
    /// each and `samples` samples of all copies together in a step. `spread` is 0 for a single copy
    /// and near 1 for many.
    ///
    /// A step with K samples counts as K / (1 + K / B): far below the critical batch B it grows
    /// with the samples, far above B it hardly does.
    pub fn merit(&self, samples: f64, steps: f64, spread: f64) -> f64 {
        let batch = 1.0 + samples / self.critical_batch;
        let drift = 1.0 + self.drift * (steps - 1.0).max(0.0) * spread;
        1.0 / (batch * drift)
    }

    /// Effective samples behind the loss of each terminal, from the used samples of each terminal.
    /// Own samples count fully, others less.
    pub fn effective(&self, used: &[f64]) -> Vec<f64> {
        let distinct: Vec<f64> =
            used.iter().enumerate().map(|(n, u)| self.distinct(n, *u)).collect();
        let n_tasks = self.members.tasks.iter().max().map_or(0, |task| task + 1);
        let mut of_task = vec![0.0; n_tasks];
        for (task, samples) in self.members.tasks.iter().zip(&distinct) {
            of_task[*task] += samples;
        }
        let all: f64 = of_task.iter().sum();
        let one = |(task, own): (&usize, &f64)| {
            let (kin, others) = (of_task[*task] - own, all - of_task[*task]);
            own + self.kin * kin.max(0.0) + self.other * others.max(0.0)
        };
        self.members.tasks.iter().zip(&distinct).map(one).collect()
    }

    /// Worth of `used` samples of a terminal if those beyond its data set are repetitions. The
    /// worth of a further pass falls exponentially.
    fn distinct(&self, n: usize, used: f64) -> f64 {
        let there = self.n_samples(n) as f64;
        let repeats = used / there - 1.0;
        if repeats <= 0.0 {
            return used;
        }
        there * (1.0 + self.passes * -(-repeats / self.passes).exp_m1())
    }

    /// Loss of a terminal after this number of effective samples: a power law down to a floor.
    pub fn loss(&self, n: usize, effective: f64) -> f64 {
        let fall = (1.0 + effective / self.scale_samples[n]).powf(-self.power);
        self.floor[n] + (self.start_loss[n] - self.floor[n]) * fall
    }

    /// Probability of success of a terminal at a loss: logistic in the logarithm of the loss.
    pub fn success(&self, n: usize, loss: f64) -> f64 {
        let fall = (self.start_loss[n] / loss).ln();
        1.0 / (1.0 + (-(self.base_logit[n] + self.slope[n] * fall)).exp())
    }

    /// Norm of the gradient of a share of the model's layers at a loss. Its square is proportional to
    /// the loss above the floor, as in a quadratic bowl.
    pub fn gradient_norm(&self, n: usize, loss: f64, share: f64) -> f64 {
        let above = (loss - self.floor[n]) / (self.start_loss[n] - self.floor[n]);
        self.gradient * (share * above.max(0.0)).sqrt()
    }

    /// Factor of a minibatch's loss, and of its gradient norm, around the mean over all samples.
    pub fn minibatch_factors(&self, seed: Seed) -> [f64; 2] {
        ["loss", "gradient"].map(|name| (self.minibatch_sd * normal(seed.named(name))).exp())
    }
}

/// Variance that compression adds to a message, in units of that of a tenth of the bits. Stochastic
/// rounding halves its step with every bit. For a sparse message, rescaled to be unbiased, the
/// variance is the omitted share over the sent share.
fn relative_noise(compressor: Compressor, q: f64) -> f64 {
    const BITS: f64 = 32.0;
    match compressor {
        Compressor::Quantize if q > 0.0 => (2.0 * BITS * (q - 0.9)).exp2(),
        Compressor::Quantize => 0.0,
        Compressor::TopK | Compressor::RandomTopK => q / (1.0 - q) / 9.0,
    }
}

fn uniform(seed: Seed, [low, high]: [f64; 2]) -> f64 {
    low + (high - low) * seed.rng().random::<f64>()
}

fn log_uniform(seed: Seed, [low, high]: [f64; 2]) -> f64 {
    low * (high / low).powf(seed.rng().random::<f64>())
}

fn normal(seed: Seed) -> f64 {
    StandardNormal.sample(&mut seed.rng())
}

fn logit(p: f64) -> f64 {
    (p / (1.0 - p)).ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::tests::PLAIN;

    /// Terminals 0 and 1 share a task, terminal 2 has another.
    fn law() -> Law {
        let members = Members { tasks: vec![0, 0, 1], n_samples: vec![1000, 1000, 100] };
        Law::draw(&PLAIN, members, Compressor::Quantize, Seed::new(1))
    }

    #[test]
    fn own_samples_count_more_than_those_of_the_same_task_and_these_more_than_others() {
        let law = law();
        assert_eq!(law.effective(&[100.0, 0.0, 0.0]), [100.0, 25.0, 1.0]);
        assert_eq!(law.effective(&[0.0, 0.0, 100.0]), [1.0, 1.0, 100.0]);
        assert_eq!(law.effective(&[100.0, 40.0, 100.0]), [111.0, 66.0, 101.4]);
    }

    #[test]
    fn repeats_of_the_same_data_are_worth_less_and_less() {
        let law = law();
        // Ten passes over 100 samples: nine repeats.
        let ten = 100.0 * (1.0 + 4.0 * (1.0 - (-9.0f64 / 4.0).exp()));
        assert!((law.distinct(2, 1000.0) - ten).abs() < 1e-9);
        assert_eq!(law.distinct(2, 100.0), 100.0);
        assert!((law.distinct(2, 1e9) - 500.0).abs() < 1e-9, "passes bound what data can give");
        let at = |used: f64| law.distinct(2, used);
        assert!((at(100.0 + 1e-6) - at(100.0) - 1e-6).abs() < 1e-12, "the first repeat is as good");
    }

    #[test]
    fn the_loss_falls_as_a_power_of_the_effective_samples_down_to_its_floor() {
        let law = law();
        assert_eq!(law.loss(0, 0.0), 0.1);
        assert!((law.loss(0, 1000.0) - (0.01 + 0.09 / 2.0)).abs() < 1e-15);
        assert!((law.loss(0, 9000.0) - (0.01 + 0.09 / 10.0)).abs() < 1e-15);
        assert!((law.loss(0, 1e15) - 0.01).abs() < 1e-9);
        let losses: Vec<f64> = (0..200).map(|k| law.loss(0, f64::from(k).powi(3))).collect();
        assert!(losses.windows(2).all(|pair| pair[1] < pair[0]));
    }

    #[test]
    fn success_is_that_of_the_base_policy_at_first_and_logistic_in_the_log_loss() {
        let law = law();
        assert!((law.success(0, 0.1) - 0.25).abs() < 1e-12);
        // The loss falls by e: the logit rises by the slope.
        let logit = (1.0f64 / 3.0).ln() + 2.0;
        let expected = 1.0 / (1.0 + (-logit).exp());
        assert!((law.success(0, 0.1 / 1f64.exp()) - expected).abs() < 1e-12);
        assert!(law.success(0, law.loss(0, 1e12)) < 1.0);
    }

    #[test]
    fn a_step_counts_every_sample_of_a_small_batch_and_only_itself_for_a_large_one() {
        let law = law();
        let step = |samples: f64| samples * law.merit(samples, 1.0, 0.0);
        assert!((step(1e-3) / 1e-3 - 1.0).abs() < 1e-5);
        assert!((step(1e12) - 256.0).abs() < 1e-6);
        assert!((step(256.0) - 128.0).abs() < 1e-12);
        let steps: Vec<f64> = (1..100).map(|k| step(f64::from(k) * 20.0)).collect();
        assert!(steps.windows(2).all(|pair| pair[1] > pair[0]));
    }

    #[test]
    fn copies_that_were_trained_apart_lose_and_a_single_copy_does_not() {
        let law = law();
        assert_eq!(law.merit(64.0, 10.0, 0.0), law.merit(64.0, 1.0, 0.0));
        assert_eq!(law.merit(64.0, 1.0, 0.9), law.merit(64.0, 1.0, 0.0));
        let ratio = law.merit(64.0, 11.0, 0.5) / law.merit(64.0, 1.0, 0.5);
        assert!((ratio - 1.0 / 1.5).abs() < 1e-12);
    }

    #[test]
    fn compression_makes_samples_worth_less_and_none_leaves_them_as_they_are() {
        let law = law();
        assert_eq!(law.worth(0.0), 1.0);
        assert!((law.worth(0.9) - 1.0 / 1.5).abs() < 1e-12);
        let worths: Vec<f64> = (0..=99).map(|k| law.worth(f64::from(k) / 100.0)).collect();
        assert!(worths.windows(2).all(|pair| pair[1] <= pair[0]));
        assert_eq!(law.blur(0.9) * law.worth(0.9), 1.0);
        assert!((relative_noise(Compressor::TopK, 0.9) - 1.0).abs() < 1e-12);
        assert_eq!(relative_noise(Compressor::TopK, 0.0), 0.0);
    }

    #[test]
    fn the_squared_gradient_is_proportional_to_the_loss_above_the_floor() {
        let law = law();
        assert!((law.gradient_norm(0, 0.1, 1.0) - 1.0).abs() < 1e-12);
        assert!((law.gradient_norm(0, 0.01 + 0.09 / 4.0, 1.0) - 0.5).abs() < 1e-12);
        assert!((law.gradient_norm(0, 0.1, 0.25) - 0.5).abs() < 1e-12);
        assert_eq!(law.gradient_norm(0, 0.01, 1.0), 0.0);
    }

    #[test]
    fn hidden_parameters_stay_in_their_ranges_and_depend_on_the_seed() {
        let ranges = LawRanges {
            start_loss: [0.05, 0.2],
            floor_share: [0.02, 0.2],
            base_success: [0.2, 0.5],
            slope: [1.0, 3.0],
            power: [0.4, 0.9],
            ..PLAIN
        };
        let draw = |seed: u64| {
            let members =
                Members { tasks: (0..60).map(|n| n % 6).collect(), n_samples: vec![9; 60] };
            Law::draw(&ranges, members, Compressor::Quantize, Seed::new(seed))
        };
        let law = draw(3);
        assert_eq!(law, draw(3));
        assert_ne!(law, draw(4));
        for n in 0..60 {
            assert!((0.05..=0.2).contains(&law.start_loss[n]));
            assert!((0.02..=0.2).contains(&(law.floor[n] / law.start_loss[n])));
            let base = law.success(n, law.start_loss[n]);
            assert!((0.2 - 1e-9..=0.5 + 1e-9).contains(&base));
            assert_eq!(
                law.slope[n],
                law.slope[n % 6],
                "a task's parameter is the same for all its terminals"
            );
        }
        assert!((0.4..=0.9).contains(&law.power));
        assert!(
            law.start_loss.iter().any(|loss| *loss < 0.08)
                && law.start_loss.iter().any(|loss| *loss > 0.13)
        );
    }
}
