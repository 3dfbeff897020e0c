//! Background jobs by the command: what a turn leaves is done after it, by the first worker, and is seen and
//! controlled meanwhile.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use larder_testkit::stub::{Answer, End};
use serde_json::{Value, json};
use support::scholar::{ANSWER, Role};
use support::{Shop, ended_within, next, reply_text, setting};

/// What the scholar writes.
const SUMMARY: &str = "Where the ledger lies.";
const TURN: [&str; 4] = ["turn", "Where does the ledger lie?", "--format", "json"];
/// The longest that anything here may take; only a failing test waits for it.
const PATIENCE: Duration = Duration::from_secs(120);
/// Processes that are killed when nobody asks for more.
const ROUNDS: usize = 16;

/// The summaries of the committed turns, by number.
fn summaries(shop: &Shop) -> BTreeMap<u64, String> {
    let files = shop.documents().files();
    let metadata = files.iter().filter(|(path, _)| path.ends_with("/metadata.json"));
    let read = metadata.map(|(_, bytes)| serde_json::from_slice::<Value>(bytes).unwrap());
    read.map(|turn| (turn["turn_number"].as_u64().unwrap(), turn["summary"].as_str().unwrap().to_owned()))
        .collect()
}

/// The jobs in the queue that do not come again by themselves.
fn jobs(shop: &Shop) -> Vec<Value> {
    let mut jobs = shop.json(&["jobs", "list"]).as_array().unwrap().clone();
    jobs.retain(|job| !["collect", "clean_up", "roll_up"].map(Value::from).contains(&job["kind"]));
    jobs
}

#[test]
fn a_turn_leaves_its_summary_which_is_done_later() {
    let down = Arc::new(AtomicBool::new(true));
    let is_down = Arc::clone(&down);
    let shop = Shop::with_scholar(move |role, _| {
        let fails = role == Role::Summarizer && is_down.load(Ordering::SeqCst);
        fails.then(|| Answer::json(500, &serde_json::json!({"error": {"message": "out of order"}})))
    });
    assert_eq!(shop.json(&["jobs"]), serde_json::json!([]));
    assert!(shop.ok(&TURN).out.contains(ANSWER));
    assert!(!shop.roles().contains(&Role::Summarizer), "the reply does not wait for it");
    let waiting = jobs(&shop);
    assert_eq!(waiting.len(), 1);
    assert_eq!((&waiting[0]["kind"], &waiting[0]["state"]), (&"summarize_turn".into(), &"waiting".into()));
    let id = waiting[0]["id"].to_string();

    shop.ok(&["jobs", "work"]);
    let failed = shop.json(&["jobs", "show", &id]);
    assert_eq!((&failed["attempts"], &failed["state"]), (&1.into(), &"waiting".into()));
    assert!(failed["reason"].as_str().unwrap().contains("out of order"), "{failed}");
    assert!(shop.ok(&["jobs"]).out.contains("out of order"));

    down.store(false, Ordering::SeqCst);
    shop.ok(&["jobs", "work"]);
    assert_ne!(summaries(&shop)[&1], SUMMARY, "it is repeated after a pause");
    assert_eq!(shop.json(&["jobs", "retry", &id])["id"].to_string(), id);
    let worked = shop.ok(&["jobs", "work", "--format", "json"]);
    assert!(worked.err.contains("1 job taken up") && worked.out == "{\n  \"taken\": 1\n}\n", "{worked:?}");
    assert_eq!(summaries(&shop)[&1], SUMMARY);
    assert!(shop.ok(&["jobs", "work"]).err.contains("no job is due"));
    assert_eq!(jobs(&shop), Vec::<Value>::new());

    shop.ok(&TURN);
    let id = jobs(&shop)[0]["id"].to_string();
    let other = shop.fails(1, &["--user", "eve", "jobs", "cancel", &id]);
    assert!(other.err.contains("no such job"), "{}", other.err);
    assert!(!shop.ok(&["jobs"]).out.contains("summarize_turn summarize_turn"));
    assert!(shop.ok(&["jobs", "cancel", &id]).err.contains("is cancelled"));
    shop.ok(&["jobs", "work"]);
    assert_ne!(summaries(&shop)[&2], SUMMARY);
}

/// Nobody waits for the process that a command leaves, so its traces are looked at until they are there.
fn until(what: &str, condition: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "in vain waited for {what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

#[test]
fn without_a_server_the_command_starts_a_worker_that_outlives_it() {
    let shop = Shop::with_scholar(|_, _| None);
    // The next command takes up what one that starts nobody has left.
    shop.ok(&TURN);
    let ran = shop.command(&TURN).env("LARDER_JOBS_DETACHED", "true").output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    until("the summaries", || summaries(&shop).values().all(|summary| summary == SUMMARY));
    until("the end of the worker", || !shop.path().join("home/turns/jobs").exists());
    assert_eq!(jobs(&shop), Vec::<Value>::new());
    assert_eq!(shop.roles().iter().filter(|role| **role == Role::Summarizer).count(), 2);
}

/// Kills turns and workers at any moment.
#[test]
fn whatever_is_killed_no_job_is_lost_and_none_is_done_once_more_for_nothing() {
    let rounds = setting("LARDER_CRASH_ROUNDS", ROUNDS);
    let mut state = setting("LARDER_CRASH_SEED", 2026) as u64;
    let shop = Shop::with_scholar(|_, _| None);
    let timed = |args: &[&str]| {
        let started = Instant::now();
        shop.ok(args);
        started.elapsed()
    };
    let (mut turn, mut work) = (timed(&TURN), timed(&["jobs", "work"]));
    let (mut killed, mut killed_workers) = (0, 0);
    while killed < rounds {
        // A worker is killed only where it has something to do.
        let works = !jobs(&shop).is_empty() && !next(&mut state).is_multiple_of(3);
        let (args, time) = if works { (&["jobs", "work"][..], &mut work) } else { (&TURN[..], &mut turn) };
        // Two thirds are killed, so that there is something to do.
        let delay = time.mul_f64(1.5 * (next(&mut state) % 1_000) as f64 / 1_000.0);
        let started = Instant::now();
        let mut child = shop.start(args);
        if ended_within(&mut child, delay) {
            *time = started.elapsed();
        } else {
            child.kill().unwrap();
            killed += 1;
            killed_workers += usize::from(works);
        }
        child.wait().unwrap();
        // Opening the documents completes a commit that was cut off.
        shop.ok(&["turn", "list"]);
        let waiting = jobs(&shop);
        for (number, summary) in summaries(&shop) {
            let key = format!("summarize_turn {number}");
            assert!(
                summary == SUMMARY || waiting.iter().any(|job| job["key"] == *key),
                "{killed} killed, the last after {delay:?}: turn {number} has neither a summary nor a job"
            );
        }
    }
    shop.ok(&["jobs", "work"]);
    assert_eq!(jobs(&shop), Vec::<Value>::new());
    let summaries = summaries(&shop);
    assert!(summaries.values().all(|summary| summary == SUMMARY), "{summaries:?}");
    let asked = shop.roles().iter().filter(|role| **role == Role::Summarizer).count();
    assert!(
        (summaries.len()..=summaries.len() + killed_workers).contains(&asked),
        "{asked} summaries of {} turns with {killed_workers} workers killed",
        summaries.len()
    );
    assert_eq!(shop.json(&["interventions"]), serde_json::json!([]));
    assert_eq!(shop.run(&["verify"]).code, 0);
    report(&format!(
        "{killed} killed, {killed_workers} of them workers; {asked} summaries of {} turns",
        summaries.len()
    ));
}

/// A worker that is killed while it waits for a model leaves the job to the next one.
#[test]
fn a_worker_that_is_killed_in_the_middle_leaves_the_job_to_the_next() {
    let stuck = Arc::new(AtomicBool::new(true));
    let hangs = Arc::clone(&stuck);
    let shop = Shop::with_scholar(move |role, _| {
        let hangs = role == Role::Summarizer && hangs.load(Ordering::SeqCst);
        hangs.then(|| reply_text("never").ending(End::Hang))
    });
    shop.ok(&TURN);
    let mut worker = shop.start(&["jobs", "work"]);
    until("the call", || shop.roles().contains(&Role::Summarizer));
    assert_eq!(jobs(&shop)[0]["state"], "running");
    // A reply does not wait for a worker, and a second worker does nothing.
    shop.ok(&TURN);
    shop.ok(&["jobs", "work"]);
    assert_eq!(jobs(&shop).len(), 2);
    worker.kill().unwrap();
    worker.wait().unwrap();
    let listed = shop.ok(&["jobs"]).out;
    assert!(!listed.contains("(running)") && listed.contains("its worker ended before it did"), "{listed}");
    stuck.store(false, Ordering::SeqCst);
    shop.ok(&["jobs", "work"]);
    assert!(summaries(&shop).values().all(|summary| summary == SUMMARY));
    assert_eq!(jobs(&shop), Vec::<Value>::new());
}

/// What `cargo test -- --nocapture` shows.
#[allow(clippy::print_stdout, reason = "figures of a test")]
fn report(line: &str) {
    println!("{line}");
}

/// Where NERVES and MIND are one model, the background waits while someone waits for an answer.
#[test]
fn background_work_waits_for_a_turn_of_the_same_model() {
    let stuck = Arc::new(AtomicBool::new(false));
    let hangs = Arc::clone(&stuck);
    let shop = Shop::with_scholar(move |role, _| {
        let hangs = role == Role::Validator && hangs.load(Ordering::SeqCst);
        hangs.then(|| reply_text("never").ending(End::Hang))
    });
    shop.ok(&TURN);
    stuck.store(true, Ordering::SeqCst);
    let validated = || shop.roles().iter().filter(|role| **role == Role::Validator).count();
    let mut turn = shop.start(&TURN);
    until("the turn", || validated() == 2);
    let mut worker = shop.start(&["jobs", "work", "--wait", "3"]);
    until("the worker", || jobs(&shop)[0]["reason"] == "someone waits for the model that it needs");
    assert!(!ended_within(&mut worker, Duration::from_millis(300)));
    assert!(!shop.roles().contains(&Role::Summarizer), "it is in the way of the turn");
    turn.kill().unwrap();
    turn.wait().unwrap();
    assert!(worker.wait().unwrap().success());
    assert_eq!(summaries(&shop)[&1], SUMMARY);
}

/// A job that fails has what its turn left, not that much again for each attempt.
#[test]
fn all_attempts_of_a_job_together_stay_within_the_limits_of_its_turn() {
    const LEFT: usize = 20_000;
    // Two of these calls take what is left; the others take 110 tokens each.
    let useless = || {
        Answer::json(
            200,
            &json!({
                "id": "chatcmpl-1", "object": "chat.completion", "model": "gpt-4o-mini",
                "choices": [{"index": 0, "message": {"role": "assistant", "content": "No summary."}, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": LEFT / 2, "completion_tokens": 10, "total_tokens": LEFT / 2 + 10},
            }),
        )
    };
    let shop = Shop::with_scholar(move |role, _| (role == Role::Summarizer).then(&useless));
    shop.ok(&TURN);
    shop.ok(&["jobs", "cancel", &jobs(&shop)[0]["id"].to_string()]);
    let limit = (shop.roles().len() * 110 + LEFT).to_string();
    shop.ok(&[&TURN[..], &["--max-tokens", &limit]].concat());
    let waiting = jobs(&shop);
    assert!(waiting[0]["payload"]["tokens"].as_u64().is_some_and(|left| left <= LEFT as u64), "{waiting:?}");
    shop.ok(&["jobs", "work"]);
    let ended = jobs(&shop);
    assert_eq!(
        (&ended[0]["state"], &ended[0]["payload"]["tokens"]),
        (&"failed".into(), &0.into()),
        "{ended:?}"
    );
    assert!(ended[0]["reason"].as_str().unwrap().contains("its tokens are used up"), "{ended:?}");
    assert_eq!(shop.roles().iter().filter(|role| **role == Role::Summarizer).count(), 2);
}
