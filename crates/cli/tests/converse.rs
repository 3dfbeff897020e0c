//! `larder converse` as it is typed: messages, actions, and sharing after a preview.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod support;

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use larder_testkit::stub::{Answer, Seen};
use larder_testkit::talks::copy_folder;
use serde_json::{Value, json};
use support::{Shop, reply_text};

fn respond(seen: &Seen) -> Answer {
    let body = String::from_utf8_lossy(&seen.body);
    if body.contains("Looks at what is shared.") {
        let attacks = body.contains("idiot");
        return reply_text(
            &json!({"attacks": attacks, "spans": ["idiot"], "suggestion": "Please."}).to_string(),
        );
    }
    if body.contains("Update the facts.") {
        return reply_text(r#"{"upsert": [], "delete": []}"#);
    }
    reply_text(
        "<thinking>\nMode: WITNESS\nUserIntensity: 4\nReady: N\n</thinking>I see.<draft>I was late.</draft>",
    )
}

fn lines(out: &str) -> Vec<Value> {
    serde_json::Deserializer::from_str(out).into_iter().map(Result::unwrap).collect()
}

#[test]
fn a_draft_is_previewed_judged_and_given_from_the_terminal() {
    let shop = Shop::responding(respond);
    copy_folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../conversation/tests/check/base"), shop.path());
    shop.configure_layers(&["REFLEX", "NERVES", "MIND", "VOICE"], "", "");
    let typed = "Hello\n/share\n/confirm\n";
    let args = ["converse", "chat", "--as", "Ann", "--with", "Ben", "--format", "json"];
    let ran = shop.run_with(&args, typed.as_bytes());
    assert_eq!(ran.code, 0, "{ran:?}");
    let said = lines(&ran.out);
    assert_eq!((said.len(), &said[0]["text"]), (3, &json!("I see.")));
    let list = shop.json(&["converse"]);
    let id = list[0]["id"].as_str().unwrap();
    assert!(said.iter().all(|object| object["conversation"] == id), "{said:?}");
    assert_eq!((&said[1]["text"], &said[1]["to"]), (&json!("I was late."), &json!(["Ben"])));
    assert_eq!(
        (&said[2]["share"]["text"], &said[2]["share"]["to"]),
        (&json!("I was late."), &json!(["Ben"]))
    );

    let refused = shop.run_with(&args, b"Hello\n/share @Ben You idiot\n/confirm\n");
    assert_ne!(refused.code, 0, "what is judged to attack is not given");
    assert_eq!(lines(&refused.out)[1]["verdicts"][0]["stops"], true);
    assert!(refused.err.contains("a judge stops it"), "{refused:?}");
    let plain = shop.run_with(
        &["converse", "chat", "--as", "Ann", "--with", "Ben"],
        b"Hello\n/share @Ben Hi\n/confirm\n/act no\n",
    );
    assert!(plain.out.contains("Preview:\nHi"), "{plain:?}");
    assert!(plain.err.contains("warning: the reader may take this as an attack: idiot"), "{plain:?}");
    assert!(plain.err.contains("given to Ben"), "{plain:?}");
    assert!(plain.err.contains("\"no\" cannot be done here"), "{plain:?}");
}

#[test]
fn what_was_shared_with_a_participant_is_read_in_the_terminal_once() {
    let shop = Shop::responding(respond);
    copy_folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../conversation/tests/check/base"), shop.path());
    shop.configure_layers(&["REFLEX", "NERVES", "MIND", "VOICE"], "", "");
    let typed = "Hello\n/share\n/confirm\n/share @Ben Hi\u{1b}[2J\n/confirm\n";
    let given = shop.run_with(&["converse", "chat", "--as", "Ann", "--with", "Ben"], typed.as_bytes());
    assert_eq!(given.code, 0, "{given:?}");
    assert!(!given.out.contains("shared:"), "nobody shared anything with Ann: {given:?}");
    let list = shop.json(&["converse"]);
    let ben = ["converse", "--continue", list[0]["id"].as_str().unwrap(), "--as", "Ben"];
    let entered = shop.run_with(&ben, b"");
    assert_eq!(entered.out, "Ann shared: I was late.\nAnn shared: Hi\\u{1b}[2J\n", "{entered:?}");
    let stayed = shop.run_with(&ben, b"/help\n\nHello\n");
    assert_eq!(stayed.out.matches("Ann shared: I was late.").count(), 1, "{stayed:?}");
    let listed = lines(&shop.run_with(&[&ben[..], &["--format", "json"]].concat(), b"").out);
    assert_eq!((listed.len(), &listed[0]["received"]["text"]), (2, &json!("I was late.")), "{listed:?}");
}

#[test]
fn actions_windows_and_intents_are_text_for_people_and_json_for_programs() {
    let shop = Shop::responding(|seen| {
        let body = String::from_utf8_lossy(&seen.body);
        if body.contains("Decide what they want.") {
            reply_text(r#"{"intent": "talk", "confidence": 0.5}"#)
        } else if body.contains("Someone writes before any session is open.") {
            reply_text("Welcome.")
        } else {
            respond(seen)
        }
    });
    copy_folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../conversation/tests/check/base"), shop.path());
    shop.configure_layers(&["REFLEX", "NERVES", "MIND", "VOICE"], "", "");
    let typed = b"/act\nHello\n/window\n";
    let plain = shop.run_with(&["converse", "chat"], typed);
    assert!(plain.err.contains("/act with one of\n  explain: Explains.\n"), "{plain:?}");
    for line in ["\nsystem prompt: ", "\nhistory: ", "\nrecipe: converse/talk", "\nmodel: "] {
        assert!(plain.out.contains(line), "{line:?}: {plain:?}");
    }
    assert!(!plain.out.contains('{'), "{plain:?}");
    let said = lines(&shop.run_with(&["converse", "chat", "--format", "json"], typed).out);
    assert!(said.len() == 2 && said[1]["system_tokens"].is_number(), "{said:?}");

    let start = ["converse", "mediation", "--start", "What is this?"];
    let started = shop.ok(&start);
    assert!(started.out.contains("Welcome."), "{started:?}");
    assert!(started.err.contains("Asks for: talk (confidence 0.5)\n"), "{started:?}");
    assert_eq!(shop.json(&start)["data"]["intent"], "talk");
}

#[test]
fn the_last_message_is_edited_answered_again_and_erased_in_the_terminal() {
    let shop = Shop::responding(|seen| {
        let body = String::from_utf8_lossy(&seen.body);
        let said = if body.contains("Hello") { "Wrong." } else { "Right." };
        reply_text(&format!("<thinking>\nMode: WITNESS\nUserIntensity: 4\nReady: N\n</thinking>{said}"))
    });
    copy_folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../conversation/tests/check/base"), shop.path());
    shop.configure_layers(&["REFLEX", "NERVES", "MIND", "VOICE"], "", "");
    let typed = b"/again\nHello\n/again\n/edit\n/edit Good day\n/delete\n/delete\n";
    let ran = shop.run_with(&["converse", "chat"], typed);
    assert_eq!((ran.out.matches("Wrong.").count(), ran.out.matches("Right.").count()), (2, 1), "{ran:?}");
    assert!(ran.err.contains("/edit needs the text to say instead"), "{ran:?}");
    assert!(ran.err.contains("erased: Good day"), "{ran:?}");
    assert!(ran.err.contains("there is no message to erase in this session"), "{ran:?}");
    assert_ne!(ran.code, 0, "{ran:?}");
}

#[test]
fn what_is_remembered_is_seen_allowed_and_forgotten_in_the_terminal() {
    let shop = Shop::responding(|seen| {
        let body = String::from_utf8_lossy(&seen.body);
        if body.contains("Update the facts.") {
            let fact =
                json!({"category": "People", "fact": "Has a daughter, Lily.", "quote": "my daughter Lily"});
            return reply_text(&json!({"upsert": [fact], "delete": []}).to_string());
        }
        respond(seen)
    });
    copy_folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../conversation/tests/check/base"), shop.path());
    shop.configure_layers(&["REFLEX", "NERVES", "MIND", "VOICE"], "", "");
    let first =
        shop.run_with(&["converse", "chat"], b"/memory\nThis is about my daughter Lily.\n/memory revoke\n");
    assert!(first.out.starts_with("Nothing is remembered of you.\n"), "{first:?}");
    assert!(first.err.contains("/memory allow agrees to this: I agree that"), "{first:?}");
    assert!(first.err.contains("you have not agreed"), "{first:?}");
    shop.ok(&["jobs", "work"]);
    let id = shop.json(&["converse"])[0]["id"].as_str().unwrap().to_owned();
    let again = ["converse", "--continue", &id];
    let memory =
        || lines(&shop.run_with(&[&again[..], &["--format", "json"]].concat(), b"/memory\n").out).remove(0);
    let fact = memory()["facts"][0].clone();
    assert_eq!((&fact["fact"], &fact["consent"]), (&json!("Has a daughter, Lily."), &Value::Null));
    let allowed = shop.run_with(&again, b"/memory allow\n/memory\n");
    assert!(
        allowed.err.contains("agreed: I agree that") && !allowed.err.contains("agrees to this"),
        "{allowed:?}"
    );
    let fact = fact["id"].as_str().unwrap();
    assert!(allowed.out.contains(&format!("{fact}  People: Has a daughter, Lily.\n")), "{allowed:?}");
    let typed = format!("/memory forget {fact}\n/memory forget {fact}\n/memory revoke\n/memory more\n");
    let forgotten = shop.run_with(&again, typed.as_bytes());
    for said in [
        "forgotten",
        "no fact fact-",
        "revoked: what was made under this consent",
        "use /memory, /memory allow",
    ] {
        assert!(forgotten.err.contains(said), "{said}: {forgotten:?}");
    }
    let left = memory();
    assert_eq!(left["facts"], json!([]));
    assert!(left["consents"][0]["revoked"].is_string(), "{left}");
}

#[test]
fn piped_lines_go_on_after_one_that_failed_and_commands_say_what_they_lack() {
    let shop = Shop::responding(respond);
    copy_folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../conversation/tests/check/base"), shop.path());
    shop.configure_layers(&["REFLEX", "NERVES", "MIND", "VOICE"], "", "");
    let ran = shop.run_with(&["converse", "chat", "--yes"], b"/help\n/confirm\n/share Hi\n/no\nHello\n");
    assert!(ran.err.contains("/share [@NAME …] [TEXT]"), "{ran:?}");
    assert!(ran.err.contains("there is no preview to confirm; /share or /release makes one"), "{ran:?}");
    assert!(ran.err.contains("nobody else takes part; begin a conversation with --with NAME"), "{ran:?}");
    assert!(ran.err.contains("there is no command /no; use /new"), "{ran:?}");
    assert!(ran.out.contains("I see."), "what comes after a failure is answered: {ran:?}");
    assert_eq!(ran.code, 2, "{ran:?}");
    let list = shop.json(&["converse"]);
    let id = list[0]["id"].as_str().unwrap();
    let begun = format!("conversation {id} as user; `larder converse --continue {id}` continues it\n");
    assert!(ran.err.contains(&begun), "{ran:?}");
    let two = shop.run_with(&["converse", "chat", "--with", "Ben"], b"");
    assert!(two.err.contains(" --as user` continues it\n"), "whoever has two names says which: {two:?}");
    let twice = shop.run_with(&["converse", "chat", "--as", "Ann", "--with", "Ann"], b"");
    assert!(twice.err.contains("participant \"Ann\": given twice\n"), "{twice:?}");
}

#[test]
fn the_assistant_speaks_first_among_piped_lines_too_and_a_side_is_chosen_by_its_option() {
    let shop = Shop::responding(respond);
    copy_folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../conversation/tests/check/base"), shop.path());
    shop.configure_layers(&["REFLEX", "NERVES", "MIND", "VOICE"], "", "");
    let opened =
        shop.run_with(&["converse", "mediation", "--as", "Ann", "--with", "Ben", "--format", "json"], b"");
    assert_eq!((opened.code, &lines(&opened.out)[0]["action"]), (0, &json!("open")), "{opened:?}");
    let list = shop.json(&["converse"]);
    let id = list[0]["id"].as_str().unwrap();
    let which = shop.run_with(&["converse", "--continue", id], b"Hello\n");
    assert_eq!(which.code, 1, "{which:?}");
    assert!(which.err.contains("as Ann and Ben; say which is meant with `--as NAME`"), "{which:?}");
    let again = shop.run_with(&["converse", "--continue", id, "--as", "Ann"], b"");
    assert!(again.out.is_empty(), "it opens a session once: {again:?}");
}

/// A stub whose first so many replies fail.
fn failing(fails: usize) -> Shop {
    let left = AtomicUsize::new(fails);
    let shop = Shop::responding(move |seen| {
        let is_reply = !String::from_utf8_lossy(&seen.body).contains("Update the facts.");
        let fails = |left: usize| left.checked_sub(1);
        if is_reply && left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fails).is_ok() {
            return Answer::new(400, "text/plain", "out of order");
        }
        respond(seen)
    });
    copy_folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../conversation/tests/check/base"), shop.path());
    shop.configure_layers(&["REFLEX", "NERVES", "MIND", "VOICE"], "", "");
    shop
}

#[test]
fn a_message_whose_model_failed_is_answered_first_and_read() {
    let shop = failing(1);
    let ran = shop.run_with(&["converse", "chat", "--format", "json"], b"Hello\nAgain\n");
    assert_ne!(ran.code, 0, "the failure is told: {ran:?}");
    let said = lines(&ran.out);
    assert_eq!((said.len(), &said[0]["to"], &said[1]["to"]), (2, &json!(1), &json!(3)), "{said:?}");
    let plain = failing(1).run_with(&["converse", "chat"], b"Hello\nAgain\n");
    assert!(plain.err.contains("first, the reply to \"Hello\":"), "{plain:?}");
    assert_eq!(plain.out.matches("I see.").count(), 2, "{plain:?}");
}

/// A worker that a command leaves waits for the first repetition of what failed and not for the next one, a minute later.
#[test]
fn the_worker_that_a_conversation_leaves_ends_soon_after_it() {
    let shop =
        Shop::responding(|seen| match String::from_utf8_lossy(&seen.body).contains("Update the facts.") {
            true => Answer::new(400, "text/plain", "out of order"),
            false => respond(seen),
        });
    copy_folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../conversation/tests/check/base"), shop.path());
    shop.configure_layers(&["REFLEX", "NERVES", "MIND", "VOICE"], "", "");
    let mut command = shop.command(&["converse", "chat"]);
    let mut child = command.env("LARDER_JOBS_DETACHED", "true").stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"Hello\n").unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
    let attempts = || {
        let jobs = shop.json(&["jobs", "list"]);
        let facts = jobs.as_array().unwrap().iter().find(|job| job["kind"] == "conversation_facts").cloned();
        facts.unwrap()["attempts"].as_u64().unwrap()
    };
    let end = Instant::now() + Duration::from_secs(45);
    while attempts() < 1 || shop.path().join("home/turns/jobs").exists() {
        assert!(Instant::now() < end, "in vain waited for the end of the worker");
        std::thread::park_timeout(Duration::from_millis(50));
    }
    assert_eq!(attempts(), 2, "what is left waits for the next command");
}
