//! `POST /embeddings`. Knows no HTTP beyond its endpoint.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::future::{BoxFuture, FutureExt};
use serde_json::{Map, Value, json};

use crate::chat::{EmbeddingModel, Embeddings, ModelError, Usage};
use crate::http::{HttpEndpoint, within};
use crate::settings::ProviderSettings;

/// An embedding model behind an OpenAI-compatible server.
#[derive(Debug)]
pub struct OpenAiEmbeddings {
    endpoint: HttpEndpoint,
    model: String,
    dimensions: usize,
    timeout: Duration,
    settings: ProviderSettings,
}

impl OpenAiEmbeddings {
    /// The model `model` at `endpoint`, whose vectors have `dimensions` numbers; `timeout` is for one request.
    pub fn new(
        endpoint: HttpEndpoint,
        model: &str,
        dimensions: usize,
        timeout: Duration,
        settings: ProviderSettings,
    ) -> Self {
        Self { endpoint, model: model.to_owned(), dimensions, timeout, settings }
    }

    async fn request(&self, texts: &[String]) -> Result<Embeddings, ModelError> {
        let mut body = Map::new();
        body.insert("model".to_owned(), json!(self.model));
        body.insert("input".to_owned(), json!(texts));
        body.insert("encoding_format".to_owned(), json!("base64"));
        self.settings.add_extra(&mut body);
        let json = self.endpoint.post("embeddings", &Value::Object(body)).await?.json().await?;
        let data = json.get("data").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let mut vectors = vec![Vec::new(); texts.len()];
        for (at, item) in data.iter().enumerate() {
            let index =
                item.get("index").and_then(Value::as_u64).map_or(Some(at), |index| index.try_into().ok());
            let slot = index.and_then(|index| vectors.get_mut(index));
            let (Some(slot), Some(vector)) = (slot, item.get("embedding").and_then(vector)) else {
                return Err(self
                    .endpoint
                    .protocol(format!("item {at} of `data` is not a vector of a requested text")));
            };
            *slot = vector;
        }
        if let Some(at) = vectors.iter().position(|vector| vector.len() != self.dimensions) {
            return Err(self.endpoint.protocol(format!(
                "the vector of text {at} has {} numbers; `dimensions` in larder.toml says {}",
                vectors[at].len(),
                self.dimensions,
            )));
        }
        let tokens = json.pointer("/usage/prompt_tokens").and_then(Value::as_u64).unwrap_or(0);
        Ok(Embeddings { vectors, usage: Usage { input: tokens, ..Usage::default() } })
    }
}

impl EmbeddingModel for OpenAiEmbeddings {
    /// One request for all texts; the caller keeps their number within what servers take.
    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Embeddings, ModelError>> {
        within(self.endpoint.name(), self.timeout, self.request(texts)).boxed()
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }
}

/// Little-endian `f32`s in base64, or a list of numbers from servers that know no `encoding_format`. Every number is
/// finite.
pub fn vector(json: &Value) -> Option<Vec<f32>> {
    let numbers: Vec<f32> = match json {
        Value::String(text) => {
            let bytes = STANDARD.decode(text).ok()?;
            let (numbers, rest) = bytes.as_chunks::<4>();
            rest.is_empty().then(|| numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())?
        }
        Value::Array(numbers) => {
            numbers.iter().map(|number| number.as_f64().map(|number| number as f32)).collect::<Option<_>>()?
        }
        _ => return None,
    };
    numbers.iter().all(|number| number.is_finite()).then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_encodings_give_the_same_vector() {
        let bytes: Vec<u8> = [0.5_f32, -2.0].iter().flat_map(|number| number.to_le_bytes()).collect();
        assert_eq!(vector(&json!(STANDARD.encode(bytes))), Some(vec![0.5, -2.0]));
        assert_eq!(vector(&json!([0.5, -2])), Some(vec![0.5, -2.0]));
    }

    #[test]
    fn garbage_is_not_a_vector() {
        let infinite = STANDARD.encode(f32::INFINITY.to_le_bytes());
        for bad in [
            json!("@"),
            json!("AAAAAAA="),
            json!(infinite),
            json!(["1"]),
            json!([1e300]),
            json!(null),
            json!({}),
        ] {
            assert_eq!(vector(&bad), None, "{bad}");
        }
    }
}
