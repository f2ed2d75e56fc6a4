//! The least energy with which terminals finish at a given time: band, power and cut.
//!
//! Given the finishing time, the rate of a terminal is fixed: all its bits over the time that its
//! computation leaves. So is its sending time, and its power falls with its bandwidth,
//! p(b) = s b (2^(r/b) - 1) with s the noise density over the channel gain. Energy is convex in the
//! bandwidth, so one price on the band and one bandwidth per terminal at that price solve it: with
//! x = r ln 2 / b the condition is (x - 1) e^x = price / (s t) - 1, which is Lambert's W. Cuts are
//! discrete: at a price every terminal takes its cheapest one, and what the price leaves undecided is
//! settled by changing one cut at a time.
//!
//! Fading is held during the round, and both directions have the same rate.

use super::curve::{Curve, Power, clearing_price, share};
use crate::units::{Hertz, Joules, Seconds, Watts};

/// One way in which a terminal can do its part: a cut with what it costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CutChoice {
    /// The cut.
    pub cut: usize,
    /// Everything that crosses the air, both ways.
    pub bits: f64,
    /// The part of it that the terminal sends.
    pub sent_bits: f64,
    /// Time of computation.
    pub computation: Seconds,
    /// Energy of computation.
    pub compute: Joules,
    /// Requirement of the deadline, if it has to be met with a margin.
    pub sure: Option<Sure>,
}

/// A deadline that is met for sure. The power of a terminal is the larger of the one with which it
/// finishes at the common time and the one with which this holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sure {
    /// Noise over gain that is not exceeded.
    pub noise_over_gain: f64,
    /// Time that the computation surely leaves until the deadline.
    pub time: Seconds,
}

/// A terminal that takes part.
#[derive(Clone, Debug, PartialEq)]
pub struct Participant {
    /// Noise power spectral density over the channel gain, fading included, in W/Hz.
    pub noise_over_gain: f64,
    /// The cuts that fit its memory, in ascending order.
    pub choices: Vec<CutChoice>,
}

/// The participants, their finishing time and their options.
#[derive(Clone, Debug, PartialEq)]
pub struct LeastEnergy {
    /// The terminals.
    pub participants: Vec<Participant>,
    /// The band that they share.
    pub band: Hertz,
    /// Largest transmit power.
    pub power: Watts,
    /// All have finished by then.
    pub finish: Seconds,
}

/// The resources of a terminal and its energy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Allocation {
    /// The cut.
    pub cut: usize,
    /// Bandwidth.
    pub bandwidth: Hertz,
    /// Transmit power.
    pub power: Watts,
    /// Energy, computation included.
    pub joules: Joules,
}

impl LeastEnergy {
    /// The least energy: bandwidths, powers and cuts are free. None if not all can finish in time.
    pub fn solve(&self) -> Option<Vec<Allocation>> {
        self.solve_over(&self.curves(Power::Least, |_, _| true)?)
    }

    /// The same at full power: bandwidths and cuts are free.
    pub fn at_full_power(&self) -> Option<Vec<Allocation>> {
        self.solve_over(&self.curves(Power::Full, |_, _| true)?)
    }

    /// The same with an even band: powers and cuts are free.
    pub fn with_even_band(&self) -> Option<Vec<Allocation>> {
        let share = self.band.0 / self.participants.len() as f64;
        let best = |curves: &Vec<Curve>| {
            let able = curves.iter().filter(|curve| curve.least <= share);
            let found = able.min_by(|a, b| a.joules(share).total_cmp(&b.joules(share)))?;
            Some(found.allocation(share))
        };
        self.curves(Power::Least, |_, _| true)?.iter().map(best).collect()
    }

    /// The same with one cut for all: bandwidths and powers are free. A terminal that cannot hold the
    /// cut takes the deepest below it, else its first. The best of all cuts is returned.
    pub fn with_single_cut(&self) -> Option<Vec<Allocation>> {
        let mut cuts: Vec<usize> = (self.participants.iter())
            .flat_map(|one| one.choices.iter().map(|choice| choice.cut))
            .collect();
        cuts.sort_unstable();
        cuts.dedup();
        let at = |cut: usize| {
            let wanted = |one: &Participant, choice: &CutChoice| {
                let below = one.choices.iter().rev().find(|other| other.cut <= cut);
                let chosen = below.or(one.choices.first());
                chosen.is_some_and(|chosen| chosen.cut == choice.cut)
            };
            self.solve_over(&self.curves(Power::Least, wanted)?)
        };
        let found = cuts.into_iter().filter_map(at);
        found.min_by(|a, b| total_joules(a).0.total_cmp(&total_joules(b).0))
    }

    /// The earliest time at which all can finish, up to `latest`: at full power, with the cuts that
    /// need the least band.
    pub fn earliest(&self, latest: Seconds) -> Option<Seconds> {
        let possible = |finish: f64| {
            let tried = Self { finish: Seconds(finish), ..self.clone() };
            let curves = tried.curves(Power::Least, |_, _| true);
            curves.is_some_and(|curves| {
                curves.iter().map(|own| narrowest(own)).sum::<f64>() <= self.band.0
            })
        };
        if !possible(latest.0) {
            return None;
        }
        let (mut low, mut high) = (0.0, latest.0);
        while high - low > 1e-9 * high {
            let middle = 0.5 * (low + high);
            if possible(middle) { high = middle } else { low = middle }
        }
        Some(Seconds(high))
    }

    /// The least bandwidth with which all finish in time, at full power, whatever the band.
    pub fn least_bandwidth(&self) -> Option<Hertz> {
        let unlimited = Self { band: Hertz(f64::MAX), ..self.clone() };
        let curves = unlimited.curves(Power::Least, |_, _| true)?;
        Some(Hertz(curves.iter().map(|own| narrowest(own)).sum()))
    }

    /// The energies of every terminal at its requested cuts, if it can finish in
    /// time. `None` if some terminal has none.
    fn curves(
        &self,
        mode: Power,
        wanted: impl Fn(&Participant, &CutChoice) -> bool,
    ) -> Option<Vec<Vec<Curve>>> {
        let of = |one: &Participant| {
            let choices = one.choices.iter().filter(|choice| wanted(one, choice));
            let curve = |choice: &CutChoice| Curve::new(self, one.noise_over_gain, *choice, mode);
            let curves: Vec<Curve> = choices.filter_map(curve).collect();
            (!curves.is_empty()).then_some(curves)
        };
        self.participants.iter().map(of).collect()
    }

    fn solve_over(&self, curves: &[Vec<Curve>]) -> Option<Vec<Allocation>> {
        if curves.iter().map(|own| narrowest(own)).sum::<f64>() > self.band.0 {
            return None;
        }
        if curves.iter().all(|own| own.len() == 1) {
            return self.share(&pick(curves, &vec![0; curves.len()]));
        }
        let mut chosen = self.cheapest(curves);
        let mut best = self.share(&pick(curves, &chosen))?;
        // Changing one cut at a time, until no change saves energy.
        let mut improved = true;
        while improved {
            improved = false;
            for n in 0..curves.len() {
                for other in 0..curves[n].len() {
                    if other == chosen[n] {
                        continue;
                    }
                    let mut tried = chosen.clone();
                    tried[n] = other;
                    let Some(found) = self.share(&pick(curves, &tried)) else { continue };
                    if total_joules(&found).0 < total_joules(&best).0 * (1.0 - 1e-12) {
                        (chosen, best, improved) = (tried, found, true);
                    }
                }
            }
        }
        Some(best)
    }

    /// The cut of each terminal that is cheapest at the least price at which all fit into the band.
    fn cheapest(&self, curves: &[Vec<Curve>]) -> Vec<usize> {
        let at = |price: f64| -> Vec<(usize, f64)> {
            let best = |curves: &Vec<Curve>| {
                let cost = |curve: &Curve| {
                    let bandwidth = curve.at_price(price, self.band.0);
                    (curve.joules(bandwidth) + price * bandwidth, bandwidth)
                };
                let costs = curves.iter().map(cost).enumerate();
                let least = costs.min_by(|a, b| a.1.0.total_cmp(&b.1.0));
                least.map_or((0, 0.0), |(index, (_, bandwidth))| (index, bandwidth))
            };
            curves.iter().map(best).collect()
        };
        let used = |log: f64| at(log.exp()).iter().map(|(_, bandwidth)| bandwidth).sum::<f64>();
        let price = clearing_price(self.band.0, [f64::NAN; 2], used).exp();
        let chosen: Vec<usize> = at(price).into_iter().map(|(index, _)| index).collect();
        let least: f64 = pick(curves, &chosen).iter().map(|curve| curve.least).sum();
        if least <= self.band.0 {
            return chosen;
        }
        // The cuts that need the least band fit in any case.
        let first = |curves: &Vec<Curve>| {
            let places = 0..curves.len();
            places.min_by(|&a, &b| curves[a].least.total_cmp(&curves[b].least)).unwrap_or(0)
        };
        curves.iter().map(first).collect()
    }

    /// Bandwidths with the least energy where every terminal's cut is given.
    fn share(&self, curves: &[Curve]) -> Option<Vec<Allocation>> {
        let split = share(curves, self.band.0)?;
        Some(
            curves
                .iter()
                .zip(split)
                .map(|(curve, bandwidth)| curve.allocation(bandwidth))
                .collect(),
        )
    }
}

/// The least bandwidth of any cut.
fn narrowest(curves: &[Curve]) -> f64 {
    curves.iter().map(|one| one.least).fold(f64::INFINITY, f64::min)
}

/// The curves of the chosen cuts.
fn pick(curves: &[Vec<Curve>], chosen: &[usize]) -> Vec<Curve> {
    curves.iter().zip(chosen).map(|(curves, &index)| curves[index]).collect()
}

/// Energy of all terminals.
pub fn total_joules(allocations: &[Allocation]) -> Joules {
    allocations.iter().map(|one| one.joules).sum()
}

#[cfg(test)]
mod tests {
    use std::f64::consts::LN_2;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::allocate::solve::instances::{power_of_ten, repeatable};

    /// A terminal with three cuts, near or far, fast or slow.
    fn participant() -> impl Strategy<Value = Participant> {
        let factors = vec((0.5..1.5, 0.5..1.5), 3);
        (power_of_ten(9.5, 13.0), 0.2..1.0, factors).prop_map(|(loss, speed, factors)| {
            let choice = |(cut, (sent, spent)): (usize, (f64, f64))| {
                let sent_bits = 2e6 / cut as f64 * sent;
                CutChoice {
                    cut,
                    bits: 2.0 * sent_bits + 1e5 * cut as f64,
                    sent_bits,
                    computation: Seconds(0.05 * cut as f64 / speed),
                    compute: Joules(0.02 * cut as f64 * spent),
                    sure: None,
                }
            };
            let choices = [2, 3, 5].into_iter().zip(factors).map(choice).collect();
            Participant { noise_over_gain: 4e-20 * loss, choices }
        })
    }

    /// Three terminals that share a band.
    fn problem() -> impl Strategy<Value = LeastEnergy> {
        (vec(participant(), 3), 1.0..4.0).prop_map(|(participants, finish)| {
            let (band, power, finish) = (Hertz(5e6), Watts(0.2), Seconds(finish));
            LeastEnergy { participants, band, power, finish }
        })
    }

    /// Whether the solver finds band, power and cuts as good as a search over all.
    fn is_least(problem: &LeastEnergy, found: &[Allocation]) -> Result<(), TestCaseError> {
        let split: Vec<f64> = found.iter().map(|one| one.bandwidth.0).collect();
        prop_assert!(split.iter().sum::<f64>() <= problem.band.0 * (1.0 + 1e-9));
        prop_assert!(found.iter().all(|one| one.power.0 <= 0.2));
        let place = |one: &Allocation| [2, 3, 5].iter().position(|&cut| cut == one.cut).unwrap();
        let cuts: Vec<usize> = found.iter().map(place).collect();
        let (total, checked) = (total_joules(found).0, joules(problem, &cuts, &split));
        prop_assert!((total / checked - 1.0).abs() < 1e-6, "{total}, checked {checked}");
        let brute = brute_force(problem);
        prop_assert!(total <= brute * (1.0 + 1e-6), "{total}, brute force {brute}");
        prop_assert!(total >= brute * (1.0 - 1e-4), "{total}, brute force {brute}");
        Ok(())
    }

    /// Energy at this split with these cuts; infinite if some terminal is late or needs more power.
    fn joules(problem: &LeastEnergy, cuts: &[usize], split: &[f64]) -> f64 {
        let one = |n: usize| {
            let Participant { noise_over_gain, choices } = &problem.participants[n];
            let choice = choices[cuts[n]];
            let time = problem.finish.0 - choice.computation.0;
            if time <= 0.0 {
                return f64::INFINITY;
            }
            let rate = choice.bits / time;
            let power = noise_over_gain * split[n] * ((rate / split[n]).exp2() - 1.0);
            let joules = choice.compute.0 + power * choice.sent_bits / rate;
            if power <= problem.power.0 * (1.0 + 1e-9) { joules } else { f64::INFINITY }
        };
        (0..cuts.len()).map(one).sum()
    }

    /// The least energy over all cuts and a fine grid of splits, refined around the best.
    fn brute_force(problem: &LeastEnergy) -> f64 {
        let mut best = f64::INFINITY;
        for code in 0..27 {
            let cuts = [code % 3, code / 3 % 3, code / 9];
            let (mut centre, mut width) = ([1.0 / 3.0; 2], 1.0 / 3.0);
            for _ in 0..12 {
                let (mut least, mut place) = (f64::INFINITY, centre);
                for i in -20i32..=20 {
                    for j in -20i32..=20 {
                        let a = centre[0] + width * f64::from(i) / 20.0;
                        let b = centre[1] + width * f64::from(j) / 20.0;
                        if a <= 0.0 || b <= 0.0 || a + b >= 1.0 {
                            continue;
                        }
                        let split = [a, b, 1.0 - a - b].map(|share| share * problem.band.0);
                        let found = joules(problem, &cuts, &split);
                        if found < least {
                            (least, place) = (found, [a, b]);
                        }
                    }
                }
                (centre, width) = (place, width * 0.4);
                best = best.min(least);
            }
        }
        best
    }

    proptest! {
        #![proptest_config(repeatable(30))]

        #[test]
        fn band_power_and_cut_are_those_of_a_brute_force_search(problem in problem()) {
            match problem.solve() {
                Some(found) => is_least(&problem, &found)?,
                None => prop_assert!(brute_force(&problem).is_infinite()),
            }
        }
    }

    proptest! {
        #![proptest_config(repeatable(200))]

        #[test]
        fn an_even_band_full_power_or_a_single_cut_never_cost_less(problem in problem()) {
            let least = problem.solve();
            prop_assume!(least.is_some());
            let least = total_joules(&least.unwrap()).0 * (1.0 - 1e-9);
            for (name, found) in [
                ("even band", problem.with_even_band()),
                ("full power", problem.at_full_power()),
                ("single cut", problem.with_single_cut()),
            ] {
                let Some(found) = found else { continue };
                prop_assert!(total_joules(&found).0 >= least, "{name}");
                let band: f64 = found.iter().map(|one| one.bandwidth.0).sum();
                prop_assert!(band <= problem.band.0 * (1.0 + 1e-9), "{name}");
            }
        }

        #[test]
        fn at_full_power_all_finish_in_time_and_no_split_saves_energy(problem in problem()) {
            let found = problem.at_full_power();
            prop_assume!(found.is_some());
            let found = found.unwrap();
            let energy = |split: &[f64]| -> f64 {
                let one = |n: usize| {
                    let participant = &problem.participants[n];
                    let choice = participant.choices.iter().find(|one| one.cut == found[n].cut);
                    let choice = choice.unwrap();
                    let ratio = 0.2 / (participant.noise_over_gain * split[n]);
                    let rate = split[n] * ratio.ln_1p() / LN_2;
                    let time = choice.computation.0 + choice.bits / rate;
                    let joules = choice.compute.0 + 0.2 * choice.sent_bits / rate;
                    if time <= problem.finish.0 * (1.0 + 1e-9) { joules } else { f64::INFINITY }
                };
                (0..split.len()).map(one).sum()
            };
            let split: Vec<f64> = found.iter().map(|one| one.bandwidth.0).collect();
            let own = energy(&split);
            prop_assert!((own / total_joules(&found).0 - 1.0).abs() < 1e-9);
            for (from, to) in [(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)] {
                let mut moved = split.clone();
                let part = 1e-3 * moved[from];
                moved[from] -= part;
                moved[to] += part;
                prop_assert!(energy(&moved) >= own * (1.0 - 1e-9), "{from} to {to}");
            }
        }

        #[test]
        fn the_earliest_time_is_just_possible(problem in problem()) {
            let earliest = problem.earliest(Seconds(10.0));
            prop_assume!(earliest.is_some());
            let earliest = earliest.unwrap();
            let at = |factor: f64| LeastEnergy { finish: earliest * factor, ..problem.clone() };
            prop_assert!(at(1.0 + 1e-6).solve().is_some() && at(1.0 - 1e-6).solve().is_none());
        }
    }

    proptest! {
        #![proptest_config(repeatable(50))]

        #[test]
        fn a_terminal_that_cannot_finish_in_time_makes_it_impossible(problem in problem()) {
            // Less than the computation of the first cut of the fastest terminal.
            let late = LeastEnergy { finish: Seconds(0.05), ..problem.clone() };
            prop_assert_eq!(late.solve(), None);
            let mut weak = problem;
            weak.participants[1].noise_over_gain = 1.0;
            prop_assert_eq!(weak.solve(), None);
            prop_assert_eq!(weak.with_even_band(), None);
        }
    }

    /// A thousand instances with the least radio energy that a general convex solver finds, as
    /// `tests/reference/least_energy.py` writes them.
    const REFERENCE: &str = include_str!("../../../tests/reference/least_energy.txt");

    fn reference() -> Vec<(LeastEnergy, f64)> {
        let mut instances: Vec<(LeastEnergy, f64)> = Vec::new();
        for line in REFERENCE.lines().filter(|line| !line.starts_with('#')) {
            let numbers = line.split_whitespace().map(|word| word.parse().expect("a number"));
            let numbers: Vec<f64> = numbers.collect();
            let [a, b, c, d] = numbers[..] else { panic!("four numbers: {line}") };
            if !line.starts_with(' ') {
                let (band, power, finish) = (Hertz(a), Watts(b), Seconds(c));
                let problem = LeastEnergy { participants: Vec::new(), band, power, finish };
                instances.push((problem, d));
                continue;
            }
            let (bits, sent_bits, computation) = (b, c, Seconds(d));
            let (compute, sure) = (Joules(0.0), None);
            let choice = CutChoice { cut: 1, bits, sent_bits, computation, compute, sure };
            let one = Participant { noise_over_gain: a, choices: vec![choice] };
            instances.last_mut().expect("an instance").0.participants.push(one);
        }
        instances
    }

    #[test]
    fn band_and_power_are_those_of_a_general_convex_solver() {
        let instances = reference();
        assert_eq!(instances.len(), 1000);
        for (index, (problem, joules)) in instances.iter().enumerate() {
            let found = problem.solve().expect("the reference has a solution");
            let error = total_joules(&found).0 / joules - 1.0;
            assert!(error.abs() < 1e-3, "instance {index}: {error}");
            let band: f64 = found.iter().map(|one| one.bandwidth.0).sum();
            assert!(band <= problem.band.0 * (1.0 + 1e-9), "instance {index}");
        }
    }

    #[test]
    fn the_power_is_the_larger_of_the_one_in_time_and_the_sure_one() {
        let mut raised = 0;
        for (problem, joules) in reference().into_iter().step_by(10) {
            let mut sure = problem.clone();
            for one in &mut sure.participants {
                let choice = &mut one.choices[0];
                let noise_over_gain = 1.6 * one.noise_over_gain;
                let time = (problem.finish - choice.computation) * 1.3;
                choice.sure = Some(Sure { noise_over_gain, time });
            }
            let Some(found) = sure.solve() else { continue };
            for (given, one) in found.iter().zip(&sure.participants) {
                let (choice, b) = (one.choices[0], given.bandwidth.0);
                let power =
                    |noise: f64, time: f64| noise * b * (choice.bits / time * LN_2 / b).exp_m1();
                let likely = power(one.noise_over_gain, (problem.finish - choice.computation).0);
                let surely = choice.sure.map(|sure| power(sure.noise_over_gain, sure.time.0));
                let wanted = likely.max(surely.unwrap_or(0.0));
                assert!((given.power.0 / wanted - 1.0).abs() < 1e-6, "{given:?}");
                raised += usize::from(wanted > likely);
            }
            assert!(total_joules(&found).0 >= joules * (1.0 - 1e-4));
        }
        assert!(raised > 20, "{raised}");
    }
}
