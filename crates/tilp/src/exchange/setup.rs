//! Information for a method before the first round, as JSON.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::VERSION;
use crate::cost::{CostModel, Hardware};

/// What a method may know beforehand. Nothing of it is hidden truth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Setup {
    /// Version of the exchange.
    pub version: u64,
    /// Name of the scenario.
    pub scenario: String,
    /// Training rounds; with a budget the rounds that a method may expect.
    pub rounds: u64,
    /// Seed for the method's own draws.
    pub seed: u64,
    /// Rounds between aggregations, unless the method declares its own.
    pub aggregate_every: u64,
    /// Limits of every round.
    pub limits: LimitsMessage,
    /// Sizes of the policy.
    pub model: ModelMessage,
    /// Names of the tasks.
    pub tasks: Vec<String>,
    /// Correlation of the fading between two rounds.
    pub fading_correlation: f64,
    /// Hardware of the terminals by data sheet, by their id. The true values differ.
    pub hardware: Vec<HardwareMessage>,
}

/// The limits of the problem.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Limits")]
pub struct LimitsMessage {
    /// Deadline of a round.
    pub deadline_s: f64,
    /// The whole band.
    pub bandwidth_hz: f64,
    /// Largest transmit power of a terminal.
    pub power_w: f64,
    /// Largest compression.
    pub compression: f64,
    /// Admissible cuts, shallowest first.
    pub cuts: Vec<usize>,
}

/// Sizes of the policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Model")]
pub struct ModelMessage {
    /// Samples in a minibatch.
    pub batch: usize,
    /// What a cut after each layer costs; the first entry is the cut after layer 1.
    pub layers: Vec<LayerMessage>,
}

/// What a cut costs a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Layer")]
pub struct LayerMessage {
    /// Values of the activation, per sample.
    pub activation_elements: usize,
    /// Operations of the terminal, per sample.
    pub operations: f64,
    /// Bytes of the parameters up to the cut.
    pub parameter_bytes: u64,
    /// Bytes of memory that the terminal needs.
    pub memory_bytes: u64,
}

/// Hardware of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Hardware")]
pub struct HardwareMessage {
    /// Clock of the processor.
    pub clock_hz: f64,
    /// Operations per cycle.
    pub operations_per_cycle: f64,
    /// Energy coefficient, in J s^2 per operation.
    pub energy_coefficient: f64,
    /// Noise of the receiver, noise figure included.
    pub noise_w_per_hz: f64,
}

/// What a setup is made of.
pub struct SetupParts<'a> {
    /// Name of the scenario.
    pub scenario: &'a str,
    /// Training rounds.
    pub rounds: u64,
    /// Seed for the method's own draws.
    pub seed: u64,
    /// Rounds between aggregations.
    pub aggregate_every: u64,
    /// Limits and sizes.
    pub cost: &'a CostModel,
    /// Names of the tasks.
    pub tasks: &'a [&'static str],
    /// Correlation of the fading.
    pub fading_correlation: f64,
    /// Hardware by data sheet.
    pub hardware: &'a [Hardware],
}

impl From<SetupParts<'_>> for Setup {
    fn from(parts: SetupParts<'_>) -> Self {
        let CostModel { limits, profile, .. } = parts.cost;
        let layers = profile.cuts.iter().map(|one| LayerMessage {
            activation_elements: one.activation_elements,
            operations: one.operations.0,
            parameter_bytes: one.parameters.0,
            memory_bytes: one.memory.0,
        });
        let hardware = parts.hardware.iter().map(|one| HardwareMessage {
            clock_hz: one.clock.0,
            operations_per_cycle: one.operations_per_cycle,
            energy_coefficient: one.energy_coefficient,
            noise_w_per_hz: one.noise_w_per_hz,
        });
        Self {
            version: VERSION,
            scenario: parts.scenario.to_owned(),
            rounds: parts.rounds,
            seed: parts.seed,
            aggregate_every: parts.aggregate_every,
            limits: LimitsMessage {
                deadline_s: limits.deadline.0,
                bandwidth_hz: limits.bandwidth.0,
                power_w: limits.power.0,
                compression: limits.compression,
                cuts: limits.cuts.clone(),
            },
            model: ModelMessage { batch: profile.batch, layers: layers.collect() },
            tasks: parts.tasks.iter().map(|&name| name.to_owned()).collect(),
            fading_correlation: parts.fading_correlation,
            hardware: hardware.collect(),
        }
    }
}
