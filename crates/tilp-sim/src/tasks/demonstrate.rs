//! Demonstrations by the expert.

use rand::RngExt;
use rand_distr::{Distribution, Normal};
use rayon::prelude::*;

use crate::rng::Seed;
use crate::tasks::{EpisodeSet, Start, Workcell};

/// Rows of observations and what the expert would do there, row after row, as wide as the suite
/// says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Demonstrations {
    /// The observation.
    pub observations: Vec<f32>,
    /// The expert's action.
    pub actions: Vec<f32>,
}

impl Demonstrations {
    /// Adds the rows of another set.
    pub fn append(&mut self, other: &Demonstrations) {
        self.observations.extend(&other.observations);
        self.actions.extend(&other.actions);
    }
}

/// Runs `n_episodes` of the expert, disturbed by normal noise of this
/// standard deviation (in units of the action) in half of the steps, and notes what it would have
/// done undisturbed: the data then show how to come back.
///
/// Only successful episodes are kept, at most three tries each: an object that was knocked off
/// the table would fill the rest of its episode with rows that lead nowhere.
pub fn demonstrate(
    cell: &dyn Workcell,
    n_episodes: usize,
    noise: f32,
    seed: Seed,
) -> Demonstrations {
    let mut all = Demonstrations::default();
    for episode in demonstrate_episodes(cell, n_episodes, noise, seed) {
        all.append(&episode);
    }
    all
}

/// The episodes of [`demonstrate`] one by one; those without success are empty.
pub fn demonstrate_episodes(
    cell: &dyn Workcell,
    n_episodes: usize,
    noise: f32,
    seed: Seed,
) -> Vec<Demonstrations> {
    let record = |index: u64| {
        (0..3).find_map(|attempt| record(cell, noise, index, seed.at(index).at(attempt)))
    };
    (0..n_episodes as u64).into_par_iter().map(record).map(Option::unwrap_or_default).collect()
}

fn record(cell: &dyn Workcell, noise: f32, index: u64, seed: Seed) -> Option<Demonstrations> {
    let normal = Normal::new(0.0, noise).expect("the noise is finite and not negative");
    let mut rng = seed.stream("noise");
    let start = Start { set: EpisodeSet::Demonstration, index, seed: seed.named("episode") };
    let mut robot = cell.reset(start);
    let suite = cell.suite();
    let mut rows = Demonstrations::default();
    for _ in 0..suite.demonstration_steps {
        let mut action = robot.expert();
        robot.observe(&mut rows.observations);
        rows.actions.extend(&action);
        if rng.random::<bool>() {
            let motion = action[..suite.n_motions].iter_mut();
            motion.for_each(|value| *value += normal.sample(&mut rng));
        }
        robot.act(&action);
        if robot.succeeded() {
            return Some(rows);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::tabletop::{ACTION, Family, OBSERVATION, Variant, VariantRange, Workcell};

    fn cell(family: Family) -> Workcell {
        Workcell::new(Variant::draw(family, &VariantRange::WIDE, &mut Seed::new(31).rng()))
    }

    #[test]
    fn demonstrations_are_the_same_twice_and_for_any_number_of_threads() {
        let cell = cell(Family::Push);
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| demonstrate(&cell, 5, 0.3, Seed::new(1)))
        };
        let one = on(1);
        let rows = one.actions.len() / ACTION;
        assert!(rows > 50);
        assert_eq!(one.observations.len(), rows * OBSERVATION);
        assert_eq!(one, on(1));
        assert_eq!(one, on(2));
    }

    #[test]
    fn labels_are_what_the_expert_would_do_and_in_range() {
        let demonstrations = demonstrate(&cell(Family::Bin), 4, 0.3, Seed::new(2));
        assert!(demonstrations.actions.iter().all(|value| value.abs() <= 1.0));
        let fingers = demonstrations.actions.iter().skip(3).step_by(ACTION);
        assert!(fingers.clone().all(|value| value.abs() == 1.0));
    }
}
