//! Linear layers with ReLU between them.

use rand::RngExt as _;

use crate::nn::linear::{Linear, relu_backward};
use crate::rng::Seed;

/// Shape of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mlp {
    layers: Vec<Linear>,
    /// Whether the last layer has a ReLU too.
    relu_last: bool,
}

/// Results of the forward pass for the backward pass: the output of every layer.
#[derive(Clone, Debug, Default)]
pub struct Trace(Vec<Vec<f32>>);

impl Trace {
    /// The output of the network.
    pub fn output(&self) -> &[f32] {
        self.0.last().map_or(&[], |output| output)
    }
}

impl Mlp {
    /// A network through these numbers of features.
    pub fn new(sizes: &[usize], relu_last: bool) -> Self {
        let layer = |pair: &[usize]| Linear { inputs: pair[0], outputs: pair[1] };
        Self { layers: sizes.windows(2).map(layer).collect(), relu_last }
    }

    /// Number of parameters.
    pub fn n_parameters(&self) -> usize {
        self.layers.iter().map(|layer| layer.n_parameters()).sum()
    }

    /// Uniform within one over the root of the inputs; the last layer `last` times smaller.
    pub fn initial(&self, seed: Seed, last: f32) -> Vec<f32> {
        let mut rng = seed.rng();
        let mut parameters = Vec::with_capacity(self.n_parameters());
        for (index, layer) in self.layers.iter().enumerate() {
            let scale = if index + 1 == self.layers.len() { last } else { 1.0 };
            let bound = scale / (layer.inputs as f32).sqrt();
            parameters.extend((0..layer.n_parameters()).map(|_| rng.random_range(-bound..=bound)));
        }
        parameters
    }

    /// Runs the network on `columns` columns.
    pub fn forward(&self, parameters: &[f32], x: &[f32], columns: usize, trace: &mut Trace) {
        let outputs = &mut trace.0;
        outputs.resize_with(self.layers.len(), Vec::new);
        let mut rest = parameters;
        for (index, layer) in self.layers.iter().enumerate() {
            let (own, after) = rest.split_at(layer.n_parameters());
            let (before, here) = outputs.split_at_mut(index);
            let input = before.last().map_or(x, |output| output);
            here[0].resize(layer.outputs * columns, 0.0);
            if index + 1 < self.layers.len() || self.relu_last {
                layer.forward_relu(own, input, &mut here[0]);
            } else {
                layer.forward(own, input, &mut here[0]);
            }
            rest = after;
        }
    }

    /// Turns `flow` from the gradient of the output into that of the input, and overwrites the
    /// gradient of the parameters if it is wanted.
    pub fn backward(
        &self,
        parameters: &[f32],
        x: &[f32],
        trace: &Trace,
        flow: &mut Vec<f32>,
        mut gradient: Option<&mut [f32]>,
    ) {
        let mut end = self.n_parameters();
        let mut below = Vec::new();
        for (index, layer) in self.layers.iter().enumerate().rev() {
            let columns = flow.len() / layer.outputs;
            let range = end - layer.n_parameters()..end;
            let input = if index == 0 { x } else { &trace.0[index - 1] };
            if index + 1 < self.layers.len() || self.relu_last {
                relu_backward(&trace.0[index], flow);
            }
            if let Some(gradient) = gradient.as_deref_mut() {
                layer.backward_parameters(input, flow, &mut gradient[range.clone()]);
            }
            below.clear();
            below.resize(layer.inputs * columns, 0.0);
            layer.backward_input(&parameters[range.clone()], flow, &mut below);
            std::mem::swap(flow, &mut below);
            end = range.start;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::check::{Check, values};
    use std::cell::RefCell;

    #[test]
    fn a_network_agrees_with_finite_differences() {
        for relu_last in [false, true] {
            let mlp = Mlp::new(&[5, 7, 6, 3], relu_last);
            let trace = RefCell::new(Trace::default());
            // Far from the kinks: positive biases keep most units open.
            let mut parameters = values(mlp.n_parameters(), 3);
            parameters.iter_mut().for_each(|value| *value = 0.4 * *value + 0.35);
            let input = values(5 * 4, 2).iter().map(|value| value.abs()).collect();
            Check { parameters, input, outputs: 12 }.run(
                |w, x, y| {
                    mlp.forward(w, x, 4, &mut trace.borrow_mut());
                    y.copy_from_slice(trace.borrow().output());
                },
                |w, x, dy, g, dx| {
                    let mut flow = dy.to_vec();
                    mlp.backward(w, x, &trace.borrow(), &mut flow, Some(g));
                    dx.copy_from_slice(&flow);
                },
            );
        }
    }
}
