//! Keys: who is let in, whose store it is, what a key may spend, and that it goes nowhere else.

use larder_gateway::auth::{create_key, create_operator_key};
use larder_proxy::record::Outcome;
use larder_store::KeyLimits;
use larder_testkit::stub::{Answer, StubServer};
use serde_json::{Value, json};

use crate::support::{Gateway, after_tool, completion, long_log, said};

fn body() -> Value {
    json!({"model": "mini", "max_tokens": 10, "messages": [{"role": "user", "content": "hi"}]})
}

pub fn key(gateway: &Gateway, user: &str, limits: KeyLimits) -> String {
    create_key(&gateway.app.store, user, "test", limits).unwrap().0.reveal().to_owned()
}

#[tokio::test]
async fn as_soon_as_there_is_a_key_one_is_needed_and_the_provider_never_sees_it() {
    let gateway = Gateway::new([said("hi"), said("hi"), said("hi")]).await;
    assert_eq!(gateway.chat(&body()).await.status(), 200);
    let key = key(&gateway, "ada", KeyLimits::default());
    let refused = gateway.chat(&body()).await;
    assert_eq!(refused.status(), 401);
    assert_eq!(refused.json::<Value>().await.unwrap()["error"]["code"], "invalid_api_key");
    let wrong = gateway.post("/v1/messages", "{}").header("x-api-key", "lk-0").send().await.unwrap();
    assert_eq!(wrong.json::<Value>().await.unwrap()["error"]["type"], "authentication_error");

    let chat = || gateway.post("/v1/chat/completions", body().to_string());
    let bearer = chat().bearer_auth(&key).header("x-api-key", "sk-upstream").send().await.unwrap();
    assert_eq!(bearer.status(), 200);
    assert_eq!(
        (gateway.seen()[1].header("authorization"), gateway.seen()[1].header("x-api-key")),
        (None, Some("sk-upstream"))
    );
    let header = chat().header("x-api-key", &key).bearer_auth("sk-upstream").send().await.unwrap();
    assert_eq!(header.status(), 200);
    assert_eq!(gateway.seen()[2].header("authorization"), Some("Bearer sk-upstream"));
    assert_eq!(gateway.seen()[2].header("x-api-key"), None);
    assert_eq!(gateway.get("/healthz").send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_key_is_never_forwarded_in_any_header() {
    let gateway = Gateway::new([said("hi"), said("hi")]).await;
    let key = key(&gateway, "ada", KeyLimits::default());
    let (ours, theirs) = (format!("Bearer {key}"), "Bearer sk-upstream".to_owned());
    for pair in [[&ours, &theirs], [&theirs, &ours]] {
        let request = gateway.post("/v1/chat/completions", body().to_string());
        let request = request.header("authorization", pair[0]).header("authorization", pair[1]);
        assert_eq!(request.send().await.unwrap().status(), 200);
    }
    for seen in gateway.seen() {
        let sent = seen.headers.iter().filter(|(name, _)| name == "authorization");
        assert_eq!(sent.map(|(_, value)| value.as_str()).collect::<Vec<_>>(), [theirs.as_str()]);
        assert!(!seen.headers.iter().any(|(_, value)| value.contains("lk-")));
    }
}

#[tokio::test]
async fn guessing_a_key_is_rate_limited() {
    let gateway = Gateway::new([said("hi")]).await;
    let key = key(&gateway, "ada", KeyLimits::default());
    let (id, _) = key.rsplit_once('-').unwrap();
    let guess = format!("{id}-{}", "0".repeat(48));
    let ask = |key: &str| gateway.post("/v1/chat/completions", body().to_string()).bearer_auth(key).send();
    assert_eq!(ask(&key).await.unwrap().status(), 200);
    for _ in 0..5 {
        assert_eq!(ask(&guess).await.unwrap().status(), 401);
    }
    let refused = ask(&guess).await.unwrap();
    assert_eq!((refused.status().as_u16(), refused.headers()["retry-after"].to_str().unwrap()), (429, "1"));
    assert_eq!(refused.json::<Value>().await.unwrap()["error"]["code"], "rate_limit_exceeded");
    let page = gateway.get("/api/v1/exchanges").bearer_auth(&guess).send().await.unwrap();
    assert_eq!((page.status().as_u16(), page.headers().contains_key("retry-after")), (429, true));
    assert_eq!(gateway.get("/api/v1/exchanges").bearer_auth(&key).send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_key_of_the_table_takes_the_place_of_the_clients() {
    let provider = StubServer::start([said("hi")]).await;
    let settings = format!("[gateway]\nopenai = \"{}/v1\"\nopenai_key_file = \"key\"\n", provider.address());
    let dir = std::sync::Arc::new(tempfile::tempdir().unwrap());
    crate::support::write_settings(dir.path(), &provider, &settings);
    std::fs::write(dir.path().join("key"), "sk-ours\n").unwrap();
    let gateway = Gateway::on(dir, provider).await;
    let mut body = body();
    body["model"] = json!("gpt-9");
    let request = gateway.post("/v1/chat/completions", body.to_string()).bearer_auth("sk-the-clients");
    assert_eq!(request.send().await.unwrap().status(), 200);
    assert_eq!(gateway.seen()[0].header("authorization"), Some("Bearer sk-ours"));
}

#[tokio::test]
async fn users_are_walls() {
    let gateway = Gateway::new([said("ok"), said("ok")]).await;
    let (ada, bob) = (key(&gateway, "ada", KeyLimits::default()), key(&gateway, "bob", KeyLimits::default()));
    for key in [&ada, &bob] {
        let request = gateway.post("/v1/chat/completions", after_tool(&long_log()).to_string());
        assert_eq!(request.bearer_auth(key).send().await.unwrap().status(), 200);
    }
    let [of_ada, of_bob] = [0, 1].map(|at| gateway.seen()[at].json()["messages"][3]["content"].to_string());
    assert_ne!(of_ada, of_bob, "each has pointers of their own");
    let owns = |user: &str, text: &str| gateway.app.store.user(user).unwrap().key().find_in(text).len();
    assert_eq!((owns("ada", &of_ada), owns("ada", &of_bob)), (owns("bob", &of_bob), 0));
    assert!(owns("ada", &of_ada) > 0);
    let store = gateway.app.store.clone();
    gateway.stop().await;
    let count = |user: &str| {
        store.user(user).unwrap().exchanges().list(&larder_store::ExchangeFilter::default()).unwrap().len()
    };
    assert_eq!((count("ada"), count("bob"), count("local")), (1, 1, 0));
}

#[tokio::test]
async fn a_budget_is_set_aside_before_the_call_and_settled_after_it() {
    let gateway = Gateway::new([said("hi"), said("hi")]).await;
    // One request is set aside with its prompt and the ten tokens of its reply; the provider reports 110.
    let key = key(&gateway, "ada", KeyLimits { tokens_per_day: Some(120), picos_per_day: None });
    let ask = || gateway.post("/v1/chat/completions", body().to_string()).bearer_auth(&key).send();
    assert_eq!(ask().await.unwrap().status(), 200);
    let id = gateway.app.store.keys().list().unwrap()[0].id.clone();
    while gateway.app.store.keys().day_spend(&id).unwrap().used.tokens == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(gateway.app.store.keys().day_spend(&id).unwrap().used.tokens, 110);
    let refused = ask().await.unwrap();
    assert_eq!(refused.status(), 429);
    assert!(refused.headers().contains_key("retry-after"));
    assert_eq!(refused.json::<Value>().await.unwrap()["error"]["code"], "insufficient_quota");
    assert_eq!(gateway.seen().len(), 1);
    let unknown = gateway.post("/v1/completions", "{}").bearer_auth(&key).send().await.unwrap();
    assert_eq!(unknown.status(), 403, "what cannot be counted cannot be limited");
    let store = gateway.app.store.clone();
    gateway.stop().await;
    let records =
        store.user("ada").unwrap().exchanges().list(&larder_store::ExchangeFilter::default()).unwrap();
    let last: larder_proxy::record::RequestRecord = serde_json::from_str(&records[0]).unwrap();
    assert_eq!(
        (last.summary.outcome, last.summary.error.as_deref()),
        (Outcome::Refused, Some("budget_exceeded"))
    );
    assert_eq!(store.keys().day_spend(&id).unwrap().held.tokens, 0, "nothing stays set aside");
}

#[tokio::test]
async fn keys_can_be_demanded_before_there_are_any() {
    let gateway = Gateway::with(StubServer::start([]).await, "[gateway]\nrequire_keys = true\n").await;
    assert_eq!(gateway.chat(&body()).await.status(), 401);
    let page = gateway.get("/").header("accept", "text/html").send().await.unwrap();
    assert!(page.url().path().contains("sign-in"), "{}", page.url());
}

#[tokio::test]
async fn once_there_was_a_key_one_is_needed_until_the_settings_say_otherwise() {
    let gateway = Gateway::new([said("hi"), said("hi")]).await;
    key(&gateway, "ada", KeyLimits::default());
    gateway.app.store.delete_user("ada").unwrap();
    assert!(gateway.app.store.keys().list().unwrap().is_empty());
    assert_eq!(gateway.chat(&body()).await.status(), 401);
    let gateway = gateway.restart().await;
    assert_eq!(gateway.chat(&body()).await.status(), 401);

    crate::support::write_settings(
        gateway.dir.path(),
        &gateway.provider,
        "[gateway]\nrequire_keys = false\n",
    );
    let gateway = gateway.restart().await;
    assert_eq!(gateway.chat(&body()).await.status(), 200);
    let chat = || gateway.post("/v1/chat/completions", body().to_string());
    let proxied = chat().header("x-forwarded-for", "192.0.2.1").send().await.unwrap();
    assert_eq!(proxied.status(), 401, "others still need a key");
    let wrong = chat().bearer_auth(format!("lk-0123456789ab-{}", "0".repeat(48))).send().await.unwrap();
    assert_eq!(wrong.status(), 401, "a wrong key is a mistake on this machine too");
}

#[tokio::test]
async fn on_an_address_that_others_reach_keys_are_needed_from_the_start() {
    let settings = |more: &str| format!("[gateway]\nlisten = \"0.0.0.0:8787\"\n{more}");
    let gateway = Gateway::with(StubServer::start([]).await, &settings("")).await;
    assert_eq!(gateway.chat(&body()).await.status(), 401);
    let provider = StubServer::start([said("hi")]).await;
    let gateway = Gateway::with(provider, &settings("require_keys = false\n")).await;
    assert_eq!(gateway.chat(&body()).await.status(), 200);
}

#[tokio::test]
async fn what_belongs_to_all_users_needs_an_operators_key() {
    let gateway = Gateway::new([]).await;
    let paths = ["/metrics", "/api/v1/policy"];
    for path in paths {
        assert_eq!(gateway.get(path).send().await.unwrap().status(), 200, "{path}: nobody has a key yet");
    }
    let ada = key(&gateway, "ada", KeyLimits::default());
    let ops = create_operator_key(&gateway.app.store, "ops", "", KeyLimits::default()).unwrap().0;
    crate::support::write_settings(gateway.dir.path(), &gateway.provider, "[gateway]\nretrys = 1\n");
    gateway.app.reload();
    for path in paths {
        let status = |key: &str| gateway.get(path).bearer_auth(key).send();
        assert_eq!(status(&ada).await.unwrap().status(), 403, "{path}");
        assert_eq!(status(ops.reveal()).await.unwrap().status(), 200, "{path}");
    }
    let ready = |key: &str| gateway.get("/readyz").bearer_auth(key).send();
    for (key, says_why) in [(ada.as_str(), false), (ops.reveal(), true)] {
        let body: Value = ready(key).await.unwrap().json().await.unwrap();
        let words = body["refused_change"].as_str().unwrap();
        assert_eq!(words.contains("gateway.retrys"), says_why, "{words}");
    }
}

#[tokio::test]
async fn a_budget_in_money_needs_prices() {
    let provider = StubServer::start([said("hi")]).await;
    let house = format!(
        "[models.tab]\nprovider = \"anthropic\"\nbase_url = \"{}\"\nid = \"house\"\nwindow = 16000\n\
         max_output = 1000\n\n[gateway]\nanthropic = \"{}\"\n",
        provider.address(),
        provider.address()
    );
    let gateway = Gateway::with(provider, &house).await;
    let limits = KeyLimits { tokens_per_day: None, picos_per_day: Some(1_000_000_000_000) };
    let key = key(&gateway, "ada", limits);
    for (model, table) in [
        ("tab", r#"[models."tab"]"#),
        ("house", r#"[models."tab"]"#),
        ("unheard-of", r#"[models.catalogue."unheard-of"]"#),
    ] {
        let mut asked = body();
        asked["model"] = json!(model);
        let unpriced =
            gateway.post("/v1/messages", asked.to_string()).bearer_auth(&key).send().await.unwrap();
        assert_eq!(unpriced.status(), 403, "{model}");
        let reply: Value = unpriced.json().await.unwrap();
        let words = reply["error"]["message"].as_str().unwrap();
        assert!(words.contains("`prices`") && words.contains(table), "{model}: {words}");
    }
    assert!(gateway.seen().is_empty());
    let priced = gateway.post("/v1/chat/completions", body().to_string()).bearer_auth(&key);
    assert_eq!(priced.send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn further_rounds_need_budget_too_and_are_billed_when_the_next_one_fails() {
    let provider = StubServer::responding(|seen| {
        let messages = seen.json()["messages"].as_array().unwrap().clone();
        if messages.len() > 4 {
            return Answer::json(429, &json!({"error": {"message": "slow down"}}));
        }
        let text = messages[3]["content"].as_str().unwrap();
        let id = text[text.find("lp1-").unwrap()..].get(..24).unwrap();
        let call = json!({"role": "assistant", "content": null, "tool_calls": [{"id": "ours_1", "type": "function",
            "function": {"name": "larder_rehydrate", "arguments": json!({"id": id, "pattern": "ERROR"}).to_string()}}]});
        let mut reply = completion(call, "tool_calls");
        reply["usage"] = json!({"prompt_tokens": 100, "completion_tokens": 900, "total_tokens": 1_000});
        Answer::json(200, &reply)
    })
    .await;
    let gateway = Gateway::with(provider, "").await;
    let ample = key(&gateway, "ada", KeyLimits { tokens_per_day: Some(50_000), picos_per_day: None });
    let scarce = key(&gateway, "bob", KeyLimits { tokens_per_day: Some(2_000), picos_per_day: None });
    let mut body = after_tool(&long_log());
    body["max_tokens"] = json!(1_000);
    for (key, status, requests) in [(&ample, 429, 2), (&scarce, 200, 3)] {
        let asked =
            gateway.post("/v1/chat/completions", body.to_string()).bearer_auth(key).send().await.unwrap();
        assert_eq!((asked.status().as_u16(), gateway.seen().len()), (status, requests));
    }
    let store = gateway.app.store.clone();
    gateway.stop().await;
    for id in store.keys().list().unwrap() {
        let day = store.keys().day_spend(&id.id).unwrap();
        assert_eq!((day.used.tokens, day.held.tokens), (1_000, 0), "{}", id.user);
    }
}

#[tokio::test]
async fn without_a_limit_the_longest_reply_is_reserved() {
    let provider = StubServer::start([said("hi")]).await;
    let big = format!(
        "[models.big]\nprovider = \"openai\"\nbase_url = \"{}/v1\"\nid = \"big\"\nwindow = 64000\nmax_output = 8000\n",
        provider.address()
    );
    let gateway = Gateway::with(provider, &big).await;
    let key = key(&gateway, "ada", KeyLimits { tokens_per_day: Some(4_000), picos_per_day: None });
    let mut body = body();
    body["model"] = json!("big");
    let mut limitless = body.clone();
    limitless.as_object_mut().unwrap().remove("max_tokens");
    let ask = |body: &Value| gateway.post("/v1/chat/completions", body.to_string()).bearer_auth(&key).send();
    let refused = ask(&limitless).await.unwrap();
    assert_eq!(refused.status(), 429);
    assert!(!refused.headers().contains_key("retry-after"), "tomorrow it would not fit either");
    let reply: Value = refused.json().await.unwrap();
    let words = reply["error"]["message"].as_str().unwrap();
    assert!(words.contains("a whole day") && words.contains("max_tokens"), "{words}");
    assert_eq!(ask(&body).await.unwrap().status(), 200);
    assert_eq!(gateway.seen().len(), 1);
}

#[tokio::test]
async fn a_further_round_counts_what_the_ones_before_have_used() {
    let provider = StubServer::responding(|seen| {
        let messages = seen.json()["messages"].as_array().unwrap().clone();
        let text = messages[3]["content"].as_str().unwrap();
        let id = text[text.find("lp1-").unwrap()..].get(..24).unwrap();
        let call = json!({"role": "assistant", "content": null, "tool_calls": [{"id": "ours_1", "type": "function",
            "function": {"name": "larder_rehydrate", "arguments": json!({"id": id, "pattern": "ERROR"}).to_string()}}]});
        let mut reply = completion(call, "tool_calls");
        // More than was reserved.
        reply["usage"] = json!({"prompt_tokens": 6_000, "completion_tokens": 10, "total_tokens": 6_010});
        Answer::json(200, &reply)
    })
    .await;
    let gateway = Gateway::with(provider, "").await;
    let key = key(&gateway, "ada", KeyLimits { tokens_per_day: Some(10_000), picos_per_day: None });
    let mut body = after_tool(&long_log());
    body["max_tokens"] = json!(1_000);
    let asked =
        gateway.post("/v1/chat/completions", body.to_string()).bearer_auth(&key).send().await.unwrap();
    assert!(asked.text().await.unwrap().contains("does not cover a further call"));
    assert_eq!(gateway.seen().len(), 2, "6,010 of 10,000 leave room for one more, 12,020 for none");
    let store = gateway.app.store.clone();
    gateway.stop().await;
    let day = store.keys().day_spend(&store.keys().list().unwrap()[0].id).unwrap();
    assert_eq!((day.used.tokens, day.held.tokens), (12_020, 0));
}

#[tokio::test]
async fn provider_side_state_under_a_shared_key_is_unreachable() {
    let provider = StubServer::start([said("hi")]).await;
    let settings = format!("[gateway]\nopenai = \"{}/v1\"\nopenai_key_file = \"key\"\n", provider.address());
    let dir = std::sync::Arc::new(tempfile::tempdir().unwrap());
    crate::support::write_settings(dir.path(), &provider, &settings);
    std::fs::write(dir.path().join("key"), "sk-ours\n").unwrap();
    let gateway = Gateway::on(dir, provider).await;
    let key = key(&gateway, "ada", KeyLimits::default());
    for path in ["/v1/files", "/v1/batches/b1"] {
        assert_eq!(gateway.get(path).bearer_auth(&key).send().await.unwrap().status(), 403, "{path}");
    }
    for path in ["/v1/chat/completions/", "/v1//chat/completions"] {
        let asked = gateway.post(path, body().to_string()).bearer_auth(&key).send().await.unwrap();
        assert_eq!(asked.status(), 404, "{path}");
    }
    assert!(gateway.seen().is_empty());
}
