//! How good the plans are that the search finds in the twin, judged by the twin's own return.

use super::plan::Sights;
use super::*;
use crate::lanes::Lanes;
use crate::round::Observation;
use crate::search::cem::Start;
use crate::search::sample::Choice;
use crate::search::score::Candidates;
use crate::twin::RewardWeights;
use crate::twin::tests::fake::{DEFAULT, Fake};

const PARTS: Parts = Parts { actor: false, critic: false, cem: true, repair: true, seeds: true };

/// The default scenario's planner without actor and critic.
fn options(cem: Cem, horizon: usize, start_scheduled: f64, parts: Parts) -> TilpOptions {
    let weights = RewardWeights { task: 1.0, delay: 5e-4, energy: 5e-3, penalty: 1.0 };
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
    }
}

/// A planner whose twin has been calibrated for some rounds of a fake cell, and what it sees then.
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
    let sights = tilp.sights(seen, tilp.options.horizon);
    let now = sights.sight.scene(&sights.field, sights.field.start(), 0);
    tilp.search(seen, &sights, &now).best.score
}

/// What every terminal can do on a coarse grid: stay idle, or take part with one of the cuts,
/// powers and compressions; the shares of the band are left to the decoder.
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
fn enumerated(tilp: &Tilp, sights: &Sights, grid: &[Choice]) -> [f32; 2] {
    let n_cells = sights.field.n_terminals() * sights.field.n_steps();
    let total = grid.len().pow(n_cells as u32);
    let mut cells = vec![Cell::ZERO; n_cells];
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
        let n_terminals = sights.field.n_terminals();
        returns.extend(tilp.score(sights, Candidates { group: 0, n_terminals, cells: &cells }));
    }
    returns.truncate(total);
    let (below, median, above) = returns.select_nth_unstable_by(total / 2, f32::total_cmp);
    let best = below.iter().chain(above.iter()).fold(*median, |best, one| best.max(*one));
    [best, *median]
}

/// How far searches fall short of the best on the grid, as a share of the distance from the median
/// of the grid to its best; negative where the search, which may choose between the grid's points,
/// found better. In ascending order over 100 random cells of three terminals.
fn shortfalls(cem: Cem, horizon: usize, grid: &[Choice]) -> Vec<f32> {
    let shortfall = |instance: u64| {
        let mut fake = Fake::new(3, DEFAULT, 1000 + instance);
        let options = options(cem, horizon, 2.0, PARTS);
        // Up to 23 rounds on: some states are rounds that aggregate, some have seen nothing yet.
        let (mut tilp, seen) = after(&mut fake, instance % 24, options, instance);
        let sights = tilp.sights(&seen, horizon);
        let [best, median] = enumerated(&tilp, &sights, grid);
        (best - planned(&mut tilp, &seen)) / (best - median).max(1e-9)
    };
    let mut found: Vec<f32> = (0..100).map(shortfall).collect();
    found.sort_by(f32::total_cmp);
    found
}

#[test]
fn one_step_of_three_terminals_is_within_one_percent_of_the_best_of_the_grid() {
    let grid = grid(&[0, 2, 4], &[0.3, 0.6, 0.999], &[0.5, 0.8, 0.999]);
    let found = shortfalls(Cem::improved(200, 25, 5), 1, &grid);
    assert!(found[94] <= 0.01, "{:?}", &found[90..]);
}

#[test]
fn two_steps_of_three_terminals_are_within_one_percent_of_the_best_of_the_grid() {
    let grid = grid(&[0, 2], &[0.3, 0.999], &[0.8]);
    let found = shortfalls(Cem::improved(200, 25, 5), 2, &grid);
    assert!(found[94] <= 0.01, "{:?}", &found[90..]);
}

/// The best of ten times the samples of a whole search, all drawn from where the search starts.
fn at_random(tilp: &Tilp, seen: &Observation) -> f32 {
    let sights = tilp.sights(seen, tilp.options.horizon);
    let distribution = &guide::prior(&tilp.twin, &sights, &tilp.options);
    let score = |candidates: Candidates<'_>, scores: &mut Lanes| {
        *scores = tilp.score(&sights, candidates);
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
/// ten times the samples, and of the paper's plain sampling with a decoder that repairs nothing.
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
