//! The model in a welcome: architecture, adapters, weights.

use std::sync::Arc;

use tilp_core::message::{Context, LayerWeights};
use tilp_core::rng::Seed;
use tilp_core::round::TerminalId;
use tilp_split::split::model::{SplitModel, Weights};
use tilp_split::split::policy::{Architecture, Lora, Policy};

use super::v1;

/// Largest number that an architecture may contain. The policy itself has closer limits; this one
/// keeps a number from overflowing on its way there.
const MOST: u32 = 1 << 20;

/// Inputs for building a terminal's half.
#[derive(Clone, Debug)]
pub struct TerminalModel {
    /// The policy, with adapters if only those are trained.
    pub policy: Arc<Policy>,
    /// Seed of stochastic compression.
    pub seed: Seed,
    /// Seed of minibatches.
    pub minibatches: Seed,
    /// The layers that a first member holds.
    pub start: Weights,
}

impl TerminalModel {
    /// The message that carries it.
    pub fn to_message(&self) -> v1::Training {
        let adapters = self.policy.adapters().map(|(lora, base)| v1::Adapters {
            rank: lora.rank as u32,
            scale: lora.scale,
            base: weights_message(base),
        });
        v1::Training {
            architecture: Some(architecture_message(self.policy.architecture())),
            adapters,
            seed: self.seed.to_bytes().to_vec(),
            minibatch_seed: self.minibatches.to_bytes().to_vec(),
            start: weights_message(&self.start),
        }
    }

    /// Reads a message of an untrusted base station.
    pub fn from_message(message: &v1::Training) -> Result<Self, String> {
        let architecture = message.architecture.as_ref().ok_or("architecture: missing")?;
        let whole = Policy::new(read_architecture(architecture)?)
            .map_err(|error| format!("architecture.{error}"))?;
        let policy = match &message.adapters {
            None => whole,
            Some(v1::Adapters { rank, scale, base }) => {
                if !(1..=1024).contains(rank) || !scale.is_finite() {
                    return Err(format!(
                        "adapters: rank {rank}, scale {scale}, expected 1 to 1024 and a finite number"
                    ));
                }
                let base = read_weights("adapters.base", &whole, base)?;
                let lora = Lora { rank: *rank as usize, scale: *scale };
                whole.with_adapters(lora, Arc::new(base))
            }
        };
        let start = read_weights("start", &policy, &message.start)?;
        let seed = read_seed("seed", &message.seed)?;
        let minibatches = read_seed("minibatch_seed", &message.minibatch_seed)?;
        Ok(Self { policy: Arc::new(policy), seed, minibatches, start })
    }
}

fn weights_message(weights: &Weights) -> Vec<u8> {
    let cut = weights.n_layers() as u16;
    let context = Context { round: 0, terminal: TerminalId(0), cut };
    LayerWeights { context, first: 1, layers: weights.layers().to_vec() }.to_bytes()
}

fn read_weights(field: &str, policy: &Policy, bytes: &[u8]) -> Result<Weights, String> {
    let sizes: Vec<usize> =
        (1..=policy.n_layers()).map(|layer| policy.n_parameters(layer)).collect();
    let message =
        LayerWeights::from_bytes(bytes, &sizes).map_err(|error| format!("{field}: {error}"))?;
    match message.layers.len() {
        found if found == sizes.len() => Ok(Weights::new(message.layers)),
        found => Err(format!("{field}: {found} layers, expected {}", sizes.len())),
    }
}

fn read_seed(field: &str, bytes: &[u8]) -> Result<Seed, String> {
    let found = bytes.len();
    let bytes = bytes.try_into().map_err(|_| format!("{field}: {found} bytes, expected 32"))?;
    Ok(Seed::from_bytes(bytes))
}

fn architecture_message(architecture: &Architecture) -> v1::Architecture {
    let Architecture { tokens, width, heads, blocks, hidden_ratio, .. } = architecture;
    let group = |(start, length): &(usize, usize)| v1::TokenGroup {
        start: *start as u32,
        length: *length as u32,
    };
    let numbers = |values: &[usize]| values.iter().map(|value| *value as u32).collect();
    v1::Architecture {
        tokens: tokens.iter().map(group).collect(),
        width: *width as u32,
        heads: *heads as u32,
        blocks: *blocks as u32,
        hidden_ratio: *hidden_ratio as u32,
        merge_after: numbers(&architecture.merge_after),
        actions: architecture.actions as u32,
        loss_weights: architecture.loss_weights.clone(),
        cuts: numbers(&architecture.cuts),
    }
}

fn read_architecture(message: &v1::Architecture) -> Result<Architecture, String> {
    let number = |field: &str, value: u32| match value {
        value if value <= MOST => Ok(value as usize),
        value => Err(format!("architecture.{field} = {value}, expected at most {MOST}")),
    };
    let numbers = |field: &str, values: &[u32]| -> Result<Vec<usize>, String> {
        values.iter().map(|value| number(field, *value)).collect()
    };
    let group = |group: &v1::TokenGroup| {
        Ok((number("tokens", group.start)?, number("tokens", group.length)?))
    };
    Ok(Architecture {
        tokens: message.tokens.iter().map(group).collect::<Result<_, String>>()?,
        width: number("width", message.width)?,
        heads: number("heads", message.heads)?,
        blocks: number("blocks", message.blocks)?,
        hidden_ratio: number("hidden_ratio", message.hidden_ratio)?,
        merge_after: numbers("merge_after", &message.merge_after)?,
        actions: number("actions", message.actions)?,
        loss_weights: message.loss_weights.clone(),
        cuts: numbers("cuts", &message.cuts)?,
    })
}
