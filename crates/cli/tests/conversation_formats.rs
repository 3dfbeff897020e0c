//! Conversation types in the formats of models: what a reply has besides its text, and how long it may be.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod support;

use std::io::Read as _;
use std::path::Path;

use larder_testkit::stub::{Answer, Seen};
use larder_testkit::talks::copy_folder;
use serde_json::{Value, json};
use support::served::Served;
use support::{Shop, reply_text};

const CHAT: &str = "/v1/chat/completions";
const MESSAGES: &str = "/v1/messages";
const RESPONSES: &str = "/v1/responses";
const CONVERSE: &str = "/model/conversation%2Fchat/converse";
const CONVERSE_STREAM: &str = "/model/conversation%2Fchat/converse-stream";
const FIELDS: &str = "<thinking>\nMode: WITNESS\nUserIntensity: 4\nReady: N\n</thinking>";

/// A reply with a draft; one that is cut, where at most 50 tokens are asked for.
fn respond(seen: &Seen) -> Answer {
    let body: Value = serde_json::from_slice(&seen.body).unwrap();
    let most = body.get("max_completion_tokens").or_else(|| body.get("max_tokens"));
    let is_short = most == Some(&json!(50));
    let end = if is_short { "length" } else { "stop" };
    let text = format!("{FIELDS}I see.{}", if is_short { "" } else { "<draft>I was late.</draft>" });
    let usage = json!({"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110});
    if body["stream"] == true {
        let chunk =
            |choices: Value| json!({"id": "c", "object": "chat.completion.chunk", "choices": choices});
        let said = chunk(json!([{"index": 0, "delta": {"content": text}, "finish_reason": null}]));
        let mut last = chunk(json!([{"index": 0, "delta": {}, "finish_reason": end}]));
        last["usage"] = usage;
        return Answer::events(format!("data: {said}\n\ndata: {last}\n\ndata: [DONE]\n\n"));
    }
    if most == Some(&json!(1000)) || is_short {
        let choice =
            json!({"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": end});
        return Answer::json(
            200,
            &json!({"id": "c", "object": "chat.completion", "choices": [choice], "usage": usage}),
        );
    }
    reply_text(r#"{"upsert": [], "delete": []}"#)
}

fn shop() -> Shop {
    let shop = Shop::responding(respond);
    copy_folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../conversation/tests/check/base"), shop.path());
    shop.configure_layers(&["REFLEX", "NERVES", "MIND", "VOICE"], "capabilities = [\"streaming\"]\n", "");
    shop
}

/// A request of a format that says something.
fn asked(path: &str, words: &str, more: &Value) -> String {
    let say = json!([{"role": "user", "content": words}]);
    let mut body = match path {
        CHAT => json!({"model": "conversation/chat", "messages": say}),
        MESSAGES => json!({"model": "conversation/chat", "max_tokens": 4096, "messages": say}),
        RESPONSES => json!({"model": "conversation/chat", "input": words}),
        _ => json!({"messages": [{"role": "user", "content": [{"text": words}]}]}),
    };
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body.to_string()
}

#[test]
fn a_draft_is_next_to_the_text_in_every_format_whole_and_streamed() {
    let shop = shop();
    let server = Served::start(&shop, &[]);
    let streamed = json!({"stream": true});
    let draft = r#"{"draft":"I was late."}"#;
    for (at, (path, more, place)) in [
        (CHAT, json!({}), format!(r#""larder":{draft}"#)),
        (CHAT, streamed.clone(), format!(r#""larder":{draft}"#)),
        (MESSAGES, json!({}), format!(r#""larder":{draft}"#)),
        (MESSAGES, streamed.clone(), format!(r#""larder":{draft}"#)),
        (RESPONSES, json!({}), format!(r#""larder":{draft}"#)),
        (RESPONSES, streamed, format!(r#""larder":{draft}"#)),
        (CONVERSE, json!({}), format!(r#""additionalModelResponseFields":{{"larder":{draft}}}"#)),
        (CONVERSE_STREAM, json!({}), format!(r#""additionalModelResponseFields":{{"larder":{draft}}}"#)),
    ]
    .into_iter()
    .enumerate()
    {
        let body = asked(path, &format!("message-{at}"), &more);
        // The frames of Amazon's streams are no text.
        let mut reply = Vec::new();
        server.send("POST", path, "", &body).read_to_end(&mut reply).unwrap();
        let reply = String::from_utf8_lossy(&reply);
        assert!(reply.starts_with("HTTP/1.1 200"), "{path}: {reply}");
        assert_eq!(reply.matches(&place).count(), 1, "{path} {more}: {reply}");
        assert!(reply.contains("I see."), "{path}: {reply}");
    }
    // A reply without a draft has no such member.
    let (_, _, reply) = server.ask("POST", CHAT, "", &asked(CHAT, "short", &json!({"max_tokens": 50})));
    assert!(!reply.contains("larder"), "{reply}");
    server.signal("TERM");
    server.end();
}

#[test]
fn a_reply_has_at_most_the_tokens_that_the_request_and_the_type_allow() {
    let shop = shop();
    let server = Served::start(&shop, &[]);
    let most = || {
        let seen = shop.seen();
        let sent: Vec<Value> = seen.iter().map(|seen| serde_json::from_slice(&seen.body).unwrap()).collect();
        let reply = sent.iter().rfind(|body| body["stream"] == true).unwrap();
        reply.get("max_completion_tokens").or_else(|| reply.get("max_tokens")).cloned().unwrap()
    };
    for (at, (path, more, limit, end)) in [
        (CHAT, json!({"max_tokens": 50}), 50, r#""finish_reason":"length""#),
        (CHAT, json!({"max_completion_tokens": 50, "stream": true}), 50, r#""finish_reason":"length""#),
        (CHAT, json!({"max_tokens": 5000}), 1000, r#""finish_reason":"stop""#),
        (MESSAGES, json!({"max_tokens": 50}), 50, r#""stop_reason":"max_tokens""#),
        (RESPONSES, json!({"max_output_tokens": 50, "stream": true}), 50, "response.incomplete"),
        (CONVERSE, json!({"inferenceConfig": {"maxTokens": 50}}), 50, r#""stopReason":"max_tokens""#),
    ]
    .into_iter()
    .enumerate()
    {
        let body = asked(path, &format!("message-{at}"), &more);
        let (status, head, reply) = server.ask("POST", path, "", &body);
        assert_eq!((status, most()), (200, json!(limit)), "{path} {more}: {reply}");
        assert!(reply.contains(end) && reply.contains("I see."), "{path} {more}: {reply}");
        assert!(!head.contains("x-larder-ignored"), "{head}");
    }
    server.signal("TERM");
    server.end();
}

#[test]
fn a_message_that_is_too_long_is_refused_each_time_it_is_sent() {
    let shop = shop();
    let server = Served::start(&shop, &[]);
    let say = |role: &str, words: &str| json!({"role": role, "content": words});
    let send = |messages: &[Value]| {
        let body = json!({"model": "conversation/chat", "messages": messages});
        let (status, _, reply) = server.ask("POST", CHAT, "", &body.to_string());
        (status, reply)
    };
    let (status, reply) = send(&[say("user", "Hello")]);
    assert_eq!(status, 200, "{reply}");
    let told = [say("user", "Hello"), say("assistant", "I see."), say("user", &"words ".repeat(50_000))];
    for _ in 0..2 {
        let (status, reply) = send(&told);
        assert_eq!(status, 400, "{reply}");
        assert!(reply.contains("context_length_exceeded") && reply.contains("send it in parts"), "{reply}");
    }
    server.signal("TERM");
    server.end();
}
