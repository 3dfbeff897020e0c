//! Budgets of keys wherever something other than a plain request asks models: recipes, questions over MCP, turns.

use std::sync::Arc;

use larder_gateway::auth::create_key;
use larder_store::{DaySpend, ExchangeFilter, KeyLimits, Store, Timestamp};
use larder_testkit::stub::{Answer, End, Seen, StubServer};
use serde_json::{Value, json};

use crate::support::{Gateway, chat_events, said, write, write_settings};

/// Picodollars that one reply of the provider costs: a hundred tokens in and ten out.
const REPLY: u64 = 120_000_000;

const HEAD: &str = "\
description: A recipe.
token_budget: {total: 2000, prompt: 300, input: 1200, output: 300, response_reserve: 200}
system_prompt: Answer in {{ length }}.
variables: {length: one sentence}
";

fn dollars(picos: u64) -> KeyLimits {
    KeyLimits { tokens_per_day: None, picos_per_day: Some(picos) }
}

fn key(gateway: &Gateway, limits: KeyLimits) -> String {
    create_key(&gateway.app.store, "ada", "test", limits).unwrap().0.reveal().to_owned()
}

/// A gateway whose provider says the same to everybody, with recipes in `talk/`.
async fn gateway(recipes: &[(&str, &str)]) -> Gateway {
    let provider = StubServer::responding(|_| said("Forty-two.")).await;
    let gateway = Gateway::with(provider, "[ask]\nplanner = \"rules\"\n").await;
    for (name, rest) in recipes {
        let text = format!("name: {name}\n{HEAD}{rest}");
        write(gateway.dir.path().join(format!("recipes/talk/{name}.yaml")), &text);
    }
    gateway.restart().await
}

async fn run(gateway: &Gateway, key: &str, recipe: &str) -> (u16, String) {
    let body =
        json!({"model": format!("recipe/talk/{recipe}"), "messages": [{"role": "user", "content": "hi"}]});
    let asked = gateway.post("/v1/chat/completions", body.to_string()).bearer_auth(key).send().await.unwrap();
    (asked.status().as_u16(), asked.text().await.unwrap())
}

/// What `ask` says over MCP.
async fn ask(gateway: &Gateway, key: &str, arguments: &Value) -> String {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
    "name": "ask", "arguments": arguments, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }}});
    let request = gateway.post("/mcp", message.to_string()).bearer_auth(key);
    let request = request.header("accept", "application/json, text/event-stream");
    let request = request.header("mcp-protocol-version", "2026-07-28");
    let request = request.header("mcp-method", "tools/call").header("mcp-name", "ask");
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    response.text().await.unwrap()
}

/// A pointer to a text of the key's user.
fn pointer(gateway: &Gateway) -> String {
    let store = gateway.app.store.user("ada").unwrap();
    store
        .pointers()
        .insert(b"The answer is forty-two.", "tool_result", "a result")
        .unwrap()
        .pointer_id
        .to_string()
}

/// What the one key has taken.
fn day(store: &Store) -> DaySpend {
    store.keys().day_spend(&store.keys().list().unwrap()[0].id).unwrap()
}

/// The same, once the gateway has written everything down.
async fn spent(gateway: Gateway) -> DaySpend {
    let store = gateway.app.store.clone();
    gateway.stop().await;
    day(&store)
}

#[tokio::test]
async fn a_recipe_without_model_calls_is_free() {
    let gateway = gateway(&[
        ("paper", "model_layer: VOICE\ninput_docs: [paper.md]\noutput_format: text\n"),
        ("blind", "model_layer: EYES\noutput_format: text\n"),
    ])
    .await;
    let limits = KeyLimits { tokens_per_day: Some(10_000), picos_per_day: Some(1_000_000_000_000) };
    let key = key(&gateway, limits);
    let (status, words) = run(&gateway, &key, "paper").await;
    assert_eq!(status, 400, "it has no document: {words}");
    let (status, words) = run(&gateway, &key, "blind").await;
    assert_eq!(status, 503, "its layer is bound to no model: {words}");
    assert!(gateway.seen().is_empty());
    let day = spent(gateway).await;
    assert_eq!((day.used, day.held), Default::default());
}

const JUDGE: &str = "\
model_layer: VOICE
output_format: json
output_schema: {type: object, required: [answer], properties: {answer: {type: string}}}
quality_gates: {max_retries: 2}
";

#[tokio::test]
async fn a_recipe_that_asks_again_pays_for_every_call() {
    let gateway = gateway(&[("judge", JUDGE)]).await;
    let limits = KeyLimits { tokens_per_day: Some(50_000), picos_per_day: Some(1_000_000_000_000) };
    let key = key(&gateway, limits);
    let (status, words) = run(&gateway, &key, "judge").await;
    assert_eq!(status, 502, "no answer is JSON: {words}");
    let calls = gateway.seen().len() as u64;
    assert!(calls > 1, "it asked again");
    let day = spent(gateway).await;
    assert_eq!((day.used.tokens, day.used.picos), (calls * 110, calls * REPLY));
    assert_eq!(day.held, Default::default());
}

#[tokio::test]
async fn a_recipe_asks_again_only_as_far_as_the_budget_reaches() {
    let gateway = gateway(&[("judge", JUDGE)]).await;
    // A call may take 2,000 tokens, and one takes 110.
    let key = key(&gateway, KeyLimits { tokens_per_day: Some(2_100), picos_per_day: None });
    let (status, words) = run(&gateway, &key, "judge").await;
    assert_eq!((status, gateway.seen().len()), (502, 1), "{words}");
    let day = spent(gateway).await;
    assert_eq!((day.used.tokens, day.held.tokens), (110, 0));
}

/// A gateway whose model never answers, and has a stand-in that answers like this.
async fn late(stand_in: Answer) -> Gateway {
    let respond = move |seen: &Seen| match seen.json()["model"].as_str() {
        Some("spare") => stand_in.clone(),
        _ => Answer::new(200, "application/json", "").ending(End::Hang),
    };
    let provider = StubServer::responding(respond).await;
    let dir = Arc::new(tempfile::tempdir().unwrap());
    write_settings(dir.path(), &provider, &SPARE.replace("ADDRESS", provider.address()));
    let settings = dir.path().join("larder.toml");
    let text = std::fs::read_to_string(&settings).unwrap();
    let id = "id = \"gpt-4o-mini\"";
    let text = text.replace(id, &format!("{id}\ntimeout_ms = 300\nfallback = \"spare\""));
    std::fs::write(&settings, text).unwrap();
    let rest = "model_layer: VOICE\noutput_format: text\nquality_gates: {timeout_ms: 300}\n";
    write(dir.path().join("recipes/talk/brief.yaml"), &format!("name: brief\n{HEAD}{rest}"));
    Gateway::on(dir, provider).await
}

const SPARE: &str = r#"
[models.spare]
provider = "openai"
base_url = "ADDRESS/v1"
id = "spare"
window = 16000
max_output = 1000
retries = 0
prices = { input = 1, cached_input = 0.1, output = 2 }
"#;

/// Picodollars that one call of a recipe may cost: 1,700 tokens in and 300 out.
const CALL: u64 = 2_300_000_000;

#[tokio::test]
async fn a_timed_out_call_is_charged_even_if_its_fallback_answers() {
    let down = Answer::json(503, &json!({"error": {"message": "down"}}));
    for (stand_in, answers, took) in [(said("Forty-two."), true, (110, REPLY)), (down, false, (0, 0))] {
        let gateway = late(stand_in).await;
        let limits = KeyLimits { tokens_per_day: Some(10_000), picos_per_day: Some(1_000_000_000_000) };
        let key = key(&gateway, limits);
        let (status, words) = run(&gateway, &key, "brief").await;
        assert_eq!(status == 200, answers, "{status}: {words}");
        assert_eq!(gateway.seen().len(), 2, "the stand-in was asked");
        let day = spent(gateway).await;
        assert_eq!((day.used.tokens, day.used.picos), (2_000 + took.0, CALL + took.1));
        assert_eq!(day.held, Default::default());
    }
}

#[tokio::test]
async fn a_fallback_after_a_timeout_must_fit_the_budget() {
    let gateway = late(said("Forty-two.")).await;
    // The late call may have taken 2,000 tokens.
    let key = key(&gateway, KeyLimits { tokens_per_day: Some(3_900), picos_per_day: None });
    let (status, words) = run(&gateway, &key, "brief").await;
    assert!(status != 200 && words.contains("no answer within"), "{status}: {words}");
    assert_eq!(gateway.seen().len(), 1);
    let day = spent(gateway).await;
    assert_eq!((day.used.tokens, day.held.tokens), (2_000, 0));
}

#[tokio::test]
async fn a_client_that_leaves_pays_for_the_running_call() {
    let silent = Answer::new(200, "application/json", "").ending(End::Hang);
    let gateway = Gateway::with(StubServer::start([silent]).await, "").await;
    let recipe = format!("name: brief\n{HEAD}model_layer: VOICE\noutput_format: text\n");
    write(gateway.dir.path().join("recipes/talk/brief.yaml"), &recipe);
    let gateway = gateway.restart().await;
    let key = key(&gateway, KeyLimits { tokens_per_day: Some(10_000), picos_per_day: None });
    let body = json!({"model": "recipe/talk/brief", "messages": [{"role": "user", "content": "hi"}]});
    let asking = gateway.post("/v1/chat/completions", body.to_string()).bearer_auth(&key).send();
    let asking = tokio::spawn(asking);
    while gateway.seen().is_empty() {
        tokio::task::yield_now().await;
    }
    asking.abort();
    gateway.provider.client_left().await;
    while day(&gateway.app.store).held.tokens > 0 {
        tokio::task::yield_now().await;
    }
    let day = spent(gateway).await;
    assert_eq!(day.used.tokens, 2_000, "nobody knows what it took: all that was set aside counts");
}

#[tokio::test]
async fn a_question_sets_aside_the_money_that_its_tokens_may_cost() {
    let gateway = gateway(&[]).await;
    // 60,000 tokens, which is what a question may take unless it says less, cost 12 cents as the dearest kind.
    let key = key(&gateway, dollars(50_000_000_000));
    let source = pointer(&gateway);
    let refused = ask(&gateway, &key, &json!({"question": "What is it?", "sources": [source]})).await;
    assert!(refused.contains("may take 60000 tokens and 0.12 US dollars"), "{refused}");
    assert!(refused.contains("a smaller `max_tokens`"), "{refused}");
    assert!(gateway.seen().is_empty());
    let less = json!({"question": "What is it?", "sources": [source], "max_tokens": 20_000});
    ask(&gateway, &key, &less).await;
    let calls = gateway.seen().len() as u64;
    assert!(calls > 0, "4 cents are left");
    let day = spent(gateway).await;
    assert_eq!(
        (day.used.picos, day.held.picos),
        (calls * REPLY, 0),
        "each call that was answered, and no more"
    );
}

#[tokio::test]
async fn costs_hold_every_call_that_was_paid_for_once() {
    let gateway = gateway(&[("judge", JUDGE), ("brief", "model_layer: VOICE\noutput_format: text\n")]).await;
    let key = key(&gateway, dollars(1_000_000_000_000));
    assert_eq!(run(&gateway, &key, "judge").await.0, 502, "it fails, and is paid for");
    assert_eq!(run(&gateway, &key, "brief").await.0, 200);
    let body = json!({"model": "mini", "messages": [{"role": "user", "content": "hi"}]});
    gateway.post("/v1/chat/completions", body.to_string()).bearer_auth(&key).send().await.unwrap();
    let source = pointer(&gateway);
    ask(&gateway, &key, &json!({"question": "What is it?", "sources": [source]})).await;
    let calls = gateway.seen().len() as u64;
    let store = gateway.app.store.clone();
    gateway.stop().await;
    let costs = store.user("ada").unwrap().exchanges().costs(Timestamp::from_millis(0)).unwrap();
    assert_eq!(costs.iter().map(|row| row.cost_picos).sum::<u64>(), calls * REPLY, "{costs:?}");
    let recipes: Vec<_> = costs.iter().filter_map(|row| row.recipe.as_deref()).collect();
    assert_eq!(recipes, ["answer", "talk/brief", "talk/judge"]);
    assert!(costs.iter().all(|row| row.model == "mini"));
}

#[tokio::test]
async fn keys_with_a_dollar_budget_cannot_use_unpriced_models() {
    let provider = StubServer::responding(|_| said("Forty-two.")).await;
    let dir = Arc::new(tempfile::tempdir().unwrap());
    write_settings(dir.path(), &provider, "");
    let settings = dir.path().join("larder.toml");
    let text = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(
        &settings,
        text.replace("VOICE = \"mini\"", "VOICE = \"claude\"").replace("claude-sonnet-4-5", "house"),
    )
    .unwrap();
    let recipe = format!("name: brief\n{HEAD}model_layer: VOICE\noutput_format: text\n");
    write(dir.path().join("recipes/talk/brief.yaml"), &recipe);
    let gateway = Gateway::on(dir, provider).await;
    let key = key(&gateway, dollars(1_000_000_000_000));
    let words = "the model `claude` has no price here";
    let asked =
        ask(&gateway, &key, &json!({"question": "What is it?", "sources": [pointer(&gateway)]})).await;
    assert!(asked.contains(words), "{asked}");
    let (status, ran) = run(&gateway, &key, "brief").await;
    assert!(status == 403 && ran.contains(words), "{status}: {ran}");
    let turn = gateway.post("/api/v1/turns", json!({"query": "What is it?"}).to_string()).bearer_auth(&key);
    let turn = turn.send().await.unwrap();
    assert_eq!(turn.status(), 403);
    let turn = turn.text().await.unwrap();
    assert!(turn.contains(words), "{turn}");
    assert!(gateway.seen().is_empty());
    assert_eq!(spent(gateway).await.held, Default::default());
}

#[tokio::test]
async fn a_client_that_asks_one_request_after_the_other_needs_a_budget_for_one() {
    let usage =
        json!({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}});
    let events = chat_events(&[json!({"content": "Forty-two."})], "stop");
    let events = events.replace("data: [DONE]", &format!("data: {usage}\n\ndata: [DONE]"));
    let provider = StubServer::responding(move |seen| match seen.json()["stream"].as_bool() {
        Some(true) => Answer::events(events.as_str()),
        _ => said("Forty-two."),
    });
    let gateway = Gateway::with(provider.await, "").await;
    // A request reserves a thousand tokens of reply and takes about a hundred.
    let key = key(&gateway, KeyLimits { tokens_per_day: Some(1_900), picos_per_day: None });
    for (number, stream) in [false, true, false, true, false, true].into_iter().enumerate() {
        let body =
            json!({"model": "mini", "stream": stream, "messages": [{"role": "user", "content": "hi"}]});
        let asked =
            gateway.post("/v1/chat/completions", body.to_string()).bearer_auth(&key).send().await.unwrap();
        let status = asked.status();
        let words = asked.text().await.unwrap();
        assert_eq!(status, 200, "request {number}: {words}");
    }
    let large =
        json!({"model": "mini", "max_tokens": 1_900, "messages": [{"role": "user", "content": "hi"}]});
    let refused =
        gateway.post("/v1/chat/completions", large.to_string()).bearer_auth(&key).send().await.unwrap();
    assert_eq!(refused.status(), 429, "the budget still holds");
}

#[tokio::test]
async fn what_has_no_price_is_refused_under_a_budget_in_dollars_and_recorded_otherwise() {
    let gateway = gateway(&[]).await;
    let money = key(&gateway, dollars(1_000_000_000_000));
    let tokens = key(&gateway, KeyLimits { tokens_per_day: Some(100_000), picos_per_day: None });
    let mut bodies = Vec::new();
    for (name, value) in [("modalities", json!(["text", "audio"])), ("web_search_options", json!({}))] {
        bodies.push((
            name,
            json!({"model": "mini", "messages": [{"role": "user", "content": "hi"}], name: value}),
        ));
    }
    let ask = async |key: &str, body: &Value| {
        let asked = gateway.post("/v1/chat/completions", body.to_string()).bearer_auth(key);
        let asked = asked.send().await.unwrap();
        (asked.status().as_u16(), asked.text().await.unwrap())
    };
    for (name, body) in &bodies {
        let (status, words) = ask(&money, body).await;
        assert!(status == 403 && words.contains(&format!("for: {name}.")), "{name}: {status} {words}");
        assert_eq!(ask(&tokens, body).await.0, 200, "{name}");
    }
    let ada = gateway.app.store.user("ada").unwrap();
    gateway.stop().await;
    let records = ada.exchanges().list(&ExchangeFilter::default()).unwrap();
    let records = records.iter().rev().map(|json| serde_json::from_str::<Value>(json).unwrap());
    let answered = records.filter(|record| record["status"] == 200);
    let unpriced: Vec<Value> = answered.map(|record| record["unpriced"].clone()).collect();
    assert_eq!(unpriced, [json!(["modalities"]), json!(["web_search_options"])]);
}
