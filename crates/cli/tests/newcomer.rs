//! What a new user runs into: inputs that are condensed, empty or misnamed, homes and settings that cannot be used, and
//! examples of the README. Each is reported in words that name it and the fix.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod support;

use std::collections::BTreeSet;

use larder_condense::{CondenseRequest, condense};
use larder_testkit::stub::Answer;
use larder_text::pointer::PointerKey;
use larder_text::tokens::Registry;
use serde_json::{Value, json};
use support::scholar::{Role, say};
use support::served::Served;
use support::{Shop, reply_text};

const ANSWER: &str = "Bridge 77 is old.";
/// White space, control characters and characters without a width.
const BLANK: &str = "\u{1} \u{200B}\t\u{7f}";
/// Homes whose pointers end in other digits.
const HOMES: u8 = 200;

fn report(first: usize, days: usize) -> String {
    let day =
        |day: usize| format!("On day {day} the council spoke of bridge {} at some length.\n\n", day * 7);
    (first..first + days).map(day).collect()
}

/// The pointer that a note names.
fn pointer_in(note: &str) -> &str {
    note.split("`larder rehydrate '").nth(1).unwrap().split('\'').next().unwrap()
}

#[test]
fn a_run_says_what_of_its_inputs_was_condensed_or_left_out() {
    let shop = Shop::with_provider(std::iter::repeat_with(|| reply_text(ANSWER)).take(4));
    let long = report(0, 600);
    shop.write("long.md", &long);
    shop.write("short.md", report(0, 2));
    let args = ["run", "notes/summary", "-q", "What about bridge 77?", "--doc"];
    let ran = shop.ok(&[&args[..], &["notes=long.md"]].concat());
    assert_eq!(ran.out.trim_end(), ANSWER);
    let note = ran.err.lines().find(|line| line.starts_with("note: ")).unwrap().to_owned();
    assert!(
        note.starts_with("note: condensed long.md from ") && note.contains("`larder explain` "),
        "{note}"
    );
    let pointer = pointer_in(&note);
    assert_eq!(shop.ok(&["rehydrate", pointer]).out, long);

    let ran = shop.ok(&[&args[..], &["notes=long.md", "--format", "json"]].concat());
    let outcome: Value = serde_json::from_str(&ran.out).unwrap();
    let parts = outcome["receipt"]["parts"].as_array().unwrap();
    let part = parts.iter().find(|part| part["source"] == "long.md").unwrap();
    assert_eq!((&part["rendition"], &part["pointer"]), (&json!("condensed"), &json!(pointer)), "{part}");
    assert!(
        note.contains(&format!("from {} to {} tokens", part["original_tokens"], part["tokens"])),
        "{part}"
    );
    assert!(ran.err.contains(&note), "{}", ran.err);

    let ran = shop.ok(&[&args[..], &["notes=short.md"]].concat());
    assert!(!ran.err.contains("note: "), "{}", ran.err);

    let given: Vec<String> = (0..60).map(|at| format!("notes=part{at}.md")).collect();
    (0..60).for_each(|at| shop.write(&format!("part{at}.md"), report(at * 40, 40)));
    let documents = given.iter().flat_map(|name| ["--doc", name.as_str()]);
    let ran = shop.ok(&args[..4].iter().copied().chain(documents).collect::<Vec<_>>());
    let told = |line: &&str| {
        line.contains("note: condensed ") && line.contains(" parts from ") && line.contains(", and left out ")
    };
    let note = ran.err.lines().find(told).unwrap();
    let named = note.rsplit(" reads ").next().unwrap().strip_suffix(" whole").unwrap();
    let whole = std::fs::read_to_string(shop.path().join(named)).unwrap();
    assert_eq!(shop.ok(&["rehydrate", pointer_in(note)]).out.trim_end(), whole.trim_end());
}

#[test]
fn a_run_says_what_it_condensed_of_a_document_that_is_not_counted_to_its_end() {
    let shop = Shop::with_provider([reply_text(ANSWER)]);
    shop.write("long.md", report(0, 60_000));
    let ran = shop.ok(&["run", "notes/summary", "-q", "What about bridge 77?", "--doc", "notes=long.md"]);
    let note = ran.err.lines().find(|line| line.starts_with("note: ")).unwrap();
    let told = note.strip_prefix("note: condensed long.md to ").unwrap();
    let (to, rest) = told.split_once(" of more than ").unwrap();
    let (least, _) = rest.split_once(" tokens; ").unwrap();
    assert!(to.parse::<u64>().unwrap() <= least.parse::<u64>().unwrap(), "{note}");
}

#[test]
fn a_required_document_without_text_is_refused_and_another_is_noted() {
    let shop = Shop::with_provider([reply_text(ANSWER)]);
    let optional = "name: asked\ndescription: Answer.\nmodel_layer: VOICE\ntoken_budget: {total: 2000, prompt: 200, input: \
                    1300, output: 300, response_reserve: 200}\nprompt_files: [prompts/notes/all.md]\ninput_docs: [{name: \
                    notes, required: false}]\noutput_format: text\n";
    shop.write("recipes/notes/asked.yaml", optional);
    shop.write("notes.md", report(0, 2));
    shop.write("empty.md", " \n\n");
    for command in ["run", "explain"] {
        let refused =
            shop.fails(1, &[command, "notes/summary", "-q", "What?", "--doc", "notes=empty.md"]).err;
        for told in ["notes/summary requires the document `notes`", "empty.md is empty", "--doc notes=PATH"] {
            assert!(refused.contains(told), "{told}: {refused}");
        }
    }
    assert!(shop.seen().is_empty());
    let beside = ["notes/summary", "-q", "What?", "--doc", "notes=notes.md", "--doc", "notes=empty.md"];
    for args in [&beside[..], &["notes/asked", "-q", "What?", "--doc", "notes=empty.md"]] {
        let noted = shop.ok(&[&["explain"][..], args].concat()).err;
        assert!(noted.contains("note: empty.md is empty"), "{noted}");
    }
}

#[test]
fn a_tokenizer_that_is_not_there_is_named_by_every_command_that_asks_a_model() {
    let shop = Shop::with_provider([]);
    shop.configure("tokenizer = \"nofile.json\"\n", "");
    shop.write("notes.md", report(0, 2));
    for args in [
        &["turn", "What about bridge 7?"][..],
        &["chat"],
        &["run", "notes/summary", "-q", "What?", "--doc", "notes=notes.md"],
        &["explain", "notes/summary", "-q", "What?", "--doc", "notes=notes.md"],
        &["ask", "notes.md", "What about bridge 7?"],
        &["converse", "tutor"],
    ] {
        let ran = shop.fails(1, args);
        for told in [
            "error[L070]: models.stub.tokenizer: there is no tokenizer or file called `nofile.json`",
            "larder.toml:",
            "help: give the path of a tokenizer.json",
        ] {
            assert!(ran.err.contains(told), "{args:?}: {ran:?}");
        }
    }
    assert!(shop.seen().is_empty());
}

#[test]
fn turns_and_conversations_note_that_every_byte_counts_as_a_token() {
    let shop = Shop::with_provider([]);
    shop.write("broken.json", "{}");
    shop.configure_layers(&["REFLEX", "NERVES", "MIND", "VOICE"], "tokenizer = \"broken.json\"\n", "");
    for ran in [shop.run(&["turn", "What about bridge 7?"]), shop.run_with(&["converse", "tutor"], b"hi\n")] {
        let told = "note: the tokenizer broken.json of stub cannot be loaded";
        assert!(
            ran.err.matches(told).count() == 1 && ran.err.contains("every byte counts as a token"),
            "{ran:?}"
        );
    }
}

#[test]
fn a_home_that_is_no_folder_is_named_with_the_fix() {
    let shop = Shop::new();
    shop.write("notes.md", report(0, 2));
    for home in ["notes.md", "notes.md/home"] {
        for args in [&["count", "notes.md"][..], &["check"], &["runs"], &["ask", ".", "What?"]] {
            let refused = shop.fails(1, &[&["--home", home][..], args].concat()).err;
            let told = format!("cannot use the home folder {home}: ");
            assert!(
                refused.contains(&told) && refused.contains("name another with --home or LARDER_HOME"),
                "{refused}"
            );
            assert!(!refused.contains("models.tsv"), "{refused}");
        }
    }
}

#[test]
fn a_warning_that_attempts_repeat_is_printed_once() {
    let shop = Shop::with_scholar(|role, prompt| match role {
        Role::Synthesizer => Some(reply_text("The ledger costs $4,711. [context.md§0]")),
        Role::Validator => {
            let mut verdict: Value = serde_json::from_str(&say(role, prompt)).unwrap();
            verdict["decision"] = json!("REVISE");
            verdict["revision_hints"] = json!(["Say where the price comes from."]);
            Some(reply_text(&verdict.to_string()))
        }
        _ => None,
    });
    let ran = shop.run(&["turn", "Where is the ledger?"]);
    assert!(shop.roles().iter().filter(|role| **role == Role::Synthesizer).count() > 1, "{ran:?}");
    let warnings: Vec<&str> = ran.err.lines().filter(|line| line.starts_with("warning: ")).collect();
    assert!(warnings.iter().any(|line| line.contains("the answer states")), "{ran:?}");
    assert_eq!(warnings.len(), warnings.iter().collect::<BTreeSet<_>>().len(), "{warnings:?}");
}

#[test]
fn a_question_of_control_characters_is_no_question() {
    let shop = Shop::with_scholar(|_, _| None);
    shop.write("notes.md", report(0, 2));
    for (code, args, told) in [
        (1, &["turn", BLANK][..], "the query is empty: it has no visible text"),
        (2, &["ask", "notes.md", BLANK], "the question, which comes last, is empty"),
        (1, &["run", "summarize", "-q", BLANK, "--doc", "document=notes.md"], "needs the user's query"),
    ] {
        let refused = shop.fails(code, args).err;
        assert!(refused.contains(told), "{refused}");
    }
    for command in [&["chat"][..], &["converse", "tutor"]] {
        let ran = shop.run_with(command, format!("{BLANK}\n").as_bytes());
        assert!(
            ran.code == 1 && ran.err.contains("is empty: it has no visible text"),
            "{command:?}: {ran:?}"
        );
    }
    assert_eq!(shop.json(&["turn", "list"]), json!({"unfinished": [], "turns": [], "has_older": false}));

    let server = Served::start(&shop, &[]);
    let (status, said) = server.post("/api/v1/turns", &json!({"query": BLANK}));
    assert!(status == 422 && said.contains("it has no visible text"), "{status} {said}");
    let (status, begun) = server.post("/api/v1/conversations", &json!({"type": "tutor"}));
    let begun: Value = serde_json::from_str(&begun).unwrap();
    assert_eq!(status, 201, "{begun}");
    let path = format!("/api/v1/conversations/{}/messages", begun["id"].as_str().unwrap());
    let (status, said) = server.post(&path, &json!({"text": BLANK}));
    assert!(status == 422 && said.contains("it has no visible text"), "{status} {said}");
    let message = json!({"role": "user", "content": BLANK});
    for model in ["conversation/tutor", "recipe/memory/remember"] {
        let (status, said) =
            server.post("/v1/chat/completions", &json!({"model": model, "messages": [message]}));
        assert!(status == 400, "{model}: {status} {said}");
    }
    server.signal("TERM");
    server.end();
    assert!(shop.seen().is_empty());
}

/// A text whose pointers have the same last digits, whatever their home.
fn anonymous(text: &str) -> String {
    let mut parts = text.split("lp1-");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| format!("{text}lp1-{}-XXXXXX{}", &part[..13], &part[20..]))
}

#[test]
fn every_home_prints_what_the_readme_shows() {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
    let (_, example) = readme.split_once("$ larder condense notes.md ").unwrap();
    let (options, shown) = example.split_once('\n').unwrap();
    let shown = anonymous(shown.split_once("\n$ ").unwrap().0);
    let shop = Shop::new();
    shop.ok(&["init", "."]);
    let args: Vec<&str> = ["condense", "notes.md"].into_iter().chain(options.split(' ')).collect();
    assert_eq!(anonymous(shop.ok(&args).out.trim_end()), shown);

    let text = std::fs::read_to_string(shop.path().join("notes.md")).unwrap();
    let named = |option: &str| args[args.iter().position(|arg| *arg == option).unwrap() + 1];
    let counter = Registry::builtin().by_name(named("--tokenizer")).unwrap();
    for home in 0..HOMES {
        let condensed = condense(&CondenseRequest {
            text: &text,
            content_type: larder_condense::detect(None, "notes.md", false, &text),
            target: named("--to").parse().unwrap(),
            query: None,
            pins: &[],
            counter: &counter,
            key: &PointerKey::new([home; 32]),
        });
        assert_eq!(anonymous(condensed.unwrap().text.trim_end()), shown, "home {home}");
    }
}

// Other systems refuse such names.
#[cfg(target_os = "linux")]
#[test]
fn a_name_that_is_not_utf8_is_shown_with_the_fix() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let shop = Shop::with_provider([]);
    let (file, document) = (OsStr::from_bytes(b"caf\xe9.md"), OsStr::from_bytes(b"notes=caf\xe9.md"));
    std::fs::write(shop.path().join(file), report(0, 2)).unwrap();
    let fails = |args: &[&str], more: &[&OsStr]| {
        let ran: support::Ran = shop.command(args).args(more).output().unwrap().into();
        assert!(ran.code == 2 && ran.out.is_empty(), "{ran:?}");
        ran.err
    };
    for (args, more) in [
        (&["run", "notes/summary", "-q", "x", "--doc"][..], &[document][..]),
        (&["explain", "notes/summary", "-q", "x", "--doc"], &[document]),
        (&["ask"], &[file, OsStr::new("What?")]),
    ] {
        let refused = fails(args, more);
        assert!(
            refused.contains("caf\u{FFFD}.md is not valid UTF-8") && refused.contains("rename the file"),
            "{refused}"
        );
    }
    for option in ["--home", "--project"] {
        let refused = fails(&["runs", option], &[OsStr::from_bytes(b"caf\xe9")]);
        assert!(
            refused.contains(option) && refused.contains("folder caf\u{FFFD} is not UTF-8; rename it"),
            "{refused}"
        );
    }
    let folder = OsStr::from_bytes(b"caf\xe9");
    std::fs::create_dir(shop.path().join(folder)).unwrap();
    let refused = fails(&["turn", "x", "--mode", "code", "--workspace"], &[folder]);
    assert!(
        refused.contains("caf\u{FFFD} is not valid UTF-8") && refused.contains("rename the folder"),
        "{refused}"
    );
    assert_eq!(shop.json(&["turn", "list"])["unfinished"], json!([]));
    let counted: support::Ran = shop.command(&["count"]).arg(file).output().unwrap().into();
    assert_eq!(counted.code, 0, "{counted:?}");
}

#[test]
fn every_slot_that_explain_prints_takes_a_cap_or_says_why_not() {
    let shop = Shop::with_provider([]);
    let recipe = "name: asked\ndescription: Answer.\nmodel_layer: VOICE\ntoken_budget: {total: 6000, prompt: 100, input: \
                  5000, output: 300, response_reserve: 200}\nprompt_files: [prompts/notes/all.md]\ninput_docs: \
                  [notes]\ninput_sections: [\"§2\"]\noutput_format: text\n";
    shop.write("recipes/notes/asked.yaml", recipe);
    let gathered = report(0, 60);
    shop.write(
        "context.md",
        format!("## 0. User Query\n\n**Original:** x\n\n## 2. Gathered Context\n\n{gathered}"),
    );
    shop.write("notes.md", report(0, 60));
    let args = ["notes/asked", "-q", "x", "--doc", "context.md", "--doc", "notes=notes.md"];
    let explain = [&["explain"][..], &args].concat();
    let slot = |name: &str| -> Value {
        let slots = shop.json(&explain)["budget"]["slots"].clone();
        slots.as_array().unwrap().iter().find(|slot| slot["name"] == name).unwrap().clone()
    };
    let slots = shop.json(&explain)["budget"]["slots"].clone();
    let names: Vec<&str> =
        slots.as_array().unwrap().iter().map(|slot| slot["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["system", "§0", "§2", "documents", "query"]);
    for (name, reason) in [
        ("system", "token_budget.prompt"),
        ("§0", "the query is always sent whole"),
        ("§2", ""),
        ("documents", ""),
        ("query", "the query is always sent whole"),
    ] {
        shop.configure("", &format!("[slots.\"notes/asked\"]\n\"{name}\" = 500\n"));
        if reason.is_empty() {
            shop.ok(&["check"]);
            let capped = slot(name);
            assert!((300..=500).contains(&capped["tokens"].as_u64().unwrap()), "{capped}");
            assert!(shop.ok(&["config"]).out.contains(&format!("slots.notes/asked.{name}")));
            continue;
        }
        let (checked, refused) = (shop.fails(1, &["check"]).out, shop.fails(1, &explain).err);
        let told = format!("slots.notes/asked.{name}: slot {name} of notes/asked has no cap: {reason}");
        assert!(checked.contains(&told) && refused.contains(&told), "{checked} {refused}");
        assert!(refused.contains("slots that take a cap: §2, documents"), "{refused}");
    }
}

#[test]
fn a_document_named_like_an_input_is_hinted_to_that_input() {
    let shop = Shop::with_provider([]);
    shop.write(
        "recipes/notes/asked.yaml",
        "name: asked\ndescription: d\nmodel_layer: VOICE\nsystem_prompt: Answer.\noutput_format: text\n\
         token_budget: {total: 4000, prompt: 100, input: 3000, output: 300, response_reserve: 200}\n\
         input_docs: [report, {name: runbook, required: false}]\n",
    );
    shop.write("runbook.md", "Restart it.\n");
    let ran = shop.fails(1, &["run", "notes/asked", "-q", "Why?", "--doc", "runbook.md"]);
    assert!(ran.err.contains("; to pass it as one of them, use --doc runbook=PATH"), "{}", ran.err);
}

/// A project whose recipe asks `stub`, which a provider answers with `first`, and whose fallback is `small`.
fn with_fallback(first: impl Fn() -> Answer + Send + Sync + 'static, keys: &str) -> Shop {
    let shop =
        Shop::responding(
            move |seen| {
                if seen.json()["model"] == "gpt-4o-mini" { first() } else { reply_text(ANSWER) }
            },
        );
    let small = "[models.small]\n".to_owned();
    shop.configure("fallback = \"small\"", &small);
    let table = std::fs::read_to_string(shop.path().join("larder.toml")).unwrap();
    let (stub, small) = table.split_once("[models.small]").unwrap();
    let small = small.replace("gpt-4o-mini", "own-8b");
    shop.write("larder.toml", format!("{stub}[models.small]{small}window = 8000\nmax_output = 1000\n"));
    let recipe = format!(
        "name: asked\ndescription: Say what matters.\nmodel_layer: VOICE\n{keys}system_prompt: Answer.\n\
         output_format: text\ntoken_budget: {{total: 4000, prompt: 100, input: 3000, output: 300, response_reserve: 200}}\n\
         input_docs: [{{name: notes, required: false}}]\n"
    );
    shop.write("recipes/notes/asked.yaml", recipe);
    shop
}

fn failed(status: u16) -> Answer {
    Answer::json(status, &json!({"error": {"message": "not today"}}))
}

const ASK: [&str; 4] = ["run", "notes/asked", "-q", "What about bridge 77?"];

#[test]
fn a_fallback_says_which_model_failed_and_why() {
    for (status, said) in [
        (401, "stub: refused the key with status 401: not today"),
        (400, "stub: refused the request with status 400: not today"),
        (500, "stub: failed with status 500: not today"),
    ] {
        let shop = with_fallback(move || failed(status), "");
        let ran = shop.ok(&ASK);
        assert_eq!(ran.out.trim_end(), ANSWER);
        assert!(ran.err.contains(&format!("note: {said}; small answered instead\n")), "{}", ran.err);
        let runs = shop.json(&["runs"]);
        let id = runs[0]["run_id"].as_str().unwrap();
        let shown = shop.json(&["runs", "show", id]);
        assert_eq!(shown["receipt"]["failed"], json!([{"model": "stub", "error": said}]));
        let plain = shop.command(&["runs", "show", id]).output().unwrap();
        let plain = String::from_utf8(plain.stdout).unwrap();
        assert!(plain.contains(&format!("failed    {said}\n")) && plain.contains(ANSWER), "{plain}");
        assert!(plain.contains("model     small as VOICE\n") && !plain.contains("\"receipt\""), "{plain}");
        let server = Served::start(&shop, &[]);
        let (_, page) = server.get(&format!("/runs/{id}"));
        assert!(page.contains(said), "{page}");
    }
}

#[test]
fn at_high_risk_the_error_says_why_no_fallback_was_asked() {
    let shop = with_fallback(|| failed(500), "risk_level: high\n");
    let ran = shop.fails(3, &ASK);
    let said = "stub: failed with status 500: not today; the recipe has risk_level high, so its fallback small was not \
                asked; see `larder interventions show 1`";
    assert!(ran.err.contains(said), "{}", ran.err);
    shop.ok(&["interventions", "show", "1"]);
}

#[test]
fn each_model_of_a_run_is_booked_with_what_it_used() {
    let confident =
        |confidence: f64| reply_text(&json!({"text": ANSWER, "confidence": confidence}).to_string());
    let shop =
        Shop::responding(move |seen| confident(if seen.json()["model"] == "gpt-4o" { 0.2 } else { 0.9 }));
    shop.configure("", "[models.small]\n");
    let table = std::fs::read_to_string(shop.path().join("larder.toml")).unwrap();
    let (stub, small) = table.split_once("[models.small]").unwrap();
    let stub = stub.replace("[models.layers]\n", "[models.layers]\nMIND = \"small\"\n");
    shop.write("larder.toml", format!("{stub}[models.small]{}", small.replace("gpt-4o-mini", "gpt-4o")));
    shop.write(
        "recipes/notes/asked.yaml",
        "name: asked\ndescription: Say what matters.\nmodel_layer: MIND\nsystem_prompt: Answer.\n\
         output_format: json\noutput_schema: {type: object, required: [text, confidence], properties: {text: \
         {type: string}, confidence: {type: number}}}\n\
         quality_gates: {confidence_threshold: 0.6, max_retries: 1}\n\
         token_budget: {total: 4000, prompt: 100, input: 3000, output: 300, response_reserve: 200}\n\
         input_docs: [{name: notes, required: false}]\n",
    );
    let ran = shop.ok(&ASK);
    assert!(
        ran.err.contains("(small: 1 call, 100 tokens in, 10 out, $0.00035; stub: 1 call, "),
        "{}",
        ran.err
    );
    let outcome = shop.json(&ASK);
    let used = |model: &str, calls: u32, cost: f64| json!({"model": model, "calls": calls, "input_tokens": 100 * calls, "output_tokens": 10 * calls, "cost_usd": cost});
    // 2.50 and 10 dollars, 0.15 and 0.60 dollars per million.
    let models = json!([used("small", 1, 0.000_35), used("stub", 1, 0.000_021)]);
    assert_eq!(outcome["models"], models);
    let runs = shop.json(&["runs"]);
    assert_eq!(runs[0]["models"], models);
    let server = Served::start(&shop, &[]);
    let (_, costs) = server.get("/api/v1/costs");
    let costs: Value = serde_json::from_str(&costs).unwrap();
    let rows: Vec<_> = costs["costs"].as_array().unwrap().iter().collect();
    let row = |model: &str| *rows.iter().find(|row| row["model"] == model).unwrap();
    assert_eq!(
        (&row("small")["requests"], &row("small")["input_tokens"]),
        (&json!(2), &json!(200)),
        "{costs}"
    );
    assert_eq!((&row("stub")["requests"], &row("stub")["input_tokens"]), (&json!(2), &json!(200)), "{costs}");
    assert!(row("small")["cost"].as_str().unwrap().starts_with("0.0007"), "{costs}");
    assert!(row("stub")["cost"].as_str().unwrap().starts_with("0.000042"), "{costs}");
}
