//! Every forecast against simple rules without a twin: no change, the last
//! measurement, the mean so far. The rules use the same measurements as the twin.

use std::collections::BTreeMap;

use serde::Serialize;

use super::score::{brier, log_score};
use super::{Forecasts, OwnSuccess, Sample, Span};
use crate::statistics::mean;

/// Errors of the twin's forecasts of one quantity, and of each naive rule.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ContestReport {
    /// The quantity.
    pub quantity: &'static str,
    /// What is compared: less is better.
    pub score: &'static str,
    /// Number of compared forecasts: those that every rule can make.
    pub n: usize,
    /// Score of the calibrated twin.
    pub twin: Option<f64>,
    /// Scores of the naive rules.
    pub naive: Vec<NaiveReport>,
    /// Whether the twin is better than each of them.
    pub better: Option<bool>,
    /// Share of the measured values inside the 90 % intervals of the calibrated twin, if it gives
    /// intervals.
    pub coverage: Option<f64>,
}

/// A naive rule.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NaiveReport {
    /// The rule.
    pub rule: &'static str,
    /// Its score.
    pub score: Option<f64>,
}

/// Errors of one forecast by the twin and by each rule.
type Errors<const N: usize> = (f64, [f64; N]);

const LOG_RMS: &str = "rms of the logarithm";
const RMS: &str = "rms, share of the loss";
const BRIER: &str = "Brier score";
const LOG_SCORE: &str = "log score";

/// All contests of a run.
pub(super) fn contests(forecasts: &Forecasts) -> Vec<ContestReport> {
    let Forecasts { delay, energy, loss, success, own_success, .. } = forecasts;
    vec![
        of_logarithms("network delay", delay),
        of_logarithms("network energy", energy),
        of_logarithms("training loss", loss),
        of_decreases("decrease in a round", &forecasts.decrease),
        of_decreases("the same by task", &forecasts.group_decrease),
        of_pairs("the same by terminal", forecasts.terminal_decrease.iter().flatten()),
        of_pairs("decrease between looks", forecasts.spans.iter().map(|span| &span.total)),
        of_pairs("looks, by task", forecasts.spans.iter().flat_map(|span| &span.groups)),
        of_pairs("looks, by terminal", forecasts.spans.iter().flat_map(Span::terminals)),
        of_task_success(success),
        of_own_success("success of a terminal", BRIER, brier, own_success),
        of_own_success("success of a terminal", LOG_SCORE, log_score, own_success),
    ]
}

fn contest<const N: usize>(
    quantity: &'static str,
    score: &'static str,
    rules: [&'static str; N],
    errors: &[Errors<N>],
    coverage: Option<f64>,
) -> ContestReport {
    let is_rms = [LOG_RMS, RMS].contains(&score);
    let settle = |value: Option<f64>| if is_rms { value.map(f64::sqrt) } else { value };
    let twin = settle(mean(errors.iter().map(|(twin, _)| *twin)));
    let naive: Vec<NaiveReport> = rules
        .iter()
        .enumerate()
        .map(|(idx, rule)| NaiveReport {
            rule,
            score: settle(mean(errors.iter().map(|(_, rivals)| rivals[idx]))),
        })
        .collect();
    let better = twin.map(|twin| naive.iter().all(|rival| rival.score.is_none_or(|s| twin < s)));
    ContestReport { quantity, score, n: errors.len(), twin, naive, better, coverage }
}

fn coverage<'a>(samples: impl IntoIterator<Item = &'a Sample>) -> Option<f64> {
    mean(samples.into_iter().map(|one| f64::from(one.after.holds(one.measured))))
}

/// Statistics of one series of measurements.
#[derive(Clone, Copy, Default)]
struct Past {
    last: f64,
    sum: f64,
    n: f64,
}

impl Past {
    fn add(&mut self, value: f64) {
        *self = Self { last: value, sum: self.sum + value, n: self.n + 1.0 };
    }

    /// The last one and the mean; `None` before the first.
    fn rules(&self) -> Option<[f64; 2]> {
        (self.n > 0.0).then(|| [self.last, self.sum / self.n])
    }
}

fn of_logarithms(quantity: &'static str, samples: &[Sample]) -> ContestReport {
    let mut past = BTreeMap::<usize, Past>::new();
    let mut errors = Vec::new();
    for one in samples {
        let (past, value) = (past.entry(one.whose).or_default(), one.measured.ln());
        if let Some(rules) = past.rules() {
            let square = |forecast: f64| (forecast - value).powi(2);
            errors.push((square(one.after.mid.ln()), rules.map(square)));
        }
        past.add(value);
    }
    contest(quantity, LOG_RMS, ["last measured", "own mean"], &errors, coverage(samples))
}

fn of_decreases(quantity: &'static str, samples: &[Sample]) -> ContestReport {
    let error = |one: &Sample| ((one.after.mid - one.measured).powi(2), [one.measured.powi(2)]);
    let errors: Vec<Errors<1>> = samples.iter().map(error).collect();
    contest(quantity, RMS, ["no change"], &errors, coverage(samples))
}

fn of_pairs<'a>(
    quantity: &'static str,
    pairs: impl Iterator<Item = &'a (f64, f64)>,
) -> ContestReport {
    let sound = pairs.filter(|(forecast, realised)| forecast.is_finite() && realised.is_finite());
    let error =
        |(forecast, realised): &(f64, f64)| ((forecast - realised).powi(2), [realised.powi(2)]);
    let errors: Vec<Errors<1>> = sound.map(error).collect();
    contest(quantity, RMS, ["no change"], &errors, None)
}

fn of_task_success(samples: &[Sample]) -> ContestReport {
    let mut past = BTreeMap::<usize, Past>::new();
    let mut errors = Vec::new();
    for one in samples {
        let past = past.entry(one.whose).or_default();
        if let Some(rules) = past.rules() {
            let score = |forecast: f64| brier(forecast, one.measured);
            errors.push((score(one.after.mid), rules.map(score)));
        }
        past.add(one.measured);
    }
    contest("success of a task", BRIER, ["last measured", "own mean"], &errors, coverage(samples))
}

/// Rules by the terminal's own counts, and by the last count of its task.
fn of_own_success(
    quantity: &'static str,
    name: &'static str,
    score: fn(f64, f64) -> f64,
    samples: &[OwnSuccess],
) -> ContestReport {
    let mut own = BTreeMap::<usize, Past>::new();
    let mut tasks = BTreeMap::<usize, f64>::new();
    let mut errors = Vec::new();
    for round in samples.chunk_by(|a, b| a.sample.round == b.sample.round) {
        for OwnSuccess { sample, group, .. } in round {
            let past = own.entry(sample.whose).or_default();
            if let (Some([last, mean]), Some(task)) = (past.rules(), tasks.get(group)) {
                let of = |forecast: f64| score(forecast, sample.measured);
                errors.push((of(sample.after.mid), [last, mean, *task].map(of)));
            }
            past.add(sample.measured);
        }
        let mut sums = BTreeMap::<usize, [f64; 2]>::new();
        for OwnSuccess { sample, group, episodes } in round {
            let [successes, n] = sums.entry(*group).or_default();
            *successes += sample.measured * *episodes as f64;
            *n += *episodes as f64;
        }
        tasks.extend(sums.into_iter().map(|(group, [successes, n])| (group, successes / n)));
    }
    let rules = ["last measured", "own mean", "its task's last"];
    contest(quantity, name, rules, &errors, coverage(samples.iter().map(|one| &one.sample)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::twin::Interval;

    fn sample(round: u64, whose: usize, forecast: f64, measured: f64) -> Sample {
        let after = Interval { low: 0.5 * forecast, mid: forecast, high: 2.0 * forecast };
        Sample { round, whose, nth: 1, before: after, after, measured, truth: None }
    }

    #[test]
    fn rules_know_the_past_of_their_own_series_only() {
        let samples = [
            sample(1, 0, 9.0, 1.0),
            sample(1, 1, 9.0, 8.0),
            sample(2, 0, 2.0, 4.0),
            sample(3, 0, 4.0, 4.0),
        ];
        let found = of_logarithms("x", &samples);
        let [last, own] = &found.naive[..] else { panic!("two rules") };
        let (two, four) = (2f64.ln(), 4f64.ln());
        assert_eq!(found.n, 2);
        assert!((found.twin.unwrap() - (two * two / 2.0).sqrt()).abs() < 1e-12);
        assert!((last.score.unwrap() - (four * four / 2.0).sqrt()).abs() < 1e-12);
        assert!((own.score.unwrap() - ((four * four + two * two) / 2.0).sqrt()).abs() < 1e-12);
        // Three of the four lie between half and twice their forecast.
        assert_eq!((found.better, found.coverage), (Some(true), Some(0.75)));
    }

    #[test]
    fn a_terminals_task_is_known_by_its_last_measurement() {
        let own = |round, whose, forecast, measured| OwnSuccess {
            sample: sample(round, whose, forecast, measured),
            group: 0,
            episodes: 2,
        };
        let samples = [own(1, 0, 0.5, 1.0), own(1, 1, 0.5, 0.0), own(2, 0, 0.9, 1.0)];
        let found = of_own_success("x", BRIER, brier, &samples);
        let scores: Vec<f64> = found.naive.iter().map(|one| one.score.unwrap()).collect();
        assert_eq!(found.n, 1);
        assert!((found.twin.unwrap() - 0.01).abs() < 1e-12);
        assert_eq!(scores, [0.0, 0.0, 0.25]);
        assert_eq!(found.better, Some(false));
    }

    #[test]
    fn without_forecasts_nobody_wins() {
        let found = of_task_success(&[]);
        assert_eq!((found.n, found.twin, found.better, found.coverage), (0, None, None, None));
    }
}
