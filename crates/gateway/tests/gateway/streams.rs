//! Streams: piece by piece, unchanged, and ended on both sides when one of them goes.

use futures::StreamExt as _;
use larder_gateway::auth::create_key;
use larder_proxy::record::{Outcome, RequestSummary};
use larder_store::{ExchangeFilter, KeyLimits};
use larder_testkit::stub::{Answer, End, StubServer};
use serde_json::json;

use crate::support::{Gateway, SetClock, chat_events};

fn body() -> serde_json::Value {
    json!({"model": "gpt-4o-mini", "stream": true, "messages": [{"role": "user", "content": "hi"}]})
}

#[tokio::test]
async fn a_piece_reaches_the_client_before_the_next_one_is_there() {
    let (answer, pusher) = Answer::events("").header("x-request-id", "r1").pushed();
    let gateway = Gateway::new([answer]).await;
    let events = chat_events(&[json!({"content": "one"}), json!({"content": "two"})], "stop");
    let pieces: Vec<&str> = events.split_inclusive("\n\n").collect();
    // The head comes with the first piece, so both are under way at once.
    pusher.push(pieces[0]);
    let response = gateway.chat(&body()).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert_eq!(response.headers()["x-request-id"], "r1");
    let mut stream = response.bytes_stream();
    assert_eq!(stream.next().await.unwrap().unwrap(), pieces[0]);
    for piece in &pieces[1..] {
        pusher.push(*piece);
        assert_eq!(stream.next().await.unwrap().unwrap(), *piece);
    }
    drop(pusher);
    assert!(stream.next().await.is_none());
    let (records, _) = gateway.stop().await;
    assert_eq!((records[0].summary.outcome, records[0].summary.stream), (Outcome::Ok, true));
}

#[tokio::test]
async fn streams_pass_byte_for_byte_however_they_are_cut() {
    let strange = concat!(
        ": a comment\r\n\r\n",
        "id: 7\r\nretry: 10\r\ndata: {\"id\":\"x\", \"future\": 1e999,\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\u{e9}\"}}]}\r\n\r\n",
        "event: unknown\ndata: not json\n\n",
        "data: [DONE]\n\n",
    );
    for cut in 1..=7 {
        let gateway = Gateway::new([Answer::events(strange).cut_at((0..strange.len()).step_by(cut))]).await;
        let text = gateway.chat(&body()).await.bytes().await.unwrap();
        assert_eq!(std::str::from_utf8(&text).unwrap(), strange, "cut every {cut} bytes");
    }
}

#[tokio::test]
async fn when_the_client_leaves_the_provider_is_left_too() {
    let (answer, pusher) = Answer::events("").pushed();
    let gateway = Gateway::new([answer]).await;
    pusher.push("data: {\"choices\":[]}\n\n");
    let mut stream = gateway.chat(&body()).await.bytes_stream();
    stream.next().await.unwrap().unwrap();
    drop(stream);
    gateway.provider.client_left().await;
    let (records, cut) = gateway.stop().await;
    assert_eq!((records[0].summary.outcome, cut), (Outcome::ClientGone, 0));
}

#[tokio::test]
async fn a_client_that_has_all_of_its_reply_may_go_before_the_providers_connection_ends() {
    for (told, outcome) in [(true, Outcome::Ok), (false, Outcome::ClientGone)] {
        let (answer, pusher) = Answer::events("").pushed();
        let gateway = Gateway::new([answer]).await;
        let events = chat_events(&[json!({"content": "one"})], "stop");
        let begun = events.split_inclusive("\n\n").next().unwrap();
        pusher.push(if told { &events } else { begun });
        let mut stream = gateway.chat(&body()).await.bytes_stream();
        stream.next().await.unwrap().unwrap();
        drop(stream);
        gateway.provider.client_left().await;
        let (records, _) = gateway.stop().await;
        assert_eq!((records[0].summary.outcome, records[0].summary.status), (outcome, 200));
    }
}

#[tokio::test]
async fn when_the_client_leaves_before_the_head_the_provider_is_left_too() {
    let gateway = Gateway::new([Answer::events("").ending(End::Hang)]).await;
    {
        use tokio::io::AsyncWriteExt as _;
        let mut stream = tokio::net::TcpStream::connect(gateway.address()).await.unwrap();
        let body = body().to_string();
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
        while gateway.seen().is_empty() {
            tokio::task::yield_now().await;
        }
    }
    gateway.provider.client_left().await;
    let (records, _) = gateway.stop().await;
    assert_eq!(records[0].summary.outcome, Outcome::ClientGone);
}

#[tokio::test]
async fn a_stream_that_breaks_ends_in_an_error_of_its_format() {
    let begun = chat_events(&[json!({"content": "one"})], "stop");
    let begun = begun.split_inclusive("\n\n").next().unwrap();
    for end in [End::Break, End::HalfClose] {
        let gateway = Gateway::new([Answer::events(begun).ending(end)]).await;
        let text = gateway.chat(&body()).await.text().await.unwrap();
        let rest = text.strip_prefix(begun).unwrap();
        let error: serde_json::Value =
            serde_json::from_str(rest.trim().strip_prefix("data: ").unwrap()).unwrap();
        assert!(error["error"]["message"].as_str().unwrap().contains("broken"), "{error}");
        let (records, _) = gateway.stop().await;
        let head = &records[0].summary;
        assert_eq!((head.outcome, head.error.as_deref()), (Outcome::UpstreamFailed, Some("upstream_failed")));
        assert_eq!(head.status, 200, "what its client was told");
    }
}

/// The beginning and the end of a stream of each format, with the path and the body that ask for it.
fn each_format() -> [(&'static str, serde_json::Value, String, String); 3] {
    let events = |all: &[serde_json::Value]| -> String {
        let event =
            |data: &serde_json::Value| format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap());
        all.iter().map(event).collect()
    };
    let chat = chat_events(&[json!({"role": "assistant", "content": "one"})], "stop");
    let (begun, end) = chat.split_at(chat.find("\n\n").unwrap() + 2);
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "content": [],
        "usage": {"input_tokens": 100, "output_tokens": 1}});
    let begun_message = events(&[
        json!({"type": "message_start", "message": message}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "one"}}),
    ]);
    let end_of_message = events(&[
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}}),
        json!({"type": "message_stop"}),
    ]);
    let response = |status: &str| json!({"id": "resp_1", "status": status, "output": []});
    let begun_response = events(&[
        json!({"type": "response.created", "sequence_number": 0, "response": response("in_progress")}),
        json!({"type": "response.output_text.delta", "sequence_number": 1, "output_index": 0, "delta": "one"}),
    ]);
    let end_of_response = events(&[
        json!({"type": "response.completed", "sequence_number": 2, "response": response("completed")}),
    ]);
    let messages = json!([{"role": "user", "content": "hi"}]);
    let ask = |model: &str| json!({"model": model, "max_tokens": 10, "stream": true, "messages": messages});
    [
        ("/v1/chat/completions", ask("mini"), begun.to_owned(), end.to_owned()),
        ("/v1/messages", ask("claude"), begun_message, end_of_message),
        (
            "/v1/responses",
            json!({"model": "mini", "input": "hi", "stream": true}),
            begun_response,
            end_of_response,
        ),
    ]
}

#[tokio::test]
async fn a_stream_that_ends_before_its_reply_does_is_a_failure() {
    for (path, body, begun, end) in each_format() {
        let whole = format!("{begun}{end}");
        let gateway = Gateway::new([Answer::events(begun.clone()), Answer::events(whole.clone())]).await;
        let ask = || gateway.post(path, body.to_string()).send();
        let text = ask().await.unwrap().text().await.unwrap();
        let rest = text.strip_prefix(&begun).unwrap();
        assert!(rest.contains("error") && rest.contains("ended before its reply did"), "{path}: {rest}");
        assert_eq!(ask().await.unwrap().text().await.unwrap(), whole, "{path}");
        let (records, _) = gateway.stop().await;
        let ends = records.iter().map(|record| (record.summary.outcome, record.summary.error.as_deref()));
        let expected = [(Outcome::UpstreamFailed, Some("upstream_failed")), (Outcome::Ok, None)];
        assert_eq!(ends.collect::<Vec<_>>(), expected, "{path}");
    }
}

#[tokio::test]
async fn an_error_within_a_stream_is_the_providers_own() {
    let [(path, body, begun, _), ..] = each_format();
    let text = format!("{begun}data: {}\n\n", json!({"error": {"message": "overloaded"}}));
    let gateway = Gateway::new([Answer::events(text.clone())]).await;
    assert_eq!(gateway.post(path, body.to_string()).send().await.unwrap().text().await.unwrap(), text);
    let (records, _) = gateway.stop().await;
    assert_eq!(records[0].summary.outcome, Outcome::UpstreamError);
}

#[tokio::test]
async fn a_stream_that_falls_silent_ends_in_an_error_too() {
    let provider = StubServer::start([Answer::events(": hi\n\n").ending(End::Hang)]).await;
    let gateway = Gateway::with(provider, "[gateway]\nupstream_timeout_s = 1\n").await;
    let text = gateway.chat(&body()).await.text().await.unwrap();
    assert!(text.starts_with(": hi\n\n") && text.contains("upstream_timeout"), "{text}");
    gateway.provider.client_left().await;
    let (records, _) = gateway.stop().await;
    let head = &records[0].summary;
    assert_eq!((head.status, head.error.as_deref()), (200, Some("upstream_timeout")));
}

#[tokio::test]
async fn usage_at_the_end_of_a_stream_is_billed() {
    let mut events = chat_events(&[json!({"content": "one"})], "stop");
    let usage =
        json!({"id": "chatcmpl-1", "choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 5}});
    events = events.replace("data: [DONE]\n\n", &format!("data: {usage}\n\ndata: [DONE]\n\n"));
    let gateway = Gateway::new([Answer::events(events.clone())]).await;
    let mut body = body();
    body["stream_options"] = json!({"include_usage": true});
    assert_eq!(gateway.chat(&body).await.text().await.unwrap(), events);
    let (records, _) = gateway.stop().await;
    assert_eq!(records[0].summary.bill.unwrap().cost.to_string(), "0.00101");
}

#[tokio::test]
async fn a_stream_that_reports_nothing_gets_nothing_added_and_is_charged_what_was_set_aside() {
    let events = chat_events(&[json!({"role": "assistant", "content": "x".repeat(30)})], "stop");
    let clock = SetClock::at("2026-11-21T12:00:00Z");
    let provider = StubServer::start([Answer::events(events.clone())]).await;
    let gateway = Gateway::with_store(provider, "", clock.store()).await;
    let limits = KeyLimits { tokens_per_day: Some(50_000), picos_per_day: None };
    let (key, record) = create_key(&gateway.app.store, "ada", "test", limits).unwrap();
    let mut body = body();
    body["max_tokens"] = json!(1_000);
    let request = gateway.post("/v1/chat/completions", body.to_string()).bearer_auth(key.reveal());
    assert_eq!(request.send().await.unwrap().text().await.unwrap(), events);
    assert_eq!(gateway.last_sent(), body, "nothing that its client did not ask for");
    let store = gateway.app.store.clone();
    gateway.stop().await;
    let records = store.user("ada").unwrap().exchanges().list(&ExchangeFilter::default()).unwrap();
    let head: RequestSummary = serde_json::from_str(&records[0]).unwrap();
    let usage = head.usage.unwrap();
    assert_eq!(
        (usage.input, usage.output),
        (head.tokens.after, 10),
        "the prompt as counted, and what was said"
    );
    assert!(head.outcome == Outcome::Ok && head.usage_estimated, "and it is said that nobody reported it");
    let day = store.keys().day_spend(&record.id).unwrap();
    let charged = (day.used.tokens, day.held.tokens);
    assert_eq!(
        charged,
        (head.tokens.after + 1_000, 0),
        "leaving out the report hides no reasoning from a budget"
    );
}
