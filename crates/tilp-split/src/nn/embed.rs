//! From the observation to tokens: every group of features gets its own linear map.

use super::lanes::sum;
use super::matrix::{Matrix, Store, product};

/// Shape of the embedding. Token `t` reads the features `start..start + length` of its group.
///
/// Parameters: for every token its weight (width x length), then all biases (tokens x width);
/// the bias of a token is its learned position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Embedding {
    /// Start and length of the group of features of every token.
    pub groups: Vec<(usize, usize)>,
    /// Features of a token.
    pub width: usize,
}

impl Embedding {
    fn n_weights(&self) -> usize {
        self.groups.iter().map(|(_, length)| length * self.width).sum()
    }

    /// Number of parameters.
    pub fn n_parameters(&self) -> usize {
        self.n_weights() + self.groups.len() * self.width
    }

    /// The named tensors in the order of storage, each with its shape.
    pub fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        let weights = self.groups.iter().enumerate();
        let mut named: Vec<_> = weights
            .map(|(token, (_, length))| (format!("token{token}.weight"), vec![self.width, *length]))
            .collect();
        named.push(("bias".to_string(), vec![self.groups.len(), self.width]));
        named
    }

    /// Multiply-adds of the matrix products for one sample.
    pub fn n_products(&self) -> usize {
        self.n_weights()
    }

    /// From `features x samples` to `width x tokens x samples`.
    pub fn forward(&self, parameters: &[f32], x: &[f32], y: &mut [f32], samples: usize) {
        let columns = self.groups.len() * samples;
        let (mut weights, biases) = parameters.split_at(self.n_weights());
        for (token, (start, length)) in self.groups.iter().enumerate() {
            let (weight, rest) = weights.split_at(self.width * length);
            weights = rest;
            let bias = &biases[token * self.width..(token + 1) * self.width];
            for (row, offset) in y.chunks_exact_mut(columns).zip(bias) {
                row[token * samples..(token + 1) * samples].fill(*offset);
            }
            let left = Matrix::new(weight, self.width, *length);
            let right = Matrix::new(&x[start * samples..], *length, samples);
            product(&mut y[token * samples..], columns, left, right, Store::Add);
        }
    }

    /// The gradient of the parameters. Nothing flows back into the observation.
    pub fn backward(&self, x: &[f32], dy: &[f32], gradient: &mut [f32], samples: usize) {
        let columns = self.groups.len() * samples;
        let (mut weights, biases) = gradient.split_at_mut(self.n_weights());
        for (token, (start, length)) in self.groups.iter().enumerate() {
            let (weight, rest) = weights.split_at_mut(self.width * length);
            weights = rest;
            let left = Matrix::strided(&dy[token * samples..], self.width, samples, columns);
            let right = Matrix::new(&x[start * samples..], *length, samples);
            product(weight, *length, left, right.transposed(), Store::Set);
            let bias = &mut biases[token * self.width..(token + 1) * self.width];
            for (offset, row) in bias.iter_mut().zip(dy.chunks_exact(columns)) {
                *offset = sum(&row[token * samples..(token + 1) * samples]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::check::{Check, values};

    #[test]
    fn an_embedding_agrees_with_finite_differences() {
        let layer = Embedding { groups: vec![(0, 2), (2, 3), (1, 1)], width: 4 };
        let x = values(5 * 3, 32);
        Check { parameters: values(layer.n_parameters(), 31), input: vec![], outputs: 36 }.run(
            |w, _, y| layer.forward(w, &x, y, 3),
            |_, _, dy, g, _| layer.backward(&x, dy, g, 3),
        );
    }
}
