//! all-MiniLM-L6-v2 in this process: maps texts to vectors of 384 numbers, which are close for texts with similar
//! meaning. Knows nothing of what the vectors are for.

use std::path::Path;
use std::sync::Arc;

use futures::future::BoxFuture;
use rayon::prelude::*;
use tokenizers::{Tokenizer, TruncationParams};

use larder_models::weights::{EMBEDDING_MODEL, EMBEDDING_TOKENIZER, EMBEDDING_WEIGHTS};

use super::bert::{Bert, BertShape};
use super::numbers;
use super::safetensors::Tensors;
use super::{broken, not_configured};
use larder_models::chat::{EmbeddingModel, Embeddings, ModelError, Usage};

/// Numbers of a vector.
pub const EMBEDDING_DIMENSIONS: usize = 384;

/// Tokens of a text that are read; the model was trained on no more.
const LONGEST: usize = 256;

/// The embedding model. Clones share the weights. Texts are embedded one by one, so that a vector never depends on
/// other texts; only the first 256 tokens of a long text count.
#[derive(Clone)]
pub struct MiniLm(Arc<Inner>);

struct Inner {
    model: Bert,
    tokenizer: Tokenizer,
}

impl MiniLm {
    /// Opens the model in the folder `dir`. Blocks for about 200 ms.
    ///
    /// # Errors
    /// [`ModelError::NotConfigured`] when they are missing or are not this model's, with how to get them.
    pub fn open(dir: &Path) -> Result<Self, ModelError> {
        let file = |name: &str| {
            let path = dir.join(name);
            std::fs::read(&path).map_err(|error| missing(format!("{}: {error}", path.display())))
        };
        let wrong = |name: &str, error: &dyn std::fmt::Display| {
            missing(format!("{} is not the expected file: {error}", dir.join(name).display()))
        };
        let weights = file(EMBEDDING_WEIGHTS)?;
        let model = Tensors::read(&weights).and_then(|weights| Bert::load(&weights, &SHAPE));
        let model = model.map_err(|error| wrong(EMBEDDING_WEIGHTS, &error))?;
        // By way of a value, as where counters are read: one set of readers less in the binary.
        let tokenizer = serde_json::from_slice(&file(EMBEDDING_TOKENIZER)?);
        let tokenizer = tokenizer.and_then(serde_json::from_value::<Tokenizer>);
        let mut tokenizer = tokenizer.map_err(|error| wrong(EMBEDDING_TOKENIZER, &error))?;
        let truncation = TruncationParams { max_length: LONGEST, ..TruncationParams::default() };
        tokenizer.with_truncation(Some(truncation)).map_err(|error| wrong(EMBEDDING_TOKENIZER, &error))?;
        tokenizer.with_padding(None);
        Ok(Self(Arc::new(Inner { model, tokenizer })))
    }
}

impl Inner {
    fn vector(&self, text: &str) -> Result<Vec<f32>, ModelError> {
        let encoding = self.tokenizer.encode_fast(text, true).map_err(broken)?;
        let mut vector = vec![0.0; EMBEDDING_DIMENSIONS];
        for state in self.model.forward(encoding.get_ids()).chunks_exact(EMBEDDING_DIMENSIONS) {
            numbers::add(&mut vector, state);
        }
        // The mean of all states would be as long once its length is 1.
        let length = numbers::dot(&vector, &vector).sqrt().max(f32::MIN_POSITIVE);
        numbers::scale(&mut vector, length.recip());
        Ok(vector)
    }
}

impl EmbeddingModel for MiniLm {
    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Embeddings, ModelError>> {
        let (inner, texts) = (Arc::clone(&self.0), texts.to_vec());
        Box::pin(async move {
            let waiting = Arc::new(());
            let asked = Arc::downgrade(&waiting);
            let read = move || {
                let vector = |text: &String| {
                    if asked.strong_count() == 0 {
                        Err(broken("no one is waiting for the result"))
                    } else {
                        inner.vector(text)
                    }
                };
                texts.par_iter().map(vector).collect::<Result<Vec<_>, _>>()
            };
            let vectors = tokio::task::spawn_blocking(read).await.map_err(broken)??;
            drop(waiting);
            Ok(Embeddings { vectors, usage: Usage::default() })
        })
    }

    fn dimensions(&self) -> usize {
        EMBEDDING_DIMENSIONS
    }
}

fn missing(detail: String) -> ModelError {
    not_configured(EMBEDDING_MODEL, detail)
}

/// The shape of this model, from its `config.json`.
const SHAPE: BertShape = BertShape {
    vocabulary: 30_522,
    segments: 2,
    positions: 512,
    width: EMBEDDING_DIMENSIONS,
    layers: 6,
    heads: 12,
    feed_forward: 1_536,
    norm_epsilon: 1e-12,
};
