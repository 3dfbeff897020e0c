//! The model that runs inside the process: SmolLM2-135M-Instruct on the CPU, so that everything works with no key and
//! no network. It writes fluently and knows little; with a schema its replies are always valid, which does not make
//! them right.
#![deny(missing_docs)]

mod bert;
mod bounds;
mod closing;
mod generate;
mod grammar;
mod import;
mod llama;
mod matrix;
mod minilm;
mod numbers;
mod panels;
mod safetensors;
mod sample;
mod template;
mod text;
mod tokenizer;
mod tools;
mod worker;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::stream::{BoxStream, StreamExt};

use self::generate::Generator;
use self::llama::Llama;
pub use self::minilm::{EMBEDDING_DIMENSIONS, MiniLm};
use self::tokenizer::Tokenizer;
use self::worker::Worker;
use larder_models::chat::{ChatEvent, ChatModel, ChatReply, ChatRequest, EmbeddingModel, ModelError};
use larder_models::connect::EmbeddedModels;
use larder_models::table::{Capability, ModelSpec};
use larder_models::weights::{CHAT_MODEL, CHAT_WEIGHTS, EMBEDDING_MODEL, Weights};

/// Tokens of prompt and reply together. The model was trained on 8,192; beyond this limit it is too slow to be
/// useful.
pub const WINDOW: usize = 4096;

/// What errors call this provider.
const PROVIDER: &str = "embedded";

/// The models in this process, opened from the folders with their weights.
pub struct LocalModels(pub Weights);

impl EmbeddedModels for LocalModels {
    fn has_weights(&self, spec: &ModelSpec) -> bool {
        self.0.locate(weights_of(spec)).is_some()
    }

    fn chat(&self, spec: &ModelSpec) -> Result<Arc<dyn ChatModel>, ModelError> {
        let folder = self.0.locate(CHAT_MODEL).ok_or_else(|| no_weights(spec))?;
        Ok(Arc::new(Embedded::open(&folder)?))
    }

    fn embedding(&self, spec: &ModelSpec) -> Result<Arc<dyn EmbeddingModel>, ModelError> {
        let folder = self.0.locate(EMBEDDING_MODEL).ok_or_else(|| no_weights(spec))?;
        Ok(Arc::new(MiniLm::open(&folder)?))
    }
}

fn weights_of(spec: &ModelSpec) -> &'static str {
    if spec.can(Capability::Embedding) { EMBEDDING_MODEL } else { CHAT_MODEL }
}

fn no_weights(spec: &ModelSpec) -> ModelError {
    let name = weights_of(spec);
    ModelError::NotConfigured {
        provider: PROVIDER.to_owned(),
        detail: format!("{} has no weights yet; `larder models pull {name}` fetches them", spec.id),
    }
}

/// A model in this process. Clones share one thread, which answers one request at a time, in order.
#[derive(Debug, Clone)]
pub struct Embedded {
    worker: Worker,
}

impl Embedded {
    /// Opens the model in the folder `dir`. Blocks for about 200 ms, and for a few seconds the first time: the
    /// weights are then re-quantised for speed, and the result is stored next to them.
    ///
    /// # Errors
    /// [`ModelError::NotConfigured`] when the weights are missing or are not this model's, with how to get them.
    pub fn open(dir: &Path) -> Result<Self, ModelError> {
        let wrong = |detail| not_configured(CHAT_MODEL, detail);
        let path = dir.join(CHAT_WEIGHTS);
        if !path.is_file() {
            return Err(wrong(format!("{} is missing", path.display())));
        }
        let imported = import::import(&path).map_err(|error| wrong(error.to_string()))?;
        let tokenizer = Tokenizer::from_metadata(&imported.metadata);
        let tokenizer = Arc::new(tokenizer.map_err(|error| wrong(format!("{}: {error}", path.display())))?);
        let model = Llama::new(imported.shape, imported.weights, WINDOW);
        let worker = Worker::start(Generator::new(model, tokenizer)).map_err(broken)?;
        Ok(Self { worker })
    }
}

impl ChatModel for Embedded {
    fn chat<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        let mut events = self.worker.ask(request);
        Box::pin(async move {
            while let Some(event) = events.next().await {
                if let ChatEvent::Done(reply) = event? {
                    return Ok(reply);
                }
            }
            Err(broken("the reply has no end"))
        })
    }

    fn stream<'a>(&'a self, request: &'a ChatRequest) -> BoxStream<'a, Result<ChatEvent, ModelError>> {
        self.worker.ask(request)
    }
}

fn not_configured(model: &str, detail: String) -> ModelError {
    let detail = format!("{detail}; help: `larder models pull {model}` fetches the weights");
    ModelError::NotConfigured { provider: PROVIDER.to_owned(), detail }
}

/// The model itself failed, which is a bug or a damaged file.
fn broken(detail: impl ToString) -> ModelError {
    ModelError::Protocol { provider: PROVIDER.to_owned(), detail: detail.to_string() }
}

/// The request cannot be answered.
fn refused(detail: String) -> ModelError {
    ModelError::BadRequest { provider: PROVIDER.to_owned(), status: 400, detail }
}
