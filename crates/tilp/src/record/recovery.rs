//! Effect of events on a run: the area under its success curve, and the time until the cost of
//! an event is recovered.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RoundRow;

/// An event of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventMark {
    /// It happened at the start of this round.
    pub round: u64,
    /// Name of the event.
    pub name: String,
}

/// What an event cost, and when that was recovered. Success is measured on report episodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EventSummary {
    /// Name of the event.
    pub name: String,
    /// It happened at the start of this round.
    pub round: u64,
    /// Success at the last measurement before it; null if there was none.
    pub success_before: Option<f64>,
    /// The lowest success measured from then on, before the next event; null if there was none.
    pub success_lowest: Option<f64>,
    /// Simulated seconds from the event until 90 % of the difference is recovered; null if there was
    /// no difference, or if it was never recovered.
    pub recovery_s: Option<f64>,
}

/// Share of the cost that must be back.
const RECOVERED: f64 = 0.9;

/// A recovery counts from the first measurement whose mean with this many following ones, as far
/// as there are any, is high enough: a single lucky measurement is no recovery.
const FOLLOWING: usize = 2;

/// The area under a success curve over rounds, by the trapezoidal rule, divided by the rounds
/// that it spans: the mean success over the run. None with fewer than two measurements.
pub fn success_area(curve: &[(u64, f64)]) -> Option<f64> {
    let (first, last) = (curve.first()?.0, curve.last()?.0);
    let trapezoid = |pair: &[(u64, f64)]| {
        let [(from, before), (to, after)] = [pair[0], pair[1]];
        (to - from) as f64 * 0.5 * (before + after)
    };
    let area: f64 = curve.windows(2).map(trapezoid).sum();
    (last > first).then(|| area / (last - first) as f64)
}

/// What every event cost, from a success curve and the rows of the same run.
pub fn event_summaries(
    events: &[EventMark],
    curve: &[(u64, f64)],
    rounds: &[RoundRow],
) -> Vec<EventSummary> {
    let clock_s = |round: u64| match round {
        0 => Some(0.0),
        _ => rounds.iter().find(|row| row.round == round).map(|row| row.clock_s),
    };
    let of = |event: &EventMark| {
        let next = events.iter().map(|one| one.round).filter(|round| *round > event.round).min();
        let cost = Cost::of(event.round, next.unwrap_or(u64::MAX), curve);
        let back = cost.as_ref().and_then(|cost| cost.back(curve));
        let ends = [back, event.round.checked_sub(1)].map(|round| round.and_then(clock_s));
        EventSummary {
            name: event.name.clone(),
            round: event.round,
            success_before: before(event.round, curve).map(|(_, success)| success),
            success_lowest: cost.as_ref().map(|cost| cost.lowest),
            recovery_s: ends[0].zip(ends[1]).map(|(end, start)| end - start),
        }
    };
    events.iter().map(of).collect()
}

/// The last measurement before an event.
fn before(event: u64, curve: &[(u64, f64)]) -> Option<(u64, f64)> {
    curve.iter().copied().rfind(|(round, _)| *round < event)
}

/// What an event cost.
struct Cost {
    before: f64,
    lowest: f64,
    /// Place of the lowest measurement on the curve.
    at: usize,
}

impl Cost {
    /// Looks for the lowest measurement from an event to the next; none without measurements
    /// before it and there.
    fn of(event: u64, next: u64, curve: &[(u64, f64)]) -> Option<Self> {
        let (_, before) = before(event, curve)?;
        let after = curve.iter().enumerate().filter(|(_, (at, _))| (event..next).contains(at));
        let (at, (_, lowest)) = after.min_by(|a, b| a.1.1.total_cmp(&b.1.1))?;
        Some(Self { before, lowest: *lowest, at })
    }

    /// The round at whose end enough is back.
    fn back(&self, curve: &[(u64, f64)]) -> Option<u64> {
        if self.lowest >= self.before {
            return None;
        }
        // The tolerance is far below one episode: it covers the rounding of a mean.
        let enough = self.lowest + RECOVERED * (self.before - self.lowest) - 1e-12;
        let mean = |points: &[(u64, f64)]| {
            points.iter().map(|(_, success)| success).sum::<f64>() / points.len() as f64
        };
        let is_back = |&start: &usize| {
            let end = (start + 1 + FOLLOWING).min(curve.len());
            mean(&curve[start..end]) >= enough
        };
        (self.at..curve.len()).find(is_back).map(|place| curve[place].0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds of two seconds each.
    fn rows(rounds: u64) -> Vec<RoundRow> {
        let row = |round| RoundRow { round, clock_s: 2.0 * round as f64, ..RoundRow::default() };
        (1..=rounds).map(row).collect()
    }

    fn mark(round: u64) -> EventMark {
        EventMark { round, name: format!("event {round}") }
    }

    /// Measured every ten rounds from round 0 on.
    fn curve(successes: &[f64]) -> Vec<(u64, f64)> {
        (0..).step_by(10).zip(successes.iter().copied()).collect()
    }

    fn recovery(event: u64, successes: &[f64]) -> Option<f64> {
        event_summaries(&[mark(event)], &curve(successes), &rows(200))[0].recovery_s
    }

    #[test]
    fn the_area_is_the_mean_success_over_the_rounds() {
        assert_eq!(success_area(&[(0, 0.5), (100, 0.5)]), Some(0.5));
        assert_eq!(success_area(&[(0, 0.0), (100, 1.0)]), Some(0.5));
        // Half of the run at 0.2, a rise to 0.6 over a quarter, a quarter at 0.6.
        let area = success_area(&[(0, 0.2), (50, 0.2), (75, 0.6), (100, 0.6)]).unwrap();
        assert!((area - (0.5 * 0.2 + 0.25 * 0.4 + 0.25 * 0.6)).abs() < 1e-12);
        assert_eq!(success_area(&[(50, 0.4)]), None);
        assert_eq!(success_area(&[]), None);
    }

    #[test]
    fn recovery_counts_from_the_event_to_the_first_measurement_with_nine_tenths_of_the_loss() {
        // 0.8 before, 0.3 after: 0.75 is enough. The event starts when 20 rounds are done.
        let successes = [0.2, 0.8, 0.8, 0.3, 0.5, 0.7, 0.75, 0.76, 0.8];
        assert_eq!(recovery(21, &successes), Some(2.0 * 60.0 - 2.0 * 20.0));
        assert_eq!(recovery(25, &successes), Some(2.0 * 60.0 - 2.0 * 24.0));
    }

    #[test]
    fn a_single_lucky_measurement_is_no_recovery() {
        let successes = [0.8, 0.8, 0.3, 0.8, 0.4, 0.5, 0.8, 0.8, 0.8];
        assert_eq!(recovery(11, &successes), Some(2.0 * 60.0 - 2.0 * 10.0));
    }

    #[test]
    fn nothing_lost_or_nothing_back_has_no_time_of_recovery() {
        assert_eq!(recovery(11, &[0.5, 0.5, 0.5, 0.6]), None, "nothing was lost");
        assert_eq!(recovery(11, &[0.5, 0.5, 0.7, 0.6]), None, "success rose");
        assert_eq!(recovery(11, &[0.5, 0.5, 0.2, 0.3, 0.4]), None, "too little came back");
        assert_eq!(recovery(150, &[0.5, 0.5]), None, "nothing was measured afterwards");
    }

    #[test]
    fn the_cost_of_an_event_ends_where_the_next_begins() {
        let curve = curve(&[0.6, 0.6, 0.5, 0.6, 0.1, 0.6, 0.6, 0.6]);
        let both = event_summaries(&[mark(11), mark(31)], &curve, &rows(80));
        assert_eq!(both[0].success_before, Some(0.6));
        assert_eq!(both[0].success_lowest, Some(0.5));
        assert_eq!(both[1].success_lowest, Some(0.1));
        // The second loss is in the mean of three that would show the first recovered.
        assert_eq!(both[0].recovery_s, Some(2.0 * 50.0 - 2.0 * 10.0));
        assert_eq!(both[1].recovery_s, Some(2.0 * 50.0 - 2.0 * 30.0));
    }

    #[test]
    fn an_event_in_the_first_round_is_compared_with_the_base_policy() {
        let summary = &event_summaries(&[mark(1)], &curve(&[0.5, 0.1, 0.5, 0.5]), &rows(30))[0];
        assert_eq!(summary.success_before, Some(0.5));
        assert_eq!(summary.recovery_s, Some(40.0));
        let unmeasured = &event_summaries(&[mark(1)], &[(10, 0.4)], &rows(30))[0];
        assert_eq!((unmeasured.success_before, unmeasured.recovery_s), (None, None));
    }
}
