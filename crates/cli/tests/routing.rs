//! The router through the binary: what `larder route` prints, and which model a recipe that names a router asks.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod support;

use serde_json::Value;
use support::{Shop, reply_text as reply};

const RECIPE: &str = "\
name: asked
description: Say what matters.
model_layer: VOICE
router: mine
prompt_files: [prompts/notes/all.md]
output_format: text
token_budget: {total: 6000, prompt: 100, input: 5000, output: 300, response_reserve: 200}
input_docs: [notes]
";
const ROUTER: &str = "\
description: Contradictions in more than one document need the large model.
tiers:
  - {name: small, layer: NERVES}
  - {name: large, layer: VOICE, from: 3}
factors:
  - {name: conflict, weight: 2, when: {says: [\"contradict*\"]}}
  - {name: documents, weight: 1, when: {documents: {from: 1}}}
";

/// A project whose recipe is routed to `small` or to `stub`.
fn shop() -> Shop {
    let shop = Shop::with_provider([reply("It matters."), reply("It matters.")]);
    shop.configure_layers(
        &["VOICE"],
        "prices = { input = 3, output = 15 }",
        "[models.small]\nwindow = 8000\nmax_output = 1000\nprices = { input = 1, output = 5 }\n",
    );
    let settings = std::fs::read_to_string(shop.path().join("larder.toml")).unwrap();
    shop.write("larder.toml", settings.replace("[models.layers]\n", "[models.layers]\nNERVES = \"small\"\n"));
    shop.write("recipes/notes/asked.yaml", RECIPE);
    shop.write("routes/mine.yaml", ROUTER);
    shop.write("a.txt", "A note.\n");
    shop
}

#[test]
fn a_recipe_asks_the_tier_that_its_router_chooses_and_the_receipt_says_why() {
    let shop = shop();
    shop.ok(&["check"]);
    let base = ["notes/asked", "--doc", "notes=a.txt", "-q"];
    let explained = |query: &str| {
        let args: Vec<&str> = ["explain"].into_iter().chain(base).chain([query]).collect();
        shop.json(&args)
    };
    let plain = explained("What is it?");
    assert_eq!((&plain["model"], &plain["route"]["tier"]), (&"small".into(), &"small".into()));
    let hard = explained("Where do they contradict each other?");
    assert_eq!((&hard["model"], &hard["layer"]), (&"stub".into(), &"VOICE".into()));
    for query in ["What is it?", "Where do they contradict each other?"] {
        let args: Vec<&str> = ["run"].into_iter().chain(base).chain([query]).collect();
        shop.ok(&args);
    }
    let runs = shop.json(&["runs"]);
    let models: Vec<&Value> = runs.as_array().unwrap().iter().map(|run| &run["model"]).collect();
    assert_eq!(models, ["stub", "small"]);
    let shown = shop.json(&["runs", "show", runs[0]["run_id"].as_str().unwrap()]);
    let route = &shown["receipt"]["route"];
    assert_eq!((&route["preset"], &route["score"]), (&"mine".into(), &3.0.into()));
    assert_eq!(route["factors"][0]["reason"], "contradict*");
    assert_eq!(route["factors"][1]["reason"], "documents 1");
}

#[test]
fn a_router_that_does_not_exist_is_an_error_of_the_recipe() {
    let shop = shop();
    shop.write("recipes/notes/asked.yaml", RECIPE.replace("router: mine", "router: defalt"));
    let found = shop.command(&["check", "--format", "json"]).output().unwrap();
    let found: Value = serde_json::from_slice(&found.stdout).unwrap();
    assert_eq!((&found[0]["code"], &found[0]["line"]), (&"L077".into(), &4.into()));
    assert_eq!(found[0]["help"], "did you mean `default`?");
}

/// What `larder route` decides with the presets that ship.
fn route(shop: &Shop, args: &[&str]) -> Value {
    let args: Vec<&str> = ["route"].into_iter().chain(args.iter().copied()).collect();
    shop.json(&args)
}

/// R4-7.9 to R4-7.14, factor by factor.
#[test]
fn the_preset_seed_scores_as_its_table_says() {
    let shop = shop();
    let seed = |args: &[&str]| {
        let all: Vec<&str> = ["--preset", "seed"].into_iter().chain(args.iter().copied()).collect();
        let found = route(&shop, &all);
        (found["score"].as_f64().unwrap(), found["tier"].as_str().unwrap().to_owned())
    };
    let plain = "He came home at ten and we ate together";
    let long = plain.repeat(13);
    assert_eq!(seed(&[plain]), (0.0, "small".into()));
    assert_eq!(
        seed(&[plain, "--task", "mediation"]),
        (4.0, "large".into()),
        "alone it reaches the threshold (N32)"
    );
    assert_eq!(seed(&[plain, "--field", "intensity=8"]), (3.0, "small".into()));
    assert_eq!(seed(&[plain, "--field", "intensity=7"]), (0.0, "small".into()));
    assert_eq!(seed(&["I don't know, whatever"]), (2.0, "small".into()));
    assert_eq!(seed(&[&long[..500]]), (0.0, "small".into()));
    assert_eq!(seed(&[&long[..501]]), (1.0, "small".into()));
    assert_eq!(seed(&[plain, "--task", "mediation", "--task", "draft"]), (3.0, "small".into()));
    assert_eq!(seed(&[plain, "--task", "classify"]), (-1.0, "small".into()));
    let all = [&long[..501], "--task", "mediation", "--field", "intensity=9"];
    assert_eq!(seed(&all), (8.0, "large".into()));
}

#[test]
fn the_default_preset_chooses_both_tiers_and_explains_each_factor() {
    let shop = shop();
    let table = std::fs::read_to_string(shop.path().join("larder.toml")).unwrap();
    shop.write("larder.toml", table.replace("VOICE = \"stub\"", "VOICE = \"stub\"\nMIND = \"stub\""));
    let plain =
        route(&shop, &["Rename the column to `total` and sort the table by it, as CSV, nothing else."]);
    assert_eq!((&plain["tier"], &plain["model"]), (&"small".into(), &"small".into()));
    let hard = route(&shop, &["I'm afraid of him, and he doesn't know that I found the letters."]);
    assert_eq!((&hard["tier"], &hard["model"]), (&"large".into(), &"stub".into()));
    let factors = hard["factors"].as_array().unwrap();
    assert!(factors.iter().all(|factor| factor["score"].is_number()));
    assert!(
        factors
            .iter()
            .any(|factor| factor["reason"].as_str().is_some_and(|why| why.contains("afraid of him")))
    );
    let printed = shop.ok(&["route", "fix the typo", "--explain"]).out;
    assert!(printed.starts_with("small (NERVES, small): score "), "{printed}");
    assert!(printed.contains("nothing light is said"), "{printed}");
    let floor = shop.ok(&["route", "fix the typo", "--explain", "--floor", "large"]).out;
    assert!(floor.contains("at least large was asked for") && floor.starts_with("large"), "{floor}");
    // No model of this table sees pictures: the largest is named, and both are said to lack it.
    let picture = route(&shop, &["what is this", "--images", "1"]);
    assert_eq!((&picture["tier"], picture["excluded"].as_array().unwrap().len()), (&"large".into(), 2));
}
