//! Sizes of the policy per cut, and how exchanges are billed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Job;
use crate::compress::{Compressor, Exchange};
use crate::message::{Activation, CutGradient, MESSAGE_HEADER_BYTES};
use crate::units::{Bytes, Operations};

/// Costs of a cut for the terminal, computed from the architecture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CutProfile {
    /// The terminal runs layers 1 to `cut` (`l`).
    pub cut: usize,
    /// Elements of the activation at the cut, per sample (`psi(l)`).
    pub activation_elements: usize,
    /// Forward and backward work of the terminal, per sample (`phi(l)`): three times forward.
    /// Counted are the matrix products, a multiply-add as two operations.
    pub operations: Operations,
    /// Parameters of layers 1 to `cut`.
    pub parameters: Bytes,
    /// Parameters, gradients, optimiser state and the cached activations of a batch (`m(l)`).
    pub memory: Bytes,
}

impl CutProfile {
    /// A cut after layer `cut`. The arguments are the fields, in their order.
    pub fn new(
        cut: usize,
        activation_elements: usize,
        operations: Operations,
        parameters: Bytes,
        memory: Bytes,
    ) -> Self {
        Self { cut, activation_elements, operations, parameters, memory }
    }
}

/// Sizes of the policy: everything a cost depends on.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Samples in a minibatch, K_n; see [`Profile::samples`].
    pub batch: usize,
    /// Values of a label.
    pub action: usize,
    /// Costs of a cut after each layer; entry `l - 1` is the cut after layer `l`.
    pub cuts: Vec<CutProfile>,
}

impl Profile {
    /// psi(l): values in the activation of one sample at a cut.
    pub fn activation(&self, cut: usize) -> usize {
        self.cuts[cut - 1].activation_elements
    }

    /// K_n phi(l): operations of the terminal on a minibatch of this number of samples.
    pub fn work(&self, cut: usize, samples: usize) -> Operations {
        self.cuts[cut - 1].operations * samples as f64
    }

    /// K_n: samples in the minibatch of a terminal that has `n_samples` in all. A minibatch holds no
    /// sample twice, so a terminal with fewer samples than `batch` computes and sends all of them.
    pub fn samples(&self, n_samples: usize) -> usize {
        self.batch.min(n_samples)
    }

    /// m(l): memory of the terminal.
    pub fn memory(&self, cut: usize) -> Bytes {
        self.cuts[cut - 1].memory
    }

    /// Parameters of layers `from + 1 ..= to`.
    pub fn parameters(&self, from: usize, to: usize) -> Bytes {
        let up_to = |layer: usize| if layer == 0 { 0 } else { self.cuts[layer - 1].parameters.0 };
        Bytes(up_to(to).saturating_sub(up_to(from)))
    }
}

/// Billed size of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Payload {
    /// The bytes that are really encoded, header included.
    Encoded,
    /// (1 - q) times the 32-bit activation, as in the paper.
    Nominal,
}

/// Whether model exchange is billed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sync {
    /// In time, energy and bytes.
    Billed,
    /// Not at all.
    Free,
}

/// How exchanges are billed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accounting {
    /// The compression operator.
    pub compressor: Compressor,
    /// Billed size of a payload.
    pub payload: Payload,
    /// Whether model exchange is billed.
    pub sync: Sync,
    /// The encoding of exchanged layers.
    pub exchange: Exchange,
}

impl Accounting {
    /// Work of a terminal that trains `samples` samples at `cut` while it holds `held`
    /// current layers and delivers its first `deliver` layers for aggregation.
    pub fn training(
        &self,
        profile: &Profile,
        samples: usize,
        cut: usize,
        compression: f64,
        held: usize,
        deliver: usize,
    ) -> Job {
        let (up, down) = self.exchange(profile, samples, cut, compression);
        Job {
            work: profile.work(cut, samples),
            up,
            down,
            sync_down: self.model(profile, held, cut),
            sync_up: self.model(profile, 0, deliver),
        }
    }

    /// Work of a terminal that fetches the whole model, trains it on this number of samples and
    /// sends it back. The model is its payload, so it is billed whatever `sync` says. What is
    /// fetched is in the encoding of exchanged layers. So is what is sent back without
    /// compression; with compression it is the change. A nominal payload counts 32 bits.
    pub fn whole(&self, profile: &Profile, samples: usize, compression: f64) -> Job {
        let last = profile.cuts.len();
        let model = profile.parameters(0, last);
        let plain = self.layers(profile, 0, last) + Bytes(MESSAGE_HEADER_BYTES as u64);
        let numbers = (model.0 / 4) as usize;
        let encoded = MESSAGE_HEADER_BYTES + self.compressor.payload_bytes(numbers, 1, compression);
        let up = match self.payload {
            Payload::Nominal => Bytes((model.0 as f64 * (1.0 - compression)).round() as u64),
            Payload::Encoded if compression > 0.0 => Bytes(encoded as u64),
            Payload::Encoded => plain,
        };
        let down = if self.payload == Payload::Nominal { model } else { plain };
        let work = profile.cuts[last - 1].operations * samples as f64;
        Job { work, up, down, ..Job::default() }
    }

    /// Work of a terminal that only delivers its first `deliver` layers.
    pub fn delivery(&self, profile: &Profile, deliver: usize) -> Job {
        Job { sync_up: self.model(profile, 0, deliver), ..Job::default() }
    }

    /// Bytes of activation up and cut gradient down.
    fn exchange(
        &self,
        profile: &Profile,
        samples: usize,
        cut: usize,
        compression: f64,
    ) -> (Bytes, Bytes) {
        let elements = profile.activation(cut);
        match self.payload {
            Payload::Nominal => {
                let bytes = (4 * elements * samples) as f64 * (1.0 - compression);
                (Bytes(bytes.round() as u64), Bytes(bytes.round() as u64))
            }
            Payload::Encoded => {
                let (operator, q) = (self.compressor, compression);
                let up = Activation::n_bytes(operator, elements, profile.action, samples, q);
                let down = CutGradient::n_bytes(operator, elements, samples, q);
                (Bytes(up as u64), Bytes(down as u64))
            }
        }
    }

    /// Bytes of layers `from + 1 ..= to`, as billed.
    fn model(&self, profile: &Profile, from: usize, to: usize) -> Bytes {
        if self.sync == Sync::Free || from >= to {
            return Bytes(0);
        }
        self.layers(profile, from, to) + Bytes(MESSAGE_HEADER_BYTES as u64)
    }

    /// Bytes of layers `from + 1 ..= to` in the encoding of exchanged layers, without a header.
    fn layers(&self, profile: &Profile, from: usize, to: usize) -> Bytes {
        if self.exchange == Exchange::Single {
            return profile.parameters(from, to);
        }
        let numbers = |layer: usize| (profile.parameters(layer - 1, layer).0 / 4) as usize;
        let bytes = (from + 1..=to).map(|layer| self.exchange.layer_bytes(numbers(layer)));
        Bytes(bytes.sum::<usize>() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::LayerWeights;

    #[test]
    fn layers_are_billed_with_the_length_of_their_message_in_every_encoding() {
        let sizes = [2304, 8544, 0, 1, 63, 64, 65, 10752];
        let cut = |cut: usize| CutProfile {
            cut,
            activation_elements: 384,
            operations: Operations(1.0),
            parameters: Bytes(4 * sizes[..cut].iter().sum::<usize>() as u64),
            memory: Bytes(0),
        };
        let profile = Profile { batch: 16, action: 4, cuts: (1..=8).map(cut).collect() };
        for exchange in Exchange::ALL {
            let (compressor, payload) = (Compressor::Quantize, Payload::Encoded);
            let billing = Accounting { compressor, payload, sync: Sync::Billed, exchange };
            let message = |from: usize, to: usize| {
                Bytes(LayerWeights::n_bytes(exchange, sizes[from..to].iter().copied()) as u64)
            };
            for (from, to) in [(0, 2), (1, 5), (3, 8), (7, 8)] {
                let job = billing.training(&profile, 16, to, 0.0, from, to);
                assert_eq!((job.sync_down, job.sync_up), (message(from, to), message(0, to)));
            }
            let job = billing.training(&profile, 16, 4, 0.0, 5, 0);
            assert_eq!((job.sync_down, job.sync_up), (Bytes(0), Bytes(0)));
            let whole = billing.whole(&profile, 16, 0.0);
            assert_eq!((whole.up, whole.down), (message(0, 8), message(0, 8)));
            assert_eq!(billing.whole(&profile, 16, 0.9).down, message(0, 8));
            let free = Accounting { sync: Sync::Free, ..billing };
            assert_eq!(free.training(&profile, 16, 4, 0.0, 0, 4).sync_up, Bytes(0));
        }
    }
}
