//! The law of one terminal's mixed action: samples, log-probabilities, entropies, gradients.
//!
//! Numbers are tanh of a Gaussian, the category is Gumbel-softmax, the flag a relaxed Bernoulli.
//! Forward the category is one-hot and the flag 0 or 1; backward both take the gradient of their
//! relaxation (straight-through).

use rand::RngExt as _;
use rand_distr::StandardNormal;

use crate::rng::Rng;

/// Structure of states and actions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Space {
    /// Features of a terminal.
    pub terminal_features: usize,
    /// Features of the whole system.
    pub global_features: usize,
    /// Numbers of an action, each within (-1, 1).
    pub reals: usize,
    /// Categories of an action; none: it has no category.
    pub categories: usize,
    /// Whether an action has a flag.
    pub flag: bool,
    /// Bounds of the logarithm of a number's standard deviation, before tanh.
    pub log_deviation: [f32; 2],
}

impl Space {
    /// Rows of an action: numbers, one-hot category, flag.
    pub fn n_action(&self) -> usize {
        self.reals + self.categories + usize::from(self.flag)
    }

    /// Rows the actor puts out: means, raw log-deviations, logits, logit of the flag.
    pub fn n_head(&self) -> usize {
        2 * self.reals + self.categories + usize::from(self.flag)
    }

    /// Whether an action has a part that is not a number.
    pub fn is_mixed(&self) -> bool {
        self.categories > 0 || self.flag
    }

    /// The log-deviation from what the network says, bounded smoothly, and its derivative.
    pub fn log_deviation(&self, raw: f32) -> (f32, f32) {
        let [least, most] = self.log_deviation;
        let (half, bent) = (0.5 * (most - least), libm::tanhf(raw));
        (least + half * (bent + 1.0), half * (1.0 - bent * bent))
    }
}

const HALF_LN_TAU: f32 = 0.918_938_5; // ln(2 pi) / 2

/// ln(1 + e^x) without overflow.
fn softplus(x: f32) -> f32 {
    x.max(0.0) + libm::log1pf(libm::expf(-x.abs()))
}

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + libm::expf(-x))
}

/// ln(1 - tanh(u)^2).
fn log_slope(u: f32) -> f32 {
    2.0 * (std::f32::consts::LN_2 - u - softplus(-2.0 * u))
}

fn log_softmax(logits: &mut [f32]) {
    let most = logits.iter().fold(f32::NEG_INFINITY, |most, logit| most.max(*logit));
    let total: f32 = logits.iter().map(|logit| libm::expf(logit - most)).sum();
    let offset = most + libm::logf(total);
    logits.iter_mut().for_each(|logit| *logit -= offset);
}

/// The draws behind a batch of actions: normals, Gumbel and logistic numbers, row by row.
#[derive(Clone, Debug, Default)]
pub struct Noise(Vec<f32>);

impl Noise {
    /// New draws for this number of columns.
    pub fn draw(&mut self, space: &Space, columns: usize, rng: &mut Rng) {
        self.0.clear();
        let normals = space.reals * columns;
        self.0.extend((0..normals).map(|_| rng.sample::<f32, _>(StandardNormal)));
        let mut open = || rng.random_range(1e-6f32..1.0 - 1e-6);
        let gumbel = |u: f32| -libm::logf(-libm::logf(u));
        self.0.extend((0..space.categories * columns).map(|_| gumbel(open())));
        let logistic = |u: f32| libm::logf(u) - libm::logf(1.0 - u);
        self.0.extend((0..usize::from(space.flag) * columns).map(|_| logistic(open())));
    }

    /// Draws made elsewhere.
    #[cfg(test)]
    pub(super) fn given(draws: Vec<f32>) -> Self {
        Self(draws)
    }

    /// No noise: the most likely action.
    pub fn none(&mut self, space: &Space, columns: usize) {
        self.0.clear();
        self.0.resize(space.n_action() * columns, 0.0);
    }
}

/// A batch of actions, and what the backward pass needs.
#[derive(Clone, Debug, Default)]
pub struct Drawn {
    /// Rows of [`Space::n_action`], a column for each terminal and sample.
    pub actions: Vec<f32>,
    /// Log-probability of the numbers, column by column.
    pub log_reals: Vec<f32>,
    /// Negative entropy of category and flag, column by column: their expected log-probability.
    pub log_mixed: Vec<f32>,
    /// Relaxed category and flag.
    soft: Vec<f32>,
}

/// How actions are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Relaxation {
    /// Temperature of the relaxed category and flag.
    pub temperature: f32,
    /// Whether actions carry the relaxed values instead of hard ones.
    pub soft: bool,
}

/// Draws actions from the rows that the actor put out.
pub fn sample(
    space: &Space,
    head: &[f32],
    noise: &Noise,
    how: Relaxation,
    columns: usize,
    drawn: &mut Drawn,
) {
    drawn.actions.resize(space.n_action() * columns, 0.0);
    drawn.soft.resize(space.n_action() * columns, 0.0);
    drawn.log_reals.clear();
    drawn.log_reals.resize(columns, 0.0);
    drawn.log_mixed.clear();
    drawn.log_mixed.resize(columns, 0.0);
    for real in 0..space.reals {
        let row = real * columns;
        for column in 0..columns {
            let (log_std, _) = space.log_deviation(head[(space.reals + real) * columns + column]);
            let eps = noise.0[row + column];
            let u = libm::expf(log_std).mul_add(eps, head[row + column]);
            drawn.actions[row + column] = libm::tanhf(u);
            drawn.log_reals[column] += -0.5 * eps * eps - log_std - HALF_LN_TAU - log_slope(u);
        }
    }
    if space.categories > 0 {
        sample_category(space, head, noise, how, columns, drawn);
    }
    if space.flag {
        sample_flag(space, head, noise, how, columns, drawn);
    }
}

fn sample_category(
    space: &Space,
    head: &[f32],
    noise: &Noise,
    how: Relaxation,
    columns: usize,
    drawn: &mut Drawn,
) {
    let mut logs = vec![0.0; space.categories];
    let first = space.reals * columns;
    let logits = &head[2 * first..];
    for column in 0..columns {
        for (index, log) in logs.iter_mut().enumerate() {
            *log = logits[index * columns + column];
        }
        log_softmax(&mut logs);
        drawn.log_mixed[column] += logs.iter().map(|log| libm::expf(*log) * log).sum::<f32>();
        for (index, log) in logs.iter_mut().enumerate() {
            *log += noise.0[first + index * columns + column];
        }
        let best =
            (0..logs.len()).fold(0, |best, at| if logs[at] > logs[best] { at } else { best });
        logs.iter_mut().for_each(|log| *log /= how.temperature);
        log_softmax(&mut logs);
        for (index, log) in logs.iter().enumerate() {
            let at = first + index * columns + column;
            drawn.soft[at] = libm::expf(*log);
            let hard = if index == best { 1.0 } else { 0.0 };
            drawn.actions[at] = if how.soft { drawn.soft[at] } else { hard };
        }
    }
}

fn sample_flag(
    space: &Space,
    head: &[f32],
    noise: &Noise,
    how: Relaxation,
    columns: usize,
    drawn: &mut Drawn,
) {
    let logits = &head[(2 * space.reals + space.categories) * columns..];
    let first = (space.reals + space.categories) * columns;
    for column in 0..columns {
        let logit = logits[column];
        let (log_one, log_zero) = (-softplus(-logit), -softplus(logit));
        drawn.log_mixed[column] += libm::expf(log_one) * log_one + libm::expf(log_zero) * log_zero;
        let noisy = logit + noise.0[first + column];
        drawn.soft[first + column] = sigmoid(noisy / how.temperature);
        let hard = if noisy > 0.0 { 1.0 } else { 0.0 };
        drawn.actions[first + column] = if how.soft { drawn.soft[first + column] } else { hard };
    }
}

/// The gradient of a loss at the rows of the actor, from its gradient at the actions and its
/// derivatives by the two log-probabilities (the same for all columns).
#[allow(clippy::too_many_arguments)]
pub fn backward(
    space: &Space,
    head: &[f32],
    noise: &Noise,
    drawn: &Drawn,
    temperature: f32,
    by_action: &[f32],
    by_log: [f32; 2],
    by_head: &mut Vec<f32>,
) {
    let columns = drawn.log_reals.len();
    by_head.clear();
    by_head.resize(space.n_head() * columns, 0.0);
    for at in 0..space.reals * columns {
        let raw_at = space.reals * columns + at;
        let (log_std, slope) = space.log_deviation(head[raw_at]);
        let (action, eps) = (drawn.actions[at], noise.0[at]);
        let by_u = by_action[at] * (1.0 - action * action) + by_log[0] * 2.0 * action;
        by_head[at] = by_u;
        by_head[raw_at] = (by_u * libm::expf(log_std) * eps - by_log[0]) * slope;
    }
    let first = space.reals * columns;
    if space.categories > 0 {
        let mut logs = vec![0.0; space.categories];
        for column in 0..columns {
            let at = |index: usize| first + index * columns + column;
            for (index, log) in logs.iter_mut().enumerate() {
                *log = head[first + at(index)];
            }
            log_softmax(&mut logs);
            let mean_log: f32 = logs.iter().map(|log| libm::expf(*log) * log).sum();
            let mean_flow: f32 =
                (0..logs.len()).map(|c| by_action[at(c)] * drawn.soft[at(c)]).sum();
            for (index, log) in logs.iter().enumerate() {
                let relaxed = drawn.soft[at(index)] * (by_action[at(index)] - mean_flow);
                let entropy = libm::expf(*log) * (log - mean_log);
                by_head[first + at(index)] = relaxed / temperature + by_log[1] * entropy;
            }
        }
    }
    if space.flag {
        let first = (space.reals + space.categories) * columns;
        for column in 0..columns {
            let head_at = space.reals * columns + first + column;
            let (soft, chance) = (drawn.soft[first + column], sigmoid(head[head_at]));
            let relaxed = by_action[first + column] * soft * (1.0 - soft) / temperature;
            let entropy = chance * (1.0 - chance) * head[head_at];
            by_head[head_at] = relaxed + by_log[1] * entropy;
        }
    }
}

/// The log-probability of the actions of all terminals of one state: the terminals, and the parts
/// of an action, are independent given the state.
///
/// $$ \pi_\theta(\mathbf a \mid s) = \prod_{n \in \mathcal N} \pi_\theta(\mathbf a_n \mid s) $$
///
/// Eq. `method-pi`
pub fn log_probability(space: &Space, head: &[f32], actions: &[f32]) -> f64 {
    let columns = head.len() / space.n_head();
    let mut total = 0.0;
    for column in 0..columns {
        let row = |rows: &[f32], index: usize| rows[index * columns + column];
        for real in 0..space.reals {
            let (log_std, _) = space.log_deviation(row(head, space.reals + real));
            let u = libm::atanhf(row(actions, real));
            let eps = (u - row(head, real)) / libm::expf(log_std);
            total += f64::from(-0.5 * eps * eps - log_std - HALF_LN_TAU - log_slope(u));
        }
        let mut logs: Vec<f32> =
            (0..space.categories).map(|index| row(head, 2 * space.reals + index)).collect();
        log_softmax(&mut logs);
        for (index, log) in logs.iter().enumerate() {
            total += f64::from(row(actions, space.reals + index) * log);
        }
        if space.flag {
            let logit = row(head, 2 * space.reals + space.categories);
            let is_set = row(actions, space.reals + space.categories) > 0.5;
            total -= f64::from(softplus(if is_set { -logit } else { logit }));
        }
    }
    total
}
