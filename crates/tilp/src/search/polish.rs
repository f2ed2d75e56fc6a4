//! The last touch on the best sequence: one terminal at a time.
//!
//! Few samples cannot settle hundreds of flags at once. Turned one by one they can: each is tried
//! alone, then those that help are tried together, the most helpful first.

use rayon::prelude::*;

use super::cem::{Planner, rank};
use super::sample::Choice;
use super::score::{Candidates, Score};
use crate::lanes::LANES;

impl Planner {
    /// One pass; says whether it found something better.
    pub(super) fn polish(&mut self, n_terminals: usize, score: &Score<'_>) -> bool {
        let typical = typical(&self.best, n_terminals);
        let alone: Vec<Vec<usize>> = (0..n_terminals).map(|n| vec![n]).collect();
        let scores = self.try_turned(&alone, &typical, n_terminals, score);
        let mut helpful: Vec<usize> =
            (0..n_terminals).filter(|&n| scores[n] > self.best_score).collect();
        helpful.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]).then(a.cmp(&b)));
        if helpful.is_empty() {
            return false;
        }
        let sets: Vec<Vec<usize>> =
            sizes(helpful.len()).map(|size| helpful[..size].to_vec()).collect();
        let scores = self.try_turned(&sets, &typical, n_terminals, score);
        let best = (0..sets.len()).max_by(|&a, &b| scores[a].total_cmp(&scores[b]).then(b.cmp(&a)));
        let Some(best) = best.filter(|&best| scores[best] > self.best_score) else { return false };
        turn(&mut self.best, &sets[best], &typical, n_terminals);
        self.best_score = scores[best];
        true
    }

    /// Scores of the best sequence with the flags of each set of terminals turned.
    fn try_turned(
        &mut self,
        sets: &[Vec<usize>],
        typical: &[Choice],
        n_terminals: usize,
        score: &Score<'_>,
    ) -> Vec<f32> {
        let best = &self.best;
        let mut found = Vec::with_capacity(sets.len());
        for batch in sets.chunks(self.groups.len() * LANES) {
            let groups = self.groups.par_iter_mut().zip(batch.par_chunks(LANES)).enumerate();
            groups.for_each(|(index, (group, sets))| {
                for (lane, set) in sets.iter().enumerate() {
                    let mut sequence = best.clone();
                    turn(&mut sequence, set, typical, n_terminals);
                    let cells = group.cells.iter_mut().zip(&sequence);
                    cells.for_each(|(cell, choice)| cell.set(lane, choice));
                }
                group.scores = [f32::NAN; LANES];
                let cells = &group.cells;
                score(Candidates { group: index, n_terminals, cells }, &mut group.scores);
            });
            let scores = self.groups.iter().flat_map(|group| group.scores);
            found.extend(scores.take(batch.len()).map(rank));
        }
        found
    }
}

/// What somebody new does at each step: as those who are in do on average.
fn typical(best: &[Choice], n_terminals: usize) -> Vec<Choice> {
    let step = |choices: &[Choice]| {
        let in_it: Vec<&Choice> = choices.iter().filter(|choice| choice.flag).collect();
        let Some(first) = in_it.first() else { return choices[0] };
        let mean = |real: usize| {
            in_it.iter().map(|choice| choice.reals[real]).sum::<f32>() / in_it.len() as f32
        };
        let category = in_it.iter().map(|choice| choice.category).min().unwrap_or(first.category);
        Choice { reals: std::array::from_fn(mean), category, flag: true }
    };
    best.chunks_exact(n_terminals).map(step).collect()
}

/// Turns the flag that each terminal has at the first step, and sets it so at all steps.
fn turn(sequence: &mut [Choice], set: &[usize], typical: &[Choice], n_terminals: usize) {
    for &n in set {
        let on = !sequence[n].flag;
        for (step, typical) in sequence.chunks_exact_mut(n_terminals).zip(typical) {
            if on && !step[n].flag {
                step[n] = *typical;
            }
            step[n].flag = on;
        }
    }
}

/// 1, 2, 3, 4, 6, 8, 12, 16, ... and all.
fn sizes(most: usize) -> impl Iterator<Item = usize> {
    let powers = (0..usize::BITS - 2).flat_map(|power| [1usize << power, 3usize << power]);
    let mut sizes: Vec<usize> = powers.take_while(|size| *size < 4 * most).collect();
    sizes.retain(|size| *size < most);
    sizes.push(most);
    sizes.sort_unstable();
    sizes.dedup();
    sizes.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::Lanes;
    use crate::rng::Seed;
    use crate::search::cem::{Cem, Start};
    use crate::search::distribution::Distribution;

    #[test]
    fn sizes_grow_to_all() {
        assert_eq!(sizes(1).collect::<Vec<_>>(), [1]);
        assert_eq!(sizes(10).collect::<Vec<_>>(), [1, 2, 3, 4, 6, 8, 10]);
    }

    /// Which of 60 terminals are in is right or wrong, each for itself.
    #[test]
    fn flags_that_are_independent_are_all_set_right() {
        let right = |n: usize| n.is_multiple_of(3);
        let score = |candidates: Candidates<'_>, scores: &mut Lanes| {
            for (lane, score) in scores.iter_mut().enumerate() {
                let cells = candidates.cells.iter().enumerate();
                let hits = cells.filter(|(n, cell)| (cell.flag[lane] > 0.5) == right(n % 60));
                *score = hits.count() as f32;
            }
        };
        let start = Distribution::vague(4, 60, 5);
        let cem = Cem::improved(200, 25, 5);
        let begin = Start { distribution: &start, actor: None, seed: Seed::new(4) };
        let found = Planner::default().search(&cem, begin, &score, &mut || false);
        assert!(found.first().iter().enumerate().all(|(n, choice)| choice.flag == right(n)));
    }
}
