//! Time of one training step and of one round of 50 terminals; prints `name = milliseconds`.
//!
//! `benches/peers/run` runs this beside the same model in PyTorch and prints the ratios.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use tilp::rng::Seed;
use tilp::round::TerminalId;
use tilp::split::compress::{Compressor, Exchange};
use tilp::split::data::Dataset;
use tilp::split::engine::{Engine, Participant, Settings};
use tilp::split::model::{SplitModel, Weights};
use tilp::split::optimiser::{AdamW, Optimiser, OptimiserState, StateAtAggregation};
use tilp::split::policy::{Architecture, Policy};

const SAMPLES: usize = 64;
const TERMINALS: usize = 50;
const CUT: usize = 3;
const PLAIN: Optimiser = Optimiser::Sgd { momentum: 0.0 };
const ADAMW: Optimiser =
    Optimiser::AdamW(AdamW { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.01 });

/// Prints the median time of so many calls under a name.
type Report<'a> = &'a dyn Fn(&str, usize, &mut dyn FnMut());

fn main() {
    let tokens = (0..12).map(|token| (5 * token, 5)).collect();
    let policy = Arc::new(Policy::new(Architecture::pyramid(tokens, 4)).expect("sound"));
    let base = policy.initial(Seed::new(0));
    act(&policy, &base);
    for (optimiser, suffix) in [(PLAIN, ""), (ADAMW, "_adamw")] {
        let report = |name: &str, calls, work: &mut dyn FnMut()| {
            report(&format!("{name}{suffix}"), calls, work);
        };
        step(&policy, &base, optimiser, &report);
        split_step(&policy, &base, optimiser, &report);
        round(&policy, &base, (optimiser, 0.0), "round_50", &report);
        round(&policy, &base, (optimiser, 0.75), "round_50_q75", &report);
        sync_round(&policy, &base, optimiser, &report);
    }
}

/// Deterministic values of order one.
fn values(count: usize, seed: usize) -> Vec<f32> {
    (0..count).map(|index| ((index * 7919 + seed * 104_729) % 2003) as f32 / 1001.0 - 1.0).collect()
}

/// Prints the median time of a call in milliseconds.
fn report(name: &str, calls: usize, mut work: impl FnMut()) {
    for _ in 0..calls / 5 + 1 {
        work();
    }
    let mut times: Vec<f64> = (0..calls)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!("{name} = {:.4}", times[times.len() / 2]);
}

fn step(policy: &Policy, base: &Weights, optimiser: Optimiser, report: Report) {
    let (observations, actions) = (values(SAMPLES * 60, 1), values(SAMPLES * 4, 2));
    let mut weights = base.clone();
    let (mut workspace, mut gradients) = (policy.workspace(), Weights::zeros(policy));
    let mut flow = Vec::new();
    let last = policy.n_layers();
    let mut state = OptimiserState::new(last);
    report("step", 2000, &mut || {
        let outputs = policy.forward(1..=last, &weights, &observations, &mut workspace);
        black_box(policy.loss(outputs, &actions, &mut flow));
        policy.backward(1..=last, &weights, &flow, &mut workspace, &mut gradients);
        state.step(optimiser, &mut weights, &gradients, 1..=last, 0.01);
    });
}

fn act(policy: &Policy, base: &Weights) {
    let observations = values(SAMPLES * 60, 1);
    let mut actions = vec![0.0; SAMPLES * 4];
    report("act", 2000, || policy.act(base, &observations, black_box(&mut actions)));
}

fn engine(
    policy: &Arc<Policy>,
    base: &Weights,
    n_terminals: usize,
    optimiser: Optimiser,
) -> Engine<Policy> {
    let data: Vec<Arc<Dataset>> = (0..n_terminals)
        .map(|terminal| {
            let mut data = Dataset::new(60, 4);
            for sample in 0..200 {
                let seed = 200 * terminal + sample;
                data.push(&values(60, seed), &values(4, seed));
            }
            Arc::new(data)
        })
        .collect();
    let settings = Settings {
        seed: Seed::new(0),
        minibatches: Seed::new(0),
        samples: SAMPLES,
        server_rate: 0.01,
        client_rate: 0.01,
        optimiser,
        clip: 0.0,
        state_at_aggregation: StateAtAggregation::Reset,
        compressor: Compressor::Quantize,
        exchange: Exchange::Single,
    };
    Engine::new(policy.clone(), settings, base, &data)
}

fn participants(n_terminals: usize, q: f64) -> Vec<Participant> {
    let ids = (0..n_terminals as u32).map(TerminalId);
    ids.map(|terminal| Participant { terminal, cut: CUT, q }).collect()
}

/// One terminal through the messages, cut in the middle.
fn split_step(policy: &Arc<Policy>, base: &Weights, optimiser: Optimiser, report: Report) {
    let mut engine = engine(policy, base, 1, optimiser);
    let mut round = 0;
    report("split_step", 1000, &mut || {
        round += 1;
        black_box(engine.round(round, &participants(1, 0.0)).expect("sound"));
    });
}

fn round(
    policy: &Arc<Policy>,
    base: &Weights,
    (optimiser, q): (Optimiser, f64),
    name: &str,
    report: Report,
) {
    let mut engine = engine(policy, base, TERMINALS, optimiser);
    let mut round = 0;
    report(name, 60, &mut || {
        round += 1;
        black_box(engine.round(round, &participants(TERMINALS, q)).expect("sound"));
    });
}

/// A round with an aggregation after it and the download before it.
fn sync_round(policy: &Arc<Policy>, base: &Weights, optimiser: Optimiser, report: Report) {
    let mut engine = engine(policy, base, TERMINALS, optimiser);
    let everybody = engine.ids();
    let mut round = 0;
    report("round_50_aggregated", 60, &mut || {
        round += 1;
        black_box(engine.round(round, &participants(TERMINALS, 0.0)).expect("sound"));
        engine.aggregate(&everybody).expect("sound");
    });
}
