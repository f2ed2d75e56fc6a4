//! The front half of a policy on private data.

use std::sync::Arc;

use prost::Message;
use tilp_core::message::{Kind, peek};
use tilp_core::round::TerminalId;
use tilp_core::snapshot::{Persist, Snapshot};
use tilp_core::units::Operations;
use tilp_split::split::control::TrainOrder;
use tilp_split::split::data::Dataset;
use tilp_split::split::model::SplitModel;
use tilp_split::split::policy::Policy;
use tilp_split::split::terminal::TerminalHalf;

use super::TerminalData;
use super::agent::{Worked, Worker};
use super::equipment::{Equipment, Reading};
use crate::contract::v1::{Grant, Training};
use crate::contract::{TerminalModel, state_from_bytes, state_to_bytes};
use crate::hold::hold;

/// The work of a terminal: a [`TerminalHalf`] of the policy that the base station describes.
pub struct FrontHalf {
    id: TerminalId,
    data: TerminalData,
    equipment: Box<dyn Equipment>,
    /// The radio's reading after the last message.
    radio_j: Option<f64>,
    /// Operations of the pending minibatch.
    pending: Operations,
    model: Option<TerminalModel>,
    half: Option<TerminalHalf<Policy>>,
    /// The data that the half has.
    uses: Option<Arc<Dataset>>,
}

impl FrontHalf {
    /// A terminal with private data. The base station never gets it.
    pub fn new(id: TerminalId, data: TerminalData, equipment: Box<dyn Equipment>) -> Self {
        let (radio_j, pending) = (None, Operations(0.0));
        Self { id, data, equipment, radio_j, pending, model: None, half: None, uses: None }
    }

    /// Gives the half the data of a round.
    fn attend(&mut self, round: u64) {
        let wanted = self.data.at(round);
        let is_current = self.uses.as_ref().is_some_and(|uses| Arc::ptr_eq(uses, wanted));
        if let (false, Some(half)) = (is_current, &mut self.half) {
            half.replace_data(wanted.clone());
            self.uses = Some(wanted.clone());
        }
    }

    /// Operations that a message asks for: a third of a minibatch forward, the rest backward.
    fn operations(&mut self, message: &[u8]) -> Operations {
        let Some(model) = &self.model else { return Operations(0.0) };
        match peek(message) {
            Ok((Kind::Train, context)) => {
                let policy = &model.policy;
                let Ok(order) = TrainOrder::from_bytes(message, policy.n_layers()) else {
                    return Operations(0.0);
                };
                let held = self.uses.as_ref().map_or(0, |uses| uses.len());
                let samples = held.min(order.samples as usize);
                let cut = usize::from(context.cut).min(policy.n_layers());
                let each = policy.profile(cut, samples.max(1), order.optimiser).operations.0;
                self.pending = Operations(each * samples as f64);
                Operations(self.pending.0 / 3.0)
            }
            Ok((Kind::CutGradient, _)) => Operations(self.pending.0 * 2.0 / 3.0),
            _ => Operations(0.0),
        }
    }

    /// Joules of a message: of its computation, and of the radio since the message before.
    fn used(&mut self, before: Reading, after: Reading) -> f64 {
        let radio_before = self.radio_j.replace(after.radio_j).unwrap_or(before.radio_j);
        // A meter that was started again counts from zero.
        let radio = (after.radio_j - radio_before).max(0.0);
        (after.compute_j - before.compute_j).max(0.0) + radio
    }
}

/// The phase of a round that a message belongs to.
fn phase(message: &[u8]) -> Option<&'static str> {
    match peek(message).ok()?.0 {
        Kind::LayerWeights | Kind::HalfWeights | Kind::ByteWeights => Some("downloading"),
        Kind::Train => Some("forward"),
        Kind::CutGradient => Some("backward"),
        _ => None,
    }
}

impl Worker for FrontHalf {
    fn granted(&mut self, round: u64, grant: &Grant) {
        self.equipment.apply(round, grant);
    }

    fn prepare(&mut self, work: &[u8]) -> Result<(), String> {
        let message = Training::decode(work).map_err(|error| format!("welcome: {error}"))?;
        let model = TerminalModel::from_message(&message)?;
        let architecture = model.policy.architecture();
        self.data.check(architecture.observation_width(), architecture.actions)?;
        (self.model, self.half, self.uses) = (Some(model), None, None);
        Ok(())
    }

    fn reset(&mut self, membership: u64) -> Result<(), String> {
        let TerminalModel { policy, seed, minibatches, start } =
            self.model.as_ref().ok_or("a request before the welcome")?;
        let data = self.data.at(0).clone();
        let half = TerminalHalf::new(self.id, policy.clone(), *seed, data.clone());
        let half = half.with_minibatches(*minibatches);
        let half = if membership == 0 { half.with_policy(start) } else { half };
        (self.half, self.uses) = (Some(half), Some(data));
        Ok(())
    }

    fn handle(&mut self, round: u64, message: &[u8]) -> Result<Worked, String> {
        self.attend(round);
        let operations = self.operations(message);
        let (start, before) = (self.equipment.now(), self.equipment.read(0.0));
        let half = self.half.as_mut().ok_or("a request before the welcome")?;
        let answer = half.handle(message).map_err(|error| error.to_string())?;
        let compute_s = self.equipment.now().saturating_sub(start).as_secs_f64();
        let after = self.equipment.read(operations.0);
        let energy_j = before.zip(after).map(|(before, after)| self.used(before, after));
        if let Some(phase) = phase(message) {
            hold(|| format!("{phase}-{}", self.id.0));
        }
        Ok(Worked { message: answer, compute_s, energy_j })
    }

    fn save(&self) -> Vec<u8> {
        let mut snapshot = Snapshot::default();
        if let Some(half) = &self.half {
            half.save(&mut snapshot);
        }
        state_to_bytes(&snapshot)
    }

    fn restore(&mut self, round: u64, state: &[u8]) -> Result<(), String> {
        // Other data would drop the pending order that the state may contain.
        self.attend(round);
        let snapshot = state_from_bytes(state)?;
        let half = self.half.as_mut().ok_or("a state before the welcome")?;
        half.restore(&snapshot).map_err(|error| error.to_string())
    }
}
