//! The experimenter of a simulated cell: the hidden truth, its books, and episodes that no method
//! sees.

use std::sync::Arc;

use rayon::prelude::*;

use super::cell::{RoundTruth, SimulatedCell};
use super::evaluator::read_model;
use super::{Fleet, RoundTiming};
use crate::rng::Seed;
use crate::round::{
    Cell, CellError, Experimenter, Ledger, LossChange, NetworkTruth, Question, RoundOrder,
    SuccessCount, TerminalId, TerminalLedger, TerminalSuccess, TrueHardware, Truth, Violation,
};
use crate::split::data::Batch;
use crate::split::model::{SplitModel, Weights};
use crate::split::policy::Policy;
use crate::tasks::EpisodeSet;

/// The experimenter of a simulated cell.
pub struct Laboratory {
    fleet: Arc<Fleet>,
    policy: Arc<Policy>,
    seed: Seed,
    losses_before: Option<Vec<f64>>,
}

impl Laboratory {
    /// An experimenter with these robots. The seed is the cell's.
    pub fn new(fleet: Arc<Fleet>, policy: Arc<Policy>, seed: Seed) -> Self {
        Self { fleet, policy, seed, losses_before: None }
    }

    /// The policy without weights.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The robots.
    pub fn fleet(&self) -> &Fleet {
        &self.fleet
    }

    /// The deployed policy: the mean of all copies.
    pub fn deployed(&self, cell: &mut SimulatedCell) -> Result<Weights, CellError> {
        read_model(&self.policy, &cell.model()?)
    }

    /// Success per terminal on report episodes. They are the same at every point of the curve, so
    /// a step in the curve is a change of the policy.
    pub fn report_success(
        &self,
        cell: &mut SimulatedCell,
    ) -> Result<Vec<TerminalSuccess>, CellError> {
        self.success(cell, EpisodeSet::Report, 0, self.fleet.schedule.report_episodes)
    }

    /// Success per terminal on the final episodes.
    pub fn final_success(
        &self,
        cell: &mut SimulatedCell,
    ) -> Result<Vec<TerminalSuccess>, CellError> {
        self.success(cell, EpisodeSet::Final, 0, self.fleet.schedule.final_episodes)
    }

    fn success(
        &self,
        cell: &mut SimulatedCell,
        set: EpisodeSet,
        first: u64,
        episodes: usize,
    ) -> Result<Vec<TerminalSuccess>, CellError> {
        let model = self.deployed(cell)?;
        Ok(self.fleet.measure(set, first, episodes, &cell.members(), &model, &self.policy))
    }

    /// Loss of a policy over the same samples of each terminal's data every time.
    fn deployed_losses(
        &self,
        cell: &SimulatedCell,
        samples: usize,
        terminals: &[TerminalId],
        model: &Weights,
    ) -> Vec<f64> {
        let data = cell.engine().data_sets();
        let of = |id: &TerminalId| {
            let mut batch = Batch::default();
            let mut rng = self.seed.named("truth/samples").at(id.0.into()).rng();
            data[id].draw(samples, &mut rng, &mut batch);
            let mut actions = vec![0.0; batch.actions.len()];
            self.policy.act(model, &batch.observations, &mut actions);
            self.policy.loss(&actions, &batch.actions, &mut Vec::new())
        };
        terminals.par_iter().map(of).collect()
    }

    fn network_truth(&self, cell: &SimulatedCell, rounds: usize) -> NetworkTruth {
        let present = cell.present();
        let place = |id: &TerminalId| id.0 as usize;
        let hardware = present.iter().map(|id| cell.radio().truth[place(id)]);
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
    /// calibration. Every time has episodes of its own.
    fn true_success(
        &self,
        round: u64,
        episodes: usize,
        terminals: &[TerminalId],
        model: &Weights,
    ) -> Option<Vec<SuccessCount>> {
        let (done, every) = (round - 1, self.fleet.schedule.calibrate_every);
        done.is_multiple_of(every).then(|| {
            let first = done / every * episodes as u64;
            let set = EpisodeSet::Truth;
            let counts = self.fleet.measure(set, first, episodes, terminals, model, &self.policy);
            counts.into_iter().map(|one| one.count).collect()
        })
    }
}

impl Experimenter<SimulatedCell> for Laboratory {
    fn reveal(
        &mut self,
        cell: &mut SimulatedCell,
        question: &Question,
    ) -> Result<Truth, CellError> {
        let round = cell.round();
        let mut truth = Truth { round, ..Truth::default() };
        truth.network = question.rounds.map(|rounds| self.network_truth(cell, rounds));
        if question.samples.is_none() && question.episodes.is_none() {
            return Ok(truth);
        }
        let model = self.deployed(cell)?;
        let present = cell.present();
        let losses = |samples| self.deployed_losses(cell, samples, &present, &model);
        truth.losses = question.samples.map(losses);
        let success = |episodes| self.true_success(round, episodes, &present, &model);
        truth.success = question.episodes.and_then(success);
        Ok(truth)
    }

    fn fits(&mut self, cell: &mut SimulatedCell, order: &RoundOrder) -> Result<bool, CellError> {
        cell.fits(order)
    }

    fn before(&mut self, cell: &mut SimulatedCell, order: &RoundOrder) -> Result<(), CellError> {
        self.losses_before = None;
        if order.round.is_multiple_of(self.fleet.schedule.loss_every) {
            let model = self.deployed(cell)?;
            let samples = self.fleet.schedule.loss_samples;
            let losses = self.deployed_losses(cell, samples, &order.terminals, &model);
            self.losses_before = Some(losses);
        }
        Ok(())
    }

    fn after(
        &mut self,
        cell: &mut SimulatedCell,
        order: &RoundOrder,
        calibration: Option<&[TerminalSuccess]>,
    ) -> Result<Option<Ledger>, CellError> {
        let Some(truth) = cell.last_round() else { return Ok(None) };
        let mut ledger = ledger(cell, order, truth);
        if let Some(before) = self.losses_before.take() {
            let model = self.deployed(cell)?;
            let samples = self.fleet.schedule.loss_samples;
            let after = self.deployed_losses(cell, samples, &order.terminals, &model);
            let pairs = before.into_iter().zip(after);
            let changes = pairs.map(|(before, after)| LossChange { before, after });
            ledger.losses = Some(changes.collect());
        }
        if order.round.is_multiple_of(self.fleet.schedule.measure_every) {
            ledger.report = Some(self.report_success(cell)?);
        }
        let measured = calibration.into_iter().flatten().chain(ledger.report.iter().flatten());
        ledger.episodes = measured.map(|one| one.count.episodes).sum();
        Ok(Some(ledger))
    }
}

/// The books of an executed round, without measurements.
fn ledger(cell: &SimulatedCell, order: &RoundOrder, truth: &RoundTruth) -> Ledger {
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
