//! Least bandwidth for a rate in closed form, and equal finishing time built on it.

use crate::units::{BitsPerSecond, Hertz, Seconds};
use crate::wireless::{RateModel, ergodic_efficiency};

/// A link at fixed power: its rate depends on the bandwidth alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Channel {
    /// Received power over noise density, p G |H|^2 / N_0; without |H|^2 if fading is averaged.
    pub strength_hz: f64,
    /// How fading enters the rate.
    pub model: RateModel,
}

/// Bandwidth need of one terminal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Need {
    /// Everything it sends and receives over its link.
    pub bits: f64,
    /// Time it needs whatever its bandwidth.
    pub fixed_s: f64,
    /// Its link.
    pub channel: Channel,
    /// What it receives at another rate over the same band, if the way down has one of its own.
    pub down: Option<Down>,
}

/// A downlink with its own rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Down {
    /// Everything it receives.
    pub bits: f64,
    /// The link of the way down.
    pub channel: Channel,
}

impl Channel {
    /// Rate at a bandwidth.
    pub fn rate(&self, bandwidth: Hertz) -> BitsPerSecond {
        if bandwidth.0 <= 0.0 {
            return BitsPerSecond(0.0);
        }
        let snr = self.strength_hz / bandwidth.0;
        let efficiency = match self.model {
            RateModel::Held => snr.ln_1p() / std::f64::consts::LN_2,
            RateModel::Averaged => ergodic_efficiency(snr),
        };
        BitsPerSecond(bandwidth.0 * efficiency)
    }

    /// The least bandwidth that gives this rate, up to `most`; none if even `most` does not.
    ///
    /// With A = R ln 2 / S and S = p h / N_0, the spectral efficiency solves ln(1 + x) = A x for
    /// the snr x, so b = S / x with x = -W(-A exp(-A)) / A - 1 on the lower branch of Lambert's W.
    /// The averaged rate has no such form; Newton's method finds its inverse from this one.
    pub fn least_bandwidth(&self, rate: BitsPerSecond, most: Hertz) -> Option<Hertz> {
        if rate.0 <= 0.0 {
            return Some(Hertz(0.0));
        }
        let a = rate.0 * std::f64::consts::LN_2 / self.strength_hz;
        // At a >= 1 the rate is beyond the power limit S / ln 2, which no bandwidth reaches.
        if !(a > 0.0 && a < 1.0) {
            return None;
        }
        let held = self.strength_hz * a / (lower_root(a) - (a - 1.0));
        // Averaging over the fading only lowers the rate.
        if held > most.0 {
            return None;
        }
        let bandwidth = match self.model {
            RateModel::Held => held,
            RateModel::Averaged => {
                let found = self.strength_hz * averaged_root(a, held / self.strength_hz);
                let close = (self.rate(Hertz(found)).0 / rate.0 - 1.0).abs() < 1e-10;
                if !close {
                    // Twice the bandwidth of held fading is always enough.
                    let enough = Hertz((4.0 * held).min(most.0));
                    return minimum_bandwidth(rate, enough, &|bandwidth| self.rate(bandwidth));
                }
                found
            }
        };
        (bandwidth <= most.0).then_some(Hertz(bandwidth))
    }

    /// The rate at a bandwidth, and by how much it grows with it, dR/db in bit/s per hertz.
    ///
    /// With x = S / b the slope is log2(1 + x) - x / ((1 + x) ln 2). Averaged over the fading, with
    /// y = 1 / x and f = exp(y) E1(y), it is (f + y f - 1) / ln 2, since f' = f - 1 / y.
    pub fn rate_and_slope(&self, bandwidth: Hertz) -> (BitsPerSecond, f64) {
        let rate = self.rate(bandwidth);
        let snr = self.strength_hz / bandwidth.0;
        let f = rate.0 / bandwidth.0 * std::f64::consts::LN_2;
        let slope = match self.model {
            RateModel::Held => f - snr / (1.0 + snr),
            RateModel::Averaged => f + f / snr - 1.0,
        };
        (rate, slope / std::f64::consts::LN_2)
    }
}

impl Need {
    /// When the terminal is done with this bandwidth.
    pub fn finish(&self, bandwidth: Hertz) -> f64 {
        let air = |bits: f64, channel: &Channel| match bits {
            0.0 => 0.0,
            bits => bits / channel.rate(bandwidth).0,
        };
        let up = self.fixed_s + air(self.bits, &self.channel);
        self.down.map_or(up, |down| up + air(down.bits, &down.channel))
    }

    /// The least bandwidth with which it finishes by then; `None` if `most` is not enough.
    pub fn by(&self, finish_s: f64, most: Hertz) -> Option<Hertz> {
        if self.down.is_some() {
            return self.by_search(finish_s, most);
        }
        let time = finish_s - self.fixed_s;
        if self.bits == 0.0 {
            return (time >= 0.0).then_some(Hertz(0.0));
        }
        if time <= 0.0 {
            return None;
        }
        self.channel.least_bandwidth(BitsPerSecond(self.bits / time), most)
    }

    /// The same where the ways have rates of their own: between what the way up needs alone and twice,
    /// four times ... that.
    fn by_search(&self, finish_s: f64, most: Hertz) -> Option<Hertz> {
        let alone = Self { down: None, ..*self }.by(finish_s, most)?;
        let (mut low, mut high) = (alone.0, alone.0.max(1.0).min(most.0));
        while self.finish(Hertz(high)) > finish_s {
            if high >= most.0 || high > 1e18 {
                return None;
            }
            (low, high) = (high, (2.0 * high).min(most.0));
        }
        while high - low > 1e-12 * high {
            let middle = 0.5 * (low + high);
            if middle <= low || middle >= high {
                break; // neighbouring floats
            }
            if self.finish(Hertz(middle)) > finish_s { low = middle } else { high = middle }
        }
        Some(Hertz(high))
    }
}

/// s = -1 - W(-a exp(-a)) on the lower branch, for 0 < a < 1.
///
/// Both branches solve v - ln v = a - ln a; the upper one is v = a, this is the one with v > 1.
/// Written in s = v - 1, nothing cancels when a is near 1.
fn lower_root(a: f64) -> f64 {
    let d = a - 1.0;
    // c - 1 of v - ln v = c; far from 1 the logarithm of a itself keeps more digits.
    let excess = if a < 0.5 { d - a.ln() } else { d - d.ln_1p() };
    let mut s = if excess < 1.0 {
        (2.0 * excess).sqrt() + 2.0 * excess / 3.0
    } else {
        excess + (1.0 + excess).ln()
    };
    let mut last = f64::INFINITY;
    for _ in 0..60 {
        let step = (s - s.ln_1p() - excess) * (1.0 + s) / s;
        // Steps shrink until only rounding is left.
        if !step.is_finite() || step.abs() >= last {
            break;
        }
        s -= step;
        last = step.abs();
    }
    s
}

/// The y with y exp(y) E1(y) = a, which is the averaged rate over its limit at b = y S; from a
/// start below it, where held fading would do. The left side is increasing and concave, so Newton
/// never overshoots, and its steps shrink until only rounding is left.
fn averaged_root(a: f64, start: f64) -> f64 {
    let (mut y, mut last) = (start, f64::INFINITY);
    for _ in 0..30 {
        let scaled = ergodic_efficiency(1.0 / y) * std::f64::consts::LN_2;
        let slope = scaled + y * scaled - 1.0;
        let step = (a - y * scaled) / slope;
        if !step.is_finite() || step.abs() >= last {
            break;
        }
        y += step.max(-0.5 * y);
        last = step.abs();
    }
    y
}

/// The least bandwidth up to `most` that gives a rate, by bisection; none if even `most` does not.
fn minimum_bandwidth(
    wanted: BitsPerSecond,
    most: Hertz,
    rate: &dyn Fn(Hertz) -> BitsPerSecond,
) -> Option<Hertz> {
    if rate(most) < wanted {
        return None;
    }
    let (mut low, mut high) = (0.0, most.0);
    while high - low > 1e-12 * high {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break; // neighbouring floats
        }
        if rate(Hertz(middle)) < wanted { low = middle } else { high = middle }
    }
    Some(Hertz(high))
}

/// Least bandwidths with which all finish at this time; `None` if they exceed the band.
pub fn finish_at(needs: &[Need], band: Hertz, finish: Seconds) -> Option<Vec<Hertz>> {
    let mut left = band.0;
    let mut split = Vec::with_capacity(needs.len());
    for need in needs {
        let bandwidth = need.by(finish.0, Hertz(left))?;
        left -= bandwidth.0;
        split.push(bandwidth);
    }
    Some(split)
}

/// The bandwidths with which all finish at the same, earliest possible time, with the whole band used.
/// A terminal without data to send, or one that finishes earlier than the others at any
/// bandwidth, does not delay the rest. `None` if a link has rate zero.
pub fn finish_together(needs: &[Need], band: Hertz) -> Option<(Seconds, Vec<Hertz>)> {
    let even = band / needs.len().max(1) as f64;
    let mut high = needs.iter().map(|need| need.finish(even)).fold(0.0, f64::max);
    if !high.is_finite() {
        return None;
    }
    // Rounding may make the even split miss its own time.
    high *= 1.0 + 1e-12;
    let low = needs.iter().map(|need| need.fixed_s).fold(0.0, f64::max);
    let high = crossing(low, high, 1e-13, |finish| excess(needs, band, finish));
    let mut best = finish_at(needs, band, Seconds(high))?;
    let used: f64 = best.iter().map(|bandwidth| bandwidth.0).sum();
    if used > 0.0 {
        best.iter_mut().for_each(|bandwidth| bandwidth.0 *= band.0 / used);
    }
    Some((Seconds(high), best))
}

/// The same; `None` if some terminal cannot finish by `latest`.
pub fn finish_together_by(
    needs: &[Need],
    band: Hertz,
    latest: Seconds,
) -> Option<(Seconds, Vec<Hertz>)> {
    finish_at(needs, band, latest)?;
    finish_together(needs, band)
}

/// Excess over the band of the bandwidth that all terminals need to finish at this time.
fn excess(needs: &[Need], band: Hertz, finish_s: f64) -> f64 {
    let unlimited = Hertz(f64::MAX);
    let each = needs.iter().map(|need| need.by(finish_s, unlimited).map_or(f64::INFINITY, |b| b.0));
    each.sum::<f64>() - band.0
}

/// Where a falling function stops being positive, between a place where it is and one where it is
/// not, to a share of the latter: false position with halving, and a bisection whenever that stalls.
pub(super) fn crossing(
    mut low: f64,
    mut high: f64,
    share: f64,
    falling: impl Fn(f64) -> f64,
) -> f64 {
    let (mut above, mut below) = (f64::INFINITY, falling(high));
    for turn in 0..200 {
        if high - low <= share * high.abs() {
            break;
        }
        let part = if above.is_finite() && turn % 3 != 2 { above / (above - below) } else { 0.5 };
        // A step inside, so that both ends keep moving.
        let middle = low + part.clamp(1e-3, 1.0 - 1e-3) * (high - low);
        if middle <= low || middle >= high {
            break; // neighbouring floats
        }
        let value = falling(middle);
        if value > 0.0 {
            (low, above, below) = (middle, value, 0.5 * below);
        } else {
            (high, below, above) = (middle, value, 0.5 * above);
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    use super::*;
    use crate::allocate::solve::instances::{power_of_ten, repeatable};

    fn held(strength_hz: f64) -> Channel {
        Channel { strength_hz, model: RateModel::Held }
    }

    fn need() -> impl Strategy<Value = Need> {
        (power_of_ten(4.0, 6.5), power_of_ten(-3.0, 0.0), power_of_ten(5.0, 11.0)).prop_map(
            |(bits, fixed_s, strength)| Need { bits, fixed_s, channel: held(strength), down: None },
        )
    }

    /// The same needs in every run of the tests.
    fn needs(n: usize) -> Vec<Need> {
        let mut runner = TestRunner::new(repeatable(1));
        vec(need(), n).new_tree(&mut runner).unwrap().current()
    }

    #[test]
    fn lamberts_w_and_bisection_agree() {
        for strength in [1e3, 1e6, 3.7e8, 1e13] {
            let channel = held(strength);
            let limit = strength / std::f64::consts::LN_2;
            for share in [1e-9, 1e-4, 0.1, 0.5, 0.9, 0.999, 0.999_999] {
                let rate = BitsPerSecond(share * limit);
                let closed = channel.least_bandwidth(rate, Hertz(1e30)).unwrap();
                let searched =
                    minimum_bandwidth(rate, Hertz(4.0 * closed.0), &|b| channel.rate(b)).unwrap();
                // Near the power limit the rate hardly depends on the bandwidth, so bisection on
                // rates cannot see more digits than these.
                let digits = if share > 0.99 { 1e-5 } else { 1e-9 };
                assert!((closed.0 / searched.0 - 1.0).abs() < digits, "{strength} {share}");
                assert!((channel.rate(closed).0 / rate.0 - 1.0).abs() < 1e-12);
            }
            assert_eq!(channel.least_bandwidth(BitsPerSecond(limit), Hertz(1e30)), None);
            assert_eq!(channel.least_bandwidth(BitsPerSecond(0.0), Hertz(1.0)), Some(Hertz(0.0)));
        }
        assert_eq!(held(0.0).least_bandwidth(BitsPerSecond(1.0), Hertz(1e9)), None);
    }

    #[test]
    fn newton_and_bisection_agree_on_averaged_fading() {
        for share in [1e-6, 0.01, 0.3, 0.8, 0.99] {
            let channel = Channel { strength_hz: 2e7, model: RateModel::Averaged };
            let rate = BitsPerSecond(share * 2e7 / std::f64::consts::LN_2);
            let newton = channel.least_bandwidth(rate, Hertz(1e12)).unwrap();
            let searched = minimum_bandwidth(rate, Hertz(1e12), &|b| channel.rate(b)).unwrap();
            assert!((newton.0 / searched.0 - 1.0).abs() < 1e-7, "{share}: {newton:?} {searched:?}");
        }
    }

    #[test]
    fn the_slope_is_that_of_the_rate() {
        for model in [RateModel::Held, RateModel::Averaged] {
            let channel = Channel { strength_hz: 3e6, model };
            for b in [1e3, 1e5, 3e6, 2e7] {
                let rate = |b: f64| channel.rate(Hertz(b)).0;
                let secant = (rate(1.001 * b) - rate(0.999 * b)) / (0.002 * b);
                let (same, slope) = channel.rate_and_slope(Hertz(b));
                assert_eq!(same.0, rate(b));
                assert!((slope / secant - 1.0).abs() < 1e-5, "{model:?} {b}");
            }
        }
    }

    proptest! {
        #![proptest_config(repeatable(100))]

        #[test]
        fn all_finish_within_1e_9_of_each_other_on_the_whole_band(needs in vec(need(), 1..=40)) {
            let (finish, split) = finish_together(&needs, Hertz(2e7)).unwrap();
            let used: f64 = split.iter().map(|b| b.0).sum();
            prop_assert!((used / 2e7 - 1.0).abs() < 1e-9);
            for (need, bandwidth) in needs.iter().zip(&split) {
                prop_assert!((need.finish(*bandwidth) / finish.0 - 1.0).abs() < 1e-9);
            }
        }

        #[test]
        fn a_time_that_cannot_be_met_is_refused_before_the_band_is_shared(
            needs in vec(need(), 8),
        ) {
            let (finish, split) = finish_together(&needs, Hertz(1e7)).unwrap();
            let by = |share: f64| finish_together_by(&needs, Hertz(1e7), finish * share);
            prop_assert_eq!(by(1.0 + 1e-9), Some((finish, split)));
            prop_assert_eq!(by(1.0 - 1e-9), None);
        }

        #[test]
        fn permuting_the_terminals_permutes_the_split(needs in vec(need(), 1..=12)) {
            let turned: Vec<Need> = needs.iter().rev().copied().collect();
            let (_, one) = finish_together(&needs, Hertz(1e7)).unwrap();
            let (_, two) = finish_together(&turned, Hertz(1e7)).unwrap();
            for (a, b) in one.iter().zip(two.iter().rev()) {
                prop_assert!((a.0 / b.0 - 1.0).abs() < 1e-9);
            }
        }

        #[test]
        fn more_band_more_power_less_to_send_or_a_faster_device_never_finish_later(
            needs in vec(need(), 12),
        ) {
            let finish =
                |needs: &[Need], band: f64| finish_together(needs, Hertz(band)).unwrap().0.0;
            let base = finish(&needs, 1e7);
            let changed = |change: fn(&mut Need)| {
                let mut better = needs.clone();
                better.iter_mut().for_each(change);
                finish(&better, 1e7)
            };
            prop_assert!(finish(&needs, 1.5e7) < base);
            prop_assert!(changed(|need| need.channel.strength_hz *= 2.0) < base);
            prop_assert!(changed(|need| need.bits *= 0.5) < base);
            prop_assert!(changed(|need| need.fixed_s *= 0.5) < base);
        }
    }

    #[test]
    fn without_terminals_any_time_can_be_met() {
        assert!(
            finish_together_by(&[], Hertz(1e7), Seconds(1.0)).is_some_and(|(_, b)| b.is_empty())
        );
    }

    #[test]
    fn it_beats_the_even_split_unless_all_are_alike() {
        let needs = needs(20);
        let even = Hertz(1e6);
        let (finish, _) = finish_together(&needs, Hertz(2e7)).unwrap();
        let slowest = needs.iter().map(|need| need.finish(even)).fold(0.0, f64::max);
        assert!(finish.0 < 0.999 * slowest);
        let alike = vec![needs[0]; 20];
        let (finish, split) = finish_together(&alike, Hertz(2e7)).unwrap();
        assert!((finish.0 / alike[0].finish(even) - 1.0).abs() < 1e-9);
        assert!(split.iter().all(|bandwidth| (bandwidth.0 / 1e6 - 1.0).abs() < 1e-9));
    }

    #[test]
    fn a_dead_link_has_no_common_time() {
        let mut needs = needs(3);
        needs[1].channel.strength_hz = 0.0;
        assert!(finish_together(&needs, Hertz(1e7)).is_none());
        needs[1].bits = 0.0;
        assert!(finish_together(&needs, Hertz(1e7)).is_some());
    }

    #[test]
    fn averaged_fading_is_searched_and_still_finishes_together() {
        let mut needs = needs(6);
        needs.iter_mut().for_each(|need| need.channel.model = RateModel::Averaged);
        let (finish, split) = finish_together(&needs, Hertz(1e7)).unwrap();
        for (need, bandwidth) in needs.iter().zip(&split) {
            assert!((need.finish(*bandwidth) / finish.0 - 1.0).abs() < 1e-8);
        }
    }

    #[test]
    fn with_a_way_down_of_its_own_the_least_bandwidth_finishes_just_in_time() {
        for (up, down, received) in [(2e6, 2e8, 1e5), (2e7, 1e6, 4e6), (3e6, 3e6, 0.0)] {
            let down = Some(Down { bits: received, channel: held(down) });
            let need = Need { bits: 1e6, fixed_s: 0.2, channel: held(up), down };
            let finish = 3.0;
            match need.by(finish, Hertz(1e9)) {
                Some(least) => {
                    assert!((need.finish(least) / finish - 1.0).abs() < 1e-9);
                    assert!(need.finish(Hertz(0.99 * least.0)) > finish);
                    assert!(need.by(finish, Hertz(0.9 * least.0)).is_none());
                }
                None => assert!(need.finish(Hertz(1e9)) > finish),
            }
        }
        // At the same rate both ways it is one link with all bits.
        let channel = held(5e6);
        let split =
            Need { bits: 6e5, fixed_s: 0.1, channel, down: Some(Down { bits: 4e5, channel }) };
        let whole = Need { bits: 1e6, down: None, ..split };
        let [split, whole] = [split, whole].map(|need| need.by(1.0, Hertz(1e9)).unwrap().0);
        assert!((split / whole - 1.0).abs() < 1e-9);
    }
}
