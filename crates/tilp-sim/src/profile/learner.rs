//! A learner that follows a law.

use std::collections::BTreeSet;

use super::Law;
use super::copies::{LayerCopies, Part, Tier};
use crate::message::{Context, LayerWeights};
use crate::rng::Seed;
use crate::round::{CellError, TerminalId};
use crate::split::engine::{Copies, Outcome, Participant, RoundError};
use crate::split::rates::Rates;
use crate::split::rule::{Local, Rule};
use crate::units::Bytes;
use crate::world::Learner;

/// The learner of a profile scenario: instead of weights, the samples behind every copy of every layer.
///
/// Learning rates have no effect: the law is that of a well-tuned method.
#[derive(Clone, Debug, PartialEq)]
pub struct LawLearner {
    pub(super) law: Law,
    pub(super) copies: LayerCopies,
    batch: usize,
    seed: Seed,
}

impl LawLearner {
    /// A learner of a model whose layers have these numbers of trained parameters, with minibatches
    /// of `batch` samples.
    pub fn new(law: Law, parameters: &[u64], batch: usize, seed: Seed) -> Self {
        let total: f64 = parameters.iter().map(|count| *count as f64).sum();
        let shares = parameters.iter().map(|count| *count as f64 / total).collect();
        let copies = LayerCopies::new(shares, law.n_terminals());
        Self { law, copies, batch, seed }
    }

    /// The law that it follows.
    pub fn law(&self) -> &Law {
        &self.law
    }

    /// Effective samples behind the loss of each terminal if all copies were aggregated now.
    pub fn effective(&self) -> Vec<f64> {
        self.law.effective(&self.copies.used(&self.law))
    }

    /// Terminals train in parallel.
    fn together(
        &mut self,
        round: u64,
        participants: &[Participant],
        tier: Tier,
        local: Local,
        front: f64,
    ) -> Vec<Outcome> {
        let effective = self.effective();
        let outcome = |one: &Participant| self.outcome(round, one, local, &effective);
        let outcomes: Vec<Outcome> = participants.iter().map(outcome).collect();
        let part = |(one, done): (&Participant, &Outcome)| {
            let samples = done.samples as f64 * self.law.worth(one.q);
            let steps = done.samples.div_ceil(self.minibatch(one.terminal)) as f64;
            Part { id: one.terminal, cut: one.cut, samples, steps, front }
        };
        let parts: Vec<Part> = participants.iter().zip(&outcomes).map(part).collect();
        self.copies.step(&parts, tier);
        outcomes
    }

    /// The report of a participant. Message sizes are those of the cost model; nothing is sent
    /// here.
    fn outcome(&self, round: u64, one: &Participant, local: Local, effective: &[f64]) -> Outcome {
        let n = one.terminal.0 as usize;
        let loss = self.law.loss(n, effective[n]);
        let seed = self.seed.named("minibatch").at(round).at(n as u64);
        let [loss_factor, gradient_factor] = self.law.minibatch_factors(seed);
        let is_whole = one.cut == self.copies.n_layers();
        // A terminal that trains the whole model compresses only the update that it sends.
        let blur = if is_whole { 1.0 } else { self.law.blur(one.q) };
        let front = self.copies.share_up_to(one.cut);
        let norm = |share: f64| self.law.gradient_norm(n, loss, share) * gradient_factor;
        Outcome {
            terminal: one.terminal,
            samples: match is_whole {
                true => local.samples(self.batch, self.law.n_samples(n)),
                false => self.minibatch(one.terminal),
            },
            loss: loss * blur * loss_factor,
            client_gradient_norm: norm(front),
            server_gradient_norm: norm(1.0 - front),
            up: Bytes(0),
            down: Bytes(0),
            sync_down: Bytes(0),
            moved: Bytes(0),
        }
    }

    /// Samples of a terminal's minibatch.
    fn minibatch(&self, id: TerminalId) -> usize {
        self.batch.min(self.law.n_samples(id.0 as usize))
    }

    /// Terminals train one after another. With `hand_on` the copies of one are aggregated before
    /// the next begins.
    fn one_by_one(
        &mut self,
        round: u64,
        participants: &[Participant],
        hand_on: bool,
    ) -> Vec<Outcome> {
        let last = self.copies.n_layers();
        if hand_on {
            self.copies.aggregate(&self.law, last, &self.ids());
        }
        let mut outcomes = Vec::with_capacity(participants.len());
        for one in participants {
            let alone = std::slice::from_ref(one);
            let (tier, local) = (Tier::default(), Local::Steps(1));
            outcomes.extend(self.together(round, alone, tier, local, 1.0));
            if hand_on {
                self.copies.aggregate(&self.law, last, &[one.terminal]);
            }
        }
        outcomes
    }

    /// `Ok` if every participant is a member, occurs once and has a possible cut.
    fn check(&self, participants: &[Participant]) -> Result<(), RoundError> {
        let last = self.copies.n_layers();
        let mut seen = BTreeSet::new();
        for one in participants {
            let wrong = |field, value, expected: String| {
                Err(RoundError::Participant { terminal: one.terminal, field, value, expected })
            };
            if !self.copies.members.contains_key(&one.terminal) {
                return Err(RoundError::Unknown(one.terminal));
            }
            if !seen.insert(one.terminal) {
                return wrong("id", one.terminal.0.into(), "each terminal once".into());
            }
            if !(1..=last).contains(&one.cut) {
                return wrong("cut", one.cut as f64, format!("1 to {last}"));
            }
            if !(0.0..1.0).contains(&one.q) {
                return wrong("q", one.q, "0 to below 1".into());
            }
        }
        Ok(())
    }
}

impl From<Copies> for Tier {
    fn from(copies: Copies) -> Self {
        Self { own: copies.own, edge: copies.edge, n_edges: copies.n_edges }
    }
}

impl Learner for LawLearner {
    fn ids(&self) -> Vec<TerminalId> {
        self.copies.members.keys().copied().collect()
    }

    fn gather(&mut self, wanted: &BTreeSet<TerminalId>, _round: u64) -> Result<(), RoundError> {
        self.copies.gather(wanted);
        Ok(())
    }

    fn n_samples(&self, id: TerminalId, _round: u64) -> usize {
        self.law.n_samples(id.0 as usize)
    }

    fn held_layers(&self, id: TerminalId) -> usize {
        self.copies.held(id)
    }

    fn owed_layers(&self, id: TerminalId) -> usize {
        self.copies.owed(id)
    }

    fn train(
        &mut self,
        rule: Rule,
        round: u64,
        _rates: Rates,
        participants: &[Participant],
        copies: Copies,
    ) -> Result<Vec<Outcome>, RoundError> {
        self.check(participants)?;
        let (plain, once) = (Tier::default(), Local::Steps(1));
        Ok(match rule {
            Rule::Parallel => self.together(round, participants, plain, once, 1.0),
            Rule::Tiered { .. } => self.together(round, participants, copies.into(), once, 1.0),
            Rule::Broadcast => {
                let front = if participants.len() > 1 { self.law.broadcast() } else { 1.0 };
                self.together(round, participants, plain, once, front)
            }
            Rule::Whole(local) => self.together(round, participants, plain, local, 1.0),
            Rule::Sequential => self.one_by_one(round, participants, false),
            Rule::Relay => self.one_by_one(round, participants, true),
        })
    }

    fn aggregate(&mut self, arrived: &[TerminalId]) -> Result<(), RoundError> {
        self.aggregate_front(self.copies.n_layers(), arrived)
    }

    fn aggregate_front(&mut self, last: usize, arrived: &[TerminalId]) -> Result<(), RoundError> {
        self.copies.aggregate(&self.law, last, arrived);
        Ok(())
    }

    fn aggregate_edges(&mut self, copies: Copies) -> Result<(), RoundError> {
        self.copies.aggregate_edges(&self.law, copies.into());
        Ok(())
    }

    /// One layer: the effective samples behind the loss of each terminal.
    fn model(&self, round: u64) -> Result<Vec<u8>, RoundError> {
        let effective = self.effective().into_iter().map(|samples| samples as f32).collect();
        let context = Context { round, terminal: TerminalId(0), cut: 1 };
        Ok(LayerWeights { context, first: 1, layers: vec![effective] }.to_bytes())
    }
}

/// The effective samples in a message of [`LawLearner`].
pub(super) fn read_effective(law: &Law, message: &[u8]) -> Result<Vec<f64>, CellError> {
    let unread = |reason: String| CellError::Model(reason);
    let message = LayerWeights::from_bytes(message, &[law.n_terminals()])
        .map_err(|error| unread(error.to_string()))?;
    let effective = message.layers.into_iter().next().unwrap_or_default();
    match effective.iter().find(|samples| !(samples.is_finite() && **samples >= 0.0)) {
        Some(samples) => Err(unread(format!("{samples} effective samples, expected 0 or more"))),
        None => Ok(effective.into_iter().map(f64::from).collect()),
    }
}
