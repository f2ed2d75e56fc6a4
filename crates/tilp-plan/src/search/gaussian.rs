//! Cross-entropy search over real vectors: one normal law per entry of every step.
//!
//! A candidate has the same number of values in every step: some of the whole step, then one per
//! terminal. The caller defines their meaning. Sixteen candidates form a group, one in each vector
//! lane. A group has its own seed, so that the number of threads cannot change a result.

use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::lanes::{Bits, LANES, Lanes, normal_pair, vectorised};
use crate::rng::Seed;

/// Settings of the search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GaussianOptions {
    /// Candidates of an iteration.
    pub samples: usize,
    /// Best candidates that the laws are fitted to, at most `samples`.
    pub elites: usize,
    /// Iterations.
    pub iterations: usize,
    /// Largest number of best candidates that are moved one step ahead and scored again in the next
    /// plan.
    pub remembered: usize,
    /// Candidates of an iteration that follow the actor.
    pub proposals: usize,
    /// Correlation of the noise of neighbouring steps.
    pub correlation: f32,
    /// Share of the old parameters that stays at a refit.
    pub smoothing: f32,
    /// Least standard deviation of a refit, as a share of the initial one.
    pub floor: f32,
}

impl Default for GaussianOptions {
    fn default() -> Self {
        Self {
            samples: 64,
            elites: 8,
            iterations: 4,
            remembered: 8,
            proposals: 16,
            correlation: 0.7,
            smoothing: 0.2,
            floor: 0.1,
        }
    }
}

/// The shape of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Steps of a sequence.
    pub steps: usize,
    /// Numbers of a step.
    pub width: usize,
}

impl Shape {
    /// Numbers of a candidate.
    pub fn len(&self) -> usize {
        self.steps * self.width
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Independent normal laws, step by step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NormalLaws {
    /// Means.
    pub mean: Vec<f32>,
    /// Standard deviations.
    pub deviation: Vec<f32>,
}

/// Start of a search.
#[derive(Clone, Copy)]
pub struct GaussianStart<'a> {
    /// Shape of the candidates.
    pub shape: Shape,
    /// The laws of the first iteration.
    pub laws: &'a NormalLaws,
    /// The laws of the proposals in every iteration; `None`: there are no proposals.
    pub actor: Option<&'a NormalLaws>,
    /// Candidates to evaluate in addition to the drawn ones.
    pub suggestions: &'a [Vec<f32>],
    /// The stream of this plan.
    pub seed: Seed,
}

/// A candidate and its score.
#[derive(Clone, Debug, PartialEq)]
pub struct RankedVector {
    /// Its numbers, step by step.
    pub values: Vec<f32>,
    /// Its score.
    pub score: f32,
}

/// Sixteen candidates to be scored.
#[derive(Clone, Copy)]
pub struct CandidateLanes<'a> {
    /// Index of the group in the population.
    pub group: usize,
    /// Numbers of a step.
    pub width: usize,
    /// Step by step.
    pub values: &'a [Lanes],
}

impl<'a> CandidateLanes<'a> {
    /// The numbers of one step.
    pub fn step(&self, step: usize) -> &'a [Lanes] {
        &self.values[step * self.width..(step + 1) * self.width]
    }
}

/// Scores a group; higher is better and NaN is worst. Called from several threads.
pub type LaneScore<'a> = dyn Fn(CandidateLanes<'_>, &mut Lanes) + Sync + 'a;

/// Memory of a search: scratch that is reused, and the best candidates for the next plan.
#[derive(Clone, Debug, Default)]
pub struct GaussianPlanner {
    groups: Vec<Group>,
    ranking: Vec<(f32, usize)>,
    elites: Vec<RankedVector>,
    memory: Vec<Vec<f32>>,
}

#[derive(Clone, Debug, Default)]
struct Group {
    values: Vec<Lanes>,
    scores: Lanes,
}

impl GaussianPlanner {
    /// Searches until the iterations are done or `should_stop`, called between iterations, returns true.
    /// The first iteration is always done. Returns the best candidates, best first, and the number
    /// of iterations.
    pub fn search(
        &mut self,
        options: &GaussianOptions,
        start: GaussianStart<'_>,
        score: &LaneScore<'_>,
        should_stop: &mut (dyn FnMut() -> bool + Send),
    ) -> (Vec<RankedVector>, usize) {
        // The whole search runs inside the thread pool, so that its threads stay awake.
        rayon::scope(|_| self.iterate(options, start, score, should_stop))
    }

    fn iterate(
        &mut self,
        options: &GaussianOptions,
        start: GaussianStart<'_>,
        score: &LaneScore<'_>,
        should_stop: &mut dyn FnMut() -> bool,
    ) -> (Vec<RankedVector>, usize) {
        let n_groups = options.samples.div_ceil(LANES).max(1);
        let length = start.shape.len();
        self.groups.resize_with(n_groups, Group::default);
        self.groups.iter_mut().for_each(|group| group.values.resize(length, [0.0; LANES]));
        self.memory.retain(|known| known.len() == length);
        self.elites.clear();
        let mut laws = start.laws.clone();
        let mut iterations = 0;
        while iterations < options.iterations.max(1) && (iterations == 0 || !should_stop()) {
            self.draw(options, start, &laws, iterations, score);
            self.select(options.elites);
            iterations += 1;
            if iterations < options.iterations {
                self.refit(options, start.laws, &mut laws);
            }
        }
        self.memory.clear();
        let kept = self.elites.iter().take(options.remembered);
        self.memory.extend(kept.map(|elite| ahead(&elite.values, start.shape)));
        (self.elites.clone(), iterations)
    }

    /// The candidates that the next plan will try.
    pub fn remembered(&self) -> &[Vec<f32>] {
        &self.memory
    }

    /// Replaces the candidates that the next plan will try.
    pub fn set_remembered(&mut self, memory: Vec<Vec<f32>>) {
        self.memory = memory;
    }

    /// Draws every group and scores it.
    fn draw(
        &mut self,
        options: &GaussianOptions,
        start: GaussianStart<'_>,
        laws: &NormalLaws,
        iteration: usize,
        score: &LaneScore<'_>,
    ) {
        let Shape { width, .. } = start.shape;
        let (memory, seed) = (&self.memory, start.seed.at(iteration as u64));
        let given: Vec<&Vec<f32>> = match iteration {
            0 => memory.iter().chain(start.suggestions).collect(),
            _ => Vec::new(),
        };
        let n_proposed = if start.actor.is_some() { options.proposals.div_ceil(LANES) } else { 0 };
        let first_proposed = self.groups.len() - n_proposed.min(self.groups.len() - 1);
        self.groups.par_iter_mut().enumerate().for_each(|(index, group)| {
            let laws = match start.actor {
                Some(actor) if index >= first_proposed => actor,
                _ => laws,
            };
            let mut bits = Bits::new(seed.at(index as u64));
            fill(&mut group.values, laws, width, options.correlation, &mut bits);
            let first = index * LANES;
            for (lane, known) in given.iter().skip(first).take(LANES).enumerate() {
                group.values.iter_mut().zip(*known).for_each(|(to, from)| to[lane] = *from);
            }
            // The most likely candidate is one of them.
            if index == first_proposed - 1 {
                let last = LANES - 1;
                group.values.iter_mut().zip(&laws.mean).for_each(|(to, mean)| to[last] = *mean);
            }
            group.scores = [f32::NAN; LANES];
            let values = &group.values[..];
            score(CandidateLanes { group: index, width, values }, &mut group.scores);
        });
    }

    /// Ranks new candidates and the elites so far; the best are the new elites.
    fn select(&mut self, count: usize) {
        let old = std::mem::take(&mut self.elites);
        let n_new = self.groups.len() * LANES;
        self.ranking.clear();
        for (index, group) in self.groups.iter().enumerate() {
            let scores = group.scores.iter().enumerate();
            self.ranking.extend(scores.map(|(lane, &one)| (rank(one), index * LANES + lane)));
        }
        self.ranking.extend(old.iter().enumerate().map(|(at, one)| (one.score, n_new + at)));
        self.ranking.retain(|(score, _)| *score > f32::NEG_INFINITY);
        self.ranking.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        self.ranking.truncate(count.max(1));
        for &(score, place) in &self.ranking {
            let values = match place.checked_sub(n_new) {
                Some(at) => old[at].values.clone(),
                None => {
                    let group = &self.groups[place / LANES];
                    group.values.iter().map(|lanes| lanes[place % LANES]).collect()
                }
            };
            self.elites.push(RankedVector { values, score });
        }
    }

    /// Fits the laws to the elites.
    fn refit(&self, options: &GaussianOptions, first: &NormalLaws, laws: &mut NormalLaws) {
        let share = 1.0 / self.elites.len().max(1) as f32;
        let keep = options.smoothing;
        if self.elites.is_empty() {
            return;
        }
        for at in 0..laws.mean.len() {
            let values = || self.elites.iter().map(|elite| elite.values[at]);
            let mean = values().sum::<f32>() * share;
            let variance = values().map(|one| (one - mean) * (one - mean)).sum::<f32>() * share;
            let floor = options.floor * first.deviation[at];
            laws.mean[at] = keep * laws.mean[at] + (1.0 - keep) * mean;
            let deviation = keep * laws.deviation[at] + (1.0 - keep) * variance.sqrt();
            laws.deviation[at] = deviation.max(floor);
        }
    }
}

/// A candidate moved one step ahead, its last step repeated.
fn ahead(values: &[f32], shape: Shape) -> Vec<f32> {
    let mut moved = values.to_vec();
    if shape.steps > 1 {
        moved.copy_within(shape.width.., 0);
    }
    moved
}

/// A candidate without a score is the worst one, never a neutral one.
fn rank(score: f32) -> f32 {
    if score.is_nan() { f32::NEG_INFINITY } else { score }
}

vectorised! {
    /// Draws a group. The noise of a number is an autoregressive process over the steps. Its law at
    /// a single step is the same for any correlation.
    fn fill(
        values: &mut [Lanes],
        laws: &NormalLaws,
        width: usize,
        correlation: f32,
        bits: &mut Bits,
    ) {
        let fresh = (1.0 - correlation * correlation).max(0.0).sqrt();
        let n_steps = values.len() / width;
        let mut spare = [0.0; LANES];
        let mut has_spare = false;
        for number in 0..width {
            let mut noise = [0.0; LANES];
            for step in 0..n_steps {
                let mut normals = spare;
                if !has_spare {
                    let words = bits.words();
                    for lane in 0..LANES {
                        (normals[lane], spare[lane]) = normal_pair(words[lane]);
                    }
                }
                has_spare = !has_spare;
                let (old, new) = if step == 0 { (0.0, 1.0) } else { (correlation, fresh) };
                let at = step * width + number;
                let (mean, deviation) = (laws.mean[at], laws.deviation[at]);
                for lane in 0..LANES {
                    noise[lane] = old * noise[lane] + new * normals[lane];
                    values[at][lane] = mean + deviation * noise[lane];
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: GaussianOptions = GaussianOptions {
        samples: 64,
        elites: 8,
        iterations: 20,
        remembered: 4,
        proposals: 0,
        correlation: 0.5,
        smoothing: 0.1,
        floor: 0.02,
    };
    const SHAPE: Shape = Shape { steps: 3, width: 4 };

    fn laws() -> NormalLaws {
        NormalLaws { mean: vec![0.0; SHAPE.len()], deviation: vec![1.0; SHAPE.len()] }
    }

    /// Minus the squared distance from (0, -0.1, 0.2, -0.3, ...).
    fn score(candidates: CandidateLanes<'_>, scores: &mut Lanes) {
        *scores = [0.0; LANES];
        for (at, lanes) in candidates.values.iter().enumerate() {
            let target = wanted(at);
            (0..LANES).for_each(|lane| scores[lane] -= (lanes[lane] - target).powi(2));
        }
    }

    fn wanted(at: usize) -> f32 {
        let side = if at.is_multiple_of(2) { 1.0 } else { -1.0 };
        side * 0.1 * at as f32
    }

    fn found(planner: &mut GaussianPlanner, threads: usize) -> (Vec<RankedVector>, usize) {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        let laws = laws();
        let (suggestions, seed) = (&[][..], Seed::new(7));
        let start = GaussianStart { shape: SHAPE, laws: &laws, actor: None, suggestions, seed };
        pool.install(|| planner.search(&OPTIONS, start, &score, &mut || false))
    }

    #[test]
    fn the_search_finds_the_best_vector_whatever_the_number_of_threads() {
        let (elites, iterations) = found(&mut GaussianPlanner::default(), 1);
        assert_eq!(iterations, 20);
        for (at, value) in elites[0].values.iter().enumerate() {
            assert!((value - wanted(at)).abs() < 0.25, "{at}: {value}");
        }
        assert_eq!(elites, found(&mut GaussianPlanner::default(), 3).0);
        assert!(elites.windows(2).all(|pair| pair[0].score >= pair[1].score));
    }

    #[test]
    fn the_best_candidates_are_moved_one_step_ahead() {
        let mut planner = GaussianPlanner::default();
        let best = found(&mut planner, 1).0.remove(0).values;
        let remembered = planner.remembered();
        assert_eq!(remembered.len(), 4);
        assert_eq!(remembered[0][..8], best[4..]);
        assert_eq!(remembered[0][8..], best[8..]);
    }

    #[test]
    fn a_suggestion_competes_and_a_search_that_is_stopped_has_done_one_iteration() {
        let best: Vec<f32> = (0..SHAPE.len()).map(wanted).collect();
        let laws = laws();
        let suggestions = [best.clone()];
        let seed = Seed::new(8);
        let start = GaussianStart {
            shape: SHAPE,
            laws: &laws,
            actor: None,
            suggestions: &suggestions,
            seed,
        };
        let mut planner = GaussianPlanner::default();
        let (elites, iterations) = planner.search(&OPTIONS, start, &score, &mut || true);
        assert_eq!((iterations, &elites[0].values), (1, &best));
        assert_eq!(elites[0].score, 0.0);
    }
}
