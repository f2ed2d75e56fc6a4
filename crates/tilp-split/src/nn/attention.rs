//! Multi-head attention of every token to all tokens of its sample.

use super::lanes::{exp_negative, vectorised};

/// Shape of the attention. It has no parameters: the projections are linear layers around it.
///
/// Queries, keys and values are in one buffer of `3 * width` rows, in this order; head `h` owns
/// the `width / heads` rows from `h * width / heads` of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attention {
    /// Features of a token.
    pub width: usize,
    /// Number of heads, a divisor of the width.
    pub heads: usize,
    /// Tokens of a sample.
    pub tokens: usize,
}

/// Where one head of one group of samples finds its rows.
#[derive(Clone, Copy)]
struct Head {
    size: usize,
    tokens: usize,
    samples: usize,
    query: usize,
    key: usize,
    value: usize,
    mixed: usize,
    shares: usize,
    scale: f32,
}

impl Head {
    fn new(shape: Attention, samples: usize, head: usize, lane: usize) -> Self {
        let size = shape.width / shape.heads;
        let columns = shape.tokens * samples;
        let row = |row: usize| row * columns + lane;
        Self {
            size,
            tokens: shape.tokens,
            samples,
            query: row(head * size),
            key: row(shape.width + head * size),
            value: row(2 * shape.width + head * size),
            mixed: row(head * size),
            shares: row(head * shape.tokens),
            scale: 1.0 / (size as f32).sqrt(),
        }
    }

    /// Offset of feature `c` of token `t` behind the start of a part.
    #[inline(always)]
    fn at(&self, c: usize, t: usize) -> usize {
        (c * self.tokens + t) * self.samples
    }
}

impl Attention {
    /// Elements of the attention weights that the backward pass needs.
    pub fn n_shares(self, samples: usize) -> usize {
        self.heads * self.tokens * self.tokens * samples
    }

    /// Multiply-adds for one sample: scores and mixtures.
    pub fn n_products(self) -> usize {
        2 * self.tokens * self.tokens * self.width
    }

    /// `mixed = softmax(q k' / sqrt(size)) v` for every head; `shares` keeps the softmax.
    pub fn forward(self, projected: &[f32], mixed: &mut [f32], shares: &mut [f32]) {
        let samples = mixed.len() / (self.width * self.tokens);
        forward_all(self, samples, projected, mixed, shares);
    }

    /// `d_projected` from the gradient of the mixture. `d_shares` is a workspace of
    /// `tokens * samples` elements.
    pub fn backward(
        self,
        projected: &[f32],
        shares: &[f32],
        d_mixed: &[f32],
        d_projected: &mut [f32],
        d_shares: &mut [f32],
    ) {
        let samples = d_mixed.len() / (self.width * self.tokens);
        d_projected.fill(0.0);
        backward_all(self, samples, projected, shares, d_mixed, d_projected, d_shares);
    }
}

/// Vector lanes for this number of samples.
#[inline(always)]
fn lanes(samples: usize) -> usize {
    match samples {
        16.. => 16,
        8.. => 8,
        _ => 1,
    }
}

vectorised! {
    fn forward_all(
        shape: Attention,
        samples: usize,
        projected: &[f32],
        mixed: &mut [f32],
        shares: &mut [f32],
    ) {
        for index in 0..shape.heads {
            let mut lane = 0;
            while lane < samples {
                let (head, wide) = (Head::new(shape, samples, index, lane), lanes(samples - lane));
                match wide {
                    16 => forward_head::<16>(head, projected, mixed, shares),
                    8 => forward_head::<8>(head, projected, mixed, shares),
                    _ => forward_head::<1>(head, projected, mixed, shares),
                }
                lane += wide;
            }
        }
    }
}

vectorised! {
    fn backward_all(
        shape: Attention,
        samples: usize,
        projected: &[f32],
        shares: &[f32],
        d_mixed: &[f32],
        d_projected: &mut [f32],
        d_shares: &mut [f32],
    ) {
        for index in 0..shape.heads {
            let mut lane = 0;
            while lane < samples {
                let (head, wide) = (Head::new(shape, samples, index, lane), lanes(samples - lane));
                let (qkv, d_qkv) = (projected, &mut *d_projected);
                match wide {
                    16 => backward_head::<16>(head, qkv, shares, d_mixed, d_qkv, d_shares),
                    8 => backward_head::<8>(head, qkv, shares, d_mixed, d_qkv, d_shares),
                    _ => backward_head::<1>(head, qkv, shares, d_mixed, d_qkv, d_shares),
                }
                lane += wide;
            }
        }
    }
}

#[inline(always)]
fn load<const W: usize>(data: &[f32], at: usize) -> [f32; W] {
    let mut lanes = [0.0; W];
    lanes.copy_from_slice(&data[at..at + W]);
    lanes
}

#[inline(always)]
fn store<const W: usize>(data: &mut [f32], at: usize, lanes: [f32; W]) {
    data[at..at + W].copy_from_slice(&lanes);
}

#[inline(always)]
fn add_product<const W: usize>(sum: &mut [f32; W], left: [f32; W], right: [f32; W]) {
    for lane in 0..W {
        sum[lane] += left[lane] * right[lane];
    }
}

#[inline(always)]
fn forward_head<const W: usize>(head: Head, qkv: &[f32], mixed: &mut [f32], shares: &mut [f32]) {
    for token in 0..head.tokens {
        let row = head.shares + head.at(token, 0);
        let mut top = [f32::NEG_INFINITY; W];
        for other in 0..head.tokens {
            let mut score = [0.0; W];
            for c in 0..head.size {
                let query = load(qkv, head.query + head.at(c, token));
                add_product(&mut score, query, load(qkv, head.key + head.at(c, other)));
            }
            for lane in 0..W {
                score[lane] *= head.scale;
                top[lane] = if score[lane] > top[lane] { score[lane] } else { top[lane] };
            }
            // Rows of the shares are indexed by the token that looks and the one looked at.
            store(shares, row + head.at(0, other), score);
        }
        softmax::<W>(head, row, top, shares);
        for c in 0..head.size {
            let mut mixture = [0.0; W];
            for other in 0..head.tokens {
                let share = load(shares, row + head.at(0, other));
                add_product(&mut mixture, share, load(qkv, head.value + head.at(c, other)));
            }
            store(mixed, head.mixed + head.at(c, token), mixture);
        }
    }
}

#[inline(always)]
fn softmax<const W: usize>(head: Head, row: usize, top: [f32; W], shares: &mut [f32]) {
    let mut total = [0.0; W];
    for other in 0..head.tokens {
        let mut share = load::<W>(shares, row + head.at(0, other));
        for lane in 0..W {
            share[lane] = exp_negative(share[lane] - top[lane]);
            total[lane] += share[lane];
        }
        store(shares, row + head.at(0, other), share);
    }
    let scale = total.map(|total| 1.0 / total);
    for other in 0..head.tokens {
        let mut share = load::<W>(shares, row + head.at(0, other));
        for lane in 0..W {
            share[lane] *= scale[lane];
        }
        store(shares, row + head.at(0, other), share);
    }
}

#[inline(always)]
fn backward_head<const W: usize>(
    head: Head,
    qkv: &[f32],
    shares: &[f32],
    d_mixed: &[f32],
    d_qkv: &mut [f32],
    d_shares: &mut [f32],
) {
    for token in 0..head.tokens {
        let row = head.shares + head.at(token, 0);
        let mut mean = [0.0; W];
        for other in 0..head.tokens {
            let share = load::<W>(shares, row + head.at(0, other));
            let mut d_share = [0.0; W];
            for c in 0..head.size {
                let flow = load(d_mixed, head.mixed + head.at(c, token));
                let at = head.value + head.at(c, other);
                add_product(&mut d_share, flow, load(qkv, at));
                let mut d_value = load(d_qkv, at);
                add_product(&mut d_value, share, flow);
                store(d_qkv, at, d_value);
            }
            add_product(&mut mean, share, d_share);
            store(d_shares, other * W, d_share);
        }
        for other in 0..head.tokens {
            let share = load::<W>(shares, row + head.at(0, other));
            let mut d_score = load::<W>(d_shares, other * W);
            for lane in 0..W {
                d_score[lane] = share[lane] * (d_score[lane] - mean[lane]) * head.scale;
            }
            store(d_shares, other * W, d_score);
        }
        backward_scores::<W>(head, token, qkv, d_qkv, d_shares);
    }
}

#[inline(always)]
fn backward_scores<const W: usize>(
    head: Head,
    token: usize,
    qkv: &[f32],
    d_qkv: &mut [f32],
    d_scores: &[f32],
) {
    for c in 0..head.size {
        let query = load::<W>(qkv, head.query + head.at(c, token));
        let mut d_query = [0.0; W];
        for other in 0..head.tokens {
            let d_score = load(d_scores, other * W);
            let at = head.key + head.at(c, other);
            add_product(&mut d_query, d_score, load(qkv, at));
            let mut d_key = load(d_qkv, at);
            add_product(&mut d_key, d_score, query);
            store(d_qkv, at, d_key);
        }
        store(d_qkv, head.query + head.at(c, token), d_query);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::check::{Check, values};
    use std::cell::RefCell;

    fn check(samples: usize) {
        let layer = Attention { width: 4, heads: 2, tokens: 3 };
        let columns = 3 * samples;
        let shares = RefCell::new(vec![0.0; layer.n_shares(samples)]);
        let input = values(12 * columns, 5);
        Check { parameters: vec![], input, outputs: 4 * columns }.run(
            |_, x, y| layer.forward(x, y, &mut shares.borrow_mut()),
            |_, x, dy, _, dx| {
                let mut scratch = vec![0.0; 3 * samples];
                layer.backward(x, &shares.borrow(), dy, dx, &mut scratch);
            },
        );
    }

    #[test]
    fn attention_agrees_with_finite_differences_in_every_lane_width() {
        check(1);
        check(8 + 1);
        check(16 + 8 + 3);
    }

    #[test]
    fn the_shares_of_every_token_sum_to_one() {
        let layer = Attention { width: 8, heads: 2, tokens: 5 };
        let (mut mixed, mut shares) = (vec![0.0; 8 * 5 * 3], vec![0.0; layer.n_shares(3)]);
        layer.forward(&values(24 * 15, 6), &mut mixed, &mut shares);
        for head_and_token in shares.chunks_exact(15) {
            for sample in 0..3 {
                let total: f32 = (0..5).map(|other| head_and_token[other * 3 + sample]).sum();
                assert!((total - 1.0).abs() < 1e-6);
            }
        }
    }
}
