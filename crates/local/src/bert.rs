//! The forward pass of the BERT encoder that MiniLM is, for one text at a time. Knows tokens only as numbers.

use super::numbers::{self, MatrixView};
use super::safetensors::Tensors;

/// The shape of the model.
pub(super) struct BertShape {
    pub vocabulary: usize,
    /// Kinds of segments a text may have; only the first is used.
    pub segments: usize,
    pub positions: usize,
    pub width: usize,
    pub layers: usize,
    pub heads: usize,
    pub feed_forward: usize,
    pub norm_epsilon: f32,
}

/// The encoder with its weights.
pub(super) struct Bert {
    width: usize,
    words: Vec<f32>,
    segments: Vec<f32>,
    positions: Vec<f32>,
    norm: Norm,
    layers: Vec<EncoderLayer>,
}

impl Bert {
    /// Loads the encoder from weights with the published names; the error names the one that is missing or has
    /// another size.
    pub(super) fn load(weights: &Tensors<'_>, shape: &BertShape) -> Result<Self, String> {
        let width = shape.width;
        let table = |name: &str, rows: usize| {
            weights.get(&format!("embeddings.{name}_embeddings.weight"), rows * width)
        };
        Ok(Self {
            width,
            words: table("word", shape.vocabulary)?,
            segments: table("token_type", shape.segments)?,
            positions: table("position", shape.positions)?,
            norm: Norm::load(weights, "embeddings.LayerNorm", shape)?,
            layers: (0..shape.layers)
                .map(|index| EncoderLayer::load(weights, &format!("encoder.layer.{index}"), shape))
                .collect::<Result<_, _>>()?,
        })
    }

    /// The state of each token after the last layer, concatenated. Reads at most as many tokens as there are
    /// positions; unknown numbers count as zero vectors.
    pub(super) fn forward(&self, tokens: &[u32]) -> Vec<f32> {
        let mut states = Vec::with_capacity(tokens.len() * self.width);
        for (token, position) in tokens.iter().zip(self.positions.chunks_exact(self.width)) {
            let mut state = position.to_vec();
            numbers::add(&mut state, self.words.chunks_exact(self.width).nth(*token as usize).unwrap_or(&[]));
            numbers::add(&mut state, &self.segments);
            states.extend(state);
        }
        self.norm.apply(&mut states);
        for layer in &self.layers {
            states = layer.forward(&states);
        }
        states
    }
}

/// The weights of a norm of rows.
struct Norm {
    weights: Vec<f32>,
    bias: Vec<f32>,
    epsilon: f32,
}

impl Norm {
    fn load(weights: &Tensors<'_>, name: &str, shape: &BertShape) -> Result<Self, String> {
        Ok(Self {
            weights: weights.get(&format!("{name}.weight"), shape.width)?,
            bias: weights.get(&format!("{name}.bias"), shape.width)?,
            epsilon: shape.norm_epsilon,
        })
    }

    fn apply(&self, rows: &mut [f32]) {
        numbers::layer_norm(rows, &self.weights, &self.bias, self.epsilon);
    }
}

/// The weights of a linear layer.
struct Linear {
    inputs: usize,
    weights: Vec<f32>,
    bias: Vec<f32>,
}

impl Linear {
    fn load(weights: &Tensors<'_>, name: &str, inputs: usize, outputs: usize) -> Result<Self, String> {
        Ok(Self {
            inputs,
            weights: weights.get(&format!("{name}.weight"), inputs * outputs)?,
            bias: weights.get(&format!("{name}.bias"), outputs)?,
        })
    }

    fn forward(&self, rows: &[f32]) -> Vec<f32> {
        numbers::linear(rows, self.inputs, &self.weights, &self.bias)
    }
}

struct EncoderLayer {
    heads: usize,
    query: Linear,
    key: Linear,
    value: Linear,
    attended: Linear,
    attended_norm: Norm,
    up: Linear,
    down: Linear,
    norm: Norm,
}

impl EncoderLayer {
    fn load(weights: &Tensors<'_>, name: &str, shape: &BertShape) -> Result<Self, String> {
        let BertShape { width, heads, feed_forward, .. } = *shape;
        let linear = |part: &str, inputs: usize, outputs: usize| {
            Linear::load(weights, &format!("{name}.{part}"), inputs, outputs)
        };
        Ok(Self {
            heads,
            query: linear("attention.self.query", width, width)?,
            key: linear("attention.self.key", width, width)?,
            value: linear("attention.self.value", width, width)?,
            attended: linear("attention.output.dense", width, width)?,
            attended_norm: Norm::load(weights, &format!("{name}.attention.output.LayerNorm"), shape)?,
            up: linear("intermediate.dense", width, feed_forward)?,
            down: linear("output.dense", feed_forward, width)?,
            norm: Norm::load(weights, &format!("{name}.output.LayerNorm"), shape)?,
        })
    }

    fn forward(&self, states: &[f32]) -> Vec<f32> {
        let mut attended = self.attended.forward(&self.attend(states));
        numbers::add(&mut attended, states);
        self.attended_norm.apply(&mut attended);
        let mut hidden = self.up.forward(&attended);
        numbers::gelu(&mut hidden);
        let mut output = self.down.forward(&hidden);
        numbers::add(&mut output, &attended);
        self.norm.apply(&mut output);
        output
    }

    fn attend(&self, states: &[f32]) -> Vec<f32> {
        let mut queries = self.query.forward(states);
        let (keys, values) = (self.key.forward(states), self.value.forward(states));
        let width = self.query.inputs;
        let (length, head_width) = (states.len() / width, width / self.heads);
        numbers::scale(&mut queries, (head_width as f32).sqrt().recip());
        let mut scores = vec![0.0; length * length];
        let mut context = vec![0.0; states.len()];
        for head in (0..width).step_by(head_width) {
            // The columns of one head, inside rows of all of them.
            let [queries, keys, values] =
                [&queries, &keys, &values].map(|rows| MatrixView::rows(&rows[head..], width));
            let size = (length, head_width, length);
            numbers::multiply(size, queries, keys.transposed(), &mut scores, length);
            scores.chunks_exact_mut(length).for_each(numbers::softmax);
            let size = (length, length, head_width);
            numbers::multiply(size, MatrixView::rows(&scores, length), values, &mut context[head..], width);
        }
        context
    }
}
