//! The policy written once more, value by value in f64, counting its multiply-adds.

use super::*;

/// One sample, token by token, and how many multiply-adds its matrix products took.
struct Naive<'a> {
    policy: &'a Policy,
    weights: &'a Weights,
    products: usize,
}

type Tokens = Vec<Vec<f64>>;

impl Naive<'_> {
    fn tensor(&self, layer: usize, name: &str) -> Vec<f64> {
        let full = format!("layer{layer}.{name}");
        let tensors = self.policy.tensors(layer);
        let found = tensors.iter().find(|tensor| tensor.name == full).unwrap();
        let values = &self.weights.layer(layer)[found.offset..found.offset + found.n_elements()];
        values.iter().map(|value| f64::from(*value)).collect()
    }

    fn linear(&mut self, weight: &[f64], bias: &[f64], x: &[f64]) -> Vec<f64> {
        let mut y = bias.to_vec();
        for (row, y) in y.iter_mut().enumerate() {
            for (column, x) in x.iter().enumerate() {
                *y += weight[row * x_len(weight, bias) + column] * x;
                self.products += 1;
            }
        }
        y
    }

    fn named(&mut self, layer: usize, name: &str, x: &[f64]) -> Vec<f64> {
        let dot = if name.is_empty() { "" } else { "." };
        let weight = self.tensor(layer, &format!("{name}{dot}weight"));
        let bias = self.tensor(layer, &format!("{name}{dot}bias"));
        self.linear(&weight, &bias, x)
    }

    fn norm(&self, layer: usize, name: &str, x: &[f64]) -> Vec<f64> {
        let gain = self.tensor(layer, &format!("{name}.gain"));
        let offset = self.tensor(layer, &format!("{name}.offset"));
        let mean = x.iter().sum::<f64>() / x.len() as f64;
        let variance = x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / x.len() as f64;
        let scale = 1.0 / (variance + 1e-5).sqrt();
        (0..x.len()).map(|i| (x[i] - mean) * scale * gain[i] + offset[i]).collect()
    }

    fn attention(&mut self, x: &[Vec<f64>], width: usize, heads: usize) -> Tokens {
        let size = width / heads;
        let mut mixed = vec![vec![0.0; width]; x.len()];
        for head in 0..heads {
            for (token, mixed) in mixed.iter_mut().enumerate() {
                let mut shares = Vec::new();
                for other in x {
                    let pairs =
                        (head * size..(head + 1) * size).map(|c| (x[token][c], other[width + c]));
                    self.products += size;
                    let score: f64 = pairs.map(|(q, k)| q * k).sum();
                    shares.push((score / (size as f64).sqrt()).exp());
                }
                let total: f64 = shares.iter().sum();
                for (share, other) in shares.iter().zip(x) {
                    for c in head * size..(head + 1) * size {
                        mixed[c] += share / total * other[2 * width + c];
                        self.products += 1;
                    }
                }
            }
        }
        mixed
    }

    fn embed(&mut self, observation: &[f32]) -> Tokens {
        let width = self.policy.architecture().width;
        let bias = self.tensor(1, "bias");
        let groups = self.policy.architecture().tokens.clone();
        let tokens = groups.iter().enumerate().map(|(token, (start, length))| {
            let weight = self.tensor(1, &format!("token{token}.weight"));
            let x: Vec<f64> =
                observation[*start..start + length].iter().map(|v| f64::from(*v)).collect();
            self.linear(&weight, &bias[token * width..(token + 1) * width], &x)
        });
        tokens.collect()
    }

    fn block(&mut self, layer: usize, mut x: Tokens) -> Tokens {
        let (width, heads) = (self.policy.architecture().width, self.policy.architecture().heads);
        let projected: Tokens = x
            .iter()
            .map(|token| self.norm(layer, "norm1", token))
            .collect::<Vec<_>>()
            .iter()
            .map(|token| self.named(layer, "project", token))
            .collect();
        let mixed = self.attention(&projected, width, heads);
        for (token, mixed) in x.iter_mut().zip(&mixed) {
            add(token, &self.named(layer, "output", mixed));
            let normal = self.norm(layer, "norm2", token);
            let mut hidden = self.named(layer, "up", &normal);
            hidden.iter_mut().for_each(|value| *value = value.max(0.0));
            add(token, &self.named(layer, "down", &hidden));
        }
        if !self.policy.architecture().merge_after.contains(&(layer - 1)) {
            return x;
        }
        let pairs: Tokens = x.chunks(2).map(|pair| pair.concat()).collect();
        let normal: Tokens = pairs.iter().map(|p| self.norm(layer, "merge.norm", p)).collect();
        normal.iter().map(|pair| self.named(layer, "merge", pair)).collect()
    }
}

fn x_len(weight: &[f64], bias: &[f64]) -> usize {
    weight.len() / bias.len()
}

fn add(left: &mut [f64], right: &[f64]) {
    left.iter_mut().zip(right).for_each(|(a, b)| *a += b);
}

/// The activation after `last` layers (channel by channel, tokens inside) and the multiply-adds.
pub(super) fn naive(
    policy: &Policy,
    weights: &Weights,
    observation: &[f32],
    last: usize,
) -> (Vec<f64>, usize) {
    let mut naive = Naive { policy, weights, products: 0 };
    let mut tokens = naive.embed(observation);
    for layer in 2..=last.min(policy.n_layers() - 1) {
        tokens = naive.block(layer, tokens);
    }
    let width = policy.architecture().width;
    let mut flat: Vec<f64> =
        (0..width).flat_map(|c| tokens.iter().map(move |token| token[c])).collect();
    if last == policy.n_layers() {
        flat = naive.norm(last, "norm", &flat);
        flat = naive.named(last, "", &flat);
    }
    (flat, naive.products)
}

#[test]
fn every_layer_agrees_with_the_policy_written_value_by_value() {
    let policy = policy();
    let weights = policy.initial(Seed::new(1));
    let observations = values(3 * 60, 8);
    for last in 1..=8 {
        let mut workspace = policy.workspace();
        let ours = policy.forward(1..=last, &weights, &observations, &mut workspace);
        for sample in 0..3 {
            let observation = &observations[60 * sample..60 * (sample + 1)];
            let (expected, _) = naive(&policy, &weights, observation, last);
            for (a, b) in ours.chunks(expected.len()).nth(sample).unwrap().iter().zip(&expected) {
                assert!((f64::from(*a) - b).abs() < 2e-5, "layer {last}: {a}, naive {b}");
            }
        }
    }
}
