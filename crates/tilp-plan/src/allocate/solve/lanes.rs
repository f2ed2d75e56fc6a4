//! The same split of band and power as in [`super::LeastEnergy`], for sixteen candidates at once:
//! single precision, a fixed number of steps, no branches.
//!
//! With rho the rate in nats a second, gamma the ratio of gain to noise, and x = rho / b, the power is
//! (b / gamma) (e^x - 1). At a price of the band, x is the root of (x - 1) e^x + 1 = price times
//! gamma over the sending time, and energy plus price times bandwidth is the energy of an unlimited
//! band times e^x.

use crate::lanes::{LANES, Lanes, all_zero, exp2, ln, vectorised};

/// e^x.
#[inline(always)]
fn exp(x: f32) -> f32 {
    exp2(x * std::f32::consts::LOG2_E)
}

/// e^x - 1, without loss of digits near zero.
#[inline(always)]
pub fn exp_m1(x: f32) -> f32 {
    let small = x
        * (1.0
            + x * (0.5
                + x * (1.0 / 6.0 + x * (1.0 / 24.0 + x * (1.0 / 120.0 + x * (1.0 / 720.0))))));
    let large = exp(x) - 1.0;
    if x < 0.5 { small } else { large }
}

// The functions below take all lanes at once in short loops. The compiler does not vectorise one long
// loop around all steps.

/// e^x of every lane.
#[inline(always)]
pub fn exps(x: &Lanes) -> Lanes {
    let mut found = [0.0; LANES];
    for lane in 0..LANES {
        found[lane] = exp(x[lane]);
    }
    found
}

/// Of every lane the x of (x - 1) e^x + 1 = `price`, by three steps of Halley's method.
#[inline(always)]
pub fn exponents(price: &Lanes) -> Lanes {
    let (mut bounded, mut x) = ([0.0; LANES], [0.0; LANES]);
    for lane in 0..LANES {
        let price = if price[lane] > 1e-12 { price[lane] } else { 1e-12 };
        let root = (2.0 * price).sqrt();
        let start = ln(1.0 + root + 0.3 * price);
        // The logarithm of a number near one has no digits left; its series has.
        x[lane] = if root < 1e-3 { root } else { start };
        bounded[lane] = price;
    }
    for _ in 0..3 {
        for lane in 0..LANES {
            x[lane] = halley(x[lane], bounded[lane]);
        }
    }
    x
}

/// One step toward the root of (x - 1) e^x + 1 = `price`.
#[inline(always)]
fn halley(x: f32, price: f32) -> f32 {
    let power = exp(x);
    let small = x * x * (0.5 + x * (1.0 / 3.0 + x * (0.125 + x * (1.0 / 30.0 + x / 144.0))));
    let large = (x - 1.0) * power + 1.0;
    let error = (if x < 0.5 { small } else { large }) - price;
    let slope = x * power;
    x - error / (slope - 0.5 * error * (x + 1.0) / x)
}

/// Of every lane the largest x with (e^x - 1) / x = `ratio`, which is the largest power over the least
/// of an unlimited band; zero if the largest power does not suffice.
#[inline(always)]
pub fn most_exponents(ratio: &Lanes) -> Lanes {
    let (mut bounded, mut x) = ([0.0; LANES], [0.0; LANES]);
    for lane in 0..LANES {
        let least = if ratio[lane] > 1.0001 { ratio[lane] } else { 1.0001 };
        bounded[lane] = if least < 1e30 { least } else { 1e30 };
        // Above the root of a convex function: Newton's steps come down to it.
        let log = ln(bounded[lane]);
        x[lane] = log + ln(1.0 + 1.5 * log);
    }
    for _ in 0..4 {
        for lane in 0..LANES {
            let grown = exp_m1(x[lane]);
            x[lane] -= (grown - bounded[lane] * x[lane]) / (grown - (bounded[lane] - 1.0));
        }
    }
    for lane in 0..LANES {
        x[lane] = if ratio[lane] > 1.0001 { x[lane] } else { 0.0 };
    }
    x
}

/// What sixteen candidates have one terminal send in a round.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C, align(64))]
pub struct DemandLanes {
    /// One for terminals that take part, zero for the others.
    pub scheduled: Lanes,
    /// Rate in nats a second, rho.
    pub rate: Lanes,
    /// Gain over noise and sending time: times the price of the band it is the price of `exponent`.
    pub weight: Lanes,
    /// Largest x that the largest power allows.
    pub most: Lanes,
    /// Bandwidth, the result.
    pub bandwidth: Lanes,
}

impl DemandLanes {
    /// Nothing.
    pub const ZERO: Self = Self {
        scheduled: [0.0; LANES],
        rate: [0.0; LANES],
        weight: [0.0; LANES],
        most: [0.0; LANES],
        bandwidth: [0.0; LANES],
    };
}

vectorised! {
    /// Shares the band of every lane among those that take part, with the least energy. `log_price` is
    /// a first guess of the logarithm of the price, and holds the price found afterwards.
    pub fn share_lanes(
        demands: &mut [DemandLanes],
        band: &Lanes,
        turns: usize,
        log_price: &mut Lanes,
    ) {
        for turn in 0..=turns {
            let price = exps(log_price);
            let (mut used, mut slope) = ([1e-6; LANES], [1e-9; LANES]);
            for one in demands.iter_mut() {
                if all_zero(&one.scheduled) {
                    one.bandwidth = [0.0; LANES];
                    continue;
                }
                let DemandLanes { scheduled, rate, weight, most, .. } = *one;
                let (mut bandwidth, mut scaled) = ([0.0; LANES], [0.0; LANES]);
                for lane in 0..LANES {
                    scaled[lane] = price[lane] * weight[lane];
                }
                let x = exponents(&scaled);
                let grown = exps(&x);
                for lane in 0..LANES {
                    let is_bound = x[lane] > most[lane];
                    let bound = if is_bound { most[lane] } else { x[lane] };
                    let own = scheduled[lane] * rate[lane] / (bound + 1e-9);
                    let steep = own * scaled[lane] / (x[lane] * x[lane] * grown[lane]);
                    let steep = if is_bound { 0.0 } else { steep };
                    used[lane] += own;
                    slope[lane] += steep;
                    bandwidth[lane] = own;
                }
                one.bandwidth = bandwidth;
            }
            if turn == turns {
                for one in demands.iter_mut() {
                    for lane in 0..LANES {
                        one.bandwidth[lane] *= band[lane] / used[lane];
                    }
                }
                return;
            }
            for lane in 0..LANES {
                let step = ln(used[lane] / band[lane]) * used[lane] / slope[lane];
                let step = if step > 4.0 { 4.0 } else { step };
                let step = if step < -4.0 { -4.0 } else { step };
                let next = log_price[lane] + step;
                let next = if next > 60.0 { 60.0 } else { next };
                log_price[lane] = if next < -80.0 { -80.0 } else { next };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocate::solve::{CutChoice, LeastEnergy, Participant};
    use crate::rng::Seed;
    use crate::units::{Hertz, Joules, Seconds, Watts};
    use rand::RngExt;

    #[test]
    fn the_exponents_solve_their_equations() {
        for index in -60..60 {
            let price = 10f32.powf(index as f32 / 8.0);
            let x = f64::from(exponents(&[price; LANES])[5]);
            let back =
                if x < 0.01 { x * x / 2.0 + x * x * x / 3.0 } else { (x - 1.0) * x.exp() + 1.0 };
            assert!((back / f64::from(price) - 1.0).abs() < 2e-3, "{price}: {x} {back}");
            let ratio = 1.001 + price;
            let x = f64::from(most_exponents(&[ratio; LANES])[5]);
            let back = x.exp_m1() / x;
            assert!((back / f64::from(ratio) - 1.0).abs() < 1e-3, "{ratio}: {x} {back}");
        }
        assert_eq!(most_exponents(&[0.9; LANES]), [0.0; LANES]);
    }

    #[test]
    fn sixteen_splits_at_once_are_those_of_the_exact_solver() {
        let mut rng = Seed::new(3).rng();
        let mut worst: f64 = 0.0;
        for _ in 0..60 {
            let (band, power, finish) = (10f64.powf(rng.random_range(6.3..8.0)), 0.2, 1.0);
            let n = rng.random_range(2..12);
            let mut participants = Vec::new();
            let mut demands = Vec::new();
            for _ in 0..n {
                let noise_over_gain = 4e-20 / 10f64.powf(rng.random_range(-13.0..-9.5));
                let sent_bits = 10f64.powf(rng.random_range(4.3..5.8));
                let (bits, computation) = (2.1 * sent_bits, Seconds(rng.random_range(0.0..0.5)));
                let (compute, sure) = (Joules(0.0), None);
                let choice = CutChoice { cut: 1, bits, sent_bits, computation, compute, sure };
                let time = finish - computation.0;
                let rate = (bits * std::f64::consts::LN_2 / time) as f32;
                let sending = sent_bits / bits * time;
                let ratio = (power / noise_over_gain) as f32 / rate;
                demands.push(DemandLanes {
                    scheduled: [1.0; LANES],
                    rate: [rate; LANES],
                    weight: [(1.0 / (noise_over_gain * sending)) as f32; LANES],
                    most: most_exponents(&[ratio; LANES]),
                    bandwidth: [0.0; LANES],
                });
                participants.push(Participant { noise_over_gain, choices: vec![choice] });
            }
            let problem = LeastEnergy {
                participants,
                band: Hertz(band),
                power: Watts(power),
                finish: Seconds(finish),
            };
            let Some(exact) = problem.solve() else { continue };
            let mut price = [-18.0; LANES];
            share_lanes(&mut demands, &[band as f32; LANES], 6, &mut price);
            let joules = |n: usize, b: f64| {
                let choice = problem.participants[n].choices[0];
                let rate = choice.bits / (finish - choice.computation.0);
                let noise = problem.participants[n].noise_over_gain;
                let power = noise * b * (rate * std::f64::consts::LN_2 / b).exp_m1();
                power.min(0.2) * choice.sent_bits / rate
            };
            let total =
                |split: &dyn Fn(usize) -> f64| (0..n).map(|n| joules(n, split(n))).sum::<f64>();
            let found = total(&|n| f64::from(demands[n].bandwidth[3]));
            let least = total(&|n| exact[n].bandwidth.0);
            worst = worst.max((found / least - 1.0).abs());
        }
        assert!(worst < 1e-3, "{worst}");
    }
}
