//! Requests for several replies at once: none is lost, none is mixed with another, all are paid for.

use larder_store::KeyLimits;
use larder_testkit::stub::Answer;
use serde_json::{Value, json};

use crate::keys::key;
use crate::support::{Gateway, after_tool, long_log};

/// Two choices, of which the first calls a tool of the client's, and in pieces that take turns.
fn choices() -> (Value, String) {
    let call = json!({"id": "c1", "type": "function", "function": {"name": "read_log", "arguments": "{}"}});
    let called = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    let said = json!({"role": "assistant", "content": "Line 321."});
    let whole = json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-4o-mini",
        "choices": [{"index": 0, "message": called, "finish_reason": "tool_calls"},
            {"index": 1, "message": said, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}});
    let chunk = |index: u64, delta: Value, finish: Value| {
        let chunk = json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o-mini",
            "choices": [{"index": index, "delta": delta, "finish_reason": finish}]});
        format!("data: {chunk}\n\n")
    };
    let call = json!({"index": 0, "id": "c1", "type": "function", "function": {"name": "read_log", "arguments": "{}"}});
    let events = [
        chunk(0, json!({"role": "assistant", "tool_calls": [call]}), Value::Null),
        chunk(1, json!({"role": "assistant", "content": "Line "}), Value::Null),
        chunk(0, json!({}), json!("tool_calls")),
        chunk(1, json!({"content": "321."}), Value::Null),
        chunk(1, json!({}), json!("stop")),
        "data: [DONE]\n\n".to_owned(),
    ];
    (whole, events.concat())
}

#[tokio::test]
async fn choices_pass_as_they_are_and_our_tool_is_not_offered() {
    let (whole, events) = choices();
    let gateway =
        Gateway::new([Answer::json(200, &whole), Answer::events(events.clone()).byte_by_byte()]).await;
    let mut body = after_tool(&long_log());
    body["n"] = json!(2);
    assert_eq!(gateway.chat(&body).await.text().await.unwrap(), whole.to_string());
    body["stream"] = json!(true);
    assert_eq!(gateway.chat(&body).await.text().await.unwrap(), events);
    for seen in gateway.seen() {
        assert!(!String::from_utf8(seen.body).unwrap().contains("larder_rehydrate"));
    }
    let (records, _) = gateway.stop().await;
    assert_eq!(records[0].summary.usage.unwrap().output, 20, "of both");
    let estimated = records[1].summary.usage.unwrap().output;
    assert!(records[1].summary.usage_estimated && estimated >= 3, "of both: {estimated}");
}

#[tokio::test]
async fn as_many_replies_are_set_aside_as_are_asked_for() {
    let limits = KeyLimits { tokens_per_day: Some(2_500), picos_per_day: None };
    for (replies, status) in [(2, 200), (3, 429)] {
        let gateway = Gateway::new([Answer::json(200, &choices().0)]).await;
        let key = key(&gateway, "ada", limits);
        let body = json!({"model": "mini", "max_tokens": 1_000, "n": replies,
            "messages": [{"role": "user", "content": "hi"}]});
        let request = gateway.post("/v1/chat/completions", body.to_string()).bearer_auth(&key);
        assert_eq!(request.send().await.unwrap().status(), status, "{replies} replies");
        assert_eq!(gateway.seen().len(), usize::from(status == 200));
    }
}
