//! The distribution of candidates.

use super::sample::{Choice, REALS};
use crate::lanes::{squash, unsquash};

/// Largest number of categories of an action.
pub const MAX_CATEGORIES: usize = crate::lanes::TABLE;

/// The law of one terminal's action at one step; the parts are independent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Law {
    /// Means of the numbers before squashing.
    pub mean: [f32; REALS],
    /// Standard deviations of the numbers before squashing.
    pub deviation: [f32; REALS],
    /// Probability of every category, zero beyond the last.
    pub category: [f32; MAX_CATEGORIES],
    /// Probability of the flag.
    pub flag: f32,
}

impl Law {
    /// Centred, one standard deviation, every category and both flags alike.
    pub fn vague(n_categories: usize) -> Self {
        let mut category = [0.0; MAX_CATEGORIES];
        category[..n_categories].fill(1.0 / n_categories as f32);
        Self { mean: [0.0; REALS], deviation: [1.0; REALS], category, flag: 0.5 }
    }

    /// Sets the categories from unnormalised log-probabilities.
    pub fn set_logits(&mut self, logits: &[f32]) {
        let most = logits.iter().fold(f32::NEG_INFINITY, |most, logit| most.max(*logit));
        self.category = [0.0; MAX_CATEGORIES];
        for (share, logit) in self.category.iter_mut().zip(logits) {
            *share = (logit - most).exp();
        }
        let total: f32 = self.category.iter().sum();
        self.category.iter_mut().for_each(|share| *share /= total);
    }

    /// The most likely action.
    pub fn mode(&self) -> Choice {
        let mut category = 0;
        for (index, share) in self.category.iter().enumerate() {
            if *share > self.category[category] {
                category = index;
            }
        }
        Choice { reals: self.mean.map(squash), category, flag: self.flag >= 0.5 }
    }
}

/// Independent laws for every step of a sequence and every terminal.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// Terminals of a step.
    pub n_terminals: usize,
    /// Categories of an action.
    pub n_categories: usize,
    /// Step by step, terminal by terminal.
    pub laws: Vec<Law>,
}

impl Distribution {
    /// [`Law::vague`] everywhere.
    pub fn vague(n_steps: usize, n_terminals: usize, n_categories: usize) -> Self {
        assert!((1..=MAX_CATEGORIES).contains(&n_categories), "1 to {MAX_CATEGORIES} categories");
        let laws = vec![Law::vague(n_categories); n_steps * n_terminals];
        Self { n_terminals, n_categories, laws }
    }

    /// The same laws at every step: an actor's output for the present state.
    pub fn repeated(laws: &[Law], n_steps: usize, n_categories: usize) -> Self {
        Self { n_terminals: laws.len(), n_categories, laws: laws.repeat(n_steps) }
    }

    /// Length of the sequences.
    pub fn n_steps(&self) -> usize {
        self.laws.len() / self.n_terminals
    }

    /// The most likely sequence.
    pub fn mode(&self) -> Vec<Choice> {
        self.laws.iter().map(Law::mode).collect()
    }
}

/// The mean before squashing for which this is the most likely number.
pub fn mean_for(u: f32) -> f32 {
    unsquash(u)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_follows_means_logits_and_probability() {
        let mut law = Law::vague(5);
        law.mean = [mean_for(0.25), 0.0, 9.0];
        law.set_logits(&[0.0, 0.0, 2.0, -1.0, 0.0]);
        law.flag = 0.4;
        let mode = law.mode();
        assert!((mode.reals[0] - 0.25).abs() < 1e-5 && mode.reals[2] > 0.999);
        assert_eq!((mode.category, mode.flag), (2, false));
        assert!((law.category.iter().sum::<f32>() - 1.0).abs() < 1e-6);
    }
}
