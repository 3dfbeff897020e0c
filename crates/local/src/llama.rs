//! The forward pass of a Llama-shaped model with Q8_0 weights on the CPU, and its key-value cache. Knows tokens only
//! as numbers; sampling, text and requests live elsewhere.

use rayon::prelude::*;

use super::matrix::Matrix;
use super::numbers::{self, MatrixView};

/// From this many tokens on, attention is computed as matrix products.
const BLOCKED_TOKENS: usize = 8;

/// The shape of the model, as its file states it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LlamaShape {
    pub layers: usize,
    pub width: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub feed_forward: usize,
    pub norm_epsilon: f32,
    pub rope_base: f32,
}

impl LlamaShape {
    pub(super) fn head_width(&self) -> usize {
        self.width / self.heads
    }

    fn kv_width(&self) -> usize {
        self.kv_heads * self.head_width()
    }
}

/// The weights of one layer: queries, keys and values in one matrix, gate and up projection in another.
pub(super) struct LayerWeights {
    pub attention_norm: Vec<f32>,
    pub qkv: Matrix,
    pub attention_output: Matrix,
    pub feed_forward_norm: Vec<f32>,
    pub gate_up: Matrix,
    pub down: Matrix,
}

/// All weights, as read from the file.
pub(super) struct LlamaWeights {
    pub embedding: Matrix,
    pub layers: Vec<LayerWeights>,
    pub output_norm: Vec<f32>,
}

/// Keys and values of one layer: a row for each position, with all heads.
#[derive(Default)]
struct KvCache {
    keys: Vec<f32>,
    values: Vec<f32>,
}

struct DecoderLayer {
    weights: LayerWeights,
    cache: KvCache,
}

/// What all layers share during one pass: the first position, and the turns of each.
struct Pass<'a> {
    position: usize,
    turns: &'a [Turn],
}

/// Cosine and sine of an angle.
type Turn = (f32, f32);

impl DecoderLayer {
    fn forward(&mut self, rows: &mut [f32], shape: &LlamaShape, pass: &Pass<'_>) {
        let normed = numbers::rms_norm(rows, &self.weights.attention_norm, shape.norm_epsilon);
        numbers::add(rows, &self.attend(&normed, shape, pass));
        let normed = numbers::rms_norm(rows, &self.weights.feed_forward_norm, shape.norm_epsilon);
        let gate_up = self.weights.gate_up.forward(&normed);
        let gated: Vec<f32> = gate_up
            .chunks_exact(2 * shape.feed_forward)
            .map(|row| row.split_at(shape.feed_forward))
            .flat_map(|(gate, up)| gate.iter().zip(up).map(|(gate, up)| numbers::silu(*gate) * up))
            .collect();
        numbers::add(rows, &self.weights.down.forward(&gated));
    }

    fn attend(&mut self, rows: &[f32], shape: &LlamaShape, pass: &Pass<'_>) -> Vec<f32> {
        let (width, kv_width, head_width) = (shape.width, shape.kv_width(), shape.head_width());
        let mut qkv = self.weights.qkv.forward(rows);
        let KvCache { keys, values } = &mut self.cache;
        keys.truncate(pass.position * kv_width);
        values.truncate(pass.position * kv_width);
        let scale = (head_width as f32).sqrt().recip();
        for (row, turns) in
            qkv.chunks_exact_mut(width + 2 * kv_width).zip(pass.turns.chunks_exact(head_width / 2))
        {
            let (queries, rest) = row.split_at_mut(width);
            let (new_keys, new_values) = rest.split_at_mut(kv_width);
            queries.chunks_exact_mut(head_width).for_each(|head| turn(head, turns));
            new_keys.chunks_exact_mut(head_width).for_each(|head| turn(head, turns));
            numbers::scale(queries, scale);
            keys.extend_from_slice(new_keys);
            values.extend_from_slice(new_values);
        }
        let tokens = rows.len() / width;
        let heads: Vec<Vec<f32>> = (0..shape.heads)
            .into_par_iter()
            .map(|head| {
                // Queries that follow each other share a key head.
                let shared = head / (shape.heads / shape.kv_heads) * head_width;
                let head = Head {
                    queries: MatrixView::rows(&qkv[head * head_width..], width + 2 * kv_width),
                    keys: MatrixView::rows(&keys[shared..], kv_width),
                    values: MatrixView::rows(&values[shared..], kv_width),
                    width: head_width,
                    position: pass.position,
                    tokens,
                };
                if tokens < BLOCKED_TOKENS { pulp::Arch::new().dispatch(head) } else { head.blocked() }
            })
            .collect();
        let mut mixed = Vec::with_capacity(rows.len());
        for token in 0..tokens {
            for head in &heads {
                mixed.extend_from_slice(&head[token * head_width..(token + 1) * head_width]);
            }
        }
        self.weights.attention_output.forward(&mixed)
    }
}

/// Turns each pair of neighbours by its angle.
fn turn(head: &mut [f32], turns: &[Turn]) {
    let (pairs, _) = head.as_chunks_mut::<2>();
    for ([x, y], (cos, sin)) in pairs.iter_mut().zip(turns) {
        (*x, *y) = (*x * cos - *y * sin, *x * sin + *y * cos);
    }
}

/// One head of attention in one pass; each token attends to itself and earlier tokens.
#[derive(Clone, Copy)]
struct Head<'a> {
    queries: MatrixView<'a>,
    keys: MatrixView<'a>,
    values: MatrixView<'a>,
    width: usize,
    /// The position of the first token.
    position: usize,
    tokens: usize,
}

impl Head<'_> {
    /// The mixed values of each token, as products of matrices.
    fn blocked(self) -> Vec<f32> {
        let Self { queries, keys, values, width, position, tokens } = self;
        let seen = position + tokens;
        let mut scores = vec![0.0; tokens * seen];
        numbers::multiply((tokens, width, seen), queries, keys.transposed(), &mut scores, seen);
        for (token, scores) in scores.chunks_exact_mut(seen).enumerate() {
            let (looked_at, after) = scores.split_at_mut(position + token + 1);
            numbers::softmax(looked_at);
            after.fill(0.0);
        }
        let mut mixed = vec![0.0; tokens * width];
        numbers::multiply((tokens, seen, width), MatrixView::rows(&scores, seen), values, &mut mixed, width);
        mixed
    }
}

/// The same computation token by token, compiled for the machine's vector instructions.
impl pulp::WithSimd for Head<'_> {
    type Output = Vec<f32>;

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) -> Vec<f32> {
        let Self { queries, keys, values, width, position, tokens } = self;
        let mut mixed = vec![0.0; tokens * width];
        let mut scores = Vec::new();
        for (token, mixed) in mixed.chunks_exact_mut(width).enumerate() {
            let query = &queries.values[token * queries.row..][..width];
            scores.clear();
            let rows = keys.values.chunks(keys.row).take(position + token + 1);
            scores.extend(rows.map(|key| numbers::dot(query, &key[..width])));
            numbers::softmax(&mut scores);
            for (share, value) in scores.iter().zip(values.values.chunks(values.row)) {
                for (mixed, value) in mixed.iter_mut().zip(&value[..width]) {
                    *mixed += share * value;
                }
            }
        }
        mixed
    }
}

/// A model with the keys and values of the tokens it has read.
pub(super) struct Llama {
    shape: LlamaShape,
    embedding: Matrix,
    layers: Vec<DecoderLayer>,
    output_norm: Vec<f32>,
    /// For each position, a turn for each pair of numbers of a head.
    turns: Vec<Turn>,
}

impl Llama {
    /// A model for up to `window` positions.
    pub(super) fn new(shape: LlamaShape, weights: LlamaWeights, window: usize) -> Self {
        let layers = weights.layers.into_iter();
        Self {
            embedding: weights.embedding,
            layers: layers.map(|weights| DecoderLayer { weights, cache: KvCache::default() }).collect(),
            output_norm: weights.output_norm,
            turns: turns(&shape, window),
            shape,
        }
    }

    /// Processes `tokens` at `position` and overwrites any later cache entries. Returns the logits after the last
    /// token, or `None` as soon as `proceed` returns false; the cache is then valid only up to `position`.
    pub(super) fn forward(
        &mut self,
        tokens: &[u32],
        position: usize,
        proceed: &dyn Fn() -> bool,
    ) -> Option<Vec<f32>> {
        let pairs = self.shape.head_width() / 2;
        let turns = &self.turns[position * pairs..(position + tokens.len()) * pairs];
        let pass = Pass { position, turns };
        let mut rows = self.embedding.rows(tokens);
        for layer in &mut self.layers {
            if !proceed() {
                return None;
            }
            layer.forward(&mut rows, &self.shape, &pass);
        }
        let last = &rows[rows.len().saturating_sub(self.shape.width)..];
        let last = numbers::rms_norm(last, &self.output_norm, self.shape.norm_epsilon);
        // The output matrix is the embedding (tied weights).
        Some(self.embedding.forward(&last))
    }
}

fn turns(shape: &LlamaShape, window: usize) -> Vec<Turn> {
    let width = shape.head_width();
    let angle =
        |position: usize, index: usize| position as f32 / shape.rope_base.powf(index as f32 / width as f32);
    (0..window)
        .flat_map(|position| (0..width).step_by(2).map(move |index| angle(position, index)))
        .map(|angle| (angle.cos(), angle.sin()))
        .collect()
}
