//! Revisions of what is learned: new conversations use the newest one, those under way keep theirs, in every process.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use larder_testkit::stub::{Answer, StubServer};
use serde_json::{Value, json};

use crate::support::{Gateway, after_tool, long_log, message, said};

/// Learns one value; returns the number of the revision.
fn learn(gateway: &Gateway, key: &str, value: &str) -> u64 {
    let changes = BTreeMap::from([(key.to_owned(), Some(value.to_owned()))]);
    gateway.app.store.revisions().write("a test", &changes).unwrap()
}

/// Sends a history as one conversation, and gives what the provider of `one` got.
async fn sent(one: &Gateway, gateway: &Gateway, session: &str, body: &Value) -> Vec<u8> {
    let request = gateway.post("/v1/chat/completions", body.to_string());
    let reply = request.header("x-larder-session", session).send().await.unwrap();
    assert_eq!(reply.status(), 200);
    let id = reply.headers()["x-larder-request"].to_str().unwrap().to_owned();
    reply.bytes().await.unwrap();
    gateway.app.recorded("local", &id).await;
    one.seen().last().unwrap().body.clone()
}

/// A history that has gone on since.
fn later() -> Value {
    let mut body = after_tool(&long_log());
    let more = [json!({"role": "assistant", "content": "321"}), json!({"role": "user", "content": "Sure?"})];
    body["messages"].as_array_mut().unwrap().extend(more);
    body
}

#[tokio::test]
async fn a_conversation_under_way_keeps_its_revision_in_every_process() {
    keeps_its_revision([("policy.entry_cap", "300"), ("policy.entry_cap", "600")]).await;
}

#[tokio::test]
async fn a_conversation_under_way_keeps_the_caps_of_its_tools_in_every_process() {
    let caps = ["{ read_log = 300 }", "{ \"read_*\" = 600 }"].map(|caps| ("policy.tool_caps", caps));
    keeps_its_revision(caps).await;
}

/// Learns two values one after the other, with conversations that began before, between and after.
async fn keeps_its_revision([(key, value), (next_key, next)]: [(&str, &str); 2]) {
    let one = Gateway::new(vec![said("321"); 20]).await;
    // Another process on the same home, with the same settings and so the same provider.
    let other = Gateway::on(Arc::clone(&one.dir), StubServer::start([]).await).await;
    let first = after_tool(&long_log());
    let old = sent(&one, &one, "old", &first).await;
    assert_eq!(learn(&one, key, value), 1);
    assert_eq!(sent(&one, &other, "old", &first).await, old, "begun before, in another process");
    let new = sent(&one, &one, "new", &first).await;
    assert_ne!(new, old);
    assert_eq!(sent(&one, &other, "new", &first).await, new);
    assert_eq!(learn(&other, next_key, next), 2);
    for session in ["old", "new"] {
        let begun = if session == "old" { &old } else { &new };
        let (mine, theirs) =
            (sent(&one, &one, session, &later()).await, sent(&one, &other, session, &later()).await);
        assert_eq!(mine, theirs);
        let tool = |body: &[u8]| {
            let body: Value = serde_json::from_slice(body).unwrap();
            body["messages"][3]["content"].clone()
        };
        assert_eq!(tool(&mine), tool(begun), "{session}: its prefix stays");
    }
    assert_ne!(sent(&one, &other, "newest", &first).await, new);
    let revisions = |records: Vec<larder_proxy::record::RequestRecord>| {
        let named = records.into_iter().map(|record| record.summary);
        named.map(|head| (head.session.unwrap(), head.revision.unwrap())).collect::<Vec<_>>()
    };
    one.stop().await;
    let mut found = revisions(other.stop().await.0);
    found.sort();
    found.dedup();
    assert_eq!(found, [("new".to_owned(), 1), ("newest".to_owned(), 2), ("old".to_owned(), 0)]);
}

#[tokio::test]
async fn what_the_settings_say_is_not_overridden() {
    let gateway =
        Gateway::with(StubServer::start(vec![said("321"); 2]).await, "[policy]\nentry_cap = 500\n").await;
    let before = sent(&gateway, &gateway, "before", &after_tool(&long_log())).await;
    learn(&gateway, "policy.entry_cap", "300");
    assert_eq!(sent(&gateway, &gateway, "after", &after_tool(&long_log())).await, before);
}

#[tokio::test]
async fn a_factor_of_estimates_is_a_revision_of_all_users_and_processes() {
    let reported = Arc::new(AtomicU64::new(0));
    let reports = Arc::clone(&reported);
    let provider = StubServer::responding(move |_| {
        let mut reply = message(json!([{"type": "text", "text": "321"}]), "end_turn");
        reply["usage"]["input_tokens"] = json!(reports.load(Ordering::SeqCst));
        Answer::json(200, &reply)
    })
    .await;
    let one = Gateway::with(provider, "").await;
    let other = Gateway::on(Arc::clone(&one.dir), StubServer::start([]).await).await;
    // The tokens charged, and the revision by which they are.
    let charged = async |gateway: &Gateway, session: &str| {
        let text = "Which request failed, and why? ".repeat(50);
        let body =
            json!({"model": "claude", "max_tokens": 10, "messages": [{"role": "user", "content": text}]});
        let request = gateway.post("/v1/messages", body.to_string()).header("x-larder-session", session);
        let reply = request.send().await.unwrap();
        assert_eq!(reply.status(), 200);
        let header = |name: &str| reply.headers()[name].to_str().unwrap().to_owned();
        let (id, tokens) =
            (header("x-larder-request"), header("x-larder-tokens-after").parse::<u64>().unwrap());
        reply.bytes().await.unwrap();
        gateway.app.recorded("local", &id).await;
        let record = gateway.store().exchanges().get(&id).unwrap().unwrap();
        let record: Value = serde_json::from_str(&record).unwrap();
        (tokens, record["revision"].as_u64().unwrap())
    };
    let (before, _) = charged(&one, "early").await;
    reported.store(before / 2, Ordering::SeqCst);
    for _ in 0..8 {
        assert_eq!(charged(&one, "early").await, (before, 0), "it keeps what it began with");
    }
    let learned = one.app.store.revisions().list(None).unwrap();
    assert_eq!(learned.len(), 1, "{learned:?}");
    let (key, value) = learned[0].changes.first_key_value().unwrap();
    assert_eq!(key, r#"models.claude-sonnet-4-5.estimate_factor."claude-4.6 o200k_base 108 115 130 145""#);
    assert!(
        learned[0].cause.ends_with(&format!("multiplied by {}", value.as_deref().unwrap())),
        "{learned:?}"
    );
    let (corrected, revision) = charged(&other, "late").await;
    assert!(revision == 1 && corrected * 20 < before * 19, "{corrected} of {before}");
    assert!(corrected >= before * 130 / 145, "half was reported, but code takes more in this family");
    assert_eq!(charged(&one, "late").await, (corrected, 1));
    assert_eq!(charged(&other, "early").await, (before, 0));
    one.app.store.revisions().revert(0).unwrap();
    assert_eq!(charged(&one, "latest").await, (before, 2), "as without the factor");
    assert_eq!(charged(&one, "late").await, (corrected, 1));
    one.stop().await;
    other.stop().await;
}

#[tokio::test]
async fn a_conversation_that_only_counted_its_tokens_begins_with_the_newest_revision() {
    let provider = StubServer::responding(|seen| match seen.line.contains("count_tokens") {
        true => Answer::json(200, &json!({"input_tokens": 14})),
        false => Answer::json(200, &message(json!([{"type": "text", "text": "321"}]), "end_turn")),
    })
    .await;
    let gateway = Gateway::with(provider, "").await;
    let mut body = results("clod-9", 1);
    body["model"] = json!("claude");
    // What the provider gets, whether it is to count or to answer.
    let sent = async |path: &str| {
        let request = gateway.post(path, body.to_string()).header("x-larder-session", "s");
        let reply = request.send().await.unwrap();
        assert_eq!(reply.status(), 200);
        let id = reply.headers()["x-larder-request"].to_str().unwrap().to_owned();
        reply.bytes().await.unwrap();
        gateway.app.recorded("local", &id).await;
        gateway.last_sent()["messages"].clone()
    };
    let unlearned = sent("/v1/messages/count_tokens").await;
    let number = learn(&gateway, "policy.entry_cap", "300");
    let counted = sent("/v1/messages/count_tokens").await;
    assert_ne!(counted, unlearned, "counted as it would be sent");
    assert_eq!(sent("/v1/messages").await, counted);
    assert_eq!(gateway.store().session_revisions().get("s").unwrap(), Some(number));
    learn(&gateway, "policy.entry_cap", "600");
    assert_eq!(sent("/v1/messages/count_tokens").await, counted, "under way");
    gateway.stop().await;
}

/// The bytes of a body from which on the provider refuses it.
const REFUSED: usize = 100_000;

/// How three servers word that a prompt is too long.
fn refusal(model: &str) -> Value {
    let message = match model {
        "far-away-7b" => {
            "This model's maximum context length is 32768 tokens. However, you requested 99000 tokens."
        }
        "org/unheard-of:free" => {
            "request (99000 tokens) exceeds the available context size (32768 tokens), try increasing it"
        }
        _ => "prompt is too long: 99000 tokens > 32768 maximum",
    };
    json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}})
}

/// A gateway whose provider takes any model, and refuses what is too long for all of them.
async fn unknown_models() -> Gateway {
    let provider = StubServer::responding(|seen| {
        let body = seen.json();
        match seen.body.len() > REFUSED {
            true => Answer::json(400, &refusal(body["model"].as_str().unwrap())),
            false if seen.line.ends_with("/messages") => {
                Answer::json(200, &message(json!([{"type": "text", "text": "321"}]), "end_turn"))
            }
            false => said("321"),
        }
    })
    .await;
    let address = provider.address();
    let settings = format!("[gateway]\nopenai = \"{address}/v1\"\nanthropic = \"{address}\"\n");
    Gateway::with(provider, &settings).await
}

/// A history with this many results of a tool, in the format that the model is asked in.
fn results(model: &str, count: usize) -> Value {
    let log = long_log();
    let mut messages = vec![json!({"role": "user", "content": "Which request failed?"})];
    for at in 0..count {
        // No result repeats another.
        let log = log.replace(" INFO ", &format!(" INFO{at} "));
        match model {
            "clod-9" => messages.extend([
                json!({"role": "assistant", "content": [
                    {"type": "tool_use", "id": format!("toolu_{at}"), "name": "read_log", "input": {"at": at}}]}),
                json!({"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": format!("toolu_{at}"), "content": log}]}),
            ]),
            _ => messages.extend([
                json!({"role": "assistant", "content": null, "tool_calls": [{"id": format!("call_{at}"),
                    "type": "function", "function": {"name": "read_log", "arguments": format!("{{\"at\": {at}}}")}}]}),
                json!({"role": "tool", "tool_call_id": format!("call_{at}"), "content": log}),
            ]),
        }
    }
    json!({"model": model, "max_tokens": 500, "messages": messages})
}

/// Sends a conversation of this name, and gives the status of the reply.
async fn ask(gateway: &Gateway, session: &str, body: &Value) -> u16 {
    let path = if body["model"] == "clod-9" { "/v1/messages" } else { "/v1/chat/completions" };
    let request = gateway.post(path, body.to_string()).header("x-larder-session", session);
    let reply = request.header("anthropic-version", "2023-06-01").send().await.unwrap();
    let status = reply.status().as_u16();
    reply.bytes().await.unwrap();
    status
}

#[tokio::test]
async fn the_window_of_a_model_that_nobody_knows_is_learned_from_its_refusal() {
    for model in ["far-away-7b", "org/unheard-of:free", "clod-9"] {
        let gateway = unknown_models().await;
        assert_eq!(ask(&gateway, "short", &results(model, 2)).await, 200);
        assert!(gateway.last_sent() == results(model, 2), "nothing is shortened on a guess");
        assert_eq!(ask(&gateway, "long", &results(model, 8)).await, 400, "as the provider has it");
        assert!(gateway.last_sent() == results(model, 8));
        let learned = gateway.app.store.revisions().list(None).unwrap();
        assert_eq!(learned.len(), 1, "{learned:?}");
        assert_eq!(
            learned[0].cause,
            format!("the provider refused a prompt to {model} as longer than 32768 tokens")
        );
        let key = larder_engine::config::window_key(model);
        assert_eq!(learned[0].changes, BTreeMap::from([(key, Some("32768".to_owned()))]));
        for session in ["long", "new"] {
            assert_eq!(ask(&gateway, session, &results(model, 8)).await, 200, "{session}");
        }
        assert_eq!(ask(&gateway, "short", &results(model, 2)).await, 200);
        assert!(gateway.last_sent() == results(model, 2), "under way");
        assert_eq!(gateway.app.store.revisions().newest().unwrap(), 1);
        let records = gateway.stop().await.0;
        let told: Vec<_> = records
            .iter()
            .map(|record| &record.summary)
            .map(|head| {
                (head.session.as_deref().unwrap(), head.revision, head.unknown_window, head.tokens.budget > 0)
            })
            .collect();
        assert_eq!(
            told,
            [
                ("short", Some(0), true, false),
                ("long", Some(0), true, false),
                ("long", Some(1), false, true),
                ("new", Some(1), false, true),
                ("short", Some(0), true, false),
            ]
        );
    }
}

#[tokio::test]
async fn only_floods_are_shortened_for_a_model_that_nobody_knows() {
    let gateway = unknown_models().await;
    let mut body = results("far-away-7b", 2);
    let flood: String = (0..4).map(|at| long_log().replace(" took ", &format!(" took{at} "))).collect();
    body["messages"][2]["content"] = json!(flood);
    assert_eq!(ask(&gateway, "flood", &body).await, 200);
    let sent = gateway.last_sent();
    let shortened = sent["messages"][2]["content"].as_str().unwrap();
    assert!(shortened.contains("lp1-") && shortened.len() > flood.len() / 4, "{}", shortened.len());
    assert_eq!(sent["messages"][4], body["messages"][4], "an ordinary result stays");
}

#[tokio::test]
async fn an_implausible_limit_is_not_learned() {
    let limit = json!({"error": {"message": "This model's maximum context length is 1000000 tokens."}});
    let small = json!({"error": {"message": "This model's maximum context length is 16 tokens."}});
    let provider = StubServer::start([Answer::json(400, &limit), Answer::json(400, &small)]).await;
    let settings = format!("[gateway]\nopenai = \"{}/v1\"\n", provider.address());
    let gateway = Gateway::with(provider, &settings).await;
    for _ in 0..2 {
        assert_eq!(ask(&gateway, "s", &results("far-away-7b", 1)).await, 400);
    }
    assert_eq!(gateway.app.store.revisions().newest().unwrap(), 0);
}

/// One more call of a tool and its result, which nothing before it contains.
fn step(body: &mut Value, at: usize) {
    let log: String = (1..=60)
        .map(|line| format!("step {at} line {line}: {} ms, {}\n", line * at, line * 7_919 + at))
        .collect();
    let call = json!({"id": format!("call_{at}"), "type": "function",
        "function": {"name": "read_log", "arguments": format!("{{\"at\": {at}}}")}});
    let more = [
        json!({"role": "assistant", "content": null, "tool_calls": [call]}),
        json!({"role": "tool", "tool_call_id": format!("call_{at}"), "content": log}),
    ];
    body["messages"].as_array_mut().unwrap().extend(more);
}

#[tokio::test]
async fn a_conversation_changes_its_revision_in_a_declared_epoch_only() {
    // Results stay whole until their sum is too large.
    let settings = "[policy]\nentry_cap = 100000\ntrace_threshold_tokens = 9000\nexpected_turns = 1000\n";
    let one = Gateway::with(StubServer::start(vec![said("321"); 60]).await, settings).await;
    let other = Gateway::on(Arc::clone(&one.dir), StubServer::start([]).await).await;
    let mut body = json!({"model": "mini", "messages": [{"role": "user", "content": "Which step is slow?"}]});
    let (mut before, mut revision, mut epochs) = (Vec::new(), 0, 0);
    for at in 1..=16 {
        step(&mut body, at);
        if at == 3 {
            learn(&one, "policy.low_watermark", "0.2");
        }
        let (first, second) = if at % 2 == 0 { (&one, &other) } else { (&other, &one) };
        let now = sent(&one, first, "s", &body).await;
        assert_eq!(sent(&one, second, "s", &body).await, now, "step {at}");
        let now: Value = serde_json::from_slice(&now).unwrap();
        let now = now["messages"].as_array().unwrap().clone();
        let used = one.store().session_revisions().get("s").unwrap().unwrap_or(0);
        if now.starts_with(&before) {
            assert_eq!(used, revision, "step {at} extends the prompt");
        } else {
            epochs += 1;
            assert_eq!(used, 1, "step {at} declares an epoch");
        }
        (before, revision) = (now, used);
    }
    assert!(epochs > 0 && revision == 1, "{epochs}");
}
