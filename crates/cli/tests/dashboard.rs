//! The dashboard over HTTP after real traffic: badges of shortened messages that lead to both forms, and the figures of
//! compaction, by session and live.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod support;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};

use larder_testkit::stub::{Answer, Seen};
use serde_json::{Value, json};
use support::served::Served;
use support::{Shop, reply_calls, reply_text};

fn log() -> String {
    (1..=600).map(|line| format!("line {line} of the log took {} ms\n", line * 7)).collect()
}

fn asked() -> Vec<Value> {
    let call = json!({"id": "c1", "type": "function", "function": {"name": "logs", "arguments": "{}"}});
    vec![
        json!({"role": "user", "content": "What is slow?"}),
        json!({"role": "assistant", "content": null, "tool_calls": [call]}),
        json!({"role": "tool", "tool_call_id": "c1", "content": log()}),
    ]
}

/// A model that opens the first pointer of its prompt where it is asked to.
fn answer(seen: &Seen) -> Answer {
    let messages = seen.json()["messages"].to_string();
    if !messages.contains("Open it") || messages.contains("call_0") {
        return reply_text("Line 600.");
    }
    let pointer = &messages[messages.find("lp1-").unwrap()..][..24];
    reply_calls(&[("larder_rehydrate", json!({"id": pointer}))])
}

/// A gateway for two models, of which the second has half the window.
fn served(settings: &str, args: &[&str]) -> (Shop, Served) {
    let shop = Shop::responding(answer);
    shop.configure("", &format!("[models.small]\nwindow = 4000\nmax_output = 500\n{settings}"));
    let served = Served::start(&shop, args);
    (shop, served)
}

/// Sends a request of this session, and gives the id of its record once that is written.
fn post(served: &Served, session: &str, model: &str, messages: &[Value]) -> String {
    let body = json!({"model": model, "messages": messages}).to_string();
    let header = format!("x-larder-session: {session}\r\n");
    let (status, head, body) = served.ask("POST", "/v1/chat/completions", &header, &body);
    assert_eq!(status, 200, "{body}");
    let id = head.lines().find_map(|line| line.strip_prefix("x-larder-request: ")).unwrap().to_owned();
    get(served, &format!("/api/v1/exchanges/{id}"));
    id
}

/// Three requests: a long result, the same with the wish to open it, and a short one of another session and model.
fn traffic(served: &Served) -> String {
    let mut messages = asked();
    let first = post(served, "deploy", "stub", &messages);
    messages.push(json!({"role": "assistant", "content": "Line 600."}));
    messages.push(json!({"role": "user", "content": "Open it."}));
    post(served, "deploy", "stub", &messages);
    post(served, "other", "small", &[json!({"role": "user", "content": "Hello"})]);
    first
}

fn get(served: &Served, path: &str) -> String {
    let (status, body) = served.get(path);
    assert_eq!(status, 200, "{path}: {body}");
    body
}

fn value(served: &Served, path: &str) -> Value {
    serde_json::from_str(&get(served, path)).unwrap()
}

/// The value of a card of the overview.
fn card<'p>(page: &'p str, name: &str) -> &'p str {
    let (_, rest) = page.split_once(&format!("<dt>{name}</dt><dd class=\"value\">")).unwrap();
    rest.split("</div>").next().unwrap()
}

#[test]
fn a_shortened_message_has_a_badge_that_leads_to_both_forms() {
    let (shop, served) = served("", &[]);
    let first = traffic(&served);
    let transcript = get(&served, "/sessions/deploy/transcript");
    let rows: Vec<&str> = transcript.split("<tr id=\"line-").skip(1).collect();
    let badge = |row: &str| row.contains(">shortened<");
    assert_eq!(
        rows.iter().map(|row| badge(row)).collect::<Vec<_>>(),
        [false, false, true, false, false, false],
        "R3-4.34"
    );
    // Messages are in the order in which they came, on the page and at the provider (R3-4.37).
    let words = ["What is slow?", ">logs<", "line 1 of the log", "Line 600.", "Open it.", "Line 600."];
    for (row, words) in rows.iter().zip(words) {
        assert!(row.contains(words), "R3-4.37: {words}: {row}");
    }
    let sent = shop.seen()[1].json()["messages"].clone();
    let roles: Vec<&str> =
        sent.as_array().unwrap().iter().map(|sent| sent["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant", "user"]);
    // The badge opens to both forms, without a script by its link (R3-4.37, R3-5.14).
    let opened = "/sessions/deploy/transcript/3";
    assert!(
        rows[2].contains(&format!("data-load=\"{opened}\""))
            && rows[2].contains(&format!("href=\"{opened}\""))
    );
    for address in [opened.to_owned(), format!("{opened}?piece=true")] {
        let shown = get(&served, &address);
        let (as_sent, original) = shown.split_once("The original").unwrap();
        assert!(as_sent.contains("As sent") && as_sent.contains("[Condensed: lp1-"), "{address}");
        assert!(
            !as_sent.contains("line 300 of the log") && original.contains("line 300 of the log"),
            "{address}"
        );
    }
    let raw = value(&served, "/api/v1/sessions/deploy/transcript/3/raw");
    assert_eq!(raw, asked()[2], "R3-5.14: the original message, byte for byte");

    // The request itself has the same badge, and says why (R3-7.3).
    let request = get(&served, &format!("/requests/{first}"));
    for attribute in ["data-why=\"", "<title>"] {
        let why = request.split_once(&format!("{attribute}logs (tool): condensed, 7,064 → ")).unwrap().1;
        let why = why.split(['<', '"']).next().unwrap();
        assert!(why.ends_with(" tokens; over entry cap"), "R3-7.3: {why}");
    }
    let piece = get(&served, &format!("/requests/{first}/parts/3?piece=true"));
    assert!(piece.contains("[Condensed: lp1-") && piece.contains("line 300 of the log"), "R3-4.37");
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/shrunk.md");
    assert!(
        std::fs::read_to_string(guide).unwrap().starts_with("# Why did my tool output shrink?\n"),
        "R3-7.3"
    );
}

#[test]
fn compactions_savings_and_what_is_read_back_are_counted_by_session_and_tool() {
    let (_shop, served) = served("[policy]\nentry_cap = 96\n", &[]);
    traffic(&served);
    let metrics = get(&served, "/metrics");
    let metric = |name: &str| {
        let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name}: {metrics}")).parse::<f64>().unwrap()
    };
    assert_eq!(metric("compactions_per_session"), 0.5, "R3-4.36: one in two sessions");
    assert!(metric("tokens_saved_sum") > 6_000.0 && metric("tokens_saved_count") == 1.0, "R3-4.36");
    assert_eq!(metric("pointer_refetch_count_total"), 1.0, "R3-6.7");
    // Both models and each decision (R3-5.8).
    for (series, expected) in [
        ("larder_requests_total{wire=\"chat\",model=\"stub\",outcome=\"ok\"}", 2.0),
        ("larder_requests_total{wire=\"chat\",model=\"small\",outcome=\"ok\"}", 1.0),
        ("context_budget_decision_total{status=\"needs_summary\",dry_run=\"false\"}", 2.0),
        ("context_budget_decision_total{status=\"ok\",dry_run=\"false\"}", 1.0),
        ("context_budget_violation_total", 0.0),
    ] {
        assert_eq!(metric(series), expected, "R3-5.8: {series}");
    }
    let overview = get(&served, "/");
    for (name, expected) in [("Originals asked back", "1<"), ("Summaries", "1<"), ("Budget violations", "0<")]
    {
        assert!(card(&overview, name).starts_with(expected), "R3-6.7: {name}: {}", card(&overview, name));
    }
    assert!(card(&overview, "Summaries").contains("1 compaction, 0.5 a session"), "R3-4.36");
    assert!(card(&overview, "Tokens saved").contains("96 % of what came"), "R3-4.36");
    let sessions = get(&served, "/sessions");
    for (session, saved, compactions) in [("deploy", "96 %", 1), ("other", "0 %", 0)] {
        let row = sessions.split_once(&format!("href=\"/sessions/{session}\"")).unwrap().1;
        let row = row.split("</tr>").next().unwrap();
        for cell in [saved.to_owned(), compactions.to_string()] {
            assert!(row.contains(&format!("<td class=\"numeric\">{cell}</td>")), "R3-4.36: {session}: {row}");
        }
    }
    let costs = get(&served, "/costs");
    let read_back = costs.split_once("id=\"read-back\"").unwrap().1;
    assert!(read_back.contains("logs") && read_back.contains("3.9k"), "R3-6.7: {read_back}");
}

/// Reads events of the overview until one has what is looked for in its totals.
fn totals(events: &mut impl BufRead, wanted: &str) -> String {
    let mut line = String::new();
    loop {
        line.clear();
        assert!(events.read_line(&mut line).unwrap() > 0, "the stream ended before {wanted}");
        let Some(data) = line.strip_prefix("data: ") else { continue };
        let pieces: Value = serde_json::from_str(data).unwrap();
        let totals = pieces["live-totals"].as_str().unwrap();
        if totals.contains(wanted) {
            return totals.to_owned();
        }
    }
}

#[test]
fn totals_of_tokens_and_pointers_follow_each_request() {
    let (shop, served) =
        served("[policy]\nentry_cap = 400\ntrace_threshold_tokens = 900\nprotect_last = 2\n", &[]);
    let mut events = BufReader::new(served.send("GET", "/live", "", ""));
    totals(&mut events, "<dt>Requests</dt><dd class=\"value\">0<");
    let mut messages = asked();
    let mut pointers = Vec::new();
    for run in 1..=5 {
        let id = post(&served, "deploy", "stub", &messages);
        let record = value(&served, &format!("/api/v1/exchanges/{id}"));
        let live = totals(&mut events, &format!("<dt>Requests</dt><dd class=\"value\">{run}<"));
        let page = get(&served, "/");
        for name in ["Prompt tokens", "Response reserve", "Pointers"] {
            assert_eq!(card(&live, name), card(&page, name), "R3-2.6: {name}");
        }
        let sent = shop.seen().last().unwrap().json()["messages"].to_string();
        pointers.push(
            sent.match_indices("lp1-").map(|(at, _)| &sent[at..at + 24]).collect::<BTreeSet<_>>().len(),
        );
        let tokens = &record["tokens"];
        for (name, expected) in [
            ("Prompt tokens", tokens["after"].as_u64().unwrap()),
            ("Response reserve", tokens["reserve"].as_u64().unwrap()),
            ("Pointers", *pointers.last().unwrap() as u64),
        ] {
            let shown = card(&live, name).split('<').next().unwrap().replace(',', "");
            assert_eq!(shown, expected.to_string(), "R3-2.6: {name}: {}", record["tokens"]);
        }
        let (id, content) = (format!("c{}", run + 1), log().replace("log", &format!("log {run}")));
        let call = json!({"id": id, "type": "function", "function": {"name": "logs", "arguments": "{}"}});
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": content}));
    }
    assert!(pointers.last() > pointers.first(), "{pointers:?}");
}

#[test]
fn what_decides_a_request_logs_its_decision_without_a_word_of_the_client() {
    let (_shop, served) = served("", &["-v"]);
    traffic(&served);
    served.signal("TERM");
    let (_, log) = served.end();
    let lines = |event: &str| log.lines().filter(|line| line.contains(event)).collect::<Vec<_>>();
    let decisions = lines("context_budget_decision");
    assert_eq!(decisions.len(), 3, "R3-3.4: {log}");
    for (decision, words) in decisions.iter().zip(["needs_summary", "needs_summary", "ok"]) {
        assert!(decision.contains(words) && decision.contains("prompt_budget"), "R3-3.4: {decision}");
    }
    assert!(!lines("smart_summarization").is_empty(), "R3-3.4: {log}");
    for said in ["What is slow", "of the log took", "Open it", "Hello"] {
        assert!(!log.contains(said), "R3-3.4: {said}");
    }
}
