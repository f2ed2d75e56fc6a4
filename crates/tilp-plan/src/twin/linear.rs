//! Small dense symmetric problems.

/// Minimises w'Hw/2 - b'w inside bounds, by coordinate descent, from the given start. H is positive
/// definite, row by row.
pub(super) fn bounded_minimum(
    curvature: &[f64],
    pull: &[f64],
    bounds: &[(f64, f64)],
    weights: &mut [f64],
) {
    let n = weights.len();
    for _ in 0..500 {
        let mut moved = 0.0f64;
        for i in 0..n {
            let row = &curvature[i * n..(i + 1) * n];
            let slope: f64 = row.iter().zip(&*weights).map(|(h, w)| h * w).sum::<f64>() - pull[i];
            let (low, high) = bounds[i];
            let new = (weights[i] - slope / row[i]).clamp(low, high);
            moved = moved.max((new - weights[i]).abs());
            weights[i] = new;
        }
        if moved < 1e-10 {
            break;
        }
    }
}

/// Inverse of a positive definite matrix, by elimination.
pub(super) fn inverse(matrix: &[f64], n: usize) -> Vec<f64> {
    let mut left = matrix.to_vec();
    let mut right = vec![0.0; n * n];
    for i in 0..n {
        right[i * n + i] = 1.0;
    }
    for pivot in 0..n {
        let scale = 1.0 / left[pivot * n + pivot];
        for j in 0..n {
            left[pivot * n + j] *= scale;
            right[pivot * n + j] *= scale;
        }
        for i in (0..n).filter(|i| *i != pivot) {
            let factor = left[i * n + pivot];
            for j in 0..n {
                left[i * n + j] -= factor * left[pivot * n + j];
                right[i * n + j] -= factor * right[pivot * n + j];
            }
        }
    }
    right
}

#[cfg(test)]
mod tests {
    use super::*;

    const MATRIX: [f64; 9] = [4.0, 1.0, 0.5, 1.0, 3.0, -0.2, 0.5, -0.2, 2.0];

    #[test]
    fn a_matrix_times_its_inverse_is_one() {
        let inverse = inverse(&MATRIX, 3);
        for i in 0..3 {
            for j in 0..3 {
                let sum: f64 = (0..3).map(|k| MATRIX[i * 3 + k] * inverse[k * 3 + j]).sum();
                assert!((sum - if i == j { 1.0 } else { 0.0 }).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn the_minimum_solves_the_equations_unless_a_bound_holds_it() {
        let pull = [1.0, -2.0, 0.3];
        let mut free = [0.0; 3];
        bounded_minimum(&MATRIX, &pull, &[(-9.0, 9.0); 3], &mut free);
        for i in 0..3 {
            let sum: f64 = (0..3).map(|k| MATRIX[i * 3 + k] * free[k]).sum();
            assert!((sum - pull[i]).abs() < 1e-8);
        }
        assert!(free[1] < 0.0);
        let mut held = [0.0; 3];
        bounded_minimum(&MATRIX, &pull, &[(0.0, 9.0); 3], &mut held);
        assert_eq!(held[1], 0.0);
    }
}
