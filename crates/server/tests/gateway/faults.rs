//! Faults: of the way to the provider, of the store, of the process.

use larder_server::exchange::Outcome;
use larder_testkit::stub::{Answer, End, StubServer};
use serde_json::{Value, json};

use crate::support::{Gateway, after_tool, long_log, pointers, said};

fn body() -> Value {
    json!({"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "hi"}]})
}

/// An address at which nobody listens.
async fn nowhere() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}/v1", listener.local_addr().unwrap())
}

#[tokio::test]
async fn a_provider_that_cannot_be_reached_is_said_to_be_so() {
    let settings = format!("[gateway]\nopenai = \"{}\"\nretries = 1\n", nowhere().await);
    let gateway = Gateway::with(StubServer::start([]).await, &settings).await;
    let response =
        gateway.chat(&json!({"model": "gpt-9", "messages": [{"role": "user", "content": "hi"}]})).await;
    assert_eq!(response.status(), 502);
    let error: Value = response.json().await.unwrap();
    assert!(error["error"]["message"].as_str().unwrap().contains("cannot be reached"), "{error}");
    let (records, _) = gateway.stop().await;
    assert_eq!(
        (records[0].head.outcome, records[0].head.error.as_deref()),
        (Outcome::UpstreamFailed, Some("upstream_unreachable"))
    );
}

#[tokio::test]
async fn a_reply_that_breaks_off_is_no_reply_and_is_not_asked_for_again() {
    for end in [End::Break, End::HalfClose] {
        let gateway =
            Gateway::new([Answer::json(200, &json!({"id": 1})).ending(end), said("never asked")]).await;
        let response = gateway.chat(&body()).await;
        assert_eq!(response.status(), 502);
        assert_eq!(response.json::<Value>().await.unwrap()["error"]["type"], "server_error");
        assert_eq!(gateway.seen().len(), 1, "an unknown outcome is not tried again");
    }
}

#[tokio::test]
async fn a_provider_that_stays_silent_is_given_up_and_left() {
    let provider = StubServer::start([Answer::new(200, "text/plain", "").ending(End::Hang)]).await;
    let gateway = Gateway::with(provider, "[gateway]\nupstream_timeout_s = 1\n").await;
    let response = gateway
        .messages(
            &json!({"model": "claude", "max_tokens": 1, "messages": [{"role": "user", "content": "hi"}]}),
        )
        .await;
    // The head came, so its text passes until the silence.
    assert!(response.status() == 200 && response.text().await.is_err());
    gateway.provider.client_left().await;
}

#[tokio::test]
async fn refusals_are_waited_for_only_as_far_as_the_settings_say() {
    let refusal = |pause: &str| Answer::json(429, &json!({"error": {}})).header("retry-after-ms", pause);
    let settings = "[gateway]\nretry_after_max_s = 1\nretries = 2\n";
    let provider = StubServer::start([refusal("1"), refusal("2"), said("hi")]).await;
    let gateway = Gateway::with(provider, settings).await;
    assert_eq!(gateway.chat(&body()).await.status(), 200);
    assert_eq!(gateway.seen().len(), 3);

    let overloaded = Answer::json(503, &json!({"error": {}}));
    let gateway = Gateway::with(StubServer::start([refusal("60000"), overloaded]).await, settings).await;
    let (late, silent) = (gateway.chat(&body()).await, gateway.chat(&body()).await);
    assert_eq!((late.status().as_u16(), silent.status().as_u16()), (429, 503));
    assert_eq!(late.headers()["retry-after-ms"], "60000");
    assert_eq!(gateway.seen().len(), 2);

    let gateway = Gateway::new([refusal("1")]).await;
    assert_eq!(gateway.chat(&body()).await.status(), 429, "as long as nobody says otherwise");
}

#[tokio::test]
async fn what_is_no_reply_of_the_format_passes_as_it_is() {
    for answer in [Answer::new(200, "application/json", "not json"), Answer::new(200, "text/plain", "hello")]
    {
        let gateway = Gateway::new([answer]).await;
        let text = gateway.chat(&body()).await.text().await.unwrap();
        assert!(["not json", "hello"].contains(&text.as_str()));
    }
}

#[tokio::test]
async fn what_cannot_be_stored_is_not_sent() {
    let gateway = Gateway::new([said("ok")]).await;
    // Where the blobs would go stands a file.
    let blobs = gateway.dir.path().join("home/blobs");
    std::fs::remove_dir_all(&blobs).unwrap();
    std::fs::write(&blobs, "in the way").unwrap();
    let response = gateway.chat(&after_tool(&long_log().repeat(2))).await;
    assert_eq!(response.status(), 500);
    let error: Value = response.json().await.unwrap();
    assert!(error["error"]["message"].as_str().unwrap().contains("nothing was sent"), "{error}");
    assert!(gateway.seen().is_empty());
    std::fs::remove_file(&blobs).unwrap();
    std::fs::create_dir(&blobs).unwrap();
    assert_eq!(gateway.chat(&after_tool(&long_log().repeat(2))).await.status(), 200, "once there is room");
    let shown = gateway.last_sent().to_string();
    let pointer = pointers(&gateway, &shown).remove(0);
    let whole = larder_core::pointer::Pointer::whole(pointer.id);
    assert_eq!(gateway.store().resolve(&whole).unwrap().len(), long_log().len() * 2);
}

#[tokio::test]
async fn two_gateways_over_one_store_agree() {
    let one = Gateway::new([said("ok"), said("ok")]).await;
    let provider = StubServer::start([said("ok")]).await;
    let other = Gateway::on(std::sync::Arc::clone(&one.dir), provider).await;
    let body = after_tool(&long_log());
    one.chat(&body).await;
    // The settings of the folder name the provider of the first.
    other.chat(&body).await;
    let seen = one.seen();
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[0].body, seen[1].body);
    other.stop().await;
    assert_eq!(one.stop().await.0.len(), 2, "the last one sees both records");
}

#[tokio::test]
async fn requests_under_way_end_before_the_gateway_does() {
    let (answer, pusher) = Answer::events("").pushed();
    let mut gateway = Gateway::new([answer]).await;
    let mut streamed = body();
    streamed["stream"] = json!(true);
    pusher.push("data: {\"choices\":[]}\n\n");
    let response = gateway.chat(&streamed).await;
    gateway.ask_to_stop();
    while gateway.get("/healthz").send().await.is_ok() {
        tokio::task::yield_now().await;
    }
    pusher.push("data: [DONE]\n\n");
    drop(pusher);
    assert!(response.text().await.unwrap().ends_with("data: [DONE]\n\n"));
    let (records, cut) = gateway.stop().await;
    assert_eq!((records.len(), records[0].head.outcome, cut), (1, Outcome::Ok, 0));
}

#[tokio::test]
async fn requests_that_do_not_end_in_time_are_cut_and_recorded() {
    let (answer, pusher) = Answer::events("").pushed();
    let provider = StubServer::start([answer]).await;
    let gateway = Gateway::with(provider, "[gateway]\ndrain_s = 0\n").await;
    let mut streamed = body();
    streamed["stream"] = json!(true);
    pusher.push("data: {\"choices\":[]}\n\n");
    let response = gateway.chat(&streamed).await;
    let (records, cut) = gateway.stop().await;
    assert_eq!((records.len(), records[0].head.outcome, cut), (1, Outcome::ClientGone, 1));
    assert!(response.text().await.is_err());
}
