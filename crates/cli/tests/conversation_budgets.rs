//! Budgets of a conversation type follow what its replies used (R4-9.3), as numbered revisions of the settings.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod support;

use std::path::Path;

use larder_testkit::stub::{Answer, Seen};
use larder_testkit::talks::copy_folder;
use serde_json::{Value, json};
use support::{Shop, reply_text};

/// What the recipe reserves for a reply, and what follows from replies of 10 tokens.
const OWN: u64 = 1_000;
const TUNED: u64 = 256;

fn respond(seen: &Seen) -> Answer {
    let body = String::from_utf8_lossy(&seen.body);
    if body.contains("Write the summary.") {
        return reply_text(r#"{"summary": "They counted."}"#);
    }
    if body.contains("Update the facts.") {
        return reply_text(r#"{"upsert": [], "delete": []}"#);
    }
    reply_text("<thinking>\nMode: WITNESS\nUserIntensity: 4\nReady: N\n</thinking>I see.")
}

/// A project whose messages are short, so that little is protected.
fn shop() -> Shop {
    let shop = Shop::responding(respond);
    copy_folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../conversation/tests/check/base"), shop.path());
    let path = shop.path().join("conversations/chat.yaml");
    let kind = std::fs::read_to_string(path).unwrap().replace("message_chars: 2000", "message_chars: 400");
    shop.write("conversations/chat.yaml", kind);
    shop.configure_layers(&["REFLEX", "NERVES", "MIND", "VOICE"], "", "");
    shop
}

/// Types these lines, and returns what is known of the window of each reply that is asked for.
fn windows(shop: &Shop, args: &[&str], lines: &[String]) -> Vec<Value> {
    let mut all = vec!["converse"];
    all.extend(args);
    all.extend(["--format", "json"]);
    let ran = shop.run_with(&all, lines.join("\n").as_bytes());
    assert_eq!(ran.code, 0, "{ran:?}");
    let values = serde_json::Deserializer::from_str(&ran.out).into_iter::<Value>().map(Result::unwrap);
    values.filter(|value| value.get("reserved_tokens").is_some()).collect()
}

fn said(many: usize) -> impl Iterator<Item = String> {
    (0..many).map(|at| format!("This is number {at}."))
}

/// The revision and the reserve of a window.
fn used(window: &Value) -> (u64, u64) {
    (window["revision"].as_u64().unwrap(), window["reserved_tokens"].as_u64().unwrap())
}

fn window() -> String {
    "/window".to_owned()
}

/// The tokens that the provider was last asked to answer with.
fn asked(shop: &Shop) -> Value {
    let last = shop.seen().last().unwrap().json();
    ["max_completion_tokens", "max_tokens"].iter().find_map(|key| last.get(key).cloned()).unwrap()
}

#[test]
fn budgets_that_replies_leave_unused_are_lowered_by_a_revision_and_restored_by_another() {
    let shop = shop();
    let lines: Vec<String> = said(49).chain([window()]).collect();
    let first = windows(&shop, &["chat"], &lines);
    assert_eq!(used(&first[0]), (0, OWN));
    let few = shop.json(&["policy", "tune", "--conversation", "chat", "--apply"]);
    assert_eq!((&few["replies"], &few["changes"], &few["revision"]), (&json!(49), &json!({}), &Value::Null));
    assert!(few["budgets"][1]["note"].as_str().unwrap().contains("too few"), "{few}");

    windows(&shop, &["chat"], &said(1).collect::<Vec<_>>());
    let tuned = shop.json(&["policy", "tune", "--conversation", "chat"]);
    let [context, output] = [&tuned["budgets"][0], &tuned["budgets"][1]];
    assert_eq!(
        (&output["key"], &output["proposed"]),
        (&json!("conversations.chat.small.output"), &json!(TUNED))
    );
    let number = |budget: &Value, key: &str| budget[key].as_u64().unwrap();
    assert!(number(context, "proposed") >= number(context, "least").max(number(context, "most")), "{tuned}");
    assert!(number(context, "proposed") < number(context, "allowed"), "{tuned}");
    assert_eq!(shop.json(&["revisions"]), json!([]), "nothing is written unless it is applied");
    let said_of = shop.ok(&["policy", "tune", "--conversation", "chat", "--apply"]).out;
    assert!(said_of.contains("Written as revision 1"), "{said_of}");
    let diff = shop.json(&["revisions", "diff", "0", "1"]);
    assert_eq!(diff["conversations.chat.small.output"], json!({"from": null, "to": TUNED.to_string()}));

    let listed = shop.json(&["converse"]);
    let id = listed[0]["id"].as_str().unwrap();
    let lines: Vec<String> =
        said(1).chain([window(), "/new".to_owned()]).chain(said(1)).chain([window()]).collect();
    let under_way = windows(&shop, &["--continue", id], &lines);
    assert_eq!(used(&under_way[0]), (0, OWN), "a session keeps what it began with");
    assert_eq!(used(&under_way[1]), (1, TUNED), "the next session uses the newest revision");
    assert_eq!(asked(&shop), json!(TUNED));
    let room = |window: &Value| window["available_tokens"].as_u64().unwrap();
    assert!(room(&under_way[1]) < room(&under_way[0]), "{under_way:?}");

    // What is longer than anything before is not refused for what was learned.
    let long = ["word ".repeat(3_000), window()];
    let asked_more = windows(&shop, &["chat"], &long);
    assert!(room(&asked_more[0]) > 3_000, "{asked_more:?}");

    shop.ok(&["revisions", "revert", "0"]);
    let after = windows(&shop, &["chat"], &[said(1).collect::<String>(), window()]);
    assert_eq!(used(&after[0]), (2, OWN));
}

#[test]
fn a_session_changes_its_budgets_where_a_summary_was_written() {
    let shop = shop();
    windows(&shop, &["chat"], &said(50).collect::<Vec<_>>());
    let first: Vec<String> = said(15).chain([window()]).collect();
    assert_eq!(used(&windows(&shop, &["chat"], &first)[0]), (0, OWN));
    shop.ok(&["policy", "tune", "--conversation", "chat", "--apply"]);
    let listed = shop.json(&["converse"]);
    let id = listed[0]["id"].as_str().unwrap();
    let again = windows(&shop, &["--continue", id], &said(1).chain([window()]).collect::<Vec<_>>());
    assert_eq!((used(&again[0]), &again[0]["watermark"]), ((0, OWN), &Value::Null));
    shop.ok(&["jobs", "work"]);
    let again = windows(&shop, &["--continue", id], &said(1).chain([window()]).collect::<Vec<_>>());
    assert!(again[0]["watermark"].is_u64(), "{again:?}");
    assert_eq!(used(&again[0]), (1, TUNED));
}
