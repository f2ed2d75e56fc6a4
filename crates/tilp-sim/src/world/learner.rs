//! The learning side of a simulated cell.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::cell::model_message;
use super::data_sets::DataSets;
use crate::round::{RoundOrder, TerminalId};
use crate::snapshot::{Persist, Snapshot, SnapshotError};
use crate::split::engine::{Copies, Engine, Outcome, Participant, RoundError};
use crate::split::policy::Policy;
use crate::split::rates::Rates;
use crate::split::rule::Rule;
use crate::split::terminal_state::TerminalState;
use crate::units::{Gain, Hertz, Joules, Seconds};

/// The learner of a simulated cell: the halves of a policy, or a law of learning. Radio, hardware
/// and billing are the cell's and do not depend on it.
pub trait Learner: Persist {
    /// The terminals that are there, in the order of their ids.
    fn ids(&self) -> Vec<TerminalId>;
    /// Lets terminals leave and join so that these are there in a round. The copies of one that
    /// leaves are lost; one that joins holds nothing.
    fn gather(&mut self, wanted: &BTreeSet<TerminalId>, round: u64) -> Result<(), RoundError>;
    /// Samples in the private data set of a terminal in a round.
    fn n_samples(&self, id: TerminalId, round: u64) -> usize;
    /// Front layers that a terminal holds in their current version.
    fn held_layers(&self, id: TerminalId) -> usize;
    /// Front layers that a terminal has trained since the last aggregation.
    fn owed_layers(&self, id: TerminalId) -> usize;
    /// One round. Where terminals train one after another, they do so in the order of
    /// `participants`.
    fn train(
        &mut self,
        rule: Rule,
        round: u64,
        rates: Rates,
        participants: &[Participant],
        copies: Copies,
    ) -> Result<Vec<Outcome>, RoundError>;
    /// Averages the copies of all layers. Copies of terminals that are not in `arrived` are lost.
    fn aggregate(&mut self, arrived: &[TerminalId]) -> Result<(), RoundError>;
    /// The same for the layers up to `last` and all that any terminal has trained.
    fn aggregate_front(&mut self, last: usize, arrived: &[TerminalId]) -> Result<(), RoundError>;
    /// Averages the copies of the edge servers.
    fn aggregate_edges(&mut self, copies: Copies) -> Result<(), RoundError>;
    /// The model that an aggregation of all copies would give, as the bytes of a
    /// [`LayerWeights`](crate::message::LayerWeights) message. Nothing changes by it.
    fn model(&self, round: u64) -> Result<Vec<u8>, RoundError>;
    /// The channel of a terminal as its own probe measured it last; none if it is simulated.
    fn probed(&self, _id: TerminalId) -> Option<Gain> {
        None
    }
    /// The real clock that the terminals run on; none if all time is simulated.
    fn live(&mut self) -> Option<&mut dyn Live> {
        None
    }
}

/// Terminals on real machines, whose delays and energies are measured.
pub trait Live {
    /// Whether a terminal is a real machine. The others are simulated.
    fn is_real(&self, id: TerminalId) -> bool;
    /// A round opens and closes after this time. The grants are by place in the order.
    fn open(&mut self, order: &RoundOrder, closes: Seconds, bandwidths: &[Hertz]);
    /// The round is over. What was measured of each real terminal that had something to do.
    fn close(&mut self) -> Vec<(TerminalId, Measured)>;
}

/// Measurements of a real terminal in a round.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    /// Time that its exchanges took.
    pub delay: Seconds,
    /// Part of it that the terminal computed.
    pub computation: Seconds,
    /// Energy by its meter; none without one.
    pub energy: Option<Joules>,
    /// Whether it had finished when the round closed.
    pub finished: bool,
}

/// The halves of a policy that exchange messages, and the data of the terminals by id.
pub struct Halves {
    /// The two halves.
    pub engine: Engine<Policy>,
    /// Private data over the rounds.
    pub data: DataSets,
}

impl Learner for Halves {
    fn ids(&self) -> Vec<TerminalId> {
        self.engine.ids()
    }

    fn gather(&mut self, wanted: &BTreeSet<TerminalId>, round: u64) -> Result<(), RoundError> {
        let Self { engine, data } = self;
        for id in engine.ids() {
            if !wanted.contains(&id) {
                engine.leave(id)?;
            }
        }
        for &id in wanted {
            let own = data.at(id, round);
            match engine.data(id) {
                None => engine.join(id, own.clone())?,
                Some(old) if Arc::ptr_eq(&old, own) => {}
                Some(_) => engine.replace_data(id, own.clone())?,
            }
        }
        Ok(())
    }

    fn n_samples(&self, id: TerminalId, round: u64) -> usize {
        self.data.at(id, round).len()
    }

    fn held_layers(&self, id: TerminalId) -> usize {
        self.engine.terminal(id).map_or(0, TerminalState::held)
    }

    fn owed_layers(&self, id: TerminalId) -> usize {
        self.engine.terminal(id).map_or(0, TerminalState::deepest_trained)
    }

    fn train(
        &mut self,
        rule: Rule,
        round: u64,
        rates: Rates,
        participants: &[Participant],
        copies: Copies,
    ) -> Result<Vec<Outcome>, RoundError> {
        self.engine.settings_mut().server_rate = rates.server;
        self.engine.settings_mut().client_rate = rates.terminal;
        self.engine.train(rule, round, participants, copies)
    }

    fn aggregate(&mut self, arrived: &[TerminalId]) -> Result<(), RoundError> {
        self.engine.aggregate(arrived)
    }

    fn aggregate_front(&mut self, last: usize, arrived: &[TerminalId]) -> Result<(), RoundError> {
        self.engine.aggregate_front(last, arrived)
    }

    fn aggregate_edges(&mut self, copies: Copies) -> Result<(), RoundError> {
        self.engine.aggregate_edges(copies)
    }

    fn model(&self, round: u64) -> Result<Vec<u8>, RoundError> {
        Ok(model_message(round, &self.engine.model().deployed(&self.engine.virtual_mean())))
    }
}

impl Persist for Halves {
    fn save(&self, snapshot: &mut Snapshot) {
        self.engine.save(snapshot);
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        self.engine.restore(snapshot)
    }
}
