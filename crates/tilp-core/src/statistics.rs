//! Statistics for a handful of seeds.

use rand::RngExt as _;

use crate::rng::Seed;

/// A mean with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// The interval; none from a single value.
    pub interval: Option<[f64; 2]>,
}

/// For up to this number of values, enumerate all n^n resamples (46 656 for six values).
const ENUMERABLE: usize = 6;

/// Resamples of more values than that.
const RESAMPLES: usize = 20_000;

/// Resamples of values in strata.
const STRATIFIED: usize = 2_000;

/// The 97.5 % quantile of Student's distribution with 1, 2, 3 and so on degrees of freedom.
const STUDENT: [f64; 30] = [
    12.706205, 4.302653, 3.182446, 2.776445, 2.570582, 2.446912, 2.364624, 2.306004, 2.262157,
    2.228139, 2.200985, 2.178813, 2.160369, 2.144787, 2.131450, 2.119905, 2.109816, 2.100922,
    2.093024, 2.085963, 2.079614, 2.073873, 2.068658, 2.063899, 2.059539, 2.055529, 2.051831,
    2.048407, 2.045230, 2.042272,
];

/// The mean and its bootstrap interval (percentiles of the means of resamples); `None` if empty. For
/// few values the resamples are enumerated, so that the interval has no sampling error.
pub fn bootstrap_mean(values: &[f64]) -> Option<Estimate> {
    let interval = match values.len() {
        0 => return None,
        1 => None,
        n if n <= ENUMERABLE => percentiles(all_means(values)),
        n => {
            let mut rng = Seed::new(0).stream("bootstrap");
            let mut draw = || (0..n).map(|_| values[rng.random_range(0..n)]).sum::<f64>();
            percentiles((0..RESAMPLES).map(|_| draw() / n as f64).collect())
        }
    };
    Some(Estimate { mean: mean_of(values), interval })
}

/// The mean and its interval after Student, which covers 95 % for normal values at any sample size;
/// `None` if the slice is empty.
pub fn student_mean(values: &[f64]) -> Option<Estimate> {
    let mean = mean(values.iter().copied())?;
    let half = standard_deviation(values).map(|deviation| {
        student_quantile(values.len() - 1) * deviation / (values.len() as f64).sqrt()
    });
    Some(Estimate { mean, interval: half.map(|half| [mean - half, mean + half]) })
}

/// The 97.5 % quantile of Student's distribution, beyond the table by the expansion of Cornish and
/// Fisher about the normal quantile.
fn student_quantile(freedom: usize) -> f64 {
    if let Some(quantile) = freedom.checked_sub(1).and_then(|index| STUDENT.get(index)) {
        return *quantile;
    }
    let (z, n) = (1.959_963_985f64, freedom as f64);
    let first = (z.powi(3) + z) / (4.0 * n);
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * n * n);
    z + first + second
}

/// The standard deviation of what the values are drawn from; none below two.
fn standard_deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values.iter().copied())?;
    let square = values.iter().map(|one| (one - mean).powi(2)).sum::<f64>();
    (values.len() > 1).then(|| (square / (values.len() - 1) as f64).sqrt())
}

fn mean_of(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The mean; `None` if the slice is empty.
pub fn mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (sum, n) = values.into_iter().fold((0.0, 0usize), |(sum, n), value| (sum + value, n + 1));
    (n > 0).then(|| sum / n as f64)
}

/// Quantile of the values, interpolated between neighbours; `None` if there are no
/// values.
pub fn quantile(values: impl IntoIterator<Item = f64>, share: f64) -> Option<f64> {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    let position = share * sorted.len().checked_sub(1)? as f64;
    let (below, above) = (sorted[position.floor() as usize], sorted[position.ceil() as usize]);
    // Two infinite neighbours have no difference.
    if below == above {
        return Some(below);
    }
    Some(below + (above - below) * position.fract())
}

/// The means of all resamples.
fn all_means(values: &[f64]) -> Vec<f64> {
    let n = values.len();
    let resample = |mut number: usize| {
        let mut pick = || {
            let value = values[number % n];
            number /= n;
            value
        };
        (0..n).map(|_| pick()).sum::<f64>() / n as f64
    };
    (0..n.pow(n as u32)).map(resample).collect()
}

fn percentiles(means: Vec<f64>) -> Option<[f64; 2]> {
    let low = quantile(means.iter().copied(), 0.025)?;
    Some([low, quantile(means, 0.975)?])
}

/// The two-sided p-value of paired differences under the hypothesis that their signs are chance: the
/// share of all choices of signs whose sum is as far from zero. Exact, and made for few pairs: of n
/// pairs it cannot be below 2^(1 - n). None without a pair or beyond twenty.
pub fn sign_flip(differences: &[f64]) -> Option<f64> {
    const MOST: usize = 20;
    let n = differences.len();
    if n == 0 || n > MOST {
        return None;
    }
    let sum = |signs: usize| -> f64 {
        let signed =
            |(index, one): (usize, &f64)| if signs >> index & 1 == 1 { -one } else { *one };
        differences.iter().enumerate().map(signed).sum()
    };
    // What differs by rounding only is as far.
    let observed = sum(0).abs() * (1.0 - 1e-12);
    let as_far = (0..1usize << n).filter(|&signs| sum(signs).abs() >= observed).count();
    Some(as_far as f64 / (1usize << n) as f64)
}

/// The mean of paired differences in units of their standard deviation, with Hedges' correction for
/// few pairs; `None` if all are equal or there are fewer than three, where the correction is
/// zero.
pub fn effect_size(differences: &[f64]) -> Option<f64> {
    let n = differences.len() as f64;
    let deviation = standard_deviation(differences).filter(|_| differences.len() > 2)?;
    let mean = mean_of(differences);
    let correction = 1.0 - 3.0 / (4.0 * (n - 1.0) - 1.0);
    (deviation > 1e-12 * mean.abs()).then(|| mean / deviation * correction)
}

/// The mean without the lowest and the highest quarter; `None` if the slice is empty.
pub fn interquartile_mean(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let cut = sorted.len() / 4;
    (!sorted.is_empty()).then(|| mean_of(&sorted[cut..sorted.len() - cut]))
}

/// The interquartile mean of all values, with the bootstrap interval of values in strata.
pub fn stratified_interquartile_mean(strata: &[Vec<f64>]) -> Option<Estimate> {
    let mean = interquartile_mean(&strata.concat())?;
    let means = resampled(strata).iter().filter_map(|values| interquartile_mean(values)).collect();
    Some(Estimate { mean, interval: percentiles(means) })
}

/// The share of all values above each threshold, with the bootstrap interval of values in strata: a
/// performance profile; nothing of nothing.
pub fn stratified_shares_above(strata: &[Vec<f64>], thresholds: &[f64]) -> Vec<Estimate> {
    let (values, resamples) = (strata.concat(), resampled(strata));
    let at = |&threshold: &f64| {
        let shares = resamples.iter().filter_map(|values| share_above(values, threshold));
        let interval = percentiles(shares.collect());
        Some(Estimate { mean: share_above(&values, threshold)?, interval })
    };
    thresholds.iter().filter_map(at).collect()
}

/// Values drawn anew with replacement, each stratum from its own; none unless some stratum has two
/// values. The draws are the same every time.
fn resampled(strata: &[Vec<f64>]) -> Vec<Vec<f64>> {
    if strata.iter().all(|stratum| stratum.len() < 2) {
        return Vec::new();
    }
    let mut rng = Seed::new(0).stream("bootstrap-strata");
    let mut draw = |stratum: &Vec<f64>| -> Vec<f64> {
        let n = stratum.len();
        (0..n).map(|_| stratum[rng.random_range(0..n)]).collect()
    };
    (0..STRATIFIED).map(|_| strata.iter().flat_map(&mut draw).collect()).collect()
}

/// Share of the values above a threshold, a point of a performance profile; `None` if the slice is empty.
pub fn share_above(values: &[f64], threshold: f64) -> Option<f64> {
    let above = values.iter().filter(|value| **value > threshold).count();
    (!values.is_empty()).then(|| above as f64 / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bootstrap_of_two_values_is_known() {
        // Means 0, 1/2, 1/2, 1 of the four resamples: the percentiles are interpolated.
        let found = bootstrap_mean(&[0.0, 1.0]).unwrap();
        assert_eq!(found.mean, 0.5);
        let [low, high] = found.interval.unwrap();
        assert!((low - 0.0375).abs() < 1e-12 && (high - 0.9625).abs() < 1e-12);
        assert_eq!(bootstrap_mean(&[3.0]), Some(Estimate { mean: 3.0, interval: None }));
        assert_eq!(bootstrap_mean(&[]), None);
    }

    #[test]
    fn many_values_have_the_interval_of_a_normal_mean() {
        let values: Vec<f64> = (0..400).map(|index| f64::from(index % 20)).collect();
        let [low, high] = bootstrap_mean(&values).unwrap().interval.unwrap();
        let half = 1.96 * (33.25f64 / 400.0).sqrt();
        assert!((low - 9.5 + half).abs() < 0.03 && (high - 9.5 - half).abs() < 0.03);
        assert_eq!(bootstrap_mean(&values), bootstrap_mean(&values));
    }

    #[test]
    fn the_table_and_the_expansion_hold_95_percent_of_students_distribution() {
        // With x = sqrt(n) tan(angle) the density is a power of the cosine.
        let share = |freedom: usize, quantile: f64| {
            let power = |angle: f64| angle.cos().powi(freedom as i32 - 1);
            let area = |end: f64| {
                let step = end / 2e4;
                (0..20_000).map(|i| power((f64::from(i) + 0.5) * step)).sum::<f64>() * step
            };
            let end = (quantile / (freedom as f64).sqrt()).atan();
            area(end) / area(std::f64::consts::FRAC_PI_2)
        };
        for freedom in (1..=34).chain([60, 400]) {
            let held = share(freedom, student_quantile(freedom));
            assert!((held - 0.95).abs() < 1e-5, "{freedom}: {held}");
        }
        assert!((student_quantile(31) - 2.039513).abs() < 1e-4);
    }

    #[test]
    fn the_interval_of_student_is_that_of_the_books() {
        // Mean 2, deviation 1: 4.302653 / sqrt(3) on either side.
        let found = student_mean(&[1.0, 2.0, 3.0]).unwrap();
        let [low, high] = found.interval.unwrap();
        assert_eq!(found.mean, 2.0);
        assert!((low - 2.0 + 2.484138).abs() < 1e-6 && (high - 2.0 - 2.484138).abs() < 1e-6);
        assert_eq!(student_mean(&[3.0]), Some(Estimate { mean: 3.0, interval: None }));
        assert_eq!(student_mean(&[]), None);
        assert_eq!(student_mean(&[2.0; 4]).unwrap().interval, Some([2.0; 2]));
    }

    #[test]
    fn strata_are_drawn_anew_each_from_its_own_values() {
        // Every resample has one half above: the strata do not mix.
        let strata = [vec![0.1, 0.2, 0.3], vec![0.7, 0.8, 0.9]];
        let shares = stratified_shares_above(&strata, &[0.5, 0.15]);
        assert_eq!(shares[0], Estimate { mean: 0.5, interval: Some([0.5; 2]) });
        assert_eq!(shares[1].mean, 5.0 / 6.0);
        let [low, high] = shares[1].interval.unwrap();
        assert!(low < 5.0 / 6.0 && high == 1.0, "{low} {high}");
        let found = stratified_interquartile_mean(&strata).unwrap();
        assert_eq!(found.mean, 0.5);
        let [low, high] = found.interval.unwrap();
        assert!(0.3 < low && low < 0.5 && 0.5 < high && high < 0.7, "{low} {high}");
        assert_eq!(stratified_interquartile_mean(&strata), Some(found), "the same every time");
        // One value in each stratum has no spread that could be shown.
        let single = stratified_interquartile_mean(&[vec![0.2], vec![0.4]]).unwrap();
        assert_eq!(single.interval, None);
        assert_eq!(stratified_interquartile_mean(&[]), None);
    }

    #[test]
    fn signs_that_all_agree_have_the_least_p_value() {
        assert_eq!(sign_flip(&[1.0, 2.0, 0.5]), Some(0.25));
        assert_eq!(sign_flip(&[-1.0, -2.0, -0.5, -0.1, -3.0]), Some(2.0 / 32.0));
        assert_eq!(sign_flip(&[1.0, -1.0]), Some(1.0));
        assert_eq!(sign_flip(&[0.0; 4]), Some(1.0));
        assert_eq!(sign_flip(&[]), None);
        // 3 - 1 = 2: of the four sums 4, 2, -2, -4 all are as far.
        assert_eq!(sign_flip(&[3.0, -1.0]), Some(1.0));
    }

    #[test]
    fn the_effect_is_a_corrected_standardised_mean() {
        // Mean 2, deviation 1; correction 1 - 3 / 7 for three pairs.
        assert!((effect_size(&[1.0, 2.0, 3.0]).unwrap() - 2.0 * 4.0 / 7.0).abs() < 1e-12);
        assert_eq!(effect_size(&[1.0, 1.0, 1.0]), None);
        // Of two pairs the correction is zero.
        assert_eq!(effect_size(&[1.0, 2.0]), None);
        assert_eq!(effect_size(&[1.0]), None);
    }

    #[test]
    fn quantiles_interpolate_and_bear_infinity() {
        let values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(quantile(values, 0.5), Some(2.5));
        assert_eq!(quantile(values, 1.0), Some(4.0));
        assert_eq!(quantile([f64::INFINITY; 2], 0.5), Some(f64::INFINITY));
        assert_eq!(quantile([], 0.5), None);
    }

    #[test]
    fn the_middle_half_decides_the_interquartile_mean() {
        assert_eq!(interquartile_mean(&[100.0, 1.0, 2.0, -50.0]), Some(1.5));
        assert_eq!(interquartile_mean(&[1.0, 2.0]), Some(1.5));
        assert_eq!(interquartile_mean(&[]), None);
        assert_eq!(share_above(&[0.1, 0.5, 0.9], 0.5), Some(1.0 / 3.0));
    }
}
