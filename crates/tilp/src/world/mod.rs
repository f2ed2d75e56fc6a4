//! The physical system: true channel, true hardware, real tensors, real robots.
//!
//! Nothing in here is visible to a method except through what [`World::observe`] and the outcome
//! of [`World::execute`] show. What [`World::reveal`] tells reaches the reference `oracle` alone.

mod channel;
mod fleet;
mod losses;
mod radio;
mod reveal;
mod truth;

pub use channel::Channel;
pub use fleet::{Fleet, Schedule};
pub use radio::{Late, Radio, Settled};
pub use truth::{HardwareRange, draw_memory, draw_nominal, draw_truth};

use rand::seq::SliceRandom;
use rand_distr::{Distribution, LogNormal};

use crate::rng::Seed;
use crate::round::{
    Executed, Feasible, Ledger, Observation, Outcome, Question, SuccessCount, TerminalLedger,
    TerminalOutcome, TerminalView, Truth, Violation, World,
};
use crate::snapshot::{Persist, Snapshot, SnapshotError};
use crate::split::engine::{self, Copies, Engine, Participant};
use crate::split::policy::Policy;
use crate::split::rates::RateSchedule;
use crate::split::rule::Rule;
use crate::units::{Hertz, Joules, Seconds};

/// A cell of robots around a base station.
pub struct Cell {
    /// Radio and hardware.
    pub radio: Radio,
    /// The two halves of the policy and their exchange.
    pub engine: Engine<Policy>,
    /// The robots.
    pub fleet: Fleet,
    /// Learning rates.
    pub rates: RateSchedule,
    /// Rounds between aggregations.
    pub aggregate_every: u64,
    /// Standard deviation of the log-normal measurement error.
    pub measurement_noise: f64,
    /// Seed of everything drawn while running.
    pub seed: Seed,
    state: State,
}

/// What changes from round to round, engine and channel aside.
#[derive(Clone, Debug, PartialEq)]
struct State {
    round: u64,
    clock: Seconds,
    loss: Option<f64>,
    success: Option<Vec<SuccessCount>>,
    terminals: Vec<Known>,
}

/// What the base station remembers of a terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Known {
    bandwidth: Hertz,
    gradient_norm: Option<f64>,
    loss: Option<f64>,
    scheduled: Option<u64>,
}

impl Cell {
    /// A cell before its first round.
    pub fn new(
        radio: Radio,
        engine: Engine<Policy>,
        fleet: Fleet,
        rates: RateSchedule,
        aggregate_every: u64,
        measurement_noise: f64,
        seed: Seed,
    ) -> Self {
        let state = State {
            round: 1,
            clock: Seconds(0.0),
            loss: None,
            success: None,
            terminals: vec![Known::default(); radio.n_terminals()],
        };
        Self { radio, engine, fleet, rates, aggregate_every, measurement_noise, seed, state }
    }

    fn aggregates(&self) -> bool {
        self.state.round.is_multiple_of(self.aggregate_every)
    }

    /// Trains those who made it, then aggregates if it is time.
    fn learn(&mut self, plan: &Feasible, settled: &Settled) -> Vec<engine::Outcome> {
        let layers = |n: usize| self.radio.terms().layers(plan.decision().terminals[n].cut);
        let mut participants: Vec<Participant> = (plan.conduct().order.iter())
            .filter(|&&n| settled.in_time[n])
            .map(|&n| {
                let q = plan.decision().terminals[n].compression;
                Participant { terminal: n, cut: layers(n), q }
            })
            .collect();
        let round = self.state.round;
        if self.radio.rule == Rule::Sequential {
            // Whoever came last in every round would have the last word in every round.
            participants.shuffle(&mut self.seed.named("order").at(round).rng());
        }
        let rates = self.rates.at(round);
        self.engine.settings_mut().server_rate = rates.server;
        self.engine.settings_mut().client_rate = rates.terminal;
        let copies = self.copies(plan);
        let trained = self.engine.train(self.radio.rule, round, &participants, copies);
        let trained = trained.expect("a feasible plan names each terminal once, at a legal cut");
        let arrived: Vec<usize> =
            (0..self.radio.n_terminals()).filter(|&n| settled.in_time[n]).collect();
        match plan.conduct().tiers {
            None if self.aggregates() => self.engine.aggregate(&arrived),
            None => {}
            Some(tiers) => {
                if tiers.average_own {
                    self.engine.aggregate_front(copies.own, &arrived);
                }
                if tiers.average_edge {
                    self.engine.aggregate_edges(copies);
                }
            }
        }
        trained
    }

    /// Which layers have copies of their own in this round.
    fn copies(&self, plan: &Feasible) -> Copies {
        let last = self.radio.profile.cuts.len();
        match (plan.conduct().tiers, self.radio.rule) {
            (Some(tiers), Rule::Tiered { edges }) => {
                Copies { own: tiers.own.min(last), edge: tiers.edge.min(last), n_edges: edges }
            }
            _ => Copies::default(),
        }
    }

    /// What the base station measures: truth times log-normal noise.
    fn outcome(&self, plan: &Feasible, settled: &Settled, trained: &[engine::Outcome]) -> Outcome {
        let noise = LogNormal::new(0.0, self.measurement_noise).expect("checked by the scenario");
        let closes = self.radio.terms().closes;
        let measure = |n: usize| {
            let mut rng = self.seed.named("measurement").at(self.state.round).at(n as u64).rng();
            let (time, energy) = (noise.sample(&mut rng), noise.sample(&mut rng));
            let cost = &settled.costs[n];
            let joules = cost.energy_compute + cost.energy_radio;
            let asked = plan.decision().terminals[n].scheduled;
            let own = trained.iter().find(|one| one.terminal == n);
            // Nobody listens any longer once the round has closed.
            let unfinished = settled.delays[n] > closes;
            TerminalOutcome {
                took_part: own.is_some(),
                late: asked && !settled.in_time[n],
                unfinished,
                delay: if unfinished { closes } else { settled.delays[n] * time },
                computation: if asked { cost.computation * time } else { Seconds(0.0) },
                energy: Joules(joules.0 * energy),
                loss: own.map(|one| one.loss),
                gradient_norm: own.map(|one| one.client_gradient_norm),
            }
        };
        Outcome {
            round: self.state.round,
            loss: (!trained.is_empty()).then(|| engine::training_loss(trained)),
            terminals: (0..self.radio.n_terminals()).map(measure).collect(),
            success: None,
        }
    }

    fn ledger(&self, plan: &Feasible, settled: &Settled) -> Ledger {
        let n_terminals = self.radio.n_terminals();
        let terms = self.radio.terms();
        let one = |n: usize| TerminalLedger {
            delay: settled.delays[n],
            energy_compute: settled.costs[n].energy_compute,
            energy_radio: settled.costs[n].energy_radio,
            bandwidth: settled.bandwidths[n],
            bytes_up: settled.jobs[n].up,
            bytes_down: settled.jobs[n].down,
            bytes_sync: settled.jobs[n].sync_up + settled.jobs[n].sync_down,
        };
        let memory =
            |n: usize| (terms.memory(plan.decision().terminals[n].cut), self.radio.memory[n]);
        let violation = Violation::of(
            &self.radio.limits,
            plan.decision().scheduled().map(|n| settled.delays[n].min(self.radio.give_up)),
            plan.decision().scheduled().map(memory),
            terms.asked(plan),
        );
        Ledger {
            terminals: (0..n_terminals).map(one).collect(),
            latency: settled.latency,
            duration: settled.duration,
            violation,
            report: None,
            losses: None,
            episodes: 0,
        }
    }

    fn remember(&mut self, plan: &Feasible, executed: &Executed) {
        let round = self.state.round;
        for (n, known) in self.state.terminals.iter_mut().enumerate() {
            let one = &plan.decision().terminals[n];
            let seen = &executed.outcome.terminals[n];
            known.bandwidth = one.bandwidth;
            known.gradient_norm = seen.gradient_norm.or(known.gradient_norm);
            known.loss = seen.loss.or(known.loss);
            if one.scheduled {
                known.scheduled = Some(round);
            }
        }
        self.state.loss = executed.outcome.loss.or(self.state.loss);
        if executed.outcome.success.is_some() {
            self.state.success.clone_from(&executed.outcome.success);
        }
        self.state.clock += executed.ledger.duration;
        self.state.round += 1;
        self.radio.channel.advance();
    }

    fn evaluate(&self, executed: &mut Executed) {
        let round = self.state.round;
        if !self.fleet.measures(round) {
            return;
        }
        let model = self.engine.virtual_mean();
        if let Some(by_terminal) = self.fleet.calibrate(round, &model, self.engine.model()) {
            executed.ledger.episodes += by_terminal.iter().map(|one| one.episodes).sum::<u64>();
            executed.outcome.success = Some(self.fleet.by_task(&by_terminal));
        }
        if let Some(by_terminal) = self.fleet.report(round, &model, self.engine.model()) {
            executed.ledger.episodes += by_terminal.iter().map(|one| one.episodes).sum::<u64>();
            executed.ledger.report = Some(by_terminal);
        }
    }
}

impl World for Cell {
    fn observe(&self) -> Observation {
        let round = self.state.round;
        let view = |n: usize| {
            let known = &self.state.terminals[n];
            TerminalView {
                gain: self.radio.channel.gains()[n],
                fading_power: self.radio.channel.fading_power(n, round),
                previous_bandwidth: known.bandwidth,
                gradient_norm: known.gradient_norm,
                loss: known.loss,
                rounds_since_scheduled: known.scheduled.map(|last| round - last),
                n_samples: self.engine.terminals()[n].data().len(),
                memory: self.radio.memory[n],
                task: self.fleet.task(n),
                held_layers: self.engine.terminals()[n].held(),
                owed_layers: self.engine.terminals()[n].deepest_trained(),
            }
        };
        Observation {
            round,
            clock: self.state.clock,
            aggregates: self.aggregates(),
            loss: self.state.loss,
            success: self.state.success.clone(),
            terminals: (0..self.radio.n_terminals()).map(view).collect(),
        }
    }

    fn execute(&mut self, plan: &Feasible) -> Executed {
        let settled = self.radio.settle(plan, &self.observe());
        let before = self.losses_looked_at();
        let trained = self.learn(plan, &settled);
        let outcome = self.outcome(plan, &settled, &trained);
        let mut ledger = self.ledger(plan, &settled);
        ledger.losses = before.map(|before| self.loss_changes(before));
        let mut executed = Executed { outcome, ledger };
        self.evaluate(&mut executed);
        self.remember(plan, &executed);
        executed
    }

    fn reveal(&self, question: &Question) -> Truth {
        self.truth(question)
    }
}

impl Persist for Cell {
    fn save(&self, snapshot: &mut Snapshot) {
        self.engine.save(snapshot);
        self.state.save(snapshot);
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        self.engine.restore(snapshot)?;
        let first = self.state.round;
        self.state.restore(snapshot)?;
        // The channel draws by seed and round: walking it to the round is restoring it.
        (first..self.state.round).for_each(|_| self.radio.channel.advance());
        Ok(())
    }
}

/// An optional number as a number: what is not there is NaN, which no loss or norm ever is.
fn to_nan(value: Option<f64>) -> f64 {
    value.unwrap_or(f64::NAN)
}

fn from_nan(value: f64) -> Option<f64> {
    (!value.is_nan()).then_some(value)
}

impl State {
    fn save(&self, snapshot: &mut Snapshot) {
        let of = |pick: fn(&Known) -> f64| self.terminals.iter().map(pick).collect::<Vec<f64>>();
        snapshot.put_u64("world/round", vec![self.round]);
        snapshot.put_f64("world/clock_s", vec![self.clock.0]);
        snapshot.put_f64("world/loss", vec![to_nan(self.loss)]);
        snapshot.put_f64("world/bandwidth_hz", of(|known| known.bandwidth.0));
        snapshot.put_f64("world/gradient_norm", of(|known| to_nan(known.gradient_norm)));
        snapshot.put_f64("world/terminal_loss", of(|known| to_nan(known.loss)));
        // Rounds count from 1, so 0 stands for never.
        let scheduled = self.terminals.iter().map(|known| known.scheduled.unwrap_or(0)).collect();
        snapshot.put_u64("world/scheduled", scheduled);
        let success = self.success.iter().flatten().flat_map(|one| [one.successes, one.episodes]);
        snapshot.put_u64("world/success", success.collect());
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        let n = self.terminals.len();
        self.round = snapshot.u64("world/round", 1)?[0];
        self.clock = Seconds(snapshot.f64("world/clock_s", 1)?[0]);
        self.loss = from_nan(snapshot.f64("world/loss", 1)?[0]);
        let bandwidths = snapshot.f64("world/bandwidth_hz", n)?;
        let norms = snapshot.f64("world/gradient_norm", n)?;
        let losses = snapshot.f64("world/terminal_loss", n)?;
        let scheduled = snapshot.u64("world/scheduled", n)?;
        for (i, known) in self.terminals.iter_mut().enumerate() {
            *known = Known {
                bandwidth: Hertz(bandwidths[i]),
                gradient_norm: from_nan(norms[i]),
                loss: from_nan(losses[i]),
                scheduled: (scheduled[i] > 0).then_some(scheduled[i]),
            };
        }
        let success = snapshot.u64("world/success", snapshot.len_of("world/success"))?;
        let counts = success.as_chunks::<2>().0.iter();
        let counts: Vec<SuccessCount> =
            counts.map(|&[successes, episodes]| SuccessCount { successes, episodes }).collect();
        self.success = (!counts.is_empty()).then_some(counts);
        Ok(())
    }
}
