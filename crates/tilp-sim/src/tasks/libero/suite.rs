//! Properties of the suite that do not need its worlds.

use std::ops::Range;

use crate::tasks::{EpisodeSet, Suite};

/// Common properties of all cells. An action moves the hand (3), turns it (3) and closes the fingers.
pub static SUITE: Suite = Suite {
    name: "libero-object",
    tasks: &[
        "alphabet_soup",
        "bbq_sauce",
        "butter",
        "chocolate_pudding",
        "cream_cheese",
        "ketchup",
        "milk",
        "orange_juice",
        "salad_dressing",
        "tomato_sauce",
    ],
    tokens: &TOKENS,
    loss_weights: &[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.5],
    n_motions: 6,
    demonstration_steps: 250,
    steps_per_second: 20,
};

/// Start and end of each token in the observation:
/// hand; fingers (opening, left and right touch); grasp from the hand, coarse and fine; turn to the
/// grasp; basket from the object, coarse and fine; heights to clear (neighbours, object, basket);
/// width of the grasp and mass of the object; camera yaw; task; last finger command and the turn
/// to fingers straight down.
pub(super) const TOKENS: [(usize, usize); 12] = [
    (0, 3),
    (3, 6),
    (6, 9),
    (9, 12),
    (12, 15),
    (15, 18),
    (18, 21),
    (21, 24),
    (24, 26),
    (26, 28),
    (28, 38),
    (38, 42),
];

/// Which of a task's fifty initial states belong to a set of episodes.
pub fn states(set: EpisodeSet) -> Range<usize> {
    match set {
        EpisodeSet::Demonstration => 0..20,
        EpisodeSet::Calibration => 20..28,
        EpisodeSet::Report => 28..36,
        EpisodeSet::Final => 36..46,
        EpisodeSet::Truth => 46..50,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tokens_cover_the_observation_without_gaps() {
        let mut end = 0;
        for (start, stop) in TOKENS {
            assert!(start == end && stop > start);
            end = stop;
        }
        assert_eq!(end, SUITE.observation());
    }

    #[test]
    fn every_initial_state_belongs_to_one_set_of_episodes() {
        let mut all: Vec<usize> = EpisodeSet::ALL.into_iter().flat_map(states).collect();
        all.sort_unstable();
        assert_eq!(all, (0..50).collect::<Vec<_>>());
    }
}
