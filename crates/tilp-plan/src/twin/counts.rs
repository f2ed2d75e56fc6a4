//! Intervals of a count.

/// The interval of counts under a law (the probability of each count) that holds the count with a
/// probability as near to `share` as it can: it grows from the median, on the side where more is left
/// out, for as long as that brings it nearer. Counts come in lumps, so an interval that must hold *at
/// least* `share` would hold more of them than it says, by far where success is nearly sure.
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
    fn what_is_certain_needs_one_count() {
        assert_eq!(nearest_interval(&law(12, 1.0), 0.9), (12, 12));
        assert_eq!(nearest_interval(&law(12, 0.0), 0.9), (0, 0));
        assert_eq!(nearest_interval(&[1.0], 0.9), (0, 0));
    }
}
