//! The front half of a policy on private data.

use std::sync::Arc;
use std::time::Duration;

use prost::Message;
use tilp_core::round::TerminalId;
use tilp_core::snapshot::{Persist, Snapshot};
use tilp_split::split::data::Dataset;
use tilp_split::split::policy::Policy;
use tilp_split::split::terminal::TerminalHalf;

use super::TerminalData;
use super::agent::{Worked, Worker};
use crate::contract::v1::Training;
use crate::contract::{TerminalModel, state_from_bytes, state_to_bytes};

/// Reads what a terminal uses: time for its computations, and energy if it has a meter.
pub trait Meter: Send {
    /// Time since some fixed moment.
    fn now(&mut self) -> Duration;
    /// Joules used since some fixed moment; none without a meter.
    fn joules(&mut self) -> Option<f64> {
        None
    }
}

/// The work of a terminal: a [`TerminalHalf`] of the policy that the base station describes.
pub struct FrontHalf {
    id: TerminalId,
    data: TerminalData,
    meter: Box<dyn Meter>,
    model: Option<TerminalModel>,
    half: Option<TerminalHalf<Policy>>,
    /// The data that the half has.
    uses: Option<Arc<Dataset>>,
}

impl FrontHalf {
    /// A terminal with private data. The base station never gets it.
    pub fn new(id: TerminalId, data: TerminalData, meter: Box<dyn Meter>) -> Self {
        Self { id, data, meter, model: None, half: None, uses: None }
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
}

impl Worker for FrontHalf {
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
        let (start, before) = (self.meter.now(), self.meter.joules());
        let half = self.half.as_mut().ok_or("a request before the welcome")?;
        let message = half.handle(message).map_err(|error| error.to_string())?;
        let compute_s = self.meter.now().saturating_sub(start).as_secs_f64();
        let energy_j = before.zip(self.meter.joules()).map(|(before, after)| after - before);
        Ok(Worked { message, compute_s, energy_j })
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
