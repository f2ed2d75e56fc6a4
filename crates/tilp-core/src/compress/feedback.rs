//! Error feedback: what compression left out this time is added next time.

/// The part of a recurring vector (a weight update) that has not been sent yet.
///
/// For activations it makes no sense: their samples change from round to round.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ErrorFeedback {
    residual: Vec<f64>,
}

impl ErrorFeedback {
    /// Nothing left out so far.
    pub fn new(elements: usize) -> Self {
        Self { residual: vec![0.0; elements] }
    }

    /// The vector to send: the input plus the unsent rest.
    pub fn compensate(&self, input: &[f32]) -> Vec<f32> {
        input.iter().zip(&self.residual).map(|(x, left)| (f64::from(*x) + left) as f32).collect()
    }

    /// Takes note of what was really sent for this input.
    pub fn settle(&mut self, input: &[f32], sent: &[f32]) {
        for ((left, x), y) in self.residual.iter_mut().zip(input).zip(sent) {
            *left += f64::from(*x) - f64::from(*y);
        }
    }

    /// The unsent rest.
    pub fn residual(&self) -> &[f64] {
        &self.residual
    }
}
