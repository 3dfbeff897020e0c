//! What a turn's documents say of its query: one of four kinds, in any spelling that a model uses, and whose the turn is.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod support;

use std::sync::Mutex;

use serde_json::{Value, json};
use support::scholar::{ANSWER, Role, say};
use support::{Shop, reply_text};

/// A scholar whose analyzer says that queries are of these kinds, one after the other.
fn shop(kinds: &[&str]) -> Shop {
    let kinds = Mutex::new(kinds.iter().rev().map(|kind| (*kind).to_owned()).collect::<Vec<_>>());
    Shop::with_scholar(move |role, prompt| {
        if role != Role::Analyzer {
            return None;
        }
        let mut analysis: Value = serde_json::from_str(&say(role, prompt)).unwrap();
        analysis["query_type"] = json!(kinds.lock().unwrap().pop()?);
        Some(reply_text(&analysis.to_string()))
    })
}

fn section_0(shop: &Shop, turn: usize) -> String {
    let turn = turn.to_string();
    let shown = shop.json(&["turn", "show", &turn, "--file", "context.md"]);
    let text = shown["text"].as_str().unwrap();
    text.split("## 1. Reflection Decision").next().unwrap().to_owned()
}

#[test]
fn a_query_is_one_of_four_kinds_in_any_usual_spelling() {
    let spelled = [
        ("specific_content", "specific_content"),
        ("general_question", "general_question"),
        ("general", "general_question"),
        ("followup", "followup"),
        ("follow_up", "followup"),
        ("new_topic", "new_topic"),
    ];
    let shop = shop(&spelled.map(|(written, _)| written));
    for (at, (written, kind)) in spelled.iter().enumerate() {
        assert_eq!(shop.ok(&["turn", "Where does the ledger lie?"]).out.trim_end(), ANSWER);
        let section = section_0(&shop, at + 1);
        assert!(
            section.contains(&format!("**Query Type:** {kind}\n")),
            "R1-1.6, R1-3.22: {written}: {section}"
        );
        assert!(section.starts_with("---\n") && section.contains("\nscope: user\n"), "R1-9.12: {section}");
    }
}

#[test]
fn a_kind_that_there_is_not_is_asked_for_again() {
    let shop = shop(&["riddle", "new_topic"]);
    shop.ok(&["turn", "Where does the ledger lie?"]);
    assert!(section_0(&shop, 1).contains("**Query Type:** new_topic\n"));
    let seen = shop.seen();
    let analyses =
        seen.iter().filter(|seen| seen.json()["messages"].to_string().contains("You read a user's query"));
    let analyses: Vec<_> = analyses.collect();
    assert_eq!(analyses.len(), 2, "R1-3.22");
    assert!(analyses[1].json()["messages"].to_string().contains("riddle"), "it reads what was wrong");
}
