//! Measuring a policy.

use rayon::prelude::*;

use crate::tasks::{Robot, Start, Workcell};

/// Episodes that go in step, so that the policy sees a batch.
const BATCH: usize = 16;

/// A policy: reads rows of observations, writes as many rows of actions.
pub type Policy<'a> = &'a (dyn Fn(&[f32], &mut [f32]) + Sync);

/// One episode to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Episode {
    /// Which of the cells.
    pub cell: usize,
    /// How it begins; see [`crate::tasks::EpisodeSet`].
    pub start: Start,
}

/// Whether the policy succeeded within `max_steps`, one answer for each episode in their order.
pub fn rollout<C: AsRef<dyn Workcell> + Sync>(
    cells: &[C],
    episodes: &[Episode],
    policy: Policy,
    max_steps: usize,
) -> Vec<bool> {
    episodes
        .par_chunks(BATCH)
        .flat_map_iter(|batch| rollout_batch(cells, batch, policy, max_steps))
        .collect()
}

fn rollout_batch<C: AsRef<dyn Workcell>>(
    cells: &[C],
    batch: &[Episode],
    policy: Policy,
    max_steps: usize,
) -> Vec<bool> {
    let mut done = vec![false; batch.len()];
    let mut live: Vec<(usize, Box<dyn Robot + '_>)> =
        (batch.iter().map(|episode| cells[episode.cell].as_ref().reset(episode.start)))
            .enumerate()
            .collect();
    let n_actions = cells.first().map_or(0, |cell| cell.as_ref().suite().action());
    let mut observations = Vec::new();
    for _ in 0..max_steps {
        if live.is_empty() {
            break;
        }
        observations.clear();
        live.iter().for_each(|(_, robot)| robot.observe(&mut observations));
        let mut actions = vec![0.0; live.len() * n_actions];
        policy(&observations, &mut actions);
        for ((_, robot), action) in live.iter_mut().zip(actions.chunks(n_actions)) {
            robot.act(action);
        }
        live.retain(|(index, robot)| {
            done[*index] = robot.succeeded();
            !done[*index]
        });
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seed;
    use crate::tasks::EpisodeSet;
    use crate::tasks::tabletop::{self, ACTION, Family, OBSERVATION, Variant, VariantRange};

    fn cells() -> Vec<Box<dyn Workcell>> {
        let draw = |family: Family| {
            let mut rng = Seed::new(41).named(family.name()).rng();
            let variant = Variant::draw(family, &VariantRange::WIDE, &mut rng);
            Box::new(tabletop::Workcell::new(variant)) as Box<dyn Workcell>
        };
        Family::ALL.into_iter().map(draw).collect()
    }

    fn episodes() -> Vec<Episode> {
        let episode = |index: u64| Episode {
            cell: (index % 8) as usize,
            start: EpisodeSet::Calibration.episode(Seed::new(42), index % 8, index / 8),
        };
        (0..40).map(episode).collect()
    }

    /// Goes for the handle point and presses down: enough for a button, for little else.
    fn reach(observations: &[f32], actions: &mut [f32]) {
        let rows = observations.chunks(OBSERVATION).zip(actions.chunks_mut(ACTION));
        for (seen, action) in rows {
            let way = |axis: usize| 0.3 * seen[6 + axis] + 0.04 * seen[20 + axis];
            let far = way(0).hypot(way(1)) > 0.012;
            let down = if far { 0.06 } else { -0.03 };
            action.copy_from_slice(&[way(0) / 0.045, way(1) / 0.045, (way(2) + down) / 0.045, 1.0]);
        }
    }

    #[test]
    fn a_policy_that_sees_only_the_observation_presses_the_button() {
        let (cells, episodes) = (cells(), episodes());
        let done = rollout(&cells, &episodes, &reach, 60);
        for (episode, done) in episodes.iter().zip(&done) {
            if cells[episode.cell].task() == Family::Button.index() {
                assert!(done);
            }
        }
        assert!(done.iter().filter(|done| **done).count() < 20);
    }

    #[test]
    fn the_result_does_not_depend_on_the_number_of_threads() {
        let (cells, episodes) = (cells(), episodes());
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| rollout(&cells, &episodes, &reach, 30))
        };
        assert_eq!(on(1), on(2));
    }

    #[test]
    fn an_episode_does_not_depend_on_its_neighbours_in_the_batch() {
        let (cells, episodes) = (cells(), episodes());
        let together = rollout(&cells, &episodes, &reach, 30);
        let alone = rollout(&cells, &episodes[6..7], &reach, 30);
        assert_eq!(together[6], alone[0]);
    }
}
