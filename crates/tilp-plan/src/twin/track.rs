//! Recent prediction error of a sub-twin.

use super::normal::Z_90;

/// Weight of an old prediction relative to the next one.
const KEEP: f64 = 0.998;

/// Recency-weighted errors of predictions, each with its predicted standard deviation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Track {
    /// Weighted number of predictions.
    pub weight: f64,
    error: f64,
    square: f64,
    covered: f64,
}

impl Track {
    /// Adds a prediction: realised minus predicted, and the predicted standard deviation.
    pub fn add(&mut self, error: f64, sd: f64) {
        self.add_covered(error, error.abs() <= Z_90 * sd);
    }

    /// Adds a prediction whose 90 % interval did or did not contain the value.
    pub fn add_covered(&mut self, error: f64, covered: bool) {
        let keep = |old: f64, new: f64| KEEP * old + new;
        self.weight = keep(self.weight, 1.0);
        self.error = keep(self.error, error);
        self.square = keep(self.square, error * error);
        self.covered = keep(self.covered, if covered { 1.0 } else { 0.0 });
    }

    /// Mean error; `None` without a prediction.
    pub fn bias(&self) -> Option<f64> {
        self.mean(self.error)
    }

    /// Root mean square error.
    pub fn rmse(&self) -> Option<f64> {
        self.mean(self.square).map(f64::sqrt)
    }

    /// Share of realised values inside their 90 % interval.
    pub fn coverage(&self) -> Option<f64> {
        self.mean(self.covered)
    }

    fn mean(&self, sum: f64) -> Option<f64> {
        (self.weight > 0.0).then(|| sum / self.weight)
    }

    pub(super) fn to_array(self) -> [f64; 4] {
        [self.weight, self.error, self.square, self.covered]
    }

    pub(super) fn from_slice(values: &[f64]) -> Self {
        Self { weight: values[0], error: values[1], square: values[2], covered: values[3] }
    }
}
