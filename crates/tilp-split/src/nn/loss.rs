//! The weighted squared error of actions.

/// Weighted mean over the components, then the mean over the samples; sample by sample in
/// `predictions` and `targets`, `weights.len()` components each. Writes the gradient of the
/// predictions and returns the loss.
pub fn weighted_squared_error(
    weights: &[f32],
    predictions: &[f32],
    targets: &[f32],
    gradient: &mut Vec<f32>,
) -> f64 {
    assert_eq!(predictions.len(), targets.len(), "one target for every prediction");
    let samples = predictions.len() / weights.len();
    let share = 1.0 / (weights.iter().sum::<f32>() * samples as f32);
    let mut loss = 0.0;
    gradient.clear();
    for (prediction, target) in
        predictions.chunks_exact(weights.len()).zip(targets.chunks_exact(weights.len()))
    {
        for ((p, t), weight) in prediction.iter().zip(target).zip(weights) {
            let error = p - t;
            loss += f64::from(*weight) * f64::from(error) * f64::from(error);
            gradient.push(2.0 * weight * share * error);
        }
    }
    loss * f64::from(share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loss_is_a_weighted_mean_over_components_and_a_mean_over_samples() {
        let mut gradient = Vec::new();
        let loss =
            weighted_squared_error(&[3.0, 1.0], &[1.0, 0.0, 0.0, 2.0], &[0.0; 4], &mut gradient);
        assert!((loss - (3.0 + 4.0) / 8.0).abs() < 1e-7);
        assert_eq!(gradient, [0.75, 0.0, 0.0, 0.5]);
    }
}
