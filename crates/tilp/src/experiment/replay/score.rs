//! Scores of forecasts: medians, rank correlation, Brier scores.

use crate::statistics;

/// [`statistics::quantile`] of what is a number.
pub(super) fn quantile(values: Vec<f64>, share: f64) -> Option<f64> {
    statistics::quantile(values.into_iter().filter(|value| !value.is_nan()), share)
}

/// The median; `None` without values.
pub(super) fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    quantile(values.into_iter().collect(), 0.5)
}

/// Ranks about their mean; equal values share the mean of their ranks.
pub(super) fn centred_ranks(values: &[f64]) -> Vec<f64> {
    let mean = 0.5 * (values.len() as f64 - 1.0);
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| *other < value).count() as f64;
        let equal = values.iter().filter(|other| *other == value).count() as f64;
        below + 0.5 * (equal - 1.0) - mean
    };
    values.iter().map(rank).collect()
}

/// Correlation of values given as deviations from their means; `None` if one of them is constant.
pub(super) fn correlation(pairs: &[(f64, f64)]) -> Option<f64> {
    let sum = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>();
    let (xx, yy) = (sum(|(x, _)| x * x), sum(|(_, y)| y * y));
    (xx > 0.0 && yy > 0.0).then(|| sum(|(x, y)| x * y) / (xx * yy).sqrt())
}

/// Mean negative logarithm of the forecast probability of each episode's result, for this share of
/// successes. A certain forecast is taken to be off by a thousandth.
pub(super) fn log_score(forecast: f64, share: f64) -> f64 {
    let forecast = forecast.clamp(1e-3, 1.0 - 1e-3);
    -(share * forecast.ln() + (1.0 - share) * (1.0 - forecast).ln())
}

/// Mean squared error of a forecast probability over episodes of which this share succeeded.
pub(super) fn brier(forecast: f64, share: f64) -> f64 {
    share * (1.0 - forecast).powi(2) + (1.0 - share) * forecast.powi(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_interpolate_and_leave_out_what_is_no_number() {
        assert_eq!(median([3.0, 1.0, f64::NAN, 2.0]), Some(2.0));
        assert_eq!(median([1.0, 2.0]), Some(1.5));
        assert_eq!(quantile(vec![0.0, 4.0], 0.25), Some(1.0));
        assert_eq!((median([]), statistics::mean([])), (None, None));
    }

    #[test]
    fn rank_correlation_sees_order_alone() {
        let ranks = |values: &[f64]| centred_ranks(values);
        assert_eq!(ranks(&[10.0, 30.0, 20.0, 20.0]), [-1.5, 1.5, 0.0, 0.0]);
        let pairs =
            |a: &[f64], b: &[f64]| -> Vec<_> { ranks(a).into_iter().zip(ranks(b)).collect() };
        assert_eq!(correlation(&pairs(&[1.0, 2.0, 9.0], &[5.0, 4.0, 0.1])), Some(-1.0));
        assert_eq!(correlation(&pairs(&[1.0, 1.0], &[5.0, 4.0])), None);
        assert_eq!(correlation(&[]), None);
    }

    #[test]
    fn the_brier_score_is_least_at_the_share_itself() {
        assert_eq!(brier(1.0, 1.0), 0.0);
        assert_eq!(brier(0.5, 0.3), 0.25);
        assert!(brier(0.3, 0.3) < brier(0.31, 0.3) && brier(0.3, 0.3) < brier(0.29, 0.3));
        assert!((log_score(0.5, 0.2) - 2f64.ln()).abs() < 1e-12);
        assert!(log_score(0.3, 0.3) < log_score(0.31, 0.3) && log_score(0.0, 1.0) < 7.0);
    }
}
