//! Measuring a policy.

use rayon::prelude::*;

use crate::rng::Seed;
use crate::tasks::robot::ACTION;
use crate::tasks::{OBSERVATION, Robot, Workcell};

/// Episodes that go in step, so that the policy sees a batch.
const BATCH: usize = 16;

/// A policy: reads rows of observations, writes as many rows of actions.
pub type Policy<'a> = &'a (dyn Fn(&[f32], &mut [f32]) + Sync);

/// One episode to live through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Episode {
    /// Which of the cells.
    pub cell: usize,
    /// Its start; see [`crate::tasks::EpisodeSet`].
    pub seed: Seed,
}

/// Whether the policy succeeded within `max_steps`, one answer for each episode in their order.
pub fn rollout(cells: &[Workcell], episodes: &[Episode], policy: Policy, max_steps: usize) -> Vec<bool> {
    episodes
        .par_chunks(BATCH)
        .flat_map_iter(|batch| rollout_batch(cells, batch, policy, max_steps))
        .collect()
}

fn rollout_batch(cells: &[Workcell], batch: &[Episode], policy: Policy, max_steps: usize) -> Vec<bool> {
    let mut done = vec![false; batch.len()];
    let mut live: Vec<(usize, Robot)> = batch
        .iter()
        .map(|episode| Robot::reset(&cells[episode.cell], episode.seed))
        .enumerate()
        .collect();
    for _ in 0..max_steps {
        if live.is_empty() {
            break;
        }
        let mut observations = Vec::with_capacity(live.len() * OBSERVATION);
        live.iter().for_each(|(_, robot)| observations.extend(robot.observe()));
        let mut actions = vec![0.0; live.len() * ACTION];
        policy(&observations, &mut actions);
        for ((_, robot), action) in live.iter_mut().zip(actions.as_chunks::<ACTION>().0) {
            robot.act(action);
        }
        live.retain(|(index, robot)| {
            done[*index] = robot.succeeded();
            !done[*index]
        });
    }
    done
}
