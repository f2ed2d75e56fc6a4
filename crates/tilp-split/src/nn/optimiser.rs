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
    fn the_first_step_of_adam_is_the_learning_rate_against_the_sign() {
        let mut value = vec![0.0, 0.0];
        Adam::new(2, 0.01).step(&mut value, &[5.0, -0.001]);
        assert!((value[0] + 0.01).abs() < 1e-6 && (value[1] - 0.01).abs() < 1e-6);
    }
}
