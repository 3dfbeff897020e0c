//! The forward pass of the BERT encoder that MiniLM is, for one text at a time. Knows tokens only as numbers.

use super::numbers::{self, MatrixView};
use super::panels::Panels;
use super::safetensors::Tensors;

/// What each token has for attention: a query, a key and a value.
const ATTENTION: usize = 3;

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

/// Reads linear layers with as many inputs, whose outputs follow one another.
fn linear(
    weights: &Tensors<'_>,
    layer: &str,
    parts: &[&str],
    (inputs, outputs): (usize, usize),
) -> Result<Panels, String> {
    let all = |field: &str, length: usize| {
        let tensors = parts.iter().map(|part| weights.get(&format!("{layer}.{part}.{field}"), length));
        Ok::<_, String>(tensors.collect::<Result<Vec<_>, _>>()?.concat())
    };
    Ok(Panels::new(&all("weight", inputs * outputs)?, inputs, all("bias", outputs)?))
}

struct EncoderLayer {
    width: usize,
    heads: usize,
    /// Queries, keys and values.
    attention: Panels,
    attended: Panels,
    attended_norm: Norm,
    up: Panels,
    down: Panels,
    norm: Norm,
}

impl EncoderLayer {
    fn load(weights: &Tensors<'_>, name: &str, shape: &BertShape) -> Result<Self, String> {
        let BertShape { width, heads, feed_forward, .. } = *shape;
        let linear = |parts: &[&str], size: (usize, usize)| linear(weights, name, parts, size);
        let attention = ["attention.self.query", "attention.self.key", "attention.self.value"];
        Ok(Self {
            width,
            heads,
            attention: linear(&attention, (width, width))?,
            attended: linear(&["attention.output.dense"], (width, width))?,
            attended_norm: Norm::load(weights, &format!("{name}.attention.output.LayerNorm"), shape)?,
            up: linear(&["intermediate.dense"], (width, feed_forward))?,
            down: linear(&["output.dense"], (feed_forward, width))?,
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
        let mut all = self.attention.forward(states);
        let (width, row) = (self.width, ATTENTION * self.width);
        let (length, head_width) = (states.len() / width, width / self.heads);
        let factor = (head_width as f32).sqrt().recip();
        all.chunks_exact_mut(row).for_each(|row| numbers::scale(&mut row[..width], factor));
        let mut scores = vec![0.0; length * length];
        let mut context = vec![0.0; states.len()];
        for head in (0..width).step_by(head_width) {
            // The columns of one head, inside rows of all of them.
            let [queries, keys, values] =
                [0, 1, 2].map(|part| MatrixView::rows(&all[part * width + head..], row));
            let size = (length, head_width, length);
            numbers::multiply(size, queries, keys.transposed(), &mut scores, length);
            scores.chunks_exact_mut(length).for_each(numbers::softmax);
            let size = (length, length, head_width);
            numbers::multiply(size, MatrixView::rows(&scores, length), values, &mut context[head..], width);
        }
        context
    }
}
