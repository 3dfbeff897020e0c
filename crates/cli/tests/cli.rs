//! The `larder` command from outside: the real binary, a store and a project of its own, and a stub for the provider.
//! Holds the CLI contract that scripts rely on: fields of the JSON forms, exit codes, and what never leaves.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod support;

use std::collections::BTreeSet;

use larder_testkit::stub::{Answer, End};
use serde_json::{Value, json};
use support::{Shop, keys, reply, reply_text};

/// A text far larger than the budget of any recipe here.
fn long_text() -> String {
    (1..=3000).map(|line| format!("Line {line} says that lamp {line} costs {} euros.\n", line * 7)).collect()
}

#[test]
fn a_verbose_version_lists_what_is_compiled_in() {
    let shop = Shop::new();
    let plain = shop.ok(&["--version"]).out;
    assert_eq!(plain, format!("larder {}\n", env!("CARGO_PKG_VERSION")));
    assert_eq!(shop.ok(&["-V"]).out, plain);
    let verbose = shop.ok(&["--version", "--verbose"]).out;
    assert_eq!(shop.ok(&["-V", "-v"]).out, verbose);
    assert_eq!(shop.ok(&["-vV"]).out, verbose);
    let rest = verbose.strip_prefix(&plain).unwrap();
    let facts: Vec<(&str, &str)> = rest.lines().map(|line| line.split_once(": ").unwrap()).collect();
    let names: Vec<&str> = facts.iter().map(|(name, _)| *name).collect();
    let expected =
        ["commit", "target", "compiler", "profile", "features", "tokenizers", "grammars", "sqlite"];
    assert_eq!(names, expected);
    assert!(facts.iter().all(|(_, fact)| !fact.is_empty()), "{verbose}");
    for part in ["s3", "o200k_base", "Rust", "rustc 1."] {
        assert!(verbose.contains(part), "{part}: {verbose}");
    }
}

#[test]
fn count_says_tokens_label_and_tokenizer() {
    let shop = Shop::new();
    shop.write("a.txt", "hello world\n");
    let counted = shop.json(&["count", "a.txt"]);
    assert_eq!(
        counted,
        json!({"tokens": 3, "label": "exact", "tokenizer": "cl100k_base", "over_limit": false})
    );
    assert_eq!(shop.ok(&["count", "a.txt", "--tokenizer", "o200k_base"]).out, "3\n");
    assert_eq!(shop.json(&["count", "a.txt", "--tokenizer", "bytes"])["tokens"], 12);
    assert_eq!(shop.json(&["count", "a.txt", "--tokenizer", "claude"])["label"], "estimated");
    assert_eq!(shop.json(&["count", "a.txt", "--tokenizer", "gpt-4o-mini"])["tokenizer"], "o200k_base");
}

#[test]
fn count_stops_at_its_limit() {
    let shop = Shop::new();
    shop.write("long.txt", long_text());
    let over = shop.json(&["count", "long.txt", "--limit", "100"]);
    assert_eq!((&over["tokens"], &over["over_limit"]), (&Value::Null, &json!(true)));
    assert_eq!(shop.ok(&["count", "long.txt", "--limit", "100"]).out, "more than 100\n");
}

#[test]
fn count_reads_standard_input() {
    let shop = Shop::new();
    assert_eq!(shop.run_with(&["count", "-"], b"hello world\n").out, "3\n");
}

#[test]
fn count_refuses_a_name_it_does_not_know_and_lists_those_it_does() {
    let shop = Shop::new();
    shop.write("a.txt", "hello");
    let ran = shop.fails(1, &["count", "a.txt", "--tokenizer", "nosuch"]);
    assert!(ran.err.contains("\"nosuch\"") && ran.err.contains("cl100k_base"), "{}", ran.err);
    let others = ", smollm2, the name or id of a model, or the path of a tokenizer.json or .gguf file";
    assert!(ran.err.contains(others), "{}", ran.err);
}

#[test]
fn condensed_text_ends_in_a_line_break_where_the_original_does_and_it_fits() {
    let shop = Shop::new();
    let original = long_text();
    let original = original.trim_end();
    for (text, ends) in [(format!("{original}\n"), true), (original.to_owned(), false)] {
        shop.write("long.txt", text);
        for to in ["150", "200", "300"] {
            let args = ["condense", "long.txt", "--to", to];
            let condensed = shop.json(&args)["text"].as_str().unwrap().to_owned();
            let broken = format!("{}\n", condensed.strip_suffix('\n').unwrap_or(&condensed));
            let tokens = shop.run_with(&["count", "-"], broken.as_bytes()).out;
            let [tokens, target] = [tokens.trim(), to].map(|number| number.parse::<usize>().unwrap());
            let fits = tokens <= target;
            let expected = if ends && fits { &broken } else { &condensed };
            assert_eq!(&shop.ok(&args).out, expected, "to {to}");
        }
    }
}

#[test]
fn count_takes_the_names_and_ids_of_the_model_table() {
    let shop = Shop::new();
    shop.write("a.txt", "hello world\n");
    let model = |name: &str, id: &str, more: &str| {
        format!(
            "[models.{name}]\nprovider = \"openai\"\nid = \"{id}\"\nwindow = 8000\nmax_output = 100\n{more}\n"
        )
    };
    let table = [
        model("house", "acme-large-2", "tokenizer = \"o200k_base\"\n"),
        model("mini", "gpt-4o-mini", ""),
        model("odd", "acme-odd", ""),
    ];
    shop.write("larder.toml", table.concat());
    for name in ["house", "acme-large-2", "mini"] {
        let counted = shop.json(&["count", "a.txt", "--tokenizer", name]);
        assert_eq!(counted["tokenizer"], "o200k_base", "{name}");
    }
    let ran = shop.fails(1, &["count", "a.txt", "--tokenizer", "odd"]);
    assert!(ran.err.contains("there is no tokenizer \"odd\""), "{}", ran.err);
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let shop = Shop::new();
    shop.write("latin1.txt", [b'a', 0xE9, b'b']);
    let ran = shop.fails(1, &["count", "latin1.txt"]);
    assert!(ran.err.contains("latin1.txt is not UTF-8 text: byte 1"), "{}", ran.err);
    let ran = shop.fails(1, &["count", "missing.txt"]);
    assert!(ran.err.contains("cannot read missing.txt"), "{}", ran.err);
}

#[test]
fn the_usage_of_an_error_lists_no_option_that_the_environment_sets() {
    let told = Shop::new().fails(2, &["runs", "show"]).err;
    assert!(told.contains("Usage: larder runs show <ID>\n"), "{told}");
    assert!(Shop::new().ok(&["runs", "--help"]).out.contains("[env: LARDER_HOME]"));
}

#[test]
fn a_command_line_that_is_wrong_is_usage() {
    let shop = Shop::new();
    shop.fails(2, &["nosuch"]);
    shop.fails(2, &["condense", "a.txt"]);
    shop.fails(2, &["rehydrate", "no-pointer"]);
    for line in [["turn", "show", "abc"], ["jobs", "cancel", "x"], ["interventions", "show", "-"]] {
        let ran = shop.fails(2, &line);
        assert!(ran.err.contains("expected a number, such as 7"), "{}", ran.err);
    }
    for second in [["--doc", "b=-"], ["--history", "-"]] {
        let ran = shop.fails(2, &[&["run", "notes/summary", "--doc", "a=-"][..], &second].concat());
        let told = format!("--doc a=- and {} both read standard input", second.join(" "));
        assert!(ran.err.contains(&told), "{}", ran.err);
    }
    shop.write("prose.md", "Words, and no JSON.");
    let ran = shop.fails(2, &["condense", "prose.md", "--to", "50", "--type", "json"]);
    assert!(ran.err.contains("prose.md does not begin with { or ["), "{}", ran.err);
}

#[test]
fn condensed_text_fits_and_its_original_comes_back_byte_for_byte() {
    let shop = Shop::new();
    let original = long_text();
    shop.write("long.txt", &original);
    let condensed =
        shop.json(&["condense", "long.txt", "--to", "300", "--query", "What does lamp 343 cost?"]);
    for key in ["text", "tokens", "original_tokens", "type", "gaps", "probes"] {
        assert!(condensed.get(key).is_some(), "{key} is missing: {condensed}");
    }
    assert_eq!(keys(&condensed["probes"]), ["kept", "recoverable", "lost"]);
    assert_eq!(condensed["probes"]["lost"], 0);
    assert!(condensed["tokens"].as_u64().unwrap() <= 300);
    shop.write("condensed.txt", condensed["text"].as_str().unwrap());
    assert_eq!(shop.json(&["count", "condensed.txt"])["tokens"], condensed["tokens"]);

    let pointer = condensed["pointer"].as_str().unwrap();
    assert_eq!(shop.ok(&["rehydrate", pointer]).out, original);
    assert!(shop.ok(&["condense", "long.txt", "--to", "300"]).out.contains(pointer));
    for gap in condensed["gaps"].as_array().unwrap() {
        for key in ["unit", "range", "count", "pointer"] {
            assert!(gap.get(key).is_some(), "{key} is missing: {gap}");
        }
        let (start, end) = (gap["bytes"]["start"].as_u64().unwrap(), gap["bytes"]["end"].as_u64().unwrap());
        let gone = shop.ok(&["rehydrate", gap["pointer"].as_str().unwrap()]).out;
        assert_eq!(
            gone.trim_end_matches('\n'),
            original[start as usize..end as usize].trim_end_matches('\n')
        );
    }
}

#[test]
fn a_condensation_is_explained_unit_by_unit() {
    let shop = Shop::new();
    shop.write("long.txt", long_text());
    let args = ["condense", "long.txt", "--to", "300", "--query", "What does lamp 343 cost?", "--explain"];
    let explained = shop.json(&args);
    let units = explained["units"].as_array().unwrap();
    let fates: BTreeSet<&str> = units.iter().map(|unit| unit["fate"].as_str().unwrap()).collect();
    assert!(fates.contains("shown") && fates.contains("left_out"), "{fates:?}");
    assert!(explained["further"].as_array().is_some_and(|further| !further.is_empty()));
    let plain = shop.ok(&args[..7]).out;
    assert!(plain.contains("lamp 343"), "{plain}");
    let table = shop.ok(&args).out;
    assert!(table.contains("more tokens would show"), "{table}");
}

#[test]
fn the_smallest_target_that_keeps_every_kind_is_found() {
    let shop = Shop::new();
    let line = |n: usize| match n % 100 {
        7 => format!("2026-01-02T03:04:05Z WARN disk {n} is nearly full\n"),
        _ => format!("2026-01-02T03:04:05Z INFO worker {n} took job {}\n", n * 7),
    };
    shop.write("a.log", (0..500).map(line).collect::<String>());
    let condensed = shop.json(&["condense", "a.log", "--to", "auto"]);
    let text = condensed["text"].as_str().unwrap();
    assert!(text.contains(" WARN disk ") && text.contains(" INFO worker "), "{text}");
    assert!(condensed["tokens"].as_u64().unwrap() < 250, "{condensed}");
    shop.write("long.txt", long_text());
    shop.fails(2, &["condense", "long.txt", "--to", "auto"]);
}

#[test]
fn json_holds_every_character() {
    let shop = Shop::new();
    let text: String = (1..=0xa0).filter_map(char::from_u32).collect();
    shop.write("all.txt", &text);
    let condensed = shop.json(&["condense", "all.txt", "--to", "10000"]);
    assert_eq!(condensed["text"], text);
}

#[test]
fn rehydrate_gives_the_selection_and_nothing_else() {
    let shop = Shop::new();
    let original = long_text();
    shop.write("long.txt", &original);
    let pointer = shop.pointer_to("long.txt");
    let first_two: String = original.split_inclusive('\n').skip(1).take(2).collect();
    for lines in ["2:3", "2-3"] {
        assert_eq!(shop.ok(&["rehydrate", &pointer, "--lines", lines]).out, first_two);
    }
    assert_eq!(shop.ok(&["rehydrate", &pointer, "--bytes", "5:11"]).out, original[5..11]);
    assert!(shop.ok(&["rehydrate", &pointer, "--grep", "nowhere"]).err.contains("no line matches"));
    let found = shop.ok(&["rehydrate", &pointer, "--grep", "lamp 34[34] "]).out;
    assert!(
        found.contains("Line 343 ") && found.contains("Line 344 ") && !found.contains("Line 345 "),
        "{found}"
    );

    let orders: Vec<Value> = (0..900).map(|id| json!({"id": id, "name": format!("lamp {id}")})).collect();
    shop.write("orders.json", json!({ "orders": orders }).to_string());
    let pointer = shop.pointer_to("orders.json");
    assert_eq!(shop.ok(&["rehydrate", &pointer, "--path", "$.orders[7].id"]).out.trim(), "7");
    assert_eq!(shop.ok(&["rehydrate", &pointer, "--path", "/orders/8/name"]).out.trim(), "\"lamp 8\"");

    shop.fails(2, &["rehydrate", &pointer, "--lines", "x:y"]);
    shop.fails(2, &["rehydrate", &pointer, "--lines", "1:2", "--grep", "x"]);
}

#[test]
fn rehydrate_keeps_bytes_that_terminals_would_change() {
    let shop = Shop::new();
    let original: String =
        (0..2000).map(|line| format!("{line}: \u{1b}[31mred\u{1b}[0m and a tab\tand 世界\r\n")).collect();
    shop.write("colours.log", &original);
    let pointer = shop.pointer_to("colours.log");
    assert_eq!(shop.ok(&["rehydrate", &pointer]).out, original);
}

#[test]
fn a_pointer_that_was_never_given_out_or_is_anothers_opens_nothing() {
    let shop = Shop::new();
    shop.write("long.txt", long_text());
    let pointer = shop.pointer_to("long.txt");
    let forged = format!("{}x{}", &pointer[..6], &pointer[7..]);
    assert_eq!(shop.run(&["rehydrate", &forged]).out, "");
    let other = shop.run(&["rehydrate", &pointer, "--user", "somebody-else"]);
    assert_eq!((other.code, other.out.as_str()), (1, ""), "{}", other.err);
}

#[test]
fn explain_sends_nothing_and_accounts_for_every_part() {
    let shop = Shop::with_provider([]);
    shop.write("long.txt", long_text());
    let args = ["explain", "notes/summary", "--doc", "notes=long.txt", "--query", "What does lamp 343 cost?"];
    let receipt = shop.json(&args);
    for key in ["recipe", "version", "model", "tokenizer", "budget", "total", "refused", "parts", "messages"]
    {
        assert!(receipt.get(key).is_some(), "{key} is missing: {receipt}");
    }
    assert_eq!((&receipt["recipe"], &receipt["refused"]), (&json!("notes/summary"), &Value::Null));
    for part in receipt["parts"].as_array().unwrap() {
        for key in ["slot", "source", "rendition", "tokens", "reason"] {
            assert!(part.get(key).is_some(), "{key} is missing: {part}");
        }
        assert_eq!(part.get("pointer").is_some(), part["rendition"] != "whole", "{part}");
    }
    assert!(receipt["total"].as_u64() <= receipt["budget"]["available"].as_u64());
    assert!(receipt["messages"].to_string().contains("What does lamp 343 cost?"));
    assert_eq!(shop.json(&args), receipt, "the same input gives the same receipt");
    assert!(shop.ok(&args).out.contains("With 2000 more tokens:"));
    assert_eq!(shop.json(&["runs"]), json!([]));
    assert_eq!(shop.seen().len(), 0);
}

#[test]
fn a_run_gives_output_citations_receipt_usage_and_cost() {
    let shop = Shop::with_provider([reply(&json!({"answer": "2401 euros", "citations": ["notes"]}))]);
    shop.write("long.txt", long_text());
    let run =
        shop.json(&["run", "notes/typed", "--doc", "notes=long.txt", "--query", "What does lamp 343 cost?"]);
    assert_eq!(
        keys(&run),
        ["run_id", "output", "reply", "citations", "receipt", "usage", "cost", "models", "latency_ms"]
    );
    assert_eq!(run["output"]["answer"], "2401 euros");
    assert_eq!(
        (&run["citations"][0]["part"], &run["citations"][0]["source"]),
        (&json!("notes"), &json!("long.txt"))
    );
    assert_eq!((&run["usage"]["input"], &run["usage"]["output"]), (&json!(100), &json!(10)));

    let sent = shop.seen();
    assert_eq!(sent.len(), 1);
    let sent = sent[0].json();
    assert_eq!(sent["model"], "gpt-4o-mini");
    let texts = |messages: &Value| -> Vec<String> {
        let text = |content: &Value| match content {
            Value::String(text) => text.clone(),
            pieces => {
                pieces.as_array().unwrap().iter().map(|piece| piece["text"].as_str().unwrap()).collect()
            }
        };
        messages.as_array().unwrap().iter().map(|message| text(&message["content"])).collect()
    };
    assert_eq!(
        texts(&sent["messages"]),
        texts(&run["receipt"]["messages"]),
        "what is sent is what was packed"
    );
    assert!(sent["messages"].to_string().contains("What does lamp 343 cost?"));

    let recorded = shop.json(&["runs"]);
    assert_eq!((&recorded[0]["run_id"], &recorded[0]["status"]), (&run["run_id"], &json!("completed")));
    // The text is far larger than the budget, so packing stopped counting it; what was saved is known all the same.
    let part =
        run["receipt"]["parts"].as_array().unwrap().iter().find(|part| part["source"] == "long.txt").unwrap();
    let counted = shop.json(&["count", "long.txt", "--tokenizer", "o200k_base"])["tokens"].as_u64().unwrap();
    assert_eq!(part["original_tokens"], Value::Null);
    assert_eq!(recorded[0]["compression_savings"].as_u64(), Some(counted - part["tokens"].as_u64().unwrap()));
    let shown = shop.json(&["runs", "show", run["run_id"].as_str().unwrap()]);
    assert_eq!(shown["receipt"]["parts"], run["receipt"]["parts"]);
    assert_eq!(shown["query"], "whole", "the call held the query");
    assert!(shown["output"].as_str().unwrap().contains("2401 euros"));
    for part in run["receipt"]["parts"].as_array().unwrap() {
        if let Some(pointer) = part["pointer"].as_str() {
            assert_eq!(shop.ok(&["rehydrate", pointer]).out, long_text());
        }
    }
    assert_eq!(shop.json(&["verify"])["problems"], json!([]));
}

#[test]
fn a_plain_run_prints_the_answer_on_stdout_and_talk_on_stderr() {
    let shop = Shop::with_provider([reply_text("It costs 2401 euros.")]);
    shop.write("a.txt", "Lamp 343 costs 2401 euros.\n");
    let ran =
        shop.ok(&["run", "notes/summary", "--doc", "notes=a.txt", "--query", "What does lamp 343 cost?"]);
    assert_eq!(ran.out, "It costs 2401 euros.\n");
    assert!(ran.err.contains("tokens in"), "{}", ran.err);
}

#[test]
fn a_query_larger_than_the_budget_is_refused_and_nothing_is_sent() {
    let shop = Shop::with_provider([]);
    shop.write("a.txt", "Lamp 343 costs 2401 euros.\n");
    let query = "lamp ".repeat(4000);
    let args = ["notes/summary", "--doc", "notes=a.txt", "--query", &query];
    let ran = shop.fails(1, &[&["run"], &args[..]].concat());
    assert!(ran.err.contains("nothing was sent"), "{}", ran.err);
    assert_eq!(shop.seen().len(), 0);
    assert_eq!(shop.json(&["runs"])[0]["status"], "refused");
    let ran = shop.fails(1, &[&["explain"], &args[..], &["--format", "json"]].concat());
    let receipt: Value = serde_json::from_str(&ran.out).unwrap();
    assert!(receipt["refused"]["deficit"].as_u64().unwrap() > 0, "{receipt}");
    assert!(receipt["refused"]["parts"].to_string().contains("query"), "{receipt}");
}

#[test]
fn a_provider_that_fails_is_exit_3_and_recorded() {
    let failures = [
        Answer::json(500, &json!({"error": {"message": "broken"}})),
        Answer::json(429, &json!({"error": {"message": "slow down"}})),
        reply_text("half of an ans").cut_at([40]).ending(End::Break),
        Answer::new(200, "application/json", "{ this is no JSON"),
    ];
    for failure in failures {
        let shop = Shop::with_provider([failure.clone()]);
        shop.write("a.txt", "Lamp 343 costs 2401 euros.\n");
        let ran =
            shop.fails(3, &["run", "notes/summary", "--doc", "notes=a.txt", "--query", "What costs 2401?"]);
        assert!(ran.err.contains("stub"), "the model is named: {}", ran.err);
        assert_eq!(shop.seen().len(), 1, "{failure:?}");
        assert_eq!(shop.json(&["runs"])[0]["status"], "failed");
        shop.ok(&["verify"]);
    }
}

#[test]
fn a_rejected_key_is_a_user_error() {
    let shop = Shop::with_provider([Answer::json(401, &json!({"error": {"message": "bad key"}}))]);
    shop.write("a.txt", "Lamp 343 costs 2401 euros.\n");
    shop.fails(1, &["run", "notes/summary", "--doc", "notes=a.txt", "--query", "What costs 2401?"]);
}

#[test]
fn a_model_that_hangs_is_left_after_its_time() {
    let shop = Shop::with_provider([reply_text("never").ending(End::Hang)]);
    shop.configure("timeout_ms = 300\n", "");
    shop.write("a.txt", "Lamp 343 costs 2401 euros.\n");
    let ran = shop.fails(3, &["run", "notes/hasty", "--doc", "notes=a.txt", "--query", "What costs 2401?"]);
    assert_eq!(shop.json(&["runs"])[0]["error"], "timeout", "{}", ran.err);
}

#[test]
fn garbage_is_sent_back_with_what_is_wrong_and_then_becomes_an_intervention() {
    let shop = Shop::with_provider([reply_text("I am no JSON at all"), reply(&json!({"answer": 7}))]);
    shop.write("a.txt", "Lamp 343 costs 2401 euros.\n");
    let ran =
        shop.fails(1, &["run", "notes/typed", "--doc", "notes=a.txt", "--query", "What does lamp 343 cost?"]);
    assert!(ran.err.contains("`larder interventions show 1`"), "{}", ran.err);

    let sent: Vec<String> = shop.seen().iter().map(|seen| seen.json()["messages"].to_string()).collect();
    assert_eq!(sent.len(), 2);
    assert!(!sent[0].contains("I am no JSON at all"));
    assert!(sent[1].contains("I am no JSON at all"), "the repair shows the model its answer: {}", sent[1]);
    assert!(sent[1].contains("What does lamp 343 cost?"));

    let waiting = shop.json(&["interventions"]);
    assert_eq!((&waiting[0]["type"], &waiting[0]["recipe"]), (&json!("gate_failure"), &json!("notes/typed")));
    assert_eq!(waiting[0]["run_id"], shop.json(&["runs"])[0]["run_id"]);
    assert_eq!(shop.json(&["runs"])[0]["status"], "intervention");
}

#[test]
fn the_hint_to_an_intervention_leads_to_that_of_its_user() {
    let shop = Shop::with_provider([reply_text("no JSON"), reply_text("nor is this")]);
    shop.write("a.txt", "Lamp 343 costs 2401 euros.\n");
    let run = ["run", "notes/typed", "--doc", "notes=a.txt", "--query", "What costs 2401?", "--user", "ann"];
    let ran = shop.fails(1, &run);
    assert!(ran.err.contains("`larder interventions show 1 --user ann`"), "{}", ran.err);
    assert!(shop.ok(&["interventions", "show", "1", "--user", "ann"]).out.contains("gate_failure"));
    shop.fails(1, &["interventions", "show", "1"]);
}

#[test]
fn an_answer_that_is_mended_counts() {
    let good = json!({"answer": "2401 euros", "citations": ["notes"]});
    let shop = Shop::with_provider([reply_text("no JSON"), reply(&good)]);
    shop.write("a.txt", "Lamp 343 costs 2401 euros.\n");
    let run =
        shop.json(&["run", "notes/typed", "--doc", "notes=a.txt", "--query", "What does lamp 343 cost?"]);
    assert_eq!(run["output"], good);
    assert_eq!(run["usage"]["output"], 20, "both calls are billed");
    assert_eq!(shop.json(&["runs"])[0]["retries"], 1);
}

#[test]
fn a_citation_of_text_outside_the_prompt_is_not_evidence() {
    let made_up = json!({"answer": "2401 euros", "citations": ["passage-99"]});
    let shop = Shop::with_provider([reply(&made_up), reply(&made_up)]);
    shop.write("a.txt", "Lamp 343 costs 2401 euros.\n");
    let ran =
        shop.fails(1, &["run", "notes/typed", "--doc", "notes=a.txt", "--query", "What does lamp 343 cost?"]);
    assert!(ran.err.contains("passage-99"), "{}", ran.err);
}

#[test]
fn a_fallback_with_a_smaller_window_gets_a_smaller_prompt() {
    let shop = Shop::with_provider([
        Answer::json(500, &json!({"error": {"message": "broken"}})),
        reply_text("It costs 2401 euros."),
    ]);
    shop.configure("fallback = \"small\"\n", "[models.small]\nwindow = 1000\nmax_output = 300\n");
    shop.write("long.txt", long_text());
    let run = shop.json(&[
        "run",
        "notes/summary",
        "--doc",
        "notes=long.txt",
        "--query",
        "What does lamp 343 cost?",
    ]);
    assert_eq!(run["receipt"]["model"], "small");
    assert!(run["receipt"]["total"].as_u64().unwrap() <= 500, "1000 - 300 - 200");
    let prompts: Vec<String> = shop.seen().iter().map(|seen| seen.json()["messages"].to_string()).collect();
    assert_eq!(prompts.len(), 2);
    assert!(prompts[1].len() < prompts[0].len() / 2, "{} and {} bytes", prompts[0].len(), prompts[1].len());
    assert!(prompts.iter().all(|prompt| prompt.contains("What does lamp 343 cost?")));
}

#[test]
fn a_missing_recipe_halts_with_the_wording_and_an_intervention() {
    let shop = Shop::with_provider([]);
    let ran = shop.fails(1, &["run", "notes/summry", "--query", "What?"]);
    assert!(ran.err.contains("Recipe not found: notes/summry"), "{}", ran.err);
    assert!(ran.err.contains("notes/summary"), "the nearest name is suggested: {}", ran.err);
    assert_eq!((ran.out.as_str(), shop.seen().len()), ("", 0));
    let waiting = shop.json(&["interventions"]);
    assert_eq!(waiting[0]["type"], "config_error");
    assert_eq!(waiting[0]["message"], "Missing recipe: notes/summry");
    shop.fails(1, &["run", "notes/summry", "--query", "What?"]);
    assert_eq!(shop.json(&["interventions"]).as_array().unwrap().len(), 1, "once is enough");
    let ran = shop.fails(1, &["run", "ask/anwser", "--query", "What?"]);
    assert!(ran.err.contains("did you mean `ask/answer`?"), "built-in recipes count: {}", ran.err);
    let ran = shop.fails(1, &["explain", "nosuch", "--query", "What?"]);
    for names in ["one of `hasty`, `summary`, `typed`; built in: one of `", " more"] {
        assert!(ran.err.contains(names), "{}", ran.err);
    }
}

#[test]
fn interventions_are_listed_shown_and_settled() {
    let shop = Shop::with_provider([]);
    assert_eq!(shop.json(&["interventions"]), json!([]));
    shop.fails(1, &["run", "notes/nosuch", "--query", "What?"]);
    assert!(shop.ok(&["interventions"]).out.contains("#1 "));
    let one = shop.ok(&["interventions", "show", "1"]).out;
    for told in ["recipe notes/nosuch", "`larder interventions resolve 1 "] {
        assert!(one.contains(told), "{one}");
    }
    assert_eq!(shop.json(&["interventions", "show", "1"])["resolution"], Value::Null);
    shop.ok(&["interventions", "resolve", "1", "the recipe is written now"]);
    assert_eq!(shop.json(&["interventions"]), json!([]));
    assert_eq!(shop.json(&["interventions", "--all"])[0]["resolution"], "the recipe is written now");
    shop.fails(1, &["interventions", "resolve", "99", "done"]);
    shop.fails(1, &["interventions", "show", "99"]);
}

#[test]
fn check_reports_every_problem_as_data() {
    let shop = Shop::with_provider([]);
    shop.write("recipes/notes/broken.yaml", "name: other\nmodel_layer: LUNGS\nprompt_fils: []\n");
    shop.write("recipes/notes/nul.yaml", "name: nul\0");
    shop.write("larder.toml", "[policy]\ncompression_enabeld = true\n");
    let ran = shop.fails(1, &["check", "--format", "json"]);
    let problems: Vec<Value> = serde_json::from_str(&ran.out).unwrap();
    assert!(problems.len() >= 5, "{}", ran.out);
    for problem in &problems {
        for key in ["code", "severity", "file", "line", "column", "message", "help"] {
            assert!(problem.get(key).is_some(), "{key} is missing: {problem}");
        }
        assert!(problem["line"].as_u64().unwrap() >= 1 && problem["column"].as_u64().unwrap() >= 1);
    }
    for file in ["broken.yaml", "nul.yaml", "larder.toml"] {
        assert!(problems.iter().any(|problem| problem["file"].as_str().unwrap().ends_with(file)), "{file}");
    }
    let plain = shop.fails(1, &["check"]).out;
    assert!(plain.contains("recipes/notes/broken.yaml:") && plain.contains("compression_enabled"), "{plain}");
}

#[test]
fn check_reports_all_mistakes_of_the_settings_at_once() {
    let shop = Shop::with_provider([]);
    let wrong = "[policy]\nenabeld = true\ndry_run = 7\nentry_cap = 3\n\
                 [slots.\"notes/sumary\"]\nnotes = 700\n[tools]\nresearch_tokens = \"many\"\n";
    shop.configure("", wrong);
    let told = shop.fails(1, &["check"]).out;
    for words in [
        "unknown setting policy.enabeld",
        "policy.dry_run cannot be 7",
        "policy.entry_cap cannot be 3",
        "notes/sumary",
        "tools.research_tokens cannot be many",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
}

#[test]
fn check_reads_recipes_by_the_budget_of_the_project_it_is_in_and_of_the_environment() {
    let shop = Shop::with_provider([]);
    let recipe = std::fs::read_to_string(shop.path().join("recipes/notes/summary.yaml")).unwrap();
    // More than the default of 12,000 in all, and no total of its own.
    let recipe = recipe.replace("total: 2000, prompt: 200, input: 1300", "prompt: 200, input: 13000");
    assert!(!recipe.contains("total:"), "{recipe}");
    shop.write("recipes/notes/summary.yaml", recipe);
    let refused = shop.fails(1, &["check"]).out;
    assert!(refused.contains("L020"), "{refused}");
    for name in ["DEFAULT_CONTEXT_BUDGET", "LARDER_DEFAULT_CONTEXT_BUDGET"] {
        let ran: support::Ran = shop.command(&["check"]).env(name, "20000").output().unwrap().into();
        assert_eq!(ran.code, 0, "{ran:?}");
    }
    let ran: support::Ran =
        shop.command(&["check"]).env("DEFAULT_CONTEXT_BUDGET", "some").output().unwrap().into();
    assert!(ran.code == 1 && ran.err.contains("$DEFAULT_CONTEXT_BUDGET"), "{ran:?}");
    shop.configure("", "[policy]\ndefault_context_budget = 20000\n");
    shop.ok(&["check"]);
    shop.ok(&["check", "."]);
}

#[test]
fn a_new_project_has_no_problems_and_is_never_overwritten() {
    let shop = Shop::new();
    shop.ok(&["init", "fresh"]);
    assert_eq!(shop.json(&["check", "fresh"]), json!([]));
    let other = shop.json(&["init", "other"]);
    assert_eq!((&other["project"], &other["created"][0]), (&json!("other"), &json!("larder.toml")));
    let ran = shop.fails(1, &["init", "fresh"]);
    assert!(ran.err.contains("nothing was written"), "{}", ran.err);
    let args = [
        "explain",
        "notes/summary",
        "--doc",
        "notes=fresh/notes.md",
        "--query",
        "What?",
        "--project",
        "fresh",
    ];
    assert_eq!(shop.json(&args)["recipe"], "notes/summary");
    shop.write("mine/notes.md", "We decided to buy lamps.\n");
    shop.ok(&["init", "mine"]);
    let notes = std::fs::read_to_string(shop.path().join("mine/notes.md")).unwrap();
    assert_eq!(notes, "We decided to buy lamps.\n");
    for path in ["mine/notes.md", "mine/notes.md/deeper"] {
        let ran = shop.fails(1, &["init", path]);
        let words = "error: mine/notes.md is not a folder; name the folder of the project";
        assert!(ran.err.starts_with(words), "{}", ran.err);
    }
}

#[test]
fn models_that_no_layer_uses_and_the_alternative_in_force_are_listed() {
    let shop = Shop::with_provider([]);
    shop.configure("", "[models.small]\nwindow = 4000\nmax_output = 500\n");
    let listed = shop.ok(&["models"]).out;
    assert!(listed.contains("VOICE   stub ") && listed.contains("-       small "), "{listed}");
    let text = std::fs::read_to_string(shop.path().join("larder.toml")).unwrap();
    let layer = "[models]\nuse_alternative = true\n[models.layers]\nVOICE = { model = \"stub\", alternative = \"small\" }\n";
    shop.write("larder.toml", text.replace("[models.layers]\nVOICE = \"stub\"\n", layer));
    let listed = shop.ok(&["models"]).out;
    assert!(listed.contains("VOICE   small "), "{listed}");
    assert!(listed.contains("(the alternative of stub)") && listed.contains("-       stub "), "{listed}");
}

#[test]
fn check_says_that_nothing_reads_recipes_below_apps() {
    let shop = Shop::new();
    shop.write("apps/recipes/recipes/notes/summary.yaml", "name: summary\n");
    shop.write("apps/prompts/notes/summary.md", "Summarize.\n");
    shop.write("apps/web/package.json", "{}");
    let told = shop.fails(1, &["check"]).out;
    for folder in ["apps/recipes", "apps/prompts"] {
        assert!(told.contains(&format!("error[L060]: {folder} is not read")), "{told}");
    }
    shop.ok(&["init", "fresh"]);
    shop.write("fresh/apps/recipes/notes.json", "{}");
    assert_eq!(shop.ok(&["check", "fresh"]).out, "1 recipe, no problems\n", "an app that is called recipes");
}

#[test]
fn check_says_what_it_checked() {
    let shop = Shop::new();
    let told = shop.ok(&["check"]).out;
    assert!(
        told.starts_with("there is no project here") && told.contains("built-in recipes were checked"),
        "{told}"
    );
    shop.ok(&["init", "fresh"]);
    assert_eq!(shop.ok(&["check", "fresh"]).out, "1 recipe, no problems\n");
    shop.write("larder.toml", "[gateway]\nretries = 1\n");
    let told = shop.ok(&["check"]).out;
    assert!(
        told.starts_with("./larder.toml and the ") && told.ends_with(" built-in recipes: no problems\n"),
        "{told}"
    );
}

#[test]
fn the_built_in_recipes_have_no_errors() {
    let problems = Shop::new().json(&["check"]);
    assert!(
        problems.as_array().unwrap().iter().all(|problem| problem["severity"] == "warning"),
        "{problems}"
    );
}

#[test]
fn config_says_where_every_value_comes_from() {
    let shop = Shop::with_provider([]);
    shop.configure("", "[policy]\nuse_llm_summarizer = true\n");
    let mut command = shop.command(&["config", "--format", "json"]);
    let output = command.env("LARDER_COMPRESSION_ENABLED", "false").output().unwrap();
    let settings: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let setting = |key: &str| settings.iter().find(|setting| setting["key"] == key).unwrap();
    assert_eq!(setting("policy.compression_enabled")["value"], "false");
    assert!(
        setting("policy.compression_enabled")["origin"].to_string().contains("LARDER_COMPRESSION_ENABLED")
    );
    let origin = |key: &str| setting(key)["origin"].clone();
    let toml = std::fs::read_to_string(shop.path().join("larder.toml")).unwrap();
    let line_of = |text: &str| toml.lines().position(|line| line.starts_with(text)).unwrap() + 1;
    let file = |line: usize| json!({"file": {"path": "./larder.toml", "line": line}});
    assert_eq!(origin("policy.use_llm_summarizer"), file(line_of("use_llm_summarizer")));
    assert_eq!(origin("models.layers.VOICE"), file(line_of("VOICE")));
    assert_eq!(
        (&setting("models.layers.MIND")["value"], origin("models.layers.MIND")),
        (&json!("(unbound)"), json!("default"))
    );
    assert_eq!(origin("policy.compression_cache_ttl_s"), "default");

    let ran: support::Ran =
        shop.command(&["config"]).env("LARDER_COMPRESSION_ENABLED", "maybe").output().unwrap().into();
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("$LARDER_COMPRESSION_ENABLED"), "{}", ran.err);
}

#[test]
fn every_illegal_setting_has_its_line_and_its_fix() {
    let shop = Shop::new();
    let models = "[models.layers]\nMIND = \"m\"\n[models.m]\nprovider = \"opnai\"\nid = \"x\"\nwindow = 9000\nmax_output = 10\n";
    let files: [(&[u8], &str, &str); 8] = [
        (b"home = \"store\"\n", ":1:1", "help: the home folder is set with --home or LARDER_HOME"),
        (b"[policy]\nopt_out_tools = 5\n", ":2:1", "policy.opt_out_tools cannot be 5\n"),
        (b"[policy]\nopt_out_tools = 5\n", ":2:1", "help: use a value such as [\""),
        (b"[documents]\nplace = \"s3:/x\"\n", ":2:1", "help: use a value such as \"s3://bucket/prefix\""),
        (b"[documents]\nplace = [\"x\"]\n", ":2:1", "documents.place cannot be [\"x\"]"),
        (b"[documents]\nplace = 5\n", ":2:1", "documents.place cannot be 5"),
        (b"[policy]\n# caf\xe9\n", ":2:6", "the file is not UTF-8 from here on"),
        (models.as_bytes(), ":4:12", "help: did you mean `openai`?"),
    ];
    for (file, place, words) in files {
        shop.write("larder.toml", file);
        let told = shop.fails(1, &["config"]).err;
        assert!(told.contains(&format!("larder.toml{place}\n")) && told.contains(words), "{words}: {told}");
        assert_eq!(told.matches("error[").count(), 1, "each problem is reported once: {told}");
    }
}

#[test]
fn config_says_what_every_setting_means() {
    let plain = Shop::new().ok(&["config"]).out;
    let mut lines = plain.lines().skip_while(|line| !line.starts_with("policy.entry_cap"));
    assert!(lines.next().unwrap().ends_with("default"), "{plain}");
    assert!(lines.next().unwrap().starts_with("    Tokens that a new tool result may have"), "{plain}");
}

#[test]
fn a_binding_taken_from_a_shipped_table_has_the_line_that_names_it() {
    let shop = Shop::new();
    shop.write(
        "larder.toml",
        "# mine\n[models]\ntable = \"coding\"\n\n[models.layers]\nMIND = \"claude-3-haiku\"\n",
    );
    let settings = shop.ok(&["config"]).out;
    let line = |key: &str| settings.lines().find(|line| line.starts_with(key)).unwrap().to_owned();
    assert!(line("models.layers.MIND").ends_with("larder.toml:6"), "{settings}");
    assert!(line("models.layers.VOICE").ends_with("larder.toml:3"), "{settings}");
    assert!(
        Shop::new()
            .ok(&["config"])
            .out
            .lines()
            .any(|line| line.contains("VOICE") && line.ends_with("default"))
    );
}

#[test]
fn check_reports_layers_that_recipes_need_and_no_model_plays() {
    let shop = Shop::with_provider([]);
    shop.ok(&["check"]);
    let recipe = std::fs::read_to_string(shop.path().join("recipes/notes/summary.yaml")).unwrap();
    shop.write("recipes/notes/planned.yaml", recipe.replace("summary", "planned").replace("VOICE", "MIND"));
    let ran = shop.fails(1, &["check", "--format", "json"]);
    let problems: Vec<Value> = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((problems.len(), &problems[0]["code"], &problems[0]["line"]), (1, &json!("L070"), &json!(1)));
    assert_eq!(problems[0]["message"], "layer MIND is bound to no model; needed by notes/planned");
    assert!(problems[0]["help"].as_str().unwrap().contains("table = \"embedded\""), "{problems:?}");
    shop.write("a.txt", "Lamp 343 costs 2401 euros.\n");
    let ran = shop.fails(1, &["run", "notes/planned", "--doc", "notes=a.txt", "--query", "What costs 2401?"]);
    assert!(ran.err.contains("layer MIND is bound to no model"), "{}", ran.err);
}

#[test]
fn check_reports_unusable_servers() {
    let shop = Shop::with_provider([]);
    let gateway = "[gateway]\nopenai = \"https://models.example/v1\"\nopenai_key_file = \"key\"\n";
    shop.configure("", gateway);
    let told = shop.fails(1, &["check"]).out;
    for words in
        ["error[L070]: gateway.openai_key_file: ", "larder.toml:", "help: write the key into that file"]
    {
        assert!(told.contains(words), "{words}: {told}");
    }
    shop.write("key", "sk-1\n");
    shop.ok(&["check"]);
}

#[test]
fn check_reports_a_tokenizer_that_is_not_there() {
    let shop = Shop::with_provider([]);
    shop.configure("tokenizer = \"nofile.json\"\n", "");
    let told = shop.fails(1, &["check"]).out;
    assert!(
        told.contains(
            "error[L070]: models.stub.tokenizer: there is no tokenizer or file called `nofile.json`"
        ),
        "{told}"
    );
}

#[test]
fn check_takes_a_folder_with_settings_only_from_wherever_it_is_named() {
    let shop = Shop::with_provider([]);
    let folder = "[gateway]\nopenai = \"https://models.example/v1\"\n";
    shop.write("gate/larder.toml", folder);
    assert!(shop.ok(&["check", "gate"]).out.contains("no problems"));
    shop.write("gate/larder.toml", folder.replace("https", "gopher"));
    assert!(shop.fails(1, &["check", "gate"]).out.contains("error[L070]: gateway.openai "));
    shop.write("empty/notes.txt", "");
    assert!(shop.fails(1, &["check", "empty"]).err.contains("it contains no recipes"));
}

#[test]
fn tokens_bounded_by_bytes_come_with_a_note_that_names_the_setting() {
    let shop = Shop::with_provider([]);
    shop.write("a.txt", "Lamp 343 costs 2401 euros.\n");
    let args = ["explain", "notes/summary", "--doc", "notes=a.txt", "--query", "What costs 2401?"];
    assert_eq!(shop.ok(&args).err, "", "counted exactly");

    let toml = std::fs::read_to_string(shop.path().join("larder.toml")).unwrap();
    let unknown = toml.replace("gpt-4o-mini", "some-model");
    shop.write("larder.toml", &unknown);
    let ran = shop.ok(&args);
    assert!(ran.out.contains("(bytes, Bounded)"), "{}", ran.out);
    assert!(ran.err.contains("set `tokenizer` under [models.stub] in larder.toml"), "{}", ran.err);

    let with = |tokenizer: &str| {
        shop.write(
            "larder.toml",
            unknown.replace("retries = 0", &format!("retries = 0\ntokenizer = \"{tokenizer}\"")),
        );
        shop.ok(&args)
    };
    assert_eq!(with("bytes").err, "", "asked for");
    shop.write("vocabularies/broken.json", "{}");
    let broken = with("vocabularies/broken.json").err;
    assert!(broken.contains("vocabularies/broken.json of stub cannot be loaded"), "{broken}");
}

/// `tokenizer` in the table may be a file beside it.
#[test]
fn a_vocabulary_beside_the_settings_counts() {
    let shop = Shop::with_provider([]);
    shop.write("a.txt", "Lamp 343 costs 2401 euros.\n");
    let words = ["[UNK]", "lamp", "costs", "euros"]
        .iter()
        .enumerate()
        .map(|(id, word)| (word.to_string(), json!(id)));
    let vocabulary = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Whitespace"}, "post_processor": null, "decoder": null,
        "model": {"type": "WordLevel", "vocab": words.collect::<serde_json::Map<_, _>>(), "unk_token": "[UNK]"},
    });
    shop.write("vocabularies/words.json", vocabulary.to_string());
    shop.configure("tokenizer = \"vocabularies/words.json\"", "");
    let ran = shop.ok(&[
        "explain",
        "notes/summary",
        "--doc",
        "notes=a.txt",
        "--query",
        "What costs 2401?",
        "--format",
        "json",
    ]);
    let receipt: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&receipt["tokenizer"], ran.err.as_str()), (&json!("words.json"), ""));
}

#[test]
fn models_lists_the_table() {
    let shop = Shop::with_provider([]);
    assert!(shop.ok(&["models"]).out.contains("stub"));
    assert_eq!(shop.json(&["models"])["models"]["models"]["stub"]["id"], "gpt-4o-mini");
    assert!(Shop::new().ok(&["models"]).out.contains("smollm2"));
    let ran = shop.fails(1, &["models", "pull", "nosuch"]);
    let words = "error: there are no weights called `nosuch`; known are: ";
    assert!(ran.err.starts_with(words), "{}", ran.err);
}

#[test]
fn the_embedded_model_without_weights_says_how_to_get_them() {
    let shop = Shop::new();
    shop.write("a.txt", "Lamp 343 costs 2401 euros.\n");
    let ran = shop.fails(1, &["ask", "a.txt", "What does lamp 343 cost?", "--generate"]);
    assert!(ran.err.contains("larder models pull"), "{}", ran.err);
}

#[test]
fn the_weights_of_the_embedded_model_are_demanded_only_where_it_is_asked() {
    let shop = Shop::with_provider([reply_text("It costs 2401 euros."), reply_text("It costs 2401 euros.")]);
    let settings = std::fs::read_to_string(shop.path().join("larder.toml")).unwrap();
    let bind = |layers: &str| {
        let bound = settings.replace("[models.layers]\n", &format!("[models.layers]\n{layers}"));
        shop.write("larder.toml", format!("[models]\ntable = \"embedded\"\n{bound}"));
    };
    bind("");
    shop.write("a.txt", "Lamp 343 costs 2401 euros.\n");
    shop.ok(&["run", "notes/summary", "--doc", "notes=a.txt", "-q", "What does lamp 343 cost?"]);
    let ran = shop.run(&["ask", "a.txt", "What does lamp 343 cost?", "--generate"]);
    assert!(!ran.err.contains("larder models pull"), "{}", ran.err);
    // The layers of a turn's first phases are still the embedded model's.
    for asks in [&["turn", "Hello"][..], &["condense", "a.txt", "--to", "10", "--by-model"]] {
        let ran = shop.fails(1, asks);
        assert!(ran.err.contains("larder models pull"), "{asks:?}: {}", ran.err);
    }
    bind("REFLEX = \"stub\"\nNERVES = \"stub\"\nMIND = \"stub\"\n");
    let ran = shop.run(&["turn", "Hello"]);
    assert!(!ran.err.contains("larder models pull"), "{}", ran.err);
}

#[test]
fn a_new_store_is_whole_and_a_damaged_one_is_not() {
    let shop = Shop::new();
    for args in [&["verify"][..], &["gc", "--dry-run"]] {
        assert!(shop.ok(args).err.contains("there is no store in "), "{args:?}");
    }
    shop.write("long.txt", long_text());
    let pointer = shop.pointer_to("long.txt");
    assert_eq!(shop.json(&["verify"])["pointers"], 1);
    let blobs = files_under(&shop.path().join("home/blobs"));
    assert_eq!(blobs.len(), 1);
    std::fs::write(&blobs[0], "damaged").unwrap();
    let ran = shop.fails(3, &["verify"]);
    assert!(ran.out.contains("1 problem\n"), "{}", ran.out);
    assert_eq!(
        shop.run(&["rehydrate", &pointer]).out,
        "",
        "damaged bytes are not passed off as the original"
    );
    shop.fails(3, &["rehydrate", &pointer]);
    let outside = tempfile::tempdir().unwrap();
    let to = |name: &str| outside.path().join(name).to_str().unwrap().to_owned();
    for args in [&["export", "local", "--to", &to("files")][..], &["backup", &to("copy")]] {
        let ran = shop.fails(3, args);
        assert!(ran.out.contains("home/blobs/u-local/"), "{ran:?}");
    }
    for whole in ["files/manifest.json", "copy/backup.json"] {
        assert!(outside.path().join(whole).exists(), "{whole}");
    }
}

fn files_under(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files_under(&path)) } else { found.push(path) }
    }
    found
}

#[test]
fn completions_are_printed_for_every_shell() {
    let shop = Shop::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(shop.ok(&["completions", shell]).out.contains("rehydrate"), "{shell}");
    }
}

#[test]
fn a_closed_output_pipe_is_not_an_error() {
    let shop = Shop::new();
    shop.write("long.txt", long_text().repeat(20));
    let pointer = shop.pointer_to("long.txt");
    let mut child = shop.start(&["rehydrate", &pointer]);
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_broken_compression_recipe_stops_the_start_where_a_model_is_to_condense() {
    let shop = Shop::with_provider([]);
    shop.write("recipes/compress/compress_prior_turn.yaml", "name: compress_prior_turn\n");
    shop.write("a.txt", "Lamp 343 costs 2401 euros.\n");
    let args = ["explain", "notes/summary", "--doc", "notes=a.txt", "--query", "What?"];
    shop.ok(&args);
    shop.configure("", "[policy]\nuse_llm_summarizer = true\n");
    let ran = shop.fails(1, &args);
    assert!(ran.err.contains("content type prior_turn"), "{}", ran.err);
    assert!(ran.err.contains("compress/compress_prior_turn"), "{}", ran.err);
}

#[test]
fn condense_by_model_says_who_wrote_it_and_leads_back() {
    let shop = Shop::with_models(
        std::iter::repeat_with(|| reply_text(&"It lists lamps and what they cost. ".repeat(3))).take(300),
    );
    shop.configure_layers(&["NERVES"], "", "");
    let original = "Many lamps hang there, and each has its price on a small card.\n".repeat(100);
    shop.write("long.txt", &original);
    let args = ["condense", "long.txt", "--to", "200", "--by-model"];
    let condensed = shop.json(&args);
    assert_eq!(condensed["author"]["model"], "stub", "{condensed}");
    assert_eq!(condensed["author"]["recipe"], "compress/generic");
    let calls = condensed["condensing"]["calls"].as_u64().unwrap();
    assert!(calls >= 2 && shop.seen().len() as u64 == calls, "{condensed}");
    assert_eq!(shop.ok(&["rehydrate", condensed["pointer"].as_str().unwrap()]).out, original);
    let again = shop.json(&args);
    assert_eq!((&again["text"], &again["condensing"]["calls"]), (&condensed["text"], &json!(0)), "cached");
    let ran = shop.ok(&["condense", "long.txt", "--to", "199", "--by-model"]);
    assert!(ran.out.contains("lamps and what they cost") && ran.err.contains("by stub"), "{ran:?}");
}

#[test]
fn condense_by_a_model_that_fails_is_by_rule_and_says_so() {
    let shop = Shop::with_models([Answer::json(500, &json!({"error": {"message": "broken"}}))]);
    shop.configure_layers(&["NERVES"], "", "");
    shop.write("long.txt", "Many lamps hang there, and each has its price.\n".repeat(20));
    let condensed = shop.json(&["condense", "long.txt", "--to", "100", "--by-model"]);
    assert!(condensed.get("author").is_none() && condensed["tokens"].as_u64().unwrap() <= 100);
    assert!(condensed["condensing"]["failures"].to_string().contains("500"), "{condensed}");
}

#[test]
fn a_mistyped_command_is_answered_with_the_one_that_was_meant() {
    let shop = Shop::new();
    for (typed, meant) in [
        (&["serv"][..], "'serve'"),
        (&["keys", "crate"], "'create'"),
        (&["turn", "lst"], "did you mean `larder turn list`?"),
        (&["turn", "resum", "3"], "did you mean `larder turn resume`?"),
        (&["turn", "lst", "--limit", "3"], "did you mean `larder turn list`?"),
        (&["--user", "ada", "turn", "shwo", "1"], "did you mean `larder turn show`?"),
    ] {
        let ran = shop.fails(2, typed);
        assert!(ran.err.contains(meant) && ran.out.is_empty(), "{typed:?}: {ran:?}");
    }
    let other = shop.fails(2, &["turn", "list", "3"]).err;
    assert!(other.contains("unexpected argument") && !other.contains("did you mean"), "{other}");
}

#[test]
fn options_before_a_command_of_turn_never_make_a_question_of_it() {
    let shop = Shop::with_provider([]);
    let project = shop.path().to_str().unwrap();
    for globals in [&["--project", project][..], &["--format=plain", "-v"], &["--user", "mara"]] {
        let ran = shop.ok(&[&["turn"], globals, &["list"]].concat());
        assert!(ran.err.contains("there are no turns yet"), "{globals:?}: {}", ran.err);
        let ran = shop.fails(1, &[&["turn"], globals, &["show", "1"]].concat());
        assert!(ran.err.contains("1"), "{globals:?}: {}", ran.err);
    }
    for wrong in [&["turn", "--yes", "list"][..], &["turn", "--mode", "code", "show", "1"]] {
        let ran = shop.fails(2, wrong);
        assert!(ran.err.contains("first, then its options"), "{wrong:?}: {}", ran.err);
    }
    assert!(shop.seen().is_empty(), "nothing is asked");
}

#[test]
fn commands_that_only_read_make_no_store() {
    let shop = Shop::new();
    for args in [
        &["runs"][..],
        &["interventions"],
        &["jobs"],
        &["costs"],
        &["trends"],
        &["transcript"],
        &["turn", "list"],
        &["revisions"],
        &["gc", "--dry-run"],
    ] {
        shop.ok(args);
        assert!(!shop.path().join("home").exists(), "{args:?}");
    }
}

#[test]
fn limits_and_decisions_that_mean_nothing_are_refused_with_what_is_expected() {
    let shop = Shop::new();
    for args in [
        &["runs", "--limit", "0"][..],
        &["turn", "list", "--limit", "0"],
        &["turn", "x", "--max-tokens", "0"],
        &["run", "x", "-q", "y", "--until-done", "--max-rounds", "0"],
    ] {
        let ran = shop.fails(2, args);
        assert!(ran.err.contains("expected a whole number from 1"), "{ran:?}");
    }
    let ran = shop.fails(2, &["interventions", "resolve", "1", " "]);
    assert!(ran.err.contains("say what was decided"), "{ran:?}");
}

#[test]
fn lines_beyond_the_end_are_those_that_there_are() {
    let shop = Shop::new();
    let text: String = (1..=900).map(|line| format!("line {line} of a long note\n")).collect();
    shop.write("note.md", text);
    let pointer = shop.pointer_to("note.md");
    let ran = shop.ok(&["rehydrate", &pointer, "--lines", "899:2000"]);
    assert_eq!(ran.out, "line 899 of a long note\nline 900 of a long note\n");
    let reversed = format!("{}#L5-3", pointer.split('#').next().unwrap());
    let ran = shop.fails(2, &["rehydrate", &reversed]);
    assert!(ran.err.contains("reversed: it starts at 5 and ends at 3"), "{ran:?}");
    let ran = shop.fails(1, &["rehydrate", &pointer, "--lines", "901:2000"]);
    assert!(ran.err.contains("within 1:900"), "{ran:?}");
}
