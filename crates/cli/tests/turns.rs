//! `larder turn`, `larder chat` and what keeps their documents, from outside: the real binary with a scripted model.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

mod support;

use std::process::{Child, Command};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use larder_testkit::stub::{Answer, End};
use serde_json::{Value, json};
use support::scholar::{ANSWER, Documents, QUESTION, Role, UNCLEAR, call, say};
use support::{Ran, Shop, reply_text};

const ASKED: &str = "Where does the ledger lie?";
/// The longest that anything here may take; only a failing test waits for it.
const PATIENCE: Duration = Duration::from_secs(120);

fn scholar() -> Shop {
    Shop::with_scholar(|_, _| None)
}

/// A scholar who does not come to an end when this role is asked for the first time, and what reports that it was.
fn stuck_at(stuck: Role, how: impl Fn() -> Answer + Send + Sync + 'static) -> (Shop, Receiver<()>) {
    let stuck = Mutex::new(Some(stuck));
    let (report, asked) = channel();
    let shop = Shop::with_scholar(move |role, _| {
        let mut stuck = stuck.lock().unwrap();
        (*stuck == Some(role)).then(|| {
            *stuck = None;
            report.send(()).unwrap();
            how()
        })
    });
    (shop, asked)
}

fn hanging() -> Answer {
    reply_text("never").ending(End::Hang)
}

fn end(child: Child) -> Ran {
    child.wait_with_output().unwrap().into()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

#[test]
fn a_turn_is_answered_and_its_documents_are_written() {
    let shop = scholar();
    let ran = shop.ok(&["turn", ASKED]);
    assert_eq!(ran.out.trim_end(), ANSWER, "nothing but the answer is on standard output");
    assert!(ran.err.contains("turn 1 · complete · users/local/turns/turn_000001 · 1 tool call"), "{ran:?}");
    let runs = shop.json(&["runs"]);
    assert!(
        runs.as_array().unwrap().iter().all(|run| run["session_id"] == "local"),
        "as in its documents: {runs}"
    );
    let metadata = shop.ok(&["turn", "show", "1", "--file", "metadata.json"]).out;
    assert!(metadata.contains("\"session_id\": \"local\""), "{metadata}");
    let outcome = shop.json(&["turn", ASKED, "--session", "s"]);
    assert_eq!((number(&outcome["turn"]), &outcome["status"]), (2, &json!("complete")), "{outcome}");
    let turns = shop.documents().turns();
    assert_eq!(turns.keys().map(String::as_str).collect::<Vec<_>>(), ["turn_000001", "turn_000002"]);
    assert_eq!(shop.documents().broken_links(|_| true), Vec::<String>::new());

    shop.ok(&["jobs", "work"]);
    let listed = shop.json(&["turn", "list"]);
    assert_eq!(listed["unfinished"], json!([]));
    let rows = listed["turns"].as_array().unwrap();
    assert_eq!(rows.iter().map(|row| number(&row["number"])).collect::<Vec<_>>(), [2, 1], "newest first");
    assert!(rows.iter().all(|row| row["summary"] == "Where the ledger lies."), "{rows:?}");
    assert_eq!(rows[0]["session"], "s");
    let newest = shop.json(&["turn", "list", "--limit", "1"]);
    assert_eq!((newest["turns"].as_array().unwrap().len(), &newest["has_older"]), (1, &json!(true)));
    let newest = shop.ok(&["turn", "list", "--limit", "1"]);
    assert!(newest.err.contains("there are older turns; --limit 2 lists more"), "{newest:?}");
    let all = shop.ok(&["turn", "list", "--limit", "2"]);
    assert!(all.out.matches(ASKED).count() == 2 && all.err.is_empty(), "{all:?}");
    assert_eq!(listed["has_older"], false);

    let context = shop.ok(&["turn", "show", "1"]).out;
    assert!(context.contains(ASKED) && context.contains("## 6. Validation"), "{context}");
    assert!(shop.ok(&["turn", "show", "1", "--file", "response.md"]).out.contains(ANSWER));
    let shown = shop.json(&["turn", "show", "1", "--file", "metadata.json"]);
    let metadata: Value = serde_json::from_str(shown["text"].as_str().unwrap()).unwrap();
    assert_eq!(metadata["turn_number"], 1);
    let files = shown["files"].as_array().unwrap();
    assert_eq!(files.len(), turns["turn_000001"].len(), "{files:?}");
}

#[test]
fn a_pasted_mail_is_asked_about_and_comes_back() {
    let ask = "Bis wann soll die Rechnung bezahlt sein?";
    let line =
        "Der Speicher am alten Hafen wurde im Herbst gestrichen, und niemand weiß, wer es bestellt hat.\n";
    for lines in [22, 1_250] {
        let shop = scholar();
        let mail = format!("Sehr geehrte Frau Krause,\n\n{}\nMit freundlichen Grüßen", line.repeat(lines));
        let ran = shop.run_with(&["turn", "-"], format!("{ask}\n\n{mail}").as_bytes());
        assert_eq!((ran.code, ran.out.trim_end()), (0, ANSWER), "{ran:?}");
        assert_eq!(shop.json(&["turn", "list"])["turns"][0]["query"], ask);
        let attached = shop.ok(&["turn", "show", "1", "--file", "attachments.md"]).out;
        let pointer = attached.lines().find_map(|line| line.strip_prefix("**Original:** ")).unwrap();
        assert_eq!(shop.ok(&["rehydrate", pointer]).out, mail);
        assert_eq!(shop.documents().broken_links(|_| true), Vec::<String>::new());
    }
    let shop = scholar();
    let ran = shop.run_with(&["turn", "-"], format!("{ask}\r\n").as_bytes());
    assert_eq!((ran.code, &shop.json(&["turn", "list"])["turns"][0]["asked"]), (0, &json!(ask)), "{ran:?}");
    let ran = shop.run_with(&["turn", "-"], b"Is a\0b it?");
    assert!(ran.code == 1 && ran.err.contains("the query contains a NUL character"), "{ran:?}");
}

#[test]
fn a_heading_that_is_no_section_is_reported() {
    let shop = scholar();
    shop.write("context.md", "## 0. User Query\n**Original:** hi\n## 1. Reflection\nx\n## 2. Results\n");
    let ran = shop.ok(&["explain", "pipeline/phase1_reflection", "--doc", "context.md"]);
    let told = "context.md:3: \"## 1. Reflection\" starts no section";
    assert!(
        ran.err.contains(told) && ran.err.contains("did you mean \"## 1. Reflection Decision\"?"),
        "{ran:?}"
    );
    assert!(!ran.err.contains("Results"), "other headings are text: {ran:?}");
    for (text, told) in [
        ("The granary is on fire.\n", "it has no section, so nothing of it is read"),
        ("## 6. Validation\nfine\n", "it has none of these sections, so nothing of it is read"),
        ("Words.\n\n## 0. User Query\nhi\n", "has text before the first section"),
        ("## 0. User Query\nhi\n## 0. User Query\nho\n", "has more than one \"## 0. User Query\""),
        ("## 0. User Query\nhi\n## §2 Gathered Context\nx\n", "did you mean \"## 2. Gathered Context\"?"),
        ("## 0. User Query\nhi\n## Gathered Context\nx\n", "did you mean \"## 2. Gathered Context\"?"),
    ] {
        shop.write("context.md", text);
        let ran = shop.run(&["explain", "pipeline/phase1_reflection", "--doc", "context.md"]);
        assert!(ran.err.contains(told), "{text}: {ran:?}");
    }
    shop.write("context.md", "The granary is on fire.\n");
    let ran = shop.fails(1, &["run", "pipeline/phase1_reflection", "-q", "hi", "--doc", "context.md"]);
    assert!(ran.err.contains("sections begin with lines such as \"## 0. User Query\""), "{ran:?}");
    assert!(shop.seen().is_empty(), "nothing is sent");
}

#[test]
fn what_is_not_there_is_said() {
    let shop = scholar();
    assert!(shop.ok(&["turn", "list"]).err.contains("there are no turns yet"));
    assert!(shop.ok(&["turn", "resume"]).err.contains("no turn was interrupted"));
    assert_eq!(shop.json(&["turn", "resume"]), json!({"resumed": null, "running": []}));
    assert!(shop.fails(1, &["turn", "resume", "7"]).err.contains("no unfinished turn 7"));
    assert!(shop.fails(1, &["turn", "show", "7"]).err.contains("there is no turn 7"));
    shop.ok(&["turn", ASKED]);
    for name in ["plan.md", "../turn_000001/context.md", "../../../../../key", ""] {
        let ran = shop.fails(1, &["turn", "show", "1", "--file", name]);
        assert!(ran.err.contains("it has ") && ran.err.contains("context.md"), "{ran:?}");
    }
    assert!(shop.fails(1, &["turn", " "]).err.contains("the query is empty"));
    shop.fails(2, &["turn"]);
    shop.fails(2, &["turn", ASKED, "--max-tokens", "0"]);
    shop.fails(2, &["turn", ASKED, "--max-cost", "much"]);
    shop.fails(2, &["turn", ASKED, "--workspace", "."]);
    shop.fails(1, &["turn", ASKED, "--mode", "code", "--workspace", "nowhere"]);
    let ran = shop.fails(1, &["turn", ASKED, "--mode", "code", "--workspace", "larder.toml"]);
    assert!(ran.err.contains("cannot read larder.toml: not a directory"), "{ran:?}");
    assert_eq!(shop.json(&["turn", "list"])["unfinished"], json!([]), "none of these took a number");
}

#[test]
fn a_question_is_asked_back_and_its_answer_is_understood() {
    let shop = Shop::with_scholar(|role, prompt| {
        let follows = role == Role::Analyzer && prompt.contains("a table for two");
        follows.then(|| {
            assert!(prompt.contains(QUESTION), "the question stands among the turns before: {prompt}");
            let answer = json!({"resolved_query": "Reserve a table for two on Friday", "was_resolved": true,
                "query_type": "followup", "intent": "informational", "entities": [], "content_reference": null, "reasoning": "It answers the question."});
            reply_text(&answer.to_string())
        })
    });
    let ran =
        shop.run_with(&["chat", "--session", "friday"], format!("{UNCLEAR}\n\na table for two\n").as_bytes());
    assert_eq!(ran.code, 0, "{ran:?}");
    let lines: Vec<&str> = ran.out.lines().collect();
    assert_eq!(lines, [QUESTION, ANSWER]);
    let turns = shop.json(&["turn", "list"])["turns"].clone();
    assert_eq!(turns[1]["status"], "clarify");
    assert_eq!(turns[0]["query"], "Reserve a table for two on Friday");
    assert!(turns.as_array().unwrap().iter().all(|turn| turn["session"] == "friday"), "{turns}");
    assert!(!shop.documents().turns()["turn_000001"].contains("response.md"), "nothing was answered");
}

#[test]
fn lines_of_a_chat_are_turns_of_one_conversation() {
    let shop = scholar();
    let ran = shop.run_with(&["chat", "--format", "json"], b"one?\ntwo?");
    let said: Vec<Value> =
        serde_json::Deserializer::from_str(&ran.out).into_iter().map(Result::unwrap).collect();
    assert_eq!(said.iter().map(|outcome| number(&outcome["turn"])).collect::<Vec<_>>(), [1, 2]);
    shop.ok(&["jobs", "work"]);
    let turns = shop.json(&["turn", "list"])["turns"].clone();
    assert!(turns[0]["session"].is_string() && turns[0]["session"] == turns[1]["session"], "{turns}");
    assert!(turns.as_array().unwrap().iter().all(|turn| turn["summary"] == "Where the ledger lies."));
}

#[test]
fn a_piped_chat_goes_on_after_a_failure_and_ends_with_it() {
    let (shop, _asked) = stuck_at(Role::Planner, || Answer::new(500, "text/plain", "out of order"));
    let ran = shop.run_with(&["chat"], format!("one?\n{ASKED}\n").as_bytes());
    assert_eq!((ran.code, ran.out.trim_end()), (3, ANSWER), "{ran:?}");
    assert!(ran.err.contains("`larder turn resume 1`"), "{ran:?}");
}

#[test]
fn a_piped_chat_ends_with_the_exit_code_of_a_turn_without_an_answer() {
    let ran = scholar().run_with(&["chat", "--max-tokens", "300"], ASKED.as_bytes());
    assert!(ran.code == 1 && ran.err.contains("no answer: "), "{ran:?}");
}

#[test]
fn a_list_of_turns_shows_what_was_asked() {
    let resolved = json!({"resolved_query": "Where does the ledger of the granary lie?", "was_resolved": true,
        "query_type": "new_topic", "intent": "informational", "entities": [], "content_reference": null,
        "reasoning": "The granary was meant."});
    let shop = Shop::with_scholar(move |role, _| (role == Role::Analyzer).then(|| support::reply(&resolved)));
    shop.ok(&["turn", ASKED]);
    assert!(shop.ok(&["turn", "list"]).out.contains(ASKED));
    let turn = shop.json(&["turn", "list"])["turns"][0].clone();
    assert_eq!(
        (&turn["asked"], &turn["query"]),
        (&json!(ASKED), &json!("Where does the ledger of the granary lie?"))
    );
    assert!(shop.ok(&["turn", "show", "1"]).out.contains("the ledger of the granary"));
}

#[test]
fn a_turn_goes_on_when_its_provider_is_back() {
    let (shop, _asked) = stuck_at(Role::Synthesizer, || Answer::new(500, "text/plain", "out of order"));
    let ran = shop.fails(3, &["turn", ASKED]);
    assert!(ran.err.contains("`larder turn resume 1`") && ran.out.is_empty(), "{ran:?}");
    assert_eq!(shop.documents().turns().len(), 0, "half a turn is no document");
    let draft = shop.json(&["turn", "list"])["unfinished"][0].clone();
    assert_eq!((&draft["number"], &draft["phase"], &draft["running"]), (&json!(1), &json!(4), &json!(false)));
    assert!(shop.ok(&["turn", "show", "1"]).out.contains("## 4. Tool Execution"), "a draft can be read");
    let before = shop.roles().len();
    assert_eq!(shop.ok(&["turn", "resume"]).out.trim_end(), ANSWER);
    let asked = &shop.roles()[before..];
    assert_eq!(asked, [Role::Synthesizer, Role::Validator], "nothing is asked twice");
    assert_eq!(shop.json(&["turn", "list"])["unfinished"], json!([]));
    assert!(shop.fails(1, &["turn", "resume", "1"]).err.contains("there is no unfinished turn 1"));
}

#[test]
fn a_turn_is_worked_on_by_one_process_and_taken_up_after_it_was_killed() {
    let (shop, asked) = stuck_at(Role::Validator, hanging);
    let mut child = shop.start(&["turn", ASKED]);
    asked.recv_timeout(PATIENCE).unwrap();
    assert_eq!(shop.json(&["turn", "list"])["unfinished"][0]["running"], true);
    for command in ["resume", "drop"] {
        assert!(shop.fails(1, &["turn", command, "1"]).err.contains("running in another process"));
    }
    assert!(shop.ok(&["turn", "resume"]).err.contains("turn 1 is running"));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(shop.json(&["turn", "list"])["unfinished"][0]["running"], false);
    // Another turn tells of it, takes a number of its own and leaves it alone.
    let other = shop.ok(&["turn", "And the key?", "--format", "json"]);
    assert!(other.err.contains("turn 1 was interrupted after phase 5"), "{other:?}");
    assert_eq!(serde_json::from_str::<Value>(&other.out).unwrap()["turn"], 2);
    assert_eq!(shop.json(&["turn", "resume"])["turn"], 1);
    assert_eq!(shop.json(&["turn", "list"])["turns"].as_array().unwrap().len(), 2);
    assert_eq!(shop.documents().broken_links(|_| true), Vec::<String>::new());
}

#[test]
fn an_answer_that_cites_a_failed_call_is_marked_with_it_in_whole_words() {
    const ADDRESS: &str = "ftp://archive.example/ledger";
    let shop = Shop::with_scholar(|role, prompt| match role {
        Role::Coordinator if !prompt.contains("Iteration 1") => {
            Some(reply_text(&call("web.visit", &json!({"url": ADDRESS})).to_string()))
        }
        Role::Synthesizer => Some(reply_text("It could not be fetched [9].")),
        _ => None,
    });
    let ran = shop.ok(&["turn", ASKED]);
    let warning = format!(
        "warning: the answer is not verified: it cites [9], which is none of its sources; a call failed: \
         web.visit(url=\"{ADDRESS}\") ended with ERROR: \"{ADDRESS}\" cannot be visited: only http and https can be \
         visited; give a whole address such as https://example.com/page"
    );
    assert!(ran.err.lines().any(|line| line == warning), "{ran:?}");
    assert!(!ran.err.contains("robots.txt") && !ran.out.contains("does not cite"), "{ran:?}");
}

#[test]
fn several_interrupted_turns_are_distinguished() {
    let shop = Shop::with_scholar(|role, _| {
        (role == Role::Planner).then(|| Answer::new(500, "text/plain", "out of order"))
    });
    shop.fails(3, &["turn", "first"]);
    shop.fails(3, &["turn", "second"]);
    let ran = shop.fails(2, &["turn", "resume"]);
    assert!(ran.err.contains("turn 1 was interrupted after phase 2: first"), "{ran:?}");
    assert!(ran.err.contains("turn 2 was interrupted after phase 2: second"), "{ran:?}");
    let third = shop.fails(3, &["turn", "third"]);
    let notes: Vec<&str> = third.err.lines().filter(|line| line.starts_with("note: ")).collect();
    let expected = "note: 2 turns were interrupted; `larder turn list` lists them, and `larder turn resume 2` resumes \
                    the newest";
    assert_eq!(notes, [expected], "{third:?}");
    assert_eq!(shop.json(&["turn", "drop", "3"]), json!({"dropped": 3}));
    let listed = shop.ok(&["turn", "list"]).out;
    assert!(
        listed.contains("turn 2 was interrupted after phase 2: second; `larder turn resume 2`"),
        "{listed}"
    );
    assert_eq!(shop.json(&["turn", "drop", "1"]), json!({"dropped": 1}));
    assert!(shop.fails(1, &["turn", "drop", "1"]).err.contains("no unfinished turn 1"));
    let left = shop.json(&["turn", "list"])["unfinished"].clone();
    assert_eq!((left.as_array().unwrap().len(), &left[0]["number"]), (1, &json!(2)), "{left}");
}

#[cfg(unix)]
#[test]
fn ctrl_c_leaves_a_turn_that_goes_on() {
    for (args, code) in [(&["turn", ASKED][..], 130), (&["chat"][..], 0)] {
        let (shop, asked) = stuck_at(Role::Planner, hanging);
        let mut child = shop.command(args).stdin(std::process::Stdio::piped()).spawn().unwrap();
        // Standard input stays open: a conversation waits for its next line.
        let mut input = child.stdin.take().unwrap();
        std::io::Write::write_all(&mut input, format!("{ASKED}\n").as_bytes()).unwrap();
        asked.recv_timeout(PATIENCE).unwrap();
        let interrupt = || Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        assert!(interrupt().success());
        if code == 0 {
            // The turn stops first; then the conversation ends with its input.
            drop(input);
        }
        let ran = end(child);
        assert_eq!(ran.code, code, "{args:?}: {ran:?}");
        assert!(ran.err.contains("stopped; `larder turn resume 1` resumes it"), "{ran:?}");
        assert_eq!(shop.ok(&["turn", "resume"]).out.trim_end(), ANSWER);
    }
}

/// A scholar who edits a file and then runs a program.
fn engineer() -> Shop {
    Shop::with_scholar(|role, prompt| {
        let edit = json!({"path": "notes.txt", "old": "cellar", "new": "granary"});
        let next = match role {
            Role::Coordinator if prompt.contains("Iteration 2") => return None,
            Role::Coordinator if prompt.contains("Iteration 1") => {
                call("command.run", &json!({"program": "touch", "args": ["made.txt"]}))
            }
            Role::Coordinator => call("file.edit", &edit),
            _ => return None,
        };
        Some(reply_text(&next.to_string()))
    })
}

#[test]
fn files_are_changed_and_programs_run_only_with_leave() {
    for yes in [false, true] {
        let shop = engineer();
        shop.configure_scholar("[tools]\ncommands = [\"touch\"]\n");
        shop.write("work/notes.txt", "It lies in the cellar.\n");
        let mut args = vec!["turn", "Mend the notes", "--mode", "code", "--workspace", "work"];
        if yes {
            args.push("--yes");
        }
        let ran: Ran =
            shop.command(&args).env("PATH", std::env::var("PATH").unwrap()).output().unwrap().into();
        assert_eq!(ran.code, 0, "{ran:?}");
        let notes = std::fs::read_to_string(shop.path().join("work/notes.txt")).unwrap();
        assert_eq!(notes.contains("granary"), yes, "{notes}");
        assert_eq!(shop.path().join("work/made.txt").exists(), yes);
        assert_eq!(ran.err.contains("refused: file.edit(path="), !yes, "{ran:?}");
        let context = shop.ok(&["turn", "show", "1"]).out;
        assert_eq!(context.contains("was not allowed by the user"), !yes, "{context}");
    }
}

#[test]
fn ceilings_end_a_turn() {
    let shop = scholar();
    let failed = shop.run(&["turn", ASKED, "--max-tokens", "300", "--format", "json"]);
    let outcome: Value = serde_json::from_str(&failed.out).unwrap();
    assert_eq!((failed.code, &outcome["status"]), (1, &json!("failed")));
    let reason = outcome["reason"].as_str().unwrap();
    assert!(
        reason.contains("0 of its 300 tokens (turn.max_tokens)") && reason.contains("it may take"),
        "{outcome}"
    );
    assert_eq!(shop.seen().len(), 0, "a call that may exceed the limit is not made");
    let dear = shop.fails(1, &["turn", ASKED, "--max-cost", "0.0001"]);
    assert!(dear.err.contains("(turn.max_cost)"), "{dear:?}");
    let plain = shop.fails(1, &["turn", ASKED, "--max-tokens", "300"]);
    assert!(plain.err.contains("no answer: ") && plain.out.is_empty(), "{plain:?}");
    shop.configure_scholar("[turn]\nmax_tokens = 300\n");
    assert_eq!(shop.run(&["turn", ASKED]).code, 1);
    shop.ok(&["turn", ASKED, "--max-tokens", "300000"]);
    shop.configure_scholar("[turn]\nmax_tool_calls = 0\n");
    let outcome = shop.json(&["turn", ASKED]);
    assert_eq!((&outcome["status"], &outcome["tool_calls"]), (&json!("complete"), &json!(0)));
}

#[test]
fn two_turns_at_once_have_their_own_numbers() {
    let shop = scholar();
    let children: Vec<Child> = (0..3).map(|_| shop.start(&["turn", ASKED, "--format", "json"])).collect();
    let mut numbers: Vec<u64> = children
        .into_iter()
        .map(|child| {
            let ran = end(child);
            assert_eq!(ran.code, 0, "{ran:?}");
            number(&serde_json::from_str::<Value>(&ran.out).unwrap()["turn"])
        })
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2, 3]);
    assert_eq!(shop.documents().broken_links(|_| true), Vec::<String>::new());
}

#[test]
fn the_index_is_made_from_the_documents() {
    let shop = scholar();
    for query in ["one", "two"] {
        shop.ok(&["turn", query]);
    }
    let before = shop.ok(&["turn", "list", "--format", "json"]).out;
    std::fs::remove_dir_all(shop.path().join("home/indexes")).unwrap();
    let report = shop.json(&["reindex"]);
    assert_eq!(
        (&report["turns"], &report["users"], &report["unreadable"]),
        (&json!(2), &json!(1), &json!(0))
    );
    assert_eq!(shop.ok(&["turn", "list", "--format", "json"]).out, before);
    assert!(shop.ok(&["reindex"]).out.contains("2 turns, 1 user; 0 files could not be read"));
}

#[test]
fn old_turns_go_to_the_archive_and_stay_readable() {
    let shop = scholar();
    shop.ok(&["turn", ASKED]);
    shop.ok(&["turn", "And now?"]);
    assert!(shop.ok(&["archive"]).out.contains("0 turns and 0 expired"));
    // The clock cannot be set, so the first turn is told to be old.
    let path = shop.path().join("home/documents/users/local/turns/turn_000001/metadata.json");
    let mut metadata: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    metadata["created_at"] = json!("2020-03-05T10:00:00Z");
    std::fs::write(&path, metadata.to_string()).unwrap();
    shop.ok(&["reindex"]);
    let archived = shop.ok(&["archive"]).out;
    assert!(archived.contains("1 turn and 0 expired pieces of research moved"), "{archived}");
    assert!(shop.path().join("home/documents/archive/2020-03/local/turn_000001/context.md").is_file());
    assert!(!path.exists());
    let turns = shop.json(&["turn", "list"])["turns"].clone();
    assert_eq!((&turns[1]["archived"], &turns[0]["archived"]), (&json!(true), &json!(false)));
    assert!(shop.ok(&["turn", "list"]).out.contains("archived"));
    assert!(shop.ok(&["turn", "show", "1"]).out.contains(ASKED));
    assert_eq!(shop.documents().broken_links(|_| true), Vec::<String>::new());
}

#[test]
fn a_user_is_forgotten_whole_and_alone() {
    let shop = scholar();
    shop.ok(&["turn", ASKED]);
    shop.ok(&["turn", ASKED, "--user", "ada"]);
    assert_eq!(shop.json(&["turn", "list", "--user", "ada"])["turns"].as_array().unwrap().len(), 1);
    let ran = shop.fails(1, &["forget", "ada"]);
    assert!(ran.err.contains("nothing was deleted"), "{ran:?}");
    shop.ok(&["forget", "ada", "--yes"]);
    assert_eq!(shop.json(&["turn", "list", "--user", "ada"])["turns"], json!([]));
    assert_eq!(shop.json(&["runs", "--user", "ada"]), json!([]));
    assert!(shop.documents().files().keys().all(|path| !path.contains("/ada/")));
    assert_eq!(shop.json(&["turn", "list"])["turns"].as_array().unwrap().len(), 1, "others stay");
    let ran = shop.fails(1, &["forget", "nobody", "--yes"]);
    assert!(ran.err.contains("nothing is stored of this user"), "{ran:?}");
}

#[test]
fn documents_are_stored_where_the_settings_say() {
    let shop = scholar();
    shop.configure_scholar("[documents]\nplace = \"vault\"\n");
    shop.ok(&["turn", ASKED]);
    assert!(shop.documents().files().is_empty());
    let vault = Documents::at(shop.path().join("vault"));
    assert_eq!(vault.turns().len(), 1);
    // The next command sees that the turn is synced and takes it out of the journal, which would write it again.
    assert!(shop.ok(&["turn", "list"]).out.contains(ASKED));
    // The index goes by the place when it is made anew.
    let elsewhere = |args: &[&str]| -> Ran {
        shop.command(args).env("LARDER_DOCUMENTS", "elsewhere").output().unwrap().into()
    };
    assert_eq!(elsewhere(&["reindex"]).code, 0);
    assert!(elsewhere(&["turn", "list"]).err.contains("no turns"));
    shop.ok(&["reindex"]);
    assert!(shop.ok(&["turn", "list"]).out.contains(ASKED));
    shop.configure_scholar("[documents]\nplace = \"ftp://x\"\n");
    assert!(shop.fails(1, &["turn", ASKED]).err.contains("use a value such as \"s3://bucket/prefix\""));
    shop.configure_scholar("[documents]\nplcae = \"vault\"\n");
    assert!(shop.fails(1, &["turn", ASKED]).err.contains("did you mean `documents.place`"));
}

#[test]
fn a_turn_says_what_it_says_in_every_phase() {
    let shop = scholar();
    let ran = shop.ok(&["turn", ASKED, "-v"]);
    for phase in ["0 ", "1 ", "2 ", "3 ", "4 ", "5 ", "6 "] {
        let told = |line: &str| line.contains("watch") && line.contains(&format!(" {phase}"));
        assert!(ran.err.lines().any(told), "{ran:?}");
    }
    assert!(ran.err.contains("doc.search(query=\"ledger\")"), "{ran:?}");
    assert_eq!(say(Role::Synthesizer, ""), ran.out.trim_end());
}
