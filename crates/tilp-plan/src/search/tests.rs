//! Properties of the search, on problems with a known optimum.

use rand::RngExt as _;

use super::cem::{Cem, Found, Planner, Start};
use super::distribution::Distribution;
use super::sample::Choice;
use super::score::Candidates;
use crate::lanes::{LANES, Lanes};
use crate::rng::{Rng, Seed};

/// A score of sequences, candidate by candidate.
fn each(score: impl Fn(&[Choice]) -> f32 + Sync) -> impl Fn(Candidates<'_>, &mut Lanes) + Sync {
    move |candidates, scores| {
        for (lane, found) in scores.iter_mut().enumerate() {
            let sequence: Vec<Choice> =
                candidates.cells.iter().map(|cell| cell.choice(lane)).collect();
            *found = score(&sequence);
        }
    }
}

fn run(
    cem: &Cem,
    start: &Distribution,
    seed: u64,
    score: &(dyn Fn(Candidates<'_>, &mut Lanes) + Sync),
) -> Found {
    let start = Start { distribution: start, actor: None, seed: Seed::new(seed) };
    Planner::default().search(cem, start, score, &mut || false)
}

/// Distance from a target for every cell: separable, best is zero.
fn separable(target: Vec<Choice>) -> impl Fn(&[Choice]) -> f32 + Sync {
    move |sequence| {
        let cell = |(a, b): (&Choice, &Choice)| {
            let reals: f32 = a.reals.iter().zip(b.reals).map(|(a, b)| (a - b) * (a - b)).sum();
            reals
                + f32::from(u8::from(a.category != b.category))
                + f32::from(u8::from(a.flag != b.flag))
        };
        -sequence.iter().zip(&target).map(cell).sum::<f32>()
    }
}

fn random_choice(rng: &mut Rng) -> Choice {
    Choice {
        reals: std::array::from_fn(|_| rng.random_range(0.05..0.95)),
        category: rng.random_range(0..5),
        flag: rng.random(),
    }
}

#[test]
fn a_separable_problem_is_solved() {
    for seed in 0..5 {
        let mut rng = Seed::new(seed).stream("target");
        let target: Vec<Choice> = (0..8).map(|_| random_choice(&mut rng)).collect();
        let cem = Cem { correlation: 0.0, ..Cem::improved(200, 25, 20) };
        let found =
            run(&cem, &Distribution::vague(2, 4, 5), seed, &each(separable(target.clone())));
        assert!(found.best.score > -0.1, "seed {seed}: {}", found.best.score);
        for (choice, wanted) in found.best.sequence.iter().zip(&target) {
            assert_eq!((choice.category, choice.flag), (wanted.category, wanted.flag));
        }
        assert_eq!(found.first(), &found.best.sequence[..4]);
    }
}

/// A small cell: terminals share a budget in every step and a store over all steps; the numbers are
/// rounded to a coarse grid, so that every plan can be tried.
struct Small {
    levels: [usize; 3],
    n_categories: usize,
    n_steps: usize,
    gain: Vec<[f32; 4]>,
    category_gain: Vec<f32>,
    store: f32,
}

const SMALL_TERMINALS: usize = 3;

impl Small {
    fn new(levels: [usize; 3], n_categories: usize, n_steps: usize, rng: &mut Rng) -> Self {
        let gain = (0..SMALL_TERMINALS * n_steps)
            .map(|_| std::array::from_fn(|_| rng.random_range(0.2..1.5)))
            .collect();
        let category_gain =
            (0..SMALL_TERMINALS * n_categories).map(|_| rng.random_range(0.2..1.0)).collect();
        let store = n_steps as f32 * rng.random_range(0.8..1.6);
        Self { levels, n_categories, n_steps, gain, category_gain, store }
    }

    fn level(&self, real: usize, u: f32) -> usize {
        ((u * self.levels[real] as f32) as usize).min(self.levels[real] - 1)
    }

    /// Index of an action among those of a terminal.
    fn index(&self, choice: &Choice) -> usize {
        let mut index = usize::from(choice.flag);
        for real in 0..3 {
            index = index * self.levels[real] + self.level(real, choice.reals[real]);
        }
        index * self.n_categories + choice.category
    }

    fn n_actions(&self) -> usize {
        2 * self.levels.iter().product::<usize>() * self.n_categories
    }

    /// Gain, use of the shared budget, use of the store.
    fn parts(&self, step: usize, terminal: usize, index: usize) -> [f32; 3] {
        let (category, mut rest) = (index % self.n_categories, index / self.n_categories);
        let mut u = [0.0; 3];
        for real in (0..3).rev() {
            let level = rest % self.levels[real];
            rest /= self.levels[real];
            u[real] = (level as f32 + 0.5) / self.levels[real] as f32;
        }
        if rest == 0 {
            return [0.0; 3];
        }
        let gain = self.gain[step * SMALL_TERMINALS + terminal];
        let rate = u[0] * (1.0 + gain[0] * u[1]).ln() * gain[1];
        let kept = 1.0 - 0.5 * gain[2] * u[2] * u[2];
        let cut = self.category_gain[terminal * self.n_categories + category];
        [0.3 + rate * (1.0 + u[2]) + kept * cut, u[0], 0.3 + u[1] * gain[3]]
    }

    fn total(&self, plan: &[usize]) -> f32 {
        let (mut total, mut stored) = (0.0, 0.0);
        for (step, actions) in plan.chunks_exact(SMALL_TERMINALS).enumerate() {
            let mut used = 0.0;
            for (terminal, index) in actions.iter().enumerate() {
                let [gain, budget, store] = self.parts(step, terminal, *index);
                (total, used, stored) = (total + gain, used + budget, stored + store);
            }
            total -= 2.0 * (used - 1.0f32).max(0.0);
        }
        total - 2.0 * (stored - self.store).max(0.0)
    }

    fn best(&self) -> f32 {
        let (n_actions, n_places) = (self.n_actions(), SMALL_TERMINALS * self.n_steps);
        let mut plan = vec![0; n_places];
        let mut best = f32::NEG_INFINITY;
        for mut number in 0..n_actions.pow(n_places as u32) {
            for place in &mut plan {
                *place = number % n_actions;
                number /= n_actions;
            }
            best = best.max(self.total(&plan));
        }
        best
    }
}

/// Such a small problem is scored in no time: more iterations with restarts, more mutants than for
/// 4000 parts, and no correlation with one or two steps.
fn small_search() -> Cem {
    Cem { mutants: 64, restart_every: 6, correlation: 0.0, ..Cem::improved(200, 25, 30) }
}

fn within_one_percent(cem: Cem, levels: [usize; 3], n_categories: usize, n_steps: usize) -> usize {
    let start = Distribution::vague(n_steps, SMALL_TERMINALS, n_categories);
    (0..100)
        .filter(|instance| {
            let mut rng = Seed::new(*instance).stream("small");
            let small = Small::new(levels, n_categories, n_steps, &mut rng);
            let score = each(|sequence: &[Choice]| {
                let plan: Vec<usize> = sequence.iter().map(|choice| small.index(choice)).collect();
                small.total(&plan)
            });
            let found = run(&cem, &start, *instance, &score);
            let best = small.best();
            found.best.score >= best - 0.01 * best.abs()
        })
        .count()
}

#[test]
fn one_step_of_three_terminals_is_within_one_percent_of_the_enumerated_best() {
    let hits = within_one_percent(small_search(), [3, 2, 2], 2, 1);
    assert!(hits >= 95, "{hits} of 100");
}

#[test]
fn two_steps_of_three_terminals_are_within_one_percent_of_the_enumerated_best() {
    let hits = within_one_percent(small_search(), [2, 1, 1], 2, 2);
    assert!(hits >= 95, "{hits} of 100");
}

/// 50 terminals and 16 steps that share a budget and interact from step to step.
fn coupled(seed: u64) -> impl Fn(&[Choice]) -> f32 + Sync {
    let mut rng = Seed::new(seed).stream("coupled");
    let gain: Vec<[f32; 3]> =
        (0..50).map(|_| std::array::from_fn(|_| rng.random_range(0.1..2.0))).collect();
    let cut: Vec<usize> = (0..50).map(|_| rng.random_range(0..5)).collect();
    move |sequence| {
        let (mut total, mut fill) = (0.0, [0.0f32; 50]);
        for actions in sequence.chunks_exact(50) {
            let used: f32 = actions.iter().map(|a| if a.flag { a.reals[0] } else { 0.0 }).sum();
            total -= (used - 10.0).max(0.0);
            for (terminal, action) in actions.iter().enumerate().filter(|(_, action)| action.flag) {
                let gain = gain[terminal];
                let fresh = (-fill[terminal]).exp();
                let fit = 1.0 - 0.2 * action.category.abs_diff(cut[terminal]) as f32;
                let rate = action.reals[0] / used.max(10.0)
                    * 10.0
                    * (1.0 + gain[0] * action.reals[1]).ln();
                total += fresh * fit * (0.5 * gain[1] + rate) - 0.3 * gain[2] * action.reals[1];
                total -= (action.reals[2] - 0.3).powi(2) + 0.2;
                fill[terminal] += 0.3;
            }
        }
        total
    }
}

#[test]
fn the_search_beats_ten_times_the_samples_at_random_and_the_plain_method() {
    let start = Distribution::vague(16, 50, 5);
    let (mut over_random, mut over_plain) = (0, 0);
    for seed in 0..10 {
        let score = each(coupled(seed));
        let improved = run(&Cem::improved(200, 25, 5), &start, seed, &score).best.score;
        let plain = run(&Cem::paper(200, 25, 5), &start, seed, &score).best.score;
        let random = run(&Cem::paper(10_000, 1, 1), &start, seed, &score).best.score;
        assert!(plain > random, "seed {seed}: plain {plain}, random {random}");
        over_random += usize::from(improved > random);
        over_plain += usize::from(improved > plain);
    }
    assert_eq!((over_random, over_plain), (10, 10));
}

#[test]
fn a_plan_does_not_depend_on_the_number_of_threads() {
    let start = Distribution::vague(16, 50, 5);
    let found = [1, 2, 3].map(|threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| run(&Cem::improved(100, 12, 3), &start, 4, &each(coupled(4))))
    });
    for other in &found[1..] {
        assert_eq!(found[0].best, other.best);
        assert_eq!(found[0].runner_ups, other.runner_ups);
    }
}

#[test]
fn a_broken_score_ranks_last() {
    let broken =
        each(|sequence: &[Choice]| if sequence[0].flag { f32::NAN } else { sequence[0].reals[0] });
    let start = Distribution::vague(1, 1, 5);
    let found = run(&Cem::improved(64, 8, 3), &start, 0, &broken);
    assert!(!found.best.sequence[0].flag && found.best.score > 0.9);
    let hopeless = run(&Cem::improved(64, 8, 3), &start, 0, &each(|_| f32::NAN));
    assert_eq!(hopeless.best.score, f32::NEG_INFINITY);
    assert_eq!(hopeless.best.sequence, start.mode());
}

#[test]
fn kept_elites_never_lose_ground_and_live_on_in_the_next_plan() {
    let score = each(coupled(1));
    let start = Distribution::vague(16, 50, 5);
    let mut best = f32::NEG_INFINITY;
    for iterations in 1..5 {
        let found = run(&Cem::improved(100, 12, iterations), &start, 1, &score).best.score;
        assert!(found >= best, "{iterations} iterations: {found} after {best}");
        best = found;
    }
    let mut planner = Planner::default();
    let cem = Cem::improved(100, 12, 4);
    let plan = |planner: &mut Planner, seed: u64, iterations: usize| {
        let seed = Seed::new(seed);
        let start = Start { distribution: &start, actor: None, seed };
        planner.search(&Cem { iterations, ..cem }, start, &score, &mut || false)
    };
    let first = plan(&mut planner, 1, 4);
    let remembered = planner.remembered();
    assert_eq!(remembered.len(), 12);
    assert_eq!(remembered[0][..750], first.best.sequence[50..]);
    assert_eq!(remembered[0][750..], first.best.sequence[750..]);
    let warm = plan(&mut planner, 2, 1).best.score;
    let cold = plan(&mut Planner::default(), 2, 1).best.score;
    assert!(warm > cold, "warm {warm}, cold {cold}");
    planner.forget();
    planner.suggest(&first.best.sequence);
    assert!(plan(&mut planner, 3, 1).best.score >= first.best.score);
}

#[test]
fn a_search_that_is_stopped_returns_the_best_so_far() {
    let start = Distribution::vague(4, 5, 5);
    let mut rng = Seed::new(9).stream("target");
    let target: Vec<Choice> = (0..20).map(|_| random_choice(&mut rng)).collect();
    let score = each(separable(target));
    let stopped = |after: usize| {
        let mut asked = 0;
        let start = Start { distribution: &start, actor: None, seed: Seed::new(0) };
        Planner::default().search(&Cem::improved(100, 12, 10), start, &score, &mut || {
            asked += 1;
            asked >= after
        })
    };
    for after in [1, 3, 7] {
        let found = stopped(after);
        assert_eq!(found.iterations, after);
        let whole = run(&Cem::improved(100, 12, after), &start, 0, &score);
        assert_eq!(found.best, whole.best);
    }
}

#[test]
fn proposals_come_from_the_actor_in_every_iteration() {
    let start = Distribution::vague(2, 3, 5);
    let mut actor = start.clone();
    for law in &mut actor.laws {
        (law.mean, law.deviation) = ([-3.0; 3], [0.01; 3]);
    }
    // The vague start would draw nothing near the actor's region.
    let score = each(|sequence: &[Choice]| {
        let near = sequence.iter().flat_map(|choice| choice.reals).filter(|u| *u < 0.01).count();
        near as f32
    });
    let cem = Cem { proposals: LANES, ..Cem::paper(100, 10, 1) };
    let seed = Seed::new(0);
    let with = Start { distribution: &start, actor: Some(&actor), seed };
    let found = Planner::default().search(&cem, with, &score, &mut || false);
    assert_eq!(found.best.score, 18.0);
    assert!(run(&cem, &start, 0, &score).best.score < 18.0);
}
