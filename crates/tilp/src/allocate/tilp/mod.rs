//! TiLP: tries candidate decisions in a calibrated twin before one is executed.
//!
//! Each round: the actor proposes, cross-entropy search improves on it inside the twin with the
//! critic's value at the end of the horizon, the first step of the best sequence is executed; then
//! the twin is calibrated and actor and critic learn from what happened and from what the twin
//! imagines. This is Algorithm 1 of the paper.

mod decode;
mod scene;

use std::sync::Mutex;

use decode::Decoder;
use scene::{SPACE_GLOBALS, SPACE_TERMINALS, action_row, scene};

use crate::rl::actor::Scenes;
use crate::rl::agent::Agent;
use crate::rl::critic::CriticTrace;
use crate::rl::policy::Space;
use crate::rl::replay::{Scene, Transition};
use crate::rl::sac::Settings;
use crate::rng::Seed;
use crate::round::{
    Allocator, Decision, Feasible, Observation, Outcome, TerminalDecision, Violation,
};
use crate::search::cem::{Cem, Planner, Start};
use crate::search::distribution::{Distribution, Law, mean_for};
use crate::search::fast::{LANES, Lanes};
use crate::search::sample::Choice;
use crate::search::score::{Candidates, planned_return};
use crate::snapshot::{Persist, Snapshot, SnapshotError};
use crate::twin::{Nominal, Scratch, Sureness, Twin, TwinOptions, TwinState};
use crate::twin::{communication_reward, penalty, task_reward};
use crate::units::{Hertz, Joules, Seconds, Watts};

/// Which parts of TiLP are at work: the ablations of the paper's Table III, calibration and
/// reward aside, which are switches of the twin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// The search starts from the actor.
    pub actor: bool,
    /// The critic values the end of the horizon.
    pub critic: bool,
    /// The search itself; without it the actor's most likely action is executed.
    pub cem: bool,
    /// Bandwidth is shared in closed form inside the decoder; without it as sampled.
    pub repair: bool,
}

/// How TiLP plans and learns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TilpOptions {
    /// The search.
    pub cem: Cem,
    /// Steps ahead, K.
    pub horizon: usize,
    /// Discount, gamma.
    pub discount: f64,
    /// Length of imagined rollouts, U.
    pub imagined: usize,
    /// Updates of actor and critic a round.
    pub updates: usize,
    /// Updates after which actor and critic are listened to.
    pub warm_up: u64,
    /// Terminals a round that the search starts from before the actor knows better.
    pub start_scheduled: f64,
    /// The twin.
    pub twin: TwinOptions,
    /// Parts at work.
    pub parts: Parts,
}

/// TiLP.
pub struct Tilp {
    twin: Twin,
    decoder: Decoder,
    planner: Planner,
    agent: Agent,
    options: TilpOptions,
    seed: Seed,
    pending: Option<Pending>,
    works: Vec<Mutex<Work>>,
}

/// A transition that waits for the state that follows.
#[derive(Clone, Debug, PartialEq)]
struct Pending {
    scene: Scene,
    actions: Vec<f32>,
    reward: f32,
}

/// Memory for scoring one group of candidates.
struct Work {
    states: Vec<TwinState>,
    spare: TwinState,
    scratch: Scratch,
    actions: Vec<TerminalDecision>,
    rewards: Vec<Lanes>,
    critic: CriticTrace,
}

impl Tilp {
    /// TiLP before its first round.
    pub fn new(nominal: Nominal, options: TilpOptions, seed: Seed) -> Self {
        let n_terminals = nominal.hardware.len();
        let space = Space {
            terminal_features: SPACE_TERMINALS,
            global_features: SPACE_GLOBALS,
            reals: 3,
            categories: nominal.limits.cuts.len(),
            flag: true,
        };
        let settings =
            Settings { discount: options.discount as f32, samples: 16, ..Settings::usual(&space) };
        let agent =
            Agent::new(space, settings, n_terminals, [1000, 2000], seed.named("actor-critic"));
        let decoder = Decoder::new(&nominal, options.parts.repair);
        let twin = Twin::new(nominal, options.twin);
        let works = (0..options.cem.samples.div_ceil(LANES) + 2)
            .map(|_| Mutex::new(Work::new(&twin, options.horizon)))
            .collect();
        let planner = Planner::default();
        Self { twin, decoder, planner, agent, options, seed, pending: None, works }
    }

    /// The twin, to be looked at.
    pub fn twin(&self) -> &Twin {
        &self.twin
    }

    fn n_cuts(&self) -> usize {
        self.twin.nominal().limits.cuts.len()
    }

    /// Where the search starts before the actor knows anything: a few terminals, most of the
    /// power, strong compression, any cut.
    fn prior(&self, n_terminals: usize) -> Distribution {
        let mut law = Law::vague(self.n_cuts());
        law.mean = [0.0, mean_for(0.9), mean_for(0.85)];
        law.deviation = [0.5, 0.7, 0.5];
        law.flag = (self.options.start_scheduled / n_terminals as f64).clamp(0.02, 0.9) as f32;
        Distribution::repeated(&vec![law; n_terminals], self.options.horizon, self.n_cuts())
    }

    /// What the actor proposes, at every step what it would do now.
    fn proposal(&self, scene: &Scene) -> Distribution {
        let law = |from: crate::rl::sac::Law| {
            let mut law = Law::vague(self.n_cuts());
            law.mean.copy_from_slice(&from.mean);
            law.deviation.copy_from_slice(&from.deviation);
            law.set_logits(&from.logits);
            law.flag = from.flag.clamp(0.01, 0.99);
            law
        };
        let laws: Vec<Law> = self.agent.sac.laws(scene).into_iter().map(law).collect();
        Distribution::repeated(&laws, self.options.horizon, self.n_cuts())
    }

    fn is_warm(&self) -> bool {
        self.agent.sac.updates() >= self.options.warm_up
    }

    /// The first step of the best sequence that the search finds.
    fn search(&mut self, seen: &Observation, state: &TwinState, scene: &Scene) -> Vec<Choice> {
        let use_actor = self.options.parts.actor && self.is_warm();
        let actor = use_actor.then(|| self.proposal(scene));
        let prior = self.prior(seen.terminals.len());
        let distribution = match &actor {
            // Half of both: the actor's certainty must not keep the search from looking.
            Some(actor) => prior.blended(actor, 0.5),
            None => prior,
        };
        let start = Start {
            distribution: &distribution,
            actor: actor.as_ref(),
            seed: self.seed.named("search").at(seen.round),
        };
        let (cem, mut planner) = (self.options.cem, std::mem::take(&mut self.planner));
        let score = |candidates: Candidates<'_>, scores: &mut Lanes| {
            *scores = self.score(state, candidates);
        };
        let found = planner.search(&cem, start, &score, &mut || false);
        self.planner = planner;
        found.first().to_vec()
    }

    /// Predicted returns of sixteen candidates.
    fn score(&self, from: &TwinState, candidates: Candidates<'_>) -> Lanes {
        let place = candidates.group % self.works.len();
        let mut work = self.works[place].lock().unwrap_or_else(|work| work.into_inner());
        let Work { states, spare, scratch, actions, rewards, critic } = &mut *work;
        states.iter_mut().for_each(|state| state.clone_from(from));
        rewards.resize(candidates.n_steps(), [0.0; LANES]);
        for (step, reward) in rewards.iter_mut().enumerate() {
            // Only the first step is executed, so only there must nobody be late for sure.
            let sureness = if step == 0 { Sureness::Safe } else { Sureness::Likely };
            for (lane, state) in states.iter_mut().enumerate() {
                self.decoder.decode_lane(state, candidates.step(step), lane, actions);
                if self.options.parts.repair {
                    self.without_late(state, actions, sureness, spare, scratch);
                }
                let prediction = self.twin.step(state, actions, sureness, scratch);
                reward[lane] = prediction.reward.total() as f32;
            }
        }
        let mut values = [0.0; LANES];
        if self.options.parts.critic && self.is_warm() {
            let scenes: Vec<Scene> = states.iter().map(|state| scene(&self.twin, state)).collect();
            let scenes = Scenes::from_states(self.agent.sac.space(), &scenes);
            values.copy_from_slice(self.agent.sac.value(&scenes, critic));
        }
        planned_return(rewards, &values, self.options.discount as f32)
    }

    /// Takes out whoever would be late, as [`Tilp::guard`] will before anything is executed: a
    /// candidate is not to be judged by terminals that would never be scheduled.
    fn without_late(
        &self,
        state: &TwinState,
        actions: &mut [TerminalDecision],
        sureness: Sureness,
        spare: &mut TwinState,
        scratch: &mut Scratch,
    ) {
        spare.clone_from(state);
        let prediction = self.twin.step(spare, actions, sureness, scratch);
        if prediction.n_late == 0 {
            return;
        }
        let limits = &self.twin.nominal().limits;
        let (mut before, mut after) = (0.0, 0.0);
        for (n, one) in actions.iter_mut().enumerate().filter(|(_, one)| one.scheduled) {
            before += one.bandwidth.0;
            if scratch.safe_delays[n] > limits.deadline {
                one.scheduled = false;
                (one.bandwidth, one.power) = (Hertz(0.0), Watts(0.0));
            } else {
                after += one.bandwidth.0;
            }
        }
        if after > 0.0 {
            actions.iter_mut().for_each(|one| one.bandwidth.0 *= before / after);
        }
    }

    /// Takes out whoever might be late, until all who are left make it as surely as asked for.
    fn guard(&self, state: &TwinState, choices: &mut [Choice]) -> Vec<TerminalDecision> {
        let mut actions = Vec::new();
        let mut scratch = self.twin.scratch();
        loop {
            self.decoder.decode(state, |n| choices[n], &mut actions);
            let mut after = state.clone();
            self.twin.step(&mut after, &actions, Sureness::Safe, &mut scratch);
            let deadline = self.twin.nominal().limits.deadline;
            let slowest = (0..actions.len())
                .filter(|&n| actions[n].scheduled && scratch.safe_delays[n] > deadline)
                .max_by(|&a, &b| scratch.safe_delays[a].0.total_cmp(&scratch.safe_delays[b].0));
            let Some(slowest) = slowest else { return actions };
            choices[slowest].flag = false;
        }
    }

    /// Nobody is sure to make it: the terminal with the best channel gets everything, at the most
    /// compression.
    fn least_bad(&self, seen: &Observation) -> Decision {
        let limits = &self.twin.nominal().limits;
        let channel = |n: usize| seen.terminals[n].gain.0 * seen.terminals[n].fading_power;
        let best = (0..seen.terminals.len()).max_by(|&a, &b| channel(a).total_cmp(&channel(b)));
        let mut decision = Decision::idle(seen.terminals.len(), limits.cuts[0]);
        decision.fallback = true;
        if let Some(best) = best {
            let one = &mut decision.terminals[best];
            one.scheduled = true;
            one.bandwidth = limits.bandwidth;
            one.power = limits.power;
            one.compression = limits.compression;
        }
        decision
    }

    /// The reward of an executed round, from what was observed of it.
    fn realised_reward(
        &self,
        seen: &Observation,
        plan: &Feasible,
        outcome: &Outcome,
        before: f64,
    ) -> f64 {
        let nominal = self.twin.nominal();
        let weights = &self.twin.options().weights;
        let scheduled = || plan.decision().scheduled();
        let delays = || scheduled().map(|n| outcome.terminals[n].delay.min(nominal.give_up));
        let latency = delays().fold(Seconds(0.0), Seconds::max);
        let energy: Joules = scheduled().map(|n| outcome.terminals[n].energy).sum();
        let memories = scheduled().map(|n| {
            let need = nominal.profile.memory(plan.decision().terminals[n].cut);
            (need, seen.terminals[n].memory)
        });
        let asked = plan.decision().bandwidth();
        let violation = Violation::of(&nominal.limits, delays(), memories, asked);
        let success = self.twin.state(seen).success;
        task_reward(weights, success, before)
            + communication_reward(weights, self.twin.scale(), latency, energy)
            - penalty(weights, violation.relative)
    }

    /// A rollout of the actor inside the twin, for the imagined replay.
    fn imagine(&mut self, seen: &Observation) {
        let mut state = self.twin.state(seen);
        let mut scratch = self.twin.scratch();
        let mut actions = Vec::new();
        let seed = self.seed.named("imagination").at(seen.round);
        for step in 0..self.options.imagined {
            let before = scene(&self.twin, &state);
            let row = self.agent.sac.act(&before, Some(seed.at(step as u64)));
            let width = self.agent.sac.space().n_action();
            let choice = |n: usize| scene::choice(&row[n * width..(n + 1) * width]);
            self.decoder.decode(&state, choice, &mut actions);
            let prediction = self.twin.step(&mut state, &actions, Sureness::Likely, &mut scratch);
            self.agent.imagined.push(&Transition {
                state: before,
                actions: row,
                reward: prediction.reward.total() as f32,
                next: scene(&self.twin, &state),
                last: false,
            });
        }
    }
}

impl Allocator for Tilp {
    fn decide(&mut self, seen: &Observation) -> Decision {
        let state = self.twin.state(seen);
        let now = scene(&self.twin, &state);
        if let Some(Pending { scene, actions, reward }) = self.pending.take() {
            let next = now.clone();
            self.agent.real.push(&Transition { state: scene, actions, reward, next, last: false });
        }
        let mut choices = if self.options.parts.cem {
            self.search(seen, &state, &now)
        } else {
            self.proposal(&now).mode()[..seen.terminals.len()].to_vec()
        };
        let terminals = self.guard(&state, &mut choices);
        if !terminals.iter().any(|one| one.scheduled) {
            return self.least_bad(seen);
        }
        Decision { terminals, fallback: false }
    }

    fn learn(&mut self, seen: &Observation, plan: &Feasible, outcome: &Outcome) {
        let state = self.twin.state(seen);
        let scene = scene(&self.twin, &state);
        self.twin.calibrate(seen, plan, outcome);
        let reward = self.realised_reward(seen, plan, outcome, state.success) as f32;
        let cuts = &self.twin.nominal().limits.cuts;
        let rows = plan.decision().terminals.iter();
        let actions =
            rows.flat_map(|one| action_row(one, cuts, &self.twin.nominal().limits)).collect();
        self.pending = Some(Pending { scene, actions, reward });
        self.imagine(seen);
        (0..self.options.updates).for_each(|_| {
            self.agent.learn();
        });
    }
}

impl Work {
    fn new(twin: &Twin, horizon: usize) -> Self {
        Self {
            states: vec![TwinState::default(); LANES],
            spare: TwinState::default(),
            scratch: twin.scratch(),
            actions: Vec::new(),
            rewards: vec![[0.0; LANES]; horizon],
            critic: CriticTrace::default(),
        }
    }
}

impl Persist for Tilp {
    fn save(&self, snapshot: &mut Snapshot) {
        self.twin.save(snapshot);
        self.agent.save(snapshot);
        let remembered = self.planner.remembered();
        let flat = remembered.iter().flatten().flat_map(|choice| {
            let [b, p, q] = choice.reals;
            [b, p, q, choice.category as f32, f32::from(u8::from(choice.flag))]
        });
        snapshot.put_f32("tilp/remembered", flat.collect());
        snapshot.put_u64("tilp/n_remembered", vec![remembered.len() as u64]);
        let (scene, globals, actions, reward) = match &self.pending {
            Some(one) => {
                let scene = &one.scene;
                (
                    scene.terminals.clone(),
                    scene.globals.clone(),
                    one.actions.clone(),
                    vec![one.reward],
                )
            }
            None => Default::default(),
        };
        snapshot.put_f32("tilp/pending/terminals", scene);
        snapshot.put_f32("tilp/pending/globals", globals);
        snapshot.put_f32("tilp/pending/actions", actions);
        snapshot.put_f32("tilp/pending/reward", reward);
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        self.twin.restore(snapshot)?;
        self.agent.restore(snapshot)?;
        let all = |name: &str| snapshot.f32(name, snapshot.len_of(name)).map(<[f32]>::to_vec);
        let count = snapshot.u64("tilp/n_remembered", 1)?[0] as usize;
        let flat = all("tilp/remembered")?;
        self.planner = Planner::default();
        if let Some(length) = flat.len().checked_div(count).filter(|&length| length > 0) {
            for sequence in flat.chunks(length) {
                let choices: Vec<Choice> = (sequence.as_chunks::<5>().0.iter())
                    .map(|&[b, p, q, category, flag]| Choice {
                        reals: [b, p, q],
                        category: category as usize,
                        flag: flag > 0.5,
                    })
                    .collect();
                self.planner.suggest(&choices);
            }
        }
        let reward = all("tilp/pending/reward")?;
        self.pending = match reward.first() {
            Some(&reward) => Some(Pending {
                scene: Scene {
                    terminals: all("tilp/pending/terminals")?,
                    globals: all("tilp/pending/globals")?,
                },
                actions: all("tilp/pending/actions")?,
                reward,
            }),
            None => None,
        };
        Ok(())
    }
}
