//! all-MiniLM-L6-v2 in this process: texts as 384 numbers, near each other when they mean the same. Knows nothing of
//! what the vectors are for.

use std::path::Path;
use std::sync::Arc;

use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::{BertModel, Config, HiddenAct, PositionEmbeddingType};
use futures::future::BoxFuture;
use rayon::prelude::*;
use tokenizers::{Tokenizer, TruncationParams};

use super::{broken, not_configured};
use crate::chat::{EmbeddingModel, Embeddings, ModelError, Usage};

/// The model's name in the model table and for `larder models pull`.
pub const EMBEDDING_MODEL: &str = "all-minilm-l6-v2";
/// Numbers of a vector.
pub const EMBEDDING_DIMENSIONS: usize = 384;
/// The weights file in the model's folder.
pub(crate) const MINILM_WEIGHTS: &str = "model.safetensors";
/// The vocabulary in the model's folder.
pub(crate) const MINILM_TOKENIZER: &str = "tokenizer.json";

/// Tokens of a text that are read; the model was trained on no more.
const LONGEST: usize = 256;

/// The embedding model. Clones share the weights. Texts are read one by one, so that the vector of a text never
/// depends on what stands beside it; of a long text the first 256 tokens count.
#[derive(Clone)]
pub struct MiniLm(Arc<Inner>);

struct Inner {
    model: BertModel,
    tokenizer: Tokenizer,
}

impl MiniLm {
    /// Opens the model whose files lie in the folder `dir`. Blocks for some 200 ms.
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
        let weights = VarBuilder::from_buffered_safetensors(file(MINILM_WEIGHTS)?, DType::F32, &Device::Cpu);
        let model = weights.and_then(|weights| BertModel::load(weights, &config()));
        let model = model.map_err(|error| wrong(MINILM_WEIGHTS, &error))?;
        let tokenizer = Tokenizer::from_bytes(file(MINILM_TOKENIZER)?);
        let mut tokenizer = tokenizer.map_err(|error| wrong(MINILM_TOKENIZER, &error))?;
        let truncation = TruncationParams { max_length: LONGEST, ..TruncationParams::default() };
        tokenizer.with_truncation(Some(truncation)).map_err(|error| wrong(MINILM_TOKENIZER, &error))?;
        tokenizer.with_padding(None);
        Ok(Self(Arc::new(Inner { model, tokenizer })))
    }
}

impl Inner {
    fn vector(&self, text: &str) -> Result<Vec<f32>, ModelError> {
        let encoding = self.tokenizer.encode_fast(text, true).map_err(broken)?;
        let read = || {
            let tokens = Tensor::new(encoding.get_ids(), &Device::Cpu)?.unsqueeze(0)?;
            let states = self.model.forward(&tokens, &tokens.zeros_like()?, None)?;
            states.mean(1)?.squeeze(0)?.to_vec1::<f32>()
        };
        let mut vector = read().map_err(broken)?;
        let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
        vector.iter_mut().for_each(|value| *value /= length);
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
                        Err(broken("nobody waits for it"))
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

/// The shape of this one model, as its `config.json` states it.
fn config() -> Config {
    Config {
        vocab_size: 30_522,
        hidden_size: EMBEDDING_DIMENSIONS,
        num_hidden_layers: 6,
        num_attention_heads: 12,
        intermediate_size: 1_536,
        hidden_act: HiddenAct::Gelu,
        hidden_dropout_prob: 0.0,
        max_position_embeddings: 512,
        type_vocab_size: 2,
        initializer_range: 0.02,
        layer_norm_eps: 1e-12,
        pad_token_id: 0,
        position_embedding_type: PositionEmbeddingType::Absolute,
        use_cache: false,
        classifier_dropout: None,
        model_type: None,
    }
}
