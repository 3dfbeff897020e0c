//! `larder serve` as a process: what it says, that it stops and reloads as it is told, and what a crash leaves.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

mod support;

use std::io::{BufRead, BufReader};

use serde_json::{Value, json};
use support::served::Served;
use support::{Shop, reply_text};

fn hi() -> Value {
    json!({"model": "stub", "messages": [{"role": "user", "content": "hi"}]})
}

fn flood() -> Value {
    let log: String =
        (1..=600).map(|line| format!("line {line} of the log took {} ms\n", line * 7)).collect();
    json!({"model": "stub", "messages": [
        {"role": "user", "content": "What is slow?"},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "logs", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": log}]})
}

#[test]
fn it_prints_its_address_serves_and_stops_on_signal() {
    let shop = Shop::with_provider([reply_text("hello")]);
    let served = Served::start(&shop, &["--openai", "https://models.example/v1"]);
    let address = &served.address;
    for words in [
        format!("OPENAI_BASE_URL=http://{address}/v1"),
        format!("ANTHROPIC_BASE_URL=http://{address}"),
        format!("http://{address}/mcp"),
        "models: stub; recipes: 3".to_owned(),
        "https://models.example/v1".to_owned(),
        "no keys yet: any program on this machine that can reach this port is user local".to_owned(),
    ] {
        assert!(served.greeting.contains(&words), "{words}: {}", served.greeting);
    }
    let (status, body) = served.post("/v1/chat/completions", &hi());
    assert!(status == 200 && body.contains("hello"), "{body}");
    shop.configure("", &format!("[gateway]\nlisten = \"{address}\"\n"));
    let top = shop.ok(&["top", "--once"]).out;
    assert!(top.starts_with("requests 1 "), "`larder top` asks where the settings say: {top}");
    served.signal("TERM");
    assert_eq!(served.end(), (Some(0), String::new()));
}

#[test]
fn what_it_cannot_start_with_is_named_with_its_place_and_what_to_do() {
    let shop = Shop::new();
    for (flag, value, like) in [
        ("--listen", "127.0.0.1", "127.0.0.1:8787"),
        ("--openai", "ftp://x", "https://api.openai.com/v1"),
        ("--anthropic", "http://", "https://api.anthropic.com"),
    ] {
        let told = shop.fails(2, &["serve", flag, value]).err;
        let expected = format!("{flag} cannot be {value:?}; use a value such as {like}");
        assert!(told.contains(&expected), "{told}");
    }
    shop.write(
        "larder.toml",
        "[gateway]\nopenai = \"http://127.0.0.1:9/v1\"\nopenai_key_file = \"keys/none\"\n",
    );
    let (checked, told) = (shop.fails(1, &["check"]).out, shop.fails(1, &["serve"]).err);
    for words in
        ["gateway.openai_key_file: the key file", "keys/none", "larder.toml:3:1", "gateway.openai_key_env"]
    {
        assert!(told.contains(words) && checked.contains(words), "{words}: {told} {checked}");
    }
}

#[test]
fn it_says_whether_a_key_is_needed() {
    let shop = Shop::with_provider([]);
    let stored = larder_store::Store::open(&shop.path().join("home"), larder_store::StoreOptions::default());
    let key =
        larder_gateway::auth::create_key(&stored.unwrap(), "ada", "", larder_store::KeyLimits::default());
    key.unwrap();
    for (settings, words) in [
        ("", "every request needs a key"),
        ("[gateway]\nrequire_keys = false\n", "keys are not required: any"),
    ] {
        shop.configure("", settings);
        let served = Served::start(&shop, &[]);
        assert!(served.greeting.contains(words), "{}", served.greeting);
        served.signal("TERM");
        assert_eq!(served.end().0, Some(0));
    }
}

#[test]
fn it_notes_prompts_that_are_bounded_by_bytes() {
    let shop = Shop::with_provider([]);
    shop.configure("tokenizer = \"nofile.json\"\n", "[models.small]\nwindow = 4000\nmax_output = 500\n");
    let served = Served::start(&shop, &[]);
    served.signal("TERM");
    let (code, said) = served.end();
    assert_eq!((code, said.lines().count()), (Some(0), 1), "{said}");
    for words in ["note: the tokenizer nofile.json of stub cannot be loaded", "every byte counts as a token"]
    {
        assert!(said.contains(words), "{words}: {said}");
    }
}

#[test]
fn models_that_stay_loaded_are_loaded_at_the_start() {
    let hot = "capabilities = [\"always_hot\"]\n";
    // A model that costs money is not asked before anyone needs it, nor is one without the capability.
    for (keys, asked) in [
        (format!("{hot}prices = {{ input = 0, output = 0 }}\n"), 1),
        (format!("{hot}prices = {{ input = 1, output = 2 }}\n"), 0),
        ("prices = { input = 0, output = 0 }\n".to_owned(), 0),
    ] {
        let shop = Shop::with_provider([reply_text("H")]);
        shop.configure_layers(&["REFLEX", "NERVES"], &keys, "");
        let mut served = Served::start(&shop, &["-v"]);
        if asked > 0 {
            let mut log = BufReader::new(served.process.stderr.take().unwrap());
            let mut line = String::new();
            while !line.contains("model_warmed") {
                line.clear();
                assert!(log.read_line(&mut line).unwrap() > 0, "it ends without a word");
            }
            assert!(line.contains("stub"), "{line}");
            served.process.stderr = Some(log.into_inner());
        }
        let (status, body) = served.get("/readyz");
        let ready: Value = serde_json::from_str(&body).unwrap();
        assert_eq!((status, &ready["hot"]), (200, &json!({"models": asked, "warm": asked, "failed": 0})));
        served.signal("TERM");
        assert_eq!(served.end().0, Some(0));
        let seen = shop.seen();
        assert_eq!(seen.len(), asked, "two layers share the model");
        assert!(seen.iter().all(|seen| seen.json()["max_tokens"] == 1), "{seen:?}");
    }
}

#[test]
fn it_reloads_on_sighup_and_refuses_what_is_wrong() {
    let shop = Shop::with_provider([reply_text("hello"), reply_text("hello")]);
    let served = Served::start(&shop, &[]);
    assert!(
        served.greeting.contains("other models: refused; to forward them, pass --openai URL"),
        "{}",
        served.greeting
    );
    shop.configure("", "[policy]\nprompt_budget_overide = 5\n");
    served.signal("HUP");
    // The refusal is the first thing that the process says.
    let mut process = served;
    let mut err = BufReader::new(process.process.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("prompt_budget_override") {
        line.clear();
        assert!(err.read_line(&mut line).unwrap() > 0, "it ends without a word");
    }
    assert_eq!(process.post("/v1/chat/completions", &hi()).0, 200);
    shop.configure("", "[policy]\nprompt_budget_override = 5\n");
    process.signal("HUP");
    while process.post("/v1/chat/completions", &hi()).0 != 400 {}
    process.signal("TERM");
    assert!(process.process.wait().unwrap().success());
}

#[test]
fn every_startup_problem_is_reported() {
    let shop = Shop::with_provider([]);
    shop.configure("", "[gateway]\nlisten = \"here\"\nretrys = 1\n");
    let ran = shop.fails(1, &["serve"]);
    assert!(
        ran.err.contains("gateway.listen cannot be here") && ran.err.contains("gateway.retries"),
        "{}",
        ran.err
    );
    shop.configure("", "[policy]\nentry_cap = 10\n");
    for (ran, told) in [(shop.fails(1, &["check"]), true), (shop.fails(1, &["serve"]), false)] {
        let words = if told { ran.out } else { ran.err };
        assert!(words.contains("policy.entry_cap cannot be 10") && words.contains("larder.toml:"), "{words}");
        assert!(words.contains("help: use at least 96"), "{words}");
    }
    shop.configure("", "");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    assert!(shop.fails(1, &["serve", "--listen", &address]).err.contains("--listen"));
    shop.configure("", "[gateway]\nopenai = \"https://models.example/v1\"\nopenai_key_env = \"NOT_SET\"\n");
    assert!(shop.fails(1, &["serve", "--listen", "127.0.0.1:0"]).err.contains("NOT_SET"));
}

#[test]
fn transcripts_are_printed_and_exported_after_the_gateway_stops() {
    let shop = Shop::with_provider([reply_text("Line 600.")]);
    let served = Served::start(&shop, &[]);
    assert_eq!(served.post("/v1/chat/completions", &flood()).0, 200);
    served.signal("TERM");
    assert_eq!(served.end().0, Some(0));
    let listed = shop.json(&["transcript"]);
    let session = listed[0]["session"].as_str().unwrap();
    assert!(shop.ok(&["transcript"]).out.contains(session));
    let told = shop.ok(&["transcript", session]).out;
    for words in
        ["--- 1 user, whole\nWhat is slow?", "calls logs {}", "--- 3 tool logs, shortened lp1-", "Line 600."]
    {
        assert!(told.contains(words), "{words}: {told}");
    }
    let exported = shop.json(&["transcript", session]);
    let original: Value =
        serde_json::from_str(exported["messages"][2]["original"].as_str().unwrap()).unwrap();
    assert_eq!(original, flood()["messages"][2]);
    assert_eq!((&exported["branch"], &exported["branches"]), (&json!(1), &json!([1])));
    assert_eq!(exported["messages"][2]["branch"], 1);
    let all = shop.ok(&["transcript", session, "--all"]).out;
    assert!(all.contains("--- 1 user, branch 1, whole\n"), "{all}");
    let error = shop.fails(1, &["transcript", session, "--branch", "7"]).err;
    assert!(error.contains("no branch 7") && error.contains("its branches are 1"), "{error}");
    let error = shop.fails(1, &["transcript", session, "--user", "eve"]).err;
    assert!(error.contains("there is no transcript of session"), "{error}");
}

#[test]
fn a_killed_gateway_leaves_no_pointer_that_leads_nowhere() {
    let shop = Shop::with_provider(vec![reply_text("ok"); 4]);
    let served = Served::start(&shop, &[]);
    assert_eq!(served.post("/v1/chat/completions", &flood()).0, 200);
    served.signal("KILL");
    served.end();
    let first = shop.seen()[0].json()["messages"][2]["content"].as_str().unwrap().to_owned();
    let at = first.find("lp1-").unwrap();
    let pointer = &first[at..at + 24];
    let whole = shop.ok(&["rehydrate", pointer]).out;
    assert_eq!(whole, flood()["messages"][2]["content"].as_str().unwrap());
    let again = Served::start(&shop, &[]);
    assert_eq!(again.post("/v1/chat/completions", &flood()).0, 200);
    again.signal("TERM");
    assert_eq!(again.end().0, Some(0));
    assert_eq!(shop.seen()[0].body, shop.seen()[1].body, "the same bytes after a crash");
    shop.ok(&["verify"]);
}
