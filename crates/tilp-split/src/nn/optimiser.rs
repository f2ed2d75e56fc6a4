//! Update rules on flat slices.

use super::lanes::vectorised;

vectorised! {
    /// One step of gradient descent: `w -= rate * g`.
    pub fn descend(parameters: &mut [f32], gradient: &[f32], rate: f32) {
        for (value, slope) in parameters.iter_mut().zip(gradient) {
            *value -= rate * slope;
        }
    }
}

/// One step with momentum: `v = momentum * v + g`, then `w -= rate * v`.
///
/// An empty velocity counts as zero and is allocated at the first step.
pub fn descend_with_momentum(
    parameters: &mut [f32],
    gradient: &[f32],
    velocity: &mut Vec<f32>,
    rate: f32,
    momentum: f32,
) {
    if velocity.is_empty() {
        velocity.resize(parameters.len(), 0.0);
    }
    descend_by_velocity(parameters, gradient, velocity, rate, momentum);
}

vectorised! {
    fn descend_by_velocity(
        parameters: &mut [f32],
        gradient: &[f32],
        velocity: &mut [f32],
        rate: f32,
        momentum: f32,
    ) {
        for ((value, slope), speed) in parameters.iter_mut().zip(gradient).zip(velocity) {
            *speed = momentum * *speed + slope;
            *value -= rate * *speed;
        }
    }
}

vectorised! {
    /// Multiplies all values by a factor.
    pub fn scale(values: &mut [f32], factor: f32) {
        for value in values {
            *value *= factor;
        }
    }
}

/// Adam with decoupled weight decay, as `torch.optim.AdamW` computes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamW {
    /// Decay of the mean of the gradients.
    pub beta1: f64,
    /// Decay of the mean of their squares.
    pub beta2: f64,
    /// Added to the root of that mean.
    pub epsilon: f64,
    /// A step first shrinks every parameter by this share of the learning rate.
    pub weight_decay: f64,
}

/// State of AdamW for one flat vector of parameters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moments {
    /// Running mean of the gradients; empty before the first step.
    pub mean: Vec<f32>,
    /// Running mean of their squares.
    pub square: Vec<f32>,
    /// Steps so far.
    pub steps: u64,
}

impl Moments {
    /// The state before the first step, with its memory.
    pub fn zeros(n_parameters: usize) -> Self {
        Self { mean: vec![0.0; n_parameters], square: vec![0.0; n_parameters], steps: 0 }
    }
}

impl AdamW {
    /// Plain Adam: the usual decays, no weight decay.
    pub const ADAM: Self = Self { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.0 };

    /// One step. Both means are corrected for their start at zero.
    pub fn step(self, parameters: &mut [f32], gradient: &[f32], moments: &mut Moments, rate: f32) {
        let Self { beta1, beta2, epsilon, weight_decay } = self;
        let Moments { mean, square, steps } = moments;
        if mean.is_empty() {
            mean.resize(parameters.len(), 0.0);
            square.resize(parameters.len(), 0.0);
        }
        *steps += 1;
        let missing = |beta: f64| 1.0 - libm::pow(beta, *steps as f64);
        let rate = f64::from(rate);
        let factors = Factors {
            shrink: (1.0 - rate * weight_decay) as f32,
            fresh_mean: (1.0 - beta1) as f32,
            old_square: beta2 as f32,
            fresh_square: (1.0 - beta2) as f32,
            root: missing(beta2).sqrt() as f32,
            epsilon: epsilon as f32,
            rate: (rate / missing(beta1)) as f32,
        };
        adamw_step(parameters, gradient, mean, square, factors);
    }
}

/// The numbers of one step of AdamW, the same for all parameters.
#[derive(Clone, Copy)]
struct Factors {
    shrink: f32,
    fresh_mean: f32,
    old_square: f32,
    fresh_square: f32,
    root: f32,
    epsilon: f32,
    rate: f32,
}

vectorised! {
    fn adamw_step(
        parameters: &mut [f32],
        gradient: &[f32],
        mean: &mut [f32],
        square: &mut [f32],
        factors: Factors,
    ) {
        let f = factors;
        let state = mean.iter_mut().zip(square);
        for ((value, slope), (mean, square)) in parameters.iter_mut().zip(gradient).zip(state) {
            *mean += f.fresh_mean * (slope - *mean);
            *square = f.old_square * *square + f.fresh_square * slope * slope;
            let step = *mean / (square.sqrt() / f.root + f.epsilon);
            *value = f.shrink * *value - f.rate * step;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn momentum_adds_up_past_gradients() {
        let (mut value, mut velocity) = (vec![1.0], vec![]);
        descend_with_momentum(&mut value, &[1.0], &mut velocity, 0.1, 0.5);
        descend_with_momentum(&mut value, &[1.0], &mut velocity, 0.1, 0.5);
        assert!((value[0] - (1.0 - 0.1 - 0.15)).abs() < 1e-6);
    }

    #[test]
    fn momentum_zero_is_plain_descent() {
        let (mut plain, mut heavy, mut velocity) = (vec![0.3, -0.7], vec![0.3, -0.7], vec![]);
        for step in 0..5 {
            let gradient = [0.1 * step as f32, -0.3];
            descend(&mut plain, &gradient, 0.05);
            descend_with_momentum(&mut heavy, &gradient, &mut velocity, 0.05, 0.0);
        }
        assert_eq!(plain, heavy);
    }

    #[test]
    fn the_first_step_of_adamw_shrinks_by_the_decay_and_moves_by_the_rate_against_the_sign() {
        let rule = AdamW { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.1 };
        let (mut value, mut moments) = (vec![2.0, -4.0, 1.0], Moments::default());
        rule.step(&mut value, &[5.0, -0.001, 0.0], &mut moments, 0.01);
        let expected = [2.0 * 0.999 - 0.01, -4.0 * 0.999 + 0.01, 0.999];
        for (value, expected) in value.iter().zip(expected) {
            assert!((value - expected).abs() < 1e-6, "{value}, expected {expected}");
        }
        assert_eq!(moments.steps, 1);
    }

    #[test]
    fn without_weight_decay_it_is_adam_as_published() {
        // Kingma and Ba, Algorithm 1, in double precision.
        let (mut value, mut mean, mut square) = (0.3f64, 0.0, 0.0);
        let (mut ours, mut moments) = (vec![0.3f32], Moments::default());
        for step in 0..200 {
            let gradient = (0.7 * f64::from(step)).sin() + 0.1;
            AdamW::ADAM.step(&mut ours, &[gradient as f32], &mut moments, 0.01);
            mean = 0.9 * mean + 0.1 * gradient;
            square = 0.999 * square + 0.001 * gradient * gradient;
            let corrected = |one: f64, beta: f64| one / (1.0 - beta.powi(step + 1));
            let root = corrected(square, 0.999).sqrt() + 1e-8;
            value -= 0.01 * corrected(mean, 0.9) / root;
            assert!((f64::from(ours[0]) - value).abs() < 1e-5, "step {step}");
        }
    }

    #[test]
    fn state_with_its_memory_is_the_state_before_the_first_step() {
        let (mut lazy, mut ready) = (Moments::default(), Moments::zeros(2));
        let (mut one, mut two) = (vec![0.3, -0.7], vec![0.3, -0.7]);
        for gradient in [[5.0, -0.001], [0.0, 2.0]] {
            AdamW::ADAM.step(&mut one, &gradient, &mut lazy, 0.01);
            AdamW::ADAM.step(&mut two, &gradient, &mut ready, 0.01);
        }
        assert_eq!((one, lazy), (two, ready));
    }
}
