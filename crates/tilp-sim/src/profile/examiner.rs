//! Episodes and losses under a law.

use rand::RngExt;

use super::learner::read_effective;
use super::{Law, LawLearner};
use crate::rng::Seed;
use crate::round::{CellError, Evaluator, SuccessCount, TerminalId, TerminalSuccess};
use crate::tasks::EpisodeSet;
use crate::world::{Examiner, Schedule};

/// Measures success and losses under a law. An episode has a number between 0 and 1, drawn from its
/// set, terminal and index; it succeeds if the law's probability is above it. Counts are therefore
/// binomial, sets share no episode, and two models are compared on the same episodes.
#[derive(Clone, Debug, PartialEq)]
pub struct LawExaminer {
    /// The law.
    pub law: Law,
    /// Names of the tasks.
    pub tasks: &'static [&'static str],
    /// When success is measured, and on how many episodes.
    pub schedule: Schedule,
    /// Seed of the episodes.
    pub seed: Seed,
}

impl LawExaminer {
    /// Success on episodes `first` and following of a set.
    fn counts(
        &self,
        set: EpisodeSet,
        first: u64,
        per_terminal: usize,
        terminals: &[TerminalId],
        model: &[u8],
    ) -> Result<Vec<TerminalSuccess>, CellError> {
        let effective = read_effective(&self.law, model)?;
        let one = |&id: &TerminalId| {
            let n = id.0 as usize;
            let probability = self.law.success(n, self.law.loss(n, effective[n]));
            let succeeds = |index: &u64| {
                let episode = set.episode(self.seed, n as u64, *index);
                episode.seed.rng().random::<f64>() < probability
            };
            let episodes = per_terminal as u64;
            let successes = (first..first + episodes).filter(succeeds).count() as u64;
            let count = SuccessCount { successes, episodes };
            TerminalSuccess { id, task: self.law.task(n), count }
        };
        Ok(terminals.iter().map(one).collect())
    }
}

impl Examiner<LawLearner> for LawExaminer {
    fn tasks(&self) -> &'static [&'static str] {
        self.tasks
    }

    fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    fn success(
        &self,
        _round: u64,
        set: EpisodeSet,
        first: u64,
        per_terminal: usize,
        terminals: &[TerminalId],
        model: &[u8],
    ) -> Result<Vec<TerminalSuccess>, CellError> {
        self.counts(set, first, per_terminal, terminals, model)
    }

    /// The law's own losses, for which no samples are needed.
    fn losses(
        &self,
        _learner: &LawLearner,
        _samples: usize,
        terminals: &[TerminalId],
        model: &[u8],
    ) -> Result<Vec<f64>, CellError> {
        let effective = read_effective(&self.law, model)?;
        let loss = |id: &TerminalId| self.law.loss(id.0 as usize, effective[id.0 as usize]);
        Ok(terminals.iter().map(loss).collect())
    }

    fn model_file(&self, _model: &[u8]) -> Result<Option<Vec<u8>>, CellError> {
        Ok(None)
    }
}

/// Runs calibration episodes under a law.
pub struct LawEvaluator(pub LawExaminer);

impl Evaluator for LawEvaluator {
    fn is_due(&self, round: u64) -> bool {
        round.is_multiple_of(self.0.schedule.calibrate_every)
    }

    /// Every calibration has separate episodes.
    fn evaluate(
        &mut self,
        round: u64,
        terminals: &[TerminalId],
        model: &[u8],
    ) -> Result<Vec<TerminalSuccess>, CellError> {
        let schedule = &self.0.schedule;
        let episodes = schedule.calibration_episodes;
        let first = round / schedule.calibrate_every * episodes as u64;
        self.0.counts(EpisodeSet::Calibration, first, episodes, terminals, model)
    }
}
