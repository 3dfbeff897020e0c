//! The cases that hold for every model, whoever serves it and whatever it says: over a wire, out of a recording, or in
//! this process. A provider that can be told what to do gets a script; one that cannot does by itself what the request
//! makes it do.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use larder_models::chat::{ChatEvent, ChatModel, ChatReply, ChatRequest, ModelError, StopReason};
use larder_text::message::{Message, Role, ToolDef};
use serde_json::{Value, json};

use crate::support::{events, read, reply, two_calls};

/// Requests of all tests stand in the embedded model's one queue, and waiting there counts.
const PATIENCE: Duration = Duration::from_secs(900);
/// Too short for any reply.
const SHORT: Duration = Duration::from_millis(50);

/// What a model that can be told what to do does next.
#[derive(Clone)]
pub enum Act {
    /// Says this at once.
    Say(ChatReply),
    /// Says this piece by piece.
    Stream(ChatReply),
    /// Says nothing, and stays.
    Hang,
    /// Refuses a prompt that is larger than its window.
    Refuse,
}

/// A model under test, and what must live as long as it.
pub struct Subject {
    pub model: Arc<dyn ChatModel>,
    pub _keeps: Box<dyn Any + Send + Sync>,
}

/// A provider under test.
pub trait Provider: Sync {
    /// A model that will be asked `asked`, as often as there are acts.
    fn model<'a>(&'a self, asked: &'a ChatRequest, acts: Vec<Act>) -> BoxFuture<'a, Subject>;
}

fn ask(text: &str, max_output: u32) -> ChatRequest {
    let system = Message::text(Role::System, "You answer in plain English.");
    ChatRequest::new("model-1", vec![system, Message::text(Role::User, text)], max_output, PATIENCE)
}

/// The reply to a request, whole and streamed; both must be the same, apart from what was found in a cache.
async fn both(provider: &dyn Provider, asked: &ChatRequest, said: ChatReply) -> ChatReply {
    let subject = provider.model(asked, vec![Act::Say(said.clone()), Act::Stream(said)]).await;
    let whole = subject.model.chat(asked).await.expect("a reply");
    let mut streamed = read(&events(&*subject.model, asked).await.expect("a stream"));
    streamed.usage.cached_input = whole.usage.cached_input;
    assert_eq!(streamed, whole);
    whole
}

pub async fn text_comes_whole_and_streamed(provider: &dyn Provider) {
    let said = both(provider, &ask("What is the capital of France?", 24), reply("Paris, naïvely. 🦀")).await;
    assert!(!said.text.trim().is_empty());
    assert_eq!((said.stop, said.tool_calls.len()), (StopReason::Stop, 0));
}

pub async fn a_stream_is_read_at_any_pace(provider: &dyn Provider) {
    let asked = ask("Write one sentence with an emoji and the word naïve.", 24);
    let subject = provider.model(&asked, vec![Act::Stream(reply("Naïve 🦀.")); 3]).await;
    let mut replies = Vec::new();
    for pause in [0, 1, 7] {
        let mut stream = subject.model.stream(&asked);
        let mut all = Vec::new();
        while let Some(event) = stream.next().await {
            all.push(event.expect("a sound stream"));
            for _ in 0..pause {
                tokio::task::yield_now().await;
            }
        }
        replies.push(read(&all).text);
    }
    assert!(replies.iter().all(|text| *text == replies[0]), "{replies:?}");
}

pub async fn calls_of_tools_are_whole(provider: &dyn Provider) {
    let parameters = json!({"type": "object", "properties": {"q": {"type": "string", "maxLength": 20}},
        "required": ["q"], "additionalProperties": false});
    let tool = ToolDef { name: "find".to_owned(), description: "Finds.".to_owned(), parameters };
    let asked = ChatRequest { tools: vec![tool], ..ask("Find grass.", 64) };
    let said = both(provider, &asked, two_calls()).await;
    assert_eq!(said.stop, StopReason::ToolCalls);
    assert!(!said.tool_calls.is_empty());
    let mut ids: Vec<&str> = said.tool_calls.iter().map(|call| call.id.as_str()).collect();
    ids.dedup();
    assert!(ids.len() == said.tool_calls.len() && ids.iter().all(|id| !id.is_empty()), "{ids:?}");
    for call in &said.tool_calls {
        let arguments: Value = serde_json::from_str(&call.arguments).expect("arguments are JSON");
        assert!(call.name == "find" && arguments["q"].is_string(), "{call:?}");
    }
}

pub async fn an_answer_under_a_schema_satisfies_it(provider: &dyn Provider) {
    let schema = json!({"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"],
        "additionalProperties": false});
    let asked = ChatRequest { schema: Some(schema.clone()), ..ask("Is the sky blue?", 32) };
    let said = both(provider, &asked, reply(r#"{"ok":true}"#)).await;
    let value: Value = serde_json::from_str(&said.text).expect("the answer is JSON");
    assert!(jsonschema::is_valid(&schema, &value), "{value}");
    assert_eq!(said.stop, StopReason::Stop);
}

pub async fn usage_adds_up(provider: &dyn Provider) {
    let usage = both(provider, &ask("Say yes.", 16), reply("Yes.")).await.usage;
    assert!(usage.input > 0 && usage.output > 0, "{usage:?}");
    assert!(
        usage.cached_input + usage.cache_write <= usage.input && usage.reasoning <= usage.output,
        "{usage:?}"
    );
    assert!(usage.output <= 16, "{usage:?}");
}

pub async fn a_cut_reply_says_so(provider: &dyn Provider) {
    let cut = ChatReply { stop: StopReason::Length, ..reply("Once upon") };
    let said = both(provider, &ask("Tell a long story about a ship.", 6), cut).await;
    assert_eq!(said.stop, StopReason::Length);
    assert!(!said.text.is_empty());
}

pub async fn a_dropped_stream_leaves_the_model_free(provider: &dyn Provider) {
    let asked = ask("Count from one to five thousand in words.", 400);
    let subject = provider.model(&asked, vec![Act::Stream(reply("One, two, three.")); 2]).await;
    let mut stream = subject.model.stream(&asked);
    assert!(matches!(stream.next().await, Some(Ok(ChatEvent::Text(_)))));
    drop(stream);
    let mut next = subject.model.stream(&asked);
    assert!(matches!(next.next().await, Some(Ok(ChatEvent::Text(_)))));
}

pub async fn calls_at_once_are_all_answered(provider: &dyn Provider) {
    let asked = ask("Say yes.", 8);
    let subject = provider.model(&asked, vec![Act::Say(reply("Yes.")); 3]).await;
    let model = &subject.model;
    let texts = futures::future::join_all([model.chat(&asked), model.chat(&asked), model.chat(&asked)]).await;
    let texts: Vec<String> = texts.into_iter().map(|reply| reply.expect("a reply").text).collect();
    assert!(texts.iter().all(|text| *text == texts[0] && !text.is_empty()), "{texts:?}");
}

/// The error of a call, whole and streamed.
async fn errors(provider: &dyn Provider, asked: &ChatRequest, act: Act) -> [ModelError; 2] {
    let subject = provider.model(asked, vec![act.clone(), act]).await;
    let whole = subject.model.chat(asked).await.expect_err("the call fails");
    let mut stream = subject.model.stream(asked);
    let streamed = loop {
        match stream.next().await.expect("the stream ends with an error") {
            Ok(ChatEvent::Text(_)) => {}
            Ok(event) => panic!("{event:?}"),
            Err(error) => break error,
        }
    };
    assert!(stream.next().await.is_none(), "nothing follows the error");
    [whole, streamed]
}

pub async fn time_runs_out(provider: &dyn Provider) {
    let asked = ChatRequest { timeout: SHORT, ..ask(&"Tell a long story about a ship. ".repeat(40), 400) };
    for error in errors(provider, &asked, Act::Hang).await {
        assert!(matches!(error, ModelError::Timeout { after: SHORT, .. }), "{error:?}");
        assert!(!error.is_retryable(), "whether it was billed is not known");
    }
}

pub async fn a_prompt_beyond_the_window_is_an_error_of_its_own(provider: &dyn Provider) {
    for error in errors(provider, &ask(&"word ".repeat(10_000), 8), Act::Refuse).await {
        assert!(matches!(error, ModelError::WindowExceeded { .. }), "{error:?}");
        assert!(!error.is_retryable(), "the same prompt stays too long");
    }
}
