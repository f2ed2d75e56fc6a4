//! Sets of episodes, and the roles that may see them.

use crate::rng::Seed;

/// Sets of episodes that share none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EpisodeSet {
    /// Measured during a run: the only success a planner sees.
    Calibration,
    /// Measured for curves, unseen by every method.
    Report,
    /// Measured once, at the end.
    Final,
    /// Measured for the reference `oracle` alone.
    Truth,
    /// Shown by the expert.
    Demonstration,
}

/// How an episode begins. A suite that draws its episodes needs the seed alone, one with a fixed
/// list of them goes by set and index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// The set that the episode belongs to.
    pub set: EpisodeSet,
    /// Its number among the terminal's episodes of the set.
    pub index: u64,
    /// Seed of everything that is drawn.
    pub seed: Seed,
}

impl EpisodeSet {
    /// Every set.
    pub const ALL: [EpisodeSet; 5] = [
        EpisodeSet::Calibration,
        EpisodeSet::Report,
        EpisodeSet::Final,
        EpisodeSet::Truth,
        EpisodeSet::Demonstration,
    ];

    /// The start of one of a terminal's episodes in this set.
    pub fn episode(self, run: Seed, terminal: u64, index: u64) -> Start {
        let name = match self {
            EpisodeSet::Calibration => "episodes/calibration",
            EpisodeSet::Report => "episodes/report",
            EpisodeSet::Final => "episodes/final",
            EpisodeSet::Truth => "episodes/truth",
            EpisodeSet::Demonstration => "episodes/demonstration",
        };
        Start { set: self, index, seed: run.named(name).at(terminal).at(index) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_sets_terminals_or_indices_share_an_episode() {
        let run = Seed::new(1);
        let mut seeds = Vec::new();
        for set in EpisodeSet::ALL {
            for terminal in 0..6 {
                seeds.extend((0..6).map(|index| set.episode(run, terminal, index).seed));
            }
        }
        for (place, seed) in seeds.iter().enumerate() {
            assert!(!seeds[place + 1..].contains(seed));
        }
    }
}
