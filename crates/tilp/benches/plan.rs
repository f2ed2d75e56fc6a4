//! Time of one plan at the paper's settings, in a synthetic twin of the right cost (rate, delay and
//! energy of every terminal and step); prints `name = milliseconds`.
//!
//! `benches/peers/run_plan` runs this beside the same search in PyTorch and in JAX.

use std::time::Instant;

use tilp::rl::actor::Scenes;
use tilp::rl::critic::CriticTrace;
use tilp::rl::policy::Space;
use tilp::rl::replay::Scene;
use tilp::rl::sac::{Sac, Settings};
use tilp::rng::Seed;
use tilp::search::cem::{Cem, Planner, Start};
use tilp::search::distribution::{Distribution, Law};
use tilp::search::fast::{LANES, Lanes, exp2, ln};
use tilp::search::score::Candidates;

const STEPS: usize = 16;
const DISCOUNT: f32 = 0.99;
/// Bits to send, work of the terminal, for each cut.
const BITS: [f32; 5] = [4.0, 3.0, 2.0, 1.5, 1.0];
const WORK: [f32; 5] = [0.1, 0.2, 0.3, 0.4, 0.5];
const FEATURES: usize = 8;

fn main() {
    let base = median(50, 200, false);
    println!("search = {base:.3}");
    println!("search_actor_critic = {:.3}", median(50, 200, true));
    println!("improved = {:.3}", timed(&Cem::improved(200, 25, 5), 50, false, 61));
    for terminals in [10, 100, 1000] {
        println!("search_{terminals}_terminals = {:.3}", median(terminals, 200, false));
    }
    for samples in [500, 1000, 2000] {
        println!("search_{samples}_samples = {:.3}", median(50, samples, false));
    }
}

fn median(terminals: usize, samples: usize, guided: bool) -> f64 {
    let calls = if terminals * samples > 50_000 { 15 } else { 61 };
    timed(&Cem::paper(samples, 25, 5), terminals, guided, calls)
}

/// The median time of a plan.
fn timed(cem: &Cem, terminals: usize, guided: bool, calls: usize) -> f64 {
    let space = Space {
        terminal_features: FEATURES,
        global_features: 4,
        reals: 3,
        categories: 5,
        flag: true,
    };
    let sac = Sac::new(space, Settings::usual(&space), Seed::new(0));
    let state = Scene { terminals: vec![0.3; FEATURES * terminals], globals: vec![0.1; 4] };
    let gains: Vec<f32> = (0..terminals).map(|n| exp2(n as f32 * 3.0 / terminals as f32)).collect();
    let (mut planner, vague) = (Planner::default(), Distribution::vague(STEPS, terminals, 5));
    let mut times = Vec::new();
    for call in 0..calls + 5 {
        let clock = Instant::now();
        let seed = Seed::new(call as u64);
        let found = if guided {
            let start = actor_start(&sac, &state);
            let start = Start { distribution: &start, actor: None, seed };
            planner.search(cem, start, &|c, s| guided_score(&sac, &gains, c, s), &mut || false)
        } else {
            let start = Start { distribution: &vague, actor: None, seed };
            planner.search(cem, start, &|c, s| drop(roll_out(&gains, c, s)), &mut || false)
        };
        std::hint::black_box(found);
        times.push(clock.elapsed().as_secs_f64() * 1e3);
    }
    let mut times = times.split_off(5);
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn actor_start(sac: &Sac, state: &Scene) -> Distribution {
    let laws: Vec<Law> = (sac.laws(state).iter())
        .map(|seen| {
            let mut law = Law::vague(5);
            law.mean.copy_from_slice(&seen.mean);
            law.deviation.copy_from_slice(&seen.deviation);
            law.set_logits(&seen.logits);
            law.flag = seen.flag;
            law
        })
        .collect();
    Distribution::repeated(&laws, STEPS, 5)
}

/// Rewards of a rollout: returns how full every terminal's store is at the end.
fn roll_out(gains: &[f32], candidates: Candidates<'_>, scores: &mut Lanes) -> Vec<Lanes> {
    let mut stores = vec![[0.0; LANES]; gains.len()];
    run(gains, candidates, &mut stores, scores);
    stores
}

#[inline(always)]
fn run_plain(gains: &[f32], candidates: Candidates<'_>, stores: &mut [Lanes], scores: &mut Lanes) {
    *scores = [0.0; LANES];
    let mut weight = 1.0;
    for step in 0..candidates.n_steps() {
        let cells = candidates.step(step);
        let (mut shared, mut energy, mut delay, mut gain) =
            ([1e-6; LANES], [0.0; LANES], [0.0f32; LANES], [0.0; LANES]);
        for cell in cells {
            for lane in 0..LANES {
                shared[lane] += cell.flag[lane] * cell.reals[0][lane];
            }
        }
        for ((cell, gain_here), store) in cells.iter().zip(gains).zip(stores.iter_mut()) {
            for lane in 0..LANES {
                let flag = cell.flag[lane];
                // The table as a sum of its steps: selects of a single value stay vectors.
                let (mut bits, mut work) = (BITS[0], WORK[0]);
                for cut in 1..5 {
                    let past = if cell.category[lane] >= cut as f32 { 1.0 } else { 0.0 };
                    bits += past * (BITS[cut] - BITS[cut - 1]);
                    work += past * (WORK[cut] - WORK[cut - 1]);
                }
                let share = cell.reals[0][lane] / shared[lane] + 1e-3;
                let power = cell.reals[1][lane];
                let rate = share * ln(1.0 + power * gain_here / share);
                let sent = bits * (1.0 - 0.9 * cell.reals[2][lane]);
                let air = sent / (rate + 1e-3);
                let time = flag * (air + work);
                delay[lane] = if time > delay[lane] { time } else { delay[lane] };
                energy[lane] += flag * (power * air + work);
                gain[lane] += flag * (1.0 - 0.5 * cell.reals[2][lane]) / (1.0 + store[lane]);
                store[lane] += flag;
            }
        }
        for lane in 0..LANES {
            scores[lane] += weight * (gain[lane] - 0.1 * energy[lane] - 0.1 * delay[lane]);
        }
        weight *= DISCOUNT;
    }
}

fn run(gains: &[f32], candidates: Candidates<'_>, stores: &mut [Lanes], scores: &mut Lanes) {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,fma")]
        fn wide(g: &[f32], c: Candidates<'_>, stores: &mut [Lanes], scores: &mut Lanes) {
            run_plain(g, c, stores, scores);
        }
        if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
            // SAFETY: the processor has just been found to have what `wide` is built for.
            return unsafe { wide(gains, candidates, stores, scores) };
        }
    }
    run_plain(gains, candidates, stores, scores);
}

/// The rollout with the value head on the states it ends in.
fn guided_score(sac: &Sac, gains: &[f32], candidates: Candidates<'_>, scores: &mut Lanes) {
    let stores = roll_out(gains, candidates, scores);
    let columns = gains.len() * LANES;
    let mut terminals = vec![0.3; FEATURES * columns];
    for (terminal, store) in stores.iter().enumerate() {
        terminals[terminal * LANES..(terminal + 1) * LANES].copy_from_slice(store);
    }
    let globals = vec![0.1; 4 * LANES];
    let scenes = Scenes { n_terminals: gains.len(), samples: LANES, terminals, globals };
    let mut trace = CriticTrace::default();
    let values = sac.value(&scenes, &mut trace);
    let weight = DISCOUNT.powi(STEPS as i32);
    scores.iter_mut().zip(values).for_each(|(score, value)| *score += weight * value);
}
