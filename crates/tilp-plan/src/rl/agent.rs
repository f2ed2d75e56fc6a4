//! The learner with its memory, and what of it survives a kill.

use super::policy::Space;
use super::replay::Replay;
use super::sac::{Report, Sac, Settings, Trained};
use crate::nn::optimiser::Moments;
use crate::rng::Seed;
use crate::snapshot::{Persist, Snapshot, SnapshotError};

/// An actor-critic with both its replays.
#[derive(Clone, Debug)]
pub struct Agent {
    /// Networks, optimisers, temperatures.
    pub sac: Sac,
    /// Executed transitions.
    pub real: Replay,
    /// Imagined transitions.
    pub imagined: Replay,
}

impl Agent {
    /// A fresh agent; `capacities` are those of the real and of the imagined replay.
    pub fn new(
        space: Space,
        settings: Settings,
        n_terminals: usize,
        capacities: [usize; 2],
        seed: Seed,
    ) -> Self {
        let [real, imagined] = capacities.map(|capacity| Replay::new(space, n_terminals, capacity));
        Self { sac: Sac::new(space, settings, seed), real, imagined }
    }

    /// One update from both replays; nothing while both are empty.
    pub fn learn(&mut self) -> Option<Report> {
        let has_any = !self.real.is_empty() || !self.imagined.is_empty();
        has_any.then(|| self.sac.update(&self.real, &self.imagined))
    }
}

fn save(trained: &Trained, name: &str, snapshot: &mut Snapshot) {
    let Trained { weights, moments } = trained;
    snapshot.put_f32(name, weights.clone());
    snapshot.put_f32(&format!("{name}/mean"), moments.mean.clone());
    snapshot.put_f32(&format!("{name}/square"), moments.square.clone());
    snapshot.put_u64(&format!("{name}/steps"), vec![moments.steps]);
}

fn restore(trained: &mut Trained, name: &str, snapshot: &Snapshot) -> Result<(), SnapshotError> {
    let n = trained.weights.len();
    let of = |part: &str| format!("{name}/{part}");
    let mean = snapshot.finite_f32(&of("mean"), n)?.to_vec();
    let square = snapshot.finite_f32(&of("square"), n)?.to_vec();
    if let Some(value) = square.iter().find(|value| **value < 0.0) {
        return Err(SnapshotError::value(&of("square"), value, "no negative number"));
    }
    let steps = snapshot.count(&of("steps"), 0, MOST_UPDATES)?;
    trained.weights = snapshot.finite_f32(name, n)?.to_vec();
    trained.moments = Moments { mean, square, steps };
    Ok(())
}

/// More updates, and more transitions, than any run has.
pub(super) const MOST_UPDATES: u64 = 1 << 48;

const CRITICS: [&str; 2] = ["rl/critic0", "rl/critic1"];
const TARGETS: [&str; 2] = ["rl/target0", "rl/target1"];

impl Persist for Agent {
    fn save(&self, snapshot: &mut Snapshot) {
        let sac = &self.sac;
        save(&sac.policy, "rl/actor", snapshot);
        save(&sac.value, "rl/value", snapshot);
        save(&sac.log_temperature, "rl/log_temperature", snapshot);
        for twin in 0..2 {
            save(&sac.critics[twin], CRITICS[twin], snapshot);
            snapshot.put_f32(TARGETS[twin], sac.targets[twin].clone());
        }
        snapshot.put_u64("rl/updates", vec![sac.updates]);
        self.real.save("rl/real", snapshot);
        self.imagined.save("rl/imagined", snapshot);
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        let sac = &mut self.sac;
        restore(&mut sac.policy, "rl/actor", snapshot)?;
        restore(&mut sac.value, "rl/value", snapshot)?;
        restore(&mut sac.log_temperature, "rl/log_temperature", snapshot)?;
        for twin in 0..2 {
            restore(&mut sac.critics[twin], CRITICS[twin], snapshot)?;
            let length = sac.targets[twin].len();
            sac.targets[twin] = snapshot.finite_f32(TARGETS[twin], length)?.to_vec();
        }
        sac.updates = snapshot.count("rl/updates", 0, MOST_UPDATES)?;
        self.real.restore("rl/real", snapshot)?;
        self.imagined.restore("rl/imagined", snapshot)
    }
}
