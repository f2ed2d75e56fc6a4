//! Forecasts of the measurements of a round: 90 % intervals, made before the round is executed.

use super::Twin;
use super::network::Exchange;
use crate::round::{Observation, ProjectedDecision};

/// A value and the interval that contains it in nine of ten cases.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// The most likely value.
    pub mid: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Whether a value lies inside, ends included.
    pub fn holds(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// Forecast of what a scheduled terminal is measured to need, and of the loss that it reports if it
/// takes part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TerminalForecast {
    /// Delay as measured, in seconds.
    pub delay_s: Interval,
    /// Energy as measured, in joules.
    pub energy_j: Interval,
    /// Loss on its minibatch; `None` if it has never reported one.
    pub loss: Option<Interval>,
}

/// The forecast of a round.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecast {
    /// One entry per terminal; `None` if it is not scheduled.
    pub terminals: Vec<Option<TerminalForecast>>,
}

impl Twin {
    /// The forecast of the measurements of a round if this plan is executed.
    pub fn forecast(&self, seen: &Observation, plan: &ProjectedDecision) -> Forecast {
        let exchanges = self.exchanges(&self.state(seen), plan);
        let one = |n: usize| {
            let exchange = exchanges[n].as_ref()?;
            let one = &plan.decision().terminals[n];
            one.scheduled.then(|| self.forecast_terminal(n, exchange, one.compression))
        };
        Forecast { terminals: (0..exchanges.len()).map(one).collect() }
    }

    /// Predicted share of successes in this number of episodes of a group after the present round,
    /// read from its curve at the loss known before the round. The effect of the round on the loss
    /// is left out.
    pub fn forecast_success(&self, seen: &Observation, group: usize, episodes: u64) -> Interval {
        let log_losses = self.training.log_losses(seen.loss);
        let (low, high) = self.task.count_interval(group, &log_losses, episodes);
        let share = |count: u64| count as f64 / episodes.max(1) as f64;
        let mid = self.task.group_success(group, &log_losses);
        Interval { low: share(low), mid, high: share(high) }
    }

    /// The same for this number of episodes of one terminal.
    pub fn forecast_own_success(&self, seen: &Observation, n: usize, episodes: u64) -> Interval {
        let log_loss = self.training.log_losses(seen.loss)[n];
        let (low, high) = self.task.own_interval(n, log_loss, episodes);
        let share = |count: u64| count as f64 / episodes.max(1) as f64;
        Interval { low: share(low), mid: self.task.predict(n, log_loss), high: share(high) }
    }

    fn forecast_terminal(
        &self,
        n: usize,
        exchange: &Exchange,
        compression: f64,
    ) -> TerminalForecast {
        let (low, high) = self.network.delay_interval(n, exchange);
        TerminalForecast {
            delay_s: middle_of((low.0, high.0)),
            energy_j: middle_of(self.network.energy_interval(n, exchange)),
            loss: self.training.loss_interval(n, compression).map(middle_of),
        }
    }
}

/// Errors are log-normal: the most likely value is the geometric middle of its interval.
fn middle_of((low, high): (f64, f64)) -> Interval {
    Interval { low, mid: (low * high).sqrt(), high }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_holds_its_ends_and_its_geometric_middle() {
        let interval = middle_of((2.0, 8.0));
        assert_eq!(interval, Interval { low: 2.0, mid: 4.0, high: 8.0 });
        assert!([2.0, 4.0, 8.0].iter().all(|value| interval.holds(*value)));
        assert!(![1.99, 8.01, f64::NAN].iter().any(|value| interval.holds(*value)));
    }
}
