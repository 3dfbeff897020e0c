//! Recipes as models, in each format, streamed and not.

use larder_proxy::record::Outcome;
use larder_testkit::stub::StubServer;
use serde_json::{Value, json};

use crate::support::{Gateway, said, write};

const RECIPE: &str = "\
name: brief
description: Answer briefly.
model_layer: VOICE
token_budget: {total: 2000, prompt: 300, input: 1200, output: 300, response_reserve: 200}
prompt_files: [prompts/talk/brief.md]
variables: {length: one sentence}
output_format: text
";

/// Regions of a prompt that holds what was said before.
const SLOTS: &str = "\
slots:
  - {name: system, from: prompt, cap: 300}
  - {name: said, from: messages, cap: flexible, overflow: [condense]}
output_format";

/// A model that runs in this process, so that requests cannot pass to it.
const INSIDE: &str = "\
[models.inside]
provider = \"embedded\"
id = \"inside\"
tokenizer = \"cl100k_base\"
window = 8000
max_output = 1000
";

async fn gateway(answers: usize) -> Gateway {
    let gateway = Gateway::with(StubServer::start((0..answers).map(|_| said("Forty-two."))).await, "").await;
    write(gateway.dir.path().join("recipes/talk/brief.yaml"), RECIPE);
    write(gateway.dir.path().join("prompts/talk/brief.md"), "Answer in {{ length }}.\n");
    gateway.restart().await
}

#[tokio::test]
async fn a_recipe_answers_in_the_format_that_asks() {
    let gateway = gateway(6).await;
    let ask = |path: &'static str, stream: bool| {
        let say = json!([{"role": "user", "content": "What is the answer?"}]);
        let body = match path {
            "/v1/responses" => json!({"model": "recipe/talk/brief", "input": say, "stream": stream}),
            _ => json!({"model": "recipe/talk/brief", "max_tokens": 99, "messages": say, "stream": stream}),
        };
        gateway.post(path, body.to_string()).send()
    };
    let whole = |response: reqwest::Response| async move {
        assert_eq!(response.status(), 200);
        response.json::<Value>().await.unwrap()
    };
    let chat = whole(ask("/v1/chat/completions", false).await.unwrap()).await;
    assert_eq!(chat["choices"][0]["message"]["content"], "Forty-two.");
    assert_eq!(
        (chat["model"].as_str(), chat["usage"]["total_tokens"].as_u64()),
        (Some("recipe/talk/brief"), Some(110))
    );
    let responses = whole(ask("/v1/responses", false).await.unwrap()).await;
    assert_eq!(responses["output"][0]["content"][0]["text"], "Forty-two.");
    let messages = whole(ask("/v1/messages", false).await.unwrap()).await;
    assert_eq!(
        (messages["content"][0]["text"].as_str(), messages["stop_reason"].as_str()),
        (Some("Forty-two."), Some("end_turn"))
    );
    for (path, last) in [
        ("/v1/chat/completions", "data: [DONE]\n\n"),
        ("/v1/responses", "response.completed"),
        ("/v1/messages", "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"),
    ] {
        let response = ask(path, true).await.unwrap();
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let text = response.text().await.unwrap();
        assert!(text.contains("Forty-two.") && text.contains(last), "{path}: {text}");
    }
    for seen in gateway.seen() {
        assert!(seen.json()["messages"].to_string().contains("What is the answer?"));
    }
    let (records, _) = gateway.stop().await;
    assert_eq!(records.len(), 6);
    let head = &records[0].summary;
    assert_eq!((head.recipe.as_deref(), head.run.is_some()), (Some("talk/brief"), true));
    assert_eq!(head.bill.unwrap().cost.to_string(), "0.00012");
}

#[tokio::test]
async fn an_answer_is_given_although_its_run_cannot_be_recorded() {
    let gateway = gateway(1).await;
    let index = rusqlite::Connection::open(gateway.dir.path().join("home/index.sqlite")).unwrap();
    crate::storage::fill_up(&index, "runs");
    let body = json!({"model": "recipe/talk/brief", "messages": [{"role": "user", "content": "hi"}]});
    let response = gateway.chat(&body).await;
    let (status, words) = (response.status(), response.text().await.unwrap());
    assert!(status == 200 && words.contains("chat.completion"), "{status}: {words}");
    assert_eq!(gateway.seen().len(), 1, "which was paid for once");
}

#[tokio::test]
async fn a_run_that_panics_is_recorded_as_a_failure_of_ours() {
    let gateway = Gateway::with(StubServer::start([]).await, INSIDE).await;
    let path = gateway.dir.path().join("larder.toml");
    let settings = std::fs::read_to_string(&path).unwrap();
    write(path, &settings.replace("MIND = \"mini\"", "MIND = \"inside\""));
    write(gateway.dir.path().join("recipes/talk/brief.yaml"), &RECIPE.replace("VOICE", "MIND"));
    write(gateway.dir.path().join("prompts/talk/brief.md"), "Answer in {{ length }}.\n");
    let gateway = gateway.restart().await;
    let body = json!({"model": "recipe/talk/brief", "messages": [{"role": "user", "content": "hi"}]});
    let response = gateway.chat(&body).await;
    let (status, words) = (response.status(), response.text().await.unwrap());
    assert!(status == 500 && words.contains("a bug in larder"), "{words}");
    let (records, _) = gateway.stop().await;
    let head = &records[0].summary;
    let told = (head.outcome, head.status, head.error.as_deref());
    assert_eq!(told, (Outcome::Failed, 500, Some("internal_error")));
}

#[tokio::test]
async fn recipe_savings_and_refusals_are_counted_once() {
    let gateway = gateway(1).await;
    let recipe = RECIPE.replace("name: brief", "name: recall").replace("output_format", SLOTS);
    write(gateway.dir.path().join("recipes/talk/recall.yaml"), &recipe);
    let gateway = gateway.restart().await;
    let ask = |said: String, query: String| {
        json!({"model": "recipe/talk/recall", "messages": [
            {"role": "user", "content": said}, {"role": "assistant", "content": "I see."},
            {"role": "user", "content": query}]})
    };
    assert_eq!(gateway.chat(&ask(crate::support::long_log(), "Which?".into())).await.status(), 200);
    let count = |series: &str| -> f64 {
        let text = gateway.app.telemetry.metrics.text().unwrap();
        let line =
            text.lines().find(|line| line.strip_prefix(series).is_some_and(|rest| rest.starts_with(' ')));
        line.unwrap().rsplit(' ').next().unwrap().parse().unwrap()
    };
    assert!(count("tokens_saved_sum") > 1_000.0);
    assert_eq!(count("tokens_saved_count"), 1.0, "what was said before is left out");
    assert_eq!(count("compression_latency_ms_count"), 1.0);
    let decided = "context_budget_decision_total{status=\"needs_summary\",dry_run=\"false\"}";
    assert_eq!((count(decided), count("overflow_warnings_total")), (1.0, 0.0));
    assert_eq!(gateway.chat(&ask("hi".into(), "too many words ".repeat(4_000))).await.status(), 400);
    let refused = "context_budget_decision_total{status=\"reject\",dry_run=\"false\"}";
    assert_eq!((count(refused), count("overflow_warnings_total")), (1.0, 1.0));
    assert_eq!(count("tokens_saved_count"), 1.0, "nothing left that was smaller");
}

#[tokio::test]
async fn what_a_recipe_cannot_take_is_an_error_before_anything_is_sent() {
    let gateway = gateway(0).await;
    let user = |text: &str| json!({"role": "user", "content": text});
    let other = |role: &str| json!({"role": role, "content": "Say nothing."});
    for (messages, words) in [
        (json!([user("hi"), other("assistant"), user("Which?")]), "2 messages came before"),
        (json!([other("system"), user("Which?")]), "one message came before"),
        (json!([user("Which?"), other("assistant")]), "the last message has to be the user's"),
    ] {
        let response = gateway.chat(&json!({"model": "recipe/talk/brief", "messages": messages})).await;
        let (status, said) = (response.status(), response.text().await.unwrap());
        assert!(status == 400 && said.contains(words), "{status}: {said}");
    }
    // A conversation that ends in a tool's result has one fault, however many messages follow the user's.
    let call = json!({"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}});
    let calls = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    let result = json!({"role": "tool", "tool_call_id": "c", "content": "It is there."});
    let messages = json!([user("Which?"), calls, result]);
    let response = gateway.chat(&json!({"model": "recipe/talk/brief", "messages": messages})).await;
    let (status, said) = (response.status(), response.text().await.unwrap());
    assert!(status == 400 && said.contains("message 3: the last message has to be the user's"), "{said}");
    assert_eq!(said.matches("the last message has to be").count(), 1, "{said}");
    assert!(gateway.seen().is_empty());
}

#[tokio::test]
async fn a_recipe_that_several_models_answer_is_charged_to_each_of_them() {
    let provider = StubServer::responding(|seen| match seen.json()["model"].as_str() {
        Some("gpt-4.1") => said("{\"answer\": 42}"),
        _ => said("Forty-two."),
    })
    .await;
    let large = format!(
        "[models.large]\nprovider = \"openai\"\nbase_url = \"{}/v1\"\nid = \"gpt-4.1\"\nwindow = 16000\n\
         max_output = 1000\nprices = {{ input = 10, output = 20 }}\n",
        provider.address()
    );
    let gateway = Gateway::with(provider, &large).await;
    let settings = gateway.dir.path().join("larder.toml");
    let layers = std::fs::read_to_string(&settings).unwrap().replace("VOICE = \"mini\"", "VOICE = \"large\"");
    std::fs::write(&settings, layers).unwrap();
    let schema = "output_format: json\noutput_schema: {type: object, required: [answer], properties: {answer: {type: \
                  integer}}}\nquality_gates: {schema_validation: true, max_retries: 1}";
    let recipe =
        RECIPE.replace("model_layer: VOICE", "model_layer: MIND").replace("output_format: text", schema);
    write(gateway.dir.path().join("recipes/talk/brief.yaml"), &recipe);
    write(gateway.dir.path().join("prompts/talk/brief.md"), "Answer in {{ length }}.\n");
    let gateway = gateway.restart().await;
    let ask = json!({"model": "recipe/talk/brief", "messages": [{"role": "user", "content": "Which?"}]});
    let reply = gateway.chat(&ask).await;
    let id = reply.headers()["x-larder-request"].to_str().unwrap().to_owned();
    assert_eq!(reply.status(), 200, "{:?}", reply.text().await);
    let record = gateway.get(&format!("/api/v1/exchanges/{id}")).send().await.unwrap();
    let request: Value = record.json().await.unwrap();
    let used = |model: &str, calls: u64, cost: &str| {
        let usage = request["models"].as_array().unwrap().iter().find(|one| one["model"] == model).unwrap();
        assert_eq!((&usage["calls"], &usage["cost"]), (&json!(calls), &json!(cost)), "{request}");
        assert_eq!(usage["usage"]["input"], 100 * calls, "{request}");
    };
    used("mini", 2, "0.00024");
    used("large", 1, "0.0012");
    assert_eq!(
        (&request["answered_by"]["name"], &request["bill"]["cost"]),
        (&json!("large"), &json!("0.00144"))
    );
    let costs: Value = gateway.get("/api/v1/costs").send().await.unwrap().json().await.unwrap();
    let mut rows: Vec<Value> = costs["costs"].as_array().unwrap().clone();
    rows.sort_by_key(|row| row["model"].to_string());
    let told = |row: &Value| (row["model"].clone(), row["input_tokens"].clone(), row["cost"].clone());
    let expected =
        [(json!("large"), json!(100), json!("0.0012")), (json!("mini"), json!(200), json!("0.00024"))];
    assert_eq!(rows.iter().map(told).collect::<Vec<_>>(), expected, "{costs}");
    let metrics = gateway.app.telemetry.metrics.text().unwrap();
    for line in [
        "larder_usage_tokens_total{model=\"mini\",kind=\"input\"} 200",
        "larder_usage_tokens_total{model=\"large\",kind=\"input\"} 100",
        "larder_cost_usd_total{model=\"large\"} 0.0012",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
}

#[tokio::test]
async fn a_recipe_that_is_not_there_is_an_error_and_an_intervention() {
    let gateway = gateway(0).await;
    let body = json!({"model": "recipe/talk/long", "messages": [{"role": "user", "content": "hi"}]});
    let response = gateway.chat(&body).await;
    assert_eq!(response.status(), 404);
    assert!(response.text().await.unwrap().contains("Recipe not found"));
    assert_eq!(gateway.store().interventions().list(false).unwrap().len(), 1);
    let silent = gateway.chat(&json!({"model": "recipe/talk/brief", "messages": []})).await;
    assert_eq!(silent.status(), 400);
}

#[tokio::test]
async fn recipes_whose_model_has_no_weights_are_not_listed() {
    let spare = "fallback = \"mini\"\n";
    for (id, more, risk, is_listed) in [
        ("inside", "", "low", true),
        ("absent", "", "low", false),
        ("absent", spare, "medium", true),
        ("absent", spare, "high", false),
        ("inside", spare, "high", true),
    ] {
        let inside = INSIDE.replace("id = \"inside\"", &format!("id = \"{id}\""));
        let gateway = Gateway::with(StubServer::start([]).await, &format!("{inside}{more}")).await;
        let settings = gateway.dir.path().join("larder.toml");
        let bound =
            std::fs::read_to_string(&settings).unwrap().replace("VOICE = \"mini\"", "VOICE = \"inside\"");
        write(settings, &bound);
        let recipe = format!("{RECIPE}risk_level: {risk}\n");
        write(gateway.dir.path().join("recipes/talk/brief.yaml"), &recipe);
        write(gateway.dir.path().join("prompts/talk/brief.md"), "Answer in {{ length }}.\n");
        let gateway = gateway.restart().await;
        let list = gateway.get("/v1/models").send().await.unwrap().text().await.unwrap();
        assert_eq!(list.contains("recipe/talk/brief"), is_listed, "{id} {more} {risk}: {list}");
    }
}

#[tokio::test]
async fn unavailable_models_are_not_listed() {
    let provider = StubServer::start([]).await;
    let gateway = Gateway::with(provider, INSIDE).await;
    let recipe = |name: &str, from: &str, to: &str| {
        let text = RECIPE.replace("name: brief", &format!("name: {name}")).replace(from, to);
        write(gateway.dir.path().join(format!("recipes/talk/{name}.yaml")), &text);
    };
    recipe("brief", "", "");
    recipe("may_read", "output_format", "input_docs: [{name: notes, required: false}]\noutput_format");
    recipe("reads", "output_format", "input_docs: [notes]\noutput_format");
    recipe("recalls", "output_format", "input_sections: [\"§0\"]\noutput_format");
    recipe("wants_words", "one sentence", "\"{{ words }}\"");
    recipe("nobody_answers", "VOICE", "REFLEX");
    write(gateway.dir.path().join("prompts/talk/brief.md"), "Answer in {{ length }}.\n");
    let gateway = gateway.restart().await;
    let list: Value = gateway.get("/v1/models").send().await.unwrap().json().await.unwrap();
    let mut ids: Vec<&str> =
        list["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap()).collect();
    ids.sort_unstable();
    let types = ["conversation/mediation", "conversation/support", "conversation/tutor"];
    let models = ["mini", "recipe/talk/brief", "recipe/talk/may_read", "vectors"];
    assert_eq!(ids, [&types[..], &models[..]].concat());
    for name in ["recipe/talk/reads", "inside"] {
        let one = gateway.get(&format!("/v1/models/{name}")).send().await.unwrap();
        assert_eq!(one.status(), 404, "{name}");
        let body = json!({"model": name, "messages": [{"role": "user", "content": "hi"}]});
        assert!(gateway.chat(&body).await.status().is_client_error(), "{name}");
    }
    assert!(gateway.seen().is_empty());
}
