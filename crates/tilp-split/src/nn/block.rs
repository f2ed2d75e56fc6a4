//! A pre-norm transformer block: attention and a two-layer perceptron, both residual.

use super::adapter::{Gradients, LinearGradient};
use super::attention::Attention;
use super::linear::{Linear, relu_backward};
use super::norm::{LayerNorm, Seen};

/// Shape of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Heads, width and tokens.
    pub attention: Attention,
    /// Width of the hidden layer of the perceptron.
    pub hidden: usize,
}

/// Results of the forward pass of a block for the backward pass.
#[derive(Clone, Debug, Default)]
pub struct BlockCache {
    statistics_1: Vec<f32>,
    normal_1: Vec<f32>,
    projected: Vec<f32>,
    shares: Vec<f32>,
    mixed: Vec<f32>,
    middle: Vec<f32>,
    statistics_2: Vec<f32>,
    normal_2: Vec<f32>,
    hidden: Vec<f32>,
}

/// Buffers of a backward pass that no later pass needs; one serves all layers.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    pub(crate) wide: Vec<f32>,
    pub(crate) narrow: Vec<f32>,
    pub(crate) sums: Vec<f32>,
    /// Rank times columns, for adapters.
    pub(crate) low: Vec<f32>,
}

/// The parameters of a block, part by part in the order of storage.
struct Parts<N, L> {
    norm_1: N,
    projection: L,
    output: L,
    norm_2: N,
    up: L,
    down: L,
}

/// Destination of the gradient of a block.
pub struct BlockGradients<'a>(Parts<&'a mut [f32], LinearGradient<'a>>);

impl Block {
    fn norm(self) -> LayerNorm {
        LayerNorm { width: self.attention.width }
    }

    fn projection(self) -> Linear {
        Linear { inputs: self.attention.width, outputs: 3 * self.attention.width }
    }

    fn output(self) -> Linear {
        Linear { inputs: self.attention.width, outputs: self.attention.width }
    }

    fn up(self) -> Linear {
        Linear { inputs: self.attention.width, outputs: self.hidden }
    }

    fn down(self) -> Linear {
        Linear { inputs: self.hidden, outputs: self.attention.width }
    }

    /// The named tensors of the block in the order of storage, each with its shape.
    pub fn tensors(self) -> Vec<(&'static str, Vec<usize>)> {
        let (width, hidden) = (self.attention.width, self.hidden);
        vec![
            ("norm1.gain", vec![width]),
            ("norm1.offset", vec![width]),
            ("project.weight", vec![3 * width, width]),
            ("project.bias", vec![3 * width]),
            ("output.weight", vec![width, width]),
            ("output.bias", vec![width]),
            ("norm2.gain", vec![width]),
            ("norm2.offset", vec![width]),
            ("up.weight", vec![hidden, width]),
            ("up.bias", vec![hidden]),
            ("down.weight", vec![width, hidden]),
            ("down.bias", vec![width]),
        ]
    }

    /// Number of parameters.
    pub fn n_parameters(self) -> usize {
        2 * self.norm().n_parameters()
            + [self.projection(), self.output(), self.up(), self.down()]
                .iter()
                .map(|linear| linear.n_parameters())
                .sum::<usize>()
    }

    /// Multiply-adds of the matrix products for one sample.
    pub fn n_products(self) -> usize {
        let token = [self.projection(), self.output(), self.up(), self.down()]
            .iter()
            .map(|linear| linear.n_products())
            .sum::<usize>();
        token * self.attention.tokens + self.attention.n_products()
    }

    /// Elements of the cache for a batch.
    pub fn n_cached(self, samples: usize) -> usize {
        let columns = self.attention.tokens * samples;
        (7 * self.attention.width + self.hidden + 4) * columns + self.attention.n_shares(samples)
    }

    fn split(self, whole: &[f32]) -> Parts<&[f32], &[f32]> {
        let (norm_1, rest) = whole.split_at(self.norm().n_parameters());
        let (projection, rest) = rest.split_at(self.projection().n_parameters());
        let (output, rest) = rest.split_at(self.output().n_parameters());
        let (norm_2, rest) = rest.split_at(self.norm().n_parameters());
        let (up, down) = rest.split_at(self.up().n_parameters());
        Parts { norm_1, projection, output, norm_2, up, down }
    }

    /// Takes the places of the gradient of this block.
    pub fn gradients<'a>(self, gradient: &mut Gradients<'a>) -> BlockGradients<'a> {
        BlockGradients(Parts {
            norm_1: gradient.norm(self.norm()),
            projection: gradient.linear(self.projection()),
            output: gradient.linear(self.output()),
            norm_2: gradient.norm(self.norm()),
            up: gradient.linear(self.up()),
            down: gradient.linear(self.down()),
        })
    }

    /// `y = m + down(relu(up(norm_2(m))))` with `m = x + output(attention(project(norm_1(x))))`.
    pub fn forward(self, parameters: &[f32], x: &[f32], y: &mut [f32], cache: &mut BlockCache) {
        let parts = self.split(parameters);
        cache.fit(self, x.len() / (self.attention.width * self.attention.tokens));
        let (norm, c) = (self.norm(), cache);
        norm.forward(parts.norm_1, x, &mut c.normal_1, &mut c.statistics_1);
        self.projection().forward(parts.projection, &c.normal_1, &mut c.projected);
        self.attention.forward(&c.projected, &mut c.mixed, &mut c.shares);
        self.output().forward_residual(parts.output, &c.mixed, x, &mut c.middle);
        norm.forward(parts.norm_2, &c.middle, &mut c.normal_2, &mut c.statistics_2);
        self.up().forward_relu(parts.up, &c.normal_2, &mut c.hidden);
        self.down().forward_residual(parts.down, &c.hidden, &c.middle, y);
    }

    /// Turns `flow` from the gradient of the output into the gradient of the input, in place.
    pub fn backward(
        self,
        parameters: &[f32],
        x: &[f32],
        c: &BlockCache,
        gradient: BlockGradients<'_>,
        flow: &mut [f32],
        scratch: &mut Scratch,
    ) {
        let (parts, BlockGradients(g)) = (self.split(parameters), gradient);
        let Scratch { wide, narrow, sums, low } = scratch;
        narrow.resize(flow.len(), 0.0);
        wide.resize(c.hidden.len(), 0.0);
        g.down.write(&c.hidden, flow, low);
        self.down().backward_input(parts.down, flow, wide);
        relu_backward(&c.hidden, wide);
        g.up.write(&c.normal_2, wide, low);
        self.up().backward_input(parts.up, wide, narrow);
        let norm = self.norm();
        let seen = Seen { x: &c.middle, statistics: &c.statistics_2 };
        norm.backward(parts.norm_2, seen, narrow, g.norm_2, flow, sums);
        g.output.write(&c.mixed, flow, low);
        self.output().backward_input(parts.output, flow, narrow);
        wide.resize(c.projected.len(), 0.0);
        sums.resize(c.statistics_1.len(), 0.0);
        self.attention.backward(&c.projected, &c.shares, narrow, wide, sums);
        g.projection.write(&c.normal_1, wide, low);
        self.projection().backward_input(parts.projection, wide, narrow);
        let seen = Seen { x, statistics: &c.statistics_1 };
        norm.backward(parts.norm_1, seen, narrow, g.norm_1, flow, sums);
    }
}

impl BlockCache {
    fn fit(&mut self, shape: Block, samples: usize) {
        let width = shape.attention.width;
        let columns = shape.attention.tokens * samples;
        self.statistics_1.resize(2 * columns, 0.0);
        self.statistics_2.resize(2 * columns, 0.0);
        self.normal_1.resize(width * columns, 0.0);
        self.normal_2.resize(width * columns, 0.0);
        self.projected.resize(3 * width * columns, 0.0);
        self.shares.resize(shape.attention.n_shares(samples), 0.0);
        self.mixed.resize(width * columns, 0.0);
        self.middle.resize(width * columns, 0.0);
        self.hidden.resize(shape.hidden * columns, 0.0);
    }

    /// Elements really held.
    pub fn len(&self) -> usize {
        [
            &self.statistics_1,
            &self.normal_1,
            &self.projected,
            &self.shares,
            &self.mixed,
            &self.middle,
            &self.statistics_2,
            &self.normal_2,
            &self.hidden,
        ]
        .iter()
        .map(|buffer| buffer.len())
        .sum()
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::check::{Check, values};
    use std::cell::RefCell;

    #[test]
    fn a_block_agrees_with_finite_differences() {
        let block = Block { attention: Attention { width: 4, heads: 2, tokens: 3 }, hidden: 8 };
        let cache = RefCell::new(BlockCache::default());
        let mut parameters = values(block.n_parameters(), 11);
        // Hidden units wide open or firmly shut: a difference across the kink of a ReLU says nothing.
        let n_down = block.down().n_parameters();
        let end = parameters.len() - n_down;
        for (unit, bias) in parameters[end - 8..end].iter_mut().enumerate() {
            *bias += if unit % 3 == 0 { -6.0 } else { 6.0 };
        }
        Check { parameters, input: values(4 * 3 * 2, 12), outputs: 24 }.run(
            |w, x, y| block.forward(w, x, y, &mut cache.borrow_mut()),
            |w, x, dy, g, dx| {
                dx.copy_from_slice(dy);
                let g = block.gradients(&mut Gradients::all(g));
                block.backward(w, x, &cache.borrow(), g, dx, &mut Scratch::default());
            },
        );
    }

    #[test]
    fn the_named_tensors_of_a_block_cover_its_parameters() {
        let block = Block { attention: Attention { width: 32, heads: 4, tokens: 12 }, hidden: 64 };
        let named: usize =
            block.tensors().iter().map(|(_, shape)| shape.iter().product::<usize>()).sum();
        assert_eq!(named, block.n_parameters());
    }
}
