//! Amazon Bedrock: chat by `Converse` and `ConverseStream`, Titan embeddings by `InvokeModel`. Knows nothing
//! of the model table beyond [`ProviderSettings`], and nothing of keys and signatures, which its endpoint adds.

mod embed;
mod reply;
mod request;

use futures::future::{BoxFuture, FutureExt};
use futures::stream::BoxStream;

pub use embed::TitanEmbeddings;

use crate::chat::{ChatEvent, ChatModel, ChatReply, ChatRequest, ModelError};
use crate::decode;
use crate::http::{HttpEndpoint, within};
use crate::settings::ProviderSettings;

/// A model behind the Converse API.
#[derive(Debug)]
pub struct Converse {
    endpoint: HttpEndpoint,
    settings: ProviderSettings,
}

impl Converse {
    /// A model at `endpoint`.
    pub fn new(endpoint: HttpEndpoint, settings: ProviderSettings) -> Self {
        Self { endpoint, settings }
    }

    async fn whole(&self, request: &ChatRequest) -> Result<ChatReply, ModelError> {
        let body = self.body(request)?;
        let json = self.endpoint.post(&path(&request.model, "converse"), &body).await?.json().await?;
        reply::whole(&json, &self.endpoint)
    }

    fn body(&self, request: &ChatRequest) -> Result<serde_json::Value, ModelError> {
        self.settings.check(request, self.endpoint.name())?;
        let thinking = self.settings.thinking_budget(request, self.endpoint.name());
        Ok(request::body(request, &self.settings, thinking))
    }
}

impl ChatModel for Converse {
    fn chat<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        within(self.endpoint.name(), request.timeout, self.whole(request)).boxed()
    }

    fn stream<'a>(&'a self, request: &'a ChatRequest) -> BoxStream<'a, Result<ChatEvent, ModelError>> {
        if !self.settings.streams() {
            return decode::whole(self.chat(request));
        }
        let open = async move {
            let body = self.body(request)?;
            self.endpoint.post(&path(&request.model, "converse-stream"), &body).await
        };
        decode::run(self.endpoint.name(), request.timeout, open, reply::ConverseDecoder::default())
    }
}

/// The path of an operation on a model, an inference profile, or the ARN of either: ids hold colons and slashes.
fn path(id: &str, operation: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    format!("model/{}/{operation}", id.bytes().map(byte).collect::<String>())
}
