//! Cards from outside: what of a long history is in the prompt, in every spelling of a stage and form of a message, and
//! work that is repeated until it is done.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use larder_testkit::stub::{Answer, End, Seen};
use serde_json::{Value, json};
use support::served::Served;
use support::{Shop, ended_within, reply_text as reply};

const CARD: &str = "card/card_agent";
const REQUEST: &str =
    "The export must write CSV with a header row and never load the whole table into memory.";
const DECISION: &str = "We decided to stream rows with a server-side cursor because fetchall() needs 4 GB.";
const FAILURE: &str = "psycopg2.ProgrammingError: can't use a named cursor outside of transactions";
const STATE: &str = "Current state: the writer and the cursor are done, the header row is in progress.";
const NEWEST: &str = "Now add the header row.";

fn shop(answers: impl IntoIterator<Item = Answer>) -> Shop {
    let shop = Shop::with_models(answers);
    configure(&shop, 128_000, "");
    shop
}

fn configure(shop: &Shop, window: usize, tables: &str) {
    shop.configure_layers(&["MIND", "VOICE"], "", tables);
    let path = shop.path().join("larder.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(path, text.replace("window = 8000", &format!("window = {window}"))).unwrap();
}

/// Words that say nothing, never twice the same line.
fn filler(seed: usize, words: usize) -> String {
    let known = ["cache", "layer", "reads", "row", "returns", "caller", "index", "entry", "key", "when"];
    let mut state = seed as u64 + 1;
    let mut word = || known[(support::next(&mut state) % known.len() as u64) as usize];
    (0..words).map(|_| word()).collect::<Vec<_>>().join(" ")
}

/// 47 messages of 50,000 tokens (R2-6.1): a request, a decision, a failure, its fix and a state are among them.
fn long_history() -> Vec<Value> {
    let message = |at: usize| {
        let text = filler(at, 1_100);
        match at {
            0 => json!({"role": "user", "content": REQUEST}),
            9 => json!({"role": "assistant", "content": format!("{text}\n\n{DECISION}\n\n{text}")}),
            14 => json!({"role": "assistant", "content": null, "tool_calls": [{
                "id": "c1", "type": "function",
                "function": {"name": "shell", "arguments": "{\"command\": \"make export\"}"}}]}),
            15 => json!({"role": "tool", "tool_call_id": "c1", "content": format!("{FAILURE}\n{text}")}),
            16 => {
                json!({"role": "assistant", "content": format!("{FAILURE} was fixed inside `with conn:`.\n\n{text}")})
            }
            30 => json!({"role": "assistant", "content": format!("{text}\n\n{STATE}")}),
            46 => json!({"role": "user", "content": NEWEST}),
            at if at % 2 == 1 => json!({"role": "assistant", "content": text}),
            _ => json!({"role": "user", "content": text}),
        }
    };
    (0..47).map(message).collect()
}

fn prompt_of(receipt: &Value) -> String {
    let texts = receipt["messages"].as_array().unwrap().iter().flat_map(|message| {
        message["content"].as_array().unwrap().iter().filter_map(|part| part["text"].as_str())
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn explain(shop: &Shop, args: &[&str]) -> Value {
    shop.json(&[&["explain", CARD, "-q", "Go on"], args].concat())
}

fn slot<'r>(receipt: &'r Value, name: &str) -> &'r Value {
    let slots = receipt["budget"]["slots"].as_array().unwrap();
    slots.iter().find(|slot| slot["name"] == name).unwrap()
}

#[test]
fn a_long_history_is_condensed_as_one_text_and_comes_back() {
    let shop = shop([reply("Added.\n<promise>COMPLETE</promise>")]);
    let history = long_history();
    shop.write("h.json", Value::from(history.clone()).to_string());
    let receipt = shop.json(&["run", CARD, "-q", "Go on", "--history", "h.json"])["receipt"].clone();
    let tokens = slot(&receipt, "history")["tokens"].as_u64().unwrap();
    assert!((5_000..=7_500).contains(&tokens), "{tokens}");
    let prompt = prompt_of(&receipt);
    for said in [REQUEST, DECISION, FAILURE, "was fixed inside `with conn:`", STATE, NEWEST] {
        assert!(prompt.contains(said), "{said}");
    }
    // Every message comes back, call and all.
    let parts = receipt["parts"].as_array().unwrap();
    let older: Vec<&Value> = parts.iter().filter(|part| part["reason"] == "summarized").collect();
    assert!(older.len() > 30, "{}", older.len());
    for part in older {
        let at: usize = part["source"].as_str().unwrap().strip_prefix("message ").unwrap().parse().unwrap();
        let original = &history[at - 1];
        let back = shop.ok(&["rehydrate", part["pointer"].as_str().unwrap()]).out;
        match original["content"].as_str() {
            Some(text) => assert_eq!(back, text, "message {at}"),
            None => assert!(back.contains("make export"), "{back}"),
        }
    }
    // The prompt by section (R2-7.2).
    let explained = explain(&shop, &["--history", "h.json"]);
    let sections = explained["sections"].as_array().unwrap();
    let names: Vec<&str> = sections.iter().map(|section| section["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["system", "agent", "history", "context", "marks", "query"]);
    assert!(sections[2]["content"].as_str().unwrap().contains(DECISION));
    assert_eq!(sections[5]["content"].as_str().unwrap().trim_end(), "Go on");
    let layout = shop.ok(&["explain", CARD, "-q", "Go on", "--history", "h.json"]).out;
    assert!(
        layout.contains("summarized") && layout.contains("With 2000 more tokens:\n  message"),
        "{layout}"
    );
}

#[test]
fn a_growing_history_keeps_its_prefix_between_steps() {
    let shop = shop([]);
    let history = long_history();
    let (mut before, mut steps) = (None::<Value>, 0);
    for count in 12..=history.len() {
        if count == 15 {
            continue; // A call without its result is never sent.
        }
        shop.write("h.json", Value::from(history[..count].to_vec()).to_string());
        let now = explain(&shop, &["--history", "h.json"]);
        if let Some(before) = &before {
            let sent = |receipt: &Value| receipt["messages"].as_array().unwrap().clone();
            // The query is last, after the messages.
            let (then, now_sent) = (sent(before), sent(&now));
            let same = now_sent.starts_with(&then[..then.len() - 1]);
            assert!(same || now["epoch"]["moved_prefix"] == true, "at {count}");
            steps += usize::from(!same);
        }
        before = Some(now);
    }
    assert!((2..=20).contains(&steps), "{steps}");
}

#[test]
fn stages_are_read_in_any_usual_spelling_and_logs_come_in_fences() {
    let shop = shop([]);
    shop.write("build.log", "error[E0308]: mismatched types\n");
    let layouts: Vec<String> = ["error_fixing", "ErrorFixing", "error-fixing", "Error Fixing"]
        .into_iter()
        .map(|stage| {
            let args = [
                "explain",
                CARD,
                "-q",
                "Go on",
                "--variant",
                stage,
                "--doc",
                "build_logs=build.log",
                "--messages",
            ];
            shop.ok(&args).out
        })
        .collect();
    assert!(layouts[0].contains("## Build Logs\n```\nerror[E0308]: mismatched types\n"), "{}", layouts[0]);
    assert!(layouts.iter().all(|layout| *layout == layouts[0]));
    let unknown = shop.fails(1, &["explain", CARD, "-q", "Go on", "--variant", "nonsense"]);
    assert!(
        unknown.err.contains("no variant nonsense") && unknown.err.contains("error_fixing"),
        "{}",
        unknown.err
    );
}

#[test]
fn notes_keep_their_share_beside_a_long_history() {
    let shop = shop([]);
    configure(&shop, 8_192, "");
    shop.write("notes.md", format!("# Notes\n\n{}\n", filler(3, 240)));
    shop.write("h.json", Value::from(long_history()).to_string());
    let receipt = explain(&shop, &["--history", "h.json", "--doc", "notes=notes.md"]);
    let notes = receipt["parts"].as_array().unwrap().iter().find(|part| part["slot"] == "context").unwrap();
    assert_eq!(notes["rendition"], "whole", "{receipt}");
}

#[test]
fn what_a_history_does_not_take_goes_to_the_documents() {
    let shop = shop([]);
    configure(&shop, 16_000, "");
    shop.write("notes.md", format!("# Notes\n\n{}\n", filler(3, 9_000)));
    shop.write("h.json", Value::from(long_history()).to_string());
    let receipt = explain(&shop, &["--history", "h.json", "--doc", "notes=notes.md"]);
    let (used, available) = (receipt["budget"]["used"].as_u64(), receipt["budget"]["available"].as_u64());
    assert!(used.unwrap() * 100 >= available.unwrap() * 97, "{used:?} of {available:?}");
}

#[test]
fn a_document_left_out_for_its_min_remaining_says_so() {
    let shop = shop([]);
    shop.write("notes.md", format!("# Notes\n\n{}\n", filler(3, 14_300)));
    shop.write("source.rs", "fn header() {}\n".repeat(300));
    let given = ["--doc", "notes=notes.md", "--doc", "source_files=source.rs"];
    let receipt = explain(&shop, &given);
    let parts = receipt["parts"].as_array().unwrap();
    let source = parts.iter().find(|part| part["source"] == "source.rs").unwrap();
    let room = slot(&receipt, "context");
    let left = room["allowed"].as_u64().unwrap() - room["tokens"].as_u64().unwrap();
    assert!((100..=1_000).contains(&left), "{room}");
    assert_eq!((&source["rendition"], &source["reason"]), (&json!("absent"), &json!("below_min_remaining")));
    let text = shop.ok(&[&["explain", CARD, "-q", "Go on"], &given[..]].concat()).out;
    assert!(text.contains("below min_remaining"), "{text}");
    // Where no form of it fits, the call is over its budget.
    shop.write("notes.md", format!("# Notes\n\n{}\n", filler(3, 20_000)));
    let receipt = explain(&shop, &given);
    let parts = receipt["parts"].as_array().unwrap();
    let source = parts.iter().find(|part| part["source"] == "source.rs").unwrap();
    assert_ne!(source["reason"], "below_min_remaining", "{receipt}");
}

#[test]
fn caps_of_slots_are_settings() {
    let shop = shop([]);
    shop.write("h.json", Value::from(long_history()).to_string());
    configure(&shop, 128_000, "[slots.\"card/card_agent\"]\nhistory = 4000\n");
    let receipt = explain(&shop, &["--history", "h.json"]);
    let tokens = slot(&receipt, "history")["tokens"].as_u64().unwrap();
    assert!((2_000..=3_000).contains(&tokens), "{tokens}");
    configure(&shop, 128_000, "[slots.\"card/card_agent\"]\nsystem = 20\n");
    let refused = shop.fails(1, &["explain", CARD, "-q", "Go on"]).err;
    assert!(
        refused.contains("slot system of card/card_agent may hold 20 tokens, but its prompts take"),
        "{refused}"
    );
    for (recipe, name) in [("card/card_agent", "histroy"), ("card/agnet", "history")] {
        configure(&shop, 128_000, &format!("[slots.\"{recipe}\"]\n{name} = 4000\n"));
        let ran = shop.fails(1, &["explain", CARD, "-q", "Go on"]);
        assert!(ran.err.contains(name) && ran.err.contains("larder.toml"), "{}", ran.err);
    }
}

#[test]
fn caps_of_built_in_recipes_hold_in_a_project_with_its_own_and_check_finds_what_runs_refuse() {
    let shop = Shop::with_provider([]);
    shop.write("h.json", Value::from(long_history()).to_string());
    let with = |table: &str| configure(&shop, 128_000, table);
    with("[slots.\"card/card_agent\"]\nhistory = 4000\n");
    assert!(shop.ok(&["check"]).out.contains("no problems"));
    let receipt = explain(&shop, &["--history", "h.json"]);
    let tokens = slot(&receipt, "history")["tokens"].as_u64().unwrap();
    assert!((2_000..=3_000).contains(&tokens), "{tokens}");
    for (table, told) in [
        ("\"card/card_agent\"]\nhistroy = 5", ["histroy", "did you mean `history`?"]),
        (
            "\"card/card_agnet\"]\nhistory = 5",
            ["no recipe card/card_agnet", "did you mean `card/card_agent`?"],
        ),
        ("\"notes/nope\"]\nzz = 5", ["no recipe notes/nope", "did you mean `notes/typed`?"]),
        ("\"notes/summary\"]\nzz = 5", ["recipe notes/summary has no slot zz", "one of `documents`"]),
        (
            "\"card/card_agent\"]\nsystem = 20",
            ["slot system of card/card_agent may hold 20 tokens", "or more"],
        ),
        (
            "\"card/card_agent\"]\nhistory = 1000",
            [
                "slot history of card/card_agent may hold 1000 tokens, but its floor is 2000",
                "set it to 2000 or more",
            ],
        ),
        (
            "\"card/card_agent\"]\nhistory = 27501",
            ["leaves 27500 to the whole prompt", "set it to 27500 or less"],
        ),
        (
            "\"notes/summary\"]\ndocuments = 900000",
            ["slot documents of notes/summary may hold 900000", "or less"],
        ),
    ] {
        with(&format!("[slots.{table}\n"));
        let checked = shop.fails(1, &["check"]).out;
        let refused = shop.fails(1, &["explain", "notes/summary", "-q", "Go on"]).err;
        let text = std::fs::read_to_string(shop.path().join("larder.toml")).unwrap();
        let place = format!("larder.toml:{}:1", text.trim_end().lines().count());
        for told in told.into_iter().chain([place.as_str()]) {
            assert!(checked.contains(told), "{told}: {checked}");
            assert!(refused.contains(told), "{told}: {refused}");
        }
    }
}

#[test]
fn a_document_that_the_stage_of_a_run_does_not_read_is_refused_before_anything_is_sent() {
    let shop = shop([]);
    shop.write("x.md", "error: it broke\n");
    let given = ["--doc", "build_logs=x.md", "--doc", "pod_logs=x.md", "-q", "x"];
    for command in ["run", "explain"] {
        for (stage, named) in [
            (&[][..], "coding, the default"),
            (&["--variant", "coding"][..], "coding"),
            (&["--variant", "Testing"][..], "testing"),
        ] {
            let refused = shop.fails(1, &[&[command, CARD][..], &given, stage].concat()).err;
            let told = format!(
                "reads the document build_logs in no variant but error_fixing, and this run is in {named}; pass \
                 --variant error_fixing"
            );
            assert!(refused.contains(&told), "{refused}");
        }
    }
    assert!(shop.seen().is_empty());
    let shown =
        shop.ok(&[&["explain", CARD, "--variant", "error-fixing", "--messages"][..], &given].concat());
    assert_eq!(shown.out.matches("error: it broke").count(), 2, "{}", shown.out);
}

#[test]
fn a_request_is_told_only_what_a_request_can_do() {
    let shop = Shop::with_provider([]);
    let served = Served::start(&shop, &[]);
    let ask = |model: &str| {
        served.post(
            "/v1/chat/completions",
            &json!({"model": model, "messages": [{"role": "user", "content": "Go"}]}),
        )
    };
    let (status, said) = ask("recipe/notes/summary");
    assert!(
        status == 400 && said.contains("needs a document named `notes`, and a request cannot give documents"),
        "{status} {said}"
    );
    assert!(!said.contains("--doc"), "{said}");
    let (status, said) = ask("recipe/notes/nothing_like_it");
    assert!(status == 404 && !said.contains("notes/summary"), "{status} {said}");
    let (status, said) = served.post("/v1/chat/completions", &json!([]));
    assert!(status == 400 && said.contains("the body: expected an object"), "{status} {said}");
    let (status, said) = served.post("/api/v1/turns", &json!({"query": 5}));
    assert!(
        status == 400 && said.contains("the body: query: expected a string, not integer `5`"),
        "{status} {said}"
    );
    for (path, body, words) in [
        ("/api/v1/turns", json!([]), "the body: expected an object, not an array"),
        ("/api/v1/turns", json!(["Where is it?"]), "the body: expected an object, not an array"),
        ("/api/v1/turns", json!({"query": {}}), "the body: query: expected a string, not an object"),
        ("/api/v1/turns/abc/resume", json!({}), r#"the address: expected a number, such as 7, not \"abc\""#),
        ("/api/v1/turns/99999999999/resume", json!({}), "the address: the number 99999999999 is too large"),
    ] {
        let (status, said) = served.post(path, &body);
        assert!(status == 400 && said.contains(words), "{path} {status} {said}");
    }
    let (status, said) = served.post("/api/v1/turns", &json!({"query": "Is a\0b it?"}));
    assert!(status == 422 && said.contains("the query contains a NUL character"), "{status} {said}");
    served.signal("TERM");
    served.end();
}

#[test]
fn answer_and_signal_are_in_every_output() {
    let text = "Added the row.\n\n```rust\nlet header = true;\n```\n\n<promise>COMPLETE</promise>";
    let shop = shop((0..4).map(|_| reply(text)));
    let has_both = |output: &str| {
        for piece in ["let header = true;", "<promise>COMPLETE</promise>"] {
            assert!(output.contains(piece), "{piece}: {output}");
        }
    };
    has_both(&shop.ok(&["run", CARD, "-q", "Go on"]).out);
    let json = shop.json(&["run", CARD, "-q", "Go on"]);
    assert!(json["reply"].as_str().unwrap().contains("let header = true;"), "{json}");
    assert_eq!(json["output"]["promise"], "COMPLETE");
    let served = Served::start(&shop, &[]);
    let body = |stream: bool| json!({"model": "recipe/card/card_agent", "stream": stream, "messages": [{"role": "user", "content": "Go on"}]});
    let (status, whole) = served.post("/v1/chat/completions", &body(false));
    assert_eq!(status, 200, "{whole}");
    let start = whole.find('{').unwrap();
    let whole: Value = serde_json::from_str(&whole[start..=whole.rfind('}').unwrap()]).unwrap();
    has_both(whole["choices"][0]["message"]["content"].as_str().unwrap());
    let (_, events) = served.post("/v1/chat/completions", &body(true));
    let deltas: String = events
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok())
        .filter_map(|event| event["choices"][0]["delta"]["content"].as_str().map(str::to_owned))
        .collect();
    has_both(&deltas);
    served.signal("TERM");
    served.end();
}

#[test]
fn work_is_repeated_until_it_is_done_or_a_limit_is_reached() {
    let answers =
        ["Wrote the writer.", "Wrote the cursor.", "Wrote the header.\n<promise>COMPLETE</promise>"];
    let shop = shop(answers.map(reply));
    let ran = shop.ok(&["run", CARD, "-q", "Write the export", "--until-done"]);
    assert!(ran.out.contains("Wrote the header.") && ran.out.contains("COMPLETE"), "{}", ran.out);
    let seen = shop.seen();
    assert_eq!(seen.len(), 3);
    let last = seen[2].json()["messages"].to_string();
    assert!(answers[..2].iter().all(|answer| last.contains(answer)), "{last}");

    // What is shown as code is no signal.
    let shown =
        ["I end with `<promise>COMPLETE</promise>`.", "```\n<promise>COMPLETE</promise>\n```", answers[2]];
    let shop = self::shop(shown.map(reply));
    let ran = shop.ok(&["run", CARD, "-q", "Write the export", "--until-done"]);
    assert!(ran.out.contains("I end with `<promise>COMPLETE</promise>`."), "{}", ran.out);
    assert_eq!(shop.seen().len(), 3);

    let limits: [(&[&str], usize, &str); 2] =
        [(&["--max-rounds", "2"], 2, "--max-rounds"), (&["--max-tokens", "1"], 1, "--max-tokens")];
    for (limit, rounds, name) in limits {
        let shop = self::shop((0..3).map(|_| reply("Still at it.")));
        let args = [&["run", CARD, "-q", "Write", "--until-done"], limit].concat();
        let ran = shop.fails(1, &args);
        let after = if rounds == 1 { "after 1 round, " } else { "after 2 rounds, " };
        assert!(ran.err.contains("not complete") && ran.err.contains(name), "{}", ran.err);
        assert!(ran.err.contains(after), "{}", ran.err);
        assert_eq!(shop.seen().len(), rounds);
    }
    let ran = shop.fails(2, &["run", "summarize/summarize", "-q", "x", "--until-done"]);
    assert!(ran.err.contains("no tag promise"), "{}", ran.err);
}

/// Whether a request asks for a summary of part of a conversation.
fn asks_for_summary(seen: &Seen) -> bool {
    String::from_utf8_lossy(&seen.body).contains("Summarize this part of a conversation")
}

/// The summary of a part: its first words, as many as it may have, under the five headings.
fn summary(seen: &Seen, state: &str) -> Answer {
    let messages = seen.json()["messages"].clone();
    let text: String = messages
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|message| message["content"].as_str())
        .collect::<Vec<_>>()
        .join("\n");
    let allowed = text.split("Use at most ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    let words = allowed.parse::<usize>().unwrap().saturating_sub(45);
    let part = text.rsplit("<history_to_compress").next().unwrap().split_once('>').unwrap().1;
    let said: Vec<&str> =
        part.split_whitespace().filter(|word| word.chars().all(char::is_alphabetic)).collect();
    let said = said[..words.min(said.len())].join(" ");
    reply(&format!(
        "## Task Summary\n{said}\n\n## Key Decisions\nNone.\n\n## Errors Resolved\nNone.\n\n## Current State\n{state}\n\n## Remaining Work\nNone."
    ))
}

/// A shop whose model for older messages writes this as their state.
fn summarizing(state: &'static str) -> Shop {
    with_summarizer(move |seen| summary(seen, state))
}

fn with_summarizer(summarize: impl Fn(&Seen) -> Answer + Send + Sync + 'static) -> Shop {
    let shop = Shop::responding(
        move |seen| {
            if asks_for_summary(seen) { summarize(seen) } else { reply("Going on.") }
        },
    );
    shop.configure_layers(
        &["MIND", "VOICE"],
        "",
        "[policy]\nuse_llm_summarizer = true\n[models.small]\nwindow = 8000\nmax_output = 1000\n",
    );
    let path = shop.path().join("larder.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let text = text.replacen("[models.layers]\n", "[models.layers]\nNERVES = \"small\"\n", 1);
    std::fs::write(path, text.replacen("window = 8000", "window = 128000", 1)).unwrap();
    shop
}

#[test]
fn a_model_summarizes_older_messages_in_parts_and_each_part_once() {
    let shop = summarizing("- export: In Progress");
    let mut history = long_history();
    let run = |history: &[Value]| {
        shop.write("h.json", Value::from(history.to_vec()).to_string());
        let before = shop.seen().iter().filter(|seen| asks_for_summary(seen)).count();
        let receipt = shop.json(&["run", CARD, "-q", "Go on", "--history", "h.json"])["receipt"].clone();
        let calls = shop.seen().iter().filter(|seen| asks_for_summary(seen)).count() - before;
        (receipt, calls)
    };
    let (receipt, calls) = run(&history);
    assert_eq!(receipt["condensing"]["renditions"], 1, "{}", receipt["condensing"]);
    assert!((20..=60).contains(&calls), "{calls}");
    let prompt = prompt_of(&receipt);
    assert!(prompt.contains("<earlier_messages>") && prompt.contains("- export: In Progress"));
    assert_eq!(
        prompt.matches("## Current State").count(),
        1,
        "the parts are merged under one set of headings"
    );
    for said in [REQUEST, NEWEST] {
        assert!(prompt.contains(said), "{said}");
    }
    let tokens = slot(&receipt, "history")["tokens"].as_u64().unwrap();
    assert!((4_000..=7_500).contains(&tokens), "{tokens}");
    let (again, none) = run(&history);
    assert_eq!(
        (none, &again["messages"]),
        (0, &receipt["messages"]),
        "the same history gives the same prompt"
    );
    // The next step summarizes what is new.
    for at in 47..50 {
        history.push(
            json!({"role": if at % 2 == 1 { "assistant" } else { "user" }, "content": filler(at, 1_100)}),
        );
    }
    let (_, more) = run(&history);
    assert!(more > 0 && more < calls / 2, "{more} of {calls}");
}

#[test]
fn a_summary_names_the_fallback_that_wrote_it_the_second_time_too() {
    let shop = Shop::responding(|seen| {
        if seen.json()["model"] == "gpt-4o" {
            Answer::json(500, &json!({"error": {"message": "broken"}}))
        } else if asks_for_summary(seen) {
            summary(seen, "- export: In Progress")
        } else {
            reply("Going on.")
        }
    });
    let models = format!(
        "[policy]\nuse_llm_summarizer = true\n[models.bad]\nprovider = \"openai\"\nbase_url = \"{}/v1\"\n\
         id = \"gpt-4o\"\nretries = 0\nwindow = 128000\nmax_output = 1000\nfallback = \"stub\"\n",
        shop.address()
    );
    shop.configure_layers(&["MIND", "VOICE"], "", &models);
    let path = shop.path().join("larder.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let text = text.replace("window = 8000", "window = 128000");
    std::fs::write(path, text.replace("[models.layers]", "[models.layers]\nNERVES = \"bad\"")).unwrap();
    shop.write("h.json", Value::from(long_history()).to_string());
    for cached in [0, 1] {
        let receipt = shop.json(&["run", CARD, "-q", "Go on", "--history", "h.json"])["receipt"].clone();
        assert_eq!(receipt["condensing"]["cached"], cached, "{}", receipt["condensing"]);
        let parts = receipt["parts"].as_array().unwrap();
        let authors: Vec<&Value> =
            parts.iter().map(|part| &part["author"]["model"]).filter(|model| !model.is_null()).collect();
        assert!(!authors.is_empty() && authors.iter().all(|model| *model == "stub"), "{receipt}");
    }
}

#[test]
fn a_summary_without_a_status_is_replaced_by_the_rule_and_the_receipt_says_why() {
    let shop = summarizing("- export");
    shop.write("h.json", Value::from(long_history()).to_string());
    let receipt = shop.json(&["run", CARD, "-q", "Go on", "--history", "h.json"])["receipt"].clone();
    let said = shop.ok(&["run", CARD, "-q", "Go on", "--history", "h.json"]).err;
    let notices: Vec<&str> = said.lines().filter(|line| line.contains("condensed by rule")).collect();
    assert!(
        notices.len() == 1 && notices[0].contains("has no status") && notices[0].contains("larder runs show"),
        "{said}"
    );
    let why = receipt["condensing"]["failures"].to_string();
    assert!(why.contains("messages 2-") && why.contains("has no status"), "{why}");
    let prompt = prompt_of(&receipt);
    assert!([DECISION, FAILURE, STATE].iter().all(|said| prompt.contains(said)));
}

#[test]
fn a_rendition_far_below_its_allowance_is_refused() {
    let shop = Shop::responding(|_| reply("The notes are about an export."));
    shop.configure_layers(&["MIND", "VOICE", "NERVES"], "", "[policy]\nuse_llm_summarizer = true\n");
    shop.write("notes.md", format!("# Notes\n\n{}\n", filler(3, 9_000)));
    let args = ["run", CARD, "-q", "Go on", "--doc", "notes=notes.md"];
    let ran = shop.ok(&args);
    let asked = shop.seen().len();
    let calls = asked - 1;
    assert!((1..=4).contains(&calls), "four are asked at a time, and no other after a refusal: {calls}");
    let plural = if calls == 1 { "" } else { "s" };
    let line = format!(" · condensing: {calls} call{plural}, {} tokens in, {} out", calls * 100, calls * 10);
    assert!(ran.err.contains(&line), "{line}: {}", ran.err);
    let receipt = shop.json(&args)["receipt"].clone();
    assert_eq!(shop.seen().len(), asked + 1, "what was refused is not asked for again");
    let notes = receipt["parts"].as_array().unwrap().iter().find(|part| part["slot"] == "context").unwrap();
    assert!(notes["author"].is_null(), "{notes}");
    assert!(receipt["condensing"]["failures"].to_string().contains("far below"), "{}", receipt["condensing"]);
}

#[test]
fn above_its_soft_share_a_history_is_summarized_in_the_background_for_the_next_run() {
    let (history, number) = (long_history(), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&number);
    // The third summary never ends.
    let shop = with_summarizer(move |seen| {
        let hangs = counted.fetch_add(1, Ordering::SeqCst) == 2;
        if hangs { reply("never").ending(End::Hang) } else { summary(seen, "- export: In Progress") }
    });
    let asked = || number.load(Ordering::SeqCst);
    let run = |count: usize| {
        shop.write("h.json", Value::from(history[..count].to_vec()).to_string());
        let args = ["run", CARD, "-q", "Go on", "--history", "h.json", "--session", "s"];
        shop.json(&args)["receipt"].clone()
    };
    let jobs = || {
        let mut jobs = shop.json(&["jobs", "list"]).as_array().unwrap().clone();
        jobs.retain(|job| job["kind"] == "condense_history");
        jobs
    };
    // A call without its result is never sent.
    let soon = (2..15).find(|&count| slot(&run(count), "history")["soft_trigger"] == true).unwrap();
    assert_eq!((asked(), jobs().len()), (0, 1), "no run below the cap waits for a summary");

    // What a killed worker has summarized is not summarized again.
    let mut worker = shop.start(&["jobs", "work"]);
    while asked() < 3 {
        assert!(!ended_within(&mut worker, Duration::from_millis(2)), "nothing is summarized");
    }
    worker.kill().unwrap();
    worker.wait().unwrap();
    assert_eq!(jobs().len(), 1);
    shop.ok(&["jobs", "work"]);
    assert_eq!(jobs(), Vec::<Value>::new());
    let ahead = asked();

    let over = (soon + 1..15).find(|&count| run(count)["condensing"]["renditions"] == 1).unwrap();
    let receipt = run(over);
    let calls = asked() - ahead;
    assert!(
        receipt["condensing"]["failures"].as_array().is_none_or(Vec::is_empty),
        "{}",
        receipt["condensing"]
    );
    assert_eq!(calls, 0, "{} new messages, {ahead} calls before", over - soon);
    assert!(prompt_of(&receipt).contains("- export: In Progress"));
    let tokens = slot(&receipt, "history")["tokens"].as_u64().unwrap();
    assert!((4_000..=7_500).contains(&tokens), "{tokens}");
}
