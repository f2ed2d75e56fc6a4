//! Value of a terminal's participation in a round, by the training and task laws.
//!
//! A planner ranks terminals by it. It is the law of [`super::step`] to first order, so a change of
//! that law must be repeated here. The score of a plan comes from the rollouts, not from here.

#![allow(clippy::needless_range_loop, reason = "lanes are indexed: several arrays move together")]

use super::{Futures, RolloutTables};
use crate::lanes::{LANES, Lanes, exp2, vectorised};

/// Worths of one step, in units of the reward.
#[derive(Clone, Debug, Default)]
pub struct WorthLanes {
    /// Worth of each terminal, at no compression and a middle cut.
    pub terminals: Vec<Lanes>,
    /// Its share of the samples of the round, if it takes part.
    pub shares: Vec<Lanes>,
    /// Cost of a unit of compression noise in all samples.
    pub noise: Lanes,
    /// Gain of a unit of depth in all samples.
    pub depth: Lanes,
    /// Increase of the return per unit by which the log-loss of a terminal falls; scratch.
    steepness: Vec<Lanes>,
    groups: Vec<Lanes>,
}

impl RolloutTables {
    /// Worth of each terminal in a round with `count` participants.
    pub fn worths(&self, futures: &Futures, count: &Lanes, found: &mut WorthLanes) {
        let n = self.terminals.len();
        for list in [&mut found.terminals, &mut found.shares, &mut found.steepness] {
            list.resize(n, [0.0; LANES]);
        }
        found.groups.clear();
        found.groups.resize(futures.groups.len(), [0.0; LANES]);
        worths(self, futures, count, found);
    }
}

vectorised! {
    fn worths(rollout: &RolloutTables, futures: &Futures, count: &Lanes, found: &mut WorthLanes) {
        let all = slopes(rollout, futures, found);
        let [_, kin, _, push, _, noise, depth, ..] = rollout.weights;
        for lane in 0..LANES {
            found.noise[lane] = noise * all[lane];
            found.depth[lane] = depth * all[lane];
        }
        let [minibatch, drift] = rollout.doubt;
        let caution = rollout.caution;
        let total: f32 = rollout.terminals.iter().map(|terminal| terminal.samples).sum();
        let mean = total / rollout.terminals.len() as f32;
        for (n, terminal) in rollout.terminals.iter().enumerate() {
            let own_weight = terminal.own_weight + push * terminal.push - kin;
            let (steepness, group) = (found.steepness[n], found.groups[terminal.group]);
            let variance = futures.variance[n];
            let (mut worth, mut share) = ([0.0; LANES], [0.0; LANES]);
            for lane in 0..LANES {
                let known = variance[lane];
                let told = known * minibatch / (known + minibatch);
                let clearer = (known + drift).sqrt() - (told + drift).sqrt();
                share[lane] = terminal.samples / (mean * count[lane]);
                worth[lane] = share[lane] * (own_weight * steepness[lane] + kin * group[lane])
                    + caution * clearer * steepness[lane];
            }
            (found.terminals[n], found.shares[n]) = (worth, share);
        }
    }
}

/// Fills in the increase of the return per unit of each log-loss; returns the sum over the
/// terminals.
#[inline(always)]
fn slopes(rollout: &RolloutTables, futures: &Futures, found: &mut WorthLanes) -> Lanes {
    let [task, ..] = rollout.reward;
    let scale = task / rollout.terminals.len() as f32;
    let mut all = [0.0; LANES];
    for (n, terminal) in rollout.terminals.iter().enumerate() {
        let [start, slope] = terminal.line;
        let (log_loss, variance) = (futures.log_loss[n], futures.variance[n]);
        let mut steepness = [0.0; LANES];
        for lane in 0..LANES {
            steepness[lane] = if rollout.task_driven {
                let cautious = log_loss[lane] + rollout.caution * variance[lane].sqrt();
                let failure = exp2(slope * cautious - start);
                let success = 1.0 / (1.0 + failure);
                scale * slope * std::f32::consts::LN_2 * success * success * failure
            } else {
                scale * exp2(std::f32::consts::LOG2_E * log_loss[lane])
            };
            all[lane] += steepness[lane];
        }
        let group = &mut found.groups[terminal.group];
        for lane in 0..LANES {
            group[lane] += steepness[lane];
        }
        found.steepness[n] = steepness;
    }
    all
}
