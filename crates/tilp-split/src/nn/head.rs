//! From tokens to actions: normalise all features of a sample, then one linear map.

use super::adapter::Gradients;
use super::block::Scratch;
use super::linear::Linear;
use super::norm::{LayerNorm, Seen};

/// Shape of the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Features of a sample: width times tokens.
    pub inputs: usize,
    /// Components of an action.
    pub outputs: usize,
}

/// Results of the forward pass of the head for the backward pass.
#[derive(Clone, Debug, Default)]
pub struct HeadCache {
    normal: Vec<f32>,
    statistics: Vec<f32>,
}

impl Head {
    fn norm(self) -> LayerNorm {
        LayerNorm { width: self.inputs }
    }

    fn linear(self) -> Linear {
        Linear { inputs: self.inputs, outputs: self.outputs }
    }

    /// The named tensors in the order of storage, each with its shape.
    pub fn tensors(self) -> Vec<(&'static str, Vec<usize>)> {
        vec![
            ("norm.gain", vec![self.inputs]),
            ("norm.offset", vec![self.inputs]),
            ("weight", vec![self.outputs, self.inputs]),
            ("bias", vec![self.outputs]),
        ]
    }

    /// Number of parameters.
    pub fn n_parameters(self) -> usize {
        self.norm().n_parameters() + self.linear().n_parameters()
    }

    /// Multiply-adds of the matrix product for one sample.
    pub fn n_products(self) -> usize {
        self.linear().n_products()
    }

    /// Elements of the cache for a batch.
    pub fn n_cached(self, samples: usize) -> usize {
        (self.inputs + 2) * samples
    }

    /// From `inputs x samples` to `outputs x samples`.
    pub fn forward(self, parameters: &[f32], x: &[f32], y: &mut [f32], cache: &mut HeadCache) {
        let (norm, linear) = parameters.split_at(self.norm().n_parameters());
        cache.normal.resize(x.len(), 0.0);
        cache.statistics.resize(2 * x.len() / self.inputs, 0.0);
        self.norm().forward(norm, x, &mut cache.normal, &mut cache.statistics);
        self.linear().forward(linear, &cache.normal, y);
    }

    /// Turns `flow` from the gradient of the actions into that of the input.
    pub fn backward(
        self,
        parameters: &[f32],
        x: &[f32],
        cache: &HeadCache,
        gradient: &mut Gradients<'_>,
        flow: &mut Vec<f32>,
        scratch: &mut Scratch,
    ) {
        let (norm, linear) = parameters.split_at(self.norm().n_parameters());
        let (norm_gradient, linear_gradient) =
            (gradient.norm(self.norm()), gradient.linear(self.linear()));
        let Scratch { narrow, sums, low, .. } = scratch;
        narrow.resize(x.len(), 0.0);
        linear_gradient.write(&cache.normal, flow, low);
        self.linear().backward_input(linear, flow, narrow);
        flow.clear();
        flow.resize(x.len(), 0.0);
        let seen = Seen { x, statistics: &cache.statistics };
        self.norm().backward(norm, seen, narrow, norm_gradient, flow, sums);
    }
}

impl HeadCache {
    /// Elements really held.
    pub fn len(&self) -> usize {
        self.normal.len() + self.statistics.len()
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
    fn the_head_agrees_with_finite_differences() {
        let head = Head { inputs: 6, outputs: 2 };
        let cache = RefCell::new(HeadCache::default());
        Check { parameters: values(head.n_parameters(), 41), input: values(18, 42), outputs: 6 }
            .run(
                |w, x, y| head.forward(w, x, y, &mut cache.borrow_mut()),
                |w, x, dy, g, dx| {
                    let (mut flow, mut scratch) = (dy.to_vec(), Scratch::default());
                    let mut g = Gradients::all(g);
                    head.backward(w, x, &cache.borrow(), &mut g, &mut flow, &mut scratch);
                    dx.copy_from_slice(&flow);
                },
            );
    }
}
