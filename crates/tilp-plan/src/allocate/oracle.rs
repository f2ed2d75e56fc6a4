//! The reference `oracle`: TiLP with the true world model.
//!
//! It plans and learns as TiLP does, but before each decision it receives the truth, and the parts
//! that are switched on replace estimates of its twin: hardware and future fading, the losses
//! of the deployed policy, its success. With every part off it is TiLP to the last bit. One part
//! at a time shows the cost of each estimation error.

use super::{Tilp, TilpOptions};
use crate::rng::Seed;
use crate::round::{
    Allocator, DecideError, Decision, Observation, OracleAccess, Outcome, ProjectedDecision,
    Question, Rationale, Truth,
};
use crate::snapshot::{Persist, Snapshot, SnapshotError};
use crate::twin::{Nominal, Twin};

/// Which parts of the twin are the truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OracleOptions {
    /// The exact hardware, and the fading of every round in the horizon of a plan.
    pub network: bool,
    /// The loss of every terminal before every round. The effect of a round on it is still predicted by
    /// the twin's law, fitted to true values.
    pub training: bool,
    /// The success of every terminal once per calibration interval. Its dependence on the loss is still
    /// the twin's curve.
    pub task: bool,
    /// Samples of each terminal over which a true loss is computed.
    pub samples: usize,
    /// Episodes of each terminal over which a true success is computed.
    pub episodes: usize,
}

/// TiLP with access to the truth.
pub struct Oracle {
    tilp: Tilp,
    options: OracleOptions,
    /// Length of a plan or an imagined rollout, in rounds.
    rounds: usize,
    /// Episodes behind the received success. They are no evaluation and are counted separately.
    episodes: u64,
    /// The truth received for the next decision, by terminal of that observation.
    told: Option<Truth>,
}

impl Oracle {
    /// The oracle before its first round.
    pub fn new(nominal: Nominal, tilp: TilpOptions, options: OracleOptions, seed: Seed) -> Self {
        let rounds = tilp.horizon.max(tilp.imagined);
        Self { tilp: Tilp::new(nominal, tilp, seed), options, rounds, episodes: 0, told: None }
    }

    /// The twin, read-only.
    pub fn twin(&self) -> &Twin {
        self.tilp.twin()
    }

    /// Episodes that were run to measure the true success.
    pub fn episodes(&self) -> u64 {
        self.episodes
    }
}

impl Allocator for Oracle {
    fn decide(&mut self, seen: &Observation) -> Result<Decision, DecideError> {
        self.tilp.attend(seen);
        if let Some(truth) = self.told.take() {
            self.tilp.twin_mut().be_told(&truth);
        }
        self.tilp.decide(seen)
    }

    fn rationale(&self, seen: &Observation) -> Option<Rationale> {
        self.tilp.rationale(seen)
    }

    fn learn(&mut self, seen: &Observation, plan: &ProjectedDecision, outcome: &Outcome) {
        self.tilp.learn(seen, plan, outcome);
    }

    fn oracle_access(&mut self) -> Option<&mut dyn OracleAccess> {
        let OracleOptions { network, training, task, .. } = self.options;
        (network || training || task).then_some(self)
    }
}

impl OracleAccess for Oracle {
    fn question(&self) -> Question {
        let OracleOptions { network, training, task, samples, episodes } = self.options;
        Question {
            rounds: network.then_some(self.rounds),
            samples: training.then_some(samples),
            episodes: task.then_some(episodes),
        }
    }

    fn receive(&mut self, truth: &Truth) {
        let told = truth.success.iter().flatten().map(|count| count.episodes);
        self.episodes += told.sum::<u64>();
        self.told = Some(truth.clone());
    }
}

/// More episodes than any run has.
const MOST_EPISODES: u64 = 1 << 48;

impl Persist for Oracle {
    fn save(&self, snapshot: &mut Snapshot) {
        self.tilp.save(snapshot);
        self.tilp.twin().save_told(snapshot);
        snapshot.put_u64("oracle/episodes", vec![self.episodes]);
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        self.tilp.restore(snapshot)?;
        self.tilp.twin_mut().restore_told(snapshot)?;
        self.episodes = snapshot.count("oracle/episodes", 0, MOST_EPISODES)?;
        Ok(())
    }
}
