//! What of a card's documents is in its prompt where not everything fits: which go first, which enter only while enough
//! room is left, and what each section of a full prompt takes.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod support;

use serde_json::{Value, json};
use support::Shop;
use support::served::Served;

/// The documents of a card in the order in which they are included (R2-8.7), with the priorities of R2-8.8 to R2-8.14.
const PRIORITIES: [(&str, u64); 7] = [
    ("notes", 100),
    ("build_logs", 90),
    ("pod_logs", 85),
    ("source_files", 80),
    ("test_results", 75),
    ("adrs", 50),
    ("libraries", 40),
];

fn shop() -> Shop {
    let shop = Shop::with_models([]);
    cap_context(&shop, 15_000);
    shop
}

/// Lets the documents of a card have so many tokens.
fn cap_context(shop: &Shop, tokens: u64) {
    shop.configure_layers(&["MIND"], "", &format!("[slots.\"card/card_agent\"]\ncontext = {tokens}\n"));
    let settings = std::fs::read_to_string(shop.path().join("larder.toml")).unwrap();
    shop.write("larder.toml", settings.replace("window = 8000", "window = 128000"));
}

/// Lines that say nothing, each of about ten tokens and none twice.
fn filler(seed: u64, lines: usize) -> String {
    let known = ["cache", "layer", "reads", "row", "returns", "caller", "index", "entry", "key", "when"];
    let mut state = seed;
    let mut word = || known[(support::next(&mut state) % 10) as usize];
    (0..lines).map(|at| format!("{} {} {} {at}.\n", word(), word(), word())).collect()
}

/// Writes documents of so many lines and gives the options that name them.
fn write(shop: &Shop, lines: &[(&str, usize)]) -> Vec<String> {
    let named = lines.iter().enumerate().map(|(seed, (name, lines))| {
        shop.write(&format!("{name}.md"), filler(seed as u64, *lines));
        format!("--doc={name}={name}.md")
    });
    named.collect()
}

fn explain(shop: &Shop, options: &[String]) -> Value {
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    shop.json(
        &[&["explain", "card/card_agent", "-q", "Go on", "--variant", "error_fixing"], &options[..]].concat(),
    )
}

fn rendition<'r>(receipt: &'r Value, document: &str) -> (&'r str, u64) {
    let parts = receipt["parts"].as_array().unwrap();
    let part = parts.iter().find(|part| part["id"] == document).unwrap();
    (part["rendition"].as_str().unwrap(), part["tokens"].as_u64().unwrap())
}

fn slot(receipt: &Value, name: &str) -> u64 {
    let slots = receipt["budget"]["slots"].as_array().unwrap();
    slots.iter().find(|slot| slot["name"] == name).unwrap()["tokens"].as_u64().unwrap()
}

#[test]
fn documents_of_a_card_lose_in_the_order_of_their_priorities() {
    let shop = shop();
    cap_context(&shop, 18_000);
    let documents = write(&shop, &PRIORITIES.map(|(name, _)| (name, 370)));
    let all = explain(&shop, &documents);
    let tokens = PRIORITIES.map(|(name, _)| rendition(&all, name));
    assert!(tokens.iter().all(|(rendition, _)| *rendition == "whole"), "{tokens:?}");
    // Room for one more document each time, and for half of the one after it.
    for kept in 1..=6 {
        let room: u64 = tokens[..kept].iter().map(|(_, tokens)| tokens).sum();
        cap_context(&shop, room + tokens[kept].1 / 2);
        let receipt = explain(&shop, &documents);
        for (at, (name, _)) in PRIORITIES.iter().enumerate() {
            let (rendition, _) = rendition(&receipt, name);
            assert_eq!(rendition == "whole", at < kept, "{name} with room for {kept}");
        }
    }

    // A stage without errors has no logs (R2-8.9, R2-8.10).
    let served = Served::start(&shop, &[]);
    let (_, recipe) = served.get("/api/v1/recipes/card/card_agent");
    let recipe: Value = serde_json::from_str(&recipe).unwrap();
    for ((name, priority), input) in PRIORITIES.iter().zip(recipe["input_docs"].as_array().unwrap()) {
        assert_eq!((&input["name"], &input["priority"]), (&json!(name), &json!(priority)));
        let stages = if name.ends_with("_logs") { json!(["error_fixing"]) } else { json!([]) };
        assert_eq!(input["variants"], stages, "{name}");
    }
}

#[test]
fn source_files_and_decisions_enter_only_while_enough_is_left() {
    // A short document would fit in any case; a long one behind it takes what is left. What marks cost is counted, too.
    for (document, follower, least) in [("source_files", "test_results", 1_000), ("adrs", "libraries", 500)] {
        let shop = shop();
        let options = write(&shop, &[("notes", 520), (document, 5), (follower, 400)]);
        let notes = rendition(&explain(&shop, &options), "notes").1;
        for (room, expected) in [(least, "absent"), (least + 60, "whole")] {
            cap_context(&shop, notes + room);
            let receipt = explain(&shop, &options);
            assert_eq!(rendition(&receipt, "notes").0, "whole");
            assert_eq!(rendition(&receipt, document).0, expected, "{document} with {room} tokens left");
        }
    }
}

#[test]
fn a_full_prompt_of_a_card_has_the_tokens_of_each_section() {
    let shop = shop();
    let mut options = write(&shop, &PRIORITIES.map(|(name, _)| (name, 500)));
    let message = |at: usize| {
        let role = if at.is_multiple_of(2) { "user" } else { "assistant" };
        json!({"role": role, "content": filler(100 + at as u64, 120)})
    };
    shop.write("h.json", Value::from((0..24).map(message).collect::<Vec<_>>()).to_string());
    options.push("--history=h.json".to_owned());
    let receipt = explain(&shop, &options);
    for (name, tokens, row) in [
        ("system", 500..=1_000, "R2-5.1"),
        ("agent", 500..=1_500, "R2-5.2"),
        ("history", 5_000..=10_000, "R2-5.3"),
        ("context", 14_000..=15_000, "R2-5.4"),
    ] {
        let found = slot(&receipt, name);
        assert!(tokens.contains(&found), "{row}: {name} has {found} tokens");
    }
    let total = receipt["total"].as_u64().unwrap();
    assert!((15_000..=27_500).contains(&total), "R2-3.14, R2-5.5: {total}");
}

#[test]
fn what_bears_on_the_query_stays_of_a_document_of_a_card() {
    const ANSWER: &str = "The granary ledger is kept by Ada, who counts the barrels of rye each winter.";
    let shop = shop();
    cap_context(&shop, 3_000);
    shop.write("libraries.md", format!("{}{ANSWER}\n{}", filler(1, 800), filler(2, 800)));
    let args = ["explain", "card/card_agent", "--doc", "libraries=libraries.md", "-q"];
    let shows =
        |query: &str| shop.json(&[&args[..], &[query]].concat())["messages"].to_string().contains(ANSWER);
    assert!(shows("Who keeps the granary ledger?") && !shows("Go on"), "R2-3.13");
}

#[test]
fn of_several_files_of_a_card_those_that_bear_on_the_query_stay() {
    const ANSWER: &str = "The granary ledger is kept by Ada, who counts the barrels of rye each winter.";
    let shop = shop();
    let files = ["one.md", "two.md", "three.md"];
    let options = files.map(|file| format!("--doc=source_files={file}"));
    let ids = ["source_files", "source_files-2", "source_files-3"];
    for of_query in 0..files.len() {
        for (at, file) in files.iter().enumerate() {
            let answer = if at == of_query { ANSWER } else { "" };
            shop.write(file, format!("{}{answer}\n{}", filler(1, 200), filler(2, 200)));
        }
        let receipt = |query: &str| {
            let options: Vec<&str> = options.iter().map(String::as_str).collect();
            shop.json(&[&["explain", "card/card_agent", "-q", query], &options[..]].concat())
        };
        cap_context(&shop, 20_000);
        let whole = rendition(&receipt("Who keeps the granary ledger?"), ids[of_query]).1;
        cap_context(&shop, whole * 3 / 2);
        let receipt = receipt("Who keeps the granary ledger?");
        for (at, id) in ids.iter().enumerate() {
            let (rendition, _) = rendition(&receipt, id);
            assert_eq!(rendition == "whole", at == of_query, "R2-3.13: {id} is {rendition}");
        }
    }
}
