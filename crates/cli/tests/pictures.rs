//! Pictures from outside: sent as providers want them, counted by their rule, refused where a model does not see; and the
//! screenshot of a page with little text, which a model of layer EYES reads.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

mod support;

use std::os::unix::fs::PermissionsExt;

use larder_testkit::stub::{Answer, Seen};
use larder_text::picture::Picture;
use serde_json::{Value, json};
use support::scholar::{Role, asked, call, say};
use support::served::Served;
use support::{Shop, reply_text};

const DESCRIBED: &str = r#"{"text": "Gate 7 closes at 18:40.", "description": "A departure board."}"#;

/// The beginning of a PNG of this many pixels.
fn png(width: u32, height: u32) -> Vec<u8> {
    let head: [&[u8]; 5] = [
        b"\x89PNG\r\n\x1a\n\0\0\0\x0d",
        b"IHDR",
        &width.to_be_bytes(),
        &height.to_be_bytes(),
        b"\x08\x06\0\0\0",
    ];
    head.concat()
}

/// A shop whose layer EYES is a model with these keys, which answers with a description.
fn shop(provider: &str, id: &str, capabilities: &str) -> Shop {
    let shop = Shop::responding(|seen| match seen.line.contains("/messages") {
        false => reply_text(DESCRIBED),
        true => Answer::json(
            200,
            &json!({"id": "m", "type": "message", "role": "assistant", "model": "claude", "stop_reason": "end_turn",
                "content": [{"type": "text", "text": DESCRIBED}], "usage": {"input_tokens": 10, "output_tokens": 5}}),
        ),
    });
    let path = if provider == "openai" { "/v1" } else { "" };
    let key = if provider == "openai" { "" } else { "api_key_env = \"STUB_KEY\"\n" };
    shop.write(
        "larder.toml",
        format!(
            "[models.layers]\nEYES = \"eyes\"\n[models.eyes]\nprovider = \"{provider}\"\nid = \"{id}\"\nbase_url = \"{}{path}\"\n\
             {key}retries = 0\nwindow = 64000\nmax_output = 4000\ncapabilities = [{capabilities}]\n",
            shop.address()
        ),
    );
    shop.write("board.png", png(1_024, 1_024));
    shop
}

const RUN: [&str; 6] =
    ["run", "eyes/describe_capture", "--doc", "picture=board.png", "-q", "When does it close?"];

fn ran(shop: &Shop) -> Value {
    let ran =
        shop.command(&[&RUN[..], &["--format", "json"]].concat()).env("STUB_KEY", "k").output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    serde_json::from_slice(&ran.stdout).unwrap()
}

/// All content blocks of a request's messages.
fn blocks(seen: &Seen) -> Vec<Value> {
    let body = seen.json();
    let messages = body["messages"].as_array().unwrap().iter();
    messages.filter_map(|message| message["content"].as_array().cloned()).flatten().collect()
}

#[test]
fn a_picture_is_sent_as_each_provider_wants_it() {
    let shop = self::shop("openai", "gpt-4o", "\"vision\"");
    assert_eq!(ran(&shop)["output"]["text"], "Gate 7 closes at 18:40.");
    let seen = shop.seen();
    let blocks_sent = blocks(&seen[0]);
    let picture = blocks_sent.iter().find(|block| block["type"] == "image_url").unwrap();
    assert!(picture["image_url"]["url"].as_str().unwrap().starts_with("data:image/png;base64,iVBORw0KGgo"));
    assert!(seen[0].json()["messages"].to_string().contains("When does it close?"));

    let shop = self::shop("anthropic", "claude-sonnet-4-5", "\"vision\"");
    assert_eq!(ran(&shop)["output"]["text"], "Gate 7 closes at 18:40.");
    let blocks_sent = blocks(&shop.seen()[0]);
    let picture = blocks_sent.iter().find(|block| block["type"] == "image").unwrap();
    assert_eq!(picture["source"]["media_type"], "image/png");
}

#[test]
fn a_picture_costs_what_the_provider_charges_for_its_size() {
    let shop = shop("openai", "gpt-4o", "\"vision\"");
    for ((width, height), tiles) in [((512, 512), 1), ((1_024, 1_024), 4), ((1_080, 1_920), 6)] {
        shop.write("board.png", png(width, height));
        let receipt = shop.json(&[&["explain"], &RUN[1..]].concat());
        let parts = receipt["parts"].as_array().unwrap();
        let picture = parts.iter().find(|part| part["slot"] == "documents").unwrap();
        let (tokens, charge) = (picture["tokens"].as_u64().unwrap(), 85 + 170 * tiles);
        assert!((charge..charge + 60).contains(&tokens), "{tokens} for {width} x {height}");
        assert_eq!(picture["rendition"], "whole");
        assert!(receipt["budget"]["used"].as_u64().unwrap() > charge);
    }
    // One whose size nobody knows, at a small model's price, does not fit the budget; nothing is sent.
    let shop = self::shop("openai", "gpt-4o-mini", "\"vision\"");
    shop.write("board.png", "GIF89a and nothing that says how large it is");
    let ran = shop.fails(1, &RUN);
    assert!(ran.err.contains("picture needs 48"), "{}", ran.err);
    assert!(shop.seen().is_empty());
}

#[test]
fn a_model_that_does_not_see_is_not_sent_a_picture() {
    let shop = shop("openai", "gpt-4o", "\"tools\"");
    let ran = shop.fails(1, &RUN);
    for said in ["board.png", "eyes, the model of layer EYES, does not see", "vision"] {
        assert!(ran.err.contains(said), "{}", ran.err);
    }
    assert!(shop.seen().is_empty());
}

#[test]
fn what_is_no_picture_or_text_is_not_sent() {
    let shop = shop("openai", "gpt-4o", "\"vision\"");
    for (file, bytes, words) in [
        ("board.png", &png(1_024, 1_024)[..20], "its header is not one of image/png that can be read"),
        ("board.png", b"Gate 7 closes at 18:40.", "it is no PNG, JPEG, GIF or WebP; convert it"),
        ("board.bmp", b"BM\x8a\0", "it is no PNG, JPEG, GIF or WebP; convert it"),
        ("board.txt", b"Gate 7\0closes at 18:40.", "is not text: it contains NUL bytes"),
    ] {
        shop.write(file, bytes);
        let given = format!("picture={file}");
        let ran =
            shop.fails(1, &["run", "eyes/describe_capture", "--doc", &given, "-q", "When does it close?"]);
        assert!(ran.err.contains(file) && ran.err.contains(words), "{}", ran.err);
    }
    assert!(shop.seen().is_empty());
}

#[test]
fn charts_and_scans_have_recipes() {
    let chart = json!({"title": "Tides", "kind": "line", "x_axis": "Hour", "y_axis": "m", "notes": "",
        "series": [{"name": "Brook", "points": [{"x": "6", "y": 4.7, "estimated": true}]}]});
    let scan = json!({"records": [
        {"field": "total", "value": 118.4, "unit": "EUR", "seen": "Total 118,40 EUR", "legible": true}]});
    for (recipe, answer, mark) in [
        ("eyes/read_chart", chart, "You read a chart"),
        ("eyes/extract_scan", scan, "You extract data from a scanned"),
    ] {
        let said = answer.to_string();
        let shop = Shop::responding(move |_| reply_text(&said));
        shop.configure_layers(&["EYES"], "capabilities = [\"vision\"]\n", "");
        let settings = std::fs::read_to_string(shop.path().join("larder.toml")).unwrap();
        shop.write("larder.toml", settings.replace("gpt-4o-mini", "gpt-4o"));
        shop.write("p.png", png(800, 600));
        let run = shop.json(&["run", recipe, "--doc", "picture=p.png", "-q", "What does it say?"]);
        assert_eq!(run["output"], answer);
        assert!(shop.seen()[0].json()["messages"].to_string().contains(mark));
    }
}

/// A file in base64.
const DOT: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// A conversation in which the user shows a picture, a tool returns one, and a model thinks in secret.
fn shown() -> Vec<Value> {
    let source = json!({"type": "base64", "media_type": "image/png", "data": DOT});
    let call = json!({"type": "function", "id": "c1", "function": {"name": "screenshot", "arguments": "{}"}});
    vec![
        json!({"role": "user", "content": [
            {"type": "text", "text": "What is this dot?"},
            {"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{DOT}")}}]}),
        json!({"role": "assistant", "content": [{"type": "redacted_thinking", "data": "c2VjcmV0"}], "tool_calls": [call]}),
        json!({"role": "tool", "tool_call_id": "c1", "content": [{"type": "image", "source": source}]}),
    ]
}

/// A large model that sees or does not.
fn configure(shop: &Shop, sees: bool) {
    let capabilities = if sees { "capabilities = [\"vision\"]\n" } else { "" };
    shop.configure_layers(&["MIND"], capabilities, "");
    let settings = std::fs::read_to_string(shop.path().join("larder.toml")).unwrap();
    let large = settings.replace("gpt-4o-mini", "gpt-4o").replace("window = 8000", "window = 128000");
    shop.write("larder.toml", large);
}

/// The pointers of the marks in a prompt.
fn pointers(prompt: &str) -> Vec<&str> {
    prompt.match_indices(": lp1-").map(|(at, _)| &prompt[at + 2..at + 26]).collect()
}

#[test]
fn what_a_history_shows_is_kept() {
    let shop = Shop::responding(|_| reply_text("A dot."));
    configure(&shop, true);
    let given = Value::from(shown()).to_string();
    shop.write("h.json", &given);
    let run = shop.json(&["run", "card/card_agent", "-q", "Who drew it?", "--history", "h.json"]);
    let opened = |pointer: &str| shop.command(&["rehydrate", pointer]).output().unwrap().stdout;
    // All of it, what messages have no form for included.
    assert_eq!(opened(run["receipt"]["history"].as_str().unwrap()), given.as_bytes());
    let served = Served::start(&shop, &[]);
    let mut messages = shown();
    messages.push(json!({"role": "user", "content": "Who drew it?"}));
    let asked = json!({"model": "recipe/card/card_agent", "messages": messages});
    let (status, said) = served.post("/v1/chat/completions", &asked);
    assert_eq!(status, 200, "{said}");
    served.signal("TERM");
    served.end();
    let seen = shop.seen();
    assert_eq!(seen.len(), 2);
    for seen in seen {
        let prompt = seen.json()["messages"].to_string();
        let [first, second] = pointers(&prompt)[..] else { panic!("{prompt}") };
        assert_eq!(first, second);
        assert_eq!(opened(first), Picture::from_base64(DOT).unwrap().file());
        assert!(prompt.contains("What is this dot?\\n[picture, image/png"), "{prompt}");
        assert!(prompt.contains("[thinking that its provider encrypted]"), "{prompt}");
    }
}

#[test]
fn pictures_do_not_keep_a_long_history_from_being_summarized() {
    let shop = Shop::responding(|_| reply_text("Dots."));
    configure(&shop, true);
    let turn = |at: usize| {
        let [mut asked, ..] = <[Value; 3]>::try_from(shown()).unwrap();
        asked["content"][0]["text"] =
            format!("Decision {at}: the dot in picture {at} stays where it is.").into();
        [
            asked,
            json!({"role": "assistant", "content": format!("Dot {at} stays. {}", "It is fine. ".repeat(12))}),
        ]
    };
    let history: Vec<Value> = (0..300).flat_map(turn).collect();
    shop.write("h.json", Value::from(history).to_string());
    let receipt = shop.json(&["explain", "card/card_agent", "-q", "And now?", "--history", "h.json"]);
    let slot =
        receipt["budget"]["slots"].as_array().unwrap().iter().find(|slot| slot["name"] == "history").unwrap();
    let (used, allowed) = (slot["tokens"].as_u64().unwrap(), slot["allowed"].as_u64().unwrap());
    assert!((allowed / 2..=allowed).contains(&used), "{slot}");
    let prompt = receipt["messages"].to_string();
    // Some forty; how many exactly depends on the digits of the pointers, which differ from home to home.
    assert!(prompt.matches("Decision ").count() > 30, "{prompt}");
}

#[test]
fn pictures_next_to_a_question_over_http_are_seen() {
    for (sees, status) in [(true, 200), (false, 400)] {
        let shop = Shop::responding(|_| reply_text("A dot."));
        configure(&shop, sees);
        let served = Served::start(&shop, &[]);
        // A picture may also come in a message of its own.
        let mut alone = shown()[0].clone();
        alone["content"] = json!([alone["content"][1]]);
        let first = json!({"role": "user", "content": "What is this dot?"});
        for messages in [vec![shown()[0].clone()], vec![first, alone]] {
            let asked = json!({"model": "recipe/card/card_agent", "messages": messages});
            let (got, said) = served.post("/v1/chat/completions", &asked);
            assert_eq!(got, status, "{said}");
            assert_eq!(said.contains("does not see"), !sees, "{said}");
        }
        let file = json!({"type": "file", "file": {"file_id": "f"}});
        let asked = json!([{"role": "user", "content": [{"type": "text", "text": "Read it."}, file]}]);
        let (got, said) = served
            .post("/v1/chat/completions", &json!({"model": "recipe/card/card_agent", "messages": asked}));
        assert!(got == 400 && said.contains("text and pictures"), "{got} {said}");
        served.signal("TERM");
        served.end();
        let seen = shop.seen();
        assert_eq!(seen.len(), if sees { 2 } else { 0 });
        for seen in seen {
            assert!(blocks(&seen).iter().any(|block| block["type"] == "image_url"), "{}", seen.json());
            assert_eq!(seen.json()["messages"].to_string().matches("What is this dot?").count(), 1);
        }
    }
}

const VISIT: &str = "Visit the board and say when the gate closes";

#[test]
fn a_page_with_little_text_is_read_by_its_screenshot_in_a_home_with_earlier_turns() {
    let shop = Shop::responding(|seen| {
        let page = "<!doctype html><title>Board</title><canvas id=board></canvas>";
        match seen.line.as_str() {
            "GET /robots.txt" => return Answer::new(404, "text/plain", ""),
            "GET /board" => return Answer::new(200, "text/html; charset=utf-8", page),
            _ => {}
        }
        let text = seen.json()["messages"].to_string();
        if text.contains("You see the screenshot") {
            return reply_text(DESCRIBED);
        }
        let (role, prompt) = asked(seen);
        reply_text(&match role {
            Role::Coordinator if prompt.contains(VISIT) && !prompt.contains("Iteration 1") => {
                let url = format!("http://{}/board", seen.header("host").unwrap());
                call("web.visit", &json!({"url": url})).to_string()
            }
            _ => say(role, &prompt),
        })
    });
    let browser = shop.path().join("chromium");
    // In place of Chromium: writes the beginning of a PNG of 512 by 512 pixels to the given path.
    let script = "#!/bin/sh\nfor a in \"$@\"; do case \"$a\" in --screenshot=*) printf \
        '\\211PNG\\r\\n\\032\\n\\000\\000\\000\\rIHDR\\000\\000\\002\\000\\000\\000\\002\\000\\010\\006\\000\\000\\000' > \
        \"${a#--screenshot=}\";; esac; done\n";
    std::fs::write(&browser, script).unwrap();
    std::fs::set_permissions(&browser, std::fs::Permissions::from_mode(0o755)).unwrap();
    let tools = format!(
        "[tools]\nprivate_hosts = [\"127.0.0.1\"]\nscreenshots = true\nbrowser = \"{}\"\n",
        browser.display()
    );
    shop.configure_scholar(&format!("capabilities = [\"vision\"]\n{tools}"));
    shop.ok(&["turn", "Where lies the ledger?"]);
    let turn = shop.json(&["turn", VISIT]);
    assert_eq!(turn["status"], "complete", "{turn}");
    let seen = shop.seen();
    let eyes: Vec<&Seen> = seen
        .iter()
        .filter(|seen| String::from_utf8_lossy(&seen.body).contains("You see the screenshot"))
        .collect();
    assert_eq!(eyes.len(), 1);
    assert!(blocks(eyes[0]).iter().any(|block| block["type"] == "image_url"));
    assert!(String::from_utf8_lossy(&eyes[0].body).contains(VISIT), "the query is in its prompt");
    let files = shop.documents().files();
    let content = files.iter().find(|(path, _)| path.ends_with("page_content.md")).unwrap();
    let content = String::from_utf8_lossy(content.1).into_owned();
    assert!(content.contains("Gate 7 closes at 18:40."), "{content}");
    // Without a model that sees, the page is what its text says.
    shop.configure_scholar(&tools);
    shop.ok(&["turn", VISIT]);
    let seen = shop.seen();
    let again =
        seen.iter().filter(|seen| String::from_utf8_lossy(&seen.body).contains("You see the screenshot"));
    assert_eq!(again.count(), 1);
}
