//! Low-rank adapters: a linear layer with frozen weight `W` computes with `W + scale B A`.
//!
//! `A` (rank x inputs) and `B` (outputs x rank) are trained, the bias is not. Forward and backward
//! run on the merged weight, so they are those of the deployed layer bit for bit. Only the gradient
//! of the parameters is another one, and no gradient of a whole weight is ever computed.

use super::linear::Linear;
use super::matrix::{Matrix, Store, product};
use super::norm::LayerNorm;
use super::optimiser::scale as scale_all;

/// Rank and scale of the adapters of a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lora {
    /// Rows of `A` and columns of `B`.
    pub rank: usize,
    /// Factor of `B A`.
    pub scale: f32,
}

/// The adapter of one linear layer. Parameters: `A`, then `B`, both row by row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adapter {
    /// The layer.
    pub linear: Linear,
    /// Rank and scale.
    pub lora: Lora,
}

impl Adapter {
    fn n_down(self) -> usize {
        self.lora.rank * self.linear.inputs
    }

    /// Number of parameters.
    pub fn n_parameters(self) -> usize {
        self.n_down() + self.lora.rank * self.linear.outputs
    }

    /// Multiply-adds of the gradient of its parameters, for one column.
    pub fn n_gradient_products(self) -> usize {
        2 * self.n_parameters()
    }

    /// Multiply-adds of a merge.
    pub fn n_merge_products(self) -> usize {
        self.lora.rank * self.linear.n_products()
    }

    /// `(A, B)`.
    fn matrices(self, parameters: &[f32]) -> (Matrix<'_>, Matrix<'_>) {
        let (down, up) = parameters.split_at(self.n_down());
        let Linear { inputs, outputs } = self.linear;
        (Matrix::new(down, self.lora.rank, inputs), Matrix::new(up, outputs, self.lora.rank))
    }

    /// Adds `scale B A` to a weight.
    pub fn merge(self, parameters: &[f32], weight: &mut [f32], scratch: &mut Vec<f32>) {
        let (down, up) = self.matrices(parameters);
        let inputs = self.linear.inputs;
        scratch.resize(self.linear.n_products(), 0.0);
        product(scratch, inputs, up, down, Store::Set);
        for (value, change) in weight.iter_mut().zip(scratch.iter()) {
            *value += self.lora.scale * change;
        }
    }

    /// The gradient of `A` and `B`, given the gradient `dy` of the layer's output.
    fn backward_parameters(
        self,
        parameters: &[f32],
        x: &[f32],
        dy: &[f32],
        gradient: &mut [f32],
        scratch: &mut Vec<f32>,
    ) {
        let Linear { inputs, outputs } = self.linear;
        let rank = self.lora.rank;
        let columns = dy.len() / outputs;
        let (down, up) = self.matrices(parameters);
        let (x, dy) = (Matrix::new(x, inputs, columns), Matrix::new(dy, outputs, columns));
        let (down_gradient, up_gradient) = gradient.split_at_mut(self.n_down());
        scratch.resize(rank * columns, 0.0);
        product(scratch, columns, down, x, Store::Set);
        let low = Matrix::new(scratch, rank, columns);
        product(up_gradient, rank, dy, low.transposed(), Store::Set);
        product(scratch, columns, up.transposed(), dy, Store::Set);
        let low = Matrix::new(scratch, rank, columns);
        product(down_gradient, inputs, low, x.transposed(), Store::Set);
        scale_all(gradient, self.lora.scale);
    }
}

/// Destination of the gradient of a layer: to all its parameters, or to those of its adapters. Its
/// parts are taken from the front, in the order of storage.
pub struct Gradients<'a>(Target<'a>);

enum Target<'a> {
    All(&'a mut [f32]),
    Adapters { lora: Lora, parameters: &'a [f32], gradient: &'a mut [f32], unused: &'a mut [f32] },
}

impl<'a> Gradients<'a> {
    /// The gradient of all parameters.
    pub fn all(gradient: &'a mut [f32]) -> Self {
        Self(Target::All(gradient))
    }

    /// The gradient of these parameters of adapters. `unused` takes the gradients of frozen
    /// normalisations, which are not used.
    pub fn adapters(
        lora: Lora,
        parameters: &'a [f32],
        gradient: &'a mut [f32],
        unused: &'a mut [f32],
    ) -> Self {
        Self(Target::Adapters { lora, parameters, gradient, unused })
    }

    /// The part of the next normalisation.
    pub(super) fn norm(&mut self, norm: LayerNorm) -> &'a mut [f32] {
        match &mut self.0 {
            Target::All(rest) | Target::Adapters { unused: rest, .. } => {
                take(rest, norm.n_parameters())
            }
        }
    }

    /// The part of the next linear layer.
    pub(super) fn linear(&mut self, linear: Linear) -> LinearGradient<'a> {
        match &mut self.0 {
            Target::All(rest) => LinearGradient::All(linear, take(rest, linear.n_parameters())),
            Target::Adapters { lora, parameters, gradient, .. } => {
                let adapter = Adapter { linear, lora: *lora };
                let (own, rest) = parameters.split_at(adapter.n_parameters());
                *parameters = rest;
                let gradient = take(gradient, adapter.n_parameters());
                LinearGradient::Adapter { adapter, parameters: own, gradient }
            }
        }
    }

    /// All parameters of the layer, if the gradient of all is wanted.
    pub fn into_all(self) -> Option<&'a mut [f32]> {
        match self.0 {
            Target::All(rest) => Some(rest),
            Target::Adapters { .. } => None,
        }
    }
}

fn take<'a>(rest: &mut &'a mut [f32], count: usize) -> &'a mut [f32] {
    let (taken, left) = std::mem::take(rest).split_at_mut(count);
    *rest = left;
    taken
}

/// Destination of the gradient of a linear layer.
pub(super) enum LinearGradient<'a> {
    All(Linear, &'a mut [f32]),
    Adapter { adapter: Adapter, parameters: &'a [f32], gradient: &'a mut [f32] },
}

impl LinearGradient<'_> {
    /// Writes the gradient, given the input and the gradient `dy` of the output.
    pub(super) fn write(self, x: &[f32], dy: &[f32], scratch: &mut Vec<f32>) {
        match self {
            LinearGradient::All(linear, gradient) => linear.backward_parameters(x, dy, gradient),
            LinearGradient::Adapter { adapter, parameters, gradient } => {
                adapter.backward_parameters(parameters, x, dy, gradient, scratch);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::check::{Check, values};

    const ADAPTER: Adapter =
        Adapter { linear: Linear { inputs: 5, outputs: 4 }, lora: Lora { rank: 2, scale: 0.7 } };

    /// The layer with its merged weight.
    fn merged(base: &[f32], parameters: &[f32]) -> Vec<f32> {
        let mut merged = base.to_vec();
        ADAPTER.merge(parameters, &mut merged[..20], &mut Vec::new());
        merged
    }

    #[test]
    fn an_adapter_agrees_with_finite_differences() {
        let linear = ADAPTER.linear;
        let base = values(linear.n_parameters(), 1);
        Check {
            parameters: values(ADAPTER.n_parameters(), 2),
            input: values(5 * 3, 3),
            outputs: 4 * 3,
        }
        .run(
            |w, x, y| linear.forward(&merged(&base, w), x, y),
            |w, x, dy, g, dx| {
                let mut parts = Gradients::adapters(ADAPTER.lora, w, g, &mut []);
                parts.linear(linear).write(x, dy, &mut Vec::new());
                linear.backward_input(&merged(&base, w), dy, dx);
            },
        );
    }

    #[test]
    fn the_merged_layer_is_the_base_plus_the_way_through_the_low_rank() {
        let (base, w, x) = (values(24, 4), values(ADAPTER.n_parameters(), 5), values(5 * 3, 6));
        let mut whole = vec![0.0; 12];
        ADAPTER.linear.forward(&merged(&base, &w), &x, &mut whole);
        let (a, b) = w.split_at(10);
        for column in 0..3 {
            let x: Vec<f64> = (0..5).map(|i| f64::from(x[3 * i + column])).collect();
            let times = |matrix: &[f32], row: usize, vector: &[f64]| -> f64 {
                let width = vector.len();
                let row = &matrix[row * width..(row + 1) * width];
                row.iter().zip(vector).map(|(w, x)| f64::from(*w) * x).sum()
            };
            let low: Vec<f64> = (0..2).map(|row| times(a, row, &x)).collect();
            for row in 0..4 {
                let expected = times(&base[..20], row, &x)
                    + f64::from(base[20 + row])
                    + 0.7f32 as f64 * times(b, row, &low);
                let found = f64::from(whole[3 * row + column]);
                assert!((found - expected).abs() < 1e-6, "{found}, expected {expected}");
            }
        }
    }

    #[test]
    fn an_adapter_whose_second_matrix_is_zero_changes_nothing() {
        let base = values(24, 4);
        let mut w = values(ADAPTER.n_parameters(), 5);
        w[10..].fill(0.0);
        assert_eq!(merged(&base, &w), base);
    }
}
