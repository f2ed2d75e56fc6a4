//! The ways to train a round: one engine, rules as data.

use super::engine::{Copies, Engine, Outcome, Participant, Progress, RoundError};
use super::link::TerminalLink;
use super::model::SplitModel;

pub use tilp_core::rule::{Local, Rule};

impl<M: SplitModel, L: TerminalLink> Engine<M, L> {
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
            Rule::Sequential => self.one_by_one(round, participants, false),
            Rule::Relay => self.one_by_one(round, participants, true),
            Rule::Whole(local) => {
                self.train_together(round, participants, Copies::default(), local)?.finish()
            }
        }
    }

    /// Terminals one after another. With `hand_on` (sequential split learning) no terminal holds
    /// anything beforehand, and the front layers of one are aggregated before the next begins.
    fn one_by_one(
        &mut self,
        round: u64,
        participants: &[Participant],
        hand_on: bool,
    ) -> Result<Vec<Outcome>, RoundError> {
        self.check(participants)?;
        let mut progress = Progress::default();
        if hand_on {
            progress.note(self.aggregate(&self.ids()))?;
        }
        for one in participants {
            let (copies, local) = (Copies::default(), Local::Steps(1));
            let step = self.train_together(round, std::slice::from_ref(one), copies, local)?;
            progress.done.extend(step.done);
            progress.failed.extend(step.failed);
            if hand_on {
                progress.note(self.aggregate(&[one.terminal]))?;
            }
        }
        progress.finish()
    }
}
