//! Weight matrices in Q8_0: blocks of 32 signed bytes under one scale. Knows how to multiply by them and nothing of
//! the model.
//!
//! A few rows are multiplied by the bytes directly. For many, an f32 product is several times faster, even including
//! de-quantisation.

use rayon::prelude::*;

use super::numbers::{self, MatrixView};

/// Weights under one scale.
pub(super) const BLOCK: usize = 32;
/// Bytes of a block in a file: the scale as f16, then the weights.
pub(super) const BLOCK_BYTES: usize = 2 + BLOCK;
/// From this many input rows on, de-quantising the weights for an f32 product costs less than it saves.
const DENSE_ROWS: usize = 24;
/// Output rows of one unit of parallel work, at the least.
const UNIT: usize = 96;
/// Maximum units of parallel work per matrix: enough to share evenly, few enough to cost nothing.
const UNITS: usize = 8;
/// f32 lanes summed side by side.
const LANES: usize = 8;

/// A matrix of `outputs` rows of `inputs` weights each.
pub(super) struct Matrix {
    outputs: usize,
    inputs: usize,
    weights: Vec<i8>,
    scales: Vec<f32>,
}

impl Matrix {
    /// A matrix from the bytes of a file; `None` if their number does not fit the shape.
    pub(super) fn from_bytes(outputs: usize, inputs: usize, bytes: &[u8]) -> Option<Self> {
        let (blocks, rest) = bytes.as_chunks::<BLOCK_BYTES>();
        let expected = outputs.checked_mul(inputs)? / BLOCK;
        if !rest.is_empty() || blocks.len() != expected || inputs == 0 || !inputs.is_multiple_of(BLOCK) {
            return None;
        }
        let mut weights = vec![0; outputs * inputs];
        let (targets, _) = weights.as_chunks_mut::<BLOCK>();
        let mut scales = vec![0.0; blocks.len()];
        targets.par_iter_mut().zip(&mut scales).zip(blocks).with_min_len(1 << 12).for_each(
            |((target, scale), block)| {
                *scale = half::f16::from_le_bytes([block[0], block[1]]).to_f32();
                for (weight, byte) in target.iter_mut().zip(&block[2..]) {
                    *weight = byte.cast_signed();
                }
            },
        );
        Some(Self { outputs, inputs, weights, scales })
    }

    /// Quantises rows of weights: each block by its largest one. `None` if the rows are not whole blocks.
    pub(super) fn quantize(values: &[f32]) -> Option<Vec<u8>> {
        let (blocks, rest) = values.as_chunks::<BLOCK>();
        let mut bytes = Vec::with_capacity(blocks.len() * BLOCK_BYTES);
        for block in blocks {
            let largest = block.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
            let scale = largest / 127.0;
            let inverse = if scale == 0.0 { 0.0 } else { scale.recip() };
            bytes.extend(half::f16::from_f32(scale).to_le_bytes());
            bytes.extend(block.iter().map(|value| ((value * inverse).round() as i8).cast_unsigned()));
        }
        rest.is_empty().then_some(bytes)
    }

    /// `rows · selfᵀ`: one output row for each row of `rows`.
    pub(super) fn forward(&self, rows: &[f32]) -> Vec<f32> {
        let count = rows.len() / self.inputs;
        // A row per output first, so that threads write to separate memory.
        let mut products = vec![0.0; self.outputs * count];
        if count >= DENSE_ROWS {
            self.multiply_dense(rows, count, &mut products);
        } else {
            self.multiply(rows, count, &mut products);
        }
        if count == 1 {
            return products;
        }
        let mut by_row = vec![0.0; products.len()];
        for (output, products) in products.chunks_exact(count).enumerate() {
            for (row, product) in by_row.chunks_exact_mut(self.outputs).zip(products) {
                row[output] = *product;
            }
        }
        by_row
    }

    /// The rows numbered `ids`, as from an embedding table; unknown numbers yield zeros.
    pub(super) fn rows(&self, ids: &[u32]) -> Vec<f32> {
        let mut rows = vec![0.0; ids.len() * self.inputs];
        for (row, &id) in rows.chunks_exact_mut(self.inputs).zip(ids) {
            let id = id as usize;
            let weights = self.weights.chunks_exact(self.inputs).nth(id).unwrap_or_default();
            let scales = self.scales.chunks_exact(self.inputs / BLOCK).nth(id).unwrap_or_default();
            restore(weights, scales, row);
        }
        rows
    }

    fn multiply(&self, inputs: &[f32], count: usize, products: &mut [f32]) {
        let unit = (self.outputs / UNITS).max(UNIT);
        products
            .par_chunks_mut(unit * count)
            .zip(self.weights.par_chunks(unit * self.inputs))
            .zip(self.scales.par_chunks(unit * self.inputs / BLOCK))
            .for_each(|((products, weights), scales)| {
                let width = self.inputs;
                pulp::Arch::new().dispatch(Products { weights, scales, width, inputs, products });
            });
    }

    /// De-quantises a few output rows at a time, so that they are still cached when they are multiplied.
    fn multiply_dense(&self, rows: &[f32], count: usize, products: &mut [f32]) {
        products
            .par_chunks_mut(UNIT * count)
            .zip(self.weights.par_chunks(UNIT * self.inputs))
            .zip(self.scales.par_chunks(UNIT * self.inputs / BLOCK))
            .for_each(|((products, weights), scales)| {
                let mut values = vec![0.0; weights.len()];
                pulp::Arch::new().dispatch(Restore { weights, scales, values: &mut values });
                let size = (weights.len() / self.inputs, self.inputs, count);
                let rows = MatrixView::rows(rows, self.inputs).transposed();
                numbers::multiply(size, MatrixView::rows(&values, self.inputs), rows, products, count);
            });
    }
}

/// The work of one thread in [`Matrix::multiply`]: `products[output][row]`. A struct and not a closure because only
/// so is the body compiled for the vector instructions that the machine has.
struct Products<'a> {
    weights: &'a [i8],
    scales: &'a [f32],
    width: usize,
    inputs: &'a [f32],
    products: &'a mut [f32],
}

impl pulp::WithSimd for Products<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        let Self { weights, scales, width, inputs, products } = self;
        let rows = (inputs.len() / width).max(1);
        let outputs = weights.chunks_exact(width).zip(scales.chunks_exact(width / BLOCK));
        for (products, (weights, scales)) in products.chunks_exact_mut(rows).zip(outputs) {
            for (product, input) in products.iter_mut().zip(inputs.chunks_exact(width)) {
                *product = dot(weights, scales, input);
            }
        }
    }
}

#[inline(always)]
fn dot(weights: &[i8], scales: &[f32], input: &[f32]) -> f32 {
    let mut total = [0.0; LANES];
    let (weights, _) = weights.as_chunks::<BLOCK>();
    let (input, _) = input.as_chunks::<BLOCK>();
    for ((weights, input), &scale) in weights.iter().zip(input).zip(scales) {
        let mut part = [0.0; LANES];
        for step in 0..BLOCK / LANES {
            for lane in 0..LANES {
                part[lane] += f32::from(weights[step * LANES + lane]) * input[step * LANES + lane];
            }
        }
        for lane in 0..LANES {
            total[lane] += part[lane] * scale;
        }
    }
    total.iter().sum()
}

/// The work of one thread in [`Matrix::multiply_dense`].
struct Restore<'a> {
    weights: &'a [i8],
    scales: &'a [f32],
    values: &'a mut [f32],
}

impl pulp::WithSimd for Restore<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        restore(self.weights, self.scales, self.values);
    }
}

#[inline(always)]
fn restore(weights: &[i8], scales: &[f32], values: &mut [f32]) {
    let (weights, _) = weights.as_chunks::<BLOCK>();
    let (values, _) = values.as_chunks_mut::<BLOCK>();
    for ((values, weights), &scale) in values.iter_mut().zip(weights).zip(scales) {
        for (value, &weight) in values.iter_mut().zip(weights) {
            *value = f32::from(weight) * scale;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(outputs: usize, inputs: usize) -> Matrix {
        let blocks = (0..outputs * inputs / BLOCK).flat_map(|block| {
            let scale = half::f16::from_f32(0.01 + block as f32 * 0.001).to_le_bytes();
            scale.into_iter().chain((0..BLOCK).map(move |index| (block * 31 + index * 7) as u8))
        });
        Matrix::from_bytes(outputs, inputs, &blocks.collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn few_rows_and_many_rows_give_the_same_products() {
        let matrix = matrix(200, 64);
        let input: Vec<f32> = (0..64 * DENSE_ROWS).map(|index| (index as f32 * 0.37).sin()).collect();
        let dense = matrix.forward(&input);
        for count in [1, 2, DENSE_ROWS - 1] {
            let sparse = matrix.forward(&input[..64 * count]);
            assert_eq!(sparse.len(), 200 * count);
            for (sparse, dense) in sparse.iter().zip(&dense) {
                assert!((sparse - dense).abs() <= 1e-3 * dense.abs().max(1.0), "{sparse} against {dense}");
            }
        }
    }

    #[test]
    fn rows_are_de_quantised_and_unknown_ones_are_zero() {
        let rows = matrix(3, 32).rows(&[1, 7]);
        assert!((rows[1] - 38.0 * 0.011).abs() < 1e-3, "{}", rows[1]);
        assert!(rows[32..].iter().all(|&value| value == 0.0));
    }

    #[test]
    fn quantised_weights_are_near_what_they_were() {
        let values: Vec<f32> = (0..64).map(|index| (index as f32).sin()).chain([0.0; 32]).collect();
        let bytes = Matrix::quantize(&values).unwrap();
        let restored = Matrix::from_bytes(3, 32, &bytes).unwrap().rows(&[0, 1, 2]);
        for (restored, value) in restored.iter().zip(&values) {
            assert!((restored - value).abs() < 0.005, "{restored} {value}");
        }
        assert!(Matrix::quantize(&values[..33]).is_none());
    }

    #[test]
    fn bytes_that_do_not_fit_the_shape_are_refused() {
        for (outputs, inputs, bytes) in
            [(1, 32, 33), (1, 33, 34), (2, 32, 34), (1, 0, 0), (usize::MAX, 64, 34)]
        {
            assert!(Matrix::from_bytes(outputs, inputs, &vec![0; bytes]).is_none());
        }
    }
}
