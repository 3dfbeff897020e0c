//! The forward pass of a Llama-shaped model with Q8_0 weights on the CPU, and its key-value cache. Knows tokens only
//! as numbers; sampling, text and requests live elsewhere.
//!
//! Own code instead of candle's `quantized_llama` for three reasons: the products of [`Matrix`], fused weights for
//! queries, keys and values, and a cache that can be cut back to a shared prefix.

use candle_core::{DType, Device, Result, Tensor};
use candle_nn::{ops, rotary_emb};

use super::matrix::Matrix;

/// Positions by which the key-value cache grows.
const CACHE_STEP: usize = 512;

/// The shape of the model, as its file states it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Shape {
    pub layers: usize,
    pub width: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub feed_forward: usize,
    pub norm_epsilon: f32,
    pub rope_base: f32,
}

impl Shape {
    pub(super) fn head_width(&self) -> usize {
        self.width / self.heads
    }

    fn kv_width(&self) -> usize {
        self.kv_heads * self.head_width()
    }
}

/// The weights of one layer: queries, keys and values in one matrix, gate and up projection in another.
pub(super) struct LayerWeights {
    pub attention_norm: Tensor,
    pub qkv: Matrix,
    pub attention_output: Matrix,
    pub feed_forward_norm: Tensor,
    pub gate_up: Matrix,
    pub down: Matrix,
}

/// All weights, as read from the file.
pub(super) struct Weights {
    pub embedding: Matrix,
    pub layers: Vec<LayerWeights>,
    pub output_norm: Tensor,
}

/// Keys and values of one layer, `[kv_heads, capacity, head_width]` each; grows by [`CACHE_STEP`] positions.
struct Cache {
    keys: Tensor,
    values: Tensor,
}

impl Cache {
    fn new(shape: &Shape) -> Result<Self> {
        let empty =
            || Tensor::zeros((shape.kv_heads, CACHE_STEP, shape.head_width()), DType::F32, &Device::Cpu);
        Ok(Self { keys: empty()?, values: empty()? })
    }

    /// Writes keys and values at `position` and gives all of them up to there.
    fn put(&mut self, keys: &Tensor, values: &Tensor, position: usize) -> Result<(Tensor, Tensor)> {
        let end = position + keys.dim(1)?;
        for (store, new) in [(&mut self.keys, keys), (&mut self.values, values)] {
            let (heads, capacity, width) = store.dims3()?;
            if end > capacity {
                let grown = Tensor::zeros(
                    (heads, end.next_multiple_of(CACHE_STEP), width),
                    store.dtype(),
                    store.device(),
                )?;
                grown.slice_set(store, 1, 0)?;
                *store = grown;
            }
            store.slice_set(new, 1, position)?;
        }
        Ok((self.keys.narrow(1, 0, end)?, self.values.narrow(1, 0, end)?))
    }
}

struct Layer {
    weights: LayerWeights,
    cache: Cache,
}

/// What all layers share during one pass.
struct Pass {
    position: usize,
    cos: Tensor,
    sin: Tensor,
    mask: Option<Tensor>,
}

impl Layer {
    fn forward(&mut self, rows: &Tensor, shape: &Shape, pass: &Pass) -> Result<Tensor> {
        let normed = ops::rms_norm(rows, &self.weights.attention_norm, shape.norm_epsilon)?;
        let rows = (rows + self.attend(&normed, shape, pass)?)?;
        let normed = ops::rms_norm(&rows, &self.weights.feed_forward_norm, shape.norm_epsilon)?;
        let gate_up = self.weights.gate_up.forward(&normed)?;
        let gate = gate_up.narrow(1, 0, shape.feed_forward)?.contiguous()?;
        let up = gate_up.narrow(1, shape.feed_forward, shape.feed_forward)?.contiguous()?;
        rows + self.weights.down.forward(&(ops::silu(&gate)? * up)?)?
    }

    fn attend(&mut self, rows: &Tensor, shape: &Shape, pass: &Pass) -> Result<Tensor> {
        let tokens = rows.dim(0)?;
        let qkv = self.weights.qkv.forward(rows)?;
        let heads = |start: usize, count: usize| {
            let part = qkv.narrow(1, start, count * shape.head_width())?;
            part.reshape((tokens, count, shape.head_width()))?.transpose(0, 1)?.contiguous()
        };
        let rotate = |part: Tensor| rotary_emb::rope_i(&part.unsqueeze(0)?, &pass.cos, &pass.sin)?.squeeze(0);
        let queries = rotate(heads(0, shape.heads)?)?;
        let keys = rotate(heads(shape.width, shape.kv_heads)?)?;
        let values = heads(shape.width + shape.kv_width(), shape.kv_heads)?;
        let (keys, values) = self.cache.put(&keys, &values, pass.position)?;

        // Queries that share a key head stand one after the other, so a group is one matrix.
        let group = shape.heads / shape.kv_heads;
        let queries = (queries * f64::from(shape.head_width() as f32).sqrt().recip())?;
        let scores =
            queries.reshape((shape.kv_heads, group * tokens, shape.head_width()))?.matmul(&keys.t()?)?;
        let scores = scores.reshape((shape.heads, tokens, pass.position + tokens))?;
        let scores = match &pass.mask {
            Some(mask) => scores.broadcast_add(mask)?,
            None => scores,
        };
        let weights = ops::softmax_last_dim(&scores)?;
        let weights = weights.reshape((shape.kv_heads, group * tokens, pass.position + tokens))?;
        let mixed = weights.matmul(&values)?.reshape((shape.heads, tokens, shape.head_width()))?;
        self.weights.attention_output.forward(&mixed.transpose(0, 1)?.reshape((tokens, shape.width))?)
    }
}

/// A model and the keys and values of what it has read so far.
pub(super) struct Llama {
    shape: Shape,
    embedding: Matrix,
    layers: Vec<Layer>,
    output_norm: Tensor,
    cos: Tensor,
    sin: Tensor,
}

impl Llama {
    /// A model for up to `window` positions.
    pub(super) fn new(shape: Shape, weights: Weights, window: usize) -> Result<Self> {
        let (cos, sin) = rotations(&shape, window)?;
        Ok(Self {
            embedding: weights.embedding,
            layers: weights
                .layers
                .into_iter()
                .map(|weights| Ok(Layer { weights, cache: Cache::new(&shape)? }))
                .collect::<Result<_>>()?,
            output_norm: weights.output_norm,
            shape,
            cos,
            sin,
        })
    }

    /// Reads `tokens` at `position`; everything cached from there on is overwritten. Gives the logits after the last
    /// token, or `None` as soon as `proceed` says no, and then the cache is good up to `position` only.
    pub(super) fn forward(
        &mut self,
        tokens: &[u32],
        position: usize,
        proceed: &dyn Fn() -> bool,
    ) -> Result<Option<Vec<f32>>> {
        let count = tokens.len();
        let pass = Pass {
            position,
            cos: self.cos.narrow(0, position, count)?,
            sin: self.sin.narrow(0, position, count)?,
            mask: if count > 1 { Some(causal_mask(count, position)?) } else { None },
        };
        let mut rows = self.embedding.rows(tokens)?;
        for layer in &mut self.layers {
            if !proceed() {
                return Ok(None);
            }
            rows = layer.forward(&rows, &self.shape, &pass)?;
        }
        let last = rows.narrow(0, count.saturating_sub(1), 1)?.contiguous()?;
        let last = ops::rms_norm(&last, &self.output_norm, self.shape.norm_epsilon)?;
        // The output matrix is the embedding (tied weights).
        self.embedding.forward(&last)?.squeeze(0)?.to_vec1().map(Some)
    }
}

fn rotations(shape: &Shape, window: usize) -> Result<(Tensor, Tensor)> {
    let width = shape.head_width();
    let angles: Vec<f32> = (0..window)
        .flat_map(|position| {
            (0..width)
                .step_by(2)
                .map(move |index| position as f32 / shape.rope_base.powf(index as f32 / width as f32))
        })
        .collect();
    let angles = Tensor::from_vec(angles, (window, width / 2), &Device::Cpu)?;
    Ok((angles.cos()?, angles.sin()?))
}

/// `[tokens, position + tokens]`: zero where a token may look, minus infinity at what comes after it.
fn causal_mask(tokens: usize, position: usize) -> Result<Tensor> {
    let seen = position + tokens;
    let mask: Vec<f32> = (position..seen)
        .flat_map(|row| (0..seen).map(move |column| if column <= row { 0.0 } else { f32::NEG_INFINITY }))
        .collect();
    Tensor::from_vec(mask, (tokens, seen), &Device::Cpu)
}
