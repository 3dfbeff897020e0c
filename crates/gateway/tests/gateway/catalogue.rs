//! Models that no setting describes: what the catalogue knows about them is what holds.

use std::sync::Arc;

use larder_engine::config::install_catalogue;
use larder_models::catalogue::{Catalogue, Source};
use larder_proxy::record::{Bill, Tokens};
use larder_store::KeyLimits;
use larder_testkit::stub::{Answer, StubServer};
use serde_json::{Value, json};

use crate::keys::key;
use crate::support::{Gateway, completion, message, said, write_settings};

/// A text of about this many tokens of o200k_base.
fn text(tokens: usize) -> String {
    "The lamp in the hall stands by the door. ".repeat(tokens / 10)
}

/// Sends a prompt of about `tokens` tokens to a model of a default server; what came of it.
async fn asked(model: &str, tokens: usize, max_tokens: u64) -> (u16, Tokens, Option<Bill>, String) {
    let usage = json!({"input_tokens": 1_000_000, "output_tokens": 100_000,
        "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0});
    let mut reply = message(json!([{"type": "text", "text": "hi"}]), "end_turn");
    reply["usage"] = usage;
    let provider = match model.starts_with("claude") {
        true => StubServer::start([Answer::json(200, &reply)]).await,
        false => StubServer::start([said("hi")]).await,
    };
    let address = provider.address();
    let settings = format!("[gateway]\nopenai = \"{address}/v1\"\nanthropic = \"{address}\"\n");
    let gateway = Gateway::with(provider, &settings).await;
    let body = json!({"model": model, "max_tokens": max_tokens,
        "messages": [{"role": "user", "content": text(tokens)}]});
    let response = match model.starts_with("claude") {
        true => gateway.messages(&body).await,
        false => gateway.chat(&body).await,
    };
    let (status, said) = (response.status().as_u16(), response.text().await.unwrap());
    if status == 200 {
        assert_eq!(gateway.last_sent()["messages"], body["messages"], "sent whole");
    }
    let (records, _) = gateway.stop().await;
    (status, records[0].summary.tokens, records[0].summary.bill, said)
}

#[tokio::test]
async fn a_model_that_no_setting_names_has_its_own_window_and_prices() {
    let (status, tokens, bill, _) = asked("claude-sonnet-4-5-20250929", 95_000, 32_000).await;
    assert_eq!((status, tokens.budget), (200, 200_000 - 32_000 - 10_000));
    assert!(tokens.before > 100_000, "more than a window of 128,000 would have left: {tokens:?}");
    assert_eq!(bill.unwrap().cost.to_string(), "4.5", "3 dollars and a tenth of 15");
    let (status, tokens, _, said) = asked("claude-sonnet-4-5-20250929", 130_000, 32_000).await;
    assert_eq!((status, tokens.budget), (400, 158_000), "{said}");
}

/// A model that only the catalogue has.
const DATED: &str = "claude-sonnet-4-5-20250929";

/// The status and the budget of a prompt of some 210,000 tokens, once asked with these features and once counted.
async fn asked_with(settings: &str, model: &str, features: &[&str]) -> Vec<(u16, u64)> {
    let reply = message(json!([{"type": "text", "text": "hi"}]), "end_turn");
    let counted = Answer::json(200, &json!({"input_tokens": 210_000}));
    let provider = StubServer::start([Answer::json(200, &reply), counted]).await;
    let address = provider.address();
    let settings = settings.replace("ADDRESS", address);
    let settings = format!("[gateway]\nopenai = \"{address}/v1\"\nanthropic = \"{address}\"\n{settings}");
    let gateway = Gateway::with(provider, &settings).await;
    let body = json!({"model": model, "max_tokens": 32_000, "messages": [{"role": "user", "content": text(190_000)}]});
    let mut statuses = Vec::new();
    for path in ["/v1/messages", "/v1/messages/count_tokens"] {
        let request = gateway.post(path, body.to_string()).header("anthropic-version", "2023-06-01");
        let request =
            features.iter().fold(request, |request, value| request.header("anthropic-beta", *value));
        let response = request.send().await.unwrap();
        statuses.push(response.status().as_u16());
        response.text().await.unwrap();
    }
    let (records, _) = gateway.stop().await;
    let budgets = records.iter().map(|record| record.summary.tokens.budget);
    statuses.into_iter().zip(budgets).collect()
}

#[tokio::test]
async fn a_claude_model_has_a_window_of_a_million_where_the_request_asks_for_it() {
    const LONG: u64 = 1_000_000 - 32_000 - 50_000;
    let table =
        "[models.sonnet]\nprovider = \"anthropic\"\nid = \"claude-sonnet-4-5\"\nbase_url = \"ADDRESS\"\n";
    for features in [
        &["context-1m-2025-08-07"][..],
        &["files-api-2025-04-14, context-1m-2025-08-07"],
        &["files-api-2025-04-14", "context-1m-2026-01-01,x"],
    ] {
        let asked = asked_with("", DATED, features).await;
        assert_eq!((asked[0], asked[1].0), ((200, LONG), 200), "{features:?}");
    }
    let asked = asked_with(table, "sonnet", &["context-1m-2025-08-07"]).await;
    assert_eq!((asked[0], asked[1].0), ((200, LONG), 200));
    for features in [&[][..], &["files-api-2025-04-14"], &["xcontext-1m-2025-08-07"]] {
        let asked = asked_with("", DATED, features).await;
        assert_eq!(asked[0], (400, 158_000), "{features:?}");
    }
}

#[tokio::test]
async fn bodies_for_bedrock_ask_for_a_window_of_a_million() {
    let features = json!(["files-api-2025-04-14", "context-1m-2025-08-07"]);
    let invoke = json!({"anthropic_version": "bedrock-2023-05-31", "max_tokens": 32_000,
        "messages": [{"role": "user", "content": text(190_000)}]});
    let converse = json!({"inferenceConfig": {"maxTokens": 32_000},
        "messages": [{"role": "user", "content": [{"text": text(190_000)}]}]});
    for (operation, body, field, value) in [
        ("invoke", &invoke, "anthropic_beta", features.clone()),
        ("converse", &converse, "additionalModelRequestFields", json!({"anthropic_beta": features})),
    ] {
        let mut asking = body.clone();
        asking[field] = value;
        // Bedrock reads no header.
        for (body, expected) in [(&asking, (200, 1_000_000 - 32_000 - 50_000)), (body, (400, 158_000))] {
            let reply = Answer::json(200, &message(json!([{"type": "text", "text": "hi"}]), "end_turn"));
            let provider = StubServer::start([reply]).await;
            let settings = format!("[gateway]\nbedrock = \"{}\"\n", provider.address());
            let gateway = Gateway::with(provider, &settings).await;
            let path = format!("/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/{operation}");
            let request =
                gateway.post(&path, body.to_string()).header("anthropic-beta", "context-1m-2025-08-07");
            let status = request.send().await.unwrap().status().as_u16();
            let (records, _) = gateway.stop().await;
            assert_eq!((status, records[0].summary.tokens.budget), expected, "{operation}");
        }
    }
}

#[tokio::test]
async fn a_window_that_settings_state_is_the_window_whatever_a_request_asks_for() {
    let table = "[models.sonnet]\nprovider = \"anthropic\"\nid = \"claude-sonnet-4-5\"\nbase_url = \"ADDRESS\"\nwindow = 200000\n";
    let asked = asked_with(table, "sonnet", &["context-1m-2025-08-07"]).await;
    assert_eq!(asked[0], (400, 158_000));
    let catalogue = "[models.catalogue.\"claude-sonnet-4-5-20250929\"]\nwindow = 200000\n";
    let asked = asked_with(catalogue, DATED, &["context-1m-2025-08-07"]).await;
    assert_eq!(asked[0], (400, 158_000));
}

#[tokio::test]
async fn a_prompt_with_a_limit_of_its_own_may_fill_it_whatever_the_reply_asks_for() {
    for max_tokens in [1_000, 128_000] {
        let (status, tokens, ..) = asked("gpt-5.2", 240_000, max_tokens).await;
        assert_eq!((status, tokens.budget), (200, 272_000 - 13_600), "{max_tokens}");
    }
    let (status, tokens, ..) = asked("o3", 60_000, 100_000).await;
    assert_eq!((status, tokens.budget), (200, 200_000 - 100_000 - 10_000), "o3 shares its window");
}

#[tokio::test]
async fn a_tokenizer_that_is_not_public_is_no_reason_to_refuse_a_short_prompt() {
    let provider = StubServer::start([said("hi")]).await;
    let model = format!(
        "[models.gemini]\nprovider = \"openai\"\nbase_url = \"{}/v1\"\nid = \"gemini-2.5-pro\"\nwindow = 16000\n",
        provider.address()
    );
    let gateway = Gateway::with(provider, &format!("{model}max_output = 8000\n")).await;
    let body = json!({"model": "gemini", "max_tokens": 4_000, "messages": [{"role": "user", "content": text(2_700)}]});
    assert_eq!(gateway.chat(&body).await.status(), 200);
    let (records, _) = gateway.stop().await;
    let charged = records[0].summary.tokens.before;
    assert!((2_700..2_700 * 3 / 2).contains(&charged), "{charged}");
}

#[tokio::test]
async fn what_settings_leave_out_of_a_model_comes_from_the_catalogue() {
    let provider = StubServer::start([]).await;
    let address = provider.address();
    let model = |name: &str, more: &str| {
        format!(
            "[models.{name}]\nprovider = \"openai\"\nbase_url = \"{address}/v1\"\nid = \"gpt-5.2\"\n{more}\n"
        )
    };
    let settings =
        model("bare", "") + &model("mine", "window = 100000\nmax_output = 1000\nprices = { input = 1 }");
    let gateway = Gateway::with(provider, &settings).await;
    let engine = gateway.app.current().engine(&gateway.store());
    let table = engine.models.table();
    let (bare, mine) = (table.model("bare").unwrap(), table.model("mine").unwrap());
    assert_eq!((bare.window, bare.input_limit, bare.max_output), (400_000, Some(272_000), 128_000));
    assert!(bare.prices.is_some());
    assert_eq!(
        (mine.window, mine.input_limit, mine.max_output),
        (100_000, None, 1_000),
        "settings come first"
    );
    assert_ne!(mine.prices, bare.prices);
}

/// What a request to a model of a default server costs whose provider answers this.
async fn billed(path: &str, body: Value, answer: Answer) -> String {
    let provider = StubServer::start([answer]).await;
    let address = provider.address();
    let settings = format!("[gateway]\nopenai = \"{address}/v1\"\nanthropic = \"{address}\"\n");
    let gateway = Gateway::with(provider, &settings).await;
    let request = gateway.post(path, body.to_string()).header("anthropic-version", "2023-06-01");
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200, "{}", response.text().await.unwrap());
    response.text().await.unwrap();
    let (records, _) = gateway.stop().await;
    records[0].summary.bill.unwrap().cost.to_string()
}

#[tokio::test]
async fn a_bill_is_at_the_prices_of_the_service_that_answered() {
    let body = json!({"model": "gpt-5.5", "messages": [{"role": "user", "content": "hi"}]});
    let usage = json!({"prompt_tokens": 100_000, "completion_tokens": 10_000, "total_tokens": 110_000,
        "prompt_tokens_details": {"cached_tokens": 50_000, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 8_000, "audio_tokens": 0}});
    let reply = |tier: &str| {
        let mut reply = completion(json!({"role": "assistant", "content": "hi"}), "stop");
        (reply["usage"], reply["service_tier"]) = (usage.clone(), json!(tier));
        Answer::json(200, &reply)
    };
    for (tier, cost) in [("default", "0.575"), ("priority", "1.4375"), ("flex", "0.2875")] {
        assert_eq!(billed("/v1/chat/completions", body.clone(), reply(tier)).await, cost, "{tier}");
    }
    // Streamed, every chunk names the service, and the last has the usage.
    let chunk = |more: Value| {
        let mut chunk = json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "gpt-5.5",
            "service_tier": "priority", "choices": [], "usage": null});
        more.as_object().unwrap().iter().for_each(|(name, value)| chunk[name] = value.clone());
        format!("data: {chunk}\n\n")
    };
    let choice = json!({"choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"}]});
    let events = chunk(choice) + &chunk(json!({"usage": usage})) + "data: [DONE]\n\n";
    let mut streamed = body;
    streamed["stream"] = json!(true);
    assert_eq!(billed("/v1/chat/completions", streamed, Answer::events(events)).await, "1.4375");
    let usage = json!({"input_tokens": 300_000, "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 10_000, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 310_000});
    let response = |tier: &str| {
        Answer::json(
            200,
            &json!({"id": "r", "object": "response", "status": "completed", "model": "gpt-5.5",
            "service_tier": tier, "output": [], "usage": usage}),
        )
    };
    let body = json!({"model": "gpt-5.5", "input": "hi"});
    assert_eq!(billed("/v1/responses", body.clone(), response("default")).await, "3.45", "a long prompt");
    assert_eq!(billed("/v1/responses", body, response("flex")).await, "1.725");
}

#[tokio::test]
async fn a_bill_has_the_lifetime_that_was_written_to_the_cache() {
    let usage = json!({"input_tokens": 1_000, "cache_creation_input_tokens": 100_000,
        "cache_read_input_tokens": 200_000, "output_tokens": 1_000, "service_tier": "standard",
        "cache_creation": {"ephemeral_5m_input_tokens": 40_000, "ephemeral_1h_input_tokens": 60_000}});
    let mut reply = message(json!([{"type": "text", "text": "hi"}]), "end_turn");
    reply["usage"] = usage.clone();
    let body = json!({"model": "claude-opus-4-7", "max_tokens": 1_000,
        "messages": [{"role": "user", "content": "hi"}]});
    // 0.005 + 0.1 read + 0.25 written for five minutes + 0.6 for an hour + 0.025
    assert_eq!(billed("/v1/messages", body.clone(), Answer::json(200, &reply)).await, "0.98");
    let event = |data: &Value| format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap());
    (reply["content"], reply["stop_reason"], reply["usage"]["output_tokens"]) =
        (json!([]), Value::Null, json!(1));
    let events = [
        json!({"type": "message_start", "message": reply}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "hi"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1_000}}),
        json!({"type": "message_stop"}),
    ];
    let mut streamed = body;
    streamed["stream"] = json!(true);
    let events: String = events.iter().map(event).collect();
    assert_eq!(billed("/v1/messages", streamed, Answer::events(events)).await, "0.98");
}

#[tokio::test]
async fn a_budget_holds_the_most_that_a_request_may_cost() {
    let body = |more: Value| {
        let mut body = json!({"model": "gpt-5.5", "max_tokens": 10_000,
            "messages": [{"role": "user", "content": "hi"}]});
        more.as_object().unwrap().iter().for_each(|(name, value)| body[name] = value.clone());
        body.to_string()
    };
    let provider = StubServer::start([said("hi")]).await;
    let settings = format!("[gateway]\nopenai = \"{}/v1\"\n", provider.address());
    let gateway = Gateway::with(provider, &settings).await;
    // The reply may cost 30 cents, as priority 75.
    let limits = KeyLimits { tokens_per_day: None, picos_per_day: Some(400_000_000_000) };
    let key = key(&gateway, "ada", limits);
    let ask = |more: Value| gateway.post("/v1/chat/completions", body(more)).bearer_auth(&key).send();
    assert_eq!(ask(json!({"service_tier": "priority"})).await.unwrap().status(), 429);
    assert_eq!(ask(json!({})).await.unwrap().status(), 429, "the account's default may be priority");
    assert_eq!(ask(json!({"service_tier": "default"})).await.unwrap().status(), 200);
    gateway.stop().await;
}

#[tokio::test]
async fn the_catalogue_of_the_home_is_the_one_that_holds() {
    let rows = |window: usize| {
        let row = |n: usize| {
            format!(
                "\"acme-{n}\": {{\"litellm_provider\": \"acme\", \"mode\": \"chat\", \"max_input_tokens\": {window}, \
                 \"input_cost_per_token\": 1e-06, \"output_cost_per_token\": 2e-06}}"
            )
        };
        format!("{{{}}}", (0..120).map(row).collect::<Vec<_>>().join(","))
    };
    let source =
        Source { format: 0, source: "mine".into(), date: "2026-11-25".into(), license: "MIT".into() };
    let catalogue = |window| Catalogue::read(&rows(window), source.clone()).unwrap();
    let dir = Arc::new(tempfile::tempdir().unwrap());
    install_catalogue(&dir.path().join(".larder"), &catalogue(30_000)).unwrap();
    let provider = StubServer::start([said("hi"), said("hi")]).await;
    let settings = format!(
        "[gateway]\nopenai = \"{}/v1\"\n[models.catalogue.\"acme-8\"]\nwindow = 77000\n",
        provider.address()
    );
    write_settings(dir.path(), &provider, &settings);
    let gateway = Gateway::on(dir, provider).await;
    for model in ["acme-7", "acme-8"] {
        let body =
            json!({"model": model, "max_tokens": 1_000, "messages": [{"role": "user", "content": "hi"}]});
        assert_eq!(gateway.chat(&body).await.status(), 200);
    }
    let (records, _) = gateway.stop().await;
    let budgets: Vec<u64> = records.iter().map(|record| record.summary.tokens.budget).collect();
    assert_eq!(budgets, [30_000 - 1_000 - 1_500, 77_000 - 1_000 - 3_850]);
    assert_eq!(records[0].summary.bill.unwrap().cost.to_string(), "0.00012");
}

/// The first pointer of a conversation moves what the provider has cached. Where nothing is marked for its cache, there is
/// nothing to lose.
#[tokio::test]
async fn what_a_request_marks_for_the_cache_decides_whether_the_first_pointer_pays() {
    let reply = Answer::json(200, &message(json!([{"type": "text", "text": "hi"}]), "end_turn"));
    let provider = StubServer::start(vec![reply; 2]).await;
    let settings = format!("[gateway]\nanthropic = \"{}\"\n", provider.address());
    let gateway = Gateway::with(provider, &settings).await;
    let listing: String = (0..100).map(|at| format!("shelf {} holds {} jars\n", at * 37, at % 13)).collect();
    let body = |mark: Option<Value>| {
        let mut asked = json!({"type": "text", "text": text(5_000)});
        asked.as_object_mut().unwrap().extend(mark.map(|mark| ("cache_control".to_owned(), mark)));
        json!({"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": [
            {"role": "user", "content": [asked]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "look", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": listing}]}]})
    };
    for (mark, whole) in [(Some(json!({"type": "ephemeral"})), true), (None, false)] {
        assert_eq!(gateway.messages(&body(mark)).await.status(), 200);
        let sent = gateway.last_sent()["messages"][2]["content"][0]["content"].clone();
        assert_eq!(sent == json!(listing), whole, "{sent}");
    }
}
