//! The cross-entropy method: draw, score, keep the best, refit.

use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::distribution::{Distribution, Law};
use super::elites::{Elites, Refit, refit};
use super::sample::{Choice, ChoiceLanes, Mutation, draw, mutate};
use super::score::{Candidates, Score};
use crate::lanes::{Bits, LANES, Lanes};
use crate::rng::Seed;

/// Cells of one task of a refit: a fixed number, whatever the number of threads.
const CHUNK: usize = 40;

/// Cells whose elites are gathered together: few enough to stay in the cache.
const PART: usize = 8;

/// Settings of the search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cem {
    /// Candidates of an iteration.
    pub samples: usize,
    /// Best candidates the distribution is fitted to.
    pub elites: usize,
    /// Iterations, unless the search is stopped earlier.
    pub iterations: usize,
    /// Iterations after which the distribution is reset while the best candidate is kept; 0 for
    /// never. For problems so small that a search converges long before its time is up.
    pub restart_every: usize,
    /// Elites that compete again in the next iteration.
    pub kept: usize,
    /// Elites that are moved one step ahead and scored again in the next plan.
    pub remembered: usize,
    /// Candidates of every iteration that come from the actor instead of the fitted distribution.
    pub proposals: usize,
    /// Candidates of every iteration that are mutants of the best so far.
    pub mutants: usize,
    /// Whether the most likely sequence is one of the candidates.
    pub mode: bool,
    /// Correlation of the noise of neighbouring steps.
    pub correlation: f32,
    /// How strongly a mutant changes the best sequence.
    pub mutation: Mutation,
    /// Bounds and inertia of the refit.
    pub refit: Refit,
}

/// Variables of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SearchKind {
    /// Every number of every terminal is sampled.
    #[default]
    Sampled,
    /// A few numbers are sampled; band, power, cut, compression and participants follow from them.
    Inner,
}

impl SearchKind {
    /// Whether the key may be absent.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Additions of the search to the plain method, and the one bound that the plain method needs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchOptions {
    /// Variables of the search.
    #[serde(default, skip_serializing_if = "SearchKind::is_default")]
    pub kind: SearchKind,
    /// Share of the elites, rounded down, that competes again in the next iteration.
    pub kept_share: f64,
    /// Largest number of elites that are moved one step ahead and scored again in the next plan.
    pub remembered: usize,
    /// Candidates of every iteration that come from the actor: at most `methods.tilp.samples`, or
    /// `least_samples` if that is larger.
    pub proposals: usize,
    /// Candidates of every iteration that are mutants of the best so far, in groups of sixteen; the
    /// same limit.
    pub mutants: usize,
    /// With fewer samples than this there are neither proposals nor mutants.
    pub least_samples: usize,
    /// Whether the most likely sequence is one of the candidates.
    pub mode: bool,
    /// Correlation of the noise of neighbouring steps.
    pub correlation: f32,
    /// Iterations after which the distribution is reset; 0 for never.
    pub restart_every: usize,
    /// Share of the old parameters that stays at a refit.
    pub smoothing: f32,
    /// Smallest standard deviation, before squashing, of a refit.
    pub deviation_floor: f32,
    /// Smallest probability of a category after a refit.
    pub category_floor: f32,
    /// Least probability of the flag, and of its absence, after a refit.
    pub flag_floor: f32,
    /// Share of all parts that the boldest mutant changes.
    pub mutation_share: f32,
    /// Largest probability that a part of a mutant is changed.
    pub mutation_most: f32,
    /// Smallest standard deviation, before squashing, of a refit of the plain method.
    pub plain_deviation_floor: f32,
}

impl SearchOptions {
    /// The plain method of the paper: all candidates are new, all steps independent.
    pub fn plain(&self, samples: usize, elites: usize, iterations: usize) -> Cem {
        let refit = Refit {
            smoothing: 0.0,
            deviation_floor: self.plain_deviation_floor,
            category_floor: 0.0,
            flag_floor: 0.0,
        };
        Cem {
            samples,
            elites,
            iterations,
            restart_every: 0,
            kept: 0,
            remembered: 0,
            proposals: 0,
            mutants: 0,
            mode: false,
            correlation: 0.0,
            mutation: Mutation { share: self.mutation_share, most: self.mutation_most },
            refit,
        }
    }

    /// The method with additions that make few samples sufficient.
    pub fn improved(&self, samples: usize, elites: usize, iterations: usize) -> Cem {
        let refit = Refit {
            smoothing: self.smoothing,
            deviation_floor: self.deviation_floor,
            category_floor: self.category_floor,
            flag_floor: self.flag_floor,
        };
        let is_large = samples >= self.least_samples;
        Cem {
            restart_every: self.restart_every,
            kept: (self.kept_share * elites as f64) as usize,
            remembered: elites.min(self.remembered),
            proposals: if is_large { self.proposals } else { 0 },
            mutants: if is_large { self.mutants } else { 0 },
            mode: self.mode,
            correlation: self.correlation,
            refit,
            ..self.plain(samples, elites, iterations)
        }
    }
}

/// Start of a search.
#[derive(Clone, Copy)]
pub struct Start<'a> {
    /// The distribution of the first iteration.
    pub distribution: &'a Distribution,
    /// The distribution of the proposals in every iteration; `None`: all candidates are drawn from
    /// the fitted one.
    pub actor: Option<&'a Distribution>,
    /// The stream of this plan.
    pub seed: Seed,
}

/// A sequence and its score.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranked {
    /// Step by step, terminal by terminal.
    pub sequence: Vec<Choice>,
    /// Its score, minus infinity if nothing could be scored.
    pub score: f32,
}

/// Result of a search.
#[derive(Clone, Debug)]
pub struct Found {
    /// The best sequence of all iterations.
    pub best: Ranked,
    /// The next best of the remaining elites, best first, with different first actions.
    pub runner_ups: Vec<Ranked>,
    /// Terminals of a step.
    pub n_terminals: usize,
    /// Iterations done.
    pub iterations: usize,
}

impl Found {
    /// The first action of the best sequence.
    pub fn first(&self) -> &[Choice] {
        &self.best.sequence[..self.n_terminals]
    }
}

/// Memory of a search: reused scratch, and the elites that the next plan starts from.
#[derive(Clone, Debug, Default)]
pub struct Planner {
    groups: Vec<Group>,
    elites: Elites,
    next: Elites,
    memory: Elites,
    ranking: Vec<(f32, u32)>,
    best: Vec<Choice>,
    best_score: f32,
}

#[derive(Clone, Debug, Default)]
struct Group {
    cells: Vec<ChoiceLanes>,
    scores: Lanes,
}

/// The kind of candidate in each lane, the same for every iteration.
struct LaneLayout {
    n_groups: usize,
    /// Groups from here on are drawn from the actor.
    first_proposal: usize,
    /// Candidates of the last fitted group and of the last group.
    fitted: usize,
    samples: usize,
    /// Groups from here to the proposals are mutants, as soon as there is a parent.
    first_mutant: usize,
}

impl LaneLayout {
    fn new(cem: &Cem, with_actor: bool) -> Self {
        let proposals = if with_actor { cem.proposals.min(cem.samples - 1) } else { 0 };
        let fitted = cem.samples - proposals;
        let first_proposal = fitted.div_ceil(LANES);
        let n_groups = first_proposal + proposals.div_ceil(LANES);
        let first_mutant = first_proposal - (cem.mutants / LANES).min(first_proposal - 1);
        Self { n_groups, first_proposal, fitted, samples: cem.samples, first_mutant }
    }

    /// Candidates that count in a group.
    fn taken(&self, group: usize) -> usize {
        if group < self.first_proposal {
            (self.fitted - group * LANES).min(LANES)
        } else {
            (self.samples - self.fitted - (group - self.first_proposal) * LANES).min(LANES)
        }
    }
}

impl Planner {
    /// Searches until the iterations are done or `should_stop`, called between iterations, returns true.
    /// The first iteration is always done.
    pub fn search(
        &mut self,
        cem: &Cem,
        start: Start<'_>,
        score: &Score<'_>,
        should_stop: &mut (dyn FnMut() -> bool + Send),
    ) -> Found {
        // The whole search runs inside the thread pool, so that its threads stay awake.
        rayon::scope(|_| self.iterate(cem, start, score, should_stop))
    }

    fn iterate(
        &mut self,
        cem: &Cem,
        start: Start<'_>,
        score: &Score<'_>,
        should_stop: &mut dyn FnMut() -> bool,
    ) -> Found {
        assert!(0 < cem.elites && cem.elites <= cem.samples, "elites among the samples");
        let layout = LaneLayout::new(cem, start.actor.is_some());
        let mut fitted = start.distribution.clone();
        self.prepare(cem, &layout, fitted.laws.len());
        let mut iterations = 0;
        while iterations < cem.iterations.max(1) && (iterations == 0 || !should_stop()) {
            if iterations > 0
                && cem.restart_every > 0
                && iterations.is_multiple_of(cem.restart_every)
            {
                fitted.clone_from(start.distribution);
                self.elites.scores_mut().clear();
            }
            let guesses = if iterations == 0 { self.memory.len() } else { 0 };
            self.evaluate(cem, &layout, start, &fitted, iterations, guesses, score);
            self.select(cem, &layout);
            // Nothing is drawn after the last iteration.
            let refits = iterations + 1 < cem.iterations;
            self.fit(cem, &mut fitted, refits);
            self.remember_best(&layout);
            iterations += 1;
        }
        let found = self.conclude(start.distribution, iterations);
        std::mem::swap(&mut self.memory, &mut self.elites);
        let remembered = cem.remembered.min(self.memory.len());
        if remembered > 0 {
            self.memory.replace(0, &self.best);
        }
        self.memory.shift(remembered, start.distribution.n_terminals);
        found
    }

    /// Adds a sequence to the candidates of the next plan.
    pub fn suggest(&mut self, sequence: &[Choice]) {
        if self.memory.n_cells() != sequence.len() {
            self.memory = Elites::default();
        }
        self.memory.push(sequence);
    }

    /// The sequences that the next plan will try.
    pub fn remembered(&self) -> Vec<Vec<Choice>> {
        (0..self.memory.len()).map(|elite| self.memory.sequence(elite)).collect()
    }

    /// Clears the last plan.
    pub fn forget(&mut self) {
        self.memory = Elites::default();
    }

    fn prepare(&mut self, cem: &Cem, layout: &LaneLayout, n_cells: usize) {
        self.groups.resize_with(layout.n_groups, Group::default);
        self.groups.iter_mut().for_each(|group| group.cells.resize(n_cells, ChoiceLanes::ZERO));
        if self.memory.n_cells() != n_cells {
            self.memory = Elites::default();
        }
        for elites in [&mut self.elites, &mut self.next] {
            elites.reserve(cem.elites, n_cells);
            elites.scores_mut().clear();
        }
        self.best.clear();
        self.best_score = f32::NEG_INFINITY;
    }

    /// Keeps the best candidate so far, including mutants.
    fn remember_best(&mut self, layout: &LaneLayout) {
        let mut found = None;
        for (index, group) in self.groups.iter().enumerate() {
            for lane in 0..layout.taken(index) {
                let score = rank(group.scores[lane]);
                if score > self.best_score {
                    self.best_score = score;
                    found = Some((index, lane));
                }
            }
        }
        if let Some((index, lane)) = found {
            self.best.clear();
            self.best.extend(self.groups[index].cells.iter().map(|cell| cell.choice(lane)));
        }
    }

    /// Draws every group and scores it.
    #[allow(clippy::too_many_arguments)]
    fn evaluate(
        &mut self,
        cem: &Cem,
        layout: &LaneLayout,
        start: Start<'_>,
        fitted: &Distribution,
        iteration: usize,
        guesses: usize,
        score: &Score<'_>,
    ) {
        let (memory, seed) = (&self.memory, start.seed.at(iteration as u64));
        let parent = &self.best[..];
        let guesses = guesses.min(layout.fitted.saturating_sub(1));
        self.groups.par_iter_mut().enumerate().for_each(|(index, group)| {
            let is_fitted = index < layout.first_proposal;
            let is_mutant = is_fitted && index >= layout.first_mutant && !parent.is_empty();
            // Every other group of mutants tries the actions that the start distribution would
            // draw, step by step, however narrow the present distribution is.
            let is_wide = is_mutant && (index - layout.first_mutant).is_multiple_of(2);
            let from = match (is_fitted, is_wide) {
                (false, _) => start.actor.unwrap_or(fitted),
                (true, true) => start.distribution,
                (true, false) => fitted,
            };
            let mut bits = Bits::new(seed.at(index as u64));
            let (n_terminals, n_categories) = (from.n_terminals, from.n_categories);
            let cells = &mut group.cells;
            let correlation = if is_wide { 0.0 } else { cem.correlation };
            draw(cells, &from.laws, n_terminals, n_categories, &mut bits, correlation);
            if is_mutant {
                mutate(cells, parent, n_terminals, &cem.mutation, &mut bits);
            }
            for guess in (index * LANES..guesses).take(if is_fitted { LANES } else { 0 }) {
                for (at, cell) in cells.iter_mut().enumerate() {
                    let (source, lane) = memory.at(at, guess);
                    cell.copy(guess % LANES, source, lane);
                }
            }
            if cem.mode && index + 1 == layout.first_proposal {
                set_mode(cells, &fitted.laws, layout.taken(index) - 1);
            }
            group.scores = [f32::NAN; LANES];
            score(Candidates { group: index, n_terminals, cells }, &mut group.scores);
        });
    }

    /// Ranks the new candidates and the kept elites, and gathers the best as the new elites.
    fn select(&mut self, cem: &Cem, layout: &LaneLayout) {
        self.ranking.clear();
        let mutants =
            if self.best.is_empty() { 0..0 } else { layout.first_mutant..layout.first_proposal };
        for (index, group) in self.groups.iter().enumerate() {
            if mutants.contains(&index) {
                continue;
            }
            for lane in 0..layout.taken(index) {
                self.ranking.push((rank(group.scores[lane]), (index * LANES + lane) as u32));
            }
        }
        let first_kept = (self.groups.len() * LANES) as u32;
        for (kept, score) in self.elites.scores().iter().take(cem.kept).enumerate() {
            self.ranking.push((*score, first_kept + kept as u32));
        }
        self.ranking.retain(|(score, _)| *score > f32::NEG_INFINITY);
        self.ranking.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        self.ranking.truncate(cem.elites);
        self.next.scores_mut().clear();
        self.next.scores_mut().extend(self.ranking.iter().map(|(score, _)| *score));
    }

    /// Copies the elites out of the population and, if requested, fits the distribution to them.
    fn fit(&mut self, cem: &Cem, fitted: &mut Distribution, refits: bool) {
        let (groups, old, ranking) = (&self.groups, &self.elites, &self.ranking);
        let (n_blocks, n_categories) = (self.next.n_blocks(), fitted.n_categories);
        let first_kept = groups.len() * LANES;
        let chunks = self.next.cells_mut().par_chunks_mut(CHUNK * n_blocks);
        chunks.zip(fitted.laws.par_chunks_mut(CHUNK)).enumerate().for_each(
            |(chunk, (cells, laws))| {
                for (part, cells) in cells.chunks_mut(PART * n_blocks).enumerate() {
                    let first = chunk * CHUNK + part * PART;
                    for (elite, (_, source)) in ranking.iter().enumerate() {
                        let source = *source as usize;
                        let blocks = cells[elite / LANES..].iter_mut().step_by(n_blocks);
                        if source < first_kept {
                            let from = &groups[source / LANES].cells[first..];
                            blocks.zip(from).for_each(|(to, from)| {
                                to.copy(elite % LANES, from, source % LANES);
                            });
                        } else {
                            for (offset, to) in blocks.enumerate() {
                                let (from, lane) = old.at(first + offset, source - first_kept);
                                to.copy(elite % LANES, from, lane);
                            }
                        }
                    }
                }
                if refits && !ranking.is_empty() {
                    refit(laws, cells, n_blocks, ranking.len(), n_categories, &cem.refit);
                }
            },
        );
        std::mem::swap(&mut self.elites, &mut self.next);
    }

    fn conclude(&self, start: &Distribution, iterations: usize) -> Found {
        const RUNNER_UPS: usize = 4;
        let n_terminals = start.n_terminals;
        if self.best.is_empty() {
            let best = Ranked { sequence: start.mode(), score: f32::NEG_INFINITY };
            return Found { best, runner_ups: Vec::new(), n_terminals, iterations };
        }
        let mut all = vec![Ranked { sequence: self.best.clone(), score: self.best_score }];
        for (elite, score) in self.elites.scores().iter().enumerate() {
            if all.len() > RUNNER_UPS {
                break;
            }
            let sequence = self.elites.sequence(elite);
            if all.iter().all(|known| known.sequence[..n_terminals] != sequence[..n_terminals]) {
                all.push(Ranked { sequence, score: *score });
            }
        }
        let best = all.remove(0);
        Found { best, runner_ups: all, n_terminals, iterations }
    }
}

/// A candidate without a score is the worst one, never a neutral one.
fn rank(score: f32) -> f32 {
    if score.is_nan() { f32::NEG_INFINITY } else { score }
}

fn set_mode(cells: &mut [ChoiceLanes], laws: &[Law], lane: usize) {
    for (cell, law) in cells.iter_mut().zip(laws) {
        cell.set(lane, &law.mode());
    }
}
