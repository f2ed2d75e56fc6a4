//! Drawing a group of candidates.

use super::distribution::{Law, MAX_CATEGORIES};
use crate::lanes::{Bits, LANES, Lanes, normal_pair, squash, vectorised};

/// Numbers of an action.
pub const REALS: usize = 3;

/// One terminal's action at one step, for the sixteen candidates of a group.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C, align(64))]
pub struct ChoiceLanes {
    /// Numbers in (0, 1).
    pub reals: [Lanes; REALS],
    /// Index of the category.
    pub category: Lanes,
    /// One or zero.
    pub flag: Lanes,
}

/// One terminal's action at one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// Numbers in (0, 1).
    pub reals: [f32; REALS],
    /// Index of the category.
    pub category: usize,
    /// The flag.
    pub flag: bool,
}

impl ChoiceLanes {
    /// All zero.
    pub const ZERO: Self =
        Self { reals: [[0.0; LANES]; REALS], category: [0.0; LANES], flag: [0.0; LANES] };

    /// The action of one candidate.
    pub fn choice(&self, lane: usize) -> Choice {
        Choice {
            reals: self.reals.map(|values| values[lane]),
            category: self.category[lane] as usize,
            flag: self.flag[lane] > 0.5,
        }
    }

    /// Replaces the action of one candidate.
    pub fn set(&mut self, lane: usize, choice: &Choice) {
        for (values, value) in self.reals.iter_mut().zip(choice.reals) {
            values[lane] = value;
        }
        self.category[lane] = choice.category as f32;
        self.flag[lane] = f32::from(u8::from(choice.flag));
    }

    /// Takes one candidate's action from a lane of another cell.
    #[inline(always)]
    pub fn copy(&mut self, lane: usize, from: &Self, from_lane: usize) {
        for (values, source) in self.reals.iter_mut().zip(&from.reals) {
            values[lane] = source[from_lane];
        }
        self.category[lane] = from.category[from_lane];
        self.flag[lane] = from.flag[from_lane];
    }
}

/// Two numbers in [0, 1) from the low and the high half of a word.
#[inline(always)]
fn halves(word: u32) -> [f32; 2] {
    [word & 0xffff, word >> 16].map(|half| half as i32 as f32 * (1.0 / 65536.0))
}

/// How strongly a mutant changes its parent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mutation {
    /// Share of all parts that the last lane changes.
    pub share: f32,
    /// Largest probability that a part is changed.
    pub most: f32,
}

/// State of a candidate's noise between steps, which correlates it.
struct Trail {
    noise: [Lanes; REALS],
    /// The other halves of the pairs of normals, for the next step.
    spare: [Lanes; REALS],
    category: Lanes,
    flag: Lanes,
}

vectorised! {
    /// Draws a group. `correlation` is that of the noise of neighbouring steps, between 0 and 1: an
    /// autoregressive process for the numbers, and for category and flag the probability that the
    /// uniform number of the step before is reused. The law of a single step is the same for any
    /// value.
    pub fn draw(
        cells: &mut [ChoiceLanes],
        laws: &[Law],
        n_terminals: usize,
        n_categories: usize,
        bits: &mut Bits,
        correlation: f32,
    ) {
        let n_steps = laws.len() / n_terminals;
        for terminal in 0..n_terminals {
            let zero = [0.0; LANES];
            let mut trail = Trail { noise: [zero; REALS], spare: [zero; REALS], category: zero, flag: zero };
            for step in 0..n_steps {
                let index = step * n_terminals + terminal;
                advance(&mut trail, bits, step, correlation);
                fill(&mut cells[index], &laws[index], n_categories, &trail);
            }
        }
    }
}

#[inline(always)]
fn advance(trail: &mut Trail, bits: &mut Bits, step: usize, correlation: f32) {
    let (keep, fresh) = if step == 0 {
        (0.0, 1.0)
    } else {
        (correlation, (1.0 - correlation * correlation).max(0.0).sqrt())
    };
    for real in 0..REALS {
        if step.is_multiple_of(2) {
            let words = bits.words();
            for lane in 0..LANES {
                let (first, second) = normal_pair(words[lane]);
                trail.noise[real][lane] = keep * trail.noise[real][lane] + fresh * first;
                trail.spare[real][lane] = second;
            }
        } else {
            for lane in 0..LANES {
                let second = trail.spare[real][lane];
                trail.noise[real][lane] = keep * trail.noise[real][lane] + fresh * second;
            }
        }
    }
    let fresh = bits.words();
    // If the probability of reuse is zero, no bits are spent on it.
    let reuse = if keep == 0.0 { [u32::MAX; LANES] } else { bits.words() };
    for lane in 0..LANES {
        let ([category, flag], chance) = (halves(fresh[lane]), halves(reuse[lane]));
        let kept = trail.category[lane];
        trail.category[lane] = if chance[0] < keep { kept } else { category };
        let kept = trail.flag[lane];
        trail.flag[lane] = if chance[1] < keep { kept } else { flag };
    }
}

#[inline(always)]
fn fill(cell: &mut ChoiceLanes, law: &Law, n_categories: usize, trail: &Trail) {
    for real in 0..REALS {
        let (mean, deviation) = (law.mean[real], law.deviation[real]);
        for lane in 0..LANES {
            cell.reals[real][lane] = squash(deviation.mul_add(trail.noise[real][lane], mean));
        }
    }
    let mut category = [0.0; LANES];
    let mut below = 0.0;
    for share in &law.category[..n_categories.min(MAX_CATEGORIES) - 1] {
        below += share;
        for lane in 0..LANES {
            category[lane] += if trail.category[lane] < below { 0.0 } else { 1.0 };
        }
    }
    cell.category = category;
    for lane in 0..LANES {
        cell.flag[lane] = if trail.flag[lane] < law.flag { 1.0 } else { 0.0 };
    }
}

vectorised! {
    /// Turns a group that was drawn into mutants of one sequence: each part of each action is taken
    /// from `parent`, except with the probability of its lane, between one part of the whole
    /// sequence (first lane) and a share of all parts (last lane). In the odd lanes a change of a
    /// part applies to all steps of a terminal.
    pub fn mutate(
        cells: &mut [ChoiceLanes],
        parent: &[Choice],
        n_terminals: usize,
        mutation: &Mutation,
        bits: &mut Bits,
    ) {
        let n_steps = cells.len() / n_terminals;
        let chance = chances(cells.len() * PARTS, n_steps, mutation);
        for terminal in 0..n_terminals {
            let mut fate = [[0.0; LANES]; PARTS + 1];
            for step in 0..n_steps {
                for pair in fate.chunks_exact_mut(2) {
                    let words = bits.words();
                    for lane in 0..LANES {
                        let (holds, fresh) = (step > 0 && lane % 2 == 1, halves(words[lane]));
                        pair[0][lane] = if holds { pair[0][lane] } else { fresh[0] };
                        pair[1][lane] = if holds { pair[1][lane] } else { fresh[1] };
                    }
                }
                let at = step * n_terminals + terminal;
                inherit(&mut cells[at], &parent[at], &fate, &chance);
            }
        }
    }
}

/// Parts of an action.
const PARTS: usize = REALS + 2;

fn chances(n_parts: usize, n_steps: usize, mutation: &Mutation) -> Lanes {
    std::array::from_fn(|lane| {
        let changed =
            (mutation.share * n_parts as f32).max(1.0).powf(lane as f32 / (LANES - 1) as f32);
        // A change of all steps at once counts as one.
        let held = if lane % 2 == 1 { n_steps as f32 } else { 1.0 };
        (changed * held / n_parts as f32).min(mutation.most)
    })
}

#[inline(always)]
fn inherit(cell: &mut ChoiceLanes, parent: &Choice, fate: &[Lanes; PARTS + 1], chance: &Lanes) {
    let category = parent.category as f32;
    let flag = if parent.flag { 1.0 } else { 0.0 };
    for lane in 0..LANES {
        for real in 0..REALS {
            let drawn = cell.reals[real][lane];
            let changed = fate[real][lane] < chance[lane];
            cell.reals[real][lane] = if changed { drawn } else { parent.reals[real] };
        }
        let changed = fate[REALS][lane] < chance[lane];
        cell.category[lane] = if changed { cell.category[lane] } else { category };
        let changed = fate[REALS + 1][lane] < chance[lane];
        cell.flag[lane] = if changed { cell.flag[lane] } else { flag };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::unsquash;
    use crate::rng::Seed;

    /// Draws of one terminal over `n_steps` steps from one law.
    fn drawn(law: Law, n_steps: usize, groups: u64, correlation: f32) -> Vec<Vec<ChoiceLanes>> {
        (0..groups)
            .map(|group| {
                let mut cells = vec![ChoiceLanes::ZERO; n_steps];
                let mut bits = Bits::new(Seed::new(1).at(group));
                draw(&mut cells, &vec![law; n_steps], 1, 5, &mut bits, correlation);
                cells
            })
            .collect()
    }

    #[test]
    fn every_step_has_the_law_it_was_given_with_any_correlation() {
        let mut law = Law::vague(5);
        (law.mean, law.deviation) = ([0.5, -1.0, 0.0], [0.3, 0.5, 1.0]);
        (law.category, law.flag) = ([0.1, 0.2, 0.0, 0.3, 0.4, 0.0, 0.0, 0.0], 0.2);
        for correlation in [0.0, 0.7] {
            let groups = drawn(law, 3, 2000, correlation);
            let count = (2000 * LANES) as f64;
            for step in 0..3 {
                let choices = || {
                    groups.iter().flat_map(|cells| (0..LANES).map(move |l| cells[step].choice(l)))
                };
                for real in 0..REALS {
                    let z = choices().map(|c| f64::from(unsquash(c.reals[real])));
                    let (sum, square) = z.fold((0.0, 0.0), |(s, q), z| (s + z, q + z * z));
                    let mean = sum / count;
                    let deviation = (square / count - mean * mean).sqrt();
                    assert!((mean - f64::from(law.mean[real])).abs() < 0.03, "mean {mean}");
                    assert!((deviation - f64::from(law.deviation[real])).abs() < 0.02);
                }
                for category in 0..5 {
                    let hits = choices().filter(|c| c.category == category).count() as f64;
                    assert!((hits / count - f64::from(law.category[category])).abs() < 0.02);
                }
                let hits = choices().filter(|c| c.flag).count() as f64;
                assert!((hits / count - 0.2).abs() < 0.02);
            }
        }
    }

    #[test]
    fn neighbouring_steps_are_as_correlated_as_asked() {
        let law = Law { deviation: [0.5; REALS], ..Law::vague(5) };
        for correlation in [0.0f64, 0.6] {
            let groups = drawn(law, 4, 1000, correlation as f32);
            for step in 0..3 {
                let mut sum = 0.0;
                for cells in &groups {
                    for lane in 0..LANES {
                        let z = |step: usize| f64::from(unsquash(cells[step].reals[1][lane]));
                        sum += z(step) * z(step + 1) / 0.25;
                    }
                }
                let found = sum / (1000 * LANES) as f64;
                assert!((found - correlation).abs() < 0.04, "{found} instead of {correlation}");
            }
        }
    }

    #[test]
    fn mutants_differ_from_their_parent_in_few_parts() {
        let parent = vec![Choice { reals: [0.1, 0.2, 0.3], category: 7, flag: true }; 800];
        let law = Law { flag: 0.0, ..Law::vague(5) };
        let mut cells = vec![ChoiceLanes::ZERO; 800];
        let mut changed = [0usize; LANES];
        for group in 0..20 {
            let mut bits = Bits::new(Seed::new(1).at(group));
            draw(&mut cells, &[law; 800], 50, 5, &mut bits, 0.5);
            let mutation = Mutation { share: 0.5, most: 0.7 };
            mutate(&mut cells, &parent, 50, &mutation, &mut bits);
            for (lane, count) in changed.iter_mut().enumerate() {
                let choices = cells.iter().map(|cell| cell.choice(lane));
                *count += choices.filter(|choice| choice.category != 7).count();
            }
        }
        assert!(changed[0] < 20 && changed[14] > 20 * 150 && changed[14] < 20 * 350, "{changed:?}");
        assert!(changed.iter().step_by(2).is_sorted(), "{changed:?}");
    }

    #[test]
    fn certain_parts_are_certain() {
        let mut law = Law::vague(5);
        (law.category, law.flag) = ([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0], 1.0);
        for cell in drawn(law, 2, 100, 0.5).iter().flatten() {
            assert_eq!((cell.category, cell.flag), ([3.0; LANES], [1.0; LANES]));
        }
    }
}
