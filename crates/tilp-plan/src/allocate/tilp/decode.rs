//! Decodes the numbers of a candidate into a decision.

use super::options::DecoderOptions;
use crate::lanes::{LANES, Lanes, all_zero, exp2, vectorised};
use crate::round::{Limits, TerminalDecision};
use crate::search::sample::{Choice, ChoiceLanes};
use crate::twin::{ActionLanes, Futures, RolloutTables, compression_at, compression_level};
use crate::units::{Hertz, Watts};

/// Turns choices into decisions.
///
/// With repair, the cut is the deepest one that fits the memory, up to the chosen one. The band is
/// shared among the scheduled terminals in proportion to the time that each would need on a small
/// part of it; the sampled number only scales that share. The search then need not learn by
/// sampling that fifty shares must add up to one. Without repair all numbers are used as sampled:
/// the paper's plain sampling.
pub(super) struct Decoder {
    limits: Limits,
    repair: Option<DecoderOptions>,
}

impl Decoder {
    pub(super) fn new(limits: Limits, repair: Option<DecoderOptions>) -> Self {
        Self { limits, repair }
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The actions of all terminals in one step of sixteen candidates.
    pub(super) fn decode(
        &self,
        rollout: &RolloutTables,
        futures: &Futures,
        step: usize,
        cells: &[ChoiceLanes],
        actions: &mut [ActionLanes],
    ) {
        let most = [self.limits.bandwidth.0 as f32, self.limits.power.0 as f32];
        if let Some(options) = self.repair {
            repaired(rollout, futures, step, cells, most, options, actions);
        } else {
            as_sampled(rollout, futures, step, cells, most, self.limits.cuts.len() - 1, actions);
        }
    }

    /// The decision of the current round for the choices.
    pub(super) fn decide(
        &self,
        rollout: &RolloutTables,
        choices: &[Choice],
    ) -> Vec<TerminalDecision> {
        let mut cells = vec![ChoiceLanes::ZERO; choices.len()];
        cells.iter_mut().zip(choices).for_each(|(cell, choice)| cell.set(0, choice));
        let mut actions = vec![ActionLanes::ZERO; choices.len()];
        self.decode(rollout, rollout.start(), 0, &cells, &mut actions);
        let mut decision: Vec<TerminalDecision> =
            actions.iter().map(|one| self.terminal(one, 0)).collect();
        if self.repair.is_some() {
            // Shares in single precision may add up to a little more than the band.
            const WITHIN: f64 = 1.0 - 1e-6;
            decision.iter_mut().for_each(|one| one.bandwidth.0 *= WITHIN);
        }
        decision
    }

    fn terminal(&self, one: &ActionLanes, lane: usize) -> TerminalDecision {
        let scheduled = one.scheduled[lane] > 0.5;
        let share = if scheduled { 1.0 } else { 0.0 };
        TerminalDecision {
            scheduled,
            bandwidth: Hertz(f64::from(one.bandwidth[lane]) * share),
            power: Watts(f64::from(one.power[lane]) * share),
            cut: self.limits.cuts[one.cut[lane] as usize],
            compression: compression_at(&self.limits, one.level[lane] as usize),
        }
    }
}

/// Converts shares of the maximum to quantities.
#[inline(always)]
fn scale(cell: &ChoiceLanes, most: [f32; 2], deepest: usize, one: &mut ActionLanes) {
    let deepest = deepest as f32;
    one.scheduled = cell.flag;
    for lane in 0..LANES {
        one.bandwidth[lane] = most[0] * cell.reals[0][lane];
        one.power[lane] = most[1] * cell.reals[1][lane];
        one.level[lane] = compression_level(cell.reals[2][lane]);
        let cut = cell.category[lane];
        one.cut[lane] = if cut < deepest { cut } else { deepest };
    }
}

vectorised! {
    fn as_sampled(
        rollout: &RolloutTables,
        futures: &Futures,
        step: usize,
        cells: &[ChoiceLanes],
        most: [f32; 2],
        deepest: usize,
        actions: &mut [ActionLanes],
    ) {
        for (n, (cell, one)) in cells.iter().zip(actions.iter_mut()).enumerate() {
            scale(cell, most, deepest, one);
            rollout.job(futures, step, n, one);
        }
    }
}

vectorised! {
    /// Shares the band among the scheduled terminals by the time that they need.
    fn repaired(
        rollout: &RolloutTables,
        futures: &Futures,
        step: usize,
        cells: &[ChoiceLanes],
        most: [f32; 2],
        options: DecoderOptions,
        actions: &mut [ActionLanes],
    ) {
        // From natural to binary logarithms.
        let reach = options.reach * std::f32::consts::LOG2_E;
        let mut total: Lanes = [1e-12; LANES];
        for (n, (cell, one)) in cells.iter().zip(actions.iter_mut()).enumerate() {
            scale(cell, most, rollout.deepest_fitting(n), one);
            // Skip terminals that no candidate schedules.
            if all_zero(&one.scheduled) {
                one.bandwidth = [0.0; LANES];
                continue;
            }
            rollout.job(futures, step, n, one);
            let seconds = rollout.air_seconds(step, n, options.band_share * most[0], one);
            let mut need = [0.0; LANES];
            for lane in 0..LANES {
                let shift = exp2(reach * (cell.reals[0][lane] - 0.5));
                need[lane] = seconds[lane] * shift * one.scheduled[lane];
                total[lane] += need[lane];
            }
            one.bandwidth = need;
        }
        let free = rollout.free_band(futures, step, actions);
        let mut scale = [0.0; LANES];
        (0..LANES).for_each(|lane| scale[lane] = free[lane] / total[lane]);
        for one in actions {
            (0..LANES).for_each(|lane| one.bandwidth[lane] *= scale[lane]);
        }
    }
}
