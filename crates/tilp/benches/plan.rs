//! Time of one whole plan of TiLP in its twin: what the twin looks at, search, guard. Prints
//! `name = milliseconds`, medians and least times.
//!
//! The cell is made here; what TiLP is set to comes from the default scenario. `plain` is the
//! paper's sampler with the band shared by need, `improved` the sampled search, `inner` the search
//! with an inner solver; `guided` has actor and critic. `plain_gflops` beside `peak_gflops` is the share of the machine
//! that the search uses.
//!
//! With `--problem FILE` it writes the numbers of one problem, some candidates and their returns
//! instead: what the same search in PyTorch and in JAX plans on and is checked against
//! (`benches/peers/run_plan`).

use std::time::Instant;

use rand::RngExt as _;
use tilp::allocate::{Parts, Tilp, TilpOptions};
use tilp::cost::{Accounting, CostModel, Downlink, Hardware, Payload, Profile, Sync};
use tilp::nn::matrix::{Matrix, Store, product};
use tilp::rng::Seed;
use tilp::round::{Allocator, Limits, Observation, TerminalId, TerminalReport, TerminalView};
use tilp::scenario::{Scenario, tilp_options};
use tilp::search::cem::Cem;
use tilp::search::sample::Choice;
use tilp::split::compress::{Compressor, Exchange};
use tilp::split::model::CutProfile;
use tilp::split::rates::{RateSchedule, Rates};
use tilp::twin::{Nominal, RewardWeights, TwinOptions};
use tilp::units::{Bytes, Gain, Hertz, Operations, Seconds, Watts};
use tilp::wireless::RateModel;

const N_LAYERS: usize = 7;
const N_TASKS: usize = 8;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|one| one == "--problem") {
        return std::fs::write(&arguments[at + 1], problem()).expect("writes the problem");
    }
    let (plain, improved) = (cem(true, 200), cem(false, 200));
    let [median, least] = timed(plain, 50, false, 301);
    report("plain", [median, least]);
    let billions = OPERATIONS * (5 * 200 * 16 * 50) as f64 / 1e9;
    println!("plain_gflops = {:.1}", billions / (1e-3 * median));
    report("plain_guided", timed(plain, 50, true, 301));
    report("improved", timed(improved, 50, false, 61));
    report("improved_guided", timed(improved, 50, true, 61));
    for (name, guided) in [("inner", false), ("inner_guided", true)] {
        report(name, timed_with(inner(guided), 50, 61));
    }
    for terminals in [100, 1000] {
        let name = format!("inner_guided_{terminals}_terminals");
        report(&name, timed_with(inner(true), terminals, 15));
    }
    println!("peak_gflops = {:.1}", peak());
    for terminals in [10, 100, 1000] {
        report(&format!("plain_{terminals}_terminals"), timed(plain, terminals, false, 15));
    }
    for samples in [500, 1000, 2000] {
        report(&format!("plain_{samples}_samples"), timed(cem(true, samples), 50, false, 15));
    }
}

fn report(name: &str, [median, least]: [f64; 2]) {
    println!("{name} = {median:.3}\n{name}_least = {least:.3}");
}

/// Floating-point operations for one terminal in one step of one candidate in the plain search, a
/// fused multiply-add as two, counted in the source: 137 to draw it, 72 to decode it, 100 for its
/// part of the round, 13 for its share of the refit.
const OPERATIONS: f64 = 322.0;

/// Billions of floating-point operations a second of two threads, each in a large matrix product:
/// what the machine gives at best.
fn peak() -> f64 {
    const N: usize = 1024;
    let work = || {
        let (left, right, mut output) = (vec![1.0; N * N], vec![1.0; N * N], vec![0.0; N * N]);
        for _ in 0..12 {
            let (left, right) = (Matrix::new(&left, N, N), Matrix::new(&right, N, N));
            product(&mut output, N, left, right, Store::Set);
        }
        std::hint::black_box(output);
    };
    let clock = Instant::now();
    std::thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(work))));
    2.0 * 12.0 * 2.0 * (N * N * N) as f64 / clock.elapsed().as_secs_f64() / 1e9
}

/// The median and the least time of a plan: the least is what a busy machine leaves alone.
fn timed(cem: Cem, n_terminals: usize, guided: bool, calls: usize) -> [f64; 2] {
    let is_plain = cem.remembered == 0;
    timed_with(options(cem, guided, !is_plain), n_terminals, calls)
}

fn timed_with(options: TilpOptions, n_terminals: usize, calls: usize) -> [f64; 2] {
    let mut tilp = Tilp::new(nominal(n_terminals), options, Seed::new(0));
    let mut times = Vec::new();
    for call in 0..calls + 5 {
        let seen = observation(n_terminals, 1 + call as u64);
        let clock = Instant::now();
        std::hint::black_box(tilp.decide(&seen).expect("TiLP decides"));
        times.push(clock.elapsed().as_secs_f64() * 1e3);
    }
    // The first calls make the memory that the others use again.
    let mut times = times.split_off(5);
    times.sort_by(f64::total_cmp);
    [times[times.len() / 2], times[0]]
}

/// A problem of fifty terminals as JSON, with candidates and what they return.
fn problem() -> String {
    let n_terminals = 50;
    let options = options(cem(true, 200), false, false);
    let tilp = Tilp::new(nominal(n_terminals), options, Seed::new(0));
    let seen = observation(n_terminals, 7);
    let mut rng = Seed::new(1).stream("candidates");
    let mut choice = || Choice {
        reals: std::array::from_fn(|_| rng.random_range(0.02..0.98)),
        category: rng.random_range(0..5),
        flag: rng.random_range(0.0..1.0) < 0.3,
    };
    let sequences: Vec<Vec<Choice>> =
        (0..32).map(|_| (0..16 * n_terminals).map(|_| choice()).collect()).collect();
    let rows = |one: &Choice| {
        let [b, p, q] = one.reals;
        [b, p, q, one.category as f32, f32::from(u8::from(one.flag))]
    };
    let candidates: Vec<[f32; 5]> = sequences.iter().flatten().map(rows).collect();
    let numbers: serde_json::Map<_, _> = (tilp.numbers(&seen).into_iter())
        .map(|(name, values)| (name.to_owned(), serde_json::json!(values)))
        .collect();
    let returns = tilp.returns(&seen, &sequences);
    let all = serde_json::json!({
        "discount": 0.95, "numbers": numbers, "candidates": candidates, "returns": returns,
    });
    format!("{all}\n")
}

/// TiLP as in the default scenario, but for this.
fn set(overrides: &[String]) -> TilpOptions {
    tilp_options(&Scenario::load("default", overrides).expect("a sound scenario"))
}

/// The search with this many samples.
fn cem(plain: bool, samples: usize) -> Cem {
    let plain = format!("methods.tilp.plain_search={plain}");
    set(&[plain, format!("methods.tilp.samples={samples}")]).cem
}

fn options(cem: Cem, guided: bool, seeds: bool) -> TilpOptions {
    let usual = set(&[]);
    let weights = RewardWeights { task: 1.0, delay: 5e-4, energy: 5e-3, penalty: 1.0 };
    TilpOptions {
        cem,
        horizon: 16,
        discount: 0.95,
        imagined: 0,
        updates: 0,
        // Actor and critic are asked as they are: what they know does not change what they cost.
        warm_up: 0,
        reward_unit: 1e-3,
        start_scheduled: 10.0,
        budget_ms: None,
        twin: TwinOptions { weights, ..usual.twin },
        parts: Parts { actor: guided, critic: guided, cem: true, repair: true, seeds },
        inner: None,
        ..usual
    }
}

/// The same with an inner solver.
fn inner(guided: bool) -> TilpOptions {
    let inner = set(&["methods.tilp.search.kind=\"inner\"".to_owned()]).inner;
    TilpOptions { inner, ..options(cem(false, 200), guided, true) }
}

/// Between 0 and 1, spread evenly over terminals whatever their number.
fn spread(n: usize, step: f64) -> f64 {
    (n as f64 * step).fract()
}

/// The data sheet of a terminal.
fn hardware(n: usize) -> Hardware {
    Hardware {
        operations_per_cycle: 0.1 * 10f64.powf(spread(n, 0.618)),
        clock: Hertz(1.5e9),
        energy_coefficient: 0.5e-28 * 4f64.powf(spread(n, 0.755)),
        noise_w_per_hz: 3.2e-20,
    }
}

fn nominal(n_terminals: usize) -> Nominal {
    let cut = |layer: usize| CutProfile {
        cut: layer,
        activation_elements: 256,
        operations: Operations(1e6 * layer as f64),
        parameters: Bytes(30_000 * layer as u64),
        memory: Bytes(1_000 * layer as u64),
    };
    let cost = CostModel {
        limits: Limits {
            deadline: Seconds(5.0),
            // As much for each of a thousand as for each of fifty.
            bandwidth: Hertz(0.4e6 * n_terminals as f64),
            power: Watts(0.2),
            compression: 0.9,
            cuts: vec![2, 3, 4, 5, 6],
        },
        profile: Profile { batch: 64, action: 8, cuts: (1..=N_LAYERS).map(cut).collect() },
        accounting: Accounting {
            compressor: Compressor::Quantize,
            payload: Payload::Encoded,
            sync: Sync::Billed,
            exchange: Exchange::Single,
        },
        rate_model: RateModel::Held,
        downlink: Downlink::Shared,
    };
    Nominal {
        cost,
        hardware: (0..n_terminals).map(hardware).collect(),
        closes: Seconds(5.0),
        give_up: Seconds(60.0),
        rho: 0.9,
        aggregate_every: 10,
        rates: RateSchedule {
            start: Rates { server: 0.05, terminal: 0.2 },
            final_share: 0.1,
            rounds: 1000,
            warm_up: 0,
        },
        tasks: (0..n_terminals).map(|n| n % N_TASKS).collect(),
        n_tasks: N_TASKS,
    }
}

fn observation(n_terminals: usize, round: u64) -> Observation {
    let report = |n: usize| TerminalReport {
        id: TerminalId(n as u32),
        hardware: hardware(n),
        memory: Bytes(if n.is_multiple_of(4) { 4_500 } else { 100_000 }),
        n_samples: 1000,
        task: n % N_TASKS,
        gain: Gain(10f64.powf(-9.0 - 3.5 * spread(n, 0.324))),
        fading_power: -(1.0 - spread(n + 7 * round as usize, 0.569)).ln(),
        held_layers: if n.is_multiple_of(3) { 4 } else { 0 },
        owed_layers: if n.is_multiple_of(3) { 4 } else { 0 },
    };
    let view = |n: usize| TerminalView {
        report: report(n),
        previous_bandwidth: Hertz(0.0),
        gradient_norm: Some(0.8 + 0.4 * spread(n, 0.133)),
        loss: None,
        rounds_since_scheduled: None,
        success: None,
    };
    Observation {
        round,
        clock: Seconds(0.0),
        aggregates: round.is_multiple_of(10),
        loss: None,
        success: None,
        budget: None,
        terminals: (0..n_terminals).map(view).collect(),
    }
}
