//! Candidates that every plan tries: rounds of several sizes, each with its best finishing time.

use super::rule::{KNOBS, Rule, RuleLanes};
use crate::allocate::tilp::Tilp;
use crate::lanes::{LANES, Lanes};
use crate::twin::ActionLanes;

/// A size of the round with its best finishing time.
struct Scanned {
    size: usize,
    /// Logarithms: of the finishing time over the deadline, of the price of the band.
    time: f32,
    log_price: f32,
}

impl Tilp {
    /// Candidates with the same knobs at every step and unchanged worths. The first is the start of
    /// the search: its size is the nearest to `start_scheduled`. Also sets the price that rollouts
    /// start from.
    pub(super) fn suggestions(&self, rule: &mut Rule<'_>) -> Vec<Vec<f32>> {
        let n = rule.n_terminals();
        let mut sizes: Vec<usize> =
            rule.options.sizes.iter().copied().filter(|size| *size <= n).collect();
        if sizes.is_empty() {
            sizes.push(1);
        }
        let distance = |size: usize| (size as f64 / self.options.start_scheduled).ln().abs();
        sizes.sort_by(|&a, &b| distance(a).total_cmp(&distance(b)));
        let scanned: Vec<Scanned> = sizes.iter().map(|&size| scan(rule, size)).collect();
        rule.log_price = scanned[0].log_price;
        let suggestion = |one: &Scanned| {
            let mut step = vec![0.0; KNOBS + n];
            (step[0], step[1]) = ((one.size as f32).log2(), one.time);
            step.repeat(self.options.horizon)
        };
        scanned.iter().map(suggestion).collect()
    }
}

/// The best of sixteen finishing times: the one with the largest reward of the first round.
fn scan(rule: &Rule<'_>, size: usize) -> Scanned {
    let rollout = rule.rollout;
    let least = rule.options.least_time.log2();
    let times: Lanes =
        std::array::from_fn(|lane| least * (LANES - 1 - lane) as f32 / (LANES - 1) as f32);
    let mut numbers = vec![[0.0; LANES]; KNOBS + rule.n_terminals()];
    (numbers[0], numbers[1]) = ([(size as f32).log2(); LANES], times);
    let mut work = RuleLanes::default();
    work.log_price = [rule.log_price; LANES];
    let mut actions = vec![ActionLanes::ZERO; rule.n_terminals()];
    let mut futures = rollout.start().clone();
    rule.decode(&futures, 0, &numbers, &mut work, &mut actions);
    let mut rewards = [0.0; LANES];
    rollout.step(&mut futures, 0, &actions, &mut rewards);
    let value = |lane: usize| {
        let nobody = if futures.n_trained[lane] > 0.0 { 0.0 } else { 1.0 };
        rewards[lane] - nobody
    };
    let best = (0..LANES).max_by(|&a, &b| value(a).total_cmp(&value(b))).unwrap_or(LANES - 1);
    Scanned { size, time: times[best], log_price: work.log_price[best] }
}
