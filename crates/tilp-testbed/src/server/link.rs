//! The link to a terminal of a testbed: a process behind the hub, or a half in this process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tilp::round::TerminalId;
use tilp::split::link::{LinkError, LocalLink, TerminalLink};
use tilp::split::policy::Policy;
use tilp::units::{Joules, Seconds};
use tilp::world::Measured;
use tilp_core::message::{Kind, peek};
use tilp_core::wire::WireError;

use crate::contract::v1::Grant;
use crate::hold::hold;
use crate::station::{Call, Hub, Party};

/// What the links of a round share under the wall clock.
#[derive(Debug, Default)]
pub(super) struct WallRound {
    /// When the round closes; none between rounds.
    pub until: Option<Duration>,
    /// Band and power by terminal.
    pub grants: BTreeMap<TerminalId, Grant>,
    /// What was measured.
    pub measured: BTreeMap<TerminalId, Measured>,
}

/// A terminal that is a process.
pub(super) struct RemoteLink {
    hub: Arc<Hub>,
    id: TerminalId,
    wall: Option<Arc<Mutex<WallRound>>>,
}

impl RemoteLink {
    /// The link to a terminal. Under the wall clock it shares the round with the others.
    pub(super) fn new(hub: Arc<Hub>, id: TerminalId, wall: Option<Arc<Mutex<WallRound>>>) -> Self {
        Self { hub, id, wall }
    }

    /// When the round closes, and what the terminal is granted.
    fn terms(&self) -> (Option<Duration>, Option<Grant>) {
        let Some(wall) = &self.wall else { return (None, None) };
        let wall = wall.lock().unwrap_or_else(PoisonError::into_inner);
        (wall.until, wall.grants.get(&self.id).copied())
    }

    fn note(&self, done: Option<&Call>) {
        let Some(wall) = &self.wall else { return };
        let mut wall = wall.lock().unwrap_or_else(PoisonError::into_inner);
        if wall.until.is_none() {
            return; // between rounds nothing is billed
        }
        let new = Measured { finished: true, ..Measured::default() };
        let measured = wall.measured.entry(self.id).or_insert(new);
        let Some(Call { answer, took_s, .. }) = done else {
            measured.finished = false;
            return;
        };
        measured.delay += Seconds(*took_s);
        let computed = Seconds(answer.compute_s.clamp(0.0, *took_s));
        measured.computation += computed;
        if let Some(joules) = answer.energy_j.filter(|joules| joules.is_finite() && *joules >= 0.0)
        {
            measured.energy = Some(measured.energy.unwrap_or(Joules(0.0)) + Joules(joules));
        }
    }
}

impl TerminalLink for RemoteLink {
    fn exchange(&mut self, message: &[u8]) -> Result<Vec<u8>, LinkError> {
        if peek(message).is_ok_and(|(kind, _)| kind == Kind::CutGradient) {
            hold(|| format!("waiting-{}", self.id.0));
        }
        let (until, grant) = self.terms();
        let called = self.hub.call(Party::Terminal(self.id.0), message, grant, until);
        self.note(called.as_ref().ok());
        let call = called.map_err(|lost| LinkError::Lost(lost.to_string()))?;
        if call.answer.refused {
            let why = String::from_utf8_lossy(&call.payload).into_owned();
            return Err(LinkError::Refused(WireError::new("message", 0, why)));
        }
        Ok(call.payload)
    }
}

/// A terminal of a hybrid cell.
pub(super) enum HybridLink {
    /// Simulated.
    Local(Box<LocalLink<Policy>>),
    /// A process.
    Remote(RemoteLink),
}

impl TerminalLink for HybridLink {
    fn exchange(&mut self, message: &[u8]) -> Result<Vec<u8>, LinkError> {
        match self {
            Self::Local(link) => link.exchange(message),
            Self::Remote(link) => link.exchange(message),
        }
    }
}
