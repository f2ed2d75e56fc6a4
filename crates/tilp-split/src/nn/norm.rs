//! Layer normalisation over the features of every column.

use super::lanes::{dot, sum, vectorised};

const EPSILON: f32 = 1e-5;

/// Shape of a layer normalisation. Parameters: the gains, then the offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayerNorm {
    /// Features of a column.
    pub width: usize,
}

/// The input of a forward pass and what that pass left in its statistics.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// The input.
    pub x: &'a [f32],
    /// Mean and 1/deviation of every column.
    pub statistics: &'a [f32],
}

impl LayerNorm {
    /// Number of parameters.
    pub fn n_parameters(self) -> usize {
        2 * self.width
    }

    /// `y = gain (x - mean) / deviation + offset`; `statistics` keeps mean and 1/deviation of
    /// every column for the backward pass.
    pub fn forward(self, parameters: &[f32], x: &[f32], y: &mut [f32], statistics: &mut [f32]) {
        let columns = x.len() / self.width;
        let (mean, scale) = statistics.split_at_mut(columns);
        measure(x, self.width, mean, scale);
        apply(parameters, x, mean, scale, y);
    }

    /// Writes the gradient of the parameters and *adds* the gradient of the input to `dx`, which
    /// holds what flows past the layer on the residual path. `dy` is used up.
    pub fn backward(
        self,
        parameters: &[f32],
        seen: Seen<'_>,
        dy: &mut [f32],
        gradient: &mut [f32],
        dx: &mut [f32],
        sums: &mut Vec<f32>,
    ) {
        let Seen { x, statistics } = seen;
        let gains = &parameters[..self.width];
        sums.clear();
        sums.resize(3 * x.len() / self.width, 0.0);
        backward_parameters(gains, x, statistics, dy, gradient, sums);
        backward_input(self.width, x, statistics, dy, dx, sums);
    }
}

vectorised! {
    /// Mean and 1/deviation of every column.
    fn measure(x: &[f32], width: usize, mean: &mut [f32], scale: &mut [f32]) {
        let columns = mean.len();
        let share = 1.0 / width as f32;
        mean.fill(0.0);
        scale.fill(0.0);
        for row in x.chunks_exact(columns) {
            for (value, x) in mean.iter_mut().zip(row) {
                *value += x;
            }
        }
        for value in mean.iter_mut() {
            *value *= share;
        }
        for row in x.chunks_exact(columns) {
            for ((value, x), mean) in scale.iter_mut().zip(row).zip(&*mean) {
                *value += (x - mean) * (x - mean);
            }
        }
        for value in scale {
            *value = 1.0 / (*value * share + EPSILON).sqrt();
        }
    }
}

vectorised! {
    fn apply(parameters: &[f32], x: &[f32], mean: &[f32], scale: &[f32], y: &mut [f32]) {
        let columns = mean.len();
        let (gains, offsets) = parameters.split_at(parameters.len() / 2);
        let rows = y.chunks_exact_mut(columns).zip(x.chunks_exact(columns));
        for ((out, row), (gain, offset)) in rows.zip(gains.iter().zip(offsets)) {
            for (((out, x), mean), scale) in out.iter_mut().zip(row).zip(mean).zip(scale) {
                *out = (x - mean) * scale * gain + offset;
            }
        }
    }
}

vectorised! {
    /// The gradients of gains and offsets; multiplies `dy` by the gains and leaves in `sums`, for
    /// every column, the sum of that and its product with the normalised input.
    fn backward_parameters(
        gains: &[f32],
        x: &[f32],
        statistics: &[f32],
        dy: &mut [f32],
        gradient: &mut [f32],
        sums: &mut [f32],
    ) {
        let columns = sums.len() / 3;
        let (mean, scale) = statistics.split_at(columns);
        let (d_gains, d_offsets) = gradient.split_at_mut(gains.len());
        let (plain, rest) = sums.split_at_mut(columns);
        let (weighted, normal) = rest.split_at_mut(columns);
        let rows = x.chunks_exact(columns).zip(dy.chunks_exact_mut(columns));
        for (row, (x, dy)) in rows.enumerate() {
            normalise(x, mean, scale, normal);
            d_gains[row] = dot(dy, normal);
            d_offsets[row] = sum(dy);
            let gain = gains[row];
            for (((dy, normal), plain), weighted) in
                dy.iter_mut().zip(&*normal).zip(&mut *plain).zip(&mut *weighted)
            {
                *dy *= gain;
                *plain += *dy;
                *weighted += *dy * normal;
            }
        }
    }
}

vectorised! {
    fn backward_input(
        width: usize,
        x: &[f32],
        statistics: &[f32],
        dy: &[f32],
        dx: &mut [f32],
        sums: &mut [f32],
    ) {
        let columns = sums.len() / 3;
        let share = 1.0 / width as f32;
        let (mean, scale) = statistics.split_at(columns);
        let (plain, rest) = sums.split_at_mut(columns);
        let (weighted, normal) = rest.split_at_mut(columns);
        let rows = x.chunks_exact(columns).zip(dy.chunks_exact(columns));
        for ((x, dy), dx) in rows.zip(dx.chunks_exact_mut(columns)) {
            normalise(x, mean, scale, normal);
            let columns = dx.iter_mut().zip(dy).zip(&*plain).zip(&*weighted).zip(&*normal).zip(scale);
            for (((((dx, dy), plain), weighted), normal), scale) in columns {
                *dx += scale * (dy - share * (plain + normal * weighted));
            }
        }
    }
}

#[inline(always)]
fn normalise(x: &[f32], mean: &[f32], scale: &[f32], normal: &mut [f32]) {
    for (((normal, x), mean), scale) in normal.iter_mut().zip(x).zip(mean).zip(scale) {
        *normal = (x - mean) * scale;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::check::{Check, values};
    use std::cell::RefCell;

    #[test]
    fn a_layer_normalisation_agrees_with_finite_differences() {
        let layer = LayerNorm { width: 6 };
        let statistics = RefCell::new(vec![0.0; 2 * 5]);
        Check { parameters: values(12, 3), input: values(30, 4), outputs: 30 }.run(
            |w, x, y| layer.forward(w, x, y, &mut statistics.borrow_mut()),
            |w, x, dy, g, dx| {
                let (mut dy, mut sums) = (dy.to_vec(), Vec::new());
                let seen = Seen { x, statistics: &statistics.borrow() };
                layer.backward(w, seen, &mut dy, g, dx, &mut sums);
            },
        );
    }

    #[test]
    fn a_normalised_column_has_mean_zero_and_variance_one() {
        let (mut y, mut statistics) = (vec![0.0; 64 * 3], vec![0.0; 6]);
        let mut parameters = vec![1.0; 128];
        parameters[64..].fill(0.0);
        let x: Vec<f32> = values(192, 9).iter().map(|v| 5.0 * v + 2.0).collect();
        LayerNorm { width: 64 }.forward(&parameters, &x, &mut y, &mut statistics);
        for column in 0..3 {
            let values: Vec<f32> = (0..64).map(|row| y[row * 3 + column]).collect();
            let mean = values.iter().sum::<f32>() / 64.0;
            let variance = values.iter().map(|v| v * v).sum::<f32>() / 64.0;
            assert!(mean.abs() < 1e-5 && (variance - 1.0).abs() < 1e-4);
        }
    }
}
