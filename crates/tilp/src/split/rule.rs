//! The ways to train a round: one engine, rules as data.

use super::engine::{Copies, Engine, Outcome, Participant, RoundError};
use super::model::SplitModel;

/// How the participants of a round train.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rule {
    /// All at once; the server steps with the mean of their gradients (SplitFed V1 and kin).
    #[default]
    Parallel,
    /// The server steps after every terminal, each terminal keeps its front (SplitFed V2).
    Sequential,
    /// One after another; the front is handed from terminal to terminal (SplitNN).
    Relay,
    /// All at once; every terminal gets the mean of the gradients at the cut (GA-SFL).
    Broadcast,
    /// Every terminal trains the whole model and sends it (FedAvg).
    Whole(Local),
    /// All at once; layers up to some depth have a copy per terminal, then per edge server
    /// (AdaptSFL and HSFL). Terminal `n` belongs to edge server `n` modulo their number.
    Tiered {
        /// Number of edge servers.
        edges: usize,
    },
}

/// How much a terminal trains on its own in one round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Local {
    /// So many minibatches.
    Steps(usize),
    /// So many passes over its data.
    Epochs(usize),
}

impl Local {
    /// Samples that go through the model, with minibatches of `batch` on a set of `n_samples`.
    pub fn samples(self, batch: usize, n_samples: usize) -> usize {
        match self {
            Local::Steps(steps) => steps * batch.min(n_samples),
            Local::Epochs(epochs) => epochs * n_samples,
        }
    }
}

impl<M: SplitModel> Engine<M> {
    /// One round by a rule. Where terminals train one after another, they do so in the order of
    /// `participants`. Outcomes come in that order too.
    pub fn train(
        &mut self,
        rule: Rule,
        round: u64,
        participants: &[Participant],
        copies: Copies,
    ) -> Result<Vec<Outcome>, RoundError> {
        match rule {
            Rule::Parallel => self.round(round, participants),
            Rule::Tiered { .. } => self.round_with(round, participants, copies),
            Rule::Broadcast => self.broadcast_round(round, participants),
            Rule::Sequential => self.one_by_one(round, participants, |_, _| {}),
            Rule::Relay => self.relay(round, participants),
            Rule::Whole(local) => {
                let before = std::mem::replace(&mut self.local, local);
                let done = self.round(round, participants);
                self.local = before;
                done
            }
        }
    }

    /// Nobody holds anything beforehand: the front comes from whoever trained last.
    fn relay(
        &mut self,
        round: u64,
        participants: &[Participant],
    ) -> Result<Vec<Outcome>, RoundError> {
        self.aggregate(&(0..self.terminals.len()).collect::<Vec<_>>());
        self.one_by_one(round, participants, |engine, terminal| engine.aggregate(&[terminal]))
    }

    fn one_by_one(
        &mut self,
        round: u64,
        participants: &[Participant],
        after: impl Fn(&mut Self, usize),
    ) -> Result<Vec<Outcome>, RoundError> {
        self.chosen(participants)?;
        let mut done = Vec::with_capacity(participants.len());
        for one in participants {
            done.extend(self.round(round, std::slice::from_ref(one))?);
            after(self, one.terminal);
        }
        Ok(done)
    }
}
