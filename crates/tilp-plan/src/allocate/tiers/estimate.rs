//! The constants of the convergence bound, from what a base station observes.

use std::collections::BTreeMap;

use crate::round::{Outcome, TerminalId};
use crate::snapshot::{Persist, Snapshot, SnapshotError};

/// Running estimates of gradient size, smoothness and distance to go.
///
/// The bound asks for epsilon = 2 theta / (gamma T) + the noise term, so that averaging every
/// round needs exactly the T rounds there are; then only one number is left: the drift
/// 4 beta^2 gamma^2 sum G_j^2 over that epsilon without noise, 2 beta^2 gamma^3 T sum G_j^2 / theta.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Estimate {
    /// Weight of a new observation in a running mean.
    pace: f64,
    rate: f64,
    rounds: f64,
    /// Squared gradient per parameter.
    density: Option<f64>,
    /// beta: by how much the gradient changes per step, relative to the step.
    smoothness: Option<f64>,
    /// theta: the first loss seen.
    to_go: Option<f64>,
    /// Norm of each terminal when it last trained, with the parameters it had then.
    norms: BTreeMap<TerminalId, (f64, f64)>,
}

impl Estimate {
    /// Nothing known yet, for this learning rate gamma and number of rounds T; a new observation
    /// enters a running mean with the weight `pace`.
    pub(super) fn new(rate: f64, rounds: u64, pace: f64) -> Self {
        Self {
            pace,
            rate,
            rounds: rounds as f64,
            density: None,
            smoothness: None,
            to_go: None,
            norms: BTreeMap::new(),
        }
    }

    /// Drift of the whole model of this size per squared interval, relative to what the
    /// bound leaves; none before enough was seen.
    pub(super) fn drift(&self, parameters: f64) -> Option<f64> {
        let (density, smoothness, to_go) = (self.density?, self.smoothness?, self.to_go?);
        let gradient = density * parameters;
        let drift = 2.0 * smoothness.powi(2) * self.rate.powi(3) * self.rounds * gradient / to_go;
        drift.is_finite().then_some(drift)
    }

    /// Adds a round; `parameters` is the number of parameters that each terminal trained.
    pub(super) fn learn(&mut self, outcome: &Outcome, parameters: impl Fn(usize) -> f64) {
        self.to_go = self.to_go.or(outcome.loss.filter(|loss| *loss > 0.0));
        for (n, one) in outcome.terminals.iter().enumerate() {
            let Some(norm) = one.gradient_norm.filter(|norm| norm.is_finite() && *norm > 0.0)
            else {
                continue;
            };
            let parameters = parameters(n);
            follow(&mut self.density, norm * norm / parameters, self.pace);
            // Norms of different sets of layers say nothing about each other.
            let before = self.norms.get(&one.id).filter(|(_, then)| *then == parameters);
            if let Some(&(before, _)) = before.filter(|_| self.rate > 0.0) {
                let change = (norm - before).abs() / (self.rate * before);
                follow(&mut self.smoothness, change, self.pace);
            }
            self.norms.insert(one.id, (norm, parameters));
        }
    }
}

fn follow(mean: &mut Option<f64>, value: f64, pace: f64) {
    *mean = Some(mean.map_or(value, |mean| mean + pace * (value - mean)));
}

impl Persist for Estimate {
    fn save(&self, snapshot: &mut Snapshot) {
        let number = |value: Option<f64>| value.unwrap_or(f64::NAN);
        let means = [self.density, self.smoothness, self.to_go].map(number);
        snapshot.put_f64("tiers/means", means.to_vec());
        let ids = self.norms.keys().map(|id| u64::from(id.0)).collect();
        snapshot.put_u64("tiers/terminals", ids);
        let pairs = self.norms.values().flat_map(|&(norm, parameters)| [norm, parameters]);
        snapshot.put_f64("tiers/norms", pairs.collect());
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        let number = |value: f64| (!value.is_nan()).then_some(value);
        let means = snapshot.known_f64("tiers/means", 3, f64::MAX)?;
        self.density = number(means[0]);
        self.smoothness = number(means[1]);
        self.to_go = number(means[2]);
        let n = snapshot.len_of("tiers/terminals");
        let ids = snapshot.u64_up_to("tiers/terminals", n, u32::MAX.into())?;
        let pairs = snapshot.finite_f64("tiers/norms", 2 * n)?.as_chunks::<2>().0;
        let norm = |(&id, &[norm, parameters]): (&u64, &[f64; 2])| {
            (TerminalId(id as u32), (norm, parameters))
        };
        self.norms = ids.iter().zip(pairs).map(norm).collect();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::round::TerminalOutcome;

    fn outcome(norms: &[f64]) -> Outcome {
        let one = |&norm: &f64| TerminalOutcome {
            took_part: true,
            gradient_norm: Some(norm),
            ..TerminalOutcome::default()
        };
        let terminals = norms.iter().map(one).collect();
        Outcome {
            round: 1,
            duration: crate::units::Seconds(1.0),
            loss: Some(0.5),
            terminals,
            success: None,
        }
    }

    #[test]
    fn the_drift_follows_from_norms_rate_and_loss() {
        let mut estimate = Estimate::new(0.1, 100, 0.05);
        estimate.learn(&outcome(&[2.0]), |_| 4.0);
        assert_eq!(estimate.drift(10.0), None, "one norm says nothing of smoothness");
        estimate.learn(&outcome(&[1.0]), |_| 4.0);
        // beta = |1 - 2| / (0.1 * 2) = 5; density from 1 towards 1/4 by 5 %.
        let gradient = (1.0 + 0.05 * (0.25 - 1.0)) * 10.0;
        let expected = 2.0 * 25.0 * 1e-3 * 100.0 * gradient / 0.5;
        assert!((estimate.drift(10.0).unwrap() / expected - 1.0).abs() < 1e-12);
    }

    #[test]
    fn what_is_saved_comes_back() {
        let mut estimate = Estimate::new(0.1, 100, 0.05);
        estimate.learn(&outcome(&[2.0, f64::NAN]), |_| 4.0);
        let mut snapshot = Snapshot::default();
        estimate.save(&mut snapshot);
        let mut other = Estimate::new(0.1, 100, 0.05);
        other.restore(&snapshot).unwrap();
        assert_eq!(other, estimate);
    }
}
