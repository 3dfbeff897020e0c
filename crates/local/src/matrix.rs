//! Weight matrices in Q8_0: blocks of 32 signed bytes under one scale. Knows how to multiply by them and nothing of
//! the model.
//!
//! Own products instead of candle's: those synchronise both cores at a spinning barrier after each matrix, which on a
//! busy machine costs ten times the work itself; and for many rows an f32 product is several times faster.

use candle_core::{Device, Result, Tensor};
use rayon::prelude::*;

/// Weights under one scale.
pub(super) const BLOCK: usize = 32;
/// Bytes of a block in a file: the scale as f16, then the weights.
pub(super) const BLOCK_BYTES: usize = 2 + BLOCK;
/// From this many input rows on, de-quantising the weights for an f32 product costs less than it saves.
const DENSE_ROWS: usize = 24;
/// Output rows of one unit of parallel work, at the least.
const UNIT: usize = 96;
/// Units of parallel work per matrix, at the most: enough to share evenly, few enough to cost nothing.
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

    /// `rows · selfᵀ`: one output row for each row of `rows`.
    pub(super) fn forward(&self, rows: &Tensor) -> Result<Tensor> {
        let count = rows.dim(0)?;
        if count >= DENSE_ROWS {
            return self.forward_dense(rows);
        }
        let inputs = rows.flatten_all()?.to_vec1::<f32>()?;
        let mut products = vec![0.0; self.outputs * count];
        let unit = (self.outputs / UNITS).max(UNIT);
        products
            .par_chunks_mut(unit * count)
            .zip(self.weights.par_chunks(unit * self.inputs))
            .zip(self.scales.par_chunks(unit * self.inputs / BLOCK))
            .for_each(|((products, weights), scales)| {
                let width = self.inputs;
                pulp::Arch::new().dispatch(Products { weights, scales, width, inputs: &inputs, products });
            });
        Tensor::from_vec(products, (self.outputs, count), &Device::Cpu)?.t()?.contiguous()
    }

    /// The rows numbered `ids`, as an embedding table gives them; unknown numbers give zeros.
    pub(super) fn rows(&self, ids: &[u32]) -> Result<Tensor> {
        let mut rows = vec![0.0; ids.len() * self.inputs];
        for (row, &id) in rows.chunks_exact_mut(self.inputs).zip(ids) {
            let id = id as usize;
            let weights = self.weights.chunks_exact(self.inputs).nth(id).unwrap_or_default();
            let scales = self.scales.chunks_exact(self.inputs / BLOCK).nth(id).unwrap_or_default();
            restore(weights, scales, row);
        }
        Tensor::from_vec(rows, (ids.len(), self.inputs), &Device::Cpu)
    }

    /// De-quantises a few output rows at a time, so that they are still in the cache when they are multiplied.
    fn forward_dense(&self, rows: &Tensor) -> Result<Tensor> {
        let blocks = self
            .weights
            .par_chunks(UNIT * self.inputs)
            .zip(self.scales.par_chunks(UNIT * self.inputs / BLOCK));
        let products = blocks.map(|(weights, scales)| {
            let mut values = vec![0.0; weights.len()];
            pulp::Arch::new().dispatch(Restore { weights, scales, values: &mut values });
            let block = Tensor::from_vec(values, (weights.len() / self.inputs, self.inputs), &Device::Cpu)?;
            rows.matmul(&block.t()?)
        });
        Tensor::cat(&products.collect::<Result<Vec<_>>>()?, 1)
    }
}

/// The work of one thread in [`Matrix::forward`]: `products[output][row]`. A struct and not a closure because only
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

/// The work of one thread in [`Matrix::forward_dense`].
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
        let input = Tensor::from_vec(input, (DENSE_ROWS, 64), &Device::Cpu).unwrap();
        let dense = matrix.forward(&input).unwrap().to_vec2::<f32>().unwrap();
        for count in [1, 2, DENSE_ROWS - 1] {
            let sparse =
                matrix.forward(&input.narrow(0, 0, count).unwrap()).unwrap().to_vec2::<f32>().unwrap();
            for (sparse, dense) in sparse.iter().flatten().zip(dense.iter().flatten()) {
                assert!((sparse - dense).abs() <= 1e-3 * dense.abs().max(1.0), "{sparse} against {dense}");
            }
        }
    }

    #[test]
    fn rows_are_de_quantised_and_unknown_ones_are_zero() {
        let matrix = matrix(3, 32);
        let rows = matrix.rows(&[1, 7]).unwrap().to_vec2::<f32>().unwrap();
        assert!((rows[0][1] - 38.0 * 0.011).abs() < 1e-3, "{}", rows[0][1]);
        assert!(rows[1].iter().all(|&value| value == 0.0));
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
