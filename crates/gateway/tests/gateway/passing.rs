//! What passes: bodies, headers, errors, routes, untouched.

use larder_proxy::record::{Endpoint, Outcome, RequestRecord};
use larder_store::Timestamp;
use larder_testkit::stub::{Answer, StubServer};
use serde_json::{Value, json};

use crate::support::{Gateway, completion, message, said};

/// A body with odd spacing, fields nobody knows, numbers that do not survive being read, and an escape.
const ODD: &str = "{ \"model\" :\"gpt-4o-mini\",\n \"future_field\": {\"b\":1e400 , \"a\": [ ] },\"seed\":18446744073709551616,\
     \"messages\":[ {\"role\":\"user\",\"content\":\"h\\u00e9 \\ud83d\\ude00\"} ]\t}";

#[tokio::test]
async fn a_request_that_needs_nothing_reaches_the_provider_byte_for_byte() {
    let gateway = Gateway::new([said("hi")]).await;
    let response = gateway.post("/v1/chat/completions", ODD).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(gateway.seen()[0].body, ODD.as_bytes());
    assert_eq!(gateway.seen()[0].line, "POST /v1/chat/completions");
    let reply = completion(json!({"role": "assistant", "content": "hi"}), "stop").to_string();
    assert_eq!(response.text().await.unwrap(), reply);
}

#[tokio::test]
async fn a_name_of_the_table_becomes_the_providers_id_and_nothing_else_changes() {
    let gateway = Gateway::new([said("hi")]).await;
    gateway.post("/v1/chat/completions", ODD.replace("gpt-4o-mini", "mini")).send().await.unwrap();
    assert_eq!(gateway.seen()[0].body, ODD.as_bytes());
}

#[tokio::test]
async fn headers_pass_both_ways_except_those_of_the_connection_and_ours() {
    let answer = Answer::json(200, &message(json!([{"type": "text", "text": "hi"}]), "end_turn"))
        .header("request-id", "req_1")
        .header("anthropic-ratelimit-requests-remaining", "41")
        .header("x-larder-session", "somebody else's")
        .header("keep-alive", "timeout=5");
    let gateway = Gateway::new([answer]).await;
    let body = json!({"model": "claude", "max_tokens": 10, "messages": [{"role": "user", "content": "hi"}]});
    let request = gateway
        .post("/v1/messages?beta=true", body.to_string())
        .header("anthropic-version", "2026-10-21")
        .header("anthropic-beta", "context-management-2025-06-27")
        .header("x-api-key", "sk-the-clients-own")
        .header("x-stainless-lang", "js")
        .header("accept-encoding", "gzip, br")
        .header("te", "trailers")
        .header("cookie", "a=b")
        .header("x-larder-session", "talk 7");
    let response = request.send().await.unwrap();
    let seen = &gateway.seen()[0];
    assert_eq!(seen.line, "POST /v1/messages?beta=true");
    for (name, value) in [
        ("anthropic-version", Some("2026-10-21")),
        ("anthropic-beta", Some("context-management-2025-06-27")),
        ("x-api-key", Some("sk-the-clients-own")),
        ("x-stainless-lang", Some("js")),
        ("content-type", Some("application/json")),
        ("accept-encoding", None),
        ("te", None),
        ("cookie", None),
        ("x-larder-session", None),
    ] {
        assert_eq!(seen.header(name), value, "{name}");
    }
    let header = |name: &str| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
    assert_eq!(header("request-id").as_deref(), Some("req_1"));
    assert_eq!(header("anthropic-ratelimit-requests-remaining").as_deref(), Some("41"));
    assert_eq!(header("keep-alive"), None);
    assert_eq!(header("x-larder-session").as_deref(), Some("talk 7"));
    assert_eq!(header("x-larder-pointers").as_deref(), Some("0"));
    assert_eq!(header("x-larder-tokens-before"), header("x-larder-tokens-after"));
    assert!(header("x-larder-request").is_some());
}

#[tokio::test]
async fn a_name_that_no_conversation_may_have_is_refused_with_what_it_may_hold() {
    let gateway = Gateway::new([said("hi")]).await;
    for name in ["talk\t7".as_bytes(), "café".as_bytes()] {
        let name = reqwest::header::HeaderValue::from_bytes(name).unwrap();
        let request = gateway.post("/v1/chat/completions", ODD).header("x-larder-session", name);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 400);
        let error: Value = response.json().await.unwrap();
        let words = error["error"]["message"].as_str().unwrap();
        assert!(words.contains("x-larder-session") && words.contains("control characters"), "{words}");
    }
    assert!(gateway.seen().is_empty());
    let (records, _) = gateway.stop().await;
    assert_eq!((records[0].summary.outcome, records[0].summary.session.as_ref()), (Outcome::Invalid, None));
}

#[tokio::test]
async fn billing_information_does_not_start_a_new_conversation() {
    let reply = message(json!([{"type": "text", "text": "hi"}]), "end_turn");
    let gateway = Gateway::with(StubServer::responding(move |_| Answer::json(200, &reply)).await, "").await;
    let ask = |nonce: &str, rules: &str| {
        let billing =
            format!("x-anthropic-billing-header: cc_version=2.1.36; cc_entrypoint=cli; cch={nonce};");
        let system = json!([{"type": "text", "text": billing},
            {"type": "text", "text": rules, "cache_control": {"type": "ephemeral"}}]);
        json!({"model": "claude-sonnet-4-5", "max_tokens": 10, "system": system,
            "messages": [{"role": "user", "content": "hi"}]})
        .to_string()
    };
    let bodies = [ask("00a1f", "Find faults."), ask("9c2e4", "Find faults."), ask("9c2e4", "Mend faults.")];
    let mut sessions = Vec::new();
    for body in &bodies {
        let response = gateway.post("/v1/messages", body.as_str()).send().await.unwrap();
        sessions.push(response.headers()["x-larder-session"].to_str().unwrap().to_owned());
    }
    assert_eq!(sessions[0], sessions[1]);
    assert_ne!(sessions[1], sessions[2]);
    for (seen, body) in gateway.seen().iter().zip(&bodies) {
        assert_eq!(seen.body, body.as_bytes());
    }
}

#[tokio::test]
async fn a_trace_is_kept_only_if_it_is_one() {
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let strange =
        ["00".to_owned(), trace.to_uppercase(), format!("{trace}-"), "0".repeat(55), "x".repeat(8_000)];
    let given: Vec<&str> = std::iter::once(trace).chain(strange.iter().map(String::as_str)).collect();
    let gateway = Gateway::new(given.iter().map(|_| said("hi"))).await;
    for given in &given {
        let request = gateway.post("/v1/chat/completions", ODD).header("traceparent", *given);
        assert_eq!(request.send().await.unwrap().status(), 200);
    }
    let (records, _) = gateway.stop().await;
    let kept: Vec<_> = records.iter().filter_map(|record| record.summary.traceparent.as_deref()).collect();
    assert_eq!((records.len(), kept), (given.len(), vec![trace]));
}

#[tokio::test]
async fn provider_rejections_are_forwarded_verbatim() {
    let errors = [
        Answer::json(429, &json!({"error": {"message": "slow down", "type": "requests"}}))
            .header("retry-after", "7"),
        Answer::new(500, "text/html", "<h1>oops</h1>"),
        Answer::json(400, &json!({"error": {"message": "no", "param": "x"}})),
    ];
    let gateway = Gateway::new(errors).await;
    let body = json!({"model": "mini", "messages": [{"role": "user", "content": "hi"}]});
    let first = gateway.chat(&body).await;
    assert_eq!((first.status().as_u16(), first.headers()["retry-after"].to_str().unwrap()), (429, "7"));
    assert_eq!(first.json::<Value>().await.unwrap()["error"]["message"], "slow down");
    let second = gateway.chat(&body).await;
    assert_eq!((second.status().as_u16(), second.text().await.unwrap().as_str()), (500, "<h1>oops</h1>"));
    assert_eq!(gateway.chat(&body).await.status(), 400);
    assert_eq!(gateway.seen().len(), 3, "nothing was sent again");
    let (records, _) = gateway.stop().await;
    assert!(records.iter().all(|record| record.summary.outcome == Outcome::UpstreamError));
    assert_eq!(records.iter().map(|record| record.summary.status).collect::<Vec<_>>(), [429, 500, 400]);
}

#[tokio::test]
async fn a_request_is_recorded_with_its_tokens_and_its_price() {
    let gateway = Gateway::new([said("hi")]).await;
    let body = json!({"model": "mini", "max_tokens": 50, "messages": [{"role": "user", "content": "hi"}]});
    let response = gateway.chat(&body).await;
    let id = response.headers()["x-larder-request"].to_str().unwrap().to_owned();
    let (records, cut) = gateway.stop().await;
    let [record] = records.as_slice() else { panic!("one request, one record") };
    let head = &record.summary;
    assert_eq!((head.id.as_str(), head.outcome, head.status, cut), (id.as_str(), Outcome::Ok, 200, 0));
    assert_eq!((head.user.as_str(), head.model.as_str()), ("local", "mini"));
    assert_eq!(head.answered_by.as_ref().unwrap().id, "gpt-4o-mini");
    assert_eq!(head.usage.unwrap().input, 100);
    assert_eq!(head.bill.unwrap().cost.to_string(), "0.00012", "100 tokens in, 10 out");
    assert_eq!((head.tokens.output, head.tokens.before), (50, head.tokens.after));
    assert!(head.session.as_ref().unwrap().starts_with("s-") && head.branch == Some(1));
    assert!(head.times.total_us >= head.times.upstream_us && head.times.policy_us > 0);
}

#[tokio::test]
async fn models_are_named_before_those_of_the_server_for_all_others() {
    let theirs = json!({"object": "list", "data": [{"id": "gpt-9", "object": "model"}]});
    let provider = StubServer::responding(move |_| Answer::json(200, &theirs)).await;
    let settings = format!("[gateway]\nopenai = \"{}/v1\"\n", provider.address());
    let gateway = Gateway::with(provider, &settings).await;
    let list: Value = gateway.get("/v1/models").send().await.unwrap().json().await.unwrap();
    let ids: Vec<&str> =
        list["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap()).collect();
    assert_eq!(&ids[..2], ["mini", "vectors"]);
    assert!(ids.ends_with(&["gpt-9"]), "{ids:?}");
    let anthropic = gateway.get("/v1/models").header("anthropic-version", "2023-06-01");
    let list: Value = anthropic.send().await.unwrap().json().await.unwrap();
    assert_eq!((list["first_id"].as_str(), list["has_more"].as_bool()), (Some("claude"), Some(false)));
    let one: Value = gateway.get("/v1/models/mini").send().await.unwrap().json().await.unwrap();
    assert_eq!(one["id"], "mini");
}

#[tokio::test]
async fn pages_of_anthropics_list_lead_through_all_models_once() {
    // A server that returns pages of at most 20, and one of the table's names.
    let names: Vec<String> = (0..45).map(|at| format!("claude-{at}")).chain(["claude".to_owned()]).collect();
    let theirs = names.clone();
    let provider = StubServer::responding(move |seen| {
        let query = seen.line.split_once('?').map_or("", |(_, query)| query);
        let value = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        let after = value("after_id").map(|id| id.replace("%2D", "-"));
        let start = after.map_or(0, |id| theirs.iter().position(|name| *name == id).unwrap() + 1);
        let page = &theirs[start..theirs.len().min(start + 20)];
        let data: Vec<Value> = page.iter().map(|id| json!({"type": "model", "id": id})).collect();
        Answer::json(
            200,
            &json!({"data": data, "has_more": start + 20 < theirs.len(),
            "first_id": page.first(), "last_id": page.last()}),
        )
    })
    .await;
    let settings = format!("[gateway]\nanthropic = \"{}\"\n", provider.address());
    let gateway = Gateway::with(provider, &settings).await;
    let list = async |query: &str| -> (Vec<String>, Value) {
        let asked = gateway.get(&format!("/v1/models{query}")).header("anthropic-version", "2023-06-01");
        let list: Value = asked.send().await.unwrap().json().await.unwrap();
        let ids =
            list["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap().to_owned());
        let ids: Vec<String> = ids.collect();
        assert_eq!(list["first_id"].as_str(), ids.first().map(String::as_str), "{query}");
        assert_eq!(list["last_id"].as_str(), ids.last().map(String::as_str), "{query}");
        (ids, list["has_more"].clone())
    };
    let (all, has_more) = list("").await;
    assert_eq!(has_more, false);
    assert_eq!((all[0].as_str(), &all[all.len() - 45..]), ("claude", &names[..45]));
    let unique: std::collections::BTreeSet<&String> = all.iter().collect();
    assert_eq!(unique.len(), all.len(), "each once");
    for limit in [1, 7, 20, 1_000] {
        let (mut forwards, mut cursor) = (Vec::new(), String::new());
        loop {
            let (ids, has_more) = list(&format!("?limit={limit}{cursor}")).await;
            assert!(ids.len() <= limit);
            cursor = format!("&after_id={}", ids.last().unwrap().replace('/', "%2F"));
            forwards.extend(ids);
            if has_more == false {
                break;
            }
        }
        assert_eq!(forwards, all, "{limit}");
    }
    let (mut backwards, mut cursor) = (Vec::new(), all.last().unwrap().clone());
    loop {
        let (ids, has_more) = list(&format!("?limit=20&before_id={}", cursor.replace('/', "%2F"))).await;
        cursor.clone_from(&ids[0]);
        backwards.splice(..0, ids);
        if has_more == false {
            break;
        }
    }
    assert_eq!(backwards, all[..all.len() - 1]);
    assert_eq!(list(&format!("?after_id={}", all.last().unwrap())).await, (Vec::new(), json!(false)));
}

#[tokio::test]
async fn models_that_are_not_known_go_to_the_server_for_them_or_nowhere() {
    let gateway = Gateway::new([]).await;
    let body = json!({"model": "gpt-9", "messages": [{"role": "user", "content": "hi"}]});
    let refused = gateway.chat(&body).await;
    assert_eq!(refused.status(), 404);
    let error: Value = refused.json().await.unwrap();
    assert_eq!(error["error"]["code"], "model_not_found");
    assert!(error["error"]["message"].as_str().unwrap().contains("[gateway]"), "{error}");
    let nowhere: Value = gateway.get("/nowhere").send().await.unwrap().json().await.unwrap();
    assert_eq!(nowhere["error"]["code"], "not_found", "a path is no model: {nowhere}");
    let unknown = gateway.get("/api/v1/nosuch").send().await.unwrap();
    assert_eq!(
        (unknown.status().as_u16(), &unknown.headers()["content-type"]),
        (404, &"application/problem+json".parse().unwrap())
    );
    let problem: Value = unknown.json().await.unwrap();
    assert!(problem["detail"].as_str().unwrap().contains("/api/v1/openapi.json"), "{problem}");
    let wrong = gateway.messages(&json!({"model": "mini", "max_tokens": 1, "messages": []})).await;
    assert!(wrong.text().await.unwrap().contains("/v1/chat/completions"));
    assert!(gateway.seen().is_empty());

    let provider = StubServer::start([said("hi")]).await;
    let settings = format!("[gateway]\nopenai = \"{}/v1\"\n", provider.address());
    let gateway = Gateway::with(provider, &settings).await;
    assert_eq!(gateway.chat(&body).await.status(), 200);
    assert_eq!(gateway.last_sent(), body);
    let store = gateway.store();
    let (records, _) = gateway.stop().await;
    let model = records[0].summary.answered_by.as_ref().unwrap();
    assert_eq!((&*model.name, model.server.as_deref()), ("gpt-9", Some("openai")));
    assert_eq!(store.exchanges().costs(Timestamp::from_millis(0)).unwrap()[0].model, "gpt-9");
}

#[tokio::test]
async fn vectors_are_counted_and_come_back_as_they_are() {
    let reply = json!({"object": "list", "data": [{"object": "embedding", "index": 0, "embedding": "AACAPw=="}],
        "model": "text-embedding-3-small", "usage": {"prompt_tokens": 2, "total_tokens": 2}});
    let gateway = Gateway::new([Answer::json(200, &reply)]).await;
    let body = r#"{"input": ["hi"],  "model": "vectors", "encoding_format": "base64"}"#;
    let response = gateway.post("/v1/embeddings", body).send().await.unwrap();
    assert_eq!(response.json::<Value>().await.unwrap(), reply);
    assert_eq!(gateway.seen()[0].body, body.replace("vectors", "text-embedding-3-small").as_bytes());
    let (records, _) = gateway.stop().await;
    assert_eq!(records[0].summary.bill.unwrap().cost.to_string(), "0.000002");
}

#[tokio::test]
async fn a_client_that_asks_over_a_web_socket_is_sent_to_http_at_once() {
    let gateway = Gateway::new([]).await;
    let request = gateway.get("/v1/responses").header("connection", "upgrade").header("upgrade", "websocket");
    let response = request.send().await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["upgrade"]),
        (426, &"HTTP/1.1".parse().unwrap())
    );
    assert!(response.text().await.unwrap().contains("POST"));
    assert_eq!(gateway.get("/v1/responses").send().await.unwrap().status(), 405);
    assert!(gateway.seen().is_empty());
}

#[tokio::test]
async fn routes_that_are_not_known_pass_and_counting_tokens_counts_what_would_be_sent() {
    let answers = [
        Answer::json(200, &json!({"id": "resp_1"})).header("x-request-id", "r"),
        Answer::json(200, &json!({"input_tokens": 14})),
        Answer::json(200, &json!({"input_tokens": 18_000})),
    ];
    let provider = StubServer::start(answers).await;
    let settings = format!("[gateway]\nopenai = \"{}/v1\"\n", provider.address());
    let gateway = Gateway::with(provider, &settings).await;
    let response = gateway.get("/v1/responses/resp_1/input_items?limit=2").send().await.unwrap();
    assert_eq!(response.headers()["x-request-id"], "r");
    assert_eq!(gateway.seen()[0].line, "GET /v1/responses/resp_1/input_items?limit=2");
    let body = json!({"model": "claude", "messages": [{"role": "user", "content": "hi"}]});
    let counted = gateway.post("/v1/messages/count_tokens", body.to_string()).send().await.unwrap();
    assert_eq!(counted.json::<Value>().await.unwrap()["input_tokens"], 14);
    assert_eq!(gateway.seen()[1].line, "POST /v1/messages/count_tokens");
    assert_eq!(gateway.last_sent()["model"], "claude-sonnet-4-5");
    let totals = gateway.app.telemetry.live.user("local").news(0).totals;
    assert_eq!(
        (totals.prompt_tokens, totals.decisions.ok, totals.last),
        (0, 0, None),
        "a count is no prompt"
    );
    let metrics = gateway.app.telemetry.metrics.text().unwrap();
    for line in metrics.lines().filter(|line| line.starts_with("larder_prompt_tokens_total")) {
        assert!(line.ends_with(" 0"), "{line}");
    }
    assert!(
        metrics.contains("context_budget_decision_total{status=\"ok\",dry_run=\"false\"} 0\n"),
        "{metrics}"
    );
    let long =
        json!({"model": "claude", "messages": [{"role": "user", "content": "all different ".repeat(9_000)}]});
    gateway.post("/v1/messages/count_tokens", long.to_string()).send().await.unwrap();
    assert!(gateway.app.telemetry.metrics.text().unwrap().contains("overflow_warnings_total 0\n"));
    let (records, _) = gateway.stop().await;
    let counted = records.iter().filter(|record| record.summary.endpoint == Endpoint::CountTokens);
    assert!(counted.clone().all(|record| record.summary.decision.is_none() && record.window.is_empty()));
    assert!(counted.clone().all(|RequestRecord { summary: head, .. }| {
        (head.usage, head.usage_estimated, head.bill) == (None, false, None) && head.outcome == Outcome::Ok
    }));
    assert_eq!(counted.count(), 2);
}

#[tokio::test]
async fn forwarded_requests_are_recorded_unless_read_only() {
    let answers = [
        Answer::json(200, &json!({"id": "file-1"})),
        Answer::json(200, &json!({"data": []})),
        Answer::json(400, &json!({"error": {"message": "no such size"}})),
    ];
    let provider = StubServer::start(answers).await;
    let settings = format!("[gateway]\nopenai = \"{}/v1\"\n", provider.address());
    let gateway = Gateway::with(provider, &settings).await;
    let sent = gateway.post("/v1/files", "not json").send().await.unwrap();
    assert_eq!(sent.headers()["x-larder-request"].len(), 36);
    assert_eq!(gateway.get("/v1/files").send().await.unwrap().status(), 200);
    let body = json!({"model": "gpt-image-1", "prompt": "a larder"}).to_string();
    let sent = gateway.post("/v1/images/generations?x=secret", body.clone()).send().await.unwrap();
    assert_eq!(sent.status(), 400);
    assert_eq!(gateway.seen()[2].body, body.as_bytes());
    let (records, _) = gateway.stop().await;
    let told: Vec<_> = records
        .iter()
        .map(|record| {
            (record.summary.route.as_deref().unwrap(), &*record.summary.model, record.summary.status)
        })
        .collect();
    assert_eq!(
        told,
        [("POST /v1/files", "openai", 200), ("POST /v1/images/generations", "gpt-image-1", 400)]
    );
    assert!(
        records
            .iter()
            .all(|record| record.summary.endpoint == Endpoint::Passed && record.summary.bill.is_none())
    );
    assert_eq!(records[1].summary.outcome, Outcome::UpstreamError);
}

#[tokio::test]
async fn a_path_that_its_server_may_take_for_another_is_not_sent() {
    let provider = StubServer::responding(|_| Answer::json(200, &json!({"id": "x"}))).await;
    let address = provider.address();
    let settings =
        format!("[gateway]\nopenai = \"{address}/v1\"\nanthropic = \"{address}\"\nbedrock = \"{address}\"\n");
    let gateway = Gateway::with(provider, &settings).await;
    let ask = async |line: &str| {
        let head = "host: localhost\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
        raw(&gateway, &format!("{line} HTTP/1.1\r\n{head}")).await
    };
    for line in [
        "GET /v1/%2e%2e/admin",
        "GET /v1/x/%2E%2e/%2e%2e/admin",
        "GET /v1/models/../files/f-1/content",
        "GET /v1/models/%2e%2e/files/f-1/content",
        "GET /v1/models/.%2e/files/f-1/content",
        "GET /v1/models/%252e%252e/files/f-1/content",
        "GET /v1/models/..%2ffiles",
        "GET /v1/models/..\\files/f-1",
        "GET /v1/files/f-1/./content",
        "DELETE /v1/models/../files/f-1",
        "POST /v1/moderations/../completions",
        "POST /v1/images/..\\batches",
        "POST /v1/uploads/%2e%2e/chat/completions",
        "POST /model/../async-invoke",
        "POST /model/anthropic.claude/x/%2e%2E/converse",
        "POST /model/./converse",
        "POST /model/a%5Cb/converse",
        "POST /v1/files/",
        "POST /v1//files",
    ] {
        let response = ask(line).await;
        assert!(response.starts_with("HTTP/1.1 404"), "{line}: {response}");
        assert!(response.contains("no such route"), "{line}: {response}");
        assert!(gateway.seen().is_empty(), "{line}");
    }
    for line in [
        "GET /v1/models/org%2Fmodel",
        "POST /model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Aimported-model%2Fa/invoke",
        "POST /model/amazon.titan:0/invoke?x=../%2e%2e",
    ] {
        let response = ask(line).await;
        assert!(response.starts_with("HTTP/1.1 200"), "{line}: {response}");
        assert_eq!(gateway.seen().last().unwrap().line, line);
    }
}

/// Sends bytes and gives back all that comes.
async fn raw(gateway: &Gateway, bytes: &str) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = tokio::net::TcpStream::connect(gateway.address()).await.unwrap();
    stream.write_all(bytes.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    response
}

#[tokio::test]
async fn health_needs_no_key_and_readiness_says_what_was_refused() {
    let gateway = Gateway::new([]).await;
    for path in ["/healthz", "/health", "/livez"] {
        assert_eq!(gateway.get(path).send().await.unwrap().text().await.unwrap(), "ok", "{path}");
    }
    let ready: Value = gateway.get("/readyz").send().await.unwrap().json().await.unwrap();
    let hot = json!({"models": 0, "warm": 0, "failed": 0});
    assert_eq!(ready, json!({"ready": true, "degraded": null, "refused_change": null, "hot": hot}));
}

#[tokio::test]
async fn a_missing_path_prefix_is_explained() {
    let gateway = Gateway::new([]).await;
    let response = gateway.post("/chat/completions", ODD).send().await.unwrap();
    assert_eq!(response.status(), 404);
    let error: Value = response.json().await.unwrap();
    let words = error["error"]["message"].as_str().unwrap();
    assert!(words.contains("/chat/completions") && words.contains("ends in /v1"), "{words}");
    assert!(gateway.seen().is_empty());
}

#[tokio::test]
async fn a_request_is_known_to_the_api_as_soon_as_its_reply_is_there() {
    let gateway = Gateway::new([said("hi"), said("hi")]).await;
    let body = json!({"model": "mini", "max_tokens": 10, "messages": [{"role": "user", "content": "hi"}]});
    for (path, kind) in [("/api/v1/exchanges", "application/json"), ("/requests", "text/html; charset=utf-8")]
    {
        let reply = gateway.chat(&body).await;
        let id = reply.headers()["x-larder-request"].to_str().unwrap().to_owned();
        reply.bytes().await.unwrap();
        let record = gateway.get(&format!("{path}/{id}")).send().await.unwrap();
        assert_eq!(
            (record.status().as_u16(), record.headers()["content-type"].to_str().unwrap()),
            (200, kind)
        );
    }
    let unknown = gateway.get("/api/v1/exchanges/unknown").send().await.unwrap();
    assert_eq!(unknown.status(), 404);
}
