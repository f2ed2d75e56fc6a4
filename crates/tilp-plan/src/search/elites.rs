//! The best candidates found so far, and the distribution fitted to them.

use super::distribution::Law;
use super::sample::{Choice, ChoiceLanes, REALS};
use crate::lanes::{LANES, Lanes, unsquash, vectorised};

/// Candidates with their scores, best first, sixteen to a block.
#[derive(Clone, Debug, Default)]
pub struct Elites {
    /// Cell by cell, and for each cell block by block.
    cells: Vec<ChoiceLanes>,
    n_blocks: usize,
    scores: Vec<f32>,
}

/// Bounds and inertia of a refit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Refit {
    /// Share of the old parameters that stays.
    pub smoothing: f32,
    /// Smallest standard deviation before squashing.
    pub deviation_floor: f32,
    /// Smallest probability of a category.
    pub category_floor: f32,
    /// Smallest probability of the flag and of its absence.
    pub flag_floor: f32,
}

impl Elites {
    /// A list for this number of candidates with this number of cells.
    pub(super) fn reserve(&mut self, n_elites: usize, n_cells: usize) {
        self.n_blocks = n_elites.div_ceil(LANES);
        self.cells.resize(self.n_blocks * n_cells, ChoiceLanes::ZERO);
    }

    /// Number of candidates.
    pub fn len(&self) -> usize {
        self.scores.len()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.scores.is_empty()
    }

    /// Scores, best first.
    pub fn scores(&self) -> &[f32] {
        &self.scores
    }

    pub(super) fn scores_mut(&mut self) -> &mut Vec<f32> {
        &mut self.scores
    }

    /// Cells of a sequence.
    pub fn n_cells(&self) -> usize {
        self.cells.len().checked_div(self.n_blocks).unwrap_or(0)
    }

    pub(super) fn n_blocks(&self) -> usize {
        self.n_blocks
    }

    pub(super) fn cells_mut(&mut self) -> &mut [ChoiceLanes] {
        &mut self.cells
    }

    /// The block of an elite at a cell, and its lane there.
    #[inline(always)]
    pub(super) fn at(&self, cell: usize, elite: usize) -> (&ChoiceLanes, usize) {
        (&self.cells[cell * self.n_blocks + elite / LANES], elite % LANES)
    }

    /// The actions of one elite, step by step and terminal by terminal.
    pub fn sequence(&self, elite: usize) -> Vec<Choice> {
        (0..self.n_cells())
            .map(|cell| {
                let (found, lane) = self.at(cell, elite);
                found.choice(lane)
            })
            .collect()
    }

    /// Keeps the first `count` and moves them one step ahead; their scores are no longer valid.
    pub(super) fn shift(&mut self, count: usize, n_terminals: usize) {
        self.scores.truncate(count);
        let stride = n_terminals * self.n_blocks;
        if self.cells.len() > stride {
            self.cells.copy_within(stride.., 0);
        }
    }

    /// Adds a sequence at the end.
    pub(super) fn push(&mut self, sequence: &[Choice]) {
        let elite = self.scores.len();
        if elite == self.n_blocks * LANES {
            self.widen(sequence.len());
        }
        self.scores.push(f32::NAN);
        self.replace(elite, sequence);
    }

    /// Replaces an elite by a sequence.
    pub(super) fn replace(&mut self, elite: usize, sequence: &[Choice]) {
        assert_eq!(self.n_cells(), sequence.len(), "sequences of one length");
        for (cell, choice) in sequence.iter().enumerate() {
            let at = cell * self.n_blocks + elite / LANES;
            self.cells[at].set(elite % LANES, choice);
        }
    }

    fn widen(&mut self, n_cells: usize) {
        let old = std::mem::take(&mut self.cells);
        for cell in 0..n_cells {
            self.cells.extend_from_slice(&old[cell * self.n_blocks..(cell + 1) * self.n_blocks]);
            self.cells.push(ChoiceLanes::ZERO);
        }
        self.n_blocks += 1;
    }
}

vectorised! {
    /// Refits the law of every cell to the first `count` elites of its blocks.
    pub fn refit(laws: &mut [Law], cells: &[ChoiceLanes], n_blocks: usize, count: usize, n_categories: usize, rule: &Refit) {
        let share = 1.0 / count as f32;
        let mut partial = [0.0; LANES];
        partial[..count % LANES].fill(share);
        // Every elite has the same weight; the last block may be incomplete.
        let weights = [[share; LANES], partial];
        for (law, blocks) in laws.iter_mut().zip(cells.chunks_exact(n_blocks)) {
            refit_law(law, &blocks[..count.div_ceil(LANES)], count / LANES, &weights, n_categories, rule);
        }
    }
}

#[inline(always)]
fn refit_law(
    law: &mut Law,
    blocks: &[ChoiceLanes],
    n_full: usize,
    [full, partial]: &[Lanes; 2],
    n_categories: usize,
    rule: &Refit,
) {
    let keep = rule.smoothing;
    let weights = |block: usize| if block < n_full { full } else { partial };
    for real in 0..REALS {
        let (mut sums, mut squares) = ([0.0; LANES], [0.0; LANES]);
        let old = law.mean[real];
        for (block, cell) in blocks.iter().enumerate() {
            let weights = weights(block);
            for lane in 0..LANES {
                // Deviations from the old mean, which is near the new one: little cancels.
                let z = unsquash(cell.reals[real][lane]) - old;
                sums[lane] += weights[lane] * z;
                squares[lane] += weights[lane] * z * z;
            }
        }
        let mean = fold(sums);
        let deviation = (fold(squares) - mean * mean).max(0.0).sqrt();
        law.mean[real] = old + (1.0 - keep) * mean;
        let smoothed = keep * law.deviation[real] + (1.0 - keep) * deviation;
        law.deviation[real] = smoothed.max(rule.deviation_floor);
    }
    for category in 0..n_categories {
        let mut hits = [0.0; LANES];
        for (block, cell) in blocks.iter().enumerate() {
            let weights = weights(block);
            for lane in 0..LANES {
                let hit = cell.category[lane] == category as f32;
                hits[lane] += if hit { weights[lane] } else { 0.0 };
            }
        }
        let smoothed = keep * law.category[category] + (1.0 - keep) * fold(hits);
        // Mixed with the uniform law, so that the sum stays one.
        let floor = rule.category_floor;
        law.category[category] = floor + (1.0 - n_categories as f32 * floor) * smoothed;
    }
    let mut hits = [0.0; LANES];
    for (block, cell) in blocks.iter().enumerate() {
        let weights = weights(block);
        for lane in 0..LANES {
            hits[lane] += weights[lane] * cell.flag[lane];
        }
    }
    let smoothed = keep * law.flag + (1.0 - keep) * fold(hits);
    law.flag = smoothed.clamp(rule.flag_floor, 1.0 - rule.flag_floor);
}

/// The sum of the lanes, always in the same order.
#[inline(always)]
fn fold(mut sums: Lanes) -> f32 {
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            sums[lane] += sums[lane + width];
        }
        width /= 2;
    }
    sums[0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::squash;

    fn choice(z: f32, category: usize, flag: bool) -> Choice {
        Choice { reals: [squash(z), squash(-z), 0.5], category, flag }
    }

    #[test]
    fn a_refit_takes_mean_deviation_and_shares_of_the_elites() {
        let mut elites = Elites::default();
        for index in 0..20 {
            let side = if index % 2 == 0 { 1.0 } else { -1.0 };
            elites.push(&[choice(0.5 + side, index % 4, index < 5)]);
        }
        let rule =
            Refit { smoothing: 0.0, deviation_floor: 0.1, category_floor: 0.0, flag_floor: 0.3 };
        let mut laws = [Law::vague(5)];
        refit(&mut laws, &elites.cells, elites.n_blocks, 20, 5, &rule);
        let [law] = laws;
        assert!((law.mean[0] - 0.5).abs() < 1e-3 && (law.deviation[0] - 1.0).abs() < 1e-3);
        assert_eq!(law.deviation[2], 0.1);
        assert!((law.category[3] - 0.25).abs() < 1e-6 && law.category[4] == 0.0);
        assert_eq!(law.flag, 0.3);
        let slow = Refit { smoothing: 0.5, category_floor: 0.02, ..rule };
        let mut laws = [Law::vague(5)];
        refit(&mut laws, &elites.cells, elites.n_blocks, 20, 5, &slow);
        assert!((laws[0].mean[0] - 0.25).abs() < 1e-3);
        assert!((laws[0].category.iter().sum::<f32>() - 1.0).abs() < 1e-5);
        assert!((laws[0].category[4] - (0.02 + 0.9 * 0.1)).abs() < 1e-5);
    }

    #[test]
    fn elites_move_one_step_ahead() {
        let mut elites = Elites::default();
        for elite in 0..18 {
            let steps: Vec<Choice> =
                (0..6).map(|cell| choice(elite as f32 * 0.1, cell % 5, false)).collect();
            elites.push(&steps);
        }
        let before = elites.sequence(17);
        elites.shift(17, 2);
        assert_eq!(elites.len(), 17);
        let after = elites.sequence(16);
        assert_eq!(after[..4].iter().map(|c| c.category).collect::<Vec<_>>(), [2, 3, 4, 0]);
        assert_eq!(after[4..], after[2..4]);
        assert_eq!(before.len(), 6);
    }
}
