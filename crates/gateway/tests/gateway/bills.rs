//! What a request is charged when its reply does not come to its end.

use futures::StreamExt as _;
use larder_proxy::record::{Outcome, RequestRecord};
use larder_store::{DaySpend, ExchangeFilter, KeyLimits};
use larder_testkit::stub::{Answer, End, StubServer};
use serde_json::{Value, json};

use crate::keys::key;
use crate::support::{Gateway, after_tool, completion, long_log, message};

const LIMITS: KeyLimits = KeyLimits { tokens_per_day: Some(50_000), picos_per_day: None };

/// Events of Anthropic's messages.
fn events(all: &[Value]) -> String {
    let event = |data: &Value| format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap());
    all.iter().map(event).collect()
}

/// The beginning of a message that says thirty bytes: ten tokens, as far as nobody reports them.
fn begun(input: u64) -> String {
    let start = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": [],
        "usage": {"input_tokens": input, "output_tokens": 1}});
    events(&[
        json!({"type": "message_start", "message": start}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x".repeat(30)}}),
    ])
}

/// A message that asks an original back, and nothing else.
fn asking(id: &str) -> String {
    let call = json!({"type": "tool_use", "id": "ours_1", "name": "larder_rehydrate", "input": {}});
    let input = json!({"id": id, "pattern": "ERROR"}).to_string();
    let start = json!({"id": "msg_0", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": [],
        "usage": {"input_tokens": 100, "output_tokens": 1}});
    events(&[
        json!({"type": "message_start", "message": start}),
        json!({"type": "content_block_start", "index": 0, "content_block": call}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": input}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 10}}),
        json!({"type": "message_stop"}),
    ])
}

/// A provider that asks back the first pointer of its prompt, streamed or whole, and then answers with `second`.
async fn asking_then(second: Answer) -> StubServer {
    StubServer::responding(move |seen| {
        let body = seen.json();
        let shown = body["messages"].to_string();
        if shown.contains("ours_1") {
            return second.clone();
        }
        let id = &shown[shown.find("lp1-").unwrap()..][..24];
        if body["stream"] == true {
            return Answer::events(asking(id));
        }
        let call = json!({"role": "assistant", "content": null, "tool_calls": [{"id": "ours_1", "type": "function",
            "function": {"name": "larder_rehydrate", "arguments": json!({"id": id, "pattern": "ERROR"}).to_string()}}]});
        Answer::json(200, &completion(call, "tool_calls"))
    })
    .await
}

/// A streamed request to Anthropic's format, with a result that is pointed at if it is long.
fn streamed(result: &str) -> String {
    json!({"model": "claude", "max_tokens": 1_000, "stream": true,
        "tools": [{"name": "read_log", "input_schema": {"type": "object"}}],
        "messages": [
            {"role": "user", "content": "Which request failed?"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "read_log", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": result}]}]})
    .to_string()
}

/// Sends a streamed request, reads until `until` has come, and leaves; gives the record and what its key has spent.
async fn left(gateway: Gateway, result: &str, until: &str) -> (RequestRecord, DaySpend) {
    let key = key(&gateway, "ada", LIMITS);
    let request = gateway.post("/v1/messages", streamed(result)).bearer_auth(&key);
    let mut stream = request.send().await.unwrap().bytes_stream();
    let mut text = String::new();
    while !text.contains(until) {
        text += std::str::from_utf8(&stream.next().await.unwrap().unwrap()).unwrap();
    }
    drop(stream);
    gateway.provider.client_left().await;
    closed(gateway).await
}

/// The only record of a gateway, and what its key has spent.
async fn closed(gateway: Gateway) -> (RequestRecord, DaySpend) {
    let store = gateway.app.store.clone();
    gateway.stop().await;
    let records = store.user("ada").unwrap().exchanges().list(&ExchangeFilter::default()).unwrap();
    assert_eq!(records.len(), 1);
    let day = store.keys().day_spend(&store.keys().list().unwrap()[0].id).unwrap();
    assert_eq!(day.held.tokens, 0, "nothing stays set aside");
    (serde_json::from_str(&records[0]).unwrap(), day)
}

fn counted(record: &RequestRecord) -> (u64, u64) {
    let usage = record.summary.usage.unwrap();
    (usage.input, usage.output)
}

#[tokio::test]
async fn a_client_that_leaves_pays_for_what_was_read_and_said() {
    let (answer, pusher) = Answer::events("").pushed();
    pusher.push(begun(80));
    let gateway = Gateway::new([answer]).await;
    let (record, day) = left(gateway, "short", &"x".repeat(30)).await;
    assert_eq!(record.summary.outcome, Outcome::ClientGone);
    assert_eq!((counted(&record), day.used.tokens), ((80, 10), 90));
    drop(pusher);
}

#[tokio::test]
async fn a_client_that_leaves_in_a_later_round_pays_for_all_of_them() {
    let (second, pusher) = Answer::events("").pushed();
    pusher.push(begun(200));
    let gateway = Gateway::with(asking_then(second).await, "").await;
    let (record, day) = left(gateway, &long_log(), &"x".repeat(30)).await;
    assert_eq!(record.summary.outcome, Outcome::ClientGone);
    assert_eq!((counted(&record), day.used.tokens), ((300, 20), 320));
    drop(pusher);
}

#[tokio::test]
async fn a_client_that_leaves_before_anything_was_said_pays_what_was_set_aside() {
    let (answer, pusher) = Answer::events("").pushed();
    pusher.push(": hi\n\n");
    let gateway = Gateway::new([answer]).await;
    let (record, day) = left(gateway, "short", ": hi").await;
    assert_eq!((record.summary.outcome, record.summary.usage), (Outcome::ClientGone, None));
    assert_eq!(day.used.tokens, record.summary.tokens.after + 1_000);
    drop(pusher);
}

#[tokio::test]
async fn rounds_of_a_stream_that_breaks_are_charged() {
    for end in [End::Break, End::Clean] {
        let provider = asking_then(Answer::events(begun(200)).ending(end)).await;
        let gateway = Gateway::with(provider, "").await;
        let key = key(&gateway, "ada", LIMITS);
        let request = gateway.post("/v1/messages", streamed(&long_log())).bearer_auth(&key);
        let text = request.send().await.unwrap().text().await.unwrap();
        assert!(text.contains("event: error"), "{text}");
        let (record, day) = closed(gateway).await;
        assert_eq!(record.summary.outcome, Outcome::UpstreamFailed);
        assert_eq!((counted(&record), day.used.tokens), ((300, 20), 320));
    }
}

#[tokio::test]
async fn rounds_before_a_reply_that_cannot_be_read_are_charged() {
    let broken = Answer::json(200, &message(json!([]), "end_turn")).ending(End::Break);
    let strange = Answer::new(200, "application/json", "not json");
    for (second, status, outcome) in [(broken, 502, Outcome::UpstreamFailed), (strange, 200, Outcome::Ok)] {
        let gateway = Gateway::with(asking_then(second).await, "").await;
        let key = key(&gateway, "ada", LIMITS);
        let mut body = after_tool(&long_log());
        body["max_tokens"] = json!(1_000);
        let request = gateway.post("/v1/chat/completions", body.to_string()).bearer_auth(&key);
        assert_eq!(request.send().await.unwrap().status(), status);
        let (record, day) = closed(gateway).await;
        assert_eq!((record.summary.outcome, counted(&record)), (outcome, (100, 10)));
        let known = 110 + record.summary.tokens.after + 1_000;
        assert!(day.used.tokens > known, "and what was set aside for the second round: {}", day.used.tokens);
    }
}
