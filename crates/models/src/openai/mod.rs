//! Chat completions and embeddings as defined by OpenAI, and also supported by vLLM, llama.cpp, Ollama, Kimi and
//! others. Knows nothing of the model table beyond [`ProviderSettings`].

mod embed;
mod reply;
mod request;

use futures::future::{BoxFuture, FutureExt};
use futures::stream::BoxStream;

pub use embed::{OpenAiEmbeddings, vector};

use crate::chat::{ChatEvent, ChatModel, ChatReply, ChatRequest, ModelError};
use crate::decode;
use crate::http::{HttpEndpoint, within};
use crate::settings::ProviderSettings;

/// A model behind an OpenAI-compatible server.
#[derive(Debug)]
pub struct OpenAiModel {
    endpoint: HttpEndpoint,
    settings: ProviderSettings,
}

impl OpenAiModel {
    /// A model at `endpoint`.
    pub fn new(endpoint: HttpEndpoint, settings: ProviderSettings) -> Self {
        Self { endpoint, settings }
    }

    fn body(&self, request: &ChatRequest, stream: bool) -> Result<serde_json::Value, ModelError> {
        let name = self.endpoint.name();
        self.settings.check(request, name)?;
        if let Some(budget) = request.thinking_budget {
            tracing::info!(
                model = name,
                budget,
                "thinking budget ignored: set the server's own option in `extra_body`"
            );
        }
        Ok(request::body(request, &self.settings, stream))
    }

    async fn whole(&self, request: &ChatRequest) -> Result<ChatReply, ModelError> {
        let body = self.body(request, false)?;
        let json = self.endpoint.post("chat/completions", &body).await?.json().await?;
        reply::whole(&json, &self.endpoint)
    }
}

impl ChatModel for OpenAiModel {
    fn chat<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        within(self.endpoint.name(), request.timeout, self.whole(request)).boxed()
    }

    fn stream<'a>(&'a self, request: &'a ChatRequest) -> BoxStream<'a, Result<ChatEvent, ModelError>> {
        if !self.settings.streams() {
            return decode::whole(self.chat(request));
        }
        let open = async move {
            let body = self.body(request, true)?;
            self.endpoint.post("chat/completions", &body).await
        };
        decode::run(self.endpoint.name(), request.timeout, open, reply::CompletionsDecoder::default())
    }
}
