//! Cuts and intervals for the least time to the bound: blocks in turns, cuts by Dinkelbach.

use super::desk::Desk;
use crate::allocate::solve::{Fraction, Latency, best_interval, descend, dinkelbach};

/// Numbers of one planning problem.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Instance {
    /// Cuts that each terminal may choose, ascending.
    pub options: Vec<Vec<usize>>,
    /// For each of them: forward and up, down and backward, exchange of its copy both ways.
    pub times: Vec<Vec<[f64; 3]>>,
    /// Share of the model's parameters in layers 1 to l, from l = 0.
    pub weight: Vec<f64>,
    /// Time between edge and cloud if the edge servers end at layer l, from l = 1; empty if there
    /// are no edge servers.
    pub crossing_s: Vec<f64>,
    /// Exchange of a copy of the whole model between edge and cloud, both ways.
    pub model_s: f64,
    /// Drift of the whole model per squared interval over what the bound leaves; none if unknown,
    /// which means averaging every round.
    pub drift: Option<f64>,
    /// No interval is longer.
    pub longest: u64,
}

/// The solution.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Solution {
    /// Cut of each terminal.
    pub cuts: Vec<usize>,
    /// Last layer of the edge servers; without them the deepest cut.
    pub edge: usize,
    /// Rounds between averages of the terminals' and of the edge servers' copies.
    pub every: [u64; 2],
    /// Latency to the bound, up to a common factor.
    pub latency: f64,
}

/// A choice: an option per terminal, then the edge servers' last layer.
pub(super) type Choice = Vec<usize>;

impl Instance {
    fn has_edges(&self) -> bool {
        !self.crossing_s.is_empty()
    }

    /// The deepest cut of a choice.
    fn own(&self, choice: &[usize]) -> usize {
        let cuts = self.options.iter().zip(choice).map(|(options, &pick)| options[pick]);
        cuts.max().unwrap_or(1)
    }

    /// Where the edge servers end, if they are asked to end at `wanted`.
    fn edge(&self, own: usize, wanted: usize) -> usize {
        if self.has_edges() { wanted.max(own) } else { own }
    }

    /// The slowest of each kind of time over the terminals.
    fn slowest(&self, choice: &[usize]) -> [f64; 3] {
        let mut most = [0.0f64; 3];
        for (times, &pick) in self.times.iter().zip(choice) {
            for (most, time) in most.iter_mut().zip(times[pick]) {
                *most = most.max(time);
            }
        }
        most
    }

    /// Quantities that depend on both intervals: times of every round and of the exchanges, drifts.
    fn parts(&self, slowest: [f64; 3], own: usize, wanted: usize) -> (f64, [f64; 2], [f64; 2]) {
        let edge = self.edge(own, wanted);
        let [first, second, exchange] = slowest;
        let between = self.weight[edge] - self.weight[own];
        let crossing = if self.has_edges() { self.crossing_s[edge - 1] } else { 0.0 };
        let drift = self.drift.unwrap_or(0.0);
        (
            first + second + crossing,
            [exchange, self.model_s * between],
            [drift * self.weight[own], drift * between],
        )
    }

    /// Numerator and denominator of the latency of a choice.
    pub(super) fn fraction(&self, choice: &[usize], every: [u64; 2]) -> (f64, f64) {
        let wanted = choice[choice.len() - 1];
        self.fraction_at(self.slowest(choice), self.own(choice), wanted, every)
    }

    /// The same from the slowest times, the deepest cut and the end of the edge servers.
    pub(super) fn fraction_at(
        &self,
        slowest: [f64; 3],
        own: usize,
        wanted: usize,
        every: [u64; 2],
    ) -> (f64, f64) {
        let (round, exchange, drift) = self.parts(slowest, own, wanted);
        let (mut over, mut under) = (round, 1.0);
        for tier in 0..2 {
            let steps = every[tier] as f64;
            over += exchange[tier] / steps;
            under -= if every[tier] > 1 { drift[tier] * steps * steps } else { 0.0 };
        }
        (over, under)
    }

    /// The best interval of each tier, one after the other, the other held.
    fn intervals(&self, choice: &[usize], mut every: [u64; 2]) -> [u64; 2] {
        if self.drift.is_none() {
            return [1, 1];
        }
        let (slowest, own) = (self.slowest(choice), self.own(choice));
        let (round, exchange, drift) = self.parts(slowest, own, choice[choice.len() - 1]);
        for _ in 0..10 {
            let before = every;
            for tier in 0..2 {
                let other = 1 - tier;
                let steps = every[other] as f64;
                let lost = if every[other] > 1 { drift[other] * steps * steps } else { 0.0 };
                let latency = Latency {
                    every: round + exchange[other] / steps,
                    exchange: exchange[tier],
                    slack: 1.0 - lost,
                    drift: drift[tier],
                };
                every[tier] = best_interval(&latency, self.longest);
            }
            if every == before {
                break;
            }
        }
        every
    }

    /// The choice with the least latency at these intervals.
    fn cuts(&self, every: [u64; 2]) -> (Fraction<Choice>, Vec<f64>) {
        let mut coordinates: Vec<Vec<usize>> =
            self.options.iter().map(|options| (0..options.len()).collect()).collect();
        let edges = if self.has_edges() { (1..self.weight.len() - 1).collect() } else { vec![1] };
        coordinates.push(edges);
        let starts = self.starts(coordinates.last().map_or(1, |edges| edges[edges.len() - 1]));
        let measured = |choice: Choice| {
            let (over, under) = self.fraction(&choice, every);
            Fraction { choice, over, under }
        };
        let first = starts.iter().cloned().map(measured).filter(|one| one.under > 0.0);
        let first = first.min_by(|a, b| a.ratio().total_cmp(&b.ratio()));
        let Some(first) = first else { return (measured(starts[0].clone()), Vec::new()) };
        dinkelbach(first, |lambda| {
            let ends = starts.iter().map(|start| {
                let mut desk = Desk::new(self, every, lambda, start.clone());
                let worth = desk.worth();
                descend(&mut desk, &coordinates, worth);
                desk.choice
            });
            let ends = ends.map(measured).filter(|one| one.under > 0.0);
            let value = |one: &Fraction<Choice>| one.over - lambda * one.under;
            let best = ends.min_by(|a, b| value(a).total_cmp(&value(b)));
            best.unwrap_or_else(|| measured(starts[0].clone()))
        })
    }

    /// All terminals as near as possible to one depth, for every depth and both ends of the edge.
    fn starts(&self, last: usize) -> Vec<Choice> {
        let mut depths: Vec<usize> = self.options.iter().flatten().copied().collect();
        depths.sort_unstable();
        depths.dedup();
        let at = |depth: usize, edge: usize| -> Choice {
            let near =
                |options: &Vec<usize>| options.iter().rposition(|&cut| cut <= depth).unwrap_or(0);
            self.options.iter().map(near).chain([edge]).collect()
        };
        let edges = if self.has_edges() { vec![1, last] } else { vec![1] };
        depths
            .iter()
            .flat_map(|&depth| edges.iter().map(move |&edge| (depth, edge)))
            .map(|(depth, edge)| at(depth, edge))
            .collect()
    }

    fn solution(&self, choice: &[usize], every: [u64; 2], latency: f64) -> Solution {
        let cuts = self.options.iter().zip(choice).map(|(options, &pick)| options[pick]).collect();
        let edge = self.edge(self.own(choice), choice[choice.len() - 1]);
        Solution { cuts, edge, every, latency }
    }
}

/// Intervals and cuts in turns, from short and from long intervals; the best end counts.
pub(super) fn solve(instance: &Instance) -> Solution {
    let longest = instance.longest;
    let mut best: Option<Solution> = None;
    let starts: &[u64] = if instance.drift.is_some() { &[1, 4, 16, 64] } else { &[1] };
    for &start in starts {
        let mut every = [start.min(longest); 2];
        let mut found = instance.cuts(every).0;
        for _ in 0..20 {
            let next = instance.intervals(&found.choice, every);
            if next == every && found.under > 0.0 {
                break;
            }
            every = next;
            found = instance.cuts(every).0;
        }
        let latency = if found.under > 0.0 { found.ratio() } else { f64::INFINITY };
        if best.as_ref().is_none_or(|best| latency < best.latency) {
            best = Some(instance.solution(&found.choice, every, latency));
        }
    }
    best.expect("at least one start")
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::allocate::solve::instances::{power_of_ten, repeatable};

    /// Times of a terminal at each cut: deeper cuts send less and compute and exchange more.
    fn times(n_cuts: usize) -> impl Strategy<Value = Vec<[f64; 3]>> {
        let factors = vec((power_of_ten(-0.1, 0.1), power_of_ten(-1.0, 0.5)), n_cuts);
        (power_of_ten(-2.0, 1.0), power_of_ten(-2.0, 0.0), factors).prop_map(
            |(radio, speed, factors)| {
                let at = |(cut, (sent, exchanged)): (usize, (f64, f64))| {
                    let depth = cut as f64;
                    let (flow, work) = (radio * sent / depth, speed * depth);
                    [work + flow, flow + 2.0 * work, radio * depth * exchanged]
                };
                (1..).zip(factors).map(at).collect::<Vec<_>>()
            },
        )
    }

    /// A few terminals, a few cuts, with edge servers or without.
    fn instance(n: usize, n_cuts: usize, edges: bool) -> impl Strategy<Value = Instance> {
        let crossings = vec(power_of_ten(-3.0, 0.0), if edges { n_cuts } else { 0 });
        let (model, drift) = (power_of_ten(-2.0, 1.0), power_of_ten(-5.0, -0.5));
        (vec(times(n_cuts), n), crossings, model, drift).prop_map(
            move |(times, crossing_s, model, drift)| Instance {
                options: vec![(1..=n_cuts).collect(); n],
                times,
                weight: (0..=n_cuts + 1).map(|layer| layer as f64 / (n_cuts + 1) as f64).collect(),
                crossing_s,
                model_s: if edges { model } else { 0.0 },
                drift: Some(drift),
                longest: 60,
            },
        )
    }

    /// At most three terminals, and cuts in this range, without edge servers.
    fn small(most_cuts: usize) -> impl Strategy<Value = Instance> {
        (1..=3_usize, 2..=most_cuts).prop_flat_map(|(n, n_cuts)| instance(n, n_cuts, false))
    }

    fn choices(instance: &Instance) -> Vec<Choice> {
        let mut all: Vec<Choice> = vec![vec![]];
        for options in &instance.options {
            let longer = |choice: &Choice| {
                let with = |pick| [choice.clone(), vec![pick]].concat();
                (0..options.len()).map(with).collect::<Vec<_>>()
            };
            all = all.iter().flat_map(longer).collect();
        }
        let edges: Vec<usize> =
            if instance.has_edges() { (1..instance.weight.len() - 1).collect() } else { vec![1] };
        let with = |choice: &Choice| {
            let with = |edge: &usize| [choice.clone(), vec![*edge]].concat();
            edges.iter().map(with).collect::<Vec<_>>()
        };
        all.iter().flat_map(with).collect()
    }

    fn ratio(instance: &Instance, choice: &[usize], every: [u64; 2]) -> f64 {
        let (over, under) = instance.fraction(choice, every);
        if under > 0.0 { over / under } else { f64::INFINITY }
    }

    proptest! {
        #![proptest_config(repeatable(150))]

        #[test]
        fn cuts_at_given_intervals_are_the_best_of_all(instance in small(5)) {
            for every in [[1, 1], [3, 1], [8, 1]] {
                let (found, lambdas) = instance.cuts(every);
                let all = choices(&instance);
                let least = all.iter().map(|choice| ratio(&instance, choice, every));
                let least = least.fold(f64::INFINITY, f64::min);
                if least.is_finite() {
                    prop_assert!((found.ratio() / least - 1.0).abs() < 1e-9, "{every:?}");
                    prop_assert!(lambdas.windows(2).all(|pair| pair[1] < pair[0]));
                }
            }
        }

        #[test]
        fn cuts_and_intervals_together_are_the_best_of_all(instance in small(4)) {
            let all = choices(&instance);
            let each = |choice: &Choice| {
                let at = |every| ratio(&instance, choice, [every, 1]);
                (1..=instance.longest).map(at).fold(f64::INFINITY, f64::min)
            };
            let least = all.iter().map(each).fold(f64::INFINITY, f64::min);
            let found = solve(&instance).latency;
            prop_assert!((found / least - 1.0).abs() < 1e-9, "{found}, best {least}");
        }
    }

    proptest! {
        #![proptest_config(repeatable(40))]

        #[test]
        fn three_tiers_come_within_a_percent_of_the_best_of_all(
            instance in instance(2, 3, true),
        ) {
            let instance = Instance { longest: 30, ..instance };
            let mut least = f64::INFINITY;
            for choice in choices(&instance) {
                for own in 1..=30 {
                    for edge in 1..=30 {
                        least = least.min(ratio(&instance, &choice, [own, edge]));
                    }
                }
            }
            let found = solve(&instance).latency;
            prop_assert!(found >= least * (1.0 - 1e-12));
            prop_assert!(found / least - 1.0 < 0.01, "{found}, best {least}");
        }

        #[test]
        fn a_free_exchange_is_made_every_round(instance in instance(3, 4, false)) {
            let mut instance = instance;
            instance.times.iter_mut().flatten().for_each(|times| times[2] = 0.0);
            prop_assert_eq!(solve(&instance).every[0], 1);
        }

        #[test]
        fn before_anything_is_known_everything_is_averaged_every_round(
            instance in instance(3, 4, true),
        ) {
            prop_assert_eq!(solve(&Instance { drift: None, ..instance }).every, [1, 1]);
        }
    }
}
