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

/// What AdamW keeps between steps for one flat vector of parameters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moments {
    /// Running mean of the gradients; empty before the first step.
    pub mean: Vec<f32>,
    /// Running mean of their squares.
    pub square: Vec<f32>,
    /// Steps so far.
    pub steps: u64,
}

impl AdamW {
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

/// Adam for one flat vector of parameters.
#[derive(Clone, Debug)]
pub struct Adam {
    mean: Vec<f32>,
    square: Vec<f32>,
    steps: i32,
    rate: f32,
}

impl Adam {
    /// The state before the first step.
    pub fn new(n_parameters: usize, rate: f32) -> Self {
        Self { mean: vec![0.0; n_parameters], square: vec![0.0; n_parameters], steps: 0, rate }
    }

    /// One step with decay 0.9 of the mean and 0.999 of the square, both corrected for their start.
    pub fn step(&mut self, parameters: &mut [f32], gradient: &[f32]) {
        self.steps += 1;
        let correct = |decay: f32| 1.0 / (1.0 - decay.powi(self.steps));
        let (rate, root) = (self.rate * correct(0.9), correct(0.999));
        adam_step(parameters, gradient, &mut self.mean, &mut self.square, rate, root);
    }

    /// Changes the learning rate and keeps the moments.
    pub fn set_rate(&mut self, rate: f32) {
        self.rate = rate;
    }
}

vectorised! {
    fn adam_step(
        parameters: &mut [f32],
        gradient: &[f32],
        mean: &mut [f32],
        square: &mut [f32],
        rate: f32,
        root: f32,
    ) {
        let state = mean.iter_mut().zip(square);
        for ((value, slope), (mean, square)) in parameters.iter_mut().zip(gradient).zip(state) {
            *mean = 0.9 * *mean + 0.1 * slope;
            *square = 0.999 * *square + 0.001 * slope * slope;
            *value -= rate * *mean / ((*square * root).sqrt() + 1e-8);
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
    fn adamw_without_weight_decay_is_adam() {
        let rule = AdamW { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.0 };
        let (mut ours, mut moments) = (vec![0.3, -0.7], Moments::default());
        let (mut other, mut adam) = (ours.clone(), Adam::new(2, 0.01));
        for step in 0..50 {
            let gradient = [(0.7 * step as f32).sin(), 0.2 - 0.01 * step as f32];
            rule.step(&mut ours, &gradient, &mut moments, 0.01);
            adam.step(&mut other, &gradient);
        }
        for (ours, other) in ours.iter().zip(&other) {
            assert!((ours - other).abs() < 1e-5, "{ours}, Adam {other}");
        }
    }

    #[test]
    fn the_first_step_of_adam_is_the_learning_rate_against_the_sign() {
        let mut value = vec![0.0, 0.0];
        Adam::new(2, 0.01).step(&mut value, &[5.0, -0.001]);
        assert!((value[0] + 0.01).abs() < 1e-6 && (value[1] - 0.01).abs() < 1e-6);
    }
}
