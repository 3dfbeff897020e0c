//! The interface between Larder and every model: requests, replies, errors. Knows no provider.

use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use futures::stream::{BoxStream, StreamExt};
use larder_text::message::{Message, ToolCall, ToolDef};
pub use larder_text::usage::Usage;
use serde::{Deserialize, Serialize};

/// A number as settings spell it: as a double, 0.3 would be sent as 0.30000001192092896.
pub(crate) fn decimal(number: f32) -> serde_json::Value {
    number.to_string().parse::<f64>().map_or(serde_json::Value::Null, serde_json::Value::from)
}

/// One call to a model. Every byte of `messages` comes from a pack.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatRequest {
    /// The provider's id of the model.
    pub model: String,
    /// The prompt.
    pub messages: Vec<Message>,
    /// Tools the model may call.
    pub tools: Vec<ToolDef>,
    /// JSON Schema the reply must satisfy, where the provider can enforce it.
    pub schema: Option<serde_json::Value>,
    /// Lark grammar the reply must satisfy, where the provider can enforce it: the embedded model.
    pub grammar: Option<String>,
    /// Tokens the reply may have (`token_budget.output`).
    pub max_output: u32,
    /// Sampling temperature; `None` leaves the provider's default.
    pub temperature: Option<f32>,
    /// How many leading messages the next prompt will repeat byte for byte; a provider with a prompt cache marks
    /// where they end. 0 if nothing will be repeated.
    pub stable_messages: usize,
    /// Tokens of `max_output` that the model may spend on hidden reasoning; `None` is off. A model without the
    /// `thinking` capability ignores it and logs this (R4-1.13, R4-9.7).
    pub thinking_budget: Option<u32>,
    /// Timeout of the whole call (R0-14.5).
    pub timeout: Duration,
}

impl ChatRequest {
    /// A request without options; set the other fields as needed.
    pub fn new(model: impl Into<String>, messages: Vec<Message>, max_output: u32, timeout: Duration) -> Self {
        Self {
            model: model.into(),
            messages,
            tools: Vec::new(),
            schema: None,
            grammar: None,
            max_output,
            temperature: None,
            stable_messages: 0,
            thinking_budget: None,
            timeout,
        }
    }
}

/// Why a reply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model finished.
    Stop,
    /// `max_output` was reached, or free text went in circles, so the reply is truncated.
    Length,
    /// `max_output` was near, the text went in circles, or its grammar gave up, and the model's decoder closed what was open:
    /// whole in form, truncated in what it says.
    Closed,
    /// The model requests tool calls.
    ToolCalls,
    /// The provider or model refused for content reasons.
    Refusal,
}

/// A whole reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatReply {
    /// The text.
    pub text: String,
    /// Requested calls.
    #[serde(default)]
    pub tool_calls: Vec<ToolCall>,
    /// Why it ended.
    pub stop: StopReason,
    /// What it used.
    pub usage: Usage,
}

impl ChatReply {
    /// The reply as the events of a stream: text if there is any, each tool call, the end.
    pub fn into_events(self) -> impl Iterator<Item = ChatEvent> {
        let text = (!self.text.is_empty()).then(|| ChatEvent::Text(self.text.clone()));
        let calls: Vec<_> = self.tool_calls.iter().cloned().map(ChatEvent::ToolCall).collect();
        text.into_iter().chain(calls).chain([ChatEvent::Done(self)])
    }
}

/// One step of a streamed reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChatEvent {
    /// More text.
    Text(String),
    /// A tool call, whole.
    ToolCall(ToolCall),
    /// The end; nothing follows. `reply` is what the unstreamed call would have returned.
    Done(ChatReply),
}

/// What went wrong in talking to a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The request was never sent, or was rejected before processing: safe to retry.
    #[error("{provider}: cannot be reached: {detail}")]
    Unreachable {
        /// Which provider.
        provider: String,
        /// The cause.
        detail: String,
    },
    /// 429 or similar: safe to retry later.
    #[error("{provider}: too many requests: {detail}")]
    RateLimited {
        /// Which provider.
        provider: String,
        /// The provider's words.
        detail: String,
        /// When to retry, if stated.
        retry_after: Option<Duration>,
    },
    /// 5xx: the provider failed.
    #[error("{provider}: failed with status {status}: {detail}")]
    Server {
        /// Which provider.
        provider: String,
        /// HTTP status.
        status: u16,
        /// The provider's words.
        detail: String,
    },
    /// 401 or 403.
    #[error("{provider}: refused the key with status {status}: {detail}")]
    Auth {
        /// Which provider.
        provider: String,
        /// The status.
        status: u16,
        /// The provider's words, key redacted.
        detail: String,
    },
    /// Another 4xx: the request is wrong and will stay wrong.
    #[error("{provider}: refused the request with status {status}: {detail}")]
    BadRequest {
        /// Which provider.
        provider: String,
        /// HTTP status.
        status: u16,
        /// The provider's words.
        detail: String,
    },
    /// The provider counted more tokens than its window allows.
    #[error("{provider}: the prompt exceeds the model's window: {detail}")]
    WindowExceeded {
        /// Which provider.
        provider: String,
        /// The provider's words.
        detail: String,
    },
    /// The reply did not follow the provider's own protocol, or broke off.
    #[error("{provider}: sent a broken reply: {detail}")]
    Protocol {
        /// Which provider.
        provider: String,
        /// What was wrong.
        detail: String,
    },
    /// No answer in time; whether it was processed (and billed) is unknown.
    #[error("{provider}: no answer within {} ms", .after.as_millis())]
    Timeout {
        /// Which provider.
        provider: String,
        /// The limit that passed.
        after: Duration,
    },
    /// The circuit breaker is open; nothing was sent.
    #[error("{provider}: not called, because it failed {failures} times in a row; next try in {} ms", .retry_in.as_millis())]
    BreakerOpen {
        /// Which provider.
        provider: String,
        /// Failures in a row.
        failures: u32,
        /// Until the next probe.
        retry_in: Duration,
    },
    /// Weights, key or settings are missing.
    #[error("{provider}: {detail}")]
    NotConfigured {
        /// Which provider.
        provider: String,
        /// What is missing and how to get it.
        detail: String,
    },
}

impl ModelError {
    /// Whether retrying the request may help and can neither bill nor act twice.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::RateLimited { .. } => true,
            // A proxy's timeout does not mean that the model has stopped working.
            Self::Server { status, .. } => !matches!(status, 504 | 524),
            _ => false,
        }
    }
}

/// A model that answers prompts. Dropping the future or stream cancels the call.
pub trait ChatModel: Send + Sync {
    /// Asks and waits for the whole reply.
    fn chat<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<ChatReply, ModelError>>;

    /// Streams the reply; the last item is `Done` or an error. A model that cannot stream returns its whole reply at
    /// once.
    fn stream<'a>(&'a self, request: &'a ChatRequest) -> BoxStream<'a, Result<ChatEvent, ModelError>> {
        let events = |reply: Result<ChatReply, ModelError>| match reply {
            Ok(reply) => reply.into_events().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        };
        self.chat(request).map(events).map(futures::stream::iter).flatten_stream().boxed()
    }
}

/// Vectors and their cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Embeddings {
    /// One vector a text, in the order of the texts.
    pub vectors: Vec<Vec<f32>>,
    /// What the call used; zero for a model that runs in process.
    pub usage: Usage,
}

/// A model that turns texts into vectors.
pub trait EmbeddingModel: Send + Sync {
    /// One vector a text, in order; all of [`Self::dimensions`] numbers.
    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Embeddings, ModelError>>;

    /// Length of each vector.
    fn dimensions(&self) -> usize;
}
