//! The other way to answer: one gradient for all.
//!
//! The server averages the gradients at the cut and sends every terminal the mean instead of its
//! own. Exact for one terminal or equal minibatches; otherwise the terminals' gradients are
//! biased, since a sample of one is paired with a sample of another. That is the published rule,
//! so nothing is repaired here.

use rayon::prelude::*;

use super::engine::{Copies, Engine, Job, Outcome, Participant, RoundError};
use super::model::{SplitModel, Weights};
use super::server::{Backward, backpropagate};
use super::terminal::Terminal;
use crate::nn::optimiser::descend;
use crate::units::Bytes;

/// What the first half of the round leaves for the second.
struct Half {
    done: Backward,
    flow: Vec<f32>,
    outcome: Outcome,
}

impl<M: SplitModel> Engine<M> {
    /// One round in which all terminals get the mean of the gradients at the cut, which they must
    /// share. A terminal with a smaller minibatch counts in the samples it has. The message counts
    /// for every terminal in `down`; it is the same for all, so a caller may bill it once.
    pub fn broadcast_round(
        &mut self,
        round: u64,
        participants: &[Participant],
    ) -> Result<Vec<Outcome>, RoundError> {
        let chosen = self.chosen(participants)?;
        self.check_common(participants)?;
        self.seats.resize_with(self.seats.len().max(participants.len()), Weights::default);
        let Self { model, settings, server, terminals, seats, pool, edges, local } = self;
        let mut tasks: Vec<(&mut Terminal, Participant)> = terminals
            .iter_mut()
            .zip(chosen)
            .filter_map(|(terminal, participant)| Some((terminal, participant?)))
            .collect();
        let (copies, local) = (Copies::default(), *local);
        let job = Job { model: &**model, settings, server, edges, copies, local, pool, round };
        let halves: Vec<Half> = tasks
            .par_iter_mut()
            .zip(&mut *seats)
            .map(|((terminal, participant), seat)| job.ask(terminal, *participant, seat))
            .collect::<Result<_, _>>()?;
        let mean = mean_flow(&halves);
        let done: Vec<Outcome> = tasks
            .par_iter_mut()
            .zip(&halves)
            .map(|((terminal, participant), half)| job.tell(terminal, *participant, half, &mean))
            .collect::<Result<_, _>>()?;
        let seats: Vec<_> = tasks
            .iter()
            .zip(&done)
            .zip(&*seats)
            .map(|(((_, one), outcome), seat)| (one.cut, outcome.samples, seat))
            .collect();
        server.update(settings, &seats);
        let place = |terminal: usize| done.partition_point(|outcome| outcome.terminal < terminal);
        Ok(participants.iter().map(|one| done[place(one.terminal)]).collect())
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

/// Sample by sample the mean over those who have it.
fn mean_flow(halves: &[Half]) -> Vec<f32> {
    let longest = halves.iter().map(|half| half.flow.len()).max().unwrap_or(0);
    let mut mean = vec![0.0; longest];
    let mut done = 0;
    // From one length of minibatch to the next the number of those who have the sample is fixed.
    let mut lengths: Vec<usize> = halves.iter().map(|half| half.flow.len()).collect();
    lengths.sort_unstable();
    lengths.dedup();
    for length in lengths {
        let having: Vec<&Half> = halves.iter().filter(|half| half.flow.len() >= length).collect();
        for half in &having {
            descend(&mut mean[done..length], &half.flow[done..length], -1.0 / having.len() as f32);
        }
        done = length;
    }
    mean
}

impl<M: SplitModel> Job<'_, M> {
    /// Forward on both sides, backward down to the cut.
    fn ask(
        &self,
        terminal: &mut Terminal,
        Participant { cut, q, .. }: Participant,
        seat: &mut Weights,
    ) -> Result<Half, RoundError> {
        if seat.n_layers() == 0 {
            *seat = Weights::zeros(self.model);
        }
        let Self { model, settings, server, round, .. } = *self;
        let sync_down = self.download(terminal, cut, cut)?;
        self.with_work(|(front, back)| {
            let bytes = terminal.forward(model, settings, round, cut, q, front);
            let done = backpropagate(&server.weights, model, settings, &bytes, back, seat)?;
            let outcome = Outcome {
                terminal: terminal.index as usize,
                samples: done.samples,
                loss: done.loss,
                client_gradient_norm: 0.0,
                server_gradient_norm: seat.norm(cut + 1..=model.n_layers()),
                up: Bytes(bytes.len() as u64),
                down: Bytes(0),
                sync_down,
            };
            Ok(Half { done, flow: back.values.clone(), outcome })
        })
    }

    /// Backward from the common gradient. The forward pass is run again, which gives the same
    /// bits, so that no terminal's activations have to be kept meanwhile.
    fn tell(
        &self,
        terminal: &mut Terminal,
        Participant { cut, q, .. }: Participant,
        half: &Half,
        mean: &[f32],
    ) -> Result<Outcome, RoundError> {
        let Self { model, settings, server, round, .. } = *self;
        let reply = server.reply(settings, &half.done, &mean[..half.flow.len()]);
        self.with_work(|(front, _)| {
            terminal.forward(model, settings, round, cut, q, front);
            let client_gradient_norm = terminal.backward(model, settings, &reply, front)?;
            let down = Bytes(reply.len() as u64);
            Ok(Outcome { client_gradient_norm, down, ..half.outcome })
        })
    }
}
