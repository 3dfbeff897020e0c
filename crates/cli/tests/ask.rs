//! `larder ask` from outside: answers over large folders and long texts, with the bytes each claim comes from, within
//! limits on calls and tokens.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod support;

use std::ops::Range;
use std::path::Path;
use std::process::Command;

use larder_testkit::stub::Answer;
use serde_json::{Value, json};
use support::{Shop, keys, reply};

const NEEDLE: &str = "The quartermaster hid the vermilion ledger beneath the granary floor.";
const ASKED: &str = "Where did the quartermaster hide the vermilion ledger?";

fn range(value: &Value) -> Range<usize> {
    let bytes: Vec<usize> = serde_json::from_value(value.clone()).unwrap();
    bytes[0]..bytes[1]
}

/// A text without end, of few words that tell nothing, and never twice the same line.
fn filler(lines: usize) -> String {
    let words =
        ["carts", "river", "bread", "winter", "letter", "soldier", "window", "garden", "horse", "evening"];
    let line = |at: usize| {
        let word = |step: usize| words[(at / step + at * step) % words.len()];
        format!(
            "On day {at} the {} of the {} stood by the {} until {}.\n",
            word(1),
            word(3),
            word(7),
            word(11)
        )
    };
    (0..lines).map(line).collect()
}

/// `text` with the needle as a paragraph of its own at this share of it.
fn with_needle(text: &str, percent: usize) -> String {
    let wanted = text.len() * percent / 100;
    let at = text[..text.floor_char_boundary(wanted)].rfind('\n').map_or(0, |at| at + 1);
    format!("{}\n{NEEDLE}\n\n{}", &text[..at], &text[at..])
}

/// The place of the needle among what is quoted, from 1, and the bytes it stands on.
fn rank_of_needle(shop: &Shop, file: &str) -> usize {
    let quotes = shop.json(&["ask", file, ASKED, "--quote"]);
    let quotes = quotes.as_array().unwrap();
    let original = std::fs::read_to_string(shop.path().join(file)).unwrap();
    for quote in quotes {
        assert_eq!(original[range(&quote["bytes"])], *quote["text"].as_str().unwrap());
    }
    let first = quotes.first().unwrap();
    let back = shop.ok(&["rehydrate", first["pointer"].as_str().unwrap()]).out;
    assert_eq!(shop.json(&["rehydrate", first["pointer"].as_str().unwrap()])["text"], back);
    assert_eq!(back, first["text"].as_str().unwrap(), "the pointer gives the passage back");
    1 + quotes.iter().position(|quote| quote["text"].as_str().unwrap().contains(NEEDLE)).unwrap()
}

#[test]
fn a_needle_is_found_at_five_depths_without_any_model() {
    let shop = Shop::new();
    let text = filler(12_000);
    for percent in [0, 25, 50, 75, 100] {
        shop.write("hay.txt", with_needle(&text, percent));
        assert_eq!(rank_of_needle(&shop, "hay.txt"), 1, "at {percent}%");
    }
}

#[test]
fn a_needle_is_found_at_five_depths_of_a_long_book() {
    let Some(book) = larder_testkit::corpora("text/war_and_peace.txt.gz") else { return };
    let text = Command::new("gzip").arg("-dc").arg(book).output().unwrap().stdout;
    let text = String::from_utf8(text).unwrap();
    assert!(text.len() > 3_000_000, "the whole book");
    let shop = Shop::new();
    for percent in [0, 25, 50, 75, 100] {
        shop.write("book.txt", with_needle(&text, percent));
        assert_eq!(rank_of_needle(&shop, "book.txt"), 1, "at {percent}%");
    }
}

#[test]
fn ten_thousand_files_take_one_call_within_its_budget() {
    let answer = "The quartermaster hid it beneath the granary floor. It was vermilion.";
    let shop = Shop::with_models([reply(&json!({"answer": answer, "citations": ["p1"]}))]);
    let text = filler(10_000);
    for (at, line) in text.lines().enumerate() {
        let line = if at == 7_777 { format!("{line}\n{NEEDLE}\n") } else { format!("{line}\n") };
        shop.write(&format!("many/{:02}/note-{at}.txt", at % 100), line);
    }
    let answered = shop.json(&["ask", "many", ASKED]);
    let file = "many/77/note-7777.txt";
    let original = std::fs::read_to_string(shop.path().join(file)).unwrap();
    assert_eq!(
        (&answered["search"]["files"], &answered["search"]["calls"], shop.seen().len()),
        (&json!(10_000), &json!(1), 1)
    );
    let receipt = &answered["receipt"];
    assert!(receipt["total"].as_u64().unwrap() <= 2000, "the budget of ask/answer");
    let claims = answered["claims"].as_array().unwrap();
    assert_eq!(claims.len(), 2);
    for claim in claims {
        assert_eq!((&claim["source"], &claim["supported"]), (&json!(file), &json!(true)), "{claim}");
        assert_eq!(original[range(&claim["bytes"])], *NEEDLE);
        assert_eq!(shop.ok(&["rehydrate", claim["pointer"].as_str().unwrap()]).out, NEEDLE);
    }
    assert_eq!(shop.json(&["verify"])["problems"], json!([]));
}

#[test]
fn ask_answers_over_a_folder_with_citations_that_resolve() {
    let shop = Shop::with_models([reply(&json!({"answer": "2401 euros", "citations": ["p1"]}))]);
    let lamps = "# Lamps\n\nLamp 343 costs 2401 euros.\n";
    shop.write("docs/lamps.md", lamps);
    shop.write("docs/other.md", "# Chairs\n\nA chair has four legs.\n");
    let run = shop.json(&["ask", "docs", "What does lamp 343 cost?"]);
    assert_eq!(
        keys(&run),
        [
            "run_id",
            "output",
            "reply",
            "citations",
            "receipt",
            "usage",
            "cost",
            "models",
            "latency_ms",
            "verified",
            "claims",
            "search"
        ]
    );
    let citation = &run["citations"][0];
    assert_eq!(citation["source"], "docs/lamps.md");
    assert!(lamps[range(&citation["bytes"])].contains("2401 euros"), "{citation}");
    assert!(citation["lines"].is_array(), "{citation}");
    let claim = &run["claims"][0];
    assert_eq!(&lamps[range(&claim["bytes"])], "Lamp 343 costs 2401 euros.");
    assert_eq!(claim["lines"], json!([3, 3]));
    assert!(shop.seen()[0].json()["messages"].to_string().contains("costs 2401 euros"));
}

/// What a terminal shows where no model is asked, and no weights are there.
fn quoted(shop: &Shop, paths: &[&str], question: &str) -> String {
    let mut args = vec!["ask"];
    args.extend(paths);
    args.push(question);
    let ran = shop.ok(&args);
    assert!(ran.err.contains("no model was asked"), "{}", ran.err);
    ran.out
}

#[test]
fn a_new_project_is_answered_by_quotation_without_weights() {
    let shop = Shop::new();
    shop.ok(&["init", "p"]);
    let said = quoted(&shop, &["p"], "When does version 2.4 ship?");
    assert!(said.starts_with("We ship version 2.4 on 14 March 2025.\n  ← p/notes.md:8-8 "), "{said}");
    assert!(!said.contains("unverified"), "{said}");
    let answered = shop.json(&["ask", "p", "When does version 2.4 ship?"]);
    assert_eq!((&answered["verified"], &answered["receipt"]["model"]), (&json!(true), &json!("")));
    let claim = &answered["claims"][0];
    let notes = std::fs::read_to_string(shop.path().join("p/notes.md")).unwrap();
    assert_eq!(notes[range(&claim["bytes"])], *claim["text"].as_str().unwrap());
    assert_eq!(answered["citations"][0]["source"], claim["source"]);
    assert_eq!((&answered["search"]["calls"], &answered["usage"]["input"]), (&json!(0), &json!(0)));
}

#[test]
fn the_question_of_the_readme_is_answered_from_this_repository() {
    let shop = Shop::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let paths = ["crates", "docs", "cookbook"].map(|folder| root.join(folder).to_string_lossy().into_owned());
    let paths = paths.each_ref().map(String::as_str);
    let said = quoted(&shop, &paths, "How do I forget a user?");
    let (answer, place) = said.split_once('\n').unwrap();
    assert!(answer.contains("`larder forget USER`") && place.contains("docs/guide/"), "{said}");
}

#[test]
fn an_answer_that_shares_no_word_with_its_citation_is_marked() {
    let wrong = || reply(&json!({"answer": "Zebras migrate southwards.", "citations": ["p1"]}));
    let shop = Shop::with_models([wrong(), wrong()]);
    shop.write("a.txt", "Lamp 343 costs 2401 euros.\n");
    let question = "What does lamp 343 cost?";
    assert!(shop.ok(&["ask", "a.txt", question]).out.contains("unverified"));
    assert_eq!(shop.json(&["ask", "a.txt", question])["verified"], json!(false));
}

#[test]
fn a_doubt_names_the_values_that_the_source_does_not_state() {
    let wrong = || reply(&json!({"answer": "The G7 costs €219.", "citations": ["p1"]}));
    let shop = Shop::with_models([wrong(), wrong()]);
    shop.write("s.csv", "model,price,stock\nG7,219,4\nG9,349,2\n");
    let question = "What does the G7 cost?";
    let said = shop.ok(&["ask", "s.csv", question]).out;
    assert!(
        said.contains("unverified: what the answer cites does not state €219 (with that currency or unit)"),
        "{said}"
    );
    assert!(!said.contains("no word in common"), "{said}");
    let answered = shop.json(&["ask", "s.csv", question]);
    assert_eq!(answered["claims"][0]["unstated"], json!(["€219"]));
    let dated = "It was made on 3 May 2026.";
    let shop = Shop::with_models(
        [dated, "It costs €219 since 3 May 2026."]
            .map(|answer| reply(&json!({"answer": answer, "citations": ["p1"]}))),
    );
    shop.write("s.csv", "model,price,stock\nG7,219,4\nG9,349,2\n");
    let said = shop.ok(&["ask", "s.csv", question]).out;
    assert!(said.contains("does not state 3 May 2026\n"), "{said}");
    let said = shop.ok(&["ask", "s.csv", question]).out;
    assert!(said.contains("does not state 3 May 2026, €219 (with that currency or unit)\n"), "{said}");
}

#[test]
fn a_claim_is_not_cut_at_an_ordinal() {
    let sentence = "Der Termin wurde auf den 14. März verlegt.";
    let shop = Shop::with_models([reply(&json!({"answer": sentence, "citations": ["p1"]}))]);
    shop.write("a.txt", format!("{sentence}\n"));
    let answered = shop.json(&["ask", "a.txt", "Wann ist der Termin?"]);
    let claims: Vec<&Value> =
        answered["claims"].as_array().unwrap().iter().map(|claim| &claim["text"]).collect();
    assert_eq!(claims, [sentence]);
}

#[test]
fn files_that_are_not_read_are_listed_with_the_reason() {
    let shop = Shop::with_models([]);
    shop.write("docs/a.txt", "Lamp 343 costs 2401 euros.\n");
    shop.write("docs/latin.txt", [b'c', b'a', b'f', 0xe9]);
    shop.write("docs/picture.bin", [0, 159, 146, 150]);
    shop.write("docs/.hidden", "Lamp");
    (0..12).for_each(|at| shop.write(&format!("docs/more/{at}.txt"), [0xff, 0xfe, b'a']));
    let ran = shop.ok(&["ask", "docs", "What does lamp 343 cost?", "--quote"]);
    assert!(ran.err.contains("skipped docs/latin.txt: not UTF-8"), "{}", ran.err);
    assert!(ran.err.contains("skipped 3 more"), "{}", ran.err);
    assert!(ran.err.contains("not read: 1 binary, 1 hidden"), "{}", ran.err);
}

#[test]
fn a_project_with_recipes_of_its_own_answers_with_the_recipe_that_ships() {
    let shop = Shop::with_provider([reply(&json!({"answer": NEEDLE, "citations": ["p1"]}))]);
    shop.write("diary.txt", NEEDLE);
    let run = shop.json(&["ask", "diary.txt", ASKED]);
    assert_eq!((&run["receipt"]["recipe"], &run["output"]["answer"]), (&json!("ask/answer"), &json!(NEEDLE)));
}

#[test]
fn a_pointer_can_be_asked_too() {
    let shop =
        Shop::with_models([reply(&json!({"answer": "Beneath the granary floor.", "citations": ["p1"]}))]);
    shop.write("hay.txt", with_needle(&filler(2_000), 40));
    let pointer = shop.pointer_to("hay.txt");
    std::fs::remove_file(shop.path().join("hay.txt")).unwrap();
    let answered = shop.json(&["ask", &pointer, ASKED]);
    assert_eq!(answered["claims"][0]["source"], pointer.as_str());
    let back = shop.ok(&["rehydrate", answered["claims"][0]["pointer"].as_str().unwrap()]).out;
    assert_eq!(back, NEEDLE);
}

#[test]
fn ask_says_when_there_is_nothing_to_read() {
    let shop = Shop::with_models([]);
    shop.write("docs/picture.bin", [0, 159, 146, 150]);
    let ran = shop.fails(1, &["ask", "docs", "What?"]);
    assert!(ran.err.contains("no readable text"), "{}", ran.err);
    let ran = shop.fails(1, &["ask", "nowhere", "What?"]);
    assert!(ran.err.contains("nowhere"), "{}", ran.err);
    shop.fails(2, &["ask", "docs"]);
    assert_eq!(shop.seen().len(), 0);
}

#[test]
fn limits_that_cannot_hold_the_answer_are_refused_before_anything_is_sent() {
    let shop = Shop::with_models([]);
    shop.write("a.txt", "Lamp 343 costs 2401 euros.\n");
    let ran = shop.fails(1, &["ask", "a.txt", "What does lamp 343 cost?", "--max-tokens", "500"]);
    assert!(ran.err.contains("--max-tokens"), "{}", ran.err);
    assert_eq!(shop.seen().len(), 0);
}

/// A step of the planner.
fn step(action: &str, text: &str, source: &str, lines: (usize, usize)) -> Answer {
    reply(&json!({
        "action": action, "text": text, "source": source, "first_line": lines.0, "last_line": lines.1,
    }))
}

/// A shop whose model plans too, over a ledger, a price list and a log.
fn planning(answers: impl IntoIterator<Item = Answer>) -> Shop {
    let shop = Shop::with_models(answers);
    shop.configure_layers(&["VOICE", "MIND"], "capabilities = [\"json_schema\"]\n", "");
    shop.write("data/people.txt", "The owner of the mill is called Bartholomew.\n");
    shop.write("data/houses.txt", format!("{}Bartholomew lives in Plum Street.\n", filler(400)));
    shop.write("data/prices.json", json!({"mill": {"rent": 412.50}, "barn": {"rent": 77}}).to_string());
    shop.write("data/day.log", format!("{}E4711 axle broken\n", "all quiet\n".repeat(2_000)));
    shop
}

#[test]
fn a_model_that_plans_searches_again_with_what_it_has_learnt() {
    let shop = planning([
        step("search", "Bartholomew rooms", "", (0, 0)),
        step("answer", "", "", (0, 0)),
        reply(&json!({"answer": "Bartholomew has rooms in Plum Street.", "citations": ["p1"]})),
    ]);
    // It shares no word with the question, so only the second search finds it.
    shop.write("data/houses.txt", format!("{}Bartholomew has rooms in Plum Street.\n", filler(400)));
    let answered = shop.json(&["ask", "data", "Where does the owner of the mill live?"]);
    assert_eq!(answered["search"]["calls"], 3);
    assert_eq!(answered["claims"][0]["source"], "data/houses.txt", "{}", answered["claims"]);
    let asked: Vec<String> = shop.seen().iter().map(|seen| seen.json()["messages"].to_string()).collect();
    assert!(asked[0].contains("called Bartholomew"), "what rules find is there from the first step");
    assert!(asked[1].contains("new passages"), "the model sees what it did: {}", asked[1]);
    assert!(asked[2].contains("Plum Street"));
}

#[test]
fn a_model_that_plans_reads_lines_patterns_and_paths() {
    let shop = planning([
        step("grep", "E[0-9]{4}", "", (0, 0)),
        step("json", "$.mill.rent", "prices.json", (0, 0)),
        step("read", "", "data/houses.txt", (401, 401)),
        step("answer", "", "", (0, 0)),
        reply(&json!({"answer": "The axle broke.", "citations": ["p1"]})),
    ]);
    let answered = shop.json(&["ask", "data", "What broke?", "--planner", "model"]);
    let last = shop.seen().last().unwrap().json()["messages"].to_string();
    for found in ["E4711 axle broken", "412.5", "Plum Street"] {
        assert!(last.contains(found), "{found} is not in {last}");
    }
    assert_eq!(answered["search"]["steps"].as_array().unwrap().len(), 4, "{}", answered["search"]);
}

#[test]
fn a_sub_question_is_answered_within_the_same_limits() {
    let shop = planning([
        step("ask", "Who owns the mill?", "", (0, 0)),
        step("answer", "", "", (0, 0)),
        reply(&json!({"answer": "Bartholomew owns it.", "citations": ["p1"]})),
        step("answer", "", "", (0, 0)),
        reply(&json!({"answer": "In Plum Street.", "citations": ["p1"]})),
    ]);
    let answered = shop.json(&["ask", "data", "Where does he live?"]);
    assert_eq!((&answered["search"]["calls"], shop.seen().len()), (&json!(5), 5));
    assert!(shop.seen()[3].json()["messages"].to_string().contains("Bartholomew owns it."));
}

#[test]
fn an_answer_without_calls_and_files_named_twice() {
    let shop = planning([reply(&json!({"answer": "In Plum Street.", "citations": ["p1"]}))]);
    let ran = shop.fails(1, &["ask", "data", "Where does he live?", "--max-calls", "0"]);
    assert!(ran.err.contains("--max-calls") && !ran.err.contains("--max-tokens"), "{}", ran.err);
    let once = shop.json(&["ask", "data", "Where does he live?", "--quote"])["search"]["files"].clone();
    let twice = shop.json(&["ask", "data", "./data", "data", "Where does he live?", "--quote"]);
    assert_eq!(twice["search"]["files"], once);
    let nothing = shop.ok(&["ask", "data", "zzqqy?", "--quote"]).out;
    assert!(!nothing.contains("covers little"), "{nothing}");
}

#[test]
fn planning_ends_at_the_limit_of_calls() {
    let searches = (0..20).map(|at| step("grep", &format!("^On day {at}7 "), "", (0, 0)));
    let answer = reply(&json!({"answer": "In Plum Street.", "citations": ["p1"]}));
    let shop = planning(searches.take(3).chain([answer]));
    let answered = shop.json(&["ask", "data", "Where does he live?", "--max-calls", "4"]);
    assert_eq!((&answered["search"]["calls"], shop.seen().len()), (&json!(4), 4));
}

#[test]
fn a_planner_that_answers_garbage_or_runs_in_circles_is_left() {
    let answer = || reply(&json!({"answer": "In Plum Street.", "citations": ["p1"]}));
    let garbage = || reply(&json!({"action": "dance"}));
    let shop = planning([garbage(), garbage(), answer()]);
    let answered = shop.json(&["ask", "data", "Where does Bartholomew live?"]);
    assert!(answered["search"]["steps"].to_string().contains("planning stopped"), "{}", answered["search"]);
    let circle = || step("grep", "no such thing", "", (0, 0));
    let shop = planning([circle(), circle(), answer()]);
    let answered = shop.json(&["ask", "data", "Where does Bartholomew live?"]);
    assert_eq!(answered["search"]["calls"], 3, "{}", answered["search"]);
}

#[test]
fn rules_plan_where_the_settings_say_so() {
    let shop = planning([reply(&json!({"answer": "In Plum Street.", "citations": ["p1"]}))]);
    let answered = shop.json(&["ask", "data", "Where does Bartholomew live?", "--planner", "rules"]);
    assert_eq!((&answered["search"]["calls"], &answered["search"]["steps"]), (&json!(1), &json!([])));
}

#[test]
fn rows_of_pages_and_tables_are_quoted_and_nothing_without_the_ids_of_the_question_is_verified() {
    let shop = Shop::new();
    let cells: String =
        (0..400).map(|at| format!("<tr><td>Widget {at}</td><td>{}.50 EUR</td></tr>", at * 3)).collect();
    shop.write(
        "docs/prices.html",
        format!("<html><body><p>All prices hold.</p><table><tr><th>Article</th><th>Price</th></tr>{cells}</table></body></html>"),
    );
    let status = |at: usize| if at == 1_777 { "FAILED" } else { "ok" };
    let rows: String =
        (0..3_000).map(|at| format!("O-{},Bob,{}.20,{}\n", 100_000 + at, at % 90, status(at))).collect();
    shop.write("docs/orders.csv", format!("order_id,customer,amount_eur,status\n{rows}"));
    let row = "O-101777,Bob,67.20,FAILED";
    for (paths, question, told) in [
        ("docs", "What does Widget 233 cost?", "Widget 233 | 699.50 EUR"),
        ("docs", "Which order has status FAILED?", row),
        ("docs/orders.csv", "Which order has status FAILED?", row),
        ("docs/orders.csv", "What is the status of order O-101777?", row),
    ] {
        let answered = shop.json(&["ask", paths, question]);
        let claim = &answered["claims"][0];
        assert_eq!(
            (&claim["text"], &answered["verified"]),
            (&json!(told), &json!(true)),
            "{question} {claim}"
        );
        let file = std::fs::read_to_string(shop.path().join(claim["source"].as_str().unwrap())).unwrap();
        assert!(file[range(&claim["bytes"])].starts_with(&told[..8]), "{claim}");
    }
    for question in [
        "What does Widget 977 cost?",
        "Which order has status CANCELLED?",
        "What is the status of order O-777777?",
    ] {
        let answered = shop.json(&["ask", "docs", question]);
        assert_eq!(answered["verified"], json!(false), "{question} {}", answered["claims"]);
    }
}
