//! The arithmetic of both models on plain slices: matrix products, norms, and activation functions. Knows neither
//! models nor tokens. A matrix is a slice with its rows concatenated.

use rayon::prelude::*;

/// Numbers of one unit of parallel work, where each is computed alone.
const UNIT: usize = 1 << 14;
/// Beyond this, the error function is 1 to the precision of its numbers.
const ERF_END: f32 = 4.0;
/// The error function as a quotient of polynomials of the square, highest power first …
const ERF_ABOVE: [f32; 7] = [
    -2.726_142_3e-10,
    2.770_681_5e-8,
    -2.101_024e-6,
    -5.692_506_4e-5,
    -7.349_906e-4,
    -2.954_6e-3,
    -1.609_603_3e-2,
];
/// … and what they are divided by.
const ERF_BELOW: [f32; 5] = [-1.456_607_2e-5, -2.133_740_5e-4, -1.682_827e-3, -7.373_329e-3, -1.426_474e-2];
/// Partial sums kept in a dot product.
const LANES: usize = 16;

/// A matrix inside a slice: its start, and the strides of its rows and columns.
#[derive(Clone, Copy)]
pub(super) struct MatrixView<'a> {
    pub values: &'a [f32],
    pub row: usize,
    pub column: usize,
}

impl<'a> MatrixView<'a> {
    /// Rows one after the other, `row` numbers apart.
    pub(super) fn rows(values: &'a [f32], row: usize) -> Self {
        Self { values, row, column: 1 }
    }

    /// The transposed matrix.
    pub(super) fn transposed(self) -> Self {
        Self { row: self.column, column: self.row, ..self }
    }

    fn holds(self, rows: usize, columns: usize) -> bool {
        fits(self.values.len(), (rows, self.row), (columns, self.column))
    }
}

/// Whether the last number of a matrix is within `length` numbers.
fn fits(length: usize, rows: (usize, usize), columns: (usize, usize)) -> bool {
    rows.0 == 0 || columns.0 == 0 || (rows.0 - 1) * rows.1 + (columns.0 - 1) * columns.1 < length
}

/// Writes `left · right` to `out`, whose rows are `out_row` numbers apart. The sizes are those of the result, and what
/// the sums run over.
///
/// # Panics
/// When a matrix is larger than its slice.
pub(super) fn multiply(
    (rows, shared, columns): (usize, usize, usize),
    left: MatrixView<'_>,
    right: MatrixView<'_>,
    out: &mut [f32],
    out_row: usize,
) {
    assert!(
        left.holds(rows, shared)
            && right.holds(shared, columns)
            && fits(out.len(), (rows, out_row), (columns, 1)),
        "a matrix of {rows} × {shared} × {columns} exceeds its slice"
    );
    let stride = usize::cast_signed;
    #[allow(unsafe_code, reason = "the product is a function of pointers and strides")]
    // SAFETY: each matrix lies within its slice, as checked above, and `out` is borrowed for writing.
    unsafe {
        matrixmultiply::sgemm(
            rows,
            shared,
            columns,
            1.0,
            left.values.as_ptr(),
            stride(left.row),
            stride(left.column),
            right.values.as_ptr(),
            stride(right.row),
            stride(right.column),
            0.0,
            out.as_mut_ptr(),
            stride(out_row),
            1,
        );
    }
}

/// The sum of the products of two slices of one length.
#[inline(always)]
pub(super) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut sums = [0.0; LANES];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f32>() + rest
}

/// Adds `b` to `a`.
pub(super) fn add(a: &mut [f32], b: &[f32]) {
    for (a, b) in a.iter_mut().zip(b) {
        *a += b;
    }
}

/// Each number times its factor.
pub(super) fn scale(values: &mut [f32], factor: f32) {
    values.iter_mut().for_each(|value| *value *= factor);
}

/// Each row over the root of its mean square, times `weights`.
pub(super) fn rms_norm(rows: &[f32], weights: &[f32], epsilon: f32) -> Vec<f32> {
    let mut normed = rows.to_vec();
    for row in normed.chunks_exact_mut(weights.len()) {
        let mean = dot(row, row) / row.len() as f32;
        scale(row, (mean + epsilon).sqrt().recip());
        row.iter_mut().zip(weights).for_each(|(value, weight)| *value *= weight);
    }
    normed
}

/// Each row less its mean and over its deviation, times `weights`, plus `bias`.
pub(super) fn layer_norm(rows: &mut [f32], weights: &[f32], bias: &[f32], epsilon: f32) {
    for row in rows.chunks_exact_mut(weights.len()) {
        let mean = row.iter().sum::<f32>() / row.len() as f32;
        row.iter_mut().for_each(|value| *value -= mean);
        let variance = dot(row, row) / row.len() as f32;
        scale(row, (variance + epsilon).sqrt().recip());
        for (value, (weight, bias)) in row.iter_mut().zip(weights.iter().zip(bias)) {
            *value = *value * weight + bias;
        }
    }
}

/// The numbers as shares that add up to 1, by their exponentials.
pub(super) fn softmax(values: &mut [f32]) {
    let top = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for value in values.iter_mut() {
        *value = (*value - top).exp();
        sum += *value;
    }
    scale(values, sum.recip());
}

/// The Gaussian error linear unit of each number.
pub(super) fn gelu(values: &mut [f32]) {
    values.par_chunks_mut(UNIT).for_each(|values| pulp::Arch::new().dispatch(Gelu(values)));
}

/// The work of one thread in [`gelu`].
struct Gelu<'a>(&'a mut [f32]);

impl pulp::WithSimd for Gelu<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        for value in self.0 {
            *value *= 0.5 * (1.0 + erf(*value * std::f32::consts::FRAC_1_SQRT_2));
        }
    }
}

/// The error function, less than a millionth off.
#[inline(always)]
fn erf(value: f32) -> f32 {
    let value = value.clamp(-ERF_END, ERF_END);
    let square = value * value;
    let of = |numbers: &[f32]| numbers.iter().fold(0.0, |sum, number| sum * square + number);
    value * of(&ERF_ABOVE) / of(&ERF_BELOW)
}

/// The sigmoid linear unit of a number.
pub(super) fn silu(value: f32) -> f32 {
    value / (1.0 + (-value).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(rows: usize, columns: usize) -> Vec<f32> {
        (0..rows * columns).map(|index| (index as f32 * 0.37).sin()).collect()
    }

    #[test]
    fn a_part_of_a_matrix_is_multiplied() {
        let (left, right) = (matrix(3, 4), matrix(4, 6));
        let mut out = [0.0; 6];
        // The last two columns of the left one by the middle two rows and columns of the right one.
        multiply((3, 2, 2), MatrixView::rows(&left[2..], 4), MatrixView::rows(&right[8..], 6), &mut out, 2);
        for row in 0..3 {
            for column in 0..2 {
                let expected: f32 = (0..2).map(|i| left[row * 4 + 2 + i] * right[8 + i * 6 + column]).sum();
                assert!((out[row * 2 + column] - expected).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn a_softmax_adds_up_to_one_and_skips_what_is_minus_infinity() {
        let mut values = [1.0, 2.0, f32::NEG_INFINITY];
        softmax(&mut values);
        assert!((values[0] + values[1] - 1.0).abs() < 1e-6 && values[2] == 0.0, "{values:?}");
    }

    #[test]
    fn a_gaussian_unit_is_what_the_tables_say() {
        let mut values = [-9.0, -1.0, 0.0, 0.5, 1.0, 3.0, 9.0];
        gelu(&mut values);
        let expected = [0.0, -0.158_655, 0.0, 0.345_731, 0.841_345, 2.995_95, 9.0];
        for (value, expected) in values.iter().zip(expected) {
            assert!((value - expected).abs() < 1e-6, "{value} instead of {expected}");
        }
    }

    #[test]
    fn norms_have_the_mean_and_the_size_they_are_for() {
        let mut row = matrix(1, 8);
        let normed = rms_norm(&row, &[1.0; 8], 0.0);
        assert!((dot(&normed, &normed) - 8.0).abs() < 1e-4);
        layer_norm(&mut row, &[1.0; 8], &[0.5; 8], 0.0);
        assert!((row.iter().sum::<f32>() - 4.0).abs() < 1e-4);
    }
}
