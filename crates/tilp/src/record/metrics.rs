//! The metrics of the paper and additional ones, each a function of rows or counts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RoundRow;
use crate::round::SuccessCount;
use crate::rule::Rule;
use crate::statistics::mean;
use crate::units::{Bytes, Joules, Seconds};

/// Task success rate over a held-out set of episodes; none without an episode.
///
/// $$ \Gamma\[t\] = \frac{1}{|\mathcal{E}|} \sum_{\tau\in\mathcal{E}} \xi(W\[t\], \tau) $$
///
/// Eq. `sys-Gamma`
pub fn success_rate(counts: impl IntoIterator<Item = SuccessCount>) -> Option<f64> {
    counts.into_iter().fold(SuccessCount::default(), SuccessCount::plus).rate()
}

/// Improvement of the success rate from each measurement to the next, at the round of the later.
/// Where every round is measured this is the paper's difference of consecutive rounds.
///
/// $$ \Delta\Gamma\[t\] = \Gamma\[t\] - \Gamma\[t-1\] $$
///
/// Eq. `sys-delta-Gamma`
pub fn success_improvement(curve: &[(u64, f64)]) -> Vec<(u64, f64)> {
    curve.windows(2).map(|pair| (pair[1].0, improvement(pair[0].1, pair[1].1))).collect()
}

/// Improvement from one measurement to the next.
pub(super) fn improvement(before: f64, now: f64) -> f64 {
    now - before
}

/// When a success threshold counts as reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FirstPassage {
    /// At the first measurement at or above it.
    #[default]
    Single,
    /// At the first measurement from which the mean of it and the next two is at or above it: a
    /// single lucky measurement is not an arrival. Needs all three measurements.
    MeanOfThree,
}

impl FirstPassage {
    /// Whether this is the default of scenarios without the key.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Index of the first row that reaches the threshold.
    fn reached(self, rounds: &[RoundRow], threshold: f64) -> Option<usize> {
        let measured = rounds.iter().enumerate();
        let measured = measured.filter_map(|(idx, row)| Some((idx, row.report_success?)));
        match self {
            Self::Single => measured.into_iter().find(|(_, success)| *success >= threshold),
            Self::MeanOfThree => {
                let measured: Vec<(usize, f64)> = measured.collect();
                let mean = |three: &&[(usize, f64)]| {
                    // Three rates that are the threshold sum up to it but for the last bits. Rates
                    // of counts that differ at all differ by more.
                    let sum: f64 = three.iter().map(|(_, success)| success).sum();
                    sum / 3.0 >= threshold - 1e-9
                };
                measured.windows(3).find(mean).map(|three| three[0])
            }
        }
        .map(|(idx, _)| idx)
    }
}

/// The first round at which the measured success reaches the threshold.
///
/// $$ \mathrm{RTA}(\vartheta) = \min\\{t : \Gamma\[t\] \ge \vartheta\\} $$
///
/// With [`FirstPassage::MeanOfThree`] the success is the mean of this measurement and the next two.
///
/// Eq. `metric-rta`
pub fn rounds_to_accuracy(
    rounds: &[RoundRow],
    threshold: f64,
    passage: FirstPassage,
) -> Option<u64> {
    passage.reached(rounds, threshold).map(|idx| rounds[idx].round)
}

/// Simulated time until the measured success reaches the threshold.
pub fn seconds_to_accuracy(
    rounds: &[RoundRow],
    threshold: f64,
    passage: FirstPassage,
) -> Option<Seconds> {
    passage.reached(rounds, threshold).map(|idx| Seconds(rounds[idx].clock_s))
}

/// Energy of all terminals until the measured success reaches the threshold.
pub fn joules_to_accuracy(
    rounds: &[RoundRow],
    threshold: f64,
    passage: FirstPassage,
) -> Option<Joules> {
    passage.reached(rounds, threshold).map(|idx| total_energy(&rounds[..=idx]))
}

/// Optimiser steps of the server's common layers in a mean round; none without a round.
pub fn server_steps(rounds: &[RoundRow], rule: Rule) -> Option<f64> {
    mean(rounds.iter().map(|row| rule.server_steps(row.n_took_part) as f64))
}

/// Energy of all terminals over all rounds.
///
/// $$ E_\Sigma = \sum_t \sum_{n\in\mathcal{S}\[t\]} E_n\[t\] $$
///
/// Eq. `metric-energy`
pub fn total_energy(rounds: &[RoundRow]) -> Joules {
    rounds.iter().map(|row| Joules(row.energy_j)).sum()
}

/// Mean over the rounds of the latency of the slowest terminal; none without a round.
///
/// $$ \bar\delta = \frac{1}{T} \sum_t \delta\[t\] $$
///
/// Eq. `metric-latency`
pub fn mean_latency(rounds: &[RoundRow]) -> Option<Seconds> {
    mean(rounds.iter().map(|row| row.latency_s)).map(Seconds)
}

/// Activation bytes sent up over all rounds, as they were really encoded.
///
/// $$ V_\Sigma = \sum_t \sum_{n\in\mathcal{S}\[t\]} K_n\[t\] \psi(\ell_n\[t\]) (1 - q_n\[t\]) $$
///
/// Eq. `metric-volume`
pub fn total_volume(rounds: &[RoundRow]) -> Bytes {
    rounds.iter().map(|row| Bytes(row.volume_bytes)).sum()
}

/// Mean over the rounds of the constraint violation; none without a round.
///
/// $$ \bar{\mathcal{V}} = \frac{1}{T} \sum_t \mathcal{V}\[t\] $$
///
/// Eq. `metric-violation`
pub fn mean_violation(rounds: &[RoundRow]) -> Option<f64> {
    mean(rounds.iter().map(|row| row.violation))
}

/// Wilson's 95 % interval of a success rate; none without an episode.
pub fn wilson_95(count: SuccessCount) -> Option<[f64; 2]> {
    const Z: f64 = 1.959_963_984_540_054;
    let rate = count.rate()?;
    let n = count.episodes as f64;
    let scale = 1.0 + Z * Z / n;
    let centre = (rate + Z * Z / (2.0 * n)) / scale;
    let half = Z / scale * (rate * (1.0 - rate) / n + Z * Z / (4.0 * n * n)).sqrt();
    Some([(centre - half).max(0.0), (centre + half).min(1.0)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(successes: &[Option<f64>]) -> Vec<RoundRow> {
        let row = |(idx, success): (usize, &Option<f64>)| RoundRow {
            round: idx as u64 + 1,
            clock_s: 10.0 * (idx + 1) as f64,
            latency_s: 1.0 + idx as f64,
            energy_j: 2.0 + idx as f64,
            volume_bytes: 100 + idx as u64,
            violation: if idx == 0 { 0.0 } else { 0.5 },
            report_success: *success,
            ..RoundRow::default()
        };
        successes.iter().enumerate().map(row).collect()
    }

    #[test]
    fn eq_sys_gamma_is_the_share_of_all_episodes() {
        let counts = [(1, 2), (0, 6)].map(|(s, n)| SuccessCount { successes: s, episodes: n });
        assert_eq!(success_rate(counts), Some(0.125));
        assert_eq!(success_rate([]), None);
    }

    #[test]
    fn eq_sys_delta_gamma_is_the_difference_of_successive_measurements() {
        let curve = [(0, 0.25), (1, 0.5), (5, 0.375)];
        assert_eq!(success_improvement(&curve), [(1, 0.25), (5, -0.125)]);
        assert_eq!(success_improvement(&curve[..1]), []);
    }

    #[test]
    fn eq_metric_rta_is_the_first_round_at_the_threshold() {
        let rounds = rows(&[Some(0.5), None, Some(30.0 / 50.0), Some(0.5), Some(0.75)]);
        let reached = |threshold| rounds_to_accuracy(&rounds, threshold, FirstPassage::Single);
        assert_eq!(reached(0.6), Some(3));
        assert_eq!(reached(0.7), Some(5));
        assert_eq!(reached(0.8), None);
        assert_eq!(rounds_to_accuracy(&[], 0.6, FirstPassage::Single), None);
    }

    #[test]
    fn a_lucky_measurement_is_no_arrival_if_the_mean_of_three_counts() {
        let curve = [0.5, 0.7, 0.4, 0.6, 0.6, 0.6, 0.66, 0.9].map(Some);
        // Rounds without a measurement are between the third and the fourth.
        let curve = [&curve[..3], &[None, None], &curve[3..]].concat();
        let rounds = rows(&curve);
        let reached = |threshold| rounds_to_accuracy(&rounds, threshold, FirstPassage::MeanOfThree);
        assert_eq!(rounds_to_accuracy(&rounds, 0.6, FirstPassage::Single), Some(2));
        assert_eq!(reached(0.6), Some(6), "0.6 three times is 0.6");
        assert_eq!(reached(0.7), Some(8), "0.6, 0.66 and 0.9");
        assert_eq!(reached(0.75), None, "the last two measurements alone are not three");
        assert_eq!(rounds_to_accuracy(&rounds[..4], 0.4, FirstPassage::MeanOfThree), Some(1));
        assert_eq!(rounds_to_accuracy(&rounds[..2], 0.4, FirstPassage::MeanOfThree), None);
        let seconds = seconds_to_accuracy(&rounds, 0.6, FirstPassage::MeanOfThree);
        assert_eq!(seconds, Some(Seconds(60.0)));
    }

    #[test]
    fn the_server_steps_once_a_round_or_once_a_terminal_or_not_at_all() {
        let row = |n_took_part| RoundRow { n_took_part, ..RoundRow::default() };
        let rounds = [row(4), row(0), row(5)];
        for (rule, steps) in [
            (Rule::Parallel, 2.0 / 3.0),
            (Rule::Broadcast, 2.0 / 3.0),
            (Rule::Tiered { edges: 5 }, 2.0 / 3.0),
            (Rule::Sequential, 3.0),
            (Rule::Relay, 3.0),
            (Rule::Whole(crate::rule::Local::Steps(4)), 0.0),
        ] {
            assert_eq!(server_steps(&rounds, rule), Some(steps), "{rule:?}");
        }
        assert_eq!(server_steps(&[], Rule::Parallel), None);
    }

    #[test]
    fn time_and_energy_to_a_threshold_end_with_the_round_that_reaches_it() {
        let rounds = rows(&[Some(0.5), None, Some(0.6), Some(0.9)]);
        let single = FirstPassage::Single;
        assert_eq!(seconds_to_accuracy(&rounds, 0.6, single), Some(Seconds(30.0)));
        assert_eq!(joules_to_accuracy(&rounds, 0.6, single), Some(Joules(2.0 + 3.0 + 4.0)));
        assert_eq!(seconds_to_accuracy(&rounds, 0.95, single), None);
    }

    #[test]
    fn eq_metric_energy_sums_over_the_rounds() {
        assert_eq!(total_energy(&rows(&[None; 3])), Joules(9.0));
    }

    #[test]
    fn eq_metric_latency_is_the_mean_over_the_rounds() {
        assert_eq!(mean_latency(&rows(&[None; 4])), Some(Seconds(2.5)));
        assert_eq!(mean_latency(&[]), None);
    }

    #[test]
    fn eq_metric_volume_sums_over_the_rounds() {
        assert_eq!(total_volume(&rows(&[None; 3])), Bytes(303));
    }

    #[test]
    fn eq_metric_violation_is_the_mean_over_the_rounds() {
        assert_eq!(mean_violation(&rows(&[None; 4])), Some(0.375));
        assert_eq!(mean_violation(&rows(&[None; 1])), Some(0.0));
    }

    #[test]
    fn wilson_stays_inside_and_matches_a_published_case() {
        // 81 of 263: 0.2553 to 0.3662 in Newcombe's comparison of intervals (1998).
        let [low, high] = wilson_95(SuccessCount { successes: 81, episodes: 263 }).unwrap();
        assert!((low - 0.2553).abs() < 5e-5 && (high - 0.3662).abs() < 5e-5);
        let [low, high] = wilson_95(SuccessCount { successes: 0, episodes: 10 }).unwrap();
        assert!(low == 0.0 && high > 0.2 && high < 0.3);
        assert_eq!(wilson_95(SuccessCount::default()), None);
    }
}
