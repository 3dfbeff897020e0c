//! Whatever a caller gives is in the prompt, listed as left out, or an error before anything is sent; and every key of a
//! recipe does what the guide says.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod support;

use larder_testkit::stub::End;
use serde_json::{Value, json};
use support::{Ran, Shop, reply_text as reply};

const HEAD: &str = "\
description: Say what matters.
model_layer: VOICE
prompt_files: [prompts/notes/all.md]
output_format: text
";
const BUDGET: &str =
    "token_budget: {total: 6000, prompt: 100, input: 5000, output: 300, response_reserve: 200}\n";

fn shop(recipe: &str) -> Shop {
    let shop = Shop::with_provider([reply("It matters.")]);
    shop.write("recipes/notes/asked.yaml", format!("name: asked\n{HEAD}{recipe}"));
    shop
}

fn sentences(count: usize) -> String {
    (0..count).map(|at| format!("On day {at} the council spoke of bridge {}.\n", at * 7)).collect()
}

fn context(gathered: &str) -> String {
    format!(
        "# Context Document\n\n## 0. User Query\n\n**Original:** What matters?\n\n\
         ## 1. Reflection Decision\n\n**Decision:** PROCEED\n\n## 2. Gathered Context\n\n{gathered}\n"
    )
}

/// The part of an explained prompt with this name.
fn part<'r>(receipt: &'r Value, source: &str) -> &'r Value {
    let parts = receipt["parts"].as_array().unwrap();
    parts.iter().find(|part| part["source"] == source).unwrap()
}

#[test]
fn sections_are_read_into_the_slot_that_names_context_md() {
    let shop = shop(&format!(
        "{BUDGET}input_docs: [notes]\ninput_sections: [\"§1\", \"§2\"]\nslots:\n  \
         - {{name: sys, from: prompt, cap: 100}}\n  \
         - {{name: ctx, from: documents, cap: 900, docs: [context.md, notes]}}\n"
    ));
    shop.write("context.md", context("The harbour master is Bo. The quay is new."));
    shop.write("notes.md", "Nothing else is known.\n");
    shop.ok(&["check"]);
    shop.ok(&["run", "notes/asked", "--doc", "context.md", "--doc", "notes=notes.md"]);
    let sent = shop.seen()[0].json()["messages"].to_string();
    for text in
        ["**Decision:** PROCEED", "The harbour master is Bo.", "Nothing else is known.", "What matters?"]
    {
        assert!(sent.contains(text), "{text}: {sent}");
    }
    let explained = || {
        let args = ["explain", "notes/asked", "--doc", "context.md", "--doc", "notes=notes.md"];
        shop.json(&args)
    };
    assert_eq!(part(&explained(), "context.md§2")["slot"], "ctx");
    // The slot's cap applies to its sections; the query's section stays whole.
    shop.write("context.md", context(&sentences(200)));
    let receipt = explained();
    let of = |source: &str| part(&receipt, source)["rendition"].as_str().unwrap().to_owned();
    assert_eq!((of("context.md§0"), of("context.md§2")), ("whole".into(), "condensed".into()));
    let slot = receipt["budget"]["slots"].as_array().unwrap().iter().find(|slot| slot["name"] == "ctx");
    assert!(slot.unwrap()["tokens"].as_u64().unwrap() <= 900, "{receipt}");
}

#[test]
fn every_problem_of_a_document_and_a_slot_is_reported_at_once() {
    let shop = shop(&format!(
        "{BUDGET}input_docs:\n  - {{name: notes, priority: 500, content_type: proze, requird: true}}\n  - notes\n\
         slots:\n  - {{name: sys, from: prompt, cap: 100}}\n  \
         - {{name: ctx, from: documents, cap: many, docs: [notes]}}\n"
    ));
    let found = shop.fails(1, &["check"]).out;
    for problem in [
        "`input_docs.priority` must be between 0 and 100",
        "`input_docs.content_type` cannot be `proze`",
        "unknown key `requird`",
        "`notes` appears twice in `input_docs`",
        "`slots.cap` must be",
    ] {
        assert!(found.contains(problem), "{problem}: {found}");
    }
    assert!(!found.contains("is in no slot"), "{found}");
}

#[test]
fn a_conversation_for_a_recipe_without_a_place_for_it_is_an_error() {
    let shop = shop(&format!("{BUDGET}input_docs: [notes]\n"));
    let history = [json!({"role": "user", "content": "hi"}), json!({"role": "assistant", "content": "ho"})];
    shop.write("h.json", Value::from(history.to_vec()).to_string());
    shop.write("a.txt", "A note.\n");
    for command in ["run", "explain"] {
        let args = [command, "notes/asked", "--doc", "notes=a.txt", "-q", "Well?", "--history", "h.json"];
        let ran = shop.fails(1, &args);
        assert!(
            ran.err.contains("no slot of messages") && ran.err.contains("2 messages came before"),
            "{}",
            ran.err
        );
    }
    assert!(shop.seen().is_empty());
    let promise = "output_format: tagged\noutput_tags: [{name: promise}]\n";
    let recipe =
        format!("name: until\n{HEAD}{BUDGET}input_docs: [notes]\n").replace("output_format: text\n", promise);
    shop.write("recipes/notes/until.yaml", recipe);
    let args = ["run", "notes/until", "--doc", "notes=a.txt", "-q", "Well?", "--until-done"];
    let ran = shop.fails(2, &args);
    assert!(ran.err.contains("no slot of messages") && shop.seen().is_empty(), "{}", ran.err);
}

#[test]
fn a_history_may_be_text_behind_a_byte_order_mark() {
    let shop = shop(&format!(
        "{BUDGET}input_docs: [{{name: notes, required: false}}]\nslots:\n  - {{name: sys, from: prompt, cap: 100}}\n  \
         - {{name: said, from: messages, cap: 400}}\n  - {{name: docs, from: documents, cap: 100, docs: [notes]}}\n"
    ));
    let given =
        format!("\u{feff}{}", json!({"instructions": "Be brief.", "input": "The gate closes at nine."}));
    shop.write("h.json", &given);
    let receipt = shop.json(&["explain", "notes/asked", "-q", "When?", "--history", "h.json"]);
    let prompt = receipt["messages"].to_string();
    assert!(prompt.contains("Be brief.") && prompt.contains("The gate closes at nine."), "{prompt}");
    assert_eq!(shop.ok(&["rehydrate", receipt["history"].as_str().unwrap()]).out, given);
}

#[test]
fn a_preserved_section_is_never_condensed() {
    let recipe = |preserve: &str| {
        format!("{BUDGET}input_sections: [\"§2\"]\ncompression: {{preserve: [{preserve}]}}\n")
    };
    let shop = shop(&recipe("section_2"));
    let rendition = |count: usize| {
        shop.write("context.md", context(&sentences(count)));
        part(&shop.json(&["explain", "notes/asked", "--doc", "context.md"]), "context.md§2").clone()
    };
    assert_eq!(rendition(20)["rendition"], "whole");
    let large = rendition(300);
    assert_eq!(large["rendition"], "pointer", "{large}");
    let back = shop.ok(&["rehydrate", large["pointer"].as_str().unwrap()]).out;
    assert!(back.contains("On day 299 the council"), "explain stores what its pointers lead to");
    shop.write("recipes/notes/asked.yaml", format!("name: asked\n{HEAD}{}", recipe("dates")));
    assert_eq!(rendition(300)["rendition"], "condensed");
}

#[test]
fn a_prompt_over_the_cap_of_its_slot_is_refused_and_the_cap_is_named() {
    let shop = shop(
        "token_budget: {total: 20000, prompt: 100, input: 5000, output: 300}\n\
         variables: {words: \"{{ words }}\"}\nslots:\n  - {name: sys, from: prompt, cap: 50}\n",
    );
    shop.write("prompts/notes/all.md", "Say what matters: {{ words }}\n");
    let words = format!("words={}", sentences(30));
    let ran = shop.fails(1, &["run", "notes/asked", "-q", "Well?", "--set", &words]);
    assert!(ran.err.contains("Slot sys holds at most 50: raise its cap"), "{}", ran.err);
    assert!(!ran.err.contains("token_budget.total") && shop.seen().is_empty(), "{}", ran.err);
    let layout = shop.fails(1, &["explain", "notes/asked", "-q", "Well?", "--set", &words]).out;
    assert!(layout.contains("REFUSED") && layout.contains("Slot sys holds at most 50"), "{layout}");
    // A setting replaces the cap of a prompt's slot, too (R2-8.1).
    shop.configure("", "[slots.\"notes/asked\"]\nsys = 3000\n");
    shop.ok(&["run", "notes/asked", "-q", "Well?", "--set", &words]);
    shop.configure("", "[slots.\"notes/asked\"]\nsys = 4\n");
    let ran = shop.fails(1, &["run", "notes/asked", "-q", "Well?", "--set", "words=x"]);
    assert!(ran.err.contains("Slot sys holds at most 4"), "{}", ran.err);
}

#[test]
fn a_slot_that_refuses_leaves_nothing_out() {
    let slots = |overflow: &str| {
        format!(
            "name: asked\n{HEAD}{BUDGET}input_docs: [notes]\nslots:\n  - {{name: sys, from: prompt, cap: 100}}\n  \
             - {{name: ctx, from: documents, cap: 500, docs: [notes], overflow: {overflow}}}\n"
        )
    };
    let shop = shop("");
    let documents: Vec<String> = (0..12).map(|at| format!("n{at}.txt")).collect();
    documents.iter().for_each(|name| shop.write(name, sentences(20)));
    let docs: Vec<String> = documents.iter().map(|name| format!("notes={name}")).collect();
    let args: Vec<&str> = ["explain", "notes/asked", "-q", "Well?"]
        .into_iter()
        .chain(docs.iter().flat_map(|doc| ["--doc", doc.as_str()]))
        .collect();
    for overflow in ["[refuse]", "[condense, refuse]"] {
        shop.write("recipes/notes/asked.yaml", slots(overflow));
        let ran = shop.fails(1, &args);
        assert!(ran.out.contains("Slot ctx holds at most 500: raise its cap"), "{overflow}: {}", ran.out);
    }
    shop.write("recipes/notes/asked.yaml", slots("[condense]"));
    let receipt = shop.json(&args);
    let absent: Vec<&Value> =
        receipt["parts"].as_array().unwrap().iter().filter(|part| part["rendition"] == "absent").collect();
    assert!(!absent.is_empty());
    for part in absent {
        let back = shop.ok(&["rehydrate", part["pointer"].as_str().unwrap()]).out;
        assert_eq!(back, sentences(20), "{part}");
    }
}

#[test]
fn a_model_that_must_cite_in_text_is_told_how_and_its_repair_lists_the_ids() {
    let recipe = "name: cited\ndescription: Answer from some notes.\nmodel_layer: VOICE\n\
        token_budget: {total: 2000, prompt: 200, input: 1300, output: 300, response_reserve: 200}\n\
        prompt_files: [prompts/notes/all.md]\ninput_docs: [{name: notes, content_type: prose}]\n\
        output_format: markdown\nquality_gates: {evidence_required: true, max_retries: 1}\n";
    let shop = Shop::with_provider([reply("2401 euros."), reply("2401 euros [notes].")]);
    shop.write("recipes/notes/cited.yaml", recipe);
    shop.write("a.txt", "Lamp 343 costs 2401 euros.\n");
    let run = shop.json(&["run", "notes/cited", "--doc", "notes=a.txt", "-q", "What does lamp 343 cost?"]);
    assert_eq!(run["citations"][0]["part"], "notes", "{run}");
    let prompts: Vec<String> = shop.seen().iter().map(|seen| seen.json()["messages"].to_string()).collect();
    assert!(prompts[0].contains("in square brackets, as in [notes]"), "{}", prompts[0]);
    assert!(prompts[1].contains("in square brackets: notes"), "{}", prompts[1]);
}

#[test]
fn without_anything_to_cite_no_model_is_asked_for_evidence() {
    let recipe = "name: cited\ndescription: Answer from some notes.\nmodel_layer: VOICE\n\
        token_budget: {total: 2000, prompt: 200, input: 1300, output: 300, response_reserve: 200}\n\
        prompt_files: [prompts/notes/all.md]\ninput_docs: [{name: notes, required: false}]\n\
        output_format: markdown\nquality_gates: {evidence_required: true, max_retries: 2}\n";
    let shop = Shop::with_provider([reply("2401 euros.")]);
    shop.write("recipes/notes/cited.yaml", recipe);
    let ran = shop.fails(1, &["run", "notes/cited", "-q", "What does lamp 343 cost?"]);
    assert!(
        ran.err.contains("nothing that an answer could cite was given") && ran.err.contains("pass notes")
    );
    assert!(shop.seen().is_empty());
}

#[test]
fn a_refusal_with_condensing_off_names_the_switch_and_layouts_state_the_declared_total() {
    let shop = shop(
        "token_budget: {total: 1600, prompt: 100, input: 1000, output: 300, response_reserve: 100}\n\
                     input_docs: [notes]\n",
    );
    shop.write("a.txt", sentences(200));
    let explained = |name: &str, value: &str| {
        let mut command = shop.command(&["explain", "notes/asked", "-q", "What?", "--doc", "notes=a.txt"]);
        let ran: Ran = command.env(name, value).output().unwrap().into();
        format!("{}{}", ran.out, ran.err)
    };
    for (name, key) in [
        ("LARDER_CONTEXT_POLICY_ENABLED", "policy.enabled"),
        ("COMPRESSION_ENABLED", "policy.compression_enabled"),
    ] {
        let said = explained(name, "false");
        assert!(said.contains(&format!("Condensing is switched off: set {key} = true")), "{name}: {said}");
    }
    let said = explained("LARDER_PROMPT_BUDGET_OVERRIDE", "400");
    assert!(said.contains("total 1600") && said.contains("400 tokens are allowed by"), "{said}");
    let said = explained("LARDER_EMERGENCY_FLOOR", "1190");
    assert!(said.contains("policy.emergency_floor"), "{said}");
}

#[test]
fn a_call_that_takes_too_long_names_what_sets_its_time() {
    let recipe = "name: cited\ndescription: Answer.\nmodel_layer: VOICE\n\
        token_budget: {total: 2000, prompt: 200, input: 1300, output: 300, response_reserve: 200}\n\
        prompt_files: [prompts/notes/all.md]\ninput_docs: [{name: notes, required: false}]\n\
        output_format: text\nquality_gates: {timeout_ms: 50, max_retries: 0}\n";
    let shop = Shop::responding(|_| reply("Never.").ending(End::Hang));
    shop.configure_layers(&["VOICE"], "", "");
    shop.write("prompts/notes/all.md", "Answer.\n");
    shop.write("recipes/notes/cited.yaml", recipe);
    let ran = shop.fails(3, &["run", "notes/cited", "-q", "What?"]);
    assert!(ran.err.contains("quality_gates.timeout_ms of notes/cited sets this time"), "{ran:?}");
}

#[test]
fn a_small_slot_of_messages_keeps_the_conversation() {
    let shop = shop("");
    let lines = |at: usize| format!("Message {at} speaks of bridge {} and of quay {}.", at * 7, at * 11);
    let caps = [230, 260, 300, 400, 450, 497, 500, 600, 800].map(|cap| cap.to_string());
    let shares = ["30%", "40%", "50%", "60%"].map(str::to_owned);
    small_slots(&shop, 200, lines, caps.into_iter().chain(shares));
    let sentences = [
        "Thank you, that helps a lot. ",
        "The build fails because the config file lacks a port. ",
        "I looked at the ledger of the harbour, and its totals do not match the invoice from March. ",
        "Please check the schedule of the cranes again before noon. ",
        "It is fixed now; the tests pass. ",
    ];
    let mixed = |at: usize| (0..2 + at * 7 % 23).map(|said| sentences[(at * 3 + said * said) % 5]).collect();
    small_slots(&shop, 34, mixed, (230..800).step_by(11).map(|cap| cap.to_string()));
}

fn small_slots(
    shop: &Shop,
    messages: usize,
    said: impl Fn(usize) -> String,
    caps: impl Iterator<Item = String>,
) {
    let role = |at: usize| if at.is_multiple_of(2) { "user" } else { "assistant" };
    let history: Vec<Value> =
        (0..messages).map(|at| json!({"role": role(at), "content": said(at)})).collect();
    shop.write("h.json", Value::from(history).to_string());
    for cap in caps {
        let recipe = format!(
            "token_budget: {{total: 1600, prompt: 100, input: 1000, output: 300, response_reserve: 100}}\n\
             input_docs: [{{name: notes, required: false}}]\nslots:\n  - {{name: sys, from: prompt, cap: 100}}\n  \
             - {{name: chat, from: messages, cap: {cap}}}\n  - {{name: docs, from: documents, cap: 100, docs: [notes]}}\n"
        );
        shop.write("recipes/notes/asked.yaml", format!("name: asked\n{HEAD}{recipe}"));
        let receipt = shop.json(&["explain", "notes/asked", "-q", "What next?", "--history", "h.json"]);
        let parts = receipt["parts"].as_array().unwrap();
        let chat = parts.iter().filter(|part| part["slot"] == "chat");
        let absent = chat.filter(|part| part["rendition"] == "absent").count();
        assert_eq!(absent, 0, "{cap}");
        let slots = receipt["budget"]["slots"].as_array().unwrap();
        let slot = slots.iter().find(|slot| slot["name"] == "chat").unwrap();
        let (used, allowed) = (slot["tokens"].as_u64().unwrap(), slot["allowed"].as_u64().unwrap());
        assert!(used <= allowed && used * 100 >= allowed * 40, "{cap}: {used} of {allowed}");
    }
}

#[test]
fn a_text_that_may_be_cut_ends_before_a_heading_between_equals_signs_and_its_rest_comes_back() {
    let shop = shop(&format!(
        "{BUDGET}input_docs: [notes]\nslots:\n  - {{name: sys, from: prompt, cap: 100}}\n  \
         - {{name: docs, from: documents, cap: 500, docs: [notes], overflow: [truncate_at_boundary, point]}}\n"
    ));
    let section = |day: usize| format!("=== Day {day} ===\n\n{}\n", sentences(12));
    let notes: String = (1..=6).map(section).collect();
    shop.write("notes.md", &notes);
    shop.ok(&["run", "notes/asked", "--doc", "notes=notes.md", "--query", "What matters?"]);
    let messages = shop.seen()[0].json()["messages"].to_string();
    let days: Vec<usize> = (1..=6).filter(|day| messages.contains(&format!("=== Day {day} ==="))).collect();
    assert!(!days.is_empty() && days.len() < 6, "{messages}");
    let whole = messages.matches("the council spoke").count();
    assert_eq!(whole, days.len() * 12, "whole sections only: {messages}");
    let pointer = messages.find("lp1-").map(|at| &messages[at..at + 24]).unwrap();
    assert_eq!(shop.ok(&["rehydrate", pointer]).out, notes);
}

#[test]
fn a_folder_below_a_project_is_in_it_unless_it_is_one_itself() {
    let shop = Shop::with_provider([reply("It matters.")]);
    shop.write("sub/deep/notes.md", "The bridge is closed.\n");
    let deep = |args: &[&str]| -> Ran {
        shop.command(args).current_dir(shop.path().join("sub/deep")).output().unwrap().into()
    };
    let run = ["run", "notes/summary", "--doc", "notes=notes.md", "--query", "What is closed?"];
    let ran = deep(&run);
    assert_eq!((ran.code, ran.out.trim_end()), (0, "It matters."), "{ran:?}");
    let project = shop.path().canonicalize().unwrap();
    assert!(ran.err.contains(&format!("project {}", project.display())), "{ran:?}");
    assert_eq!(deep(&[&["--project", "."], &run[..]].concat()).code, 1);
    shop.write("sub/larder.toml", "");
    let nearer = deep(&run);
    let nearest = project.join("sub");
    assert!(
        nearer.code == 1 && nearer.err.contains(&format!("project {}\n", nearest.display())),
        "{nearer:?}"
    );
}
