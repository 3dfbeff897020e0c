//! The cases in which all goes well.

use larder_models::chat::{ChatReply, ChatRequest, StopReason, Usage};
use larder_testkit::stub::Answer;
use larder_text::message::{Content, Message, Role};
use serde_json::json;

use crate::support::{
    KEY, Wire, events, only_request, read, reply, request, stubbed, stubbed_with, two_calls, with_tools,
};

const TEXT: &str = "Grüße\r\n\n世界, data: \u{1f980} \"quoted\" \\ event: x";

pub async fn text_comes_whole(wire: &dyn Wire) {
    let stub = stubbed(wire, [Answer::json(200, &wire.whole(&reply(TEXT)))]).await;
    assert_eq!(stub.model.chat(&request()).await, Ok(reply(TEXT)));
    assert!(!wire.wants_stream(&only_request(&stub.server)));
}

pub async fn text_streams_in_any_chunking(wire: &dyn Wire) {
    let body = wire.streamed(&reply(TEXT));
    let whole = Answer::events(body.clone());
    let mut answers = vec![whole.clone(), whole.clone().byte_by_byte()];
    answers.extend(wire.spellings(&body).into_iter().map(|body| Answer::events(body).byte_by_byte()));
    // Cuts at places that a linear congruential generator picks, some inside characters and line ends.
    let mut state: usize = 1;
    for _ in 0..40 {
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % body.len()
        };
        answers.push(whole.clone().cut_at([next(), next(), next(), next(), next()]));
    }
    let count = answers.len();
    let stub = stubbed(wire, answers).await;
    for round in 0..count {
        let events = events(&*stub.model, &request()).await;
        assert_eq!(read(&events.expect("a sound stream")), reply(TEXT), "answer {round}");
    }
    assert!(wire.wants_stream(&stub.server.seen()[0]));
}

pub async fn parallel_tool_calls_come_whole(wire: &dyn Wire) {
    let stub = stubbed(wire, [Answer::json(200, &wire.whole(&two_calls()))]).await;
    assert_eq!(stub.model.chat(&with_tools()).await, Ok(two_calls()));
    assert_eq!(wire.tools(&only_request(&stub.server).json()), 1);
}

pub async fn parallel_tool_calls_stream(wire: &dyn Wire) {
    let body = wire.streamed(&two_calls());
    let stub = stubbed(wire, [Answer::events(body.clone()), Answer::events(body).byte_by_byte()]).await;
    for _ in 0..2 {
        let events = events(&*stub.model, &with_tools()).await.expect("a sound stream");
        assert_eq!(read(&events), two_calls());
    }
}

pub async fn usage_is_told(wire: &dyn Wire) {
    let usage = wire.told(Usage {
        input: 1_000,
        cached_input: 600,
        cache_write: 100,
        output: 50,
        reasoning: 20,
        ..Usage::default()
    });
    let reply = ChatReply { usage, ..reply("x") };
    let stub =
        stubbed(wire, [Answer::json(200, &wire.whole(&reply)), Answer::events(wire.streamed(&reply))]).await;
    assert_eq!(stub.model.chat(&request()).await.expect("a reply").usage, usage);
    assert_eq!(read(&events(&*stub.model, &request()).await.expect("a stream")).usage, usage);
}

pub async fn a_cut_reply_says_so(wire: &dyn Wire) {
    ends_with(wire, StopReason::Length).await;
}

pub async fn a_refusal_says_so(wire: &dyn Wire) {
    ends_with(wire, StopReason::Refusal).await;
}

async fn ends_with(wire: &dyn Wire, stop: StopReason) {
    let reply = ChatReply { stop, ..reply("So far") };
    let stub =
        stubbed(wire, [Answer::json(200, &wire.whole(&reply)), Answer::events(wire.streamed(&reply))]).await;
    assert_eq!(stub.model.chat(&request()).await, Ok(reply.clone()));
    assert_eq!(read(&events(&*stub.model, &request()).await.expect("a stream")), reply);
}

pub async fn the_schema_is_sent_where_it_is_enforced(wire: &dyn Wire) {
    let schema = json!({
        "type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false,
    });
    let asked = ChatRequest { schema: Some(schema.clone()), ..request() };
    let answer = Answer::json(200, &wire.whole(&reply(r#"{"a":"b"}"#)));
    let stub = stubbed(wire, [answer.clone()]).await;
    assert_eq!(stub.model.chat(&asked).await.expect("a reply").text, r#"{"a":"b"}"#);
    assert_eq!(wire.schema(&only_request(&stub.server).json()), Some(schema));

    let stub = stubbed_with(wire, "[]", [answer]).await;
    stub.model.chat(&asked).await.expect("the reply comes, for others to validate");
    assert_eq!(wire.schema(&only_request(&stub.server).json()), None);
}

pub async fn the_request_holds_the_prompt(wire: &dyn Wire) {
    let stub = stubbed(wire, [Answer::json(200, &wire.whole(&reply("x")))]).await;
    let asked = ChatRequest { temperature: Some(0.25), stable_messages: 1, ..request() };
    stub.model.chat(&asked).await.expect("a reply");
    let sent = only_request(&stub.server);
    assert_eq!(wire.texts(&sent.json()), ["Be brief.", "Grüße, 世界 \u{1f980}?"]);
    assert_eq!(wire.settings(&sent), [json!("model-1"), json!(100), json!(0.25)]);
    assert!(!sent.json().to_string().contains("thinking"), "thinking is off unless asked for");
}

pub async fn the_key_goes_into_its_header(wire: &dyn Wire) {
    let stub = stubbed(wire, [Answer::json(200, &wire.whole(&reply("x")))]).await;
    stub.model.chat(&request()).await.expect("a reply");
    let seen = only_request(&stub.server);
    let (name, value) = wire.key_header();
    assert_eq!(seen.header(name), Some(value.as_str()));
    let elsewhere =
        seen.headers.iter().filter(|(header, value)| header != name && value.contains(KEY)).count();
    assert_eq!(elsewhere, 0);
    assert!(seen.header("user-agent").is_some_and(|agent| agent.starts_with("larder/")));
}

pub async fn what_the_model_cannot_do_is_refused_before_it_is_sent(wire: &dyn Wire) {
    let stub = stubbed_with(wire, r#"["streaming"]"#, []).await;
    let picture = Content::Image { media_type: "image/png".to_owned(), data: "QUJD".to_owned() };
    let with_picture = ChatRequest {
        messages: vec![Message { content: vec![picture], ..Message::text(Role::User, "") }],
        ..request()
    };
    for (asked, capability) in [(with_picture, "vision"), (with_tools(), "tools")] {
        let errors = [
            stub.model.chat(&asked).await.unwrap_err().to_string(),
            events(&*stub.model, &asked).await.unwrap_err().to_string(),
        ];
        for error in errors {
            assert!(error.contains(&format!("`{capability}`")), "{error}");
        }
    }
    assert!(stub.server.seen().is_empty());
}

pub async fn an_unstreamed_model_streams_in_one_piece(wire: &dyn Wire) {
    let stub = stubbed_with(wire, "[\"tools\"]", [Answer::json(200, &wire.whole(&two_calls()))]).await;
    let events = events(&*stub.model, &with_tools()).await.expect("a reply");
    assert_eq!(read(&events), two_calls());
    assert!(!wire.wants_stream(&only_request(&stub.server)));
}
