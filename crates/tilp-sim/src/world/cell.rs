//! The simulated cell: simulated radio, simulated hardware, and a learner.

use rand::seq::SliceRandom;
use rand_distr::{Distribution, LogNormal};

use super::learner::{Halves, Learner};
use super::presence::Presence;
use super::radio::{Radio, RoundTiming};
use crate::message::{Context, LayerWeights};
use crate::rng::Seed;
use crate::round::{
    Budget, BudgetUse, Cell, CellError, Outcome, RoundOrder, TerminalId, TerminalOutcome,
    TerminalReport, Tiers,
};
use crate::snapshot::{Persist, Snapshot, SnapshotError};
use crate::split::engine::{self, Copies, Engine, Participant, RoundError};
use crate::split::model::Weights;
use crate::split::policy::Policy;
use crate::split::rule::Rule;
use crate::units::{Joules, Seconds};
use crate::wireless::round_delay;

/// Parts of a simulated cell. Lists have one entry for each terminal that is ever there;
/// entry `n` belongs to the terminal with id `n`.
pub struct CellParts<L = Halves> {
    /// Radio and hardware.
    pub radio: Radio,
    /// The learner, with the terminals of the first round.
    pub learner: L,
    /// Index of the task of each terminal.
    pub tasks: Vec<usize>,
    /// Presence of terminals by round.
    pub presence: Presence,
    /// Standard deviation of the log-normal measurement error.
    pub measurement_noise: f64,
    /// Budgets of the whole run. The cell meters what is used; a terminal without energy leaves.
    pub budget: Budget,
    /// Seed of everything drawn while running.
    pub seed: Seed,
}

/// True outcome of a round.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundTruth {
    /// The reports that the round was executed with.
    pub reports: Vec<TerminalReport>,
    /// Times, energies and bytes.
    pub timing: RoundTiming,
}

/// A cell of robots around a base station.
pub struct SimulatedCell<L = Halves> {
    parts: CellParts<L>,
    round: u64,
    used: BudgetUse,
    last: Option<RoundTruth>,
}

impl SimulatedCell {
    /// The split-learning engine: for the experimenter.
    pub fn engine(&self) -> &Engine<Policy> {
        &self.parts.learner.engine
    }
}

impl<L: Learner> SimulatedCell<L> {
    /// A cell before its first round.
    pub fn new(parts: CellParts<L>) -> Self {
        Self { parts, round: 1, used: BudgetUse::default(), last: None }
    }

    /// The same cell, before its first round, with another learner.
    pub fn map_learner<K: Learner, E>(
        self,
        learner: impl FnOnce(L) -> Result<K, E>,
    ) -> Result<SimulatedCell<K>, E> {
        let CellParts { radio, learner: old, tasks, presence, measurement_noise, budget, seed } =
            self.parts;
        let learner = learner(old)?;
        let parts = CellParts { radio, learner, tasks, presence, measurement_noise, budget, seed };
        Ok(SimulatedCell::new(parts))
    }

    /// The next round, counted from 1.
    pub fn round(&self) -> u64 {
        self.round
    }

    /// True outcome of the last round, for the experimenter.
    pub fn last_round(&self) -> Option<&RoundTruth> {
        self.last.as_ref()
    }

    /// True radio and hardware: for the experimenter.
    pub fn radio(&self) -> &Radio {
        &self.parts.radio
    }

    /// The learner, for the experimenter.
    pub fn learner(&self) -> &L {
        &self.parts.learner
    }

    /// The terminals that are there, in the order of their ids.
    pub fn present(&self) -> Vec<TerminalId> {
        self.parts.learner.ids()
    }

    /// The terminals that are there and those that have used up their energy, in the order of
    /// their ids. The policy is for all of them.
    pub fn members(&self) -> Vec<TerminalId> {
        if self.parts.budget.joules_per_terminal.is_none() {
            return self.present();
        }
        // Terminals come and go at the start of a round: this is about the last one executed.
        self.parts.presence.at((self.round - 1).max(1)).into_iter().collect()
    }

    /// True use so far.
    pub fn used(&self) -> &BudgetUse {
        &self.used
    }

    /// Whether a terminal has used up the energy that it may use.
    fn is_empty(&self, id: TerminalId) -> bool {
        let budget = self.parts.budget.joules_per_terminal;
        budget.is_some_and(|budget| self.used.is_empty(id, budget))
    }

    /// Whether an order fits into the rest of the budget, for the experimenter.
    pub fn fits(&self, order: &RoundOrder) -> Result<bool, CellError> {
        if self.parts.budget.is_none() {
            return Ok(true);
        }
        self.check(order)?;
        let mut used = self.used.clone();
        let (_, timing) = self.preview(order);
        used.add(timing.duration, timing.used(&order.terminals));
        Ok(self.parts.budget.holds(&used))
    }

    /// How an order would go in time, energy and bytes. Sizes are known without data, so this is
    /// known before any terminal computes.
    fn preview(&self, order: &RoundOrder) -> (Vec<TerminalReport>, RoundTiming) {
        let reports: Vec<TerminalReport> =
            order.terminals.iter().map(|&id| self.report(id)).collect();
        let mut timing = self.parts.radio.timing(order, &reports);
        if let Some(budget) = self.parts.budget.joules_per_terminal {
            for (n, &id) in order.terminals.iter().enumerate() {
                timing.stop_without_energy(n, self.used.left(id, budget));
            }
        }
        (reports, timing)
    }

    /// Index of the task of a terminal.
    pub fn task(&self, id: TerminalId) -> usize {
        self.parts.tasks[id.0 as usize]
    }

    /// Lets terminals leave and join so that those of the present round are there, each with its
    /// data of this round.
    fn gather(&mut self) -> Result<(), RoundError> {
        let mut wanted = self.parts.presence.at(self.round);
        wanted.retain(|id| !self.is_empty(*id));
        self.parts.learner.gather(&wanted, self.round)
    }

    fn report(&self, id: TerminalId) -> TerminalReport {
        let CellParts { radio, learner, tasks, .. } = &self.parts;
        let n = id.0 as usize;
        let simulated = || (radio.gain(id, self.round), radio.channel.fading_power(n, self.round));
        // What a probe measures contains the fading.
        let (gain, fading_power) = learner.probed(id).map_or_else(simulated, |gain| (gain, 1.0));
        TerminalReport {
            id,
            hardware: radio.nominal[n],
            memory: radio.memory[n],
            n_samples: learner.n_samples(id, self.round),
            task: tasks[n],
            gain,
            fading_power,
            held_layers: learner.held_layers(id),
            owed_layers: learner.owed_layers(id),
        }
    }

    fn check(&self, order: &RoundOrder) -> Result<(), CellError> {
        let round = self.round;
        if order.round != round {
            return Err(CellError::Round { found: order.round, expected: round });
        }
        let present = self.present();
        let stranger = order.terminals.iter().find(|id| !present.contains(id));
        let missing = present.iter().find(|id| !order.terminals.contains(id));
        match stranger.or(missing) {
            Some(&terminal) => Err(CellError::UnknownTerminal { round, terminal }),
            None => Ok(()),
        }
    }

    /// Trains the terminals that are in time, then aggregates if the order says so.
    fn train(
        &mut self,
        order: &RoundOrder,
        timing: &RoundTiming,
    ) -> Result<Vec<engine::Outcome>, RoundError> {
        let RoundOrder { plan, rule, round, rates, .. } = order;
        let layers = |cut: usize| self.parts.radio.cost.layers(*rule, cut);
        let in_time = plan.training().order.iter().filter(|&&n| timing.in_time[n]);
        let mut participants: Vec<Participant> = in_time
            .map(|&n| {
                let one = &plan.decision().terminals[n];
                let (terminal, cut) = (order.terminals[n], layers(one.cut));
                Participant { terminal, cut, q: one.compression }
            })
            .collect();
        if *rule == Rule::Sequential {
            // In a fixed order the same terminal would have the last step of every round.
            participants.shuffle(&mut self.parts.seed.named("order").at(*round).rng());
        }
        let copies = copies(order, self.parts.radio.cost.profile.cuts.len());
        let learner = &mut self.parts.learner;
        let is_live = learner.live().is_some();
        let trained = learner.train(*rule, *round, *rates, &participants, copies);
        let trained = without_lost(is_live, trained)?;
        let arrived = (0..order.terminals.len()).filter(|&n| timing.in_time[n]);
        let arrived: Vec<TerminalId> = arrived.map(|n| order.terminals[n]).collect();
        let averaged = match plan.training().tiers {
            None if order.aggregates => learner.aggregate(&arrived),
            None => Ok(()),
            Some(tiers) => average(learner, tiers, copies, &arrived),
        };
        without_lost(is_live, averaged.map(|()| Vec::new()))?;
        Ok(trained)
    }

    /// Opens a round for real terminals: none of them is late yet.
    fn open(&mut self, order: &RoundOrder, timing: &mut RoundTiming) {
        let closes = self.parts.radio.closes();
        let Some(live) = self.parts.learner.live() else { return };
        for (n, &id) in order.terminals.iter().enumerate() {
            timing.in_time[n] |= live.is_real(id) && timing.involved[n] && timing.fits[n];
        }
        live.open(order, closes, &timing.bandwidths);
    }

    /// Puts what was measured of real terminals in the place of what was simulated.
    fn close(&mut self, order: &RoundOrder, timing: &mut RoundTiming) {
        let radio = &self.parts.radio;
        let (closes, give_up) = (radio.closes(), radio.give_up);
        let Some(live) = self.parts.learner.live() else { return };
        for (id, measured) in live.close() {
            let Some(n) = order.terminals.iter().position(|one| *one == id) else { continue };
            timing.measure(n, closes, give_up, measured);
        }
        let scheduled = order.plan.decision().scheduled().map(|n| timing.delays[n]);
        timing.latency = round_delay(scheduled).min(give_up);
        timing.duration = round_delay(timing.delays.iter().copied()).min(closes);
    }

    /// Measurements of the base station: truth times log-normal noise.
    fn outcome(
        &self,
        order: &RoundOrder,
        timing: &RoundTiming,
        trained: &[engine::Outcome],
    ) -> Outcome {
        let noise = LogNormal::new(0.0, self.parts.measurement_noise);
        let noise = noise.expect("checked by the scenario");
        let closes = self.parts.radio.closes();
        let measure = |(n, &id): (usize, &TerminalId)| {
            let seed = self.parts.seed.named("measurement").at(self.round);
            let mut rng = seed.at(id.0.into()).rng();
            let (mut time, mut energy) = (noise.sample(&mut rng), noise.sample(&mut rng));
            if timing.measured[n] {
                (time, energy) = (1.0, 1.0); // a real clock and a real meter
            }
            let cost = &timing.costs[n];
            let joules = cost.energy_compute + cost.energy_radio;
            let scheduled = order.plan.decision().terminals[n].scheduled;
            let own = trained.iter().find(|one| one.terminal == id);
            // After the round has closed nothing is measured.
            let unfinished = timing.delays[n] > closes || timing.out_of_energy[n];
            TerminalOutcome {
                id,
                took_part: own.is_some(),
                late: scheduled && timing.fits[n] && !timing.in_time[n],
                unfit: !timing.fits[n],
                unfinished,
                delay: if unfinished { closes } else { timing.delays[n] * time },
                computation: if scheduled { cost.computation * time } else { Seconds(0.0) },
                energy: Joules(joules.0 * energy),
                bytes: timing.jobs[n].air(),
                loss: own.map(|one| one.loss),
                gradient_norm: own.map(|one| one.client_gradient_norm),
                success: None,
            }
        };
        Outcome {
            round: self.round,
            duration: timing.duration,
            loss: (!trained.is_empty()).then(|| engine::training_loss(trained)),
            terminals: order.terminals.iter().enumerate().map(measure).collect(),
            success: None,
        }
    }
}

/// On real machines a round continues without lost terminals: they count as late.
fn without_lost(
    is_live: bool,
    result: Result<Vec<engine::Outcome>, RoundError>,
) -> Result<Vec<engine::Outcome>, RoundError> {
    match result {
        Err(RoundError::Links { done, .. }) if is_live => Ok(done),
        other => other,
    }
}

/// Layers with separate copies per terminal in a round.
fn copies(order: &RoundOrder, last: usize) -> Copies {
    match (order.plan.training().tiers, order.rule) {
        (Some(tiers), Rule::Tiered { edges }) => {
            Copies { own: tiers.own.min(last), edge: tiers.edge.min(last), n_edges: edges }
        }
        _ => Copies::default(),
    }
}

fn average(
    learner: &mut impl Learner,
    tiers: Tiers,
    copies: Copies,
    arrived: &[TerminalId],
) -> Result<(), RoundError> {
    if tiers.average_own {
        learner.aggregate_front(copies.own, arrived)?;
    }
    if tiers.average_edge {
        learner.aggregate_edges(copies)?;
    }
    Ok(())
}

/// A model as the bytes of a message.
pub fn model_message(round: u64, model: &Weights) -> Vec<u8> {
    let context = Context { round, terminal: TerminalId(0), cut: model.n_layers() as u16 };
    LayerWeights { context, first: 1, layers: model.layers().to_vec() }.to_bytes()
}

impl<L: Learner> Cell for SimulatedCell<L> {
    fn sense(&mut self) -> Result<Vec<TerminalReport>, CellError> {
        let round = self.round;
        let failed = |error: RoundError| CellError::Training { round, reason: error.to_string() };
        self.gather().map_err(failed)?;
        Ok(self.present().into_iter().map(|id| self.report(id)).collect())
    }

    fn execute(&mut self, order: &RoundOrder) -> Result<Outcome, CellError> {
        self.check(order)?;
        let (reports, mut timing) = self.preview(order);
        let round = self.round;
        let failed = |error: RoundError| CellError::Training { round, reason: error.to_string() };
        self.open(order, &mut timing);
        let trained = self.train(order, &timing).map_err(failed)?;
        self.close(order, &mut timing);
        let outcome = self.outcome(order, &timing, &trained);
        self.used.add(timing.duration, timing.used(&order.terminals));
        self.last = Some(RoundTruth { reports, timing });
        self.round += 1;
        self.parts.radio.channel.advance();
        Ok(outcome)
    }

    fn model(&mut self) -> Result<Vec<u8>, CellError> {
        let round = self.round;
        let failed = |error: RoundError| CellError::Training { round, reason: error.to_string() };
        self.parts.learner.model(round).map_err(failed)
    }
}

/// No run is longer; a checkpoint with a later round is forged.
const MOST_ROUNDS: u64 = 1 << 32;

impl<L: Learner> Persist for SimulatedCell<L> {
    fn save(&self, snapshot: &mut Snapshot) {
        self.parts.learner.save(snapshot);
        self.parts.radio.channel.save(snapshot);
        snapshot.put_u64("cell/round", vec![self.round]);
        if !self.parts.budget.is_none() {
            self.used.save("cell/used", snapshot);
            let members = self.present().into_iter().map(|id| id.0.into()).collect();
            snapshot.put_u64("cell/members", members);
        }
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        let round = snapshot.u64_up_to("cell/round", 1, MOST_ROUNDS)?[0];
        if round == 0 {
            return Err(SnapshotError::value("cell/round", round, "at least 1"));
        }
        if !self.parts.budget.is_none() {
            self.used = BudgetUse::restored("cell/used", snapshot)?;
        }
        // Terminals come and go at the start of a round: the snapshot was taken before that.
        let before = (round - 1).max(1);
        let mut members = self.parts.presence.at(before);
        if !self.parts.budget.is_none() {
            // A terminal that used up its energy in the last round is still there.
            let n = snapshot.len_of("cell/members");
            let ids = snapshot.u64_up_to("cell/members", n, u32::MAX.into())?;
            members.retain(|id| ids.contains(&id.0.into()));
        }
        let joined = |error: RoundError| SnapshotError::value("cell/round", round, error);
        self.parts.learner.gather(&members, before).map_err(joined)?;
        self.round = round;
        self.parts.learner.restore(snapshot)?;
        self.last = None;
        self.parts.radio.channel.restore(round, snapshot)
    }
}
