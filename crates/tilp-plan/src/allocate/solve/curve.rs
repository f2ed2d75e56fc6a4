//! Energy of one terminal as a function of its bandwidth.

use std::f64::consts::LN_2;

use super::bandwidth::{Channel, crossing};
use super::lambert::exponent;
use super::least_energy::{Allocation, CutChoice, LeastEnergy};
use crate::units::{BitsPerSecond, Hertz, Joules, Watts};
use crate::wireless::RateModel;

/// Whether the transmit power is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Power {
    /// The least power with which the terminal finishes in time.
    Least,
    /// The largest; the terminal finishes early if it can.
    Full,
}

/// A rate that a terminal has to reach over a link: noise over gain, s, and the rate, r.
#[derive(Clone, Copy, Debug)]
struct Demand {
    noise: f64,
    rate: f64,
}

impl Demand {
    /// None if the terminal has no time left, or not enough power whatever its bandwidth up to `band`.
    fn new(bits: f64, time: f64, noise: f64, problem: &LeastEnergy) -> Option<(Self, f64)> {
        if time <= 0.0 || bits <= 0.0 {
            return None;
        }
        let rate = bits / time;
        let channel = Channel { strength_hz: problem.power.0 / noise, model: RateModel::Held };
        let least = channel.least_bandwidth(BitsPerSecond(rate), problem.band)?.0;
        Some((Self { noise, rate }, least))
    }

    /// p(b) = s b (2^(r/b) - 1).
    fn power(&self, bandwidth: f64) -> f64 {
        self.noise * bandwidth * (self.rate * LN_2 / bandwidth).exp_m1()
    }

    /// Bandwidth at which p(b) times `sending` falls by `price` joules a hertz.
    fn at_price(&self, price: f64, sending: f64) -> f64 {
        self.rate * LN_2 / exponent(price / (self.noise * sending))
    }
}

/// Energy of a terminal at one cut as a function of its bandwidth.
#[derive(Clone, Copy, Debug)]
pub(super) struct Curve {
    choice: CutChoice,
    mode: Power,
    /// Requirement to finish in time.
    likely: Demand,
    /// Requirement to meet the deadline with the safety margin.
    sure: Option<Demand>,
    /// Largest power.
    power: f64,
    /// Least bandwidth, at which the largest power just suffices.
    pub least: f64,
}

impl Curve {
    /// None if it cannot finish in time whatever its bandwidth up to `band`.
    pub(super) fn new(
        problem: &LeastEnergy,
        noise: f64,
        choice: CutChoice,
        mode: Power,
    ) -> Option<Self> {
        let time = problem.finish.0 - choice.computation.0;
        let (likely, mut least) = Demand::new(choice.bits, time, noise, problem)?;
        let sure = match choice.sure {
            Some(sure) => {
                let (sure, band) =
                    Demand::new(choice.bits, sure.time.0, sure.noise_over_gain, problem)?;
                least = least.max(band);
                Some(sure)
            }
            None => None,
        };
        Some(Self { choice, mode, likely, sure, power: problem.power.0, least })
    }

    /// The larger of the power with which it finishes in time and the one that is sure.
    fn power_at(&self, bandwidth: f64) -> f64 {
        match self.mode {
            Power::Full => self.power,
            Power::Least => {
                let sure = self.sure.map_or(0.0, |sure| sure.power(bandwidth));
                self.likely.power(bandwidth).max(sure).min(self.power)
            }
        }
    }

    /// Rate at this power.
    fn rate(&self, bandwidth: f64, power: f64) -> f64 {
        bandwidth * (power / (self.likely.noise * bandwidth)).ln_1p() / LN_2
    }

    /// By how much the rate at full power grows with the bandwidth.
    fn slope(&self, bandwidth: f64) -> f64 {
        let ratio = self.power / (self.likely.noise * bandwidth);
        (ratio.ln_1p() - ratio / (1.0 + ratio)) / LN_2
    }

    /// By how much energy falls with the bandwidth, in joules a hertz, leaving the sure power aside.
    fn price_at(&self, bandwidth: f64) -> f64 {
        let sent = self.choice.sent_bits;
        match self.mode {
            Power::Least => {
                let Demand { noise, rate } = self.likely;
                let x = rate * LN_2 / bandwidth;
                let grown = if x < 1e-3 { 0.5 * x * x } else { (x - 1.0) * x.exp() + 1.0 };
                noise * sent / rate * grown
            }
            Power::Full => {
                let rate = self.rate(bandwidth, self.power);
                self.power * sent * self.slope(bandwidth) / rate.powi(2)
            }
        }
    }

    pub(super) fn joules(&self, bandwidth: f64) -> f64 {
        let power = self.power_at(bandwidth);
        let sending = self.choice.sent_bits / self.rate(bandwidth, power);
        self.choice.compute.0 + power * sending
    }

    /// Bandwidth at which energy falls by `price` joules a hertz, between the least and `most`.
    pub(super) fn at_price(&self, price: f64, most: f64) -> f64 {
        if self.choice.sent_bits <= 0.0 || self.least >= most {
            return self.least.min(most);
        }
        let wanted = match self.mode {
            Power::Least => self.at_price_with_least_power(price),
            Power::Full => self.at_price_with_full_power(price, most),
        };
        wanted.clamp(self.least, most)
    }

    fn at_price_with_least_power(&self, price: f64) -> f64 {
        let sent = self.choice.sent_bits;
        let wanted = self.likely.at_price(price, sent / self.likely.rate);
        match self.sure {
            // Where the sure power binds, the terminal finishes early: its sending time is shorter
            // and depends on the bandwidth. It is taken as it is at the bandwidth without it.
            Some(sure) if sure.power(wanted) > self.likely.power(wanted) => {
                let sending = sent / self.rate(wanted, sure.power(wanted).min(self.power));
                wanted.max(sure.at_price(price, sending))
            }
            _ => wanted,
        }
    }

    fn at_price_with_full_power(&self, price: f64, most: f64) -> f64 {
        let saving = |log: f64| self.price_at(log.exp());
        let [low, high] = [self.least, most].map(f64::ln);
        match price {
            _ if saving(low) <= price => self.least,
            _ if saving(high) >= price => most,
            _ => crossing(low, high, 1e-12, |log| saving(log) - price).exp(),
        }
    }

    pub(super) fn allocation(&self, bandwidth: f64) -> Allocation {
        Allocation {
            cut: self.choice.cut,
            bandwidth: Hertz(bandwidth),
            power: Watts(self.power_at(bandwidth)),
            joules: Joules(self.joules(bandwidth)),
        }
    }
}

/// Prices are searched over this range of logarithms around the band's own scale.
const LOG_PRICES: [f64; 2] = [-80.0, 40.0];

/// The least price, as a logarithm, at which what is `used` fits into the band. It is looked for
/// between two guesses if it is there.
pub(super) fn clearing_price(band: f64, guess: [f64; 2], used: impl Fn(f64) -> f64) -> f64 {
    let [least, most] = LOG_PRICES;
    let [low, high] = guess;
    let low = if low > least && low < most && used(low) > band { low } else { least };
    let high = if high > low && high < most && used(high) <= band { high } else { most };
    // Shifted, so that the accuracy is that of the price and not relative to its logarithm.
    let excess = |above: f64| (used(low + above) / band).ln();
    low + crossing(0.0, high - low, 1e-11, excess)
}

/// Logarithms of prices between which the band is used up, unless a least bandwidth binds: at an even
/// split the cheapest would give up band and the dearest take more.
fn guess(curves: &[Curve], band: f64) -> [f64; 2] {
    let even = band / curves.len() as f64;
    let prices = || curves.iter().map(|curve| curve.price_at(even).ln());
    [
        prices().fold(f64::INFINITY, f64::min) - 1e-3,
        prices().fold(f64::NEG_INFINITY, f64::max) + 1e-3,
    ]
}

/// Bandwidths with the least energy; none if the least bandwidths do not fit into the band.
pub(super) fn share(curves: &[Curve], band: f64) -> Option<Vec<f64>> {
    if curves.iter().map(|curve| curve.least).sum::<f64>() > band {
        return None;
    }
    let at = |log: f64| curves.iter().map(move |curve| curve.at_price(log.exp(), band));
    let price = clearing_price(band, guess(curves, band), |log| at(log).sum());
    let mut split: Vec<f64> = at(price).collect();
    // The remaining band goes to the terminals that have more than the least.
    let left = band - split.iter().sum::<f64>();
    let free: f64 = split.iter().zip(curves).map(|(b, curve)| b - curve.least).sum();
    if free > 0.0 && left > 0.0 {
        for (bandwidth, curve) in split.iter_mut().zip(curves) {
            *bandwidth += left * (*bandwidth - curve.least) / free;
        }
    }
    Some(split)
}
