//! The forward pass of the BERT encoder that MiniLM is, for one text at a time. Knows tokens only as numbers.

use candle_core::{D, Device, Result, Tensor};
use candle_nn::{Embedding, LayerNorm, Linear, Module, VarBuilder, embedding, layer_norm, linear, ops};

/// The shape of the model.
pub(super) struct Shape {
    pub vocabulary: usize,
    /// Kinds of segments a text may have; only the first is used.
    pub segments: usize,
    pub positions: usize,
    pub width: usize,
    pub layers: usize,
    pub heads: usize,
    pub feed_forward: usize,
    pub norm_epsilon: f64,
}

/// The encoder with its weights.
pub(super) struct Bert {
    words: Embedding,
    segments: Embedding,
    positions: Embedding,
    norm: LayerNorm,
    layers: Vec<Layer>,
}

impl Bert {
    /// The encoder from weights named as the published model names them.
    pub(super) fn load(weights: &VarBuilder, shape: &Shape) -> Result<Self> {
        let (input, encoder) = (weights.pp("embeddings"), weights.pp("encoder"));
        let width = shape.width;
        Ok(Self {
            words: embedding(shape.vocabulary, width, input.pp("word_embeddings"))?,
            segments: embedding(shape.segments, width, input.pp("token_type_embeddings"))?,
            positions: embedding(shape.positions, width, input.pp("position_embeddings"))?,
            norm: layer_norm(width, shape.norm_epsilon, input.pp("LayerNorm"))?,
            layers: (0..shape.layers)
                .map(|index| Layer::load(&encoder.pp(format!("layer.{index}")), shape))
                .collect::<Result<_>>()?,
        })
    }

    /// The state of each token after the last layer: one text, one row a token.
    pub(super) fn forward(&self, tokens: &[u32]) -> Result<Tensor> {
        let tokens = Tensor::new(tokens, &Device::Cpu)?.unsqueeze(0)?;
        let length = u32::try_from(tokens.dim(1)?).map_err(candle_core::Error::wrap)?;
        let words = self.words.forward(&tokens)?;
        let segments = self.segments.forward(&tokens.zeros_like()?)?;
        let positions = self.positions.forward(&Tensor::arange(0, length, &Device::Cpu)?)?;
        let input = (words + segments)?.broadcast_add(&positions)?;
        let mut states = self.norm.forward(&input)?;
        for layer in &self.layers {
            states = layer.forward(&states)?;
        }
        Ok(states)
    }
}

struct Layer {
    heads: usize,
    query: Linear,
    key: Linear,
    value: Linear,
    attended: Linear,
    attended_norm: LayerNorm,
    up: Linear,
    down: Linear,
    norm: LayerNorm,
}

impl Layer {
    fn load(weights: &VarBuilder, shape: &Shape) -> Result<Self> {
        let Shape { width, heads, feed_forward, norm_epsilon, .. } = *shape;
        let square = |name: &str| linear(width, width, weights.pp("attention").pp(name));
        Ok(Self {
            heads,
            query: square("self.query")?,
            key: square("self.key")?,
            value: square("self.value")?,
            attended: square("output.dense")?,
            attended_norm: layer_norm(width, norm_epsilon, weights.pp("attention.output.LayerNorm"))?,
            up: linear(width, feed_forward, weights.pp("intermediate.dense"))?,
            down: linear(feed_forward, width, weights.pp("output.dense"))?,
            norm: layer_norm(width, norm_epsilon, weights.pp("output.LayerNorm"))?,
        })
    }

    fn forward(&self, states: &Tensor) -> Result<Tensor> {
        let attended = self.attended.forward(&self.attend(states)?)?;
        let attended = self.attended_norm.forward(&(attended + states)?)?;
        let output = self.down.forward(&self.up.forward(&attended)?.gelu_erf()?)?;
        self.norm.forward(&(output + attended)?)
    }

    fn attend(&self, states: &Tensor) -> Result<Tensor> {
        let (texts, length, width) = states.dims3()?;
        let head_width = width / self.heads;
        let split = |projection: &Linear| {
            let projected = projection.forward(states)?;
            projected.reshape((texts, length, self.heads, head_width))?.transpose(1, 2)?.contiguous()
        };
        let (query, key, value) = (split(&self.query)?, split(&self.key)?, split(&self.value)?);
        let scores = (query.matmul(&key.t()?)? / (head_width as f64).sqrt())?;
        let context = ops::softmax(&scores, D::Minus1)?.matmul(&value)?;
        context.transpose(1, 2)?.contiguous()?.flatten_from(D::Minus2)
    }
}
