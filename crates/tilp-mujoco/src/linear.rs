//! Small matrices of fixed size, rows first.

/// A matrix of `R` rows and `C` columns.
pub type Matrix<const R: usize, const C: usize> = [[f64; C]; R];
/// A point or a direction.
pub type Vector = [f64; 3];

pub fn transpose<const R: usize, const C: usize>(a: &Matrix<R, C>) -> Matrix<C, R> {
    std::array::from_fn(|c| std::array::from_fn(|r| a[r][c]))
}

pub fn product<const R: usize, const K: usize, const C: usize>(
    a: &Matrix<R, K>,
    b: &Matrix<K, C>,
) -> Matrix<R, C> {
    std::array::from_fn(|r| std::array::from_fn(|c| (0..K).map(|k| a[r][k] * b[k][c]).sum()))
}

pub fn apply<const R: usize, const C: usize>(a: &Matrix<R, C>, x: &[f64; C]) -> [f64; R] {
    std::array::from_fn(|r| dot(&a[r], x))
}

pub fn dot<const N: usize>(a: &[f64; N], b: &[f64; N]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

pub fn add<const N: usize>(a: &[f64; N], b: &[f64; N]) -> [f64; N] {
    std::array::from_fn(|i| a[i] + b[i])
}

pub fn subtract<const N: usize>(a: &[f64; N], b: &[f64; N]) -> [f64; N] {
    std::array::from_fn(|i| a[i] - b[i])
}

pub fn scale<const N: usize>(a: &[f64; N], by: f64) -> [f64; N] {
    a.map(|a| a * by)
}

pub fn length<const N: usize>(a: &[f64; N]) -> f64 {
    dot(a, a).sqrt()
}

pub fn cross(a: &Vector, b: &Vector) -> Vector {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

/// The inverse of a symmetric positive matrix, by its factors `L D L^T`.
///
/// A direction in which the matrix is zero (an arm stretched out) stays zero in the inverse, as in
/// a pseudo-inverse: such a direction takes no force.
pub fn inverse<const N: usize>(a: &Matrix<N, N>) -> Matrix<N, N> {
    let largest = (0..N).map(|i| a[i][i].abs()).fold(0.0, f64::max);
    let mut lower = [[0.0; N]; N];
    let mut pivot = [0.0; N];
    for j in 0..N {
        let known: f64 = (0..j).map(|k| lower[j][k] * lower[j][k] * pivot[k]).sum();
        pivot[j] = a[j][j] - known;
        lower[j][j] = 1.0;
        for i in j + 1..N {
            let known: f64 = (0..j).map(|k| lower[i][k] * lower[j][k] * pivot[k]).sum();
            let left = a[i][j] - known;
            lower[i][j] = if pivot[j] > 1e-15 * largest { left / pivot[j] } else { 0.0 };
        }
    }
    let solve = |column: usize| -> [f64; N] {
        let mut x: [f64; N] = std::array::from_fn(|i| f64::from(i == column));
        for i in 0..N {
            x[i] -= (0..i).map(|k| lower[i][k] * x[k]).sum::<f64>();
        }
        for i in 0..N {
            x[i] = if pivot[i] > 1e-15 * largest { x[i] / pivot[i] } else { 0.0 };
        }
        for i in (0..N).rev() {
            x[i] -= (i + 1..N).map(|k| lower[k][i] * x[k]).sum::<f64>();
        }
        x
    };
    // Symmetric, so its columns are its rows.
    std::array::from_fn(solve)
}

/// The rotation by `vector`'s length in radians about its direction.
///
/// Rounded to single precision where robosuite does on the way from an action to a goal: without
/// that a replay leaves its recording sooner.
pub fn rotation(vector: &Vector) -> Matrix<3, 3> {
    let angle = length(vector);
    if angle == 0.0 {
        return [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
    }
    let axis = vector.map(|v| v / angle * (angle / 2.0).sin());
    let quaternion = [(angle / 2.0).cos(), axis[0], axis[1], axis[2]].map(|q| q as f32);
    let squared: f32 = quaternion.iter().map(|q| q * q).sum();
    let to_unit = (2.0 / f64::from(squared)).sqrt();
    let [w, x, y, z] = quaternion.map(|q| (f64::from(q) * to_unit) as f32);
    let diagonal = |a: f32, b: f32| 1.0 - f64::from(a * a) - f64::from(b * b);
    [
        [diagonal(y, z), f64::from(x * y - z * w), f64::from(x * z + y * w)],
        [f64::from(x * y + z * w), diagonal(x, z), f64::from(y * z - x * w)],
        [f64::from(x * z - y * w), f64::from(y * z + x * w), diagonal(x, y)],
    ]
}

/// Axis times angle of the small turn from one orientation to another, in the frame of both.
pub fn turn_between(from: &Matrix<3, 3>, to: &Matrix<3, 3>) -> Vector {
    let (from, to) = (transpose(from), transpose(to));
    let pairs: [Vector; 3] = std::array::from_fn(|i| cross(&from[i], &to[i]));
    scale(&add(&add(&pairs[0], &pairs[1]), &pairs[2]), 0.5)
}

/// Axis times angle of a unit quaternion (w, x, y, z), as openpi's LIBERO client computes it.
pub fn axis_angle(quaternion: &[f64; 4]) -> Vector {
    let [w, x, y, z] = *quaternion;
    let w = w.clamp(-1.0, 1.0);
    let sine = (1.0 - w * w).sqrt();
    if sine == 0.0 {
        return [0.0; 3];
    }
    scale(&[x, y, z], 2.0 * w.acos() / sine)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close<const R: usize, const C: usize>(a: &Matrix<R, C>, b: &Matrix<R, C>) -> bool {
        a.iter().flatten().zip(b.iter().flatten()).all(|(a, b)| (a - b).abs() < 1e-6)
    }

    const ONE: Matrix<3, 3> = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];

    #[test]
    fn a_matrix_times_its_inverse_is_one() {
        let a = [[4.0, 1.0, 0.5], [1.0, 3.0, -1.0], [0.5, -1.0, 2.0]];
        assert!(close(&product(&a, &inverse(&a)), &ONE));
    }

    #[test]
    fn a_direction_without_inertia_takes_no_force() {
        let a = [[2.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 4.0]];
        assert_eq!(inverse(&a), [[0.5, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.25]]);
    }

    #[test]
    fn a_quarter_turn_about_z_takes_x_to_y() {
        let turn = rotation(&[0.0, 0.0, std::f64::consts::FRAC_PI_2]);
        assert!(close(&[apply(&turn, &[1.0, 0.0, 0.0])], &[[0.0, 1.0, 0.0]]));
        assert!(close(&product(&turn, &transpose(&turn)), &ONE));
    }

    #[test]
    fn a_small_turn_is_read_back_from_the_two_orientations() {
        let turn = [0.01, -0.02, 0.03];
        let from = rotation(&[0.4, 0.5, -0.6]);
        let to = product(&rotation(&turn), &from);
        let read = turn_between(&from, &to);
        assert!(length(&subtract(&read, &turn)) < 1e-4, "{read:?}");
    }

    #[test]
    fn the_axis_angle_of_half_a_turn_about_x_is_pi_along_x() {
        let [x, y, z] = axis_angle(&[0.0, 1.0, 0.0, 0.0]);
        assert!((x - std::f64::consts::PI).abs() < 1e-12 && y == 0.0 && z == 0.0);
    }
}
