//! What a prompt leaves out can be opened by its model: in recipes, cards, turns and recipes served over HTTP, within
//! the budget of the prompt, and by no other user.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail by panicking"
)]

mod support;

use larder_testkit::stub::{Answer, Seen};
use serde_json::{Value, json};
use support::scholar::{Role, say};
use support::served::Served;
use support::{Shop, reply_calls, reply_text};

const TOOL: &str = "larder_rehydrate";
const NOTE: &str = "Parts of this prompt are shortened or left out, as their marks say";
/// A line in the middle of the notes that says nothing to a condenser.
const HIDDEN: &str = "seventh lantern hangs beside the green door of the old mill";

const NOTES: &str = "\
name: notes
description: Answer from some notes.
model_layer: VOICE
token_budget: {total: 6000, prompt: 300, input: 4500, output: 600, response_reserve: 200}
prompt_files: [prompts/notes/all.md]
input_docs: [{name: notes, content_type: prose}]
output_format: text
";

/// Sentences much like the hidden one, which is among them once.
fn notes(words: usize) -> String {
    let mut state = 7;
    let mut pick = |of: [&'static str; 8]| of[(support::next(&mut state) % of.len() as u64) as usize];
    let mut sentence = || {
        let (which, door) = (
            pick(["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "ninth"]),
            pick(["red", "blue", "brown", "grey", "white", "black", "yellow", "green"]),
        );
        let house = pick(["barn", "inn", "forge", "school", "mill", "bakery", "stable", "tower"]);
        format!("The {which} lantern hangs beside the {door} door of the old {house}.")
    };
    let mut all: Vec<String> =
        (0..words / 13).map(|_| sentence()).filter(|line| !line.contains(HIDDEN)).collect();
    let middle = all.len() / 2;
    all.insert(middle, format!("The {HIDDEN}."));
    all.join("\n")
}

fn shop(respond: impl Fn(&Seen) -> Answer + Send + Sync + 'static) -> Shop {
    let shop = Shop::responding(respond);
    shop.configure_layers(&["MIND", "VOICE"], "capabilities = [\"tools\"]\n", "");
    shop.write("recipes/notes/notes.yaml", NOTES);
    shop.write("prompts/notes/all.md", "You answer from notes. Use only what they say.\n");
    shop
}

/// The names of the tools that a request offers.
fn offered(seen: &Seen) -> Vec<String> {
    let body = seen.json();
    let tools = body["tools"].as_array().into_iter().flatten();
    tools.map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}

/// The results of calls that a request contains.
fn results(seen: &Seen) -> Vec<String> {
    let body = seen.json();
    let messages = body["messages"].as_array().unwrap().iter();
    let results = messages.filter(|message| message["role"] == "tool");
    results.map(|message| message["content"].as_str().unwrap().to_owned()).collect()
}

/// The first pointer in a text, without a fragment.
fn pointer_in(text: &str) -> &str {
    let is_name = |at: &usize| text[at + 4..].starts_with(|char: char| char.is_ascii_alphanumeric());
    let start = text
        .match_indices("lp1-")
        .map(|(at, _)| at)
        .find(is_name)
        .unwrap_or_else(|| panic!("no pointer: {text}"));
    &text[start..start + 24]
}

/// The first pointer in a request.
fn pointer(seen: &Seen) -> String {
    pointer_in(&seen.json()["messages"].to_string()).to_owned()
}

/// Opens what the prompt points to by a pattern, then answers with what it says.
fn opens(seen: &Seen) -> Answer {
    match results(seen).first() {
        None => reply_calls(&[(TOOL, json!({"id": pointer(seen), "pattern": HIDDEN}))]),
        Some(result) => reply_text(&format!("It says: {}", result.trim())),
    }
}

#[test]
fn a_recipe_opens_what_its_prompt_leaves_out() {
    let shop = shop(opens);
    shop.write("long.txt", notes(6_000));
    let args = ["run", "notes/notes", "--doc", "notes=long.txt", "-q", "What do they say?"];
    let run = shop.json(&args);
    assert!(run["reply"].as_str().unwrap().contains(HIDDEN), "{}", run["reply"]);
    let seen = shop.seen();
    assert_eq!(seen.len(), 2);
    let first = seen[0].json()["messages"].to_string();
    assert!(!first.contains(HIDDEN) && first.contains(NOTE) && first.contains(TOOL));
    assert_eq!(offered(&seen[0]), [TOOL]);
    assert_eq!(results(&seen[1]).len(), 1);
    // Both calls are on the record, which says what was opened.
    assert_eq!((run["usage"]["input"].as_u64(), run["usage"]["output"].as_u64()), (Some(200), Some(20)));
    let calls = run["receipt"]["calls"].as_array().unwrap();
    assert_eq!((calls.len(), &calls[0]["status"]), (1, &json!("success")), "{calls:?}");
    let recorded = shop.json(&["runs"]);
    assert_eq!(recorded[0]["retries"], 0, "{recorded}");
    // The layout says so too, and the same.
    let layout =
        shop.ok(&["explain", "notes/notes", "--doc", "notes=long.txt", "-q", "What do they say?"]).out;
    assert!(layout.contains("marks"), "{layout}");
}

#[test]
fn a_prompt_that_is_whole_says_nothing_of_it_and_offers_nothing() {
    let shop = shop(|_| reply_text("Nothing hangs there."));
    shop.write("short.txt", notes(200));
    let args = ["run", "notes/notes", "--doc", "notes=short.txt", "-q", "What do they say?"];
    let run = shop.json(&args);
    let seen = shop.seen();
    assert!(offered(&seen[0]).is_empty() && !seen[0].json()["messages"].to_string().contains(NOTE));
    assert!(run["receipt"]["calls"].is_null());
    // A model without tools reads that parts are missing, and is offered no tool.
    shop.configure("", "");
    shop.write("long.txt", notes(6_000));
    shop.ok(&["run", "notes/notes", "--doc", "notes=long.txt", "-q", "What do they say?"]);
    let last = shop.seen().pop().unwrap();
    let text = last.json()["messages"].to_string();
    assert!(offered(&last).is_empty() && text.contains(NOTE) && !text.contains(TOOL), "{text}");
}

#[test]
fn the_prompt_stays_within_its_budget_however_much_is_asked_back() {
    // Asks for everything, as often as it is let.
    let shop = shop(|seen| reply_calls(&[(TOOL, json!({"id": pointer(seen)}))]));
    shop.write("long.txt", notes(6_000));
    let args = ["run", "notes/notes", "--doc", "notes=long.txt", "-q", "What do they say?"];
    shop.fails(1, &args);
    for seen in shop.seen() {
        shop.write("body.txt", seen.json()["messages"].to_string());
        let counted = shop.json(&["count", "body.txt"]);
        let tokens = counted["tokens"].as_u64().unwrap();
        // 6,000 less what is kept for the reply; the JSON around the texts is counted too.
        assert!(tokens <= 5_600, "{tokens}");
    }
    let opened: Vec<String> = shop.seen().iter().flat_map(results).collect();
    assert!(opened.iter().any(|result| result.contains("read on with bytes")), "{opened:?}");
}

#[test]
fn a_limit_of_rounds_ends_in_an_answer() {
    let shop = shop(|seen| match results(seen).last() {
        Some(result) if result.contains("last call in this reply") => reply_text("Enough."),
        _ => reply_calls(&[(TOOL, json!({"id": pointer(seen), "lines": "1-2"}))]),
    });
    shop.configure_layers(
        &["MIND", "VOICE"],
        "capabilities = [\"tools\"]\n",
        "[gateway]\nrehydrate_rounds = 2\n",
    );
    shop.write("long.txt", notes(6_000));
    shop.ok(&["run", "notes/notes", "--doc", "notes=long.txt", "-q", "What do they say?"]);
    assert_eq!(shop.seen().len(), 3);
}

#[test]
fn a_server_that_takes_no_tools_is_asked_without() {
    let shop = shop(|seen| match offered(seen).is_empty() {
        true => reply_text("A lantern."),
        false => Answer::json(400, &json!({"error": {"message": "tools are not supported here"}})),
    });
    shop.write("long.txt", notes(6_000));
    let ran = shop.ok(&["run", "notes/notes", "--doc", "notes=long.txt", "-q", "What do they say?"]);
    assert!(ran.out.contains("A lantern."));
    let text = shop.seen().pop().unwrap().json()["messages"].to_string();
    assert!(text.contains(NOTE) && !text.contains(TOOL), "{text}");
}

#[test]
fn a_pointer_of_another_user_is_plain_text() {
    let shop = shop(opens);
    shop.write("long.txt", notes(6_000));
    let pointer = shop.json(&["condense", "long.txt", "--to", "200", "--user", "ada"])["pointer"]
        .as_str()
        .unwrap()
        .to_owned();
    shop.write("theirs.txt", format!("A note about {pointer}.\n"));
    let asks = |user: &str| {
        let args =
            ["run", "notes/notes", "--doc", "notes=theirs.txt", "-q", "What do they say?", "--user", user];
        shop.json(&args)
    };
    // Its owner's model may open it.
    assert!(asks("ada")["reply"].as_str().unwrap().contains(HIDDEN));
    let before = shop.seen().len();
    // For anybody else it is a word; a model that calls all the same learns nothing.
    let ran = shop.run(&[
        "run",
        "notes/notes",
        "--doc",
        "notes=theirs.txt",
        "-q",
        "What do they say?",
        "--user",
        "bob",
    ]);
    let seen = shop.seen()[before..].to_vec();
    assert!(seen.iter().all(|seen| offered(seen).is_empty()));
    assert!(!ran.out.contains(HIDDEN) && !seen.iter().any(|seen| results(seen).concat().contains(HIDDEN)));
}

#[test]
fn a_card_and_a_recipe_over_http_open_their_history() {
    let shop = shop(opens);
    shop.configure_layers(&["MIND", "VOICE"], "capabilities = [\"tools\"]\n", "");
    let settings = std::fs::read_to_string(shop.path().join("larder.toml")).unwrap();
    shop.write("larder.toml", settings.replace("window = 8000", "window = 128000"));
    let message = |at: usize| {
        let role = if at.is_multiple_of(2) { "user" } else { "assistant" };
        let text = notes(1_200).replace(HIDDEN, if at == 9 { HIDDEN } else { "nothing hangs there" });
        json!({"role": role, "content": text})
    };
    let history: Vec<Value> = (0..24).map(message).collect();
    shop.write("h.json", Value::from(history.clone()).to_string());
    let run = shop.json(&["run", "card/card_agent", "-q", "What do they say?", "--history", "h.json"]);
    assert!(run["reply"].as_str().unwrap().contains(HIDDEN), "{}", run["reply"]);
    let served = Served::start(&shop, &[]);
    let mut messages = history;
    messages.push(json!({"role": "user", "content": "What do they say?"}));
    let body = json!({"model": "recipe/card/card_agent", "messages": messages});
    let (status, said) = served.post("/v1/chat/completions", &body);
    assert!(status == 200 && said.contains(HIDDEN), "{status} {said}");
    served.signal("TERM");
    served.end();
}

#[test]
fn a_turn_in_a_home_with_earlier_turns_opens_an_attachment() {
    let shop = Shop::with_scholar(|role, prompt| {
        let opens = role == Role::Synthesizer && prompt.contains("pasted") && prompt.contains("lp1-");
        let opened = prompt.contains("\"role\":\"tool\"");
        match (opens, opened) {
            (true, false) => {
                Some(reply_calls(&[(TOOL, json!({"id": pointer_in(prompt), "pattern": HIDDEN}))]))
            }
            (true, true) => {
                assert!(prompt.contains(HIDDEN), "{prompt}");
                Some(reply_text(&say(role, prompt)))
            }
            _ => None,
        }
    });
    shop.configure_scholar("capabilities = [\"tools\"]\n");
    for query in ["Where lies the ledger?", "Where is the ledger kept now?"] {
        shop.ok(&["turn", query]);
    }
    let mail = format!("What does this pasted mail say of the mill?\n\n{}", notes(9_000));
    let turn = shop.json(&["turn", &mail]);
    assert_eq!(turn["status"], "complete", "{turn}");
    let opened = shop.seen().iter().filter(|seen| results(seen).concat().contains(HIDDEN)).count();
    assert_eq!(opened, 1);
}

#[test]
fn a_prompt_above_the_threshold_is_reduced_to_it_also_where_its_model_can_open_pointers() {
    let shop = shop(|_| reply_text("unasked"));
    shop.write("notes.txt", notes(4_200));
    let explain = |policy: &str| {
        shop.configure_layers(&["MIND", "VOICE"], "capabilities = [\"tools\"]\n", policy);
        shop.json(&["explain", "notes/notes", "--doc", "notes=notes.txt", "-q", "Which door?"])
    };
    let number = |value: &Value| value.as_u64().unwrap();
    let whole = explain("[policy]\ncompression_threshold = 1.0\n");
    let (available, used) = (number(&whole["budget"]["available"]), number(&whole["budget"]["used"]));
    assert!(used > available * 7 / 10 && number(&whole["whole"]) == used, "it fits whole: {whole}");
    let less = explain("[policy]\ncompression_threshold = 0.5\n");
    assert!(number(&less["budget"]["used"]) <= available / 2, "{less}");
    let parts = less["parts"].as_array().unwrap();
    let notes = parts.iter().find(|part| part["id"] == "notes").unwrap();
    assert_eq!((&notes["rendition"], &notes["reason"]), (&json!("condensed"), &json!("over_threshold")));
    assert!(parts.iter().any(|part| part["slot"] == "marks"), "{less}");
    assert_eq!(less["tools"][0]["name"], TOOL, "{less}");
    // It is whole where that would save too little.
    let most = used - available / 2;
    let whole =
        explain(&format!("[policy]\ncompression_threshold = 0.5\nmin_compression_savings = {}\n", most * 3));
    assert_eq!(number(&whole["budget"]["used"]), used, "{whole}");
}
