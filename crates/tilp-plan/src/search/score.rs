//! Parts of a score.

use super::sample::ChoiceLanes;
use crate::lanes::{LANES, Lanes};

/// Sixteen candidates to be scored.
#[derive(Clone, Copy)]
pub struct Candidates<'a> {
    /// Index of the group in the population. Only one caller at a time has it, so scratch memory
    /// can be kept per group.
    pub group: usize,
    /// Terminals of a step.
    pub n_terminals: usize,
    /// Step by step, terminal by terminal.
    pub cells: &'a [ChoiceLanes],
}

impl<'a> Candidates<'a> {
    /// The actions of one step, terminal by terminal.
    pub fn step(&self, step: usize) -> &'a [ChoiceLanes] {
        &self.cells[step * self.n_terminals..(step + 1) * self.n_terminals]
    }

    /// Length of the sequences.
    pub fn n_steps(&self) -> usize {
        self.cells.len() / self.n_terminals
    }
}

/// Scores a group; higher is better and NaN is worst. Called from several threads.
pub type Score<'a> = dyn Fn(Candidates<'_>, &mut Lanes) + Sync + 'a;

/// The predicted return of sixteen candidates from their rewards step by step and the value of
/// their last states.
///
/// $$ \widehat J = \sum_{k=0}^{K-1} \gamma^k \widehat r[t+k] + \gamma^K V(\widehat s[t+K]) $$
///
/// Eq. `method-J`
pub fn planned_return(rewards: &[Lanes], terminal_values: &Lanes, discount: f32) -> Lanes {
    // From the end: J = r + discount * (the rest).
    let mut total = *terminal_values;
    for reward in rewards.iter().rev() {
        for lane in 0..LANES {
            total[lane] = discount.mul_add(total[lane], reward[lane]);
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eq_method_j_discounts_rewards_and_the_terminal_value() {
        let rewards = [[1.0; LANES], [2.0; LANES], [-4.0; LANES]];
        let mut values = [16.0; LANES];
        values[3] = 0.0;
        let found = planned_return(&rewards, &values, 0.5);
        assert_eq!(found[0], 1.0 + 1.0 - 1.0 + 2.0);
        assert_eq!(found[3], 1.0 + 1.0 - 1.0);
        assert_eq!(planned_return(&[], &values, 0.5), values);
    }
}
