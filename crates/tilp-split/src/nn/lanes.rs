//! Loops over vector lanes: fixed-order sums, the exponential, transposition.

pub use crate::lanes::vectorised;

const LANES: usize = 16;

/// The sum of a slice, always added in the same order: sixteen partial sums, then those pairwise.
#[inline(always)]
pub fn sum(values: &[f32]) -> f32 {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut partial = [0.0; LANES];
    for chunk in chunks {
        for lane in 0..LANES {
            partial[lane] += chunk[lane];
        }
    }
    fold(partial) + rest.iter().sum::<f32>()
}

/// The sum of squares in f64, eight partial sums.
pub fn sum_of_squares(values: &[f32]) -> f64 {
    let (chunks, rest) = values.as_chunks::<8>();
    let mut partial = [0.0f64; 8];
    for chunk in chunks {
        for lane in 0..8 {
            partial[lane] += f64::from(chunk[lane]) * f64::from(chunk[lane]);
        }
    }
    let rest = rest.iter().map(|value| f64::from(*value) * f64::from(*value)).sum::<f64>();
    partial.iter().sum::<f64>() + rest
}

/// The inner product of two slices of one length, in the order of [`sum`].
#[inline(always)]
pub fn dot(left: &[f32], right: &[f32]) -> f32 {
    let (left, left_rest) = left.as_chunks::<LANES>();
    let (right, right_rest) = right.as_chunks::<LANES>();
    let mut partial = [0.0; LANES];
    for (a, b) in left.iter().zip(right) {
        for lane in 0..LANES {
            partial[lane] += a[lane] * b[lane];
        }
    }
    fold(partial) + left_rest.iter().zip(right_rest).map(|(a, b)| a * b).sum::<f32>()
}

#[inline(always)]
fn fold(partial: [f32; LANES]) -> f32 {
    let mut width = LANES / 2;
    let mut sums = partial;
    while width > 0 {
        for lane in 0..width {
            sums[lane] += sums[lane + width];
        }
        width /= 2;
    }
    sums[0]
}

/// The exponential of a number not above zero, to 2e-7 relative; below -87 it is e^-87.
///
/// A polynomial, because the one of the C library neither vectorises nor agrees between systems.
#[inline(always)]
pub fn exp_negative(x: f32) -> f32 {
    // Adding 1.5 * 2^23 rounds to an integer and leaves that integer in the low bits.
    const ROUND: f32 = 12_582_912.0;
    let x = if x < -87.0 { -87.0 } else { x };
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let power = shifted - ROUND;
    // ln 2 in two parts, the first with few digits, so that the product with `power` is exact.
    let rest = (x - power * 0.693_359_4) + power * 2.121_944_4e-4;
    let mut series = 1.0 / 720.0;
    for coefficient in [1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        series = series * rest + coefficient;
    }
    let exponent = shifted.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127) << 23;
    series * f32::from_bits(exponent)
}

/// `output[column][row] = input[row][column]` for an input of `rows` rows.
pub fn transpose(input: &[f32], rows: usize, output: &mut [f32]) {
    assert_eq!(input.len(), output.len(), "a transposition keeps the number of elements");
    if rows == 0 || input.is_empty() {
        return;
    }
    let columns = input.len() / rows;
    // Blocks of 16 x 16 stay in the first-level cache whichever side is the long one.
    for row_start in (0..rows).step_by(LANES) {
        let row_end = (row_start + LANES).min(rows);
        for column_start in (0..columns).step_by(LANES) {
            let column_end = (column_start + LANES).min(columns);
            for column in column_start..column_end {
                let line = &mut output[column * rows + row_start..column * rows + row_end];
                for (offset, value) in line.iter_mut().enumerate() {
                    *value = input[(row_start + offset) * columns + column];
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_agrees_with_the_standard_one() {
        for step in 0..8700 {
            let x = -(step as f32) * 0.01;
            let exact = f64::from(x).exp();
            let error = (f64::from(exp_negative(x)) - exact).abs() / exact;
            assert!(error < 3e-7, "x = {x}: relative error {error}");
        }
        assert_eq!(exp_negative(0.0), 1.0);
        assert!(exp_negative(f32::NEG_INFINITY) < 1e-37);
    }

    #[test]
    fn sums_and_inner_products_of_odd_lengths_are_complete() {
        let values: Vec<f32> = (1..=37).map(|n| n as f32).collect();
        assert_eq!(sum(&values), 703.0);
        assert_eq!(sum_of_squares(&values), 17575.0);
        assert_eq!(dot(&values, &values), 17575.0);
    }

    #[test]
    fn transposing_twice_is_the_identity() {
        let values: Vec<f32> = (0..33 * 21).map(|n| n as f32).collect();
        let (mut once, mut twice) = (vec![0.0; values.len()], vec![0.0; values.len()]);
        transpose(&values, 33, &mut once);
        assert_eq!(once[5 * 33 + 7], values[7 * 21 + 5]);
        transpose(&once, 21, &mut twice);
        assert_eq!(values, twice);
    }
}
