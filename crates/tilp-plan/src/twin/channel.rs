//! Channel statistics from observations, for cells with unknown mean gains and correlation of the
//! fading: recordings, and terminals that move.
//!
//! Only the product of gain and fading of the present round is used. Its mean so far takes the
//! place of the large-scale gain, so it contains no information about the future. The correlation of the
//! fading from one round to the next is that of the products over their means, of all terminals
//! together; the prior counts as some rounds of all terminals.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::snapshot::{Snapshot, SnapshotError};

/// Where mean gain and correlation of the fading come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChannelSource {
    /// The gain is as reported, the correlation as the scenario has it.
    #[default]
    Reported,
    /// Both are estimated from what was observed so far.
    Observed,
}

impl ChannelSource {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// How channels are followed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ChannelOptions {
    /// Where mean gain and correlation come from: `reported` or `observed`.
    #[serde(skip_serializing_if = "ChannelSource::is_default")]
    pub source: ChannelSource,
    /// Rounds after which an observation weighs a third in a mean gain.
    pub memory: f64,
    /// The correlation of the scenario counts as this number of observations.
    pub prior: f64,
}

impl Default for ChannelOptions {
    fn default() -> Self {
        Self { source: ChannelSource::Reported, memory: 200.0, prior: 200.0 }
    }
}

impl ChannelOptions {
    /// Whether these are the defaults of scenarios without the keys.
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The channel of one terminal so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ChannelSeen {
    /// Weights of all observations, and their weighted sum.
    weight: f64,
    sum: f64,
    /// The last one over the mean then; zero before the first.
    last: f64,
}

impl ChannelSeen {
    /// Numbers kept of a channel.
    pub(super) const N_NUMBERS: usize = 3;

    /// Mean gain, including that of the present round.
    fn mean_with(&self, keep: f64, gain: f64) -> f64 {
        (keep * self.sum + gain) / (keep * self.weight + 1.0)
    }

    pub(super) fn to_array(self) -> [f64; Self::N_NUMBERS] {
        [self.weight, self.sum, self.last]
    }

    /// Back from numbers.
    pub(super) fn from_array(
        name: &str,
        numbers: [f64; Self::N_NUMBERS],
    ) -> Result<Self, SnapshotError> {
        match numbers.iter().find(|number| !(number.is_finite() && **number >= 0.0)) {
            Some(number) => {
                Err(SnapshotError::value(name, number, "a number that is not negative"))
            }
            None => Ok(Self { weight: numbers[0], sum: numbers[1], last: numbers[2] }),
        }
    }

    /// The terminal leaves: its next observation will follow no other.
    pub(super) fn leave(&mut self) {
        self.last = 0.0;
    }
}

/// The channels of all terminals so far.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Channels {
    options: ChannelOptions,
    channels: Vec<ChannelSeen>,
    /// Sums over observations: products of neighbours' distances from one, and squares of the first.
    sums: [f64; 2],
    /// The same of the prior.
    assumed: [f64; 2],
}

impl Channels {
    pub(super) fn new(n_terminals: usize, rho: f64, options: ChannelOptions) -> Self {
        // Powers of Rayleigh fading have variance one.
        let assumed = [options.prior * rho * rho, options.prior];
        let channels = vec![ChannelSeen::default(); n_terminals];
        Self { options, channels, sums: [0.0; 2], assumed }
    }

    fn keep(&self) -> f64 {
        (-1.0 / self.options.memory).exp()
    }

    /// Mean gain and fading of a terminal in the present round, from these reported values.
    pub(super) fn split(&self, terminal: usize, gain: f64, fading_power: f64) -> (f64, f64) {
        let total = gain * fading_power;
        if self.options.source == ChannelSource::Reported || !(total.is_finite() && total > 0.0) {
            return (gain, fading_power);
        }
        let mean = self.channels[terminal].mean_with(self.keep(), total);
        (mean, total / mean)
    }

    /// Correlation of the complex fading from one round to the next; `stated` by the scenario.
    pub(super) fn rho(&self, stated: f64) -> f64 {
        if self.options.source == ChannelSource::Reported {
            return stated;
        }
        let [products, squares] = std::array::from_fn(|i| self.sums[i] + self.assumed[i]);
        if squares > 0.0 { (products / squares).clamp(0.0, 1.0).sqrt() } else { stated }
    }

    /// A round has been observed: the gains of all terminals, fading included.
    pub(super) fn watch(&mut self, totals: impl Iterator<Item = f64>) {
        let keep = self.keep();
        for (one, total) in self.channels.iter_mut().zip(totals) {
            if !(total.is_finite() && total > 0.0) {
                one.last = 0.0;
                continue;
            }
            let now = total / one.mean_with(keep, total);
            if one.last > 0.0 {
                let (before, now) = (one.last - 1.0, now - 1.0);
                self.sums[0] += before * now;
                self.sums[1] += before * before;
            }
            let (weight, sum) = (keep * one.weight + 1.0, keep * one.sum + total);
            *one = ChannelSeen { weight, sum, last: now };
        }
    }

    pub(super) fn of(&self, terminal: usize) -> ChannelSeen {
        self.channels[terminal]
    }

    pub(super) fn set_terminals(&mut self, channels: Vec<ChannelSeen>) {
        self.channels = channels;
    }

    pub(super) fn save(&self, snapshot: &mut Snapshot) {
        let channels = self.channels.iter().flat_map(|one| one.to_array());
        snapshot.put_f64("twin/channels", channels.collect());
        snapshot.put_f64("twin/correlation", self.sums.to_vec());
    }

    /// Restores it. Snapshots of version 1 have none of it.
    pub(super) fn restore(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        const CHANNELS: &str = "twin/channels";
        if snapshot.len_of(CHANNELS) == 0 {
            return Ok(());
        }
        let n = self.channels.len() * ChannelSeen::N_NUMBERS;
        let numbers = snapshot.f64(CHANNELS, n)?.as_chunks().0;
        let channel = |one: &[f64; ChannelSeen::N_NUMBERS]| ChannelSeen::from_array(CHANNELS, *one);
        self.channels = numbers.iter().map(channel).collect::<Result<_, _>>()?;
        let sums = snapshot.finite_f64("twin/correlation", 2)?;
        self.sums = [sums[0], sums[1]];
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rand_distr::{Distribution, StandardNormal};

    use super::*;
    use crate::rng::Seed;
    use crate::wireless::{Complex, autoregressive_step};

    const OBSERVED: ChannelOptions =
        ChannelOptions { source: ChannelSource::Observed, memory: 200.0, prior: 200.0 };

    /// Channels of 20 terminals with mean gains 1, 2, 3, ... after this number of rounds.
    fn watched(rho: f64, assumed: f64, rounds: usize) -> Channels {
        let mut rng = Seed::new(4).stream("channels");
        let mut complex = || {
            let mut part = || -> f64 { StandardNormal.sample(&mut rng) };
            let half = std::f64::consts::FRAC_1_SQRT_2;
            Complex { re: half * part(), im: half * part() }
        };
        let mut fades: Vec<Complex> = (0..20).map(|_| complex()).collect();
        let mut channels = Channels::new(20, assumed, OBSERVED);
        for _ in 0..rounds {
            let totals = fades.iter().enumerate().map(|(n, h)| (n + 1) as f64 * h.power());
            channels.watch(totals.collect::<Vec<_>>().into_iter());
            fades.iter_mut().for_each(|h| *h = autoregressive_step(*h, rho, complex()));
        }
        channels
    }

    #[test]
    fn correlation_and_mean_gains_are_found_whatever_was_assumed() {
        for (rho, assumed) in [(0.9, 0.5), (0.5, 0.9), (0.0, 0.9)] {
            let channels = watched(rho, assumed, 600);
            let found = channels.rho(assumed);
            assert!((found * found - rho * rho).abs() < 0.08, "{found} of {rho}");
            let error =
                |n: usize| (channels.split(n, 1.0, n as f64 + 1.0).0 / (n as f64 + 1.0)).ln();
            let mean = (0..20).map(error).sum::<f64>() / 20.0;
            assert!(mean.abs() < 0.15, "{mean}");
        }
    }

    #[test]
    fn before_anything_was_observed_the_assumption_holds_and_the_gain_is_what_is_seen() {
        let channels = Channels::new(2, 0.9, OBSERVED);
        assert!((channels.rho(0.9) - 0.9).abs() < 1e-12);
        assert_eq!(channels.split(0, 2.0, 0.5), (1.0, 1.0));
        let reported = Channels::new(2, 0.9, ChannelOptions::default());
        assert_eq!((reported.rho(0.7), reported.split(0, 2.0, 0.5)), (0.7, (2.0, 0.5)));
    }

    #[test]
    fn how_a_product_was_split_does_not_matter() {
        let mut one = watched(0.9, 0.9, 30);
        let mut other = one.clone();
        one.watch((0..20).map(|n| 3.0 * f64::from(n + 1)));
        other.watch((0..20).map(|n| f64::from(n + 1) * 3.0));
        assert_eq!(one, other);
        assert_eq!(one.split(4, 10.0, 0.4), one.split(4, 1.0, 4.0));
    }

    #[test]
    fn what_was_seen_comes_back_and_forged_numbers_are_refused() {
        let channels = watched(0.9, 0.9, 12);
        let mut snapshot = Snapshot::default();
        channels.save(&mut snapshot);
        let mut back = Channels::new(20, 0.9, OBSERVED);
        back.restore(&snapshot).unwrap();
        assert_eq!(back, channels);
        for (name, values) in
            [("twin/channels", vec![-1.0; 60]), ("twin/correlation", vec![f64::NAN; 2])]
        {
            let mut forged = snapshot.clone();
            forged.put_f64(name, values);
            assert!(back.restore(&forged).unwrap_err().to_string().contains(name));
        }
        assert!(back.restore(&Snapshot::default()).is_ok(), "version 1 has none");
    }
}
