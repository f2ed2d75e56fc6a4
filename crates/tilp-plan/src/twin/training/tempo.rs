//! Speed of training in a round, independent of its participants.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Pace of the weights of the training law.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// The same in every round: version 1.
    #[default]
    Constant,
    /// They follow the learning rate, warm-up included. What any round does falls besides as one over
    /// the number of rounds, as learning curves do.
    Schedule,
}

impl Pace {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Scale of the scatter of a round's effect about the law.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SwingBy {
    /// Learning rate times squared gradient norm: plain steps, with or without momentum.
    #[default]
    Gradient,
    /// The learning rate over that of the start: AdamW, whose steps do not shrink with the gradient.
    Rate,
}

impl SwingBy {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Speed of training in a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tempo {
    /// Factor on all weights but that of any round.
    pub rate: f64,
    /// Factor on the weight of any round.
    pub curve: f64,
    /// Share of an advantage that the round forgets.
    pub forgetting: f64,
    /// Power of the number of participants by which the scatter of a round falls.
    pub scatter_power: u32,
}

/// Constant weights and nothing forgotten.
impl Default for Tempo {
    fn default() -> Self {
        Self { rate: 1.0, curve: 1.0, forgetting: 0.0, scatter_power: 1 }
    }
}

impl Tempo {
    /// The tempo of a round in which the learning rate is this share of its start.
    pub(crate) fn at(options: &super::TrainingOptions, round: u64, rate: f64) -> Self {
        let scatter_power = options.scatter_power;
        match options.pace {
            Pace::Constant => {
                Self { forgetting: options.forgetting, scatter_power, ..Self::default() }
            }
            Pace::Schedule => Self {
                rate,
                curve: rate / round.max(options.earliest).max(1) as f64,
                forgetting: (rate * options.forgetting).min(1.0),
                scatter_power,
            },
        }
    }
}
