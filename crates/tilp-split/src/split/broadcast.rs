//! One gradient for all terminals.
//!
//! The server averages the gradients at the cut and sends the mean to every terminal. This is
//! exact for one terminal or for equal minibatches. Otherwise the terminals' gradients are biased,
//! since a sample of one terminal is paired with a sample of another. The published rule is like
//! that, so nothing is corrected here.

use rayon::prelude::*;

use super::engine::{Copies, Engine, Outcome, Participant, Progress, RoundError, Task, locked};
use super::link::{LinkError, TerminalLink};
use super::model::SplitModel;
use super::rule::Local;
use super::server::{Backward, backpropagate, reply};
use super::session::Session;
use crate::nn::optimiser::descend;
use crate::units::Bytes;

/// Results of the forward half of the round for the backward half.
struct Half {
    done: Backward,
    flow: Vec<f32>,
    outcome: Outcome,
}

impl<M: SplitModel, L: TerminalLink> Engine<M, L> {
    /// One round in which all terminals get the mean of the gradients at the cut, which they must
    /// share. A terminal with a smaller minibatch counts in the samples it has. The message counts
    /// for every terminal in `down`; it is the same for all, so a caller may bill it once.
    pub fn broadcast_round(
        &mut self,
        round: u64,
        participants: &[Participant],
    ) -> Result<Vec<Outcome>, RoundError> {
        self.check(participants)?;
        self.check_common(participants)?;
        let copies = Copies::default();
        let (session, mut tasks) = self.session(round, participants, copies, Local::Steps(1));
        let halves: Vec<Result<Half, LinkError>> =
            tasks.par_iter_mut().map(|task| session.forward(task)).collect();
        let mean = mean_flow(&halves.iter().flatten().collect::<Vec<_>>());
        let results: Vec<_> = tasks
            .into_par_iter()
            .zip(halves)
            .map(|(mut task, half)| {
                let result = half.and_then(|half| session.backward(&mut task, &half, &mean));
                if result.is_err() {
                    task.state.lose(session.settings.state_at_aggregation);
                }
                (task.participant.terminal, result)
            })
            .collect();
        self.step(participants, copies, &results);
        Progress::new(participants, results).finish()
    }

    fn check_common(&self, participants: &[Participant]) -> Result<(), RoundError> {
        let Some(first) = participants.first() else { return Ok(()) };
        let last = self.model.n_layers();
        for one in participants {
            if one.cut != first.cut || one.cut == last {
                let expected = format!("one cut below {last} for all");
                let (terminal, value) = (one.terminal, one.cut as f64);
                return Err(RoundError::Participant { terminal, field: "cut", value, expected });
            }
        }
        Ok(())
    }
}

/// The mean over the terminals, sample by sample. A terminal counts in the samples that it has.
fn mean_flow(halves: &[&Half]) -> Vec<f32> {
    let longest = halves.iter().map(|half| half.flow.len()).max().unwrap_or(0);
    let mut mean = vec![0.0; longest];
    let mut done = 0;
    // Between two lengths of minibatches the number of terminals that have the sample is fixed.
    let mut lengths: Vec<usize> = halves.iter().map(|half| half.flow.len()).collect();
    lengths.sort_unstable();
    lengths.dedup();
    for length in lengths {
        let having: Vec<_> = halves.iter().filter(|half| half.flow.len() >= length).collect();
        for half in &having {
            descend(&mut mean[done..length], &half.flow[done..length], -1.0 / having.len() as f32);
        }
        done = length;
    }
    mean
}

impl<M: SplitModel> Session<'_, M> {
    /// Forward on both sides, backward down to the cut.
    fn forward<L: TerminalLink>(&self, task: &mut Task<'_, L>) -> Result<Half, LinkError> {
        let Task { participant, state, link, slot } = task;
        let Participant { terminal, cut, .. } = *participant;
        let mut link = locked(link);
        let placed = self.place(*participant, cut, state, &mut *link)?;
        let bytes = link.exchange(&self.order(*participant).to_bytes())?;
        let (context, weights) = (self.context(terminal, cut), &self.shared.weights);
        let Self { model, settings, .. } = *self;
        let (done, flow) = self.with_work(slot, |work, gradients| {
            backpropagate(context, weights, model, settings, &bytes, work, gradients)
                .map(|done| (done, work.values.clone()))
        })?;
        let outcome = Outcome {
            terminal,
            samples: done.samples,
            loss: done.loss,
            client_gradient_norm: 0.0,
            server_gradient_norm: slot.norm(cut + 1..=model.n_layers()),
            up: Bytes(bytes.len() as u64),
            down: Bytes(0),
            sync_down: placed.sync_down,
            moved: placed.moved,
        };
        Ok(Half { done, flow, outcome })
    }

    /// Backward on the terminal, from the common gradient.
    fn backward<L: TerminalLink>(
        &self,
        task: &mut Task<'_, L>,
        half: &Half,
        mean: &[f32],
    ) -> Result<Outcome, LinkError> {
        let reply = reply(self.settings, &half.done, &mean[..half.flow.len()]);
        let answer = locked(task.link).exchange(&reply)?;
        let done = self.done(half.done.context, half.done.samples, &answer)?;
        task.state.count(1..=task.participant.cut, half.done.samples);
        let (client_gradient_norm, down) = (done.gradient_norm, Bytes(reply.len() as u64));
        Ok(Outcome { client_gradient_norm, down, ..half.outcome })
    }
}
