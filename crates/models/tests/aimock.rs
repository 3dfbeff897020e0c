//! The providers against a mock server that others wrote, so that our reading of the wire formats is not judged by our
//! own. `tests/providers/run.sh` starts the server and runs these tests; without it they are ignored.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at what it does not expect"
)]

use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use larder_models::chat::{ChatEvent, ChatModel, ChatReply, ChatRequest, ModelError, StopReason};
use larder_models::connect::Models;
use larder_models::table::ModelTable;
use larder_text::message::{Message, Role, ToolDef};
use serde_json::json;

fn models() -> Models {
    let address = std::env::var("LARDER_TEST_AIMOCK").expect("run tests/providers/run.sh");
    let model = |name: &str, provider: &str, path: &str, rest: &str| {
        format!(
            "[models.{name}]\nprovider = \"{provider}\"\nbase_url = \"{address}{path}\"\nwindow = 1000\nretries = 0\n\
             api_key_env = \"KEY\"\n{rest}\n"
        )
    };
    let chat = "max_output = 100\ncapabilities = [\"json_schema\", \"tools\", \"cache\", \"streaming\"]";
    let toml = [
        model("openai", "openai", "/v1", &format!("id = \"gpt-x\"\n{chat}")),
        model("anthropic", "anthropic", "", &format!("id = \"claude-x\"\n{chat}")),
        model(
            "openai-vectors",
            "openai",
            "/v1",
            "id = \"embed-x\"\ndimensions = 1536\ncapabilities = [\"embedding\"]",
        ),
    ];
    let table = ModelTable::parse(&toml.concat()).unwrap_or_else(|problems| panic!("{problems}"));
    Models::new(table, ".", &|_| Some("test-key".to_owned()))
}

fn providers() -> Vec<(&'static str, Arc<dyn ChatModel>)> {
    let models = models();
    ["openai", "anthropic"].into_iter().map(|name| (name, models.chat(name).unwrap())).collect()
}

fn ask(words: &str) -> ChatRequest {
    let messages = vec![Message::text(Role::System, "Be brief."), Message::text(Role::User, words)];
    ChatRequest { stable_messages: 1, ..ChatRequest::new("model-x", messages, 100, Duration::from_secs(10)) }
}

fn with_tools(words: &str) -> ChatRequest {
    let parameters = json!({"type": "object", "properties": {"q": {"type": "string"}}});
    let tool = ToolDef { name: "find".to_owned(), description: "Finds.".to_owned(), parameters };
    ChatRequest { tools: vec![tool], ..ask(words) }
}

/// The reply whole and streamed, and how many pieces of text the stream had.
async fn both(model: &dyn ChatModel, asked: &ChatRequest) -> (ChatReply, ChatReply, usize) {
    let whole = model.chat(asked).await.expect("a reply");
    let events: Vec<ChatEvent> = model.stream(asked).try_collect().await.expect("a stream");
    let pieces = events.iter().filter(|event| matches!(event, ChatEvent::Text(_))).count();
    let Some(ChatEvent::Done(streamed)) = events.into_iter().next_back() else {
        panic!("a stream ends with Done")
    };
    (whole, streamed, pieces)
}

#[tokio::test]
#[ignore = "needs the mock server of tests/providers/run.sh"]
async fn text_and_usage() {
    for (name, model) in providers() {
        let (whole, streamed, pieces) = both(&*model, &ask("say hello")).await;
        assert_eq!(whole, streamed, "{name}");
        assert_eq!(whole.text, "Grüße, 世界! How can I help you today?");
        assert_eq!((whole.usage.input, whole.usage.output), (11, 7), "{name}");
        assert!(pieces > 3, "{name}: the server streams");
    }
}

#[tokio::test]
#[ignore = "needs the mock server of tests/providers/run.sh"]
async fn a_round_of_parallel_tools() {
    for (name, model) in providers() {
        let asked = with_tools("call two tools");
        let (whole, streamed, _) = both(&*model, &asked).await;
        assert_eq!((&whole.text, whole.stop), (&streamed.text, StopReason::ToolCalls), "{name}");
        let calls = |reply: &ChatReply| -> Vec<(String, serde_json::Value)> {
            let call = |call: &larder_text::message::ToolCall| {
                (call.name.clone(), serde_json::from_str(&call.arguments).expect("arguments are JSON"))
            };
            reply.tool_calls.iter().map(call).collect()
        };
        let expected = [("find".to_owned(), json!({"q": "grüße"})), ("find".to_owned(), json!({"q": "two"}))];
        assert_eq!(calls(&whole), expected, "{name}");
        assert_eq!(calls(&streamed), expected, "{name}");

        let mut next = asked.clone();
        next.messages.push(Message {
            tool_calls: whole.tool_calls.clone(),
            ..Message::text(Role::Assistant, &whole.text)
        });
        for call in &whole.tool_calls {
            next.messages
                .push(Message { tool_call_id: Some(call.id.clone()), ..Message::text(Role::Tool, "found") });
        }
        assert_eq!(model.chat(&next).await.expect("a reply").text, "Both found.", "{name}");
    }
}

#[tokio::test]
#[ignore = "needs the mock server of tests/providers/run.sh"]
async fn schemas_cut_replies_and_hidden_thoughts() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]});
    for (name, model) in providers() {
        let asked = ChatRequest { schema: Some(schema.clone()), ..ask("as json") };
        let (whole, streamed, _) = both(&*model, &asked).await;
        assert_eq!((whole.text.as_str(), streamed.text.as_str()), (r#"{"a":"b"}"#, r#"{"a":"b"}"#), "{name}");
        let (whole, streamed, _) = both(&*model, &ask("be cut")).await;
        assert_eq!((whole.stop, streamed.stop), (StopReason::Length, StopReason::Length), "{name}");
        let (whole, streamed, _) = both(&*model, &ask("think first")).await;
        assert_eq!(
            (whole.text.as_str(), streamed.text.as_str()),
            ("42", "42"),
            "{name}: thoughts do not show"
        );
    }
}

#[tokio::test]
#[ignore = "needs the mock server of tests/providers/run.sh"]
async fn every_error_has_its_class() {
    type Class = fn(&ModelError) -> bool;
    let cases: [(&str, Class); 6] = [
        ("refuse the key", |e| matches!(e, ModelError::Auth { .. })),
        ("limit the rate", |e| matches!(e, ModelError::RateLimited { .. })),
        ("be overloaded", |e| matches!(e, ModelError::Server { status: 529, .. })),
        ("fill the window", |e| matches!(e, ModelError::WindowExceeded { .. })),
        ("send garbage", |e| matches!(e, ModelError::Protocol { .. })),
        ("hang up", |e| matches!(e, ModelError::Protocol { .. })),
    ];
    for (name, model) in providers() {
        for (words, is_right) in cases {
            let whole = model.chat(&ask(words)).await.unwrap_err();
            assert!(is_right(&whole), "{name}, {words}: {whole:?}");
            let asked = ask(words);
            let events: Vec<_> = model.stream(&asked).collect().await;
            assert!(
                events.last().is_some_and(|e| e.as_ref().is_err_and(is_right)),
                "{name}, {words}: {events:?}"
            );
        }
    }
}

#[tokio::test]
#[ignore = "needs the mock server of tests/providers/run.sh"]
async fn a_stream_that_breaks_off_gives_what_came() {
    for (name, model) in providers() {
        let asked = ask("break off");
        let events: Vec<_> = model.stream(&asked).collect().await;
        let (last, before) = events.split_last().expect("an error at least");
        assert!(matches!(last, Err(ModelError::Protocol { .. })), "{name}: {events:?}");
        assert!(before.iter().all(Result::is_ok), "{name}: {events:?}");
    }
}

#[tokio::test]
#[ignore = "needs the mock server of tests/providers/run.sh"]
async fn vectors() {
    let model = models().embedding("openai-vectors").unwrap();
    let texts = ["one".to_owned(), "two".to_owned(), "one".to_owned()];
    let found = model.embed(&texts).await.expect("vectors");
    assert_eq!(found.vectors.len(), 3);
    assert!(found.vectors.iter().all(|vector| vector.len() == model.dimensions()));
    assert_eq!(found.vectors[0], found.vectors[2]);
    assert_ne!(found.vectors[0], found.vectors[1]);
}
