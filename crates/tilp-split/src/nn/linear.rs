//! The affine map `y = W x + b` on every column.

use super::lanes::{sum, vectorised};
use super::matrix::{Matrix, Store, product};

/// Shape of a linear layer. Parameters: the weight (outputs x inputs, row by row), then the bias.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Linear {
    /// Features of a column that comes in.
    pub inputs: usize,
    /// Features of a column that goes out.
    pub outputs: usize,
}

impl Linear {
    /// Number of parameters.
    pub fn n_parameters(self) -> usize {
        self.outputs * self.inputs + self.outputs
    }

    /// Multiply-adds for one column: elements of the weight.
    pub fn n_products(self) -> usize {
        self.outputs * self.inputs
    }

    /// `y = W x + b`.
    pub fn forward(self, parameters: &[f32], x: &[f32], y: &mut [f32]) {
        let columns = y.len() / self.outputs;
        let (weight, bias) = parameters.split_at(self.n_products());
        for (row, offset) in y.chunks_exact_mut(columns).zip(bias) {
            row.fill(*offset);
        }
        self.add_product(weight, x, y);
    }

    /// `y = r + W x + b`, the residual connection.
    pub fn forward_residual(self, parameters: &[f32], x: &[f32], r: &[f32], y: &mut [f32]) {
        let columns = y.len() / self.outputs;
        let (weight, bias) = parameters.split_at(self.n_products());
        add_bias(r, bias, y, columns);
        self.add_product(weight, x, y);
    }

    /// `y = max(0, W x + b)`.
    pub fn forward_relu(self, parameters: &[f32], x: &[f32], y: &mut [f32]) {
        self.forward(parameters, x, y);
        relu(y);
    }

    fn add_product(self, weight: &[f32], x: &[f32], y: &mut [f32]) {
        let columns = y.len() / self.outputs;
        let (left, right) =
            (Matrix::new(weight, self.outputs, self.inputs), Matrix::new(x, self.inputs, columns));
        product(y, columns, left, right, Store::Add);
    }

    /// The gradient of the parameters, given the gradient `dy` of the output.
    pub fn backward_parameters(self, x: &[f32], dy: &[f32], gradient: &mut [f32]) {
        let columns = dy.len() / self.outputs;
        let (weight, bias) = gradient.split_at_mut(self.n_products());
        let (left, right) =
            (Matrix::new(dy, self.outputs, columns), Matrix::new(x, self.inputs, columns));
        product(weight, self.inputs, left, right.transposed(), Store::Set);
        row_sums(dy, columns, bias);
    }

    /// `dx = W' dy`, the gradient of the input.
    pub fn backward_input(self, parameters: &[f32], dy: &[f32], dx: &mut [f32]) {
        let columns = dy.len() / self.outputs;
        let (left, right) = (
            Matrix::new(parameters, self.outputs, self.inputs),
            Matrix::new(dy, self.outputs, columns),
        );
        product(dx, columns, left.transposed(), right, Store::Set);
    }
}

vectorised! {
    fn add_bias(r: &[f32], bias: &[f32], y: &mut [f32], columns: usize) {
        let rows = y.chunks_exact_mut(columns).zip(r.chunks_exact(columns));
        for ((row, residual), offset) in rows.zip(bias) {
            for (value, kept) in row.iter_mut().zip(residual) {
                *value = kept + offset;
            }
        }
    }
}

vectorised! {
    fn relu(y: &mut [f32]) {
        for value in y {
            *value = if *value > 0.0 { *value } else { 0.0 };
        }
    }
}

vectorised! {
    fn row_sums(rows: &[f32], columns: usize, sums: &mut [f32]) {
        for (total, row) in sums.iter_mut().zip(rows.chunks_exact(columns)) {
            *total = sum(row);
        }
    }
}

vectorised! {
    /// Stops the gradient where the output of a ReLU was zero.
    pub fn relu_backward(output: &[f32], gradient: &mut [f32]) {
        for (value, kept) in gradient.iter_mut().zip(output) {
            *value = if *kept > 0.0 { *value } else { 0.0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::check::{Check, values};

    #[test]
    fn a_linear_layer_agrees_with_finite_differences() {
        let layer = Linear { inputs: 5, outputs: 3 };
        Check { parameters: values(layer.n_parameters(), 1), input: values(5 * 4, 2), outputs: 12 }
            .run(
                |w, x, y| layer.forward(w, x, y),
                |w, x, dy, g, dx| {
                    layer.backward_parameters(x, dy, g);
                    layer.backward_input(w, dy, dx);
                },
            );
    }

    #[test]
    fn a_relu_passes_the_gradient_only_where_it_was_open() {
        let mut gradient = [1.0, 2.0, 3.0];
        relu_backward(&[0.5, 0.0, 2.0], &mut gradient);
        assert_eq!(gradient, [1.0, 0.0, 3.0]);
    }
}
