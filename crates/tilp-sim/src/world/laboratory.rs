//! The experimenter of a simulated cell: the hidden truth, its books, and episodes that no method
//! sees.

use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;

use super::cell::{RoundTruth, SimulatedCell};
use super::evaluator::read_model;
use super::{Fleet, Halves, Learner, RoundTiming, Schedule};
use crate::rng::Seed;
use crate::round::{
    Cell, CellError, Experimenter, Ledger, LossChange, NetworkTruth, Question, RoundOrder,
    SuccessCount, TerminalId, TerminalLedger, TerminalSuccess, TrueHardware, Truth, Violation,
};
use crate::split::data::{Batch, Dataset};
use crate::split::model::{SplitModel, Weights};
use crate::split::policy::Policy;
use crate::tasks::EpisodeSet;

/// Measures a model in ways that no method sees: success on episodes, loss on the terminals' data.
pub trait Examiner<L> {
    /// Names of the tasks.
    fn tasks(&self) -> &'static [&'static str];
    /// When success is measured, and on how many episodes.
    fn schedule(&self) -> &Schedule;
    /// Success of a model on episodes `first` and following of a set, as the terminals are in a
    /// round; round 0 is before the first.
    fn success(
        &self,
        round: u64,
        set: EpisodeSet,
        first: u64,
        per_terminal: usize,
        terminals: &[TerminalId],
        model: &[u8],
    ) -> Result<Vec<TerminalSuccess>, CellError>;
    /// Loss of a model over the same samples of each terminal's data every time.
    fn losses(
        &self,
        learner: &L,
        samples: usize,
        terminals: &[TerminalId],
        model: &[u8],
    ) -> Result<Vec<f64>, CellError>;
    /// The file of a final policy; none where there is no policy.
    fn model_file(&self, model: &[u8]) -> Result<Option<Vec<u8>>, CellError>;
}

/// Robots in physics, and the policy that moves them.
pub struct Robots {
    fleet: Arc<Fleet>,
    policy: Arc<Policy>,
    seed: Seed,
}

impl Examiner<Halves> for Robots {
    fn tasks(&self) -> &'static [&'static str] {
        self.fleet.suite.tasks
    }

    fn schedule(&self) -> &Schedule {
        &self.fleet.schedule
    }

    fn success(
        &self,
        round: u64,
        set: EpisodeSet,
        first: u64,
        per_terminal: usize,
        terminals: &[TerminalId],
        model: &[u8],
    ) -> Result<Vec<TerminalSuccess>, CellError> {
        let weights = read_model(&self.policy, model)?;
        let fleet = self.fleet.at(round);
        Ok(fleet.measure(set, first, per_terminal, terminals, &weights, &self.policy))
    }

    fn losses(
        &self,
        learner: &Halves,
        samples: usize,
        terminals: &[TerminalId],
        model: &[u8],
    ) -> Result<Vec<f64>, CellError> {
        self.losses_on(&learner.engine.data_sets(), samples, terminals, model)
    }

    fn model_file(&self, model: &[u8]) -> Result<Option<Vec<u8>>, CellError> {
        let weights = read_model(&self.policy, model)?;
        let file = self.policy.to_safetensors(&weights);
        file.map(Some).map_err(|error| CellError::Model(error.to_string()))
    }
}

impl Robots {
    /// Loss of a model over the same samples of each of these data sets every time.
    pub fn losses_on(
        &self,
        data: &BTreeMap<TerminalId, Arc<Dataset>>,
        samples: usize,
        terminals: &[TerminalId],
        model: &[u8],
    ) -> Result<Vec<f64>, CellError> {
        let weights = read_model(&self.policy, model)?;
        let of = |id: &TerminalId| {
            let mut batch = Batch::default();
            let mut rng = self.seed.named("truth/samples").at(id.0.into()).rng();
            data[id].draw(samples, &mut rng, &mut batch);
            let mut actions = vec![0.0; batch.actions.len()];
            self.policy.act(&weights, &batch.observations, &mut actions);
            self.policy.loss(&actions, &batch.actions, &mut Vec::new())
        };
        Ok(terminals.par_iter().map(of).collect())
    }
}

/// The experimenter of a simulated cell.
pub struct Laboratory<X = Robots> {
    examiner: X,
    losses_before: Option<Vec<f64>>,
}

impl Laboratory {
    /// An experimenter with these robots. The seed is the cell's.
    pub fn new(fleet: Arc<Fleet>, policy: Arc<Policy>, seed: Seed) -> Self {
        Self::with(Robots { fleet, policy, seed })
    }

    /// The policy without weights.
    pub fn policy(&self) -> &Policy {
        &self.examiner.policy
    }

    /// The robots.
    pub fn fleet(&self) -> &Fleet {
        &self.examiner.fleet
    }

    /// The deployed policy: the mean of all copies.
    pub fn deployed(&self, cell: &mut SimulatedCell) -> Result<Weights, CellError> {
        read_model(&self.examiner.policy, &cell.model()?)
    }
}

impl<X> Laboratory<X> {
    /// An experimenter with these measurements.
    pub fn with(examiner: X) -> Self {
        Self { examiner, losses_before: None }
    }

    /// Its way to measure, for another cell.
    pub fn into_examiner(self) -> X {
        self.examiner
    }

    /// Settings of its measurements.
    pub fn examiner(&self) -> &X {
        &self.examiner
    }

    /// Success per terminal on report episodes. They are the same at every point of the curve, so
    /// a step in the curve is a change of the policy.
    pub fn report_success<L: Learner>(
        &self,
        cell: &mut SimulatedCell<L>,
    ) -> Result<Vec<TerminalSuccess>, CellError>
    where
        X: Examiner<L>,
    {
        self.success(cell, EpisodeSet::Report, self.examiner.schedule().report_episodes)
    }

    /// Success per terminal on the final episodes.
    pub fn final_success<L: Learner>(
        &self,
        cell: &mut SimulatedCell<L>,
    ) -> Result<Vec<TerminalSuccess>, CellError>
    where
        X: Examiner<L>,
    {
        self.success(cell, EpisodeSet::Final, self.examiner.schedule().final_episodes)
    }

    fn success<L: Learner>(
        &self,
        cell: &mut SimulatedCell<L>,
        set: EpisodeSet,
        episodes: usize,
    ) -> Result<Vec<TerminalSuccess>, CellError>
    where
        X: Examiner<L>,
    {
        // The cell counts the next round; robots are as they were in the last one.
        let done = cell.round() - 1;
        self.examiner.success(done, set, 0, episodes, &cell.members(), &cell.model()?)
    }

    fn deployed_losses<L: Learner>(
        &self,
        cell: &mut SimulatedCell<L>,
        terminals: &[TerminalId],
    ) -> Result<Vec<f64>, CellError>
    where
        X: Examiner<L>,
    {
        let model = cell.model()?;
        let samples = self.examiner.schedule().loss_samples;
        self.examiner.losses(cell.learner(), samples, terminals, &model)
    }

    fn network_truth<L: Learner>(&self, cell: &SimulatedCell<L>, rounds: usize) -> NetworkTruth {
        let present = cell.present();
        let place = |id: &TerminalId| id.0 as usize;
        let hardware = present.iter().map(|id| cell.radio().true_hardware(*id, cell.round()));
        let hardware = hardware.map(|one| TrueHardware {
            noise_w_per_hz: one.noise_w_per_hz,
            operations_per_cycle: one.operations_per_cycle,
            energy_coefficient: one.energy_coefficient,
        });
        let all = cell.radio().channel.fading_powers_ahead(cell.round(), rounds);
        let of_present = |powers: Vec<f64>| present.iter().map(|id| powers[place(id)]).collect();
        NetworkTruth {
            hardware: hardware.collect(),
            fading_powers: all.into_iter().map(of_present).collect(),
        }
    }

    /// Success per terminal on episodes of the truth, before the first round and after every
    /// calibration. Every measurement has separate episodes.
    fn true_success<L>(
        &self,
        round: u64,
        episodes: usize,
        terminals: &[TerminalId],
        model: &[u8],
    ) -> Result<Option<Vec<SuccessCount>>, CellError>
    where
        X: Examiner<L>,
    {
        let (done, every) = (round - 1, self.examiner.schedule().calibrate_every);
        if !done.is_multiple_of(every) {
            return Ok(None);
        }
        let first = done / every * episodes as u64;
        let set = EpisodeSet::Truth;
        let counts = self.examiner.success(round, set, first, episodes, terminals, model)?;
        Ok(Some(counts.into_iter().map(|one| one.count).collect()))
    }
}

impl<L: Learner, X: Examiner<L>> Experimenter<SimulatedCell<L>> for Laboratory<X> {
    fn reveal(
        &mut self,
        cell: &mut SimulatedCell<L>,
        question: &Question,
    ) -> Result<Truth, CellError> {
        let round = cell.round();
        let mut truth = Truth { round, ..Truth::default() };
        truth.network = question.rounds.map(|rounds| self.network_truth(cell, rounds));
        if question.samples.is_none() && question.episodes.is_none() {
            return Ok(truth);
        }
        let (present, model) = (cell.present(), cell.model()?);
        if let Some(samples) = question.samples {
            let losses = self.examiner.losses(cell.learner(), samples, &present, &model)?;
            truth.losses = Some(losses);
        }
        if let Some(episodes) = question.episodes {
            truth.success = self.true_success(round, episodes, &present, &model)?;
        }
        Ok(truth)
    }

    fn fits(&mut self, cell: &mut SimulatedCell<L>, order: &RoundOrder) -> Result<bool, CellError> {
        cell.fits(order)
    }

    fn before(&mut self, cell: &mut SimulatedCell<L>, order: &RoundOrder) -> Result<(), CellError> {
        self.losses_before = None;
        if order.round.is_multiple_of(self.examiner.schedule().loss_every) {
            self.losses_before = Some(self.deployed_losses(cell, &order.terminals)?);
        }
        Ok(())
    }

    fn after(
        &mut self,
        cell: &mut SimulatedCell<L>,
        order: &RoundOrder,
        calibration: Option<&[TerminalSuccess]>,
    ) -> Result<Option<Ledger>, CellError> {
        let Some(truth) = cell.last_round() else { return Ok(None) };
        let mut ledger = ledger(cell, order, truth);
        if let Some(before) = self.losses_before.take() {
            let after = self.deployed_losses(cell, &order.terminals)?;
            let pairs = before.into_iter().zip(after);
            let changes = pairs.map(|(before, after)| LossChange { before, after });
            ledger.losses = Some(changes.collect());
        }
        if order.round.is_multiple_of(self.examiner.schedule().measure_every) {
            ledger.report = Some(self.report_success(cell)?);
        }
        let measured = calibration.into_iter().flatten().chain(ledger.report.iter().flatten());
        ledger.episodes = measured.map(|one| one.count.episodes).sum();
        Ok(Some(ledger))
    }
}

/// The books of an executed round, without measurements.
fn ledger<L: Learner>(cell: &SimulatedCell<L>, order: &RoundOrder, truth: &RoundTruth) -> Ledger {
    let RoundTruth { reports, timing } = truth;
    let (radio, decision) = (cell.radio(), order.plan.decision());
    let memory =
        |n: usize| (radio.cost.memory(order.rule, decision.terminals[n].cut), reports[n].memory);
    let violation = Violation::of(
        &radio.cost.limits,
        decision.scheduled().map(|n| timing.delays[n].min(radio.give_up)),
        decision.scheduled().map(memory),
        radio.cost.asked(order.rule, &order.plan),
    );
    Ledger {
        terminals: (0..reports.len()).map(|n| terminal_ledger(timing, n)).collect(),
        latency: timing.latency,
        duration: timing.duration,
        violation,
        report: None,
        losses: None,
        episodes: 0,
    }
}

fn terminal_ledger(timing: &RoundTiming, n: usize) -> TerminalLedger {
    TerminalLedger {
        delay: timing.delays[n],
        energy_compute: timing.costs[n].energy_compute,
        energy_radio: timing.costs[n].energy_radio,
        bandwidth: timing.bandwidths[n],
        bytes_up: timing.jobs[n].up,
        bytes_down: timing.jobs[n].down,
        bytes_sync: timing.jobs[n].sync_up + timing.jobs[n].sync_down,
    }
}
