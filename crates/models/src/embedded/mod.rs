//! The model that runs inside the process: SmolLM2-135M-Instruct on the CPU, so that everything works with no key and
//! no network. It writes fluently and knows little; with a schema its replies are always valid, which does not make
//! them right.

mod bounds;
mod closing;
mod generate;
mod grammar;
mod import;
mod llama;
mod matrix;
mod minilm;
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
pub use self::minilm::{EMBEDDING_DIMENSIONS, EMBEDDING_MODEL, MiniLm};
pub(crate) use self::minilm::{MINILM_TOKENIZER, MINILM_WEIGHTS};
use self::tokenizer::Tokenizer;
use self::worker::Worker;
use crate::chat::{ChatEvent, ChatModel, ChatReply, ChatRequest, ModelError};

/// The model's name in the model table and for `larder models pull`.
pub const MODEL: &str = "smollm2-135m";
/// The name of its vocabulary, as receipts print it.
pub const TOKENIZER: &str = "smollm2";
/// Tokens of prompt and reply together. The model was trained on 8,192; beyond this it is too slow to be of use.
pub const WINDOW: usize = 4096;
/// The weights file in the model's folder.
pub const WEIGHTS_FILE: &str = "SmolLM2-135M-Instruct.Q4_1.gguf";

/// What errors call this provider.
const PROVIDER: &str = "embedded";

/// A model in this process. Clones share one thread, which answers one request at a time, in order.
#[derive(Debug, Clone)]
pub struct Embedded {
    worker: Worker,
}

impl Embedded {
    /// Opens the model whose weights lie in the folder `dir`. Blocks for some 200 ms, the first time for some seconds:
    /// then the weights are re-quantised for speed, and the result is kept beside them.
    ///
    /// # Errors
    /// [`ModelError::NotConfigured`] when the weights are missing or are not this model's, with how to get them.
    pub fn open(dir: &Path) -> Result<Self, ModelError> {
        let wrong = |detail| not_configured(MODEL, detail);
        let path = dir.join(WEIGHTS_FILE);
        if !path.is_file() {
            return Err(wrong(format!("{} is missing", path.display())));
        }
        let imported = import::import(&path).map_err(|error| wrong(error.to_string()))?;
        let tokenizer = Tokenizer::from_metadata(&imported.metadata);
        let tokenizer = Arc::new(tokenizer.map_err(|error| wrong(format!("{}: {error}", path.display())))?);
        let model = Llama::new(imported.shape, imported.weights, WINDOW).map_err(broken)?;
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

/// The request cannot be answered as it is.
fn refused(detail: String) -> ModelError {
    ModelError::BadRequest { provider: PROVIDER.to_owned(), status: 400, detail }
}
