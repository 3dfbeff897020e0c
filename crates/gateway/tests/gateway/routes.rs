//! Routes that Larder only forwards: who may use them, with whose key, at which server, and what they are charged.

use std::sync::Arc;

use larder_gateway::auth::create_operator_key;
use larder_store::{ExchangeFilter, KeyLimits, Timestamp};
use larder_testkit::stub::{Answer, StubServer};
use serde_json::{Value, json};

use crate::keys::key;
use crate::support::{Gateway, message, write_settings};

/// A gateway that holds the key of a server for other models, and that server.
async fn sharing(answer: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Gateway {
    let provider = StubServer::responding(move |seen| answer(&seen.line)).await;
    let dir = Arc::new(tempfile::tempdir().unwrap());
    let address = provider.address();
    let settings = format!(
        "[gateway]\nopenai = \"{address}/v1\"\nopenai_key_file = \"key\"\nanthropic = \"{address}\"\nanthropic_key_file = \"key\"\n"
    );
    write_settings(dir.path(), &provider, &settings);
    std::fs::write(dir.path().join("key"), "sk-ours\n").unwrap();
    Gateway::on(dir, provider).await
}

async fn status(gateway: &Gateway, key: &str, method: &str, path: &str) -> u16 {
    let request = match method {
        "GET" => gateway.get(path),
        _ => gateway.post(path, json!({"model": "gpt-9"}).to_string()),
    };
    request.bearer_auth(key).send().await.unwrap().status().as_u16()
}

/// Routes, and the statuses of an ordinary key, a key with a budget, an operator's key and an operator's with a budget.
const ROUTES: [(&str, &str, [u16; 4]); 11] = [
    ("POST", "/v1/moderations", [200, 200, 200, 200]),
    ("POST", "/v1/images/generations", [200, 403, 200, 403]),
    ("POST", "/v1/audio/speech", [200, 403, 200, 403]),
    ("GET", "/v1/models/gpt-9", [200, 200, 200, 200]),
    ("GET", "/v1/files", [403, 403, 200, 200]),
    ("GET", "/v1/chat/completions", [403, 403, 200, 200]),
    ("POST", "/v1/files", [403, 403, 200, 200]),
    ("GET", "/v1/files/f-1/content", [403, 403, 200, 200]),
    ("POST", "/v1/batches", [403, 403, 200, 200]),
    ("POST", "/v1/threads", [403, 403, 200, 403]),
    ("POST", "/v1/fine_tuning/jobs", [403, 403, 200, 403]),
];

#[tokio::test]
async fn what_a_provider_keeps_under_a_shared_key_is_for_operators_and_all_else_for_everyone() {
    let gateway = sharing(|_| Answer::json(200, &json!({"id": "x"}))).await;
    let limits = KeyLimits { tokens_per_day: Some(1_000), picos_per_day: None };
    let operator =
        |limits| create_operator_key(&gateway.app.store, "ops", "", limits).unwrap().0.reveal().to_owned();
    let keys = [
        key(&gateway, "ada", KeyLimits::default()),
        key(&gateway, "bob", limits),
        operator(KeyLimits::default()),
        operator(limits),
    ];
    for (method, path, expected) in ROUTES {
        for (key, expected) in keys.iter().zip(expected) {
            let before = gateway.seen().len();
            assert_eq!(status(&gateway, key, method, path).await, expected, "{method} {path}");
            assert_eq!(gateway.seen().len() - before, usize::from(expected == 200), "{method} {path}");
        }
    }
    assert!(gateway.seen().iter().all(|seen| seen.header("authorization") == Some("Bearer sk-ours")));
    gateway.stop().await;
}

#[tokio::test]
async fn with_a_key_of_their_own_everyone_may_use_what_a_provider_keeps() {
    let provider = StubServer::responding(|_| Answer::json(200, &json!({"id": "x"}))).await;
    let settings = format!("[gateway]\nopenai = \"{}/v1\"\n", provider.address());
    let gateway = Gateway::with(provider, &settings).await;
    let key = key(&gateway, "ada", KeyLimits::default());
    for path in ["/v1/files", "/v1/threads"] {
        let asked = gateway.post(path, "{}").bearer_auth("sk-the-clients").header("x-api-key", &key);
        assert_eq!(asked.send().await.unwrap().status(), 200, "{path}");
        assert_eq!(gateway.seen().last().unwrap().header("authorization"), Some("Bearer sk-the-clients"));
    }
    gateway.stop().await;
}

#[tokio::test]
async fn a_route_goes_to_the_server_of_the_model_it_names_or_to_the_one_for_other_models() {
    // Without a server for other models, the table's only model of a provider is no stand-in for it.
    let gateway = Gateway::new([]).await;
    let asked = gateway.get("/v1/files").header("anthropic-version", "2023-06-01").send().await.unwrap();
    assert_eq!(asked.status(), 404);
    let words = asked.text().await.unwrap();
    assert!(words.contains("set `anthropic` under [gateway]"), "{words}");
    assert!(gateway.seen().is_empty());

    let ok = |_: &larder_testkit::stub::Seen| Answer::json(200, &json!({"id": "x"}));
    let others = StubServer::responding(ok).await;
    let settings = format!("[gateway]\nopenai = \"{}/v1\"\n", others.address());
    let gateway = Gateway::with(StubServer::responding(ok).await, &settings).await;
    let body = |model: &str| json!({"model": model, "prompt": "a larder"}).to_string();
    for (path, model, is_tables) in [
        ("/v1/images/generations", "mini", true),
        ("/v1/images/generations", "gpt-image-1", false),
        ("/v1/fine_tuning/jobs", "mini", false),
    ] {
        let (before, other) = (gateway.seen().len(), others.seen().len());
        assert_eq!(gateway.post(path, body(model)).send().await.unwrap().status(), 200);
        let went = (gateway.seen().len() - before, others.seen().len() - other);
        assert_eq!(went, if is_tables { (1, 0) } else { (0, 1) }, "{path} {model}");
    }
    assert_eq!(gateway.last_sent()["model"], "gpt-4o-mini", "as its server knows it");
    gateway.stop().await;
}

/// A line of results, for OpenAI's batches of chat completions and of responses, and Anthropic's.
fn results(model: &str) -> [(&'static str, String); 2] {
    let chat =
        json!({"model": model, "choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 50}});
    let response =
        json!({"model": model, "output": [], "usage": {"input_tokens": 1000, "output_tokens": 50}});
    let openai =
        |body: Value| json!({"custom_id": "a", "response": {"status_code": 200, "body": body}}).to_string();
    let mut said = message(json!([]), "end_turn");
    said["model"] = json!(model);
    let anthropic = json!({"custom_id": "a", "result": {"type": "succeeded", "message": said}});
    let failed = json!({"custom_id": "b", "result": {"type": "errored", "error": {"type": "x"}}});
    [
        ("/v1/files/file-1/content", format!("{}\n{}\n", openai(chat), openai(response))),
        ("/v1/messages/batches/b-1/results", format!("{anthropic}\n{failed}\n{anthropic}")),
    ]
}

#[tokio::test]
async fn a_batch_is_charged_when_its_results_are_read() {
    // At batch prices, half of the usual ones.
    for (at, model, is_sized, tokens, millionths) in [
        (0, "gpt-4o-mini", false, 2_100, 180),
        (1, "claude-sonnet-4-5", false, 220, 450),
        (1, "claude-sonnet-4-5", true, 220, 450),
    ] {
        let (path, text) = results(model)[at].clone();
        let answer = Answer::new(200, "application/jsonl", text.as_str());
        let answer = if is_sized { answer.sized() } else { answer.byte_by_byte() };
        let gateway = sharing(move |_| answer.clone()).await;
        let limits = KeyLimits { tokens_per_day: Some(100_000), picos_per_day: None };
        let ops = create_operator_key(&gateway.app.store, "ops", "", limits).unwrap().0.reveal().to_owned();
        let read = gateway.get(path).bearer_auth(&ops).header("anthropic-version", "2023-06-01");
        let read = read.header("range", "bytes=9-").send().await.unwrap();
        assert_eq!((read.status().as_u16(), read.text().await.unwrap()), (200, text));
        let seen = gateway.seen().pop().unwrap();
        assert_eq!((seen.header("range"), seen.header("accept-encoding")), (None, Some("identity")));
        let store = gateway.app.store.clone();
        gateway.stop().await;
        let day = store.keys().day_spend(&store.keys().list().unwrap()[0].id).unwrap();
        assert_eq!((day.used.tokens, day.held.tokens), (tokens, 0), "{path}");
        assert_eq!(day.used.picos, millionths * 1_000_000, "{path}");
        let costs = store.user("ops").unwrap().exchanges().costs(Timestamp::from_millis(0)).unwrap();
        assert_eq!(costs.len(), 1, "{path}");
        let records = store.user("ops").unwrap().exchanges().list(&ExchangeFilter::default()).unwrap();
        let record: Value = serde_json::from_str(&records[0]).unwrap();
        assert_eq!(record["outcome"], "ok", "{path}");
    }
}

#[tokio::test]
async fn a_compaction_is_for_every_key_and_charged_like_a_reply() {
    let usage = json!({"input_tokens": 1_000, "input_tokens_details": {"cached_tokens": 400}, "output_tokens": 50,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 1_050});
    let reply = json!({"id": "resp_1", "object": "response.compaction", "created_at": 1, "usage": usage,
        "output": [{"type": "compaction", "id": "cmp_1", "encrypted_content": "c2VhbGVk"}]});
    let sent = reply.clone();
    let gateway = sharing(move |_| Answer::json(200, &sent)).await;
    let body = json!({"model": "gpt-4o-mini", "input": [{"role": "user", "content": "hi"}]}).to_string();
    let limits = |picos| KeyLimits { tokens_per_day: None, picos_per_day: Some(picos) };
    let ask = async |key: &str| {
        let asked = gateway.post("/v1/responses/compact", body.clone()).bearer_auth(key);
        asked.send().await.unwrap()
    };
    let money = key(&gateway, "ada", limits(1_000_000_000_000));
    for key in [&money, &key(&gateway, "eve", KeyLimits::default())] {
        assert_eq!(ask(key).await.json::<Value>().await.unwrap(), reply);
    }
    assert_eq!(gateway.seen()[0].line, "POST /v1/responses/compact");
    assert_eq!(gateway.seen()[0].body, body.as_bytes());
    assert_eq!(
        ask(&key(&gateway, "bob", limits(1_000_000))).await.status(),
        429,
        "the longest reply is held"
    );
    let store = gateway.app.store.clone();
    gateway.stop().await;
    let of_ada = store.user("ada").unwrap().exchanges().costs(Timestamp::from_millis(0)).unwrap();
    assert_eq!(of_ada[0].model, "mini");
    let spent = |user: &str| {
        let keys = store.keys().list().unwrap();
        store.keys().day_spend(&keys.iter().find(|key| key.user == user).unwrap().id).unwrap()
    };
    assert_eq!((spent("ada").used.tokens, spent("ada").held.tokens), (1_050, 0));
    assert_eq!(
        spent("ada").used.picos,
        740_000_000,
        "600 tokens at 1, 400 at 0.1 and 50 at 2 dollars a million"
    );
}

#[tokio::test]
async fn pictures_and_speech_are_charged_by_the_unit_or_refused() {
    let gateway = sharing(|line| match line.contains("/v1/audio/speech") {
        true => Answer::json(500, &json!({"error": {"message": "down"}})),
        false => Answer::json(200, &json!({"created": 1, "data": []})),
    })
    .await;
    let limits = |picos| KeyLimits { tokens_per_day: None, picos_per_day: Some(picos) };
    let key = key(&gateway, "ada", limits(400_000_000_000));
    let ask = async |path: &str, body: Value| {
        let reply = gateway.post(path, body.to_string()).bearer_auth(&key).send().await.unwrap();
        (reply.status().as_u16(), reply.text().await.unwrap())
    };
    let picture = |n: u64| json!({"model": "gpt-image-1", "prompt": "a", "n": n, "size": "1024x1024", "quality": "high"});
    let images = "/v1/images/generations";
    assert_eq!(ask(images, picture(1)).await.0, 200);
    let (status, words) = ask(images, json!({"model": "gpt-image-1", "prompt": "a"})).await;
    assert!(status == 403 && words.contains("`size` and `quality`"), "{status} {words}");
    assert_eq!(ask(images, picture(2)).await.0, 429, "two more would cost 33 cents, and 23 are left");
    let speech = json!({"model": "tts-1", "voice": "alloy", "input": "x".repeat(1_000)});
    assert_eq!(ask("/v1/audio/speech", speech.clone()).await.0, 500);
    assert_eq!(ask("/v1/audio/transcriptions", speech).await.0, 403);
    assert_eq!(gateway.seen().len(), 2);
    let store = gateway.app.store.clone();
    gateway.stop().await;
    let day = store.keys().day_spend(&store.keys().list().unwrap()[0].id).unwrap();
    assert_eq!(
        (day.used.picos, day.held.picos),
        (167_010_000_000, 0),
        "a picture and its prompt, of two tokens at most; an error is free"
    );
}

#[tokio::test]
async fn results_without_a_price_are_kept_from_keys_with_a_budget_in_money() {
    let text = results("gpt-nobody-knows")[0].1.clone();
    let gateway = sharing(move |_| Answer::new(200, "application/jsonl", text.as_str())).await;
    let limits = KeyLimits { tokens_per_day: None, picos_per_day: Some(1_000_000_000_000) };
    let ops = create_operator_key(&gateway.app.store, "ops", "", limits).unwrap().0.reveal().to_owned();
    let read = gateway.get("/v1/files/file-1/content").bearer_auth(&ops).send().await.unwrap();
    assert_eq!(read.status(), 403);
    assert!(read.text().await.unwrap().contains("gpt-nobody-knows"));
    gateway.stop().await;
}

#[tokio::test]
async fn results_that_are_refused_for_one_of_their_lines_are_not_charged() {
    let [priced, unpriced] = ["gpt-4o-mini", "gpt-nobody-knows"].map(|model| results(model)[0].1.clone());
    let refused = Answer::new(200, "application/jsonl", format!("{priced}{unpriced}").as_str());
    let allowed = Answer::new(200, "application/jsonl", priced.as_str());
    for (answer, status, picos) in [
        (refused.clone(), 403, 0),
        (refused.byte_by_byte(), 403, 0),
        (allowed.clone(), 200, 360_000_000),
        (allowed.byte_by_byte(), 200, 360_000_000),
    ] {
        let gateway = sharing(move |_| answer.clone()).await;
        let limits = KeyLimits { tokens_per_day: None, picos_per_day: Some(1_000_000_000_000) };
        let ops = create_operator_key(&gateway.app.store, "ops", "", limits).unwrap().0.reveal().to_owned();
        for _ in 0..2 {
            // Anthropic's server, which the table has no model of: the catalogue's prices hold.
            let read = gateway.get("/v1/files/file-1/content").header("anthropic-version", "2023-06-01");
            let read = read.bearer_auth(&ops).send().await.unwrap();
            assert_eq!(read.status(), status);
            let text = read.text().await.unwrap();
            assert!(if status == 200 { text == priced } else { text.contains("gpt-nobody-knows") }, "{text}");
        }
        let store = gateway.app.store.clone();
        gateway.stop().await;
        let day = store.keys().day_spend(&store.keys().list().unwrap()[0].id).unwrap();
        assert_eq!((day.used.picos, day.held.picos), (picos, 0));
        assert_eq!(day.used.tokens, if status == 200 { 4_200 } else { 0 });
    }
}

#[tokio::test]
async fn a_key_whose_budget_is_used_up_starts_no_batch() {
    let gateway = sharing(|_| Answer::json(200, &json!({"id": "b"}))).await;
    let limits = KeyLimits { tokens_per_day: Some(0), picos_per_day: None };
    let ops = create_operator_key(&gateway.app.store, "ops", "", limits).unwrap().0.reveal().to_owned();
    assert_eq!(status(&gateway, &ops, "POST", "/v1/batches").await, 429);
    assert!(gateway.seen().is_empty());
    gateway.stop().await;
}

#[tokio::test]
async fn models_that_a_key_cannot_ask_for_are_not_listed() {
    let theirs = json!({"object": "list", "data": [{"id": "gpt-nobody-knows", "object": "model"}]});
    let gateway = sharing(move |_| Answer::json(200, &theirs)).await;
    let ids = async |key: &str, anthropic: bool| {
        let mut asked = gateway.get("/v1/models").bearer_auth(key);
        if anthropic {
            asked = asked.header("anthropic-version", "2023-06-01");
        }
        let list: Value = asked.send().await.unwrap().json().await.unwrap();
        let ids =
            list["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap().to_owned());
        ids.filter(|id| !id.starts_with("recipe/") && !id.starts_with("conversation/")).collect::<Vec<_>>()
    };
    let free = key(&gateway, "ada", KeyLimits::default());
    assert_eq!(ids(&free, false).await, ["mini", "vectors", "gpt-nobody-knows"]);
    let limits = KeyLimits { tokens_per_day: None, picos_per_day: Some(1_000_000_000_000) };
    let money = key(&gateway, "bob", limits);
    assert_eq!(ids(&money, false).await, ["mini", "vectors"], "without a price nothing can be asked for");
    gateway.stop().await;
}
