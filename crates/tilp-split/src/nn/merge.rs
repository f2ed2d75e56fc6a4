//! Merging adjacent tokens in pairs: normalise the two side by side, then map back to one width.

use super::adapter::Gradients;
use super::block::Scratch;
use super::linear::Linear;
use super::norm::{LayerNorm, Seen};

/// Shape of a merge of `tokens` tokens (an even number) into half as many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Merge {
    /// Features of a token, before and after.
    pub width: usize,
    /// Tokens before.
    pub tokens: usize,
}

/// Results of the forward pass of a merge for the backward pass.
#[derive(Clone, Debug, Default)]
pub struct MergeCache {
    pairs: Vec<f32>,
    normal: Vec<f32>,
    statistics: Vec<f32>,
}

impl Merge {
    fn norm(self) -> LayerNorm {
        LayerNorm { width: 2 * self.width }
    }

    fn linear(self) -> Linear {
        Linear { inputs: 2 * self.width, outputs: self.width }
    }

    /// The named tensors in the order of storage, each with its shape.
    pub fn tensors(self) -> Vec<(&'static str, Vec<usize>)> {
        vec![
            ("merge.norm.gain", vec![2 * self.width]),
            ("merge.norm.offset", vec![2 * self.width]),
            ("merge.weight", vec![self.width, 2 * self.width]),
            ("merge.bias", vec![self.width]),
        ]
    }

    /// Number of parameters.
    pub fn n_parameters(self) -> usize {
        self.norm().n_parameters() + self.linear().n_parameters()
    }

    /// Multiply-adds of the matrix product for one sample.
    pub fn n_products(self) -> usize {
        self.linear().n_products() * self.tokens / 2
    }

    /// Elements of the cache for a batch.
    pub fn n_cached(self, samples: usize) -> usize {
        (2 * self.width * self.tokens + self.tokens) * samples
    }

    /// From `width x tokens x samples` to `width x tokens / 2 x samples`.
    pub fn forward(self, parameters: &[f32], x: &[f32], y: &mut [f32], cache: &mut MergeCache) {
        let (norm, linear) = parameters.split_at(self.norm().n_parameters());
        let samples = x.len() / (self.width * self.tokens);
        cache.pairs.resize(x.len(), 0.0);
        cache.normal.resize(x.len(), 0.0);
        cache.statistics.resize(self.tokens * samples, 0.0);
        self.pair(samples, |token, pair| {
            cache.pairs[pair..pair + samples].copy_from_slice(&x[token..token + samples]);
        });
        self.norm().forward(norm, &cache.pairs, &mut cache.normal, &mut cache.statistics);
        self.linear().forward(linear, &cache.normal, y);
    }

    /// Turns `flow` (half as many tokens) into the gradient of the input, which it becomes.
    pub fn backward(
        self,
        parameters: &[f32],
        cache: &MergeCache,
        gradient: &mut Gradients<'_>,
        flow: &mut Vec<f32>,
        scratch: &mut Scratch,
    ) {
        let (norm, linear) = parameters.split_at(self.norm().n_parameters());
        let (norm_gradient, linear_gradient) =
            (gradient.norm(self.norm()), gradient.linear(self.linear()));
        let Scratch { wide, narrow, sums, low } = scratch;
        let samples = cache.pairs.len() / (self.width * self.tokens);
        narrow.resize(cache.pairs.len(), 0.0);
        wide.clear();
        wide.resize(cache.pairs.len(), 0.0);
        linear_gradient.write(&cache.normal, flow, low);
        self.linear().backward_input(linear, flow, narrow);
        let seen = Seen { x: &cache.pairs, statistics: &cache.statistics };
        self.norm().backward(norm, seen, narrow, norm_gradient, wide, sums);
        flow.resize(cache.pairs.len(), 0.0);
        self.pair(samples, |token, pair| {
            flow[token..token + samples].copy_from_slice(&wide[pair..pair + samples]);
        });
    }

    /// Calls `visit` with the place of every run of samples before and after pairing.
    fn pair(self, samples: usize, mut visit: impl FnMut(usize, usize)) {
        let half = self.tokens / 2;
        for c in 0..self.width {
            for token in 0..self.tokens {
                let row = (token % 2) * self.width + c;
                visit((c * self.tokens + token) * samples, (row * half + token / 2) * samples);
            }
        }
    }
}

impl MergeCache {
    /// Elements really held.
    pub fn len(&self) -> usize {
        self.pairs.len() + self.normal.len() + self.statistics.len()
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
    fn a_merge_agrees_with_finite_differences() {
        let merge = Merge { width: 3, tokens: 4 };
        let cache = RefCell::new(MergeCache::default());
        Check { parameters: values(merge.n_parameters(), 21), input: values(24, 22), outputs: 12 }
            .run(
                |w, x, y| merge.forward(w, x, y, &mut cache.borrow_mut()),
                |w, _, dy, g, dx| {
                    let mut flow = dy.to_vec();
                    let (mut g, mut scratch) = (Gradients::all(g), Scratch::default());
                    merge.backward(w, &cache.borrow(), &mut g, &mut flow, &mut scratch);
                    dx.copy_from_slice(&flow);
                },
            );
    }
}
