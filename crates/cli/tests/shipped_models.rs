//! The tables of models that ship: which model each layer asks, at which temperature and where, seen by the server that is
//! asked.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod support;

use larder_testkit::stub::{Answer, Seen};
use serde_json::{Value, json};
use support::{Ran, Shop, reply_text};

/// A project with a recipe for each layer, whose models are those of a table that ships.
fn shop(table: &str, settings: &str) -> Shop {
    let shop = Shop::responding(answer);
    shop.write("larder.toml", format!("[models]\ntable = \"{table}\"\n{settings}"));
    shop.write("prompts/notes/all.md", "You answer from notes.\n");
    for layer in ["REFLEX", "NERVES", "MIND", "VOICE"] {
        recipe(&shop, &layer.to_lowercase(), layer, "");
    }
    shop.write("notes.md", "The quay is new.\n");
    shop
}

fn recipe(shop: &Shop, name: &str, layer: &str, more: &str) {
    let recipe = format!(
        "name: {name}\ndescription: Say what matters.\nmodel_layer: {layer}\noutput_format: text\n{more}\
         token_budget: {{total: 3000, prompt: 200, input: 2000, output: 300}}\n\
         prompt_files: [prompts/notes/all.md]\ninput_docs: [notes]\n"
    );
    shop.write(&format!("recipes/notes/{name}.yaml"), recipe);
}

/// What every model says, in the format in which it is asked.
fn answer(seen: &Seen) -> Answer {
    let text = "It lists lamps and what they cost. ".repeat(3);
    if seen.line.contains("/converse") {
        let usage = json!({"inputTokens": 1000, "outputTokens": 1000, "totalTokens": 2000});
        let message = json!({"role": "assistant", "content": [{"text": text}]});
        return Answer::json(
            200,
            &json!({"output": {"message": message}, "stopReason": "end_turn", "usage": usage}),
        );
    }
    if !seen.line.contains("/messages") {
        return reply_text(&text);
    }
    let usage = json!({"input_tokens": 100, "output_tokens": 10});
    let content = json!([{"type": "text", "text": text}]);
    Answer::json(
        200,
        &json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "content": content,
            "stop_reason": "end_turn", "stop_sequence": null, "usage": usage}),
    )
}

/// Runs a command with the addresses and keys of the tables set.
fn run(shop: &Shop, args: &[&str]) -> Ran {
    let mut command = shop.command(args);
    for (variable, path) in [("LARDER_MODELS_URL", "/v1"), ("LARDER_SERVER_URL", "/server/v1")] {
        command.env(variable, format!("{}{path}", shop.address()));
    }
    let ran: Ran = command
        .env("ANTHROPIC_API_KEY", "secret")
        .env("AWS_BEARER_TOKEN_BEDROCK", "secret")
        .output()
        .unwrap()
        .into();
    assert_eq!(ran.code, 0, "{args:?}: {ran:?}");
    ran
}

/// What the model of this recipe was asked.
fn asked(shop: &Shop, recipe: &str) -> (String, Value) {
    let before = shop.seen().len();
    run(shop, &["run", recipe, "--doc", "notes=notes.md", "-q", "What matters?"]);
    let seen = shop.seen();
    assert_eq!(seen.len(), before + 1, "{recipe} makes one call");
    (seen[before].line.clone(), seen[before].json())
}

/// The table in force.
fn table(shop: &Shop) -> Value {
    serde_json::from_str::<Value>(&run(shop, &["models", "--format", "json"]).out).unwrap()["models"].clone()
}

#[test]
fn each_layer_of_the_five_models_asks_its_own() {
    let shop = shop("five-model", "");
    let table = table(&shop);
    for (layer, id, size) in [
        ("REFLEX", "Qwen/Qwen3-0.6B", "~0.2GB"),
        ("NERVES", "tencent/Youtu-LLM-2B-Base", "~0.5GB"),
        ("MIND", "Qwen/Qwen3-Coder-30B-A3B-Instruct", "~1.0GB"),
        ("VOICE", "meta-llama/Llama-3.1-8B-Instruct", "~4.0GB"),
    ] {
        let (_, request) = asked(&shop, &format!("notes/{}", layer.to_lowercase()));
        assert_eq!(request["model"], id, "R0-3.2 to R0-3.5: {layer}");
        let name = table["layers"][layer]["model"].as_str().unwrap();
        let model = &table["models"][name];
        assert_eq!((&model["id"], &model["size"]), (&json!(id), &json!(size)));
    }
    // NERVES condenses (R0-3.3).
    shop.write("long.txt", "Many lamps hang there, and each has its price on a small card.\n".repeat(100));
    let before = shop.seen().len();
    run(&shop, &["condense", "long.txt", "--to", "200", "--by-model"]);
    let calls = &shop.seen()[before..];
    assert!(calls.len() > 1 && calls.iter().all(|call| call.json()["model"] == "tencent/Youtu-LLM-2B-Base"));
}

#[test]
fn one_text_model_has_a_temperature_for_each_layer_and_a_server_for_code() {
    let shop = shop("single-mind", "");
    // A recipe for code has a counterpart for conversations.
    recipe(&shop, "build_chat", "MIND", "mode: chat\n");
    recipe(&shop, "build_code", "MIND", "mode: code\n");
    for (recipe, temperature, row) in [
        ("reflex", 0.3, "R1-2.11"),
        ("nerves", 0.1, "R1-2.12"),
        ("mind", 0.5, "R1-2.13"),
        ("voice", 0.7, "R1-2.14"),
        ("build_chat", 0.5, "R1-2.13"),
    ] {
        let (line, request) = asked(&shop, &format!("notes/{recipe}"));
        assert_eq!(request["model"], "Qwen3-Coder-30B-AWQ", "R1-2.8: {recipe}");
        assert_eq!(request["temperature"], temperature, "{row}");
        assert!(line.starts_with("POST /v1/"), "{line}");
    }
    let (line, request) = asked(&shop, "notes/build_code");
    assert_eq!(request["model"], "Qwen3-Coder-30B", "R1-2.10");
    assert!(line.starts_with("POST /server/v1/"), "a server of its own: {line}");
}

#[test]
fn summaries_of_the_coding_table_use_its_cheaper_model() {
    let shop = shop("coding", "");
    let at = |name: &str| format!("[models.{name}]\nbase_url = \"{}\"\n", shop.address());
    let settings = format!("[models]\ntable = \"coding\"\n{}{}", at("claude-3-haiku"), at("claude-sonnet"));
    shop.write("larder.toml", settings);
    let (_, request) = asked(&shop, "notes/mind");
    let (writes, before) = (request["model"].clone(), shop.seen().len());
    shop.write("long.txt", "Many lamps hang there, and each has its price on a small card.\n".repeat(100));
    run(&shop, &["condense", "long.txt", "--to", "200", "--by-model"]);
    let seen = shop.seen();
    assert!(seen.len() > before);
    for call in &seen[before..] {
        assert_eq!(call.json()["model"], "claude-3-haiku-20240307", "R2-8.5");
    }
    let models = table(&shop)["models"].clone();
    let dearest = models["claude-sonnet"].clone();
    assert_eq!(writes, dearest["id"]);
    let price =
        |model: &Value, of: &str| model["prices"][of].to_string().trim_matches('"').parse::<f64>().unwrap();
    for of in ["input", "output"] {
        assert!(price(&models["claude-3-haiku"], of) * 10.0 < price(&dearest, of), "{of}");
    }
}

#[test]
fn models_of_the_conversation_table_are_asked_by_their_ids_and_cost_what_it_says() {
    let shop = shop("conversation", "");
    // The key of a provider is sent to no other address unless the table says so.
    let key = "api_key_env = \"AWS_BEARER_TOKEN_BEDROCK\"";
    let at = |name: &str| format!("[models.{name}]\nbase_url = \"{}\"\n{key}\n", shop.address());
    let servers = ["sonnet", "haiku", "kimi"].map(at).concat();
    // A thousand tokens in and a thousand out.
    for (recipe, alternative, id, cost, row) in [
        ("voice", false, "anthropic.claude-3-5-sonnet-20241022-v2", 0.018, "R4-1.4"),
        ("nerves", false, "anthropic.claude-3-5-haiku-20241022-v1", 0.006, "R4-1.5"),
        ("voice", true, "moonshotai.kimi-k2.5", 0.012, "R4-1.15"),
    ] {
        shop.write(
            "larder.toml",
            format!("[models]\ntable = \"conversation\"\nuse_alternative = {alternative}\n{servers}"),
        );
        let name = format!("notes/{recipe}");
        let ran =
            run(&shop, &["run", &name, "--doc", "notes=notes.md", "-q", "What matters?", "--format", "json"]);
        let outcome: Value = serde_json::from_str(&ran.out).unwrap();
        let booked = outcome["models"][0]["cost_usd"].as_f64().unwrap();
        assert!((booked - cost).abs() < 1e-9, "{row}: {booked}");
        let line = shop.seen().last().unwrap().line.clone();
        assert!(line.contains(id), "{row}: {line}");
    }
    let titan = table(&shop)["models"]["titan"].clone();
    assert_eq!(titan["id"], "amazon.titan-embed-text-v2:0", "R4-1.6");
    assert_eq!(titan["dimensions"], 1024, "R4-1.6");
    // Dollars for a token: $0.00002 for a thousand.
    assert_eq!(
        (&titan["prices"]["input"], &titan["prices"]["output"]),
        (&json!("0.00000002"), &json!("0")),
        "R4-1.6"
    );
}
