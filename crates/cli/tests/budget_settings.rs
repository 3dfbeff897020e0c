//! Settings of budgets from outside: from which size on a prompt that fits is condensed, what is kept for the reply, and
//! who condenses.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod support;

use serde_json::{Value, json};
use support::{Ran, Shop, reply_text};

/// A project whose recipe has 10,000 tokens for a prompt.
fn shop() -> Shop {
    let shop = Shop::with_provider([]);
    let recipe = "name: asked\ndescription: Say what matters.\nmodel_layer: VOICE\noutput_format: text\n\
                  token_budget: {total: 10500, prompt: 100, input: 9600, output: 300, response_reserve: 200}\n\
                  prompt_files: [prompts/notes/all.md]\ninput_docs: [notes]\n";
    shop.write("recipes/notes/asked.yaml", recipe);
    configure(&shop, "");
    shop
}

fn configure(shop: &Shop, tables: &str) {
    shop.configure("", tables);
    let settings = std::fs::read_to_string(shop.path().join("larder.toml")).unwrap();
    shop.write("larder.toml", settings.replace("window = 8000", "window = 32000"));
}

/// Writes notes of about so many tokens.
fn notes(shop: &Shop, tokens: usize) {
    let line = |at: usize| format!("On day {at} the council spoke of bridge {}.\n", at * 7 % 1_000);
    shop.write("notes.md", (100..100 + tokens / 12).map(line).collect::<String>());
}

fn with(shop: &Shop, environment: &[(&str, &str)], args: &[&str]) -> Ran {
    shop.command(args).envs(environment.iter().copied()).output().unwrap().into()
}

/// Tokens of the explained prompt, and how it shows the notes.
fn explain(shop: &Shop, environment: &[(&str, &str)]) -> (u64, String) {
    let args =
        ["explain", "notes/asked", "--doc", "notes=notes.md", "-q", "What matters?", "--format", "json"];
    let ran = with(shop, environment, &args);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let receipt: Value = serde_json::from_str(&ran.out).unwrap();
    let part = receipt["parts"].as_array().unwrap().iter().find(|part| part["id"] == "notes").unwrap();
    assert!(receipt["total"].as_u64().unwrap() <= 10_000);
    (receipt["total"].as_u64().unwrap(), part["rendition"].as_str().unwrap().to_owned())
}

#[test]
fn a_prompt_is_condensed_above_nine_tenths_of_its_budget_where_that_saves_500_tokens() {
    let shop = shop();
    let is_whole = |environment: &[(&str, &str)]| explain(&shop, environment).1 == "whole";
    for (tokens, most, whole_as_usual) in [(8_700, 9_000, true), (9_250, 9_500, true), (9_800, 10_000, false)]
    {
        notes(&shop, tokens);
        let (total, rendition) = explain(&shop, &[("COMPRESSION_THRESHOLD", "1")]);
        assert_eq!(rendition, "whole", "it fits {tokens}");
        assert!(total > tokens as u64 - 100 && total <= most, "{total} of {tokens}");
        let (total, rendition) = explain(&shop, &[]);
        assert_eq!(rendition == "whole", whole_as_usual, "R0-30.3, R0-30.6: {tokens}");
        assert!(whole_as_usual || total <= 9_000, "to nine tenths: {total}");
    }
    assert!(is_whole(&[("MIN_COMPRESSION_SAVINGS", "2000")]), "R0-30.6");
    notes(&shop, 9_250);
    assert!(!is_whole(&[("MIN_COMPRESSION_SAVINGS", "0")]), "R0-30.6");
    assert!(!is_whole(&[("COMPRESSION_THRESHOLD", "0.5")]), "R0-30.3");
    configure(&shop, "[policy]\ncompression_threshold = 0.5\n");
    assert!(!is_whole(&[]) && is_whole(&[("COMPRESSION_THRESHOLD", "1")]), "a variable outranks the file");
    // Where everything fits, nothing is condensed, whatever else there is (R0-21.5).
    notes(&shop, 3_000);
    let args = ["explain", "notes/asked", "--doc", "notes=notes.md", "-q", "What matters?"];
    assert!(shop.ok(&args).out.contains("Every part is sent whole."));
    assert_eq!(shop.json(&args)["assessment"]["needed"], false);
}

#[test]
fn what_is_kept_for_a_reply_is_a_setting_and_the_same_for_every_model() {
    let shop = shop();
    let large =
        "[models.large]\nprovider = \"openai\"\nid = \"large\"\nwindow = 200000\nmax_output = 16000\n";
    let middle =
        "[models.middle]\nprovider = \"openai\"\nid = \"middle\"\nwindow = 128000\nmax_output = 8000\n";
    let models = format!("{middle}{large}");
    configure(&shop, &models);
    let figures = |environment: &[(&str, &str)]| {
        let shown = with(&shop, environment, &["policy", "--format", "json"]);
        let shown: Vec<Value> = serde_json::from_str(&shown.out).unwrap();
        let figure = |model: &str, name: &str| {
            let of = shown.iter().find(|shown| shown["name"] == model).unwrap();
            of[name]["tokens"].as_u64().unwrap()
        };
        ["stub", "middle", "large"].map(|model| {
            (
                figure(model, "response_reserve"),
                figure(model, "prompt_budget"),
                figure(model, "trace_threshold"),
            )
        })
    };
    // The window less reserve and a twentieth; the first model says at most 1,000 tokens (R0-30.2, R3-5.8).
    assert_eq!(figures(&[]), [(1_000, 29_400, 23_520), (2_000, 119_600, 95_680), (2_000, 188_000, 150_400)]);
    let five = [(1_000, 29_400, 23_520), (5_000, 116_600, 93_280), (5_000, 185_000, 148_000)];
    assert_eq!(figures(&[("RESPONSE_TOKEN_RESERVE", "5000")]), five, "R0-30.2");
    configure(&shop, &format!("{models}[policy]\nresponse_reserve = 5000\n"));
    assert_eq!(figures(&[]), five, "R3-4.9");
    let of_3 = figures(&[("LARDER_RESPONSE_RESERVE", "3000"), ("RESPONSE_TOKEN_RESERVE", "5000")]);
    assert_eq!((of_3[0].0, of_3[1].0), (1_000, 3_000), "the current name outranks the older one");
}

#[test]
fn condensing_is_the_work_of_nerves_and_of_no_other_layer() {
    let shop =
        Shop::with_models(std::iter::repeat_with(|| reply_text(&"It lists lamps. ".repeat(6))).take(40));
    shop.configure_layers(&["MIND", "VOICE"], "", "[models.small]\nwindow = 8000\nmax_output = 1000\n");
    let settings = std::fs::read_to_string(shop.path().join("larder.toml")).unwrap();
    let (layers, models) = settings.split_once("[models.small]").unwrap();
    let layers = layers.replace("[models.layers]\n", "[models.layers]\nNERVES = \"small\"\n");
    let models = models.replacen("gpt-4o-mini", "gpt-4o", 1);
    shop.write("larder.toml", format!("{layers}[models.small]{models}"));
    shop.write("long.txt", "Many lamps hang there, and each has its price on a small card.\n".repeat(60));
    let condense = ["condense", "long.txt", "--to", "200", "--by-model"];
    let ran = with(&shop, &[("COMPRESSION_MODEL_LAYER", "NERVES")], &condense);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let seen = shop.seen();
    assert!(!seen.is_empty() && seen.iter().all(|seen| seen.json()["model"] == json!("gpt-4o")), "R0-30.7");
    for layer in ["MIND", "REFLEX", "nobody"] {
        let ran = with(&shop, &[("COMPRESSION_MODEL_LAYER", layer)], &["config"]);
        assert!(ran.code == 1 && ran.err.contains("$COMPRESSION_MODEL_LAYER"), "{layer}: {}", ran.err);
    }
}
