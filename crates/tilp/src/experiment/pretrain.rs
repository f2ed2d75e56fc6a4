//! The base policy: pre-trained on a narrow part of the tasks, so that fine-tuning is fine-tuning.

use crate::rng::Seed;
use crate::scenario::{Scenario, ScenarioError, narrow_demonstrations, suite_of, untrained};
use crate::split::central::{Rule, Trainer};
use crate::split::model::SplitModel;

/// How the base policy is made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pretraining {
    /// Seed of cells, demonstrations, initial weights and batches.
    pub seed: u64,
    /// Cells per task.
    pub cells: usize,
    /// Demonstrations per cell.
    pub demonstrations: usize,
    /// Share of the scenario's variation that is seen.
    pub narrow: f32,
    /// Steps of Adam.
    pub steps: usize,
    /// Samples per step.
    pub batch: usize,
    /// Learning rate.
    pub rate: f32,
}

impl Pretraining {
    /// Settings of the shipped base policy for this scenario's suite of tasks.
    pub fn shipped(scenario: &Scenario) -> Self {
        match suite_of(scenario).name {
            "libero-object" => Self::LIBERO,
            _ => Self::TABLETOP,
        }
    }

    /// Settings of the base policy for the table-top suite.
    pub const TABLETOP: Self = Self {
        seed: 9000,
        cells: 6,
        demonstrations: 20,
        narrow: 0.5,
        steps: 4000,
        batch: 256,
        rate: 1e-3,
    };

    /// Settings of the base policy for LIBERO's suite: cameras with small rotations.
    pub const LIBERO: Self = Self { cells: 2, narrow: 0.1, steps: 3000, ..Self::TABLETOP };
}

/// Trains a base policy for a scenario's model and returns its safetensors file.
pub fn pretrain(scenario: &Scenario, how: &Pretraining) -> Result<Vec<u8>, ScenarioError> {
    let seed = Seed::new(how.seed).named("pretraining");
    let policy = untrained(scenario)?;
    let data = narrow_demonstrations(
        scenario,
        how.narrow,
        how.cells,
        how.demonstrations,
        seed.named("data"),
    )?;
    let start = policy.initial(seed.named("weights"));
    let mut trainer = Trainer::new(&policy, start, Rule::Adam { rate: how.rate });
    trainer.fit(&data, how.batch, how.steps, seed.named("batches"));
    let file = policy.to_safetensors(trainer.weights());
    Ok(file.expect("weights of a policy have its shape"))
}
