//! Adam whose moments can be saved.

use crate::nn::lanes::vectorised;
use crate::snapshot::{Snapshot, SnapshotError};

/// Adam for one flat vector of parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Adam {
    mean: Vec<f32>,
    square: Vec<f32>,
    steps: u64,
}

impl Adam {
    /// The state before the first step.
    pub fn new(n_parameters: usize) -> Self {
        Self { mean: vec![0.0; n_parameters], square: vec![0.0; n_parameters], steps: 0 }
    }

    /// One step with decay 0.9 of the mean and 0.999 of the square, both corrected for their start.
    pub fn step(&mut self, parameters: &mut [f32], gradient: &[f32], rate: f32) {
        self.steps += 1;
        let correct = |decay: f64| (1.0 / (1.0 - libm::pow(decay, self.steps as f64))) as f32;
        let (rate, root) = (rate * correct(0.9), correct(0.999));
        advance(parameters, gradient, &mut self.mean, &mut self.square, rate, root);
    }

    pub(super) fn save(&self, name: &str, snapshot: &mut Snapshot) {
        snapshot.put_f32(&format!("{name}/mean"), self.mean.clone());
        snapshot.put_f32(&format!("{name}/square"), self.square.clone());
        snapshot.put_u64(&format!("{name}/steps"), vec![self.steps]);
    }

    pub(super) fn restore(&mut self, name: &str, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        let length = self.mean.len();
        self.mean = snapshot.f32(&format!("{name}/mean"), length)?.to_vec();
        self.square = snapshot.f32(&format!("{name}/square"), length)?.to_vec();
        self.steps = snapshot.u64(&format!("{name}/steps"), 1)?[0];
        Ok(())
    }
}

vectorised! {
    fn advance(
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
    fn it_takes_the_steps_of_the_optimiser_of_nn() {
        let (mut ours, mut other) = (vec![0.3, -2.0], vec![0.3, -2.0]);
        let (mut adam, mut reference) = (Adam::new(2), crate::nn::optimiser::Adam::new(2, 0.01));
        for step in 0..50 {
            let gradient = [0.1 * step as f32 - 1.0, 0.5];
            adam.step(&mut ours, &gradient, 0.01);
            reference.step(&mut other, &gradient);
        }
        assert!(ours.iter().zip(&other).all(|(a, b)| (a - b).abs() < 1e-5), "{ours:?} {other:?}");
    }
}
