//! ASFL: individual cuts and bandwidths for the least latency, in turns.

use super::published::{Planner, Setup};
use super::solve::{Need, finish_together};
use crate::round::{Decision, Observation};
use crate::snapshot::Persist;
use crate::units::{Hertz, Seconds};

/// ASFL (Xu et al. 2024): every terminal takes part; cuts and bandwidths are optimised alternately, each step
/// solved exactly, until the slowest terminal no longer gets faster.
pub struct Asfl {
    setup: Setup,
}

/// Result of the alternation.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Turns {
    /// Cut of each terminal.
    pub cuts: Vec<usize>,
    /// Bandwidth of each terminal.
    pub bandwidths: Vec<Hertz>,
    /// Time of the slowest after every half-step.
    pub slowest_s: Vec<f64>,
}

impl Asfl {
    /// ASFL on a problem.
    pub fn new(setup: Setup) -> Self {
        Self { setup }
    }
}

/// The options of one terminal: its requirements at each of its cuts.
pub(super) type Options = Vec<(usize, Need)>;

/// The options of these terminals.
pub(super) fn options(
    setup: &Setup,
    seen: &Observation,
    among: &[usize],
    aggregates: bool,
) -> Vec<Options> {
    let option =
        |n: usize, cut: usize| (cut, setup.need(seen, n, &setup.job(seen, n, cut, aggregates)));
    let of =
        |&n: &usize| setup.fitting_cuts(seen, n).into_iter().map(|cut| option(n, cut)).collect();
    among.iter().map(of).collect()
}

/// Cuts and bandwidths in turns from an even split; `None` if a link has no capacity.
pub(super) fn alternate(options: &[Options], band: Hertz) -> Option<Turns> {
    let even = band / options.len().max(1) as f64;
    let mut bandwidths = vec![even; options.len()];
    let mut slowest_s: Vec<f64> = Vec::new();
    let mut picks: Vec<usize> = Vec::new();
    // Every full turn is faster than the one before; a few turns suffice.
    for _ in 0..30 {
        let chosen = best_cuts(options, &bandwidths);
        let needs: Vec<Need> =
            options.iter().zip(&chosen).map(|(options, &pick)| options[pick].1).collect();
        let at = |(need, b): (&Need, &Hertz)| need.finish(*b);
        let half = needs.iter().zip(&bandwidths).map(at).fold(0.0, f64::max);
        let (Seconds(finish), split) = finish_together(&needs, band)?;
        let before = slowest_s.last().copied().unwrap_or(f64::INFINITY);
        if !picks.is_empty() && finish >= before * (1.0 - 1e-12) {
            break;
        }
        slowest_s.extend([half, finish]);
        (picks, bandwidths) = (chosen, split);
    }
    let cuts = options.iter().zip(&picks).map(|(options, &pick)| options[pick].0).collect();
    Some(Turns { cuts, bandwidths, slowest_s })
}

fn best_cuts(options: &[Options], bandwidths: &[Hertz]) -> Vec<usize> {
    let fastest = |(options, &bandwidth): (&Options, &Hertz)| {
        let time = |pick: &usize| options[*pick].1.finish(bandwidth);
        (0..options.len()).min_by(|a, b| time(a).total_cmp(&time(b))).unwrap_or(0)
    };
    options.iter().zip(bandwidths).map(fastest).collect()
}

impl Persist for Asfl {}

impl Planner for Asfl {
    fn plan(&mut self, seen: &Observation, among: &[usize]) -> Decision {
        let setup = &self.setup;
        let alive: Vec<usize> = among.iter().copied().filter(|&n| !setup.dead(seen, n)).collect();
        let band = setup.band(seen, &alive, seen.aggregates);
        let options = options(setup, seen, &alive, seen.aggregates);
        let turns = alternate(&options, band).filter(|_| !alive.is_empty());
        let Some(Turns { cuts, bandwidths, .. }) = turns else {
            let first = setup.fastest(seen, among);
            let cut = setup.fitting_cuts(seen, first)[0];
            let mut decision =
                setup.decision(seen, [(first, setup.problem.cost.limits.bandwidth, cut)]);
            decision.fallback = true;
            return decision;
        };
        let chosen = alive.iter().zip(bandwidths).zip(&cuts).map(|((&n, b), &cut)| (n, b, cut));
        let mut decision = setup.decision(seen, chosen);
        decision.fallback =
            alive.len() < among.len() || alive.iter().any(|&n| !setup.fits(seen, n));
        decision
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::allocate::solve::instances::{power_of_ten, repeatable};
    use crate::allocate::solve::{Channel, finish_at};
    use crate::wireless::RateModel;

    /// The options of a terminal: deeper cuts send less and compute more.
    fn options(n_cuts: usize) -> impl Strategy<Value = Options> {
        let sent = vec(power_of_ten(4.8, 5.5), n_cuts);
        (power_of_ten(5.5, 10.0), power_of_ten(-1.0, 1.0), sent).prop_map(
            move |(strength_hz, speed, sent)| {
                let channel = Channel { strength_hz, model: RateModel::Held };
                let option = |(cut, sent): (usize, f64)| {
                    let bits = sent * (n_cuts - cut + 1) as f64;
                    (cut, Need { bits, fixed_s: 0.1 * speed * cut as f64, channel, down: None })
                };
                (1..).zip(sent).map(option).collect::<Options>()
            },
        )
    }

    /// The joint optimum: the least time at which the cheapest option of each fits the band.
    fn global(options: &[Options], band: Hertz) -> f64 {
        let fits = |finish: f64| {
            let least = |options: &Options| {
                let need = |option: &(usize, Need)| {
                    finish_at(&[option.1], Hertz(1e15), Seconds(finish)).map(|b| b[0].0)
                };
                options.iter().filter_map(need).fold(f64::INFINITY, f64::min)
            };
            options.iter().map(least).sum::<f64>() <= band.0
        };
        let (mut low, mut high) = (0.0, 1e6);
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            if fits(middle) { high = middle } else { low = middle }
        }
        high
    }

    fn brute(options: &[Options], band: Hertz) -> f64 {
        let n_choices: usize = options.iter().map(Vec::len).product();
        let time = |mut code: usize| {
            let pick = |options: &Options| {
                let need = options[code % options.len()].1;
                code /= options.len();
                need
            };
            let needs: Vec<Need> = options.iter().map(pick).collect();
            finish_together(&needs, band).map_or(f64::INFINITY, |(finish, _)| finish.0)
        };
        (0..n_choices).map(time).fold(f64::INFINITY, f64::min)
    }

    /// At most three terminals and five cuts.
    fn small() -> impl Strategy<Value = Vec<Options>> {
        (1..=3_usize, 1..=5_usize).prop_flat_map(|(n, n_cuts)| vec(options(n_cuts), n))
    }

    proptest! {
        #![proptest_config(repeatable(300))]

        #[test]
        fn the_alternation_reaches_the_optimum_of_all_choices_on_small_instances(
            options in small(),
        ) {
            let band = Hertz(2e6);
            let (best, joint) = (brute(&options, band), global(&options, band));
            prop_assert!((joint / best - 1.0).abs() < 1e-9, "{joint}, {best}");
            let found = *alternate(&options, band).unwrap().slowest_s.last().unwrap();
            prop_assert!((found / best - 1.0).abs() < 1e-9, "{found}, best {best}");
        }
    }

    proptest! {
        #![proptest_config(repeatable(90))]

        #[test]
        fn more_band_more_power_less_to_send_or_a_faster_device_never_raise_the_optimum(
            options in small(),
        ) {
            let band = Hertz(2e6);
            let changed = |change: fn(&mut Need)| {
                let mut better = options.clone();
                better.iter_mut().flatten().for_each(|(_, need)| change(need));
                brute(&better, band)
            };
            let most = brute(&options, band) * (1.0 + 1e-12);
            prop_assert!(brute(&options, band * 1.5) <= most);
            prop_assert!(changed(|need| need.channel.strength_hz *= 2.0) <= most);
            prop_assert!(changed(|need| need.bits *= 0.5) <= most);
            prop_assert!(changed(|need| need.fixed_s *= 0.5) <= most);
        }

        #[test]
        fn the_slowest_never_gets_slower_over_half_steps(options in vec(options(8), 20)) {
            let turns = alternate(&options, Hertz(2e7)).unwrap();
            let steps = &turns.slowest_s;
            let rises = steps.windows(2).any(|pair| pair[1] > pair[0] * (1.0 + 1e-12));
            prop_assert!(!rises, "{steps:?}");
            let joint = global(&options, Hertz(2e7));
            prop_assert!(*steps.last().unwrap() >= joint * (1.0 - 1e-9));
        }
    }
}
