//! The numbers that define a policy.

/// The shape of a policy, its loss and its admissible cuts.
#[derive(Clone, Debug, PartialEq)]
pub struct Architecture {
    /// Start and length of the group of observation features behind every token.
    pub tokens: Vec<(usize, usize)>,
    /// Features of a token.
    pub width: usize,
    /// Attention heads.
    pub heads: usize,
    /// Transformer blocks.
    pub blocks: usize,
    /// Hidden width of the perceptron in a block, as a multiple of the width.
    pub hidden_ratio: usize,
    /// Blocks (from 1) after which adjacent tokens are merged in pairs.
    pub merge_after: Vec<usize>,
    /// Components of an action.
    pub actions: usize,
    /// Weight of every component of the action in the loss.
    pub loss_weights: Vec<f32>,
    /// Admissible cuts: a terminal runs layers 1 to the cut.
    pub cuts: Vec<usize>,
}

/// Error in an architecture.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} = {value}, expected {expected}")]
pub struct ArchitectureError {
    /// The field at fault.
    pub field: &'static str,
    /// Its value.
    pub value: String,
    /// Expected value.
    pub expected: String,
}

impl Architecture {
    /// The default policy over these groups of features: six blocks of width 32 with four heads,
    /// tokens merged after the second and the fourth, cuts 2 to 6.
    pub fn pyramid(tokens: Vec<(usize, usize)>, actions: usize) -> Self {
        Self {
            tokens,
            width: 32,
            heads: 4,
            blocks: 6,
            hidden_ratio: 2,
            merge_after: vec![2, 4],
            actions,
            loss_weights: vec![1.0; actions],
            cuts: vec![2, 3, 4, 5, 6],
        }
    }

    /// Number of layers: embedding, blocks, head.
    pub fn n_layers(&self) -> usize {
        self.blocks + 2
    }

    /// Features of an observation.
    pub fn observation_width(&self) -> usize {
        self.tokens.iter().map(|(start, length)| start + length).max().unwrap_or(0)
    }

    /// Names the first field that makes the architecture impossible.
    pub fn check(&self) -> Result<(), ArchitectureError> {
        require(!self.tokens.is_empty(), "tokens", &self.tokens, "at least one group")?;
        let full = self.tokens.iter().all(|(_, length)| *length > 0);
        require(full, "tokens", &self.tokens, "groups of at least one feature")?;
        require(self.width > 0, "width", self.width, "at least 1")?;
        let divides = self.heads > 0 && self.width.is_multiple_of(self.heads);
        require(divides, "heads", self.heads, format!("a divisor of the width {}", self.width))?;
        require(self.blocks > 0, "blocks", self.blocks, "at least 1")?;
        require(self.hidden_ratio > 0, "hidden_ratio", self.hidden_ratio, "at least 1")?;
        require(self.actions > 0, "actions", self.actions, "at least 1")?;
        self.check_limits()?;
        self.check_loss_weights()?;
        self.check_merges()?;
        let last = self.blocks + 1;
        let inside = self.cuts.iter().all(|cut| (1..=last).contains(cut));
        let rising = self.cuts.windows(2).all(|pair| pair[0] < pair[1]);
        let expected = format!("rising layers from 1 to {last}");
        require(inside && rising && !self.cuts.is_empty(), "cuts", &self.cuts, expected)
    }

    /// An architecture may come from an untrusted file: no product of sizes may overflow.
    fn check_limits(&self) -> Result<(), ArchitectureError> {
        let limit = |field, value: usize, most: usize| {
            require(value <= most, field, value, format!("at most {most}"))
        };
        limit("tokens", self.tokens.len(), 4096)?;
        for (start, length) in &self.tokens {
            limit("tokens", start.saturating_add(*length), 1 << 20)?;
        }
        limit("width", self.width, 8192)?;
        limit("blocks", self.blocks, 1024)?;
        limit("hidden_ratio", self.hidden_ratio, 64)?;
        limit("actions", self.actions, 4096)
    }

    fn check_loss_weights(&self) -> Result<(), ArchitectureError> {
        let weights = &self.loss_weights;
        let sound = weights.iter().all(|weight| weight.is_finite() && *weight >= 0.0);
        let some = weights.iter().any(|weight| *weight > 0.0);
        let fits = weights.len() == self.actions;
        let expected = format!("{} weights, none negative, not all zero", self.actions);
        require(sound && some && fits, "loss_weights", weights, expected)
    }

    fn check_merges(&self) -> Result<(), ArchitectureError> {
        let merges = &self.merge_after;
        let inside = merges.iter().all(|block| (1..=self.blocks).contains(block));
        let rising = merges.windows(2).all(|pair| pair[0] < pair[1]);
        let even = self.tokens.len().is_multiple_of(1 << merges.len().min(32));
        let expected =
            format!("rising blocks from 1 to {}, each halving the tokens evenly", self.blocks);
        require(inside && rising && even, "merge_after", merges, expected)
    }
}

fn require(
    holds: bool,
    field: &'static str,
    value: impl std::fmt::Debug,
    expected: impl Into<String>,
) -> Result<(), ArchitectureError> {
    if holds {
        return Ok(());
    }
    Err(ArchitectureError { field, value: format!("{value:?}"), expected: expected.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_impossible_architecture_names_the_field() {
        let sound = Architecture::pyramid(vec![(0, 3); 12], 4);
        assert_eq!(sound.check(), Ok(()));
        let broken = Architecture { heads: 5, ..sound.clone() };
        let said = broken.check().unwrap_err().to_string();
        assert_eq!(said, "heads = 5, expected a divisor of the width 32");
        let broken = Architecture { merge_after: vec![1, 2, 3], ..sound.clone() };
        assert_eq!(broken.check().unwrap_err().field, "merge_after");
        let broken = Architecture { tokens: vec![(usize::MAX, 1)], ..sound.clone() };
        assert_eq!(broken.check().unwrap_err().field, "tokens");
        let broken = Architecture { cuts: vec![8], ..sound.clone() };
        assert_eq!(broken.check().unwrap_err().field, "cuts");
        let broken = Architecture { loss_weights: vec![1.0; 3], ..sound };
        assert_eq!(broken.check().unwrap_err().field, "loss_weights");
    }
}
