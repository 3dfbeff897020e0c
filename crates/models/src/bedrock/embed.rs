//! Titan embeddings through `InvokeModel` (R4-1.6). Knows no HTTP beyond its endpoint.

use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use serde_json::{Value, json};

use crate::chat::{EmbeddingModel, Embeddings, ModelError, Usage};
use crate::http::{HttpEndpoint, within};
use crate::openai::vector;

/// A Titan Text Embeddings V2 model.
#[derive(Debug)]
pub struct TitanEmbeddings {
    endpoint: HttpEndpoint,
    path: String,
    dimensions: usize,
    timeout: Duration,
}

impl TitanEmbeddings {
    /// The model `id` at `endpoint`, with vectors of `dimensions` numbers; `timeout` applies to each request.
    pub fn new(endpoint: HttpEndpoint, id: &str, dimensions: usize, timeout: Duration) -> Self {
        Self { endpoint, path: super::path(id, "invoke"), dimensions, timeout }
    }

    async fn one(&self, text: &str) -> Result<(Vec<f32>, u64), ModelError> {
        let body = json!({ "inputText": text, "dimensions": self.dimensions, "normalize": true });
        let json = self.endpoint.post(&self.path, &body).await?.json().await?;
        let vector = json.get("embedding").and_then(vector).filter(|vector| vector.len() == self.dimensions);
        let vector = vector.ok_or_else(|| {
            self.endpoint.protocol(format!("`embedding` is not a vector of {} numbers", self.dimensions))
        })?;
        Ok((vector, json.get("inputTextTokenCount").and_then(Value::as_u64).unwrap_or(0)))
    }
}

impl EmbeddingModel for TitanEmbeddings {
    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Embeddings, ModelError>> {
        async move {
            let mut all = Embeddings { vectors: Vec::with_capacity(texts.len()), usage: Usage::default() };
            // The API accepts one text per call.
            for text in texts {
                let (vector, tokens) = within(self.endpoint.name(), self.timeout, self.one(text)).await?;
                all.vectors.push(vector);
                all.usage.input = all.usage.input.saturating_add(tokens);
            }
            Ok(all)
        }
        .boxed()
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }
}
