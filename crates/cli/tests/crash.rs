//! Runs that are killed at any moment: the store opens again, no record is half there, no pointer leads nowhere.
//!
//! `LARDER_CRASH_ROUNDS` says how many runs are killed, `LARDER_CRASH_SEED` when.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod support;

use std::time::{Duration, Instant};

use larder_testkit::stub::End;
use support::{Shop, ended_within, next, reply_text, setting};

/// Runs that are killed when nobody asks for more.
const ROUNDS: usize = 25;
/// The longest that a run here may take; only a failing test waits for it.
const PATIENCE: Duration = Duration::from_secs(60);

/// A document that no other round has, far larger than the budget, so that its original must be stored.
fn document(round: usize) -> String {
    (1..=400)
        .map(|line| format!("Round {round}, line {line}: lamp {line} costs {} euros.\n", line * 7))
        .collect()
}

#[test]
fn a_run_that_is_killed_leaves_a_whole_store() {
    let rounds = setting("LARDER_CRASH_ROUNDS", ROUNDS);
    let shop = Shop::with_provider(vec![reply_text("It costs 2401 euros."); rounds + 1]);
    let args = ["run", "notes/summary", "--doc", "notes=notes.md", "--query", "What does lamp 343 cost?"];

    // A first run that nobody kills makes the store and says how long one takes.
    shop.write("notes.md", document(0));
    let started = Instant::now();
    shop.ok(&args);
    let mut whole = started.elapsed();

    let mut state = setting("LARDER_CRASH_SEED", 2026) as u64;
    let mut completed = 1;
    for round in 1..=rounds {
        shop.write("notes.md", document(round));
        let delay = whole.mul_f64(1.1 * (next(&mut state) % 1000) as f64 / 1000.0);
        let started = Instant::now();
        let mut child = shop.start(&args);
        if ended_within(&mut child, delay) {
            assert!(child.wait().unwrap().success(), "round {round}");
            completed += 1;
            whole = whole.min(started.elapsed());
        } else {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let context = format!("round {round}, killed after {delay:?} of {whole:?}");
        let verified = shop.run(&["verify"]);
        assert_eq!(verified.code, 0, "{context}: {verified:?}");
        let limit = (rounds + 1).to_string();
        let runs = shop.json(&["runs", "--limit", &limit]);
        let runs = runs.as_array().unwrap();
        assert!((completed..=round + 1).contains(&runs.len()), "{context}: {} of {completed}", runs.len());
        assert!(runs.iter().all(|run| run["status"] == "completed"), "{context}");
    }

    assert!(completed <= rounds, "none was killed");

    // The store still takes runs.
    let last = document(rounds);
    let mut child = shop.start(&["condense", "notes.md", "--to", "200", "--format", "json"]);
    assert!(ended_within(&mut child, PATIENCE), "the store is locked");
    let condensed: serde_json::Value =
        serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(shop.ok(&["rehydrate", condensed["pointer"].as_str().unwrap()]).out, last);
}

#[test]
fn originals_are_stored_before_the_request_leaves() {
    let shop = Shop::with_provider([reply_text("never").ending(End::Hang)]);
    let text = document(0);
    shop.write("notes.md", &text);
    let mut child = shop.start(&[
        "run",
        "notes/summary",
        "--doc",
        "notes=notes.md",
        "--query",
        "What does lamp 343 cost?",
    ]);
    let end = Instant::now() + PATIENCE;
    while shop.seen().is_empty() {
        assert!(!ended_within(&mut child, Duration::from_millis(1)), "the run ended before it asked");
        assert!(Instant::now() < end, "no request came");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let sent = shop.seen()[0].json()["messages"].to_string();
    let pointer: String = sent[sent.find("lp1-").unwrap()..]
        .chars()
        .take_while(|char| char.is_alphanumeric() || *char == '-')
        .collect();
    assert_eq!(shop.ok(&["rehydrate", &pointer]).out, text);
    shop.ok(&["verify"]);
}
