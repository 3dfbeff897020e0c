//! Faults: of the way to the provider, of the store, of the process.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::StreamExt as _;
use larder_gateway::auth::create_key;
use larder_proxy::record::{Outcome, RequestRecord};
use larder_store::{ExchangeFilter, KeyLimits};
use larder_testkit::stub::{Answer, End, StubServer};
use larder_text::pointer::Pointer;
use serde_json::{Value, json};

use crate::support::{
    Gateway, SetClock, after_tool, chat_events, completion, long_log, pointers, said, write,
};

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
        (records[0].summary.outcome, records[0].summary.error.as_deref()),
        (Outcome::UpstreamFailed, Some("upstream_unreachable"))
    );
}

#[tokio::test]
async fn clients_learn_what_kind_of_failure_it_is_and_no_address() {
    let address = nowhere().await.replace("/v1", "/secret-path/v1");
    let settings = format!(
        "[gateway]\nopenai = \"{address}\"\nanthropic = \"{address}\"\nretries = 0\n\
         [models.mine]\nprovider = \"openai\"\nbase_url = \"{address}\"\nid = \"mine-1\"\nwindow = 8000\n\
         max_output = 1000\nretries = 0\n\
         [models.locked]\nprovider = \"openai\"\nbase_url = \"{address}\"\nid = \"locked-1\"\nwindow = 8000\n\
         max_output = 1000\napi_key_file = \"secret-path/openai.key\"\n"
    );
    let broken = Answer::json(200, &json!({"id": 1})).ending(End::Break);
    let gateway = Gateway::with(StubServer::start([broken.clone(), broken]).await, &settings).await;
    let recipe = "name: brief\ndescription: Answer.\nmodel_layer: VOICE\nsystem_prompt: Answer.\nvariables: {length: short}\noutput_format: text\n\
                  token_budget: {total: 2000, prompt: 300, input: 1200, output: 300, response_reserve: 200}\n";
    write(gateway.dir.path().join("recipes/talk/brief.yaml"), recipe);
    let gateway = gateway.restart().await;
    let messages = json!([{"role": "user", "content": "hi"}]);
    let said = |model: &str| json!({"model": model, "max_tokens": 9, "messages": messages}).to_string();
    let responses = json!({"model": "gpt-9", "input": "hi"}).to_string();
    for (path, body, kind) in [
        ("/v1/chat/completions", said("gpt-9"), "openai: cannot be reached: connection refused"),
        ("/v1/chat/completions", said("mine"), "mine: cannot be reached: connection refused"),
        ("/v1/chat/completions", said("locked"), "locked: the key file openai.key contains no usable key"),
        ("/v1/messages", said("claude-9"), "cannot be reached: connection refused"),
        ("/v1/responses", responses.clone(), "cannot be reached: connection refused"),
        ("/v1/embeddings", responses, "cannot be reached: connection refused"),
        ("/v1/files", said("gpt-9"), "cannot be reached: connection refused"),
        ("/v1/chat/completions", said("mini"), "mini: sent a broken reply: the connection broke"),
        ("/v1/chat/completions", said("recipe/talk/brief"), "the connection broke"),
    ] {
        let words = gateway.post(path, body).send().await.unwrap().text().await.unwrap();
        assert!(words.contains(kind), "{path}: {words}");
        assert!(!words.contains("127.0.0.1") && !words.contains("secret-path"), "{path}: {words}");
    }
    let words = gateway.get("/v1/files").send().await.unwrap().text().await.unwrap();
    assert!(words.contains("connection refused") && !words.contains("secret-path"), "{words}");
}

#[tokio::test]
async fn an_interrupted_reply_is_an_error_and_not_retried() {
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
async fn a_refusal_that_names_no_time_is_for_the_client_to_wait_for() {
    let error = json!({"error": {"message": "slow down", "type": "rate_limit_error"}});
    let dates = [None, Some("Wed, 21 Oct 2026 07:28:00 GMT"), Some("soon")];
    let refusal = |date: Option<&str>| {
        let answer = Answer::json(429, &error);
        date.map_or(answer.clone(), |date| answer.header("retry-after", date))
    };
    let answers: Vec<_> = dates.map(refusal).into_iter().chain([said("never asked")]).collect();
    let settings = "[gateway]\nretry_after_max_s = 60\nretries = 2\n";
    let gateway = Gateway::with(StubServer::start(answers).await, settings).await;
    for (before, date) in dates.into_iter().enumerate() {
        let response = gateway.chat(&body()).await;
        assert_eq!(response.status(), 429);
        assert_eq!(response.headers().get("retry-after").map(|date| date.to_str().unwrap()), date);
        assert_eq!(response.json::<Value>().await.unwrap(), error);
        assert_eq!(gateway.seen().len(), before + 1, "it is not sent again");
    }
    let (records, _) = gateway.stop().await;
    assert_eq!(records.len(), dates.len());
    for RequestRecord { summary: head, .. } in records {
        assert_eq!(
            (head.outcome, head.status, head.error.as_deref()),
            (Outcome::UpstreamError, 429, Some("http_429"))
        );
    }
}

#[tokio::test]
async fn a_slow_reply_that_breaks_off_is_not_retried() {
    for end in [End::Break, End::HalfClose] {
        let refusal = Answer::json(429, &json!({"error": {}})).header("retry-after-ms", "1");
        let broken = Answer::json(200, &json!({"id": 1})).ending(end);
        let provider = StubServer::start([refusal, broken, said("never asked")]).await;
        let gateway = Gateway::with(provider, "[gateway]\nretry_after_max_s = 1\nretries = 2\n").await;
        assert_eq!(gateway.chat(&body()).await.status(), 502);
        assert_eq!(gateway.seen().len(), 2);
    }
}

#[tokio::test]
async fn a_storm_of_errors_reaches_every_client_as_it_is_and_passes() {
    fn oops(number: &str) -> Value {
        json!({"error": {"message": format!("no {number}"), "type": "server_error"}})
    }
    let provider = StubServer::responding(|seen| {
        let body = seen.json();
        match body["messages"][0]["content"].as_str().unwrap().strip_prefix("storm ") {
            Some(number) => Answer::json(500, &oops(number)),
            None => said("calm"),
        }
    });
    let settings = "[gateway]\nretry_after_max_s = 1\nretries = 2\n";
    let gateway = Gateway::with(provider.await, settings).await;
    let asked = &gateway;
    let ask = |number: usize| async move {
        let words = format!("storm {number}");
        let body = json!({"model": "gpt-4o-mini", "messages": [{"role": "user", "content": words}]});
        let response = asked.chat(&body).await;
        assert_eq!(response.status(), 500);
        assert_eq!(response.json::<Value>().await.unwrap(), oops(&number.to_string()));
    };
    futures::future::join_all((0..64).map(ask)).await;
    for number in 64..72 {
        ask(number).await;
    }
    assert_eq!(gateway.seen().len(), 72, "each was sent once");
    assert_eq!(gateway.chat(&body()).await.status(), 200);
    let app = Arc::clone(&gateway.app);
    let (records, _) = gateway.stop().await;
    let ids: BTreeSet<&str> = records.iter().map(|record| record.summary.id.as_str()).collect();
    assert_eq!(ids.len(), 73);
    let is_error = |RequestRecord { summary: head, .. }: &&RequestRecord| {
        let told = (head.outcome, head.status, head.error.as_deref());
        told == (Outcome::UpstreamError, 500, Some("http_500")) && head.usage.is_none() && head.bill.is_none()
    };
    assert_eq!(records.iter().filter(is_error).count(), 72);
    assert_eq!(records.iter().filter(|record| record.summary.outcome == Outcome::Ok).count(), 1);
    let totals = app.telemetry.live.user("local").news(0).totals;
    assert_eq!((totals.requests, totals.failed, totals.in_flight), (73, 72, 0));
}

/// A provider whose model asks an original back, and which says nothing more when it has got it.
async fn silent_once_answered(streamed: bool) -> StubServer {
    StubServer::responding(move |seen| {
        let messages = seen.json()["messages"].as_array().unwrap().clone();
        if messages.len() > 4 {
            let kind = if streamed { "text/event-stream" } else { "application/json" };
            return Answer::new(200, kind, "").ending(End::Hang);
        }
        let shown = messages[3]["content"].as_str().unwrap();
        let id = shown[shown.find("lp1-").unwrap()..].get(..24).unwrap();
        let arguments = json!({"id": id, "pattern": "ERROR"}).to_string();
        let call = json!({"index": 0, "id": "ours_1", "type": "function",
            "function": {"name": "larder_rehydrate", "arguments": arguments}});
        let message = json!({"role": "assistant", "content": "Let me see.", "tool_calls": [call]});
        match streamed {
            true => Answer::events(chat_events(&[message], "tool_calls")),
            false => Answer::json(200, &completion(message, "tool_calls")),
        }
    })
    .await
}

#[tokio::test]
async fn a_client_that_leaves_while_an_original_is_read_leaves_nothing_open() {
    for streamed in [false, true] {
        let clock = SetClock::at("2026-11-21T12:00:00Z");
        let provider = silent_once_answered(streamed).await;
        let gateway = Gateway::with_store(provider, "", clock.store()).await;
        let limits = KeyLimits { tokens_per_day: Some(50_000), picos_per_day: None };
        let (key, record) = create_key(&gateway.app.store, "ada", "test", limits).unwrap();
        let mut body = after_tool(&long_log());
        (body["stream"], body["max_tokens"]) = (json!(streamed), json!(1_000));
        let request = gateway.post("/v1/chat/completions", body.to_string()).bearer_auth(key.reveal());
        let asking = tokio::spawn(async move {
            let mut pieces = request.send().await.unwrap().bytes_stream();
            while pieces.next().await.is_some() {}
        });
        while gateway.seen().len() < 2 {
            tokio::task::yield_now().await;
        }
        asking.abort();
        gateway.provider.client_left().await;

        let shown = gateway.seen()[0].json()["messages"][3]["content"].to_string();
        let app = Arc::clone(&gateway.app);
        // All is written when it stops.
        let _gateway = gateway.restart().await;
        let store = app.store.user("ada").unwrap();
        let records = store.exchanges().list(&ExchangeFilter::default()).unwrap();
        let [record_of_it] = records.as_slice() else { panic!("one request, one record") };
        let RequestRecord { summary: head, rehydrations, .. } = serde_json::from_str(record_of_it).unwrap();
        assert_eq!((head.outcome, rehydrations.len()), (Outcome::ClientGone, 1));
        assert!(rehydrations[0].found);
        assert_eq!(app.telemetry.live.user("ada").news(0).totals.in_flight, 0);
        let day = app.store.keys().day_spend(&record.id).unwrap();
        assert_eq!(day.held.tokens, 0, "nothing stays set aside");
        let round = head.tokens.after + head.tokens.output;
        assert!(day.used.tokens > round, "both rounds count: {} of {round}", day.used.tokens);
        let (_, pointer) = store.key().find_in(&shown).remove(0);
        assert_eq!(store.pointers().resolve(&Pointer::whole(pointer.id)).unwrap(), long_log().as_bytes());
    }
}

#[tokio::test]
async fn replies_in_another_format_are_forwarded_unchanged() {
    for answer in [Answer::new(200, "application/json", "not json"), Answer::new(200, "text/plain", "hello")]
    {
        let gateway = Gateway::new([answer]).await;
        let text = gateway.chat(&body()).await.text().await.unwrap();
        assert!(["not json", "hello"].contains(&text.as_str()));
    }
}

#[tokio::test]
async fn requests_are_not_sent_if_originals_cannot_be_stored() {
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
    let whole = Pointer::whole(pointer.id);
    assert_eq!(gateway.store().pointers().resolve(&whole).unwrap().len(), long_log().len() * 2);
}

#[tokio::test]
async fn two_gateways_over_one_store_agree() {
    let one = Gateway::new([said("ok"), said("ok")]).await;
    let provider = StubServer::start([said("ok")]).await;
    let other = Gateway::on(Arc::clone(&one.dir), provider).await;
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
    assert_eq!((records.len(), records[0].summary.outcome, cut), (1, Outcome::Ok, 0));
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
    assert_eq!((records.len(), records[0].summary.outcome, cut), (1, Outcome::ClientGone, 1));
    assert!(response.text().await.is_err());
}

#[tokio::test]
async fn failed_requests_are_booked_under_their_model_and_misspelt_ones_together() {
    let refusal = || Answer::json(429, &json!({"error": {}}));
    let events = chat_events(&[json!({"content": "cut"})], "stop");
    let begun = events.split_inclusive("\n\n").next().unwrap();
    let cut = Answer::events(begun).ending(End::Break);
    let provider = StubServer::start([refusal(), refusal(), refusal(), cut]).await;
    let settings = format!("[gateway]\nopenai = \"{}/v1\"\nretries = 0\n", provider.address());
    let gateway = Gateway::with(provider, &settings).await;
    let ask = |model: &str, stream: bool| json!({"model": model, "stream": stream, "messages": [{"role": "user", "content": "hi"}]});
    for model in ["gpt-4.1", "gpt-typo", "gpt-tpyo"] {
        assert_eq!(gateway.chat(&ask(model, false)).await.status(), 429);
    }
    let broken = gateway.chat(&ask("private-model", true)).await;
    assert!(broken.status() == 200 && broken.text().await.unwrap().contains("the connection broke"));
    assert_eq!(gateway.post("/v1/chat/completions", "no JSON").send().await.unwrap().status(), 400);
    let unknown = gateway.chat(&ask("recipe/no/such", false)).await;
    assert_eq!(unknown.status(), 404);
    let text = gateway.get("/metrics").send().await.unwrap().text().await.unwrap();
    let store = gateway.store();
    gateway.stop().await;
    let costs = store.exchanges().costs(larder_store::Timestamp::from_millis(0)).unwrap();
    let booked: Vec<_> =
        costs.iter().map(|row| (row.model.as_str(), row.recipe.as_deref(), row.requests)).collect();
    let expected = [
        ("gpt-4.1", None, 1),
        ("none", None, 1),
        ("other", None, 2),
        ("other", Some("other"), 1),
        ("private-model", None, 1),
    ];
    assert_eq!(booked, expected);
    for model in ["gpt-4.1", "other", "none", "private-model"] {
        assert!(text.contains(&format!("model=\"{model}\"")), "{model}: {text}");
    }
    assert!(!text.contains("model=\"openai\"") && !text.contains("typo"), "{text}");
}
