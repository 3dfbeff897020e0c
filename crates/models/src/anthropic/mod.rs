//! Anthropic's Messages API, which Amazon Bedrock also supports. Knows nothing of the model table beyond
//! [`ProviderSettings`].
//!
//! Structured output uses `output_config.format` rather than a forced tool: this leaves the tools free, and the reply
//! is the JSON text itself. The API accepts a subset of JSON Schema; `schema` reduces to it.

mod reply;
mod request;
pub mod schema;

use futures::future::{BoxFuture, FutureExt};
use futures::stream::BoxStream;

pub use request::usable_thinking;

use crate::chat::{ChatEvent, ChatModel, ChatReply, ChatRequest, ModelError};
use crate::decode;
use crate::http::{HttpEndpoint, within};
use crate::settings::ProviderSettings;

const PATH: &str = "v1/messages";

/// A model behind a server that speaks the Messages API.
#[derive(Debug)]
pub struct Anthropic {
    endpoint: HttpEndpoint,
    settings: ProviderSettings,
}

impl Anthropic {
    /// A model at `endpoint`.
    pub fn new(endpoint: HttpEndpoint, settings: ProviderSettings) -> Self {
        Self { endpoint, settings }
    }

    async fn whole(&self, request: &ChatRequest) -> Result<ChatReply, ModelError> {
        let body = self.body(request, false)?;
        let json = self.endpoint.post(PATH, &body).await?.json().await?;
        reply::whole(&json, &self.endpoint)
    }

    fn body(&self, request: &ChatRequest, stream: bool) -> Result<serde_json::Value, ModelError> {
        self.settings.check(request, self.endpoint.name())?;
        let thinking = self.settings.thinking_budget(request, self.endpoint.name());
        Ok(request::body(request, &self.settings, thinking, stream))
    }
}

impl ChatModel for Anthropic {
    fn chat<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        within(self.endpoint.name(), request.timeout, self.whole(request)).boxed()
    }

    fn stream<'a>(&'a self, request: &'a ChatRequest) -> BoxStream<'a, Result<ChatEvent, ModelError>> {
        if !self.settings.streams() {
            return decode::whole(self.chat(request));
        }
        let open = async move {
            let body = self.body(request, true)?;
            self.endpoint.post(PATH, &body).await
        };
        decode::run(self.endpoint.name(), request.timeout, open, reply::MessagesDecoder::default())
    }
}
