//! The table-top suite in both engines, compared.

use rayon::prelude::*;

use crate::rng::Seed;
use crate::round::SuccessCount;
use crate::scenario::{Scenario, ScenarioError, policy, sample_variants};
use crate::split::model::Weights;
use crate::split::policy::Policy;
use crate::tasks::tabletop::{ACTION, Engine, Family, Robot, Variant, Workcell, expert};
use crate::tasks::{Episode, EpisodeSet, rollout};

/// The engines compared, in the order of every pair here.
pub const ENGINES: [Engine; 2] = [Engine::Rapier, Engine::Mujoco];
/// The share of all episodes in which the expert must succeed in each engine.
const EXPERT: f64 = 0.95;
/// The share of the episodes of each task in which it must succeed.
const EXPERT_TASK: f64 = 0.80;

/// Size of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Seed of cells and episodes.
    pub seed: u64,
    /// Cells of each task.
    pub cells: usize,
    /// Episodes in each cell.
    pub episodes: usize,
}

/// One task in both engines, on the same cells and episodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Agreement {
    /// The task.
    pub family: Family,
    /// Success of the scripted expert.
    pub expert: [SuccessCount; 2],
    /// Success of the scenario's base policy.
    pub base: [SuccessCount; 2],
    /// Distance of the hands under the same actions.
    pub hand: Apart,
    /// Distance of the objects under the same actions.
    pub object: Apart,
}

/// Distance of a point in two engines, both with the actions of rapier's expert; medians over
/// episodes, in metres.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Apart {
    /// At the end of the episode.
    pub end_m: f64,
    /// The largest distance in an episode.
    pub most_m: f64,
}

/// Every task in both engines.
pub fn compare_engines(
    scenario: &Scenario,
    effort: Effort,
) -> Result<Vec<Agreement>, ScenarioError> {
    let base = policy(scenario)?;
    let seed = Seed::new(effort.seed).named("engines");
    let one = |family: Family| {
        let variants = sample_variants(scenario, family, effort.cells, seed);
        let trial = Trial {
            cells: ENGINES.map(|engine| load(&variants, engine)),
            episodes: episodes(effort, seed.named("episodes").named(family.name())),
            steps: scenario.episode_steps(),
        };
        trial.run(family, &base)
    };
    Ok(Family::ALL.into_iter().map(one).collect())
}

/// Why the engines do not pass: an expert that no longer works in one of them.
pub fn objection(agreements: &[Agreement]) -> Option<String> {
    for (place, engine) in ENGINES.into_iter().enumerate() {
        let of = |one: &Agreement| one.expert[place];
        let fails = |who: &str, count: SuccessCount, least: f64| {
            let rate = count.rate().unwrap_or(0.0);
            (rate < least).then(|| {
                let (name, found, least) = (engine.name(), 100.0 * rate, 100.0 * least);
                format!("expert in {name}, {who}: {found:.1} %, expected at least {least:.0} %")
            })
        };
        let all = agreements.iter().map(of).fold(SuccessCount::default(), SuccessCount::plus);
        let mut tasks = agreements.iter().map(|one| (one.family.name(), of(one), EXPERT_TASK));
        let task = tasks.find_map(|(who, count, least)| fails(who, count, least));
        if let Some(objection) = fails("all tasks", all, EXPERT).or(task) {
            return Some(objection);
        }
    }
    None
}

fn load(variants: &[Variant], engine: Engine) -> Vec<Workcell> {
    variants.iter().map(|variant| Workcell::in_engine(variant.clone(), engine)).collect()
}

fn episodes(effort: Effort, seed: Seed) -> Vec<Episode> {
    let episode = |cell: usize, index: usize| Episode {
        cell,
        start: EpisodeSet::Report.episode(seed, cell as u64, index as u64),
    };
    (0..effort.cells)
        .flat_map(|cell| (0..effort.episodes).map(move |index| episode(cell, index)))
        .collect()
}

/// The same episodes in the same cells, loaded into both engines.
struct Trial {
    cells: [Vec<Workcell>; 2],
    episodes: Vec<Episode>,
    steps: usize,
}

impl Trial {
    fn run(&self, family: Family, (policy, weights): &(Policy, Weights)) -> Agreement {
        let act = |seen: &[f32], actions: &mut [f32]| {
            policy.act(weights, seen, actions);
        };
        let base = |cells: &Vec<Workcell>| count(rollout(cells, &self.episodes, &act, self.steps));
        let master = |cells: &Vec<Workcell>| -> Vec<(bool, Vec<[f32; ACTION]>)> {
            let one = |episode: &Episode| perform(&cells[episode.cell], episode, self.steps);
            self.episodes.par_iter().map(one).collect()
        };
        let shown = self.cells.each_ref().map(master);
        let apart: Vec<[Apart; 2]> = (self.episodes.par_iter())
            .zip(&shown[0])
            .map(|(episode, (_, actions))| self.follow(episode, actions))
            .collect();
        Agreement {
            family,
            expert: shown.map(|episodes| count(episodes.into_iter().map(|(done, _)| done))),
            base: self.cells.each_ref().map(base),
            hand: median_apart(apart.iter().map(|[hand, _]| *hand)),
            object: median_apart(apart.iter().map(|[_, object]| *object)),
        }
    }

    /// Applies the same actions to robots in both engines, whatever the results.
    fn follow(&self, episode: &Episode, actions: &[[f32; ACTION]]) -> [Apart; 2] {
        let mut robots = self
            .cells
            .each_ref()
            .map(|cells| Robot::reset(&cells[episode.cell], episode.start.seed));
        let mut apart = [Apart::default(); 2];
        for action in actions {
            robots.iter_mut().for_each(|robot| robot.act(action));
            let [first, second] = robots.each_ref().map(Robot::places);
            for (point, apart) in apart.iter_mut().enumerate() {
                apart.end_m = distance(first[point], second[point]);
                apart.most_m = apart.most_m.max(apart.end_m);
            }
        }
        apart
    }
}

/// Actions of the expert until it succeeds or the episode ends.
fn perform(cell: &Workcell, episode: &Episode, steps: usize) -> (bool, Vec<[f32; ACTION]>) {
    let mut robot = Robot::reset(cell, episode.start.seed);
    let mut actions = Vec::new();
    while actions.len() < steps && !robot.succeeded() {
        let action = expert(&robot);
        robot.act(&action);
        actions.push(action);
    }
    (robot.succeeded(), actions)
}

fn count(done: impl IntoIterator<Item = bool>) -> SuccessCount {
    done.into_iter().fold(SuccessCount::default(), |sum, done| {
        sum.plus(SuccessCount { successes: u64::from(done), episodes: 1 })
    })
}

fn distance(a: [f32; 3], b: [f32; 3]) -> f64 {
    let square = |axis: usize| (f64::from(a[axis]) - f64::from(b[axis])).powi(2);
    (0..3).map(square).sum::<f64>().sqrt()
}

fn median_apart(all: impl Iterator<Item = Apart> + Clone) -> Apart {
    let median = |part: fn(Apart) -> f64| {
        let mut values: Vec<f64> = all.clone().map(part).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or_default()
    };
    Apart { end_m: median(|one| one.end_m), most_m: median(|one| one.most_m) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agreement(family: Family, successes: [u64; 2]) -> Agreement {
        let count = |successes| SuccessCount { successes, episodes: 100 };
        let (hand, object) = (Apart::default(), Apart::default());
        let expert = successes.map(count);
        Agreement { family, expert, base: [SuccessCount::default(); 2], hand, object }
    }

    #[test]
    fn an_expert_that_stops_working_in_either_engine_is_objected_to() {
        let of = |counts: [[u64; 2]; 2]| {
            let [bin, peg] = counts;
            objection(&[agreement(Family::Bin, bin), agreement(Family::Peg, peg)])
        };
        assert_eq!(of([[100, 100], [95, 90]]), None);
        let overall = "expert in mujoco, all tasks: 94.5 %, expected at least 95 %";
        assert_eq!(of([[100, 100], [100, 89]]).as_deref(), Some(overall));
        let overall = "expert in rapier, all tasks: 0.0 %, expected at least 95 %";
        assert_eq!(of([[0, 100], [0, 100]]).as_deref(), Some(overall));
        let mut many = vec![agreement(Family::Bin, [100, 100]); 7];
        many.push(agreement(Family::Peg, [79, 100]));
        let task = "expert in rapier, peg: 79.0 %, expected at least 80 %";
        assert_eq!(objection(&many).as_deref(), Some(task));
        assert!(objection(&[]).is_some(), "nothing tried is nothing shown");
    }

    #[test]
    fn the_expert_works_in_both_engines_and_both_carry_things_alike() {
        let scenario = Scenario::load("default", &[]).unwrap();
        let effort = Effort { seed: 1, cells: 6, episodes: 1 };
        let agreements = compare_engines(&scenario, effort).unwrap();
        assert_eq!(objection(&agreements), None, "{agreements:#?}");
        for one in agreements {
            assert!(one.hand.end_m < 0.01, "{one:?}");
        }
    }
}
