//! A check for tests of layers: finite differences against an explicit backward pass.

/// Reproducible values of order one, the same on every system.
pub fn values(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_769).wrapping_add(12_345);
    let mut next = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// One layer to be checked: its parameters, an input, and how many outputs it has.
pub struct Check {
    /// Its parameters.
    pub parameters: Vec<f32>,
    /// An input.
    pub input: Vec<f32>,
    /// The number of outputs.
    pub outputs: usize,
}

impl Check {
    /// `forward(w, x, y)` against `backward(w, x, dy, gradient, dx)`, called in that order.
    pub fn run(
        self,
        mut forward: impl FnMut(&[f32], &[f32], &mut [f32]),
        mut backward: impl FnMut(&[f32], &[f32], &[f32], &mut [f32], &mut [f32]),
    ) {
        let Self { parameters, input, outputs } = self;
        let direction = values(outputs, 77);
        let mut output = vec![0.0; outputs];
        let mut scalar = |w: &[f32], x: &[f32]| {
            forward(w, x, &mut output);
            output.iter().zip(&direction).map(|(y, d)| f64::from(*y) * f64::from(*d)).sum::<f64>()
        };
        let by_parameters = differences(&parameters, |w| scalar(w, &input));
        let by_input = differences(&input, |x| scalar(&parameters, x));
        scalar(&parameters, &input); // leaves the cache of the point itself
        let mut gradient = vec![f32::NAN; parameters.len()];
        let mut dx = vec![0.0; input.len()];
        backward(&parameters, &input, &direction, &mut gradient, &mut dx);
        compare("parameter", &gradient, &by_parameters);
        compare("input", &dx, &by_input);
    }
}

fn differences(point: &[f32], mut scalar: impl FnMut(&[f32]) -> f64) -> Vec<f64> {
    let step = 1e-2f32;
    let mut moved = point.to_vec();
    (0..point.len())
        .map(|index| {
            let mut at = |offset: f32| {
                moved[index] = point[index] + offset;
                let value = scalar(&moved);
                moved[index] = point[index];
                value
            };
            // Fourth order, so that a step large enough for f32 is small enough for the formula.
            let near = (at(step) - at(-step)) / (2.0 * f64::from(step));
            let far = (at(2.0 * step) - at(-2.0 * step)) / (4.0 * f64::from(step));
            (4.0 * near - far) / 3.0
        })
        .collect()
}

fn compare(what: &str, ours: &[f32], differences: &[f64]) {
    let scale = differences.iter().fold(1.0f64, |most, d| most.max(d.abs()));
    for (index, (ours, expected)) in ours.iter().zip(differences).enumerate() {
        let error = (f64::from(*ours) - expected).abs() / scale;
        assert!(error < 1e-3, "{what} {index}: {ours}, finite difference {expected}");
    }
}
