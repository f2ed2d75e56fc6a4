//! Sharing the band: least bandwidth for a rate, and equal finishing time.

use crate::units::{BitsPerSecond, Hertz, Seconds};

/// What one terminal needs of the band.
pub struct Demand<'a> {
    /// Everything it sends and receives.
    pub bits: f64,
    /// Time it needs whatever its bandwidth.
    pub fixed: Seconds,
    /// Its rate as a function of bandwidth: increasing, concave, zero at zero.
    pub rate: &'a dyn Fn(Hertz) -> BitsPerSecond,
}

/// The least bandwidth up to `most` that gives `rate` to a link; none if even `most` does not.
pub fn minimum_bandwidth(
    wanted: BitsPerSecond,
    most: Hertz,
    rate: &dyn Fn(Hertz) -> BitsPerSecond,
) -> Option<Hertz> {
    if wanted.0 <= 0.0 {
        return Some(Hertz(0.0));
    }
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

/// The bandwidths with which all terminals finish at the same, earliest possible time.
///
/// None if somebody cannot finish by `latest` even so. The band is used up entirely: what the
/// search leaves over is dealt out in proportion.
pub fn equal_finish(
    demands: &[Demand],
    band: Hertz,
    latest: Seconds,
) -> Option<(Seconds, Vec<Hertz>)> {
    let mut best = split_for(demands, band, latest)?;
    let (mut low, mut high) = (0.0, latest.0);
    while high - low > 1e-12 * high {
        let middle = 0.5 * (low + high);
        match split_for(demands, band, Seconds(middle)) {
            Some(split) => (best, high) = (split, middle),
            None => low = middle,
        }
    }
    let used: f64 = best.iter().map(|bandwidth| bandwidth.0).sum();
    if used > 0.0 {
        let stretch = band.0 / used;
        best.iter_mut().for_each(|bandwidth| bandwidth.0 *= stretch);
    }
    Some((Seconds(high), best))
}

/// Least bandwidths with which all finish by `finish`; none if they do not fit into the band.
fn split_for(demands: &[Demand], band: Hertz, finish: Seconds) -> Option<Vec<Hertz>> {
    let mut left = band.0;
    let mut split = Vec::with_capacity(demands.len());
    for demand in demands {
        let time = finish.0 - demand.fixed.0;
        if time <= 0.0 {
            return None;
        }
        let wanted = BitsPerSecond(demand.bits / time);
        let bandwidth = minimum_bandwidth(wanted, Hertz(left), demand.rate)?;
        left -= bandwidth.0;
        split.push(bandwidth);
    }
    Some(split)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rates with snr = `strength` at 1 MHz.
    fn link(strength: f64) -> impl Fn(Hertz) -> BitsPerSecond {
        move |b: Hertz| {
            let snr = if b.0 > 0.0 { strength * 1e6 / b.0 } else { 0.0 };
            BitsPerSecond(b.0 * snr.ln_1p() / std::f64::consts::LN_2)
        }
    }

    #[test]
    fn the_least_bandwidth_gives_exactly_the_rate() {
        let rate = link(3.0);
        for wanted in [1e3, 1e5, 2e6] {
            let bandwidth = minimum_bandwidth(BitsPerSecond(wanted), Hertz(1e8), &rate).unwrap();
            assert!((rate(bandwidth).0 / wanted - 1.0).abs() < 1e-9);
        }
        // The power limit: 3e6 / ln 2 bit/s, whatever the bandwidth.
        assert_eq!(minimum_bandwidth(BitsPerSecond(4.4e6), Hertz(1e12), &rate), None);
    }

    #[test]
    fn everybody_finishes_at_the_same_time_and_the_band_is_used_up() {
        let links = [link(30.0), link(1.0), link(0.2), link(5.0)];
        let demands: Vec<Demand> = (links.iter().enumerate())
            .map(|(n, rate)| Demand { bits: 1e5, fixed: Seconds(0.01 * n as f64), rate })
            .collect();
        let (finish, split) = equal_finish(&demands, Hertz(5e6), Seconds(60.0)).unwrap();
        let used: f64 = split.iter().map(|b| b.0).sum();
        assert!((used / 5e6 - 1.0).abs() < 1e-9);
        for (demand, bandwidth) in demands.iter().zip(&split) {
            let time = demand.fixed.0 + demand.bits / (demand.rate)(*bandwidth).0;
            assert!((time / finish.0 - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn identical_terminals_share_evenly_and_permuting_them_permutes_the_split() {
        let (strong, weak) = (link(9.0), link(0.5));
        let demand = |rate| Demand { bits: 1e5, fixed: Seconds(0.0), rate };
        let (_, even) =
            equal_finish(&[demand(&weak), demand(&weak)], Hertz(1e6), Seconds(60.0)).unwrap();
        assert!((even[0].0 / even[1].0 - 1.0).abs() < 1e-9);
        let (_, one) =
            equal_finish(&[demand(&strong), demand(&weak)], Hertz(1e6), Seconds(60.0)).unwrap();
        let (_, two) =
            equal_finish(&[demand(&weak), demand(&strong)], Hertz(1e6), Seconds(60.0)).unwrap();
        assert!((one[0].0 / two[1].0 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_terminal_that_cannot_make_it_is_reported() {
        let weak = link(0.001);
        let demands = [Demand { bits: 1e6, fixed: Seconds(0.0), rate: &weak }];
        assert!(equal_finish(&demands, Hertz(1e8), Seconds(5.0)).is_none());
    }
}
