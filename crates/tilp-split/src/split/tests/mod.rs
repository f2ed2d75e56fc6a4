//! The engine against centralised training, its rules, its sizes.

mod adapters;
mod baselines;
mod equivalence;
mod exchange;
mod links;
mod membership;
mod naive;
mod optimisers;
mod reference;
mod rules;
mod sizes;
mod snapshots;

use std::sync::Arc;

use super::compress::{Compressor, Exchange};
use super::control::TrainOrder;
use super::data::{Batch, Dataset};
use super::engine::{Engine, Participant, Settings, locked};
use super::link::TerminalLink;
use super::message::Context;
use super::model::{SplitModel, Weights};
use super::optimiser::{AdamW, Optimiser, StateAtAggregation};
use super::policy::{Architecture, Lora, Policy};
use super::rule::Local;
use crate::nn::check::values;
use crate::rng::Seed;
use crate::round::TerminalId;

/// Twelve groups of five features, four actions: the default policy.
fn policy() -> Policy {
    let tokens = (0..12).map(|token| (5 * token, 5)).collect();
    Policy::new(Architecture::pyramid(tokens, 4)).unwrap()
}

/// The same pyramid, thin enough for many steps.
fn thin_policy() -> Policy {
    let tokens = (0..4).map(|token| (3 * token, 3)).collect();
    let architecture = Architecture { width: 8, heads: 2, ..Architecture::pyramid(tokens, 4) };
    Policy::new(architecture).unwrap()
}

/// The policy with adapters over weights drawn at random.
fn adapted(policy: Policy, lora: Lora) -> Policy {
    let base = Arc::new(policy.initial(Seed::new(4)));
    policy.with_adapters(lora, base)
}

fn momentum(momentum: f32) -> Optimiser {
    Optimiser::Sgd { momentum }
}

fn adamw() -> Optimiser {
    Optimiser::AdamW(AdamW { beta1: 0.9, beta2: 0.95, epsilon: 1e-5, weight_decay: 0.05 })
}

fn settings() -> Settings {
    Settings {
        seed: Seed::new(5),
        minibatches: Seed::new(5),
        samples: 16,
        server_rate: 0.05,
        client_rate: 0.05,
        optimiser: momentum(0.0),
        clip: 0.0,
        state_at_aggregation: StateAtAggregation::Reset,
        compressor: Compressor::Quantize,
        exchange: Exchange::Single,
    }
}

/// Data of a terminal: actions that depend on the observations, and on the terminal.
fn data(policy: &Policy, terminal: usize, samples: usize) -> Arc<Dataset> {
    let width = policy.n_elements(0);
    let mut data = Dataset::new(width, 4);
    for sample in 0..samples {
        let observation = values(width, (1000 * terminal + sample) as u32);
        let total: f32 = observation.iter().take(6).sum();
        let shift = terminal as f32 * 0.1;
        data.push(&observation, &[total, shift - observation[2], observation[0], 0.5]);
    }
    Arc::new(data)
}

/// An engine over terminals with these numbers of samples.
fn engine(policy: Policy, settings: Settings, samples: &[usize]) -> Engine<Policy> {
    let data: Vec<_> =
        samples.iter().enumerate().map(|(index, count)| data(&policy, index, *count)).collect();
    let base = policy.initial(Seed::new(3));
    Engine::new(Arc::new(policy), settings, &base, &data)
}

fn ids(terminals: &[u32]) -> Vec<TerminalId> {
    terminals.iter().copied().map(TerminalId).collect()
}

fn all_at<L: TerminalLink>(engine: &Engine<Policy, L>, cut: usize, q: f64) -> Vec<Participant> {
    engine.ids().into_iter().map(|terminal| Participant { terminal, cut, q }).collect()
}

fn everybody<L: TerminalLink>(engine: &Engine<Policy, L>) -> Vec<TerminalId> {
    engine.ids()
}

/// The copies that belong to a terminal, on it or kept by the server; others are empty.
fn own_weights(engine: &Engine<Policy>, terminal: u32) -> Weights {
    let id = TerminalId(terminal);
    let mut weights = locked(&engine.links[&id]).terminal().weights().clone();
    for layer in 1..=weights.n_layers() {
        if let Some(copy) = engine.server.terminals[&id].kept(layer) {
            weights.layer_mut(layer).clone_from(&copy.parameters);
        }
    }
    weights
}

/// The order of a server with these settings.
fn order(settings: &Settings, round: u64, terminal: u32, cut: u16, q: f64) -> TrainOrder {
    TrainOrder {
        context: Context { round, terminal: TerminalId(terminal), cut },
        q,
        rate: settings.client_rate,
        optimiser: settings.optimiser,
        clip: settings.clip,
        samples: settings.samples as u32,
        compressor: settings.compressor,
        local: Local::Steps(1),
    }
}

/// The minibatches of some terminals in one round, side by side.
fn union_batch(engine: &Engine<Policy>, terminals: &[u32], round: u64) -> Batch {
    let (mut union, mut one) = (Batch::default(), Batch::default());
    for terminal in ids(terminals) {
        let mut rng = engine.settings.stream("split/minibatch", terminal, round);
        let data = engine.data(terminal).unwrap();
        data.draw(engine.settings.samples, &mut rng, &mut one);
        union.observations.extend_from_slice(&one.observations);
        union.actions.extend_from_slice(&one.actions);
        union.samples += one.samples;
    }
    union
}

/// The largest difference of two sets of weights, relative to the largest weight.
fn distance(left: &Weights, right: &Weights) -> f64 {
    let both = || left.layers().iter().flatten().zip(right.layers().iter().flatten());
    let most = both().fold(0.0f64, |most, (a, _)| most.max(f64::from(a.abs())));
    both().fold(0.0f64, |far, (a, b)| far.max(f64::from((a - b).abs()))) / most
}
