//! The weights of a linear layer in the order in which a product reads them: laid out once, when they are loaded, where a
//! general product would reorder all of them for each text. Knows nothing of the model.

use rayon::prelude::*;

use super::numbers;

/// Outputs of a panel: a few vector registers, whatever their size.
const PANEL: usize = 32;
/// Registers of outputs that are summed side by side.
const ABREAST: usize = 2;
/// Rows that are multiplied by a panel at once: as many as have their sums in registers.
const ROWS: usize = 6;
/// Panels that a thread takes at a time, at the least.
const SHARE: usize = 4;

/// The weights and the bias of a linear layer.
pub(super) struct Panels {
    inputs: usize,
    /// Panel after panel, each with its outputs of one input after the other.
    weights: Vec<f32>,
    bias: Vec<f32>,
}

impl Panels {
    /// Lays out one row of `inputs` weights for each number of `bias`.
    pub(super) fn new(rows: &[f32], inputs: usize, bias: Vec<f32>) -> Self {
        let mut weights = vec![0.0; bias.len().div_ceil(PANEL) * PANEL * inputs];
        for (panel, rows) in weights.chunks_exact_mut(PANEL * inputs).zip(rows.chunks(PANEL * inputs)) {
            for (output, row) in rows.chunks_exact(inputs).enumerate() {
                for (to, weight) in panel.iter_mut().skip(output).step_by(PANEL).zip(row) {
                    *to = *weight;
                }
            }
        }
        Self { inputs, weights, bias }
    }

    /// `rows · weightsᵀ + bias`. Threads share the panels, so that each reads its weights once.
    pub(super) fn forward(&self, rows: &[f32]) -> Vec<f32> {
        let (inputs, outputs) = (self.inputs, self.bias.len());
        let count = rows.len() / inputs;
        let padded = count.next_multiple_of(ROWS);
        let groups = grouped(rows, inputs);
        let mut products = vec![0.0; padded * outputs.next_multiple_of(PANEL)];
        products
            .par_chunks_mut(padded * PANEL)
            .zip(self.weights.par_chunks(inputs * PANEL))
            .with_min_len(SHARE)
            .for_each(|(products, weights)| {
                pulp::Arch::new().dispatch(Products { groups: &groups, inputs, weights, products });
            });
        let mut out = Vec::with_capacity(count * outputs);
        for row in 0..count {
            for (first, panel) in (0..outputs).step_by(PANEL).zip(products.chunks_exact(padded * PANEL)) {
                out.extend_from_slice(&panel[row * PANEL..][..PANEL.min(outputs - first)]);
            }
        }
        out.chunks_exact_mut(outputs).for_each(|row| numbers::add(row, &self.bias));
        out
    }
}

/// Rows in groups, each with the numbers of its rows for one input after the other; rows that the last one lacks are zero.
fn grouped(rows: &[f32], inputs: usize) -> Vec<f32> {
    let mut groups = vec![0.0; (rows.len() / inputs).next_multiple_of(ROWS) * inputs];
    for (group, rows) in groups.chunks_exact_mut(ROWS * inputs).zip(rows.chunks(ROWS * inputs)) {
        for (place, row) in rows.chunks_exact(inputs).enumerate() {
            for (to, number) in group.iter_mut().skip(place).step_by(ROWS).zip(row) {
                *to = *number;
            }
        }
    }
    groups
}

/// All rows times a panel. A struct and not a closure because only so is the body compiled for the vector instructions that
/// the machine has.
struct Products<'a> {
    groups: &'a [f32],
    inputs: usize,
    weights: &'a [f32],
    products: &'a mut [f32],
}

impl pulp::WithSimd for Products<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, simd: S) {
        let groups = self.groups.chunks_exact(ROWS * self.inputs);
        for (products, group) in self.products.chunks_exact_mut(ROWS * PANEL).zip(groups) {
            multiply_group(simd, group, self.weights, products);
        }
    }
}

/// One group of rows times a panel.
#[inline(always)]
fn multiply_group<S: pulp::Simd>(simd: S, group: &[f32], weights: &[f32], products: &mut [f32]) {
    let (weights, _) = weights.as_chunks::<PANEL>();
    let (group, _) = group.as_chunks::<ROWS>();
    let step = ABREAST * S::F32_LANES;
    for start in (0..PANEL).step_by(step) {
        let mut sums = [[simd.splat_f32s(0.0); ABREAST]; ROWS];
        for (weights, numbers) in weights.iter().zip(group) {
            let (weights, _) = S::as_simd_f32s(&weights[start..start + step]);
            for (sums, number) in sums.iter_mut().zip(numbers) {
                let number = simd.splat_f32s(*number);
                for (sum, weight) in sums.iter_mut().zip(weights) {
                    *sum = simd.mul_add_e_f32s(number, *weight, *sum);
                }
            }
        }
        for (products, sums) in products.chunks_exact_mut(PANEL).zip(&sums) {
            let (products, _) = S::as_mut_simd_f32s(&mut products[start..start + step]);
            products.copy_from_slice(sums);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_rows_and_outputs_gives_the_products() {
        let numbers = |many: usize| (0..many).map(|at| (at as f32 * 0.37).sin()).collect::<Vec<f32>>();
        for (count, inputs, outputs) in [(1, 5, 3), (ROWS, 50, PANEL), (2 * ROWS + 1, 7, 5 * PANEL + 9)] {
            let (rows, weights, bias) =
                (numbers(count * inputs), numbers(outputs * inputs), numbers(outputs));
            let products = Panels::new(&weights, inputs, bias.clone()).forward(&rows);
            assert_eq!(products.len(), count * outputs);
            for (at, product) in products.iter().enumerate() {
                let (row, output) = (at / outputs, at % outputs);
                let pairs = rows[row * inputs..][..inputs].iter().zip(&weights[output * inputs..]);
                let expected = pairs.map(|(a, b)| a * b).sum::<f32>() + bias[output];
                assert!((product - expected).abs() < 1e-4, "{product} instead of {expected}");
            }
        }
    }
}
