//! The criteria that need no run: robots, policies and radio.

use rand::RngExt;
use rayon::prelude::*;

use serde_json::json;

use super::Examination;
use super::criteria::{Criterion, Finding, table};
use crate::cost::CostModel;
use crate::experiment::{Regime, regime};
use crate::rng::Seed;
use crate::round::SuccessCount;
use crate::scenario::{Cache, Method, Parts, Scenario, ScenarioError, assemble, method};
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
    /// Success after centralised training on all data; `None` if left out.
    pub centralised: Option<SuccessCount>,
    /// The radio regime.
    pub regime: Regime,
    /// Samples in all data sets.
    pub n_samples: usize,
    /// Costs of each admissible cut for a terminal.
    pub cuts: Vec<CutSizes>,
}

/// Costs of a cut for a terminal in one round.
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
    /// Its front layers, to download or to upload.
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
    let base = cell.engine().model().deployed(&cell.engine().virtual_mean());
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

/// Adam on all data; its rate falls along a cosine in twenty stages.
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

/// Successes of every cell over [`EPISODES`] episodes; no two cells share an episode number.
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

/// The start of an episode for expert or random robot.
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

fn percent(count: SuccessCount) -> f64 {
    100.0 * count.rate().unwrap_or(f64::NAN)
}

/// Expert, centralised training, random robot and base policy, on the first seed.
pub(super) fn finding(
    examined: &Examination,
    cache: Option<&Cache>,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Finding, ScenarioError> {
    let seed = examined.seeds.first().copied().unwrap_or(1000);
    let steps = if examined.quick { examined.steps.min(400) } else { examined.steps };
    let found = health(&examined.scenario, method("random")?, seed, steps, cache, progress)?;
    let expert = found.expert.iter().map(|(_, count)| percent(*count)).fold(100.0, f64::min);
    let (random, base) = (percent(found.random_robot), percent(found.base));
    let trained = found.centralised.map(percent);
    let says = trained.map_or("not trained centrally".to_owned(), |trained| {
        format!("centralised training {trained:.1} %")
    });
    let measured = format!(
        "expert at least {expert:.1} % on every task; {says}; robot acting at random {random:.1} %; \
         base policy {base:.1} %"
    );
    let others = expert >= 95.0 && random <= 2.0 && (20.0..=50.0).contains(&base);
    let holds = trained.map(|trained| others && trained >= 95.0);
    Ok(Finding::new(Criterion::Health, measured, holds, found.to_json()))
}

/// Columns of the table of the radio regime.
const REGIME: [&str; 6] = [
    "seed",
    "late_in_a_median_round_%",
    "reachable_%",
    "late_always_the_same_%",
    "rounds_too_crowded_%",
    "short_of_memory_%",
];

/// The radio regime, mean over seeds.
pub(super) fn radio(
    examined: &Examination,
    cache: Option<&Cache>,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Finding, ScenarioError> {
    let seeds: Vec<u64> = examined.seeds.iter().copied().take(5).collect();
    let mut rows: Vec<serde_json::Value> = Vec::new();
    for &seed in &seeds {
        let parts = assemble(&examined.scenario, method("random")?, seed, cache, progress)?;
        let found = regime(parts.cell.radio(), 300);
        rows.push(json!({
            "seed": seed,
            "late_in_a_median_round_%": 100.0 * found.late_median,
            "reachable_%": 100.0 * found.reachable,
            "late_always_the_same_%": 100.0 * found.late_same,
            "rounds_too_crowded_%": 100.0 * found.crowded,
            "short_of_memory_%": 100.0 * found.short_of_memory,
        }));
    }
    let mean = |name: &str| {
        let sum: f64 = rows.iter().filter_map(|row| row[name].as_f64()).sum();
        sum / seeds.len().max(1) as f64
    };
    let (late, reachable) = (mean("late_in_a_median_round_%"), mean("reachable_%"));
    let measured = format!("{late:.0} % late in a median round, {reachable:.0} % can make it");
    let holds = Some((20.0..=100.0 / 3.0).contains(&late) && reachable >= 95.0);
    Ok(Finding::new(Criterion::Radio, measured, holds, table(&REGIME, rows)))
}

impl Health {
    /// The numbers as JSON, under the names of the command line's table.
    pub fn to_json(&self) -> serde_json::Value {
        let rate = |count: SuccessCount| count.rate();
        let experts: serde_json::Map<String, serde_json::Value> = (self.expert.iter())
            .map(|(task, count)| ((*task).to_owned(), json!(rate(*count))))
            .collect();
        let cuts: Vec<serde_json::Value> = self.cuts.iter().map(CutSizes::row).collect();
        json!({
            "expert": experts,
            "expert_all": rate(self.expert_total()),
            "random_robot": rate(self.random_robot),
            "base": rate(self.base),
            "centralised": self.centralised.map(rate),
            "n_samples": self.n_samples,
            "late_median": self.regime.late_median,
            "late_same": self.regime.late_same,
            "reachable": self.regime.reachable,
            "crowded": self.regime.crowded,
            "short_of_memory": self.regime.short_of_memory,
            "columns": SIZES,
            "table": cuts,
        })
    }
}

/// Columns of the table of cuts.
const SIZES: [&str; 6] =
    ["cut", "activation_up_KB", "compressed_most_KB", "work_MFLOP", "copy_KB", "memory_MB"];

impl CutSizes {
    fn row(&self) -> serde_json::Value {
        json!({
            "cut": self.cut,
            "activation_up_KB": self.up.0 as f64 / 1e3,
            "compressed_most_KB": self.up_least.0 as f64 / 1e3,
            "work_MFLOP": self.work.0 / 1e6,
            "copy_KB": self.copy.0 as f64 / 1e3,
            "memory_MB": self.memory.0 as f64 / 1e6,
        })
    }
}
