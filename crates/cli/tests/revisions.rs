//! `larder revisions`: what was learned is listed, shown, compared and taken back.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

mod support;

use std::collections::BTreeMap;

use larder_store::{Store, StoreOptions};
use larder_testkit::stub::{Answer, Seen};
use serde_json::{Value, json};
use support::served::Served;
use support::{Shop, reply_text};

fn learn(shop: &Shop, cause: &str, values: &[(&str, Option<&str>)]) {
    let store = Store::open(&shop.path().join("home"), StoreOptions::default()).unwrap();
    let changes: BTreeMap<_, _> =
        values.iter().map(|(key, value)| ((*key).to_owned(), value.map(str::to_owned))).collect();
    store.revisions().write(cause, &changes).unwrap();
}

#[test]
fn a_setting_that_is_gone_is_named_with_what_to_do() {
    let shop = Shop::with_provider([]);
    shop.configure("", "[gateway]\ndefault_window = 9000\n");
    let error = shop.fails(1, &["config"]).err;
    for words in ["gateway.default_window is gone", "larder.toml:", "help: remove it", "[models.NAME]"] {
        assert!(error.contains(words), "{words}: {error}");
    }
    shop.configure("", "");
    let ran = shop.command(&["config"]).env("LARDER_DEFAULT_WINDOW", "9000").output().unwrap();
    let error = String::from_utf8(ran.stderr).unwrap();
    assert!(
        ran.status.code() == Some(1) && error.contains("LARDER_DEFAULT_WINDOW: no window is assumed"),
        "{error}"
    );
}

#[test]
fn revisions_are_listed_shown_compared_and_reverted() {
    let shop = Shop::with_provider([]);
    shop.configure("", "[policy]\nprotect_last = 3\n");
    assert!(shop.ok(&["revisions"]).err.contains("nothing has been learned"));
    assert_eq!(shop.json(&["revisions"]), json!([]));
    assert!(shop.ok(&["revisions", "show", "0"]).out.contains("revision 0: the settings alone"));
    learn(&shop, "a measurement", &[("policy.entry_cap", Some("700")), ("policy.protect_last", Some("9"))]);
    learn(&shop, "another one", &[("policy.entry_cap", None), ("policy.low_watermark", Some("0.6"))]);

    let listed = shop.ok(&["revisions"]).out;
    for words in ["a measurement", "policy.entry_cap = 700", "policy.entry_cap no longer learned"] {
        assert!(listed.contains(words), "{words}: {listed}");
    }
    let all = shop.json(&["revisions"]);
    assert_eq!((&all[1]["number"], &all[1]["cause"]), (&json!(2), &json!("another one")));
    assert_eq!(all[1]["changes"], json!({"policy.entry_cap": null, "policy.low_watermark": "0.6"}));

    let set = shop.ok(&["config"]).out;
    let line = |key: &str| set.lines().find(|line| line.starts_with(key)).unwrap().to_owned();
    assert!(line("policy.low_watermark").ends_with("revision 2"), "{set}");
    assert!(line("policy.protect_last").contains("larder.toml:"), "{set}");
    let shown = shop.ok(&["revisions", "show", "2"]).out;
    assert!(shown.contains("policy.low_watermark = 0.6  (used)"), "{shown}");
    assert!(shown.contains("policy.protect_last = 9  (not used: set by ") && shown.contains("larder.toml:"));
    let shown = shop.json(&["revisions", "show", "1"]);
    assert_eq!(shown["learned"][0], json!({"key": "policy.entry_cap", "value": "700", "standing": "used"}));
    assert_eq!(shown["learned"][1]["standing"], "overridden");

    let compared = shop.ok(&["revisions", "diff", "1", "2"]).out;
    assert_eq!(compared, "policy.entry_cap: 700 -> not learned\npolicy.low_watermark: not learned -> 0.6\n");
    let compared = shop.json(&["revisions", "diff", "0", "1"]);
    assert_eq!(compared["policy.entry_cap"], json!({"from": null, "to": "700"}));

    let reverted = shop.ok(&["revisions", "revert", "1"]);
    assert!(reverted.err.contains("revision 3 learns again what revision 1 had"), "{}", reverted.err);
    assert_eq!(shop.json(&["revisions", "diff", "1", "3"]), json!({}));
    assert!(shop.ok(&["revisions", "revert", "1"]).err.contains("nothing changed"));
    assert_eq!(shop.json(&["revisions", "revert", "0"])["learned"], json!([]));
    let error = shop.fails(1, &["revisions", "show", "5"]).err;
    assert!(error.contains("revision 5: no such revision") && error.contains("0 to 4"), "{error}");

    for number in 5..=110 {
        learn(&shop, "a measurement", &[("policy.entry_cap", Some(&number.to_string()))]);
    }
    let listed = shop.ok(&["revisions"]);
    assert!(listed.out.starts_with("   11 ") && listed.err.contains("larder revisions --before 11"));
    let older = shop.ok(&["revisions", "--before", "11"]);
    assert!(older.out.starts_with("    1 ") && !older.err.contains("--before"), "{}", older.err);
    assert_eq!(shop.json(&["revisions", "--before", "3"]), json!([all[0], all[1]]));
}

#[test]
fn no_revision_with_unusable_values_is_gone_back_to() {
    let shop = Shop::with_provider([]);
    learn(&shop, "damaged", &[("policy.entry_cap", Some("700")), ("models.far-away.window", Some("wide"))]);
    learn(&shop, "repaired", &[("models.far-away.window", None)]);
    let refused = shop.fails(1, &["revisions", "revert", "1"]).err;
    assert!(refused.contains("models.far-away.window = wide: not a number of tokens such as"), "{refused}");
    assert_eq!(shop.json(&["revisions"]).as_array().unwrap().len(), 2, "nothing is written");
}

/// Refuses what is long, as llama.cpp does.
fn takes_little(seen: &Seen) -> Answer {
    let message =
        "request (99000 tokens) exceeds the available context size (32768 tokens), try increasing it";
    match seen.body.len() > 100_000 {
        true => Answer::json(400, &json!({"error": {"code": 400, "message": message}})),
        false => reply_text("321"),
    }
}

/// A conversation of this name with eight results of a tool, which are too long together, and perhaps what was said since.
fn long(name: &str, goes_on: bool) -> Value {
    let mut messages = vec![json!({"role": "user", "content": name})];
    for at in 0..8 {
        let log: String = (1..=400)
            .map(|line| {
                format!(
                    "2026-11-22 10:{:02}:{:02} INFO{at} request {line} took {} ms\n",
                    line / 60,
                    line % 60,
                    line * 7 % 97
                )
            })
            .collect();
        let call = json!({"id": format!("c{at}"), "type": "function", "function": {"name": "logs", "arguments": "{}"}});
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
        messages.push(json!({"role": "tool", "tool_call_id": format!("c{at}"), "content": log}));
    }
    if goes_on {
        messages.push(json!({"role": "assistant", "content": "321"}));
        messages.push(json!({"role": "user", "content": "Sure?"}));
    }
    json!({"model": "far-away-7b", "messages": messages})
}

#[test]
fn a_learned_window_is_shown_compared_and_reverted_and_two_servers_agree() {
    let shop = Shop::responding(takes_little);
    shop.write("larder.toml", format!("[gateway]\nopenai = \"{}/v1\"\n", shop.address()));
    let servers = [Served::start(&shop, &[]), Served::start(&shop, &[])];
    let status = |server: usize, body: &Value| servers[server].post("/v1/chat/completions", body).0;
    let last = || shop.seen().last().unwrap().body.clone();
    let agree = |body: &Value| {
        let sent = [0, 1].map(|server| (status(server, body), last()));
        assert!(sent[0] == sent[1] && sent[0].0 == 200, "{} {}", sent[0].0, sent[1].0);
        sent[0].1.clone()
    };
    assert_eq!(status(0, &long("first", false)), 400);
    let listed = shop.ok(&["revisions"]).out;
    assert!(
        listed.contains("the provider refused a prompt to far-away-7b as longer than 32768 tokens"),
        "{listed}"
    );
    let window = json!({"key": "models.far-away-7b.window", "value": "32768", "standing": "used"});
    assert_eq!(shop.json(&["revisions", "show", "1"])["learned"], json!([window]));
    let noted = shop.ok(&["check"]).err;
    assert!(noted.contains("note: models.far-away-7b.window = 32768 was learned"), "{noted}");
    let shown = shop.ok(&["models", "show", "far-away-7b"]).out;
    assert_eq!(shown, "far-away-7b\n  window     32768 (learned, revision 1)\n");
    let learned = shop.json(&["models", "show", "far-away-7b"])["learned"].clone();
    assert_eq!(learned, json!({"window": 32768, "from": "revision 1"}));
    assert!(shop.fails(1, &["models", "show", "far-away-8b"]).err.contains("the catalogue has no model"));
    let compared = shop.ok(&["revisions", "diff", "0", "1"]).out;
    assert_eq!(compared, "models.far-away-7b.window: not learned -> 32768\n");

    let begun = agree(&long("second", false));
    assert!(begun.len() < 100_000);
    shop.ok(&["revisions", "revert", "0"]);
    let gone_on: Value = serde_json::from_slice(&agree(&long("second", true))).unwrap();
    let begun: Value = serde_json::from_slice(&begun).unwrap();
    let messages = |body: &Value| body["messages"].as_array().unwrap().clone();
    assert!(messages(&gone_on).starts_with(&messages(&begun)), "under way, it keeps its revision");
    assert_eq!(status(1, &long("third", false)), 400, "a new one has no window");
    assert_eq!(shop.json(&["revisions"])[2]["changes"], json!({"models.far-away-7b.window": "32768"}));
    for server in servers {
        server.signal("TERM");
        assert_eq!(server.end().0, Some(0));
    }
}

#[test]
fn only_factors_of_the_estimate_that_a_model_has_are_listed() {
    let shop = Shop::new();
    let key = |estimate: &str| format!("models.claude-sonnet-4-5.estimate_factor.\"{estimate}\"");
    let (current, former) =
        (key("claude-4.6 o200k_base 108 115 130 145"), key("claude-4.5 cl100k_base 100 100 100 100"));
    learn(&shop, "reports", &[(&current, Some("0.700")), (&former, Some("0.800"))]);
    let listed = shop.ok(&["config"]).out;
    assert!(listed.contains(&current) && !listed.contains(&former), "{listed}");
}
