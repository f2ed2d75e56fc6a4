//! Time of one plan at the paper's settings, in a synthetic twin of the right cost (rate, delay and
//! energy of every terminal and step); prints `name = milliseconds`,
//! medians and least times.
//!
//! `benches/peers/run_plan` runs this beside the same search in PyTorch and in JAX.

use std::sync::Mutex;
use std::time::Instant;

use tilp::lanes::{LANES, Lanes, exp2, ln};
use tilp::rl::actor::Scenes;
use tilp::rl::critic::CriticTrace;
use tilp::rl::policy::Space;
use tilp::rl::replay::Scene;
use tilp::rl::sac::{Sac, Settings};
use tilp::rng::Seed;
use tilp::search::cem::{Cem, Planner, Start};
use tilp::search::distribution::{Distribution, Law};
use tilp::search::score::Candidates;

const STEPS: usize = 16;
const DISCOUNT: f32 = 0.99;
/// Bits to send, work of the terminal, for each cut.
const BITS: [f32; 5] = [4.0, 3.0, 2.0, 1.5, 1.0];
const WORK: [f32; 5] = [0.1, 0.2, 0.3, 0.4, 0.5];
const FEATURES: usize = 8;

fn main() {
    let paper = |samples: usize| Cem::paper(samples, 25, 5);
    report("search", timed(&paper(200), 50, false, 61));
    report("search_actor_critic", timed(&paper(200), 50, true, 61));
    report("improved", timed(&Cem::improved(200, 25, 5), 50, false, 61));
    for terminals in [10, 100, 1000] {
        let name = format!("search_{terminals}_terminals");
        report(&name, timed(&paper(200), terminals, false, 15));
    }
    for samples in [500, 1000, 2000] {
        report(&format!("search_{samples}_samples"), timed(&paper(samples), 50, false, 15));
    }
}

fn report(name: &str, [median, least]: [f64; 2]) {
    println!("{name} = {median:.3}\n{name}_least = {least:.3}");
}

/// The median and the least time of a plan: the least is what a busy machine leaves alone.
fn timed(cem: &Cem, terminals: usize, guided: bool, calls: usize) -> [f64; 2] {
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
    let n_groups = cem.samples.div_ceil(LANES) + 1;
    let scratches: Vec<Mutex<Scratch>> = (0..n_groups).map(|_| Mutex::default()).collect();
    let mut times = Vec::new();
    for call in 0..calls + 5 {
        let clock = Instant::now();
        let seed = Seed::new(call as u64);
        let actors = guided.then(|| actor_start(&sac, &state));
        let distribution = actors.as_ref().unwrap_or(&vague);
        let start = Start { distribution, actor: None, seed };
        let score = |candidates: Candidates<'_>, scores: &mut Lanes| {
            let mut scratch = scratches[candidates.group].lock().unwrap();
            roll_out(&gains, &mut scratch, candidates, scores);
            if guided {
                add_values(&sac, &mut scratch, scores);
            }
        };
        let found = planner.search(cem, start, &score, &mut || false);
        std::hint::black_box(found);
        times.push(clock.elapsed().as_secs_f64() * 1e3);
    }
    let mut times = times.split_off(5);
    times.sort_by(f64::total_cmp);
    [times[times.len() / 2], times[0]]
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

/// Memory of a rollout, one for each group of candidates.
#[derive(Default)]
struct Scratch {
    stores: Vec<Lanes>,
    scenes: Scenes,
    trace: CriticTrace,
}

/// Rewards of a rollout; leaves how full every terminal's store is at the end.
fn roll_out(gains: &[f32], scratch: &mut Scratch, candidates: Candidates<'_>, scores: &mut Lanes) {
    scratch.stores.clear();
    scratch.stores.resize(gains.len(), [0.0; LANES]);
    run(gains, candidates, &mut scratch.stores, scores);
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
            #[expect(clippy::needless_range_loop, reason = "lanes of several arrays go together")]
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

/// The value head on the states a rollout ended in.
fn add_values(sac: &Sac, scratch: &mut Scratch, scores: &mut Lanes) {
    let Scratch { stores, scenes, trace } = scratch;
    (scenes.n_terminals, scenes.samples) = (stores.len(), LANES);
    scenes.terminals.resize(FEATURES * stores.len() * LANES, 0.3);
    scenes.globals.resize(4 * LANES, 0.1);
    for (lanes, store) in scenes.terminals.chunks_exact_mut(LANES).zip(&*stores) {
        lanes.copy_from_slice(store);
    }
    let weight = DISCOUNT.powi(STEPS as i32);
    let values = sac.value(scenes, trace);
    scores.iter_mut().zip(values).for_each(|(score, value)| *score += weight * value);
}
