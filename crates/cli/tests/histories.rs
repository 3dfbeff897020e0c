//! Conversations given to `larder run` and `larder explain`: what is refused, added and shown of them, and where their
//! summaries fail.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod support;

use larder_testkit::stub::Answer;
use serde_json::{Value, json};
use support::{Shop, reply_text as reply};

const CARD: &str = "card/card_agent";

/// A shop whose model gives every summary and every answer as one text, and condenses histories.
fn shop(text: &'static str) -> Shop {
    let shop = Shop::responding(move |_| reply(text));
    let tables = "[policy]\nuse_llm_summarizer = true\n[models.small]\nwindow = 8000\nmax_output = 1000\n";
    shop.configure_layers(&["MIND", "VOICE"], "", tables);
    let path = shop.path().join("larder.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let text = text.replacen("[models.layers]\n", "[models.layers]\nNERVES = \"small\"\n", 1);
    std::fs::write(path, text.replacen("window = 8000", "window = 128000", 1)).unwrap();
    shop
}

/// A request, then steps of about 200 tokens: a call and its result each.
fn steps(count: usize) -> Vec<Value> {
    let mut history = vec![json!({"role": "user", "content": "Fix the build."})];
    for at in 0..count {
        let lines: String = (0..22).map(|line| format!("module {at}.{line} is fine\n")).collect();
        history.push(call(at));
        history.push(json!({"role": "tool", "tool_call_id": format!("c{at}"), "content": lines}));
    }
    history
}

fn call(at: usize) -> Value {
    let function = json!({"name": "shell", "arguments": format!("{{\"command\": \"make step{at}\"}}")});
    json!({"role": "assistant", "content": null, "tool_calls": [{"id": format!("c{at}"), "type": "function", "function": function}]})
}

fn write(shop: &Shop, history: &[Value]) {
    shop.write("h.json", Value::from(history.to_vec()).to_string());
}

#[test]
fn a_history_that_ends_with_a_call_has_a_result_and_is_summarized_ahead() {
    let shop = shop("Going on.");
    let args = ["run", CARD, "-q", "Go on", "--history", "h.json", "--session", "s", "--format", "json"];
    let soft = |receipt: &Value| {
        let slots = receipt["budget"]["slots"].as_array().unwrap().clone();
        slots.iter().any(|slot| slot["name"] == "history" && slot["soft_trigger"] == true)
    };
    let reached = (20..60).find(|&count| {
        write(&shop, &steps(count));
        soft(&shop.json(&["explain", CARD, "-q", "Go on", "--history", "h.json"]))
    });
    let mut history = steps(reached.unwrap());
    history.push(call(99));
    write(&shop, &history);
    let ran = shop.ok(&args);
    let note =
        format!("h.json: message {}: its call of shell has no result; the prompt says so", history.len());
    assert!(ran.err.contains(&note), "{}", ran.err);
    let sent = shop.seen().last().unwrap().json()["messages"].clone();
    let results = sent.as_array().unwrap().iter().filter(|message| message["tool_call_id"] == "c99");
    let results: Vec<&Value> = results.map(|message| &message["content"]).collect();
    assert_eq!(results, ["[no result: the conversation ends with this call]"], "{sent}");
    let jobs = shop.json(&["jobs", "list"]);
    assert!(jobs.as_array().unwrap().iter().any(|job| job["kind"] == "condense_history"), "{jobs}");
}

#[test]
fn a_history_is_sent_whole_up_to_the_cap_of_its_slot() {
    let shop = shop("Going on.");
    write(&shop, &steps(12));
    let settings = std::fs::read_to_string(shop.path().join("larder.toml")).unwrap();
    let cap = |tokens: u64| {
        let cap = format!("[slots.\"{CARD}\"]\nhistory = {tokens}\n");
        shop.write("larder.toml", format!("{settings}\n{cap}"));
        shop.json(&["explain", CARD, "-q", "Go on", "--history", "h.json"])
    };
    let renditions = |receipt: &Value| {
        let parts = receipt["parts"].as_array().unwrap().iter().filter(|part| part["slot"] == "history");
        parts.map(|part| part["rendition"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let used = |receipt: &Value| {
        let slots = receipt["budget"]["slots"].as_array().unwrap().clone();
        slots.iter().find(|slot| slot["name"] == "history").unwrap()["tokens"].as_u64().unwrap()
    };
    let whole = used(&cap(9_000));
    let fits = cap(whole);
    assert!(renditions(&fits).iter().all(|one| one == "whole"), "{fits}");
    let over = cap(whole - 1);
    assert!(renditions(&over).iter().any(|one| one == "condensed") && used(&over) < whole, "{over}");
}

#[test]
fn a_history_that_no_server_takes_is_refused_with_its_place() {
    let shop = shop("Going on.");
    let user = json!({"role": "user", "content": "Well?"});
    let refused = |history: Value, expected: &str| {
        shop.write("h.json", history.to_string());
        for command in ["run", "explain"] {
            let ran = shop.fails(1, &[command, CARD, "-q", "Go on", "--history", "h.json"]);
            assert!(ran.err.contains(expected), "{}", ran.err);
        }
    };
    refused(
        json!([user, call(1), user]),
        "h.json: message 2: its call of shell (id \"c1\") has no result before message 3",
    );
    shop.write("h.json", r#"[{"role": "user", "content": "Well?", "content": "No."}]"#);
    let ran = shop.fails(1, &["explain", CARD, "-q", "Go on", "--history", "h.json"]);
    assert!(ran.err.contains("h.json: line 1, column") && ran.err.contains("duplicate key"), "{}", ran.err);
    refused(json!({"messages": [user], "input": [user]}), "h.json: it has both messages and input");
    refused(
        json!([{"role": "user", "content": [{"type": "text"}]}]),
        "h.json: message 1: its block of text has no text",
    );
    assert_eq!(shop.seen().len(), 0);
}

#[test]
fn explain_prints_calls_their_results_and_what_was_cited() {
    let shop = shop("Going on.");
    let cited = json!({"role": "assistant", "content": "All is fine.", "annotations": [
        {"type": "url_citation", "url_citation": {"url": "https://ci.example/7", "title": "Run 7"}}]});
    write(&shop, &[steps(1), vec![cited]].concat());
    let shown = shop.ok(&["explain", CARD, "-q", "Go on", "--history", "h.json", "--messages"]).out;
    let step =
        "--- Assistant\ncall c0: shell {\"command\": \"make step0\"}\n--- Tool c0\nmodule 0.0 is fine\n";
    assert!(shown.contains(step), "{shown}");
    assert!(shown.contains("All is fine.\n[citation: Run 7, https://ci.example/7]\n"), "{shown}");
}

#[test]
fn summaries_that_say_nothing_are_called_too_short() {
    let shop = shop("All is well.");
    write(&shop, &steps(120));
    let receipt = shop.json(&["run", CARD, "-q", "Go on", "--history", "h.json"])["receipt"].clone();
    let why = receipt["condensing"]["failures"].to_string();
    assert!(why.contains("the summary has ") && why.contains(" tokens, far below the "), "{why}");
}

#[test]
fn work_that_is_not_done_goes_on_from_its_last_answer() {
    let shop = shop("Wrote the writer.");
    let ran = shop.fails(1, &["run", CARD, "-q", "Write the export", "--until-done", "--max-rounds", "2"]);
    let (_, command) = ran.err.split_once("`larder rehydrate ").unwrap();
    let (pointer, _) = command.split_once(" > history.json`").unwrap();
    let history = shop.ok(&["rehydrate", pointer]).out;
    shop.write("history.json", history);
    shop.ok(&["run", CARD, "-q", "And the header?", "--history", "history.json"]);
    let sent = shop.seen().last().unwrap().json()["messages"].to_string();
    assert_eq!(sent.matches("Wrote the writer.").count(), 2, "{sent}");
    assert!(sent.contains("Write the export") && sent.contains("And the header?"), "{sent}");

    // The rounds before one that fails are paid for.
    let broken = Answer::json(500, &json!({"error": {"message": "broken"}}));
    let shop = Shop::with_models([reply("Wrote the writer."), broken]);
    shop.configure_layers(&["MIND", "VOICE"], "", "");
    let ran = shop.fails(3, &["run", CARD, "-q", "Write the export", "--until-done"]);
    assert!(ran.err.contains("go on from the last answer: `larder rehydrate lp1-"), "{}", ran.err);
}
