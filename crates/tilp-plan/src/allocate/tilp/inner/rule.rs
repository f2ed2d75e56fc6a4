//! Turns the few numbers of a candidate into the actions of all terminals in a step.
//!
//! Size of the round, finishing time and prices are given. Every terminal takes the cut and the
//! compression of the least cost. The terminals with the largest worth less cost take part. The
//! band is shared for the least energy, and powers follow.

#![allow(clippy::needless_range_loop, reason = "lanes are indexed: several arrays move together")]

use super::InnerOptions;
use crate::allocate::solve::{
    DemandLanes, exp_m1_lane as exp_m1, exponents, exps, most_exponents, share_lanes,
};
use crate::lanes::{LANES, Lanes, all_zero, exp2, look_up, vectorised};
use crate::twin::{ActionLanes, COMPRESSION_LEVELS, Futures, RolloutTables, WorthLanes};

/// Numbers of a step that do not belong to a terminal.
pub(super) const KNOBS: usize = 4;

/// The data shared by all candidates of a plan.
pub(super) struct Rule<'a> {
    pub rollout: &'a RolloutTables,
    pub options: &'a InnerOptions,
    n_cuts: usize,
    /// Levels of compression to choose from.
    levels: Vec<usize>,
    /// Energy per bit of a pending upload.
    upload_joules: Vec<f32>,
    /// Logarithm of the price of the band that a step starts from.
    pub log_price: f32,
}

/// The data of the sixteen candidates of a group, and scratch memory.
#[derive(Default)]
pub(in crate::allocate::tilp) struct RuleLanes {
    demands: Vec<DemandLanes>,
    worths: WorthLanes,
    /// Worth less cost.
    pub nets: Vec<Lanes>,
    /// Logarithm of the price of the band in joules a hertz.
    pub log_price: Lanes,
}

/// Size, finishing time and prices of a step.
#[derive(Clone, Copy)]
pub(super) struct StepLanes {
    count: Lanes,
    pub finish: Lanes,
    noise_price: Lanes,
    joule_price: Lanes,
}

impl<'a> Rule<'a> {
    pub(super) fn new(
        rollout: &'a RolloutTables,
        options: &'a InnerOptions,
        n_cuts: usize,
    ) -> Self {
        let level = |share: &f32| {
            let last = (COMPRESSION_LEVELS - 1) as f32;
            ((share * last).round() as usize).min(COMPRESSION_LEVELS - 1)
        };
        let [_, band, _] = rollout.most();
        Self {
            rollout,
            options,
            n_cuts,
            levels: match options.levels.is_empty() {
                true => vec![COMPRESSION_LEVELS - 1],
                false => options.levels.iter().map(level).collect(),
            },
            upload_joules: (0..rollout.n_terminals()).map(|n| rollout.upload_joules(n)).collect(),
            // A hundredth of a joule for the whole band; each plan then replaces it by its own
            // start.
            log_price: (0.01 / band).ln(),
        }
    }

    pub(super) fn n_terminals(&self) -> usize {
        self.rollout.n_terminals()
    }

    /// The knobs of a step as quantities.
    pub(super) fn step_lanes(&self, knobs: &[Lanes]) -> StepLanes {
        let [deadline, ..] = self.rollout.most();
        let most = (self.n_terminals() as f32).log2();
        let least = self.options.least_time.log2();
        let mut found = StepLanes {
            count: [1.0; LANES],
            finish: [deadline; LANES],
            noise_price: [1.0; LANES],
            joule_price: [self.rollout.joule_price(); LANES],
        };
        for lane in 0..LANES {
            found.count[lane] = exp2(knobs[0][lane].clamp(0.0, most)).round();
            found.finish[lane] *= exp2(knobs[1][lane].clamp(least, 0.0));
            found.noise_price[lane] *= exp2(knobs[2][lane].clamp(-6.0, 6.0));
            found.joule_price[lane] *= exp2(knobs[3][lane].clamp(-6.0, 6.0));
        }
        found
    }

    /// The actions of sixteen candidates in a step.
    pub(super) fn decode(
        &self,
        futures: &Futures,
        step: usize,
        numbers: &[Lanes],
        work: &mut RuleLanes,
        actions: &mut [ActionLanes],
    ) {
        let (knobs, tilts) = numbers.split_at(KNOBS);
        let lanes = self.step_lanes(knobs);
        self.rollout.worths(futures, &lanes.count, &mut work.worths);
        // The first step is executed: its choices are made again, at the price of the first pass.
        let passes = if step == 0 { 2 } else { 1 };
        for _ in 0..passes {
            self.choose(futures, step, &lanes, tilts, work, actions);
            select(&work.nets, &lanes.count, actions);
            self.share(futures, step, &lanes.finish, work, actions);
        }
    }

    /// Sets cut and level of every terminal, and its worth less its cost.
    pub(super) fn choose(
        &self,
        futures: &Futures,
        step: usize,
        lanes: &StepLanes,
        tilts: &[Lanes],
        work: &mut RuleLanes,
        actions: &mut [ActionLanes],
    ) {
        work.nets.resize(self.n_terminals(), [0.0; LANES]);
        choose(self, futures, step, lanes, tilts, work, actions);
    }

    /// Shares the band among the scheduled terminals and sets their powers. Terminals that cannot
    /// finish in time at any bandwidth are removed.
    pub(super) fn share(
        &self,
        futures: &Futures,
        step: usize,
        finish: &Lanes,
        work: &mut RuleLanes,
        actions: &mut [ActionLanes],
    ) {
        work.demands.resize(self.n_terminals(), DemandLanes::ZERO);
        demand(self, futures, step, finish, work, actions);
        let band = self.rollout.free_band(futures, step, actions);
        share_lanes(&mut work.demands, &band, self.options.price_turns, &mut work.log_price);
        powers(self, step, work, actions);
    }
}

vectorised! {
    fn choose(
        rule: &Rule<'_>,
        futures: &Futures,
        step: usize,
        lanes: &StepLanes,
        tilts: &[Lanes],
        work: &mut RuleLanes,
        actions: &mut [ActionLanes],
    ) {
        let price = work.log_price.map(|log| exp2(log * std::f32::consts::LOG2_E));
        for n in 0..rule.n_terminals() {
            let found = cheapest(rule, futures, step, n, lanes, &price, &work.worths);
            let worth = work.worths.terminals[n];
            let one = &mut actions[n];
            let mut net = [0.0; LANES];
            for lane in 0..LANES {
                one.cut[lane] = found.cut[lane];
                one.level[lane] = found.level[lane];
                net[lane] = worth[lane] * exp2(tilts[n][lane]) - found.cost[lane];
            }
            work.nets[n] = net;
        }
    }
}

/// The cheapest way of a terminal to take part.
struct Cheapest {
    cost: Lanes,
    cut: Lanes,
    level: Lanes,
}

/// Cost of an impossible way.
const IMPOSSIBLE: f32 = 1e9;

#[inline(always)]
fn cheapest(
    rule: &Rule<'_>,
    futures: &Futures,
    step: usize,
    n: usize,
    lanes: &StepLanes,
    price: &Lanes,
    worths: &WorthLanes,
) -> Cheapest {
    let rollout = rule.rollout;
    let [_, _, most_power] = rollout.most();
    let (signal, radio, tables) =
        (rollout.signal(step, n), rollout.radio_factor(n), rollout.cut_tables(n));
    let aggregates = rollout.aggregates(step);
    let held = rollout.layer_bits(&futures.held[n]);
    let pending = rollout.layer_bits(&futures.pending[n]);
    let upload = rule.upload_joules[n] * rule.options.copy_price;
    let (factor, bit_price) = (rollout.joule_factor(n), rollout.bit_price());
    let share = worths.shares[n];
    let spared = spared(rule, step, n, lanes, &pending);
    let mut best = Cheapest { cost: [IMPOSSIBLE; LANES], cut: [0.0; LANES], level: [0.0; LANES] };
    let deepest = rollout.deepest_fitting(n);
    if tables.excess[0] > 0.0 && deepest == 0 {
        return best;
    }
    let middle = rule.levels[rule.levels.len() / 2];
    for cut in (0..rule.n_cuts).take(deepest + 1) {
        let (bits, seconds) = (rollout.cut_bits(cut), tables.seconds[cut]);
        let (joules, depth) = (tables.joules[cut], tables.depth[cut]);
        let [up, down, _] = rollout.sizes(cut, middle);
        let (mut more_up, mut more_down) = ([0.0; LANES], [0.0; LANES]);
        let (mut spread, mut time) = ([0.0; LANES], [0.0; LANES]);
        let (mut fixed, mut scaled) = ([0.0; LANES], [0.0; LANES]);
        for lane in 0..LANES {
            let delivered = if bits > pending[lane] { bits } else { pending[lane] };
            let later = rollout.message(delivered) - rollout.message(pending[lane]);
            more_up[lane] = if aggregates { rollout.message(delivered) } else { 0.0 };
            more_down[lane] = rollout.message(bits - held[lane]);
            let copy = if aggregates { 0.0 } else { later * upload };
            time[lane] = lanes.finish[lane] - seconds;
            let left = if time[lane] > 1e-4 { time[lane] } else { 1e-4 };
            let sent = up + more_up[lane];
            let sending = left * sent / (sent + down + more_down[lane]);
            scaled[lane] = price[lane] * signal / (radio * sending);
            fixed[lane] = lanes.joule_price[lane] * factor * (joules + copy)
                - spared[lane]
                - share[lane] * worths.depth[lane] * depth;
        }
        // `grown`: priced energy over that of an unlimited band. `spread`: power over its least.
        let x = exponents(&scaled);
        let grown = exps(&x);
        for lane in 0..LANES {
            spread[lane] = exp_m1(x[lane]) / x[lane];
        }
        for &level in &rule.levels {
            let [up, down, noise] = rollout.sizes(cut, level);
            for lane in 0..LANES {
                let sent = up + more_up[lane];
                let left = if time[lane] > 1e-4 { time[lane] } else { 1e-4 };
                let bits = sent + down + more_down[lane];
                let rate = bits * std::f32::consts::LN_2 / left;
                // The least power, on an unlimited band, as a share of the largest.
                let least = rate / (signal * most_power);
                let excess = least * spread[lane];
                let stretch = if excess > 1.0 { excess * excess } else { 1.0 };
                let radio = radio * sent * std::f32::consts::LN_2 / signal * grown[lane] * stretch;
                let harm = share[lane] * worths.noise[lane] * lanes.noise_price[lane] * noise;
                let joules = lanes.joule_price[lane] * factor * radio;
                let cost = fixed[lane] + joules + harm + bit_price * bits;
                let cost = if least < 0.98 { cost } else { IMPOSSIBLE };
                let cost = if time[lane] > 1e-4 { cost } else { IMPOSSIBLE };
                let is_better = cost < best.cost[lane];
                best.cost[lane] = if is_better { cost } else { best.cost[lane] };
                best.cut[lane] = if is_better { cut as f32 } else { best.cut[lane] };
                best.level[lane] = if is_better { level as f32 } else { best.level[lane] };
            }
        }
    }
    best
}

/// The saving if a terminal takes part in a round that aggregates. Otherwise it sends its pending
/// upload over a slice of the band at full power, and the round may wait for it.
#[inline(always)]
fn spared(rule: &Rule<'_>, step: usize, n: usize, lanes: &StepLanes, pending: &Lanes) -> Lanes {
    let rollout = rule.rollout;
    let mut spared = [0.0; LANES];
    if !rollout.aggregates(step) {
        return spared;
    }
    let [_, _, power] = rollout.most();
    let (seconds, closes) = (rollout.upload_seconds(rollout.signal(step, n)), rollout.closes());
    let (watts, waiting) = (power * rollout.radio_factor(n), rollout.waiting_price());
    for lane in 0..LANES {
        let sending = rollout.message(pending[lane]) * seconds;
        let sending = if sending < closes { sending } else { closes };
        let late = sending - lanes.finish[lane];
        let late = if late > 0.0 { late } else { 0.0 };
        let joules = rollout.joule_factor(n) * watts * sending;
        spared[lane] = lanes.joule_price[lane] * joules + waiting * late;
    }
    spared
}

/// An integer key with the same order as the numbers.
#[inline(always)]
fn key(number: f32) -> i32 {
    let bits = number.to_bits() as i32;
    bits ^ ((bits >> 31) & i32::MAX)
}

vectorised! {
    /// Schedules the `count` terminals with the largest nets, except impossible ones.
    fn select(nets: &[Lanes], count: &Lanes, actions: &mut [ActionLanes]) {
        // Bisection over all single-precision numbers: nets differ by orders of magnitude.
        let (mut low, mut high) = ([key(-0.5 * IMPOSSIBLE); LANES], [key(f32::MAX); LANES]);
        for _ in 0..32 {
            let mut middle = [0; LANES];
            for lane in 0..LANES {
                middle[lane] = (low[lane] & high[lane]) + ((low[lane] ^ high[lane]) >> 1);
            }
            let mut above = [0.0; LANES];
            for net in nets {
                for lane in 0..LANES {
                    above[lane] += if key(net[lane]) >= middle[lane] { 1.0 } else { 0.0 };
                }
            }
            for lane in 0..LANES {
                let enough = above[lane] >= count[lane];
                low[lane] = if enough { middle[lane] } else { low[lane] };
                high[lane] = if enough { high[lane] } else { middle[lane] };
            }
        }
        for (net, one) in nets.iter().zip(actions) {
            for lane in 0..LANES {
                one.scheduled[lane] = if key(net[lane]) >= low[lane] { 1.0 } else { 0.0 };
            }
        }
    }
}

/// Margin on the rate that meets the deadline.
const MARGIN: f32 = 1.002;

vectorised! {
    /// Sets how much the scheduled terminals have to send, and how fast.
    fn demand(
        rule: &Rule<'_>,
        futures: &Futures,
        step: usize,
        finish: &Lanes,
        work: &mut RuleLanes,
        actions: &mut [ActionLanes],
    ) {
        let rollout = rule.rollout;
        let [deadline, _, most_power] = rollout.most();
        for n in 0..rule.n_terminals() {
            let (one, demand) = (&mut actions[n], &mut work.demands[n]);
            if all_zero(&one.scheduled) {
                demand.scheduled = [0.0; LANES];
                continue;
            }
            rollout.job(futures, step, n, one);
            let tables = rollout.cut_tables(n);
            let [seconds, safe] = look_up([&tables.seconds, &tables.safe_seconds], &one.cut);
            let (signal, radio) = (rollout.signal(step, n), rollout.radio_factor(n));
            let safe_signal = rollout.safe_signal(n);
            let (sending, receiving, wanted) = (one.sending, one.receiving, one.scheduled);
            let mut found = DemandLanes::ZERO;
            let (mut ratio, mut safe_ratio) = ([0.0; LANES], [0.0; LANES]);
            let (mut time, mut safe_rate) = ([0.0; LANES], [0.0; LANES]);
            for lane in 0..LANES {
                let (sent, bits) = (sending[lane], sending[lane] + receiving[lane]);
                time[lane] = finish[lane] - seconds[lane];
                let left = if time[lane] > 1e-4 { time[lane] } else { 1e-4 };
                let safe_left = deadline - safe[lane];
                let safe_left = if safe_left > 1e-4 { safe_left } else { 1e-4 };
                found.rate[lane] = bits * std::f32::consts::LN_2 / left;
                safe_rate[lane] = MARGIN * bits * std::f32::consts::LN_2 / safe_left;
                ratio[lane] = most_power * signal / found.rate[lane];
                safe_ratio[lane] = most_power * safe_signal / safe_rate[lane];
                found.weight[lane] = signal * bits / (radio * left * sent);
            }
            found.most = most_exponents(&ratio);
            if step == 0 {
                let safe_most = most_exponents(&safe_ratio);
                for lane in 0..LANES {
                    // In units of the other bound: both are rates over a bandwidth.
                    let bound = safe_most[lane] * found.rate[lane] / safe_rate[lane];
                    let most = found.most[lane];
                    found.most[lane] = if bound < most { bound } else { most };
                }
            }
            for lane in 0..LANES {
                let is_able = found.most[lane] > 0.0 && time[lane] > 1e-4;
                found.scheduled[lane] = wanted[lane] * if is_able { 1.0 } else { 0.0 };
            }
            one.scheduled = found.scheduled;
            *demand = found;
        }
    }
}

vectorised! {
    /// Sets bandwidths and powers. A power is the one for the finishing time; in the first step it
    /// is at least the one that meets the deadline with the safety margin.
    fn powers(rule: &Rule<'_>, step: usize, work: &mut RuleLanes, actions: &mut [ActionLanes]) {
        let rollout = rule.rollout;
        let [deadline, _, most_power] = rollout.most();
        for n in 0..rule.n_terminals() {
            let (one, demand) = (&mut actions[n], &work.demands[n]);
            if all_zero(&one.scheduled) {
                (one.bandwidth, one.power) = ([0.0; LANES], [0.0; LANES]);
                continue;
            }
            let tables = rollout.cut_tables(n);
            let [safe] = look_up([&tables.safe_seconds], &one.cut);
            let (signal, safe_signal) = (rollout.signal(step, n), rollout.safe_signal(n));
            let (sending, receiving) = (one.sending, one.receiving);
            let (mut power, rate) = ([0.0; LANES], demand.rate);
            for lane in 0..LANES {
                let bandwidth = demand.bandwidth[lane] + 1e-3;
                let mut own = bandwidth / signal * exp_m1(rate[lane] / bandwidth);
                if step == 0 {
                    let safe_left = deadline - safe[lane];
                    let safe_left = if safe_left > 1e-4 { safe_left } else { 1e-4 };
                    let bits = sending[lane] + receiving[lane];
                    let safe_rate = MARGIN * bits * std::f32::consts::LN_2 / safe_left;
                    let sure = bandwidth / safe_signal * exp_m1(safe_rate / bandwidth);
                    own = if sure > own { sure } else { own };
                }
                power[lane] = if own < most_power { own } else { most_power };
            }
            (one.bandwidth, one.power) = (demand.bandwidth, power);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_nets_are_scheduled_and_the_impossible_never() {
        let mut nets: Vec<Lanes> = (0..10).map(|n| [(n * 7 % 10) as f32 - 4.0; LANES]).collect();
        nets[3] = [-IMPOSSIBLE; LANES];
        let count: Lanes = std::array::from_fn(|lane| 1.0 + lane as f32);
        let mut actions = vec![ActionLanes::ZERO; 10];
        select(&nets, &count, &mut actions);
        for lane in 0..LANES {
            let taken: f32 = actions.iter().map(|one| one.scheduled[lane]).sum();
            assert_eq!(taken, count[lane].min(9.0), "lane {lane}");
            assert_eq!(actions[3].scheduled[lane], 0.0);
        }
        // 7 * 7 mod 10 = 9 is the largest.
        assert_eq!(actions[7].scheduled, [1.0; LANES]);
    }
}
