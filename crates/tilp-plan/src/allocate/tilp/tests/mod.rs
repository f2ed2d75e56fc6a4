//! Quality of the plans that the search finds in the twin, measured by the twin's own return.

mod allocations;
mod inner;
mod knobs;

pub(super) use inner::{inner_planner, planned_by};

use super::plan::PlanInputs;
use super::*;
use crate::lanes::Lanes;
use crate::round::Observation;
use crate::search::cem::{Cem, Start};
use crate::search::sample::Choice;
use crate::search::score::Candidates;
use crate::twin::tests::fake::{DEFAULT, Fake, MIRROR};
use crate::twin::{RewardWeights, Sureness, TwinOptions};

const PARTS: Parts = Parts { actor: false, critic: false, cem: true, repair: true, seeds: true };

/// The default scenario's planner without actor and critic.
fn options(cem: Cem, horizon: usize, start_scheduled: f64, parts: Parts) -> TilpOptions {
    let weights = RewardWeights { task: 1.0, delay: 1e-3, energy: 1e-2, penalty: 1.0 };
    TilpOptions {
        cem,
        horizon,
        discount: 0.95,
        imagined: 0,
        updates: 0,
        warm_up: u64::MAX,
        reward_unit: 1e-3,
        start_scheduled,
        budget_ms: None,
        twin: TwinOptions { weights, ..TwinOptions::default() },
        parts,
        start: knobs::start(),
        worth: knobs::worth(),
        suggestions: knobs::suggestions(),
        decoder: knobs::decoder(),
        actor_critic: knobs::actor_critic(),
        inner: None,
        prices: PriceOptions::default(),
    }
}

/// A planner whose twin has been calibrated for some rounds of a fake cell, and the next
/// observation.
fn after(fake: &mut Fake, rounds: u64, options: TilpOptions, seed: u64) -> (Tilp, Observation) {
    let mut tilp = Tilp::new(fake.nominal.clone(), options, Seed::new(seed));
    let n_scheduled = fake.nominal.hardware.len().div_ceil(5).max(2);
    for _ in 0..rounds {
        let (seen, plan) = (fake.observe(), fake.any_plan(n_scheduled));
        let outcome = fake.execute(&plan);
        tilp.twin.calibrate(&seen, &plan, &outcome);
    }
    (tilp, fake.observe())
}

/// The return of the best sequence that a planner finds.
fn planned(tilp: &mut Tilp, seen: &Observation) -> f32 {
    let inputs = tilp.inputs(seen, tilp.options.horizon);
    let now = inputs.features.agent_state(&inputs.rollout, inputs.rollout.start(), 0);
    tilp.search(seen, &inputs, &now).best.score
}

/// The choices of a terminal on a coarse grid: idle, or one of the cuts, powers and compressions;
/// the decoder shares the band.
fn grid(cuts: &[usize], powers: &[f32], compressions: &[f32]) -> Vec<Choice> {
    let mut options = vec![Choice { reals: [0.5; 3], category: 0, flag: false }];
    for &category in cuts {
        for &power in powers {
            let one = |&q: &f32| Choice { reals: [0.5, power, q], category, flag: true };
            options.extend(compressions.iter().map(one));
        }
    }
    options
}

/// The best and the median return of all sequences on the grid.
fn enumerated(tilp: &Tilp, inputs: &PlanInputs, grid: &[Choice]) -> [f32; 2] {
    let n_cells = inputs.rollout.n_terminals() * inputs.rollout.n_steps();
    let total = grid.len().pow(n_cells as u32);
    let mut cells = vec![ChoiceLanes::ZERO; n_cells];
    let mut returns = Vec::with_capacity(total + LANES);
    for first in (0..total).step_by(LANES) {
        for lane in 0..LANES {
            // The last group repeats its last sequence.
            let mut number = (first + lane).min(total - 1);
            for cell in &mut cells {
                cell.set(lane, &grid[number % grid.len()]);
                number /= grid.len();
            }
        }
        let n_terminals = inputs.rollout.n_terminals();
        returns.extend(tilp.score(inputs, Candidates { group: 0, n_terminals, cells: &cells }));
    }
    returns.truncate(total);
    let (below, median, above) = returns.select_nth_unstable_by(total / 2, f32::total_cmp);
    let best = below.iter().chain(above.iter()).fold(*median, |best, one| best.max(*one));
    [best, *median]
}

/// The choices on the grid that are nearest to those of sixteen candidates.
fn snapped(cell: &ChoiceLanes, grid: &[Choice]) -> ChoiceLanes {
    let mut on_grid = ChoiceLanes::ZERO;
    for lane in 0..LANES {
        let flag = cell.flag[lane] > 0.5;
        let distance = |one: &Choice| {
            let [_, power, compression] = one.reals;
            let cut = (one.category as f32 - cell.category[lane]).abs();
            cut + (power - cell.reals[1][lane]).abs() + (compression - cell.reals[2][lane]).abs()
        };
        let same = grid.iter().filter(|one| one.flag == flag);
        let nearest = same.min_by(|a, b| distance(a).total_cmp(&distance(b)));
        on_grid.set(lane, nearest.expect("the grid has both"));
    }
    on_grid
}

/// The return of the best sequence of a planner that chooses from the grid only.
fn planned_on_grid(tilp: &Tilp, inputs: &PlanInputs, grid: &[Choice]) -> f32 {
    let distribution = &guide::prior(&tilp.twin, inputs, &tilp.options);
    let score = |candidates: Candidates<'_>, scores: &mut Lanes| {
        let cells: Vec<ChoiceLanes> =
            candidates.cells.iter().map(|cell| snapped(cell, grid)).collect();
        *scores = tilp.score(inputs, Candidates { cells: &cells, ..candidates });
    };
    let start = Start { distribution, actor: None, seed: tilp.seed.named("search") };
    let mut planner = Planner::default();
    for sequence in guide::sequences(&tilp.twin, inputs, &tilp.options) {
        planner.suggest(&sequence);
    }
    planner.search(&tilp.options.cem, start, &score, &mut || false).best.score
}

/// Shortfall of searches on the grid from the best return on it: as a share of the best, and of the
/// difference between best and median. Each in ascending order over 100 random cells of three
/// terminals.
fn shortfalls(cem: Cem, horizon: usize, grid: &[Choice]) -> [Vec<f32>; 2] {
    let shortfall = |instance: u64| {
        let mut fake = Fake::new(3, DEFAULT, 1000 + instance);
        let options = options(cem, horizon, 2.0, PARTS);
        // After 0 to 23 rounds: some states are rounds that aggregate, some have no data yet.
        let (tilp, seen) = after(&mut fake, instance % 24, options, instance);
        let inputs = tilp.inputs(&seen, horizon);
        let [best, median] = enumerated(&tilp, &inputs, grid);
        let short = best - planned_on_grid(&tilp, &inputs, grid);
        [short / best.abs(), short / (best - median).max(1e-9)]
    };
    let found: Vec<[f32; 2]> = (0..100).map(shortfall).collect();
    [0, 1].map(|of| {
        let mut shares: Vec<f32> = found.iter().map(|both| both[of]).collect();
        shares.sort_by(f32::total_cmp);
        shares
    })
}

fn check_shortfalls(horizon: usize, grid: &[Choice]) {
    for shares in shortfalls(Cem::improved(200, 25, 5), horizon, grid) {
        assert!(shares[94] <= 0.01, "{:?}", &shares[90..]);
    }
}

#[test]
fn one_step_of_three_terminals_is_within_one_percent_of_the_best_of_the_grid() {
    check_shortfalls(1, &grid(&[0, 2, 4], &[0.3, 0.6, 0.999], &[0.5, 0.8, 0.999]));
}

#[test]
fn two_steps_of_three_terminals_are_within_one_percent_of_the_best_of_the_grid() {
    check_shortfalls(2, &grid(&[0, 2], &[0.3, 0.999], &[0.8]));
}

/// The best of ten times the samples of a whole search, all drawn from the start distribution.
fn at_random(tilp: &Tilp, seen: &Observation) -> f32 {
    let inputs = tilp.inputs(seen, tilp.options.horizon);
    let distribution = &guide::prior(&tilp.twin, &inputs, &tilp.options);
    let score = |candidates: Candidates<'_>, scores: &mut Lanes| {
        *scores = tilp.score(&inputs, candidates);
    };
    let Cem { samples, iterations, .. } = tilp.options.cem;
    let mut best = f32::NEG_INFINITY;
    for part in 0..iterations as u64 {
        let seed = tilp.seed.named("at random").at(part);
        let start = Start { distribution, actor: None, seed };
        let cem = Cem::paper(10 * samples, 1, 1);
        let found = Planner::default().search(&cem, start, &score, &mut || false);
        best = best.max(found.best.score);
    }
    best
}

/// Returns in states of different cells at different times: of the search, of random search with
/// ten times the samples, and of the paper's plain sampling with a decoder without repair.
fn contest(states: std::ops::Range<u64>) -> Vec<[f32; 3]> {
    let state = |state: u64| {
        let mut fake = Fake::new(50, DEFAULT, 2000 + state);
        let improved = options(Cem::improved(200, 25, 5), 16, 10.0, PARTS);
        let (mut tilp, seen) = after(&mut fake, 3 * state, improved, state);
        let plain = Parts { repair: false, seeds: false, ..PARTS };
        let plain = options(Cem::paper(200, 25, 5), 16, 10.0, plain);
        let mut paper = Tilp::new(fake.nominal.clone(), plain, Seed::new(state));
        paper.twin = tilp.twin.clone();
        [planned(&mut tilp, &seen), at_random(&tilp, &seen), planned(&mut paper, &seen)]
    };
    states.map(state).collect()
}

#[test]
fn fifty_terminals_over_sixteen_steps_beat_random_search_and_plain_sampling() {
    let returns = contest(0..20);
    for rival in 1..3 {
        let ahead = returns.iter().filter(|one| one[0] > one[rival]).count();
        let lead = returns.iter().map(|one| one[0] - one[rival]).sum::<f32>();
        assert!(ahead >= 16 && lead > 0.0, "rival {rival}: {ahead} of 20, {returns:?}");
    }
}

/// A planner in a state of a fake cell.
fn waiting(n: usize, weights: RewardWeights, seed: u64) -> (Tilp, Observation) {
    let mut fake = Fake::new(n, DEFAULT, seed);
    let mut options = options(Cem::improved(200, 25, 5), 4, 3.0, PARTS);
    options.twin.weights = weights;
    after(&mut fake, seed % 24, options, seed)
}

#[test]
fn a_round_is_never_left_empty_however_much_time_and_energy_weigh() {
    let idle_pays = RewardWeights { task: 1e-6, delay: 1.0, energy: 1.0, penalty: 1.0 };
    for seed in 0..12 {
        let (mut tilp, seen) = waiting(8, idle_pays, 3000 + seed);
        let plan = tilp.explain(&seen);
        let scheduled = plan.decision.scheduled().count();
        assert!(scheduled > 0 && !plan.decision.fallback, "seed {seed}: {plan:?}");
        assert!(plan.planned_return.is_some() && plan.predicted.n_late == 0, "seed {seed}");
        assert!(plan.runner_ups.iter().all(|other| other.n_scheduled > 0), "seed {seed}");
    }
}

#[test]
fn who_is_left_when_nobody_is_sure_has_the_memory_for_it() {
    let (mut tilp, mut seen) = waiting(6, TwinOptions::default().weights, 3100);
    // All are out of reach; the one with the best channel has too little memory.
    for (n, view) in seen.terminals.iter_mut().enumerate() {
        view.report.gain.0 = 1e-19 * (n + 1) as f64;
        view.report.memory.0 = if n == 5 { 1 } else { 100_000 };
        view.report.fading_power = 1.0;
    }
    let decision = tilp.decide(&seen).unwrap();
    assert!(decision.fallback);
    assert_eq!(decision.scheduled().collect::<Vec<_>>(), [4]);
}

#[test]
fn in_the_mirror_an_executed_round_earns_what_was_imagined_for_it() {
    for task_driven in [true, false] {
        let mut fake = Fake::new(12, MIRROR, 3200);
        let mut options = options(Cem::improved(200, 25, 5), 4, 3.0, PARTS);
        options.twin.task_driven = task_driven;
        // The gain is measured, not computed from the plan, so its weight is zero.
        options.twin.weights = RewardWeights { task: 0.0, delay: 0.3, energy: 0.2, penalty: 1.0 };
        let mut tilp = Tilp::new(fake.nominal.clone(), options, Seed::new(1));
        for _ in 0..25 {
            let (seen, plan) = (fake.observe(), fake.any_plan(4));
            let (mut after, mut scratch) = (tilp.twin.state(&seen), tilp.twin.scratch());
            let actions = &plan.decision().terminals;
            let imagined = tilp.twin.step(&mut after, actions, Sureness::Likely, &mut scratch);
            let before = tilp.twin.state(&seen);
            let outcome = fake.execute(&plan);
            let states = [&before, &before];
            let real = tilp.twin.realised_reward(&seen, &plan, &outcome, states, Seconds(0.0));
            let real = real.total();
            // The delay of a late terminal is not observed, so the time of such a round is cut.
            if imagined.n_late == 0 {
                let total = imagined.reward.total();
                assert!((real - total).abs() < 1e-9 * total.abs(), "{real} instead of {total}");
            }
            tilp.twin.calibrate(&seen, &plan, &outcome);
        }
    }
}
