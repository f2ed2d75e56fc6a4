//! The reference `clairvoyant`: `deficit` with the true success of every terminal.
//!
//! Before the first round and after every calibration it receives the success rate of each terminal
//! on separate episodes, and draws terminals by that deficit. Its gain over `random` is the
//! headroom of a scenario: the largest gain of such a rule from a better choice of terminals.

use std::collections::BTreeMap;

use super::{Deficit, Problem, ReferenceKnobs};
use crate::rng::Seed;
use crate::round::{
    Allocator, DecideError, Decision, Observation, OracleAccess, Question, SuccessCount,
    TerminalId, Truth,
};
use crate::snapshot::{Persist, Snapshot, SnapshotError};

/// `deficit` with the true success.
pub struct Clairvoyant {
    deficit: Deficit,
    /// Episodes of each terminal over which a true success is computed.
    episodes: usize,
    /// The truth received before this decision, in the order of the present terminals.
    told: Option<Vec<SuccessCount>>,
    /// True success of each terminal, as last received.
    success: BTreeMap<TerminalId, SuccessCount>,
}

impl Clairvoyant {
    /// Clairvoyant scheduling on a problem.
    pub fn new(problem: Problem, knobs: ReferenceKnobs, seed: Seed) -> Self {
        Self {
            deficit: Deficit::new(problem, knobs, seed),
            episodes: knobs.clairvoyant_episodes,
            told: None,
            success: BTreeMap::new(),
        }
    }
}

impl Allocator for Clairvoyant {
    fn decide(&mut self, seen: &Observation) -> Result<Decision, DecideError> {
        if let Some(told) = self.told.take() {
            self.success.extend(seen.ids().into_iter().zip(told));
        }
        let ids = seen.ids();
        // A terminal that joined after the truth was last received counts as failing.
        let success = |n: usize| self.success.get(&ids[n]).and_then(|one| one.rate());
        Ok(self.deficit.decide_by(seen, &|n| success(n).unwrap_or(0.0)))
    }

    fn oracle_access(&mut self) -> Option<&mut dyn OracleAccess> {
        Some(self)
    }
}

impl OracleAccess for Clairvoyant {
    fn question(&self) -> Question {
        Question { episodes: Some(self.episodes), ..Question::default() }
    }

    fn receive(&mut self, truth: &Truth) {
        self.told.clone_from(&truth.success);
    }
}

/// More episodes than any scenario has.
const MOST_EPISODES: u64 = 1 << 40;

impl Persist for Clairvoyant {
    fn save(&self, snapshot: &mut Snapshot) {
        let ids = self.success.keys().map(|id| u64::from(id.0));
        snapshot.put_u64("clairvoyant/terminals", ids.collect());
        let counts = self.success.values().flat_map(|one| [one.successes, one.episodes]);
        snapshot.put_u64("clairvoyant/success", counts.collect());
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        let n = snapshot.len_of("clairvoyant/terminals");
        let ids = snapshot.u64_up_to("clairvoyant/terminals", n, u32::MAX.into())?;
        let counts = snapshot.u64_up_to("clairvoyant/success", 2 * n, MOST_EPISODES)?;
        let counts = counts.as_chunks::<2>().0.iter();
        if let Some([successes, episodes]) = counts.clone().find(|[wins, all]| wins > all) {
            let expected = format!("at most {episodes} successes");
            return Err(SnapshotError::value("clairvoyant/success", successes, expected));
        }
        let counts = counts.map(|&[successes, episodes]| SuccessCount { successes, episodes });
        self.success = ids.iter().map(|&id| TerminalId(id as u32)).zip(counts).collect();
        self.told = None;
        Ok(())
    }
}
