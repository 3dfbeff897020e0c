//! What the cases share: the wire formats' interface, a table around a stub server, and sample requests.

use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt;
use larder_models::chat::{ChatEvent, ChatModel, ChatReply, ChatRequest, ModelError, StopReason, Usage};
use larder_models::connect::Models;
use larder_models::table::ModelTable;
use larder_testkit::stub::{Answer, Seen, StubServer};
use larder_text::message::{Message, Role, ToolCall, ToolDef};
use serde_json::{Value, json};

/// The key that every test sends and no error may show.
pub const KEY: &str = "k3y-of-the-tests";

/// Whether an error is of the class that a case expects.
pub type Class = fn(&ModelError) -> bool;

/// A wire format: how a server that speaks it says things.
pub trait Wire: Sync {
    /// The provider's name in the model table.
    fn provider(&self) -> &'static str;
    /// A whole reply.
    fn whole(&self, reply: &ChatReply) -> Value;
    /// The same reply as an event stream: text in small pieces, tool input in fragments, keep-alives in between.
    fn streamed(&self, reply: &ChatReply) -> Vec<u8>;
    /// The stream up to the point where the text is said but the end is not.
    fn unfinished(&self, text: &str) -> Vec<u8>;
    /// The same stream in other bytes that mean the same.
    fn spellings(&self, body: &[u8]) -> Vec<Vec<u8>> {
        let body = String::from_utf8_lossy(body);
        let commented = format!(": a comment\n\n\u{feff}\n{body}: another");
        [body.replace('\n', "\r\n"), body.trim_end().to_owned(), commented].map(String::into_bytes).into()
    }
    /// An error body.
    fn error(&self, kind: &str, message: &str) -> Value;
    /// An error as an event of a stream, and the class it stands for.
    fn late_errors(&self) -> Vec<(Vec<u8>, Class)>;
    /// Answers to prompts that are too long.
    fn window_errors(&self) -> Vec<Answer>;
    /// The schema in a request, if it is there.
    fn schema(&self, request: &Value) -> Option<Value>;
    /// Whether a request asks for a stream.
    fn wants_stream(&self, request: &Seen) -> bool {
        request.json()["stream"] == true
    }
    /// The model, the limit of the reply and the temperature in a request.
    fn settings(&self, request: &Seen) -> [Value; 3] {
        ["model", "max_tokens", "temperature"].map(|field| request.json()[field].clone())
    }
    /// The tools in a request.
    fn tools(&self, request: &Value) -> usize {
        request["tools"].as_array().map_or(0, Vec::len)
    }
    /// What of its usage a reply can tell.
    fn told(&self, usage: Usage) -> Usage {
        usage
    }
    /// The header that carries the key, and its value.
    fn key_header(&self) -> (&'static str, String);
    /// The texts of the prompt in a request, in order.
    fn texts(&self, request: &Value) -> Vec<String>;
}

/// A model that asks a stub server.
pub struct Stubbed {
    pub model: Arc<dyn ChatModel>,
    pub server: StubServer,
}

const ABLE: &str = r#"["json_schema", "tools", "vision", "cache", "streaming"]"#;

/// A model with every capability, in front of a server that gives `answers`.
pub async fn stubbed(wire: &dyn Wire, answers: impl IntoIterator<Item = Answer>) -> Stubbed {
    stubbed_with(wire, ABLE, answers).await
}

/// A model with these capabilities.
pub async fn stubbed_with(
    wire: &dyn Wire,
    capabilities: &str,
    answers: impl IntoIterator<Item = Answer>,
) -> Stubbed {
    let server = StubServer::start(answers).await;
    Stubbed { model: model_at(wire, capabilities, server.address()), server }
}

/// A model at an address. It is asked once only: what happens after that is not the provider's business.
pub fn model_at(wire: &dyn Wire, capabilities: &str, address: &str) -> Arc<dyn ChatModel> {
    let toml = format!(
        "[models.m]\nprovider = \"{}\"\nbase_url = \"{address}\"\nid = \"model-1\"\nwindow = 1000\nmax_output = 100\n\
         api_key_env = \"TEST_KEY\"\nretries = 0\ncapabilities = {capabilities}\n",
        wire.provider(),
    );
    let table = ModelTable::parse(&toml).unwrap_or_else(|problems| panic!("{problems}"));
    let models = Models::new(table, ".", &|name| (name == "TEST_KEY").then(|| KEY.to_owned()));
    models.chat("m").expect("the model connects")
}

pub fn request() -> ChatRequest {
    let messages =
        vec![Message::text(Role::System, "Be brief."), Message::text(Role::User, "Grüße, 世界 \u{1f980}?")];
    ChatRequest::new("model-1", messages, 100, Duration::from_secs(10))
}

pub fn with_tools() -> ChatRequest {
    let parameters = json!({"type": "object", "properties": {"q": {"type": "string"}}});
    let tool = ToolDef { name: "find".to_owned(), description: "Finds.".to_owned(), parameters };
    ChatRequest { tools: vec![tool], ..request() }
}

pub fn reply(text: &str) -> ChatReply {
    let usage = Usage { input: 12, output: 3, ..Usage::default() };
    ChatReply { text: text.to_owned(), tool_calls: Vec::new(), stop: StopReason::Stop, usage }
}

pub fn two_calls() -> ChatReply {
    let call = |id: &str, arguments: &str| ToolCall {
        id: id.to_owned(),
        name: "find".to_owned(),
        arguments: arguments.to_owned(),
    };
    ChatReply {
        tool_calls: vec![call("call_a", r#"{"q":"grüße"}"#), call("call_b", r#"{"q":"a \"b\" {c}"}"#)],
        stop: StopReason::ToolCalls,
        ..reply("Let me look.")
    }
}

pub async fn events(model: &dyn ChatModel, request: &ChatRequest) -> Result<Vec<ChatEvent>, ModelError> {
    model.stream(request).try_collect().await
}

/// The text, the calls and the end of a stream, whose order is checked.
pub fn read(events: &[ChatEvent]) -> ChatReply {
    let (last, before) = events.split_last().expect("a stream has an end");
    let ChatEvent::Done(reply) = last else { panic!("a stream ends with Done, not {last:?}") };
    let (mut text, mut calls) = (String::new(), Vec::new());
    for event in before {
        match event {
            ChatEvent::Text(piece) => {
                assert!(!piece.is_empty(), "no piece of text is empty");
                text.push_str(piece);
            }
            ChatEvent::ToolCall(call) => calls.push(call.clone()),
            ChatEvent::Done(_) => panic!("Done comes once"),
        }
    }
    assert_eq!((&text, &calls), (&reply.text, &reply.tool_calls), "the pieces make up the whole");
    reply.clone()
}

/// The one request that the server has seen.
pub fn only_request(server: &StubServer) -> Seen {
    let seen = server.seen();
    assert_eq!(seen.len(), 1, "exactly one request");
    seen.into_iter().next().expect("one request")
}
