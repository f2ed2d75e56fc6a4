//! The health of a scenario: whether its numbers make a problem worth solving.

use rand::RngExt;
use rayon::prelude::*;

use super::regime::{Regime, regime};
use crate::cost::CostModel;
use crate::rng::Seed;
use crate::round::SuccessCount;
use crate::scenario::{Cache, Method, Parts, Scenario, ScenarioError, assemble};
use crate::split::central::{Rule, Trainer};
use crate::split::data::Dataset;
use crate::split::model::Weights;
use crate::split::policy::Policy;
use crate::tasks::{EpisodeSet, Robot, Start, Workcell};
use crate::units::{Bytes, Operations};
use crate::world::{Fleet, Radio, SimulatedCell};

/// Measured criteria of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Health {
    /// Success of the scripted expert per task, on every terminal's cell.
    pub expert: Vec<(&'static str, SuccessCount)>,
    /// Success of a robot that acts at random.
    pub random_robot: SuccessCount,
    /// Success of the base policy.
    pub base: SuccessCount,
    /// Success after centralised training on all data, with its steps; none if left out.
    pub centralised: Option<SuccessCount>,
    /// The radio regime.
    pub regime: Regime,
    /// Samples in all data sets.
    pub n_samples: usize,
    /// What each admissible cut costs a terminal.
    pub cuts: Vec<CutSizes>,
}

/// What a cut costs a terminal in one round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CutSizes {
    /// The terminal runs layers 1..=cut.
    pub cut: usize,
    /// Activation message, uncompressed.
    pub up: Bytes,
    /// Activation message at the largest compression.
    pub up_least: Bytes,
    /// Operations of forward and backward pass.
    pub work: Operations,
    /// Its front layers, to fetch or to deliver.
    pub copy: Bytes,
    /// Memory while it trains.
    pub memory: Bytes,
}

/// Episodes per terminal for expert and random robot.
const EPISODES: u64 = 8;

/// Measures a scenario. `steps` of centralised training with Adam; 0 leaves it out.
pub fn health(
    scenario: &Scenario,
    method: Method,
    seed: u64,
    steps: usize,
    cache: Option<&Cache>,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Health, ScenarioError> {
    let Parts { cell, laboratory, .. } = assemble(scenario, method, seed, cache, progress)?;
    let seed = Seed::new(seed).named("health");
    let (fleet, policy, radio) = (laboratory.fleet(), laboratory.policy(), cell.radio());
    let base = cell.engine().virtual_mean();
    let (present, episodes) = (cell.present(), fleet.schedule.final_episodes);
    let measure = |weights: &Weights| {
        let final_set = EpisodeSet::Final;
        let counts = fleet.at(0).measure(final_set, 0, episodes, &present, weights, policy);
        counts.into_iter().map(|one| one.count).fold(SuccessCount::default(), SuccessCount::plus)
    };
    let data = union(&cell);
    let trained = (steps > 0).then(|| centralised(policy, &data, &base, steps, seed));
    Ok(Health {
        expert: expert_success(fleet, seed),
        random_robot: random_success(fleet, seed),
        base: measure(&base),
        centralised: trained.map(|weights| measure(&weights)),
        n_samples: data.len(),
        regime: regime(radio, 300),
        cuts: radio.cost.limits.cuts.iter().map(|&cut| sizes(radio, cut)).collect(),
    })
}

fn sizes(radio: &Radio, cut: usize) -> CutSizes {
    let CostModel { accounting, profile, .. } = &radio.cost;
    let job = |q| accounting.training(profile, profile.batch, cut, q, 0, cut);
    CutSizes {
        cut,
        up: job(0.0).up,
        up_least: job(radio.cost.limits.compression).up,
        work: job(0.0).work,
        copy: job(0.0).sync_up,
        memory: radio.cost.profile.memory(cut),
    }
}

fn union(cell: &SimulatedCell) -> Dataset {
    let sets: Vec<_> = cell.engine().data_sets().into_values().collect();
    let mut all = sets[0].as_ref().clone();
    sets[1..].iter().for_each(|data| all.append(data));
    all
}

/// Adam on everybody's data, its rate falling along a cosine in twenty stages.
fn centralised(
    policy: &Policy,
    data: &Dataset,
    base: &Weights,
    steps: usize,
    seed: Seed,
) -> Weights {
    const STAGES: usize = 20;
    let rate = 1e-3f32;
    let mut trainer = Trainer::new(policy, base.clone(), Rule::Adam { rate });
    for stage in 0..STAGES {
        let progress = stage as f32 / STAGES as f32;
        trainer.set_rate(rate * 0.5 * (1.0 + (std::f32::consts::PI * progress).cos()).max(0.02));
        trainer.fit(data, 128, steps / STAGES, seed.named("centralised").at(stage as u64));
    }
    trainer.into_weights()
}

fn expert_success(fleet: &Fleet, seed: Seed) -> Vec<(&'static str, SuccessCount)> {
    let steps = fleet.schedule.episode_steps;
    let counts = per_cell(&fleet.cells, |cell, episode| {
        let mut robot = cell.reset(start(seed, episode));
        live(&mut *robot, steps, |robot| robot.expert())
    });
    (fleet.suite.tasks.iter().enumerate())
        .map(|(task, &name)| {
            let own = fleet.cells.iter().zip(&counts);
            let own = own.filter(|(cell, _)| cell.task() == task);
            (name, own.fold(SuccessCount::default(), |sum, (_, count)| sum.plus(*count)))
        })
        .filter(|(_, count)| count.episodes > 0)
        .collect()
}

fn random_success(fleet: &Fleet, seed: Seed) -> SuccessCount {
    let steps = fleet.schedule.episode_steps;
    let counts = per_cell(&fleet.cells, |cell, episode| {
        let mut rng = seed.named("random").at(episode).rng();
        let mut robot = cell.reset(start(seed, episode));
        let n_actions = cell.suite().action();
        live(&mut *robot, steps, |_| (0..n_actions).map(|_| rng.random_range(-1.0..=1.0)).collect())
    });
    counts.into_iter().fold(SuccessCount::default(), SuccessCount::plus)
}

/// Successes of every cell over [`EPISODES`] episodes with numbers of their own.
fn per_cell(
    cells: &[Box<dyn Workcell>],
    succeeds: impl Fn(&dyn Workcell, u64) -> bool + Sync,
) -> Vec<SuccessCount> {
    let count = |n: usize| {
        let first = n as u64 * EPISODES;
        let successes = (first..first + EPISODES).filter(|&episode| succeeds(&*cells[n], episode));
        SuccessCount { successes: successes.count() as u64, episodes: EPISODES }
    };
    (0..cells.len()).into_par_iter().map(count).collect()
}

/// Episodes on which expert and random robot are measured.
fn start(seed: Seed, episode: u64) -> Start {
    let seed = seed.named("expert").at(episode);
    Start { set: EpisodeSet::Final, index: episode, seed }
}

fn live(robot: &mut dyn Robot, steps: usize, mut act: impl FnMut(&dyn Robot) -> Vec<f32>) -> bool {
    for _ in 0..steps {
        let action = act(robot);
        robot.act(&action);
        if robot.succeeded() {
            return true;
        }
    }
    false
}

impl Health {
    /// The expert over all tasks.
    pub fn expert_total(&self) -> SuccessCount {
        self.expert.iter().fold(SuccessCount::default(), |sum, (_, count)| sum.plus(*count))
    }
}
