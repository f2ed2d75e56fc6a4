//! Matrix products on slices.

use gemm::Parallelism;

/// A view of a slice as a matrix.
#[derive(Clone, Copy)]
pub struct Matrix<'a> {
    data: &'a [f32],
    rows: usize,
    columns: usize,
    row_stride: usize,
    column_stride: usize,
}

impl<'a> Matrix<'a> {
    /// Row by row without gaps.
    pub fn new(data: &'a [f32], rows: usize, columns: usize) -> Self {
        Self::strided(data, rows, columns, columns)
    }

    /// Rows that start `stride` elements apart.
    pub fn strided(data: &'a [f32], rows: usize, columns: usize, stride: usize) -> Self {
        assert!(rows > 0 && columns > 0 && columns <= stride, "an empty or overlapping matrix");
        assert!((rows - 1) * stride + columns <= data.len(), "{rows} x {columns} is too large");
        Self { data, rows, columns, row_stride: stride, column_stride: 1 }
    }

    /// The same data read with rows and columns exchanged.
    pub fn transposed(self) -> Self {
        Self {
            data: self.data,
            rows: self.columns,
            columns: self.rows,
            row_stride: self.column_stride,
            column_stride: self.row_stride,
        }
    }
}

/// What happens to the old content of the destination of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    /// It is overwritten.
    Set,
    /// The product is added to it.
    Add,
}

/// `output = left * right` or `output += left * right`, rows of the output `stride` apart.
pub fn product(
    output: &mut [f32],
    stride: usize,
    left: Matrix<'_>,
    right: Matrix<'_>,
    store: Store,
) {
    let (rows, inner, columns) = (left.rows, left.columns, right.columns);
    assert_eq!(inner, right.rows, "inner sizes of a matrix product");
    assert!(columns <= stride && (rows - 1) * stride + columns <= output.len(), "output too small");
    // SAFETY: the constructors of `Matrix` and the assertions above keep every address that the
    // strides can reach inside the three slices, and `output` is borrowed exclusively.
    unsafe {
        gemm::gemm(
            rows,
            columns,
            inner,
            output.as_mut_ptr(),
            1,
            stride as isize,
            store == Store::Add,
            left.data.as_ptr(),
            left.column_stride as isize,
            left.row_stride as isize,
            right.data.as_ptr(),
            right.column_stride as isize,
            right.row_stride as isize,
            1.0f32,
            1.0f32,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_equals_the_sum_over_the_inner_index() {
        let (rows, inner, columns) = (5, 7, 19);
        let left: Vec<f32> = (0..rows * inner).map(|n| (n % 11) as f32 - 5.0).collect();
        let right: Vec<f32> = (0..inner * columns).map(|n| (n % 13) as f32 - 6.0).collect();
        let mut output = vec![1.0; rows * columns];
        let (a, b) = (Matrix::new(&left, rows, inner), Matrix::new(&right, inner, columns));
        product(&mut output, columns, a, b, Store::Add);
        for row in 0..rows {
            for column in 0..columns {
                let expected: f32 =
                    (0..inner).map(|k| left[row * inner + k] * right[k * columns + column]).sum();
                assert_eq!(output[row * columns + column], expected + 1.0);
            }
        }
        let mut square = vec![9.0; rows * rows];
        product(&mut square, rows, a, a.transposed(), Store::Set);
        assert_eq!(square[1], (0..inner).map(|k| left[k] * left[inner + k]).sum::<f32>());
    }

    #[test]
    #[should_panic(expected = "too large")]
    fn a_matrix_larger_than_its_slice_is_refused() {
        Matrix::new(&[0.0; 5], 2, 3);
    }
}
