//! Laws of a count, and their intervals.

use std::sync::LazyLock;

use super::normal;

/// Quadrature nodes of a normal law.
const NODES: usize = 15;

/// Values of a standard normal variable that are equally likely.
pub(super) static NORMAL_NODES: LazyLock<[f64; NODES]> = LazyLock::new(|| {
    std::array::from_fn(|node| normal::quantile((node as f64 + 0.5) / NODES as f64))
});

/// Probability of each number of successes among so many episodes whose success has a logit with this
/// normal law.
pub(super) fn mixed_binomial(logit: f64, sd: f64, episodes: u64) -> Vec<f64> {
    let mut law = vec![0.0; episodes as usize + 1];
    for z in *NORMAL_NODES {
        add_binomial(&mut law, logit + sd * z, 1.0 / NODES as f64);
    }
    law
}

/// Adds a binomial law of a success with this logit.
fn add_binomial(law: &mut [f64], logit: f64, weight: f64) {
    let success = (1.0 / (1.0 + (-logit).exp())).clamp(1e-12, 1.0 - 1e-12);
    let (yes, no, n) = (success.ln(), (1.0 - success).ln(), (law.len() - 1) as f64);
    let mut ways = 0.0f64; // logarithm of the binomial coefficient
    for (count, share) in law.iter_mut().enumerate() {
        let k = count as f64;
        *share += (ways + k * yes + (n - k) * no).exp() * weight;
        ways += ((n - k) / (k + 1.0)).ln();
    }
}

/// The law of a sum of two independent counts.
pub(super) fn sum_law(a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut sum = vec![0.0; a.len() + b.len() - 1];
    for (i, x) in a.iter().enumerate() {
        for (j, y) in b.iter().enumerate() {
            sum[i + j] += x * y;
        }
    }
    sum
}

/// The interval of counts under a law (the probability of each count) whose probability is as near
/// to `share` as possible. It grows from the median towards the side with the larger remaining
/// probability, as long as that brings it nearer. Counts are discrete: an interval with *at least*
/// `share` would contain too many of them, especially where success is nearly certain.
pub(super) fn nearest_interval(law: &[f64], share: f64) -> (u64, u64) {
    let mut below = 0.0;
    let mut median = 0;
    while median + 1 < law.len() && below + law[median] < 0.5 {
        below += law[median];
        median += 1;
    }
    let (mut low, mut high) = (median, median);
    let mut held = law.get(median).copied().unwrap_or(1.0);
    while low > 0 || high + 1 < law.len() {
        let above = 1.0 - below - held;
        let grows_down = low > 0 && (below >= above || high + 1 == law.len());
        let next = if grows_down { law[low - 1] } else { law[high + 1] };
        if (held + next - share).abs() >= (held - share).abs() {
            break;
        }
        held += next;
        if grows_down {
            low -= 1;
            below -= next;
        } else {
            high += 1;
        }
    }
    (low as u64, high as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Binomial law.
    fn law(n: i32, success: f64) -> Vec<f64> {
        let mut ways = 1.0;
        let mut share = |k: i32| {
            let share = ways * success.powi(k) * (1.0 - success).powi(n - k);
            ways *= f64::from(n - k) / f64::from(k + 1);
            share
        };
        (0..=n).map(&mut share).collect()
    }

    fn held(law: &[f64], (low, high): (u64, u64)) -> f64 {
        law[low as usize..=high as usize].iter().sum()
    }

    #[test]
    fn an_interval_of_counts_holds_what_it_says_over_all_rates_of_success() {
        for n in [10, 16, 40] {
            let rates = || (0..=200).map(|i| f64::from(i) / 200.0);
            let shares = rates().map(|success| {
                let law = law(n, success);
                held(&law, nearest_interval(&law, 0.9))
            });
            let mean = shares.sum::<f64>() / 201.0;
            assert!((mean - 0.9).abs() < 0.015, "{n}: {mean}");
        }
    }

    #[test]
    fn one_count_more_on_the_heavier_side_is_no_nearer() {
        for success in [0.03, 0.2, 0.5, 0.77, 0.96] {
            let law = law(12, success);
            let (low, high) = nearest_interval(&law, 0.9);
            let off = |low: u64, high: u64| (held(&law, (low, high)) - 0.9).abs();
            let own = off(low, high);
            let tails =
                (law[..low as usize].iter().sum::<f64>(), law[high as usize + 1..].iter().sum());
            if low > 0 && tails.0 >= tails.1 {
                assert!(off(low - 1, high) >= own, "{success}");
            } else if high < 12 {
                assert!(off(low, high + 1) >= own, "{success}");
            }
            assert!(own < 0.12, "{success}: {own}");
        }
    }

    #[test]
    fn a_sum_of_counts_has_the_law_of_all_episodes() {
        let sum = sum_law(&law(3, 0.3), &law(5, 0.3));
        for (found, wanted) in sum.iter().zip(law(8, 0.3)) {
            assert!((found - wanted).abs() < 1e-12);
        }
        let mixed = mixed_binomial(0.4, 0.0, 6);
        let success = 1.0 / (1.0 + (-0.4f64).exp());
        assert!(mixed.iter().zip(law(6, success)).all(|(a, b)| (a - b).abs() < 1e-12));
        let wide = mixed_binomial(0.4, 1.5, 6);
        assert!((wide.iter().sum::<f64>() - 1.0).abs() < 1e-12 && wide[0] > 3.0 * mixed[0]);
    }

    #[test]
    fn what_is_certain_needs_one_count() {
        assert_eq!(nearest_interval(&law(12, 1.0), 0.9), (12, 12));
        assert_eq!(nearest_interval(&law(12, 0.0), 0.9), (0, 0));
        assert_eq!(nearest_interval(&[1.0], 0.9), (0, 0));
    }
}
