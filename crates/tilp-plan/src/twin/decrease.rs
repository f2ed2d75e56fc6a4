//! The one-round loss decrease, of every task group and of all terminals, as the training sub-twin
//! predicts it for a candidate.

use super::normal::Z_90;
use super::state::{Scratch, Sureness};
use super::{Interval, SwingBy, Twin, TwinState};
use crate::round::{Observation, TerminalDecision, TerminalView};

/// By how much a round lowers the mean loss of some terminals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decrease {
    /// Mean loss before the round.
    pub before: f64,
    /// By how much it falls; negative if it rises.
    pub fall: f64,
    /// The fall as a share of the loss before, with its 90 % interval.
    pub share: Interval,
}

/// The decrease in total, per task group and per terminal.
#[derive(Clone, Debug, PartialEq)]
pub struct Decreases {
    /// Over all terminals.
    pub total: Decrease,
    /// Per task group; none for a group without terminals.
    pub groups: Vec<Option<Decrease>>,
    /// Per terminal, as a share of its loss before.
    pub terminals: Vec<f64>,
}

impl Twin {
    /// Effect of a round with these actions on the losses of the deployed policy.
    pub fn decreases(&self, seen: &Observation, actions: &[TerminalDecision]) -> Decreases {
        self.decreases_from(self.state(seen), seen, actions)
    }

    /// The same with the state before the present round.
    pub fn decreases_from(
        &self,
        mut state: TwinState,
        seen: &Observation,
        actions: &[TerminalDecision],
    ) -> Decreases {
        let mut scratch = self.scratch();
        let before = state.log_loss.clone();
        self.step(&mut state, actions, Sureness::Likely, &mut scratch);
        let (tasks, step) = (&self.nominal.tasks, self.step_size(seen));
        let of = |counts: &dyn Fn(usize) -> bool| {
            let members: Vec<usize> = (0..tasks.len()).filter(|n| counts(*n)).collect();
            self.decrease(&members, [&before, &state.log_loss], &scratch, step)
        };
        let groups = (0..self.nominal.n_tasks).map(|group| of(&|n| tasks[n] == group)).collect();
        let total = of(&|_| true).expect("a cell has terminals");
        let pairs = before.iter().zip(&state.log_loss);
        let terminals = pairs.map(|(before, after)| 1.0 - (after - before).exp()).collect();
        Decreases { total, groups, terminals }
    }

    fn decrease(
        &self,
        members: &[usize],
        [before, after]: [&[f64]; 2],
        scratch: &Scratch,
        step: f64,
    ) -> Option<Decrease> {
        if members.is_empty() {
            return None;
        }
        let sum = |log_losses: &[f64]| members.iter().map(|&n| log_losses[n].exp()).sum::<f64>();
        let (n, total) = (members.len() as f64, sum(before));
        let fall = total - sum(after);
        let weighed: Vec<(usize, f64)> =
            members.iter().map(|&n| (n, before[n].exp() / total)).collect();
        let reach = Z_90 * self.training.fall_sd(scratch.tally(), &weighed, step);
        let mid = fall / total;
        let share = Interval { low: mid - reach, mid, high: mid + reach };
        Some(Decrease { before: total / n, fall: fall / n, share })
    }

    /// First-order effect of one step of the front layers on a loss: learning rate times squared gradient
    /// norm, averaged over terminals with a recent report; or the learning rate alone, as a share of
    /// its start.
    fn step_size(&self, seen: &Observation) -> f64 {
        if self.options.training.swing_by == SwingBy::Rate {
            return self.rate_share(seen);
        }
        // Gradients shrink during training, so reports of long ago are not used.
        let most = self.options.training.lately;
        let lately = |one: &&TerminalView| one.rounds_since_scheduled.is_some_and(|n| n <= most);
        let norms = seen.terminals.iter().filter(lately).filter_map(|one| one.gradient_norm);
        let (sum, n) = norms.fold((0.0, 0.0), |(sum, n), norm| (sum + norm * norm, n + 1.0));
        let square = if n > 0.0 { sum / n } else { 1.0 };
        f64::from(seen.rates(&self.nominal.rates).terminal) * square
    }
}
