//! `larder models show` and `search`: the catalogue as people and programs read it.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod support;

use support::Shop;

#[test]
fn show_describes_a_model_however_its_id_is_spelled() {
    let shop = Shop::new();
    let ran = shop.ok(&["models", "show", "openrouter/anthropic/claude-sonnet-4.5"]);
    for words in [
        "found as   claude-sonnet-4-5 (without or respelled: provider prefix, spelling)",
        "window     200000 (prompt and reply share it)",
        "reply      64000",
        "tokenizer  claude-4.6",
        "standard: input 3, output 15, cache_read 0.3, cache_write 3.75, cache_write_1h 6",
        "source     litellm",
    ] {
        assert!(ran.out.contains(words), "{words}\n{}", ran.out);
    }
    let gpt = shop.json(&["models", "show", "gpt-5.2"]);
    assert_eq!(gpt["limits"]["rule"], "separate");
    assert_eq!((&gpt["limits"]["window"], &gpt["limits"]["input"]), (&400_000.into(), &272_000.into()));
    assert_eq!(gpt["tokenizer"], "o200k_base");
}

#[test]
fn an_id_that_nobody_knows_is_answered_with_the_nearest() {
    let shop = Shop::new();
    let ran = shop.fails(1, &["models", "show", "claude-sonet-4-5"]);
    assert!(ran.err.contains("did you mean \"claude-sonnet-4-5\"?"), "{}", ran.err);
    let none = ["models", "search", "no-such-model-at-all"];
    for args in [&none[..], &[&none[..], &["--format", "json"]].concat()] {
        assert!(shop.fails(1, args).err.contains("no model"), "{args:?}");
    }
    let found = shop.ok(&["models", "search", "sonnet", "4-5", "us.anthropic"]).out;
    assert!(found.contains("us.anthropic.claude-sonnet-4-5-20250929-v1:0  window 200000"), "{found}");
}

#[test]
fn show_prints_what_a_character_or_a_picture_costs() {
    let shop = Shop::new();
    for (id, line, price) in [
        ("tts-1", "$ / character 0.000015", "0.000015"),
        ("xai/grok-imagine-image", "$ / picture 0.02", "0.02"),
    ] {
        let shown = shop.ok(&["models", "show", id]).out;
        assert!(shown.contains(line) && !shown.contains("prices     unknown"), "{shown}");
        assert_eq!(shop.json(&["models", "show", id])["price_per_unit"], price);
    }
}

#[test]
fn show_names_the_models_of_larder_toml_with_this_id() {
    let shop = Shop::with_provider([]);
    let ran = shop.ok(&["models", "show", "stub"]);
    assert!(ran.out.starts_with("gpt-4o-mini\n") && ran.out.contains("[models.stub] window"), "{}", ran.out);
    shop.write(
        "larder.toml",
        "[models.mine]\nprovider = \"openai\"\nbase_url = \"http://127.0.0.1:9/v1\"\nid = \"my-own-tuned-thing\"\n\
         window = 8000\nmax_output = 1000\n",
    );
    let ran = shop.ok(&["models", "show", "mine"]);
    assert_eq!(ran.out, "my-own-tuned-thing\n  settings   [models.mine] window 8000 reply 1000\n");
    assert!(ran.err.contains("the catalogue does not have"), "{}", ran.err);
}

#[test]
fn check_names_ids_that_nobody_knows_with_the_nearest() {
    let shop = Shop::new();
    shop.write(
        "larder.toml",
        "[models.big]\nprovider = \"anthropic\"\nid = \"claude-sonet-4-5\"\nwindow = 200000\nmax_output = 1000\n\
         [models.known]\nprovider = \"openai\"\nid = \"gpt-5.2\"\n\
         [models.mine]\nprovider = \"openai\"\nbase_url = \"http://127.0.0.1:9/v1\"\nid = \"my-own-tuned-thing\"\n\
         window = 8000\nmax_output = 1000\n",
    );
    let notes = shop.run(&["check"]).err;
    let notes: Vec<&str> = notes.lines().filter(|line| line.contains("nobody knows the id")).collect();
    assert_eq!(
        notes,
        [
            "note: nobody knows the id \"claude-sonet-4-5\" of [models.big]; did you mean \"claude-sonnet-4-5\"?"
        ]
    );
}

/// litellm's table with a hundred models of a provider nobody has heard of, and one whose window differs.
fn table() -> String {
    let row = |n: usize| {
        format!(
            "\"acme-{n}\": {{\"litellm_provider\": \"acme\", \"mode\": \"chat\", \"max_input_tokens\": {}, \
             \"max_output_tokens\": 1000, \"input_cost_per_token\": 1e-06, \"output_cost_per_token\": 2e-06}}",
            10_000 + n
        )
    };
    let rows: Vec<String> = (0..120).map(row).collect();
    format!("{{{}}}", rows.join(",\n"))
}

#[test]
fn another_table_takes_the_place_of_the_built_in_one_until_it_is_removed() {
    let shop = Shop::new();
    shop.write("mine.json", table());
    shop.write("larder.toml", "[models.big]\nprovider = \"openai\"\nid = \"acme-7\"\n");
    assert!(shop.run(&["check"]).out.contains("[models.big] lacks"), "unknown to the built-in catalogue");
    let updated = shop.ok(&["models", "update", "--from", "mine.json"]).out;
    assert!(updated.starts_with("120 models from litellm's table mine.json, 20"), "{updated}");
    let shown = shop.ok(&["models", "show", "acme-7"]).out;
    assert!(shown.contains("window     10007"), "{shown}");
    assert!(shown.contains("source     litellm's table mine.json, 20"), "{shown}");
    assert!(shown.contains("settings   [models.big] window 10007 reply 1000"), "{shown}");
    assert!(shop.fails(1, &["models", "show", "gpt-5.2"]).err.contains("has no model"));
    assert!(!shop.run(&["check"]).out.contains("lacks"));
    let settings = shop.json(&["config"]);
    let named = settings.as_array().unwrap().iter().find(|one| one["key"] == "models.catalogue").unwrap();
    assert!(named["value"].as_str().unwrap().starts_with("litellm's table mine.json, "), "{named}");
    assert!(named["origin"]["file"]["path"].as_str().unwrap().ends_with("models.tsv"), "{named}");
    // What Larder wrote is read as well, with the name that it has.
    let kept = shop.json(&["models", "update", "--from", named["origin"]["file"]["path"].as_str().unwrap()]);
    assert_eq!((&kept["models"], &kept["source"]["license"]), (&120.into(), &"MIT".into()));
    assert!(kept["source"]["source"].as_str().unwrap().contains("mine.json"), "{kept}");
    shop.write("larder.toml", "");
    assert!(shop.ok(&["models", "update", "--built-in"]).out.contains("(built in)"));
    assert!(shop.ok(&["models", "show", "gpt-5.2"]).out.contains("source     litellm 1."));
}

#[test]
fn a_table_that_is_broken_or_small_changes_nothing() {
    let shop = Shop::new();
    shop.write("mine.json", table());
    shop.ok(&["models", "update", "--from", "mine.json"]);
    let whole = table();
    for (text, words) in [
        (
            &whole[..whole.len() / 2],
            "neither litellm's table of models nor a catalogue that Larder wrote: EOF",
        ),
        ("{}", "0 models, fewer than a whole table"),
        (
            &whole.replace(": 10007,", ": \"many\","),
            "model \"acme-7\": `max_input_tokens` is not a number of tokens",
        ),
        (&whole.replacen("1e-06", "\"free\"", 1), "model \"acme-0\": `input_cost_per_token` is not a price"),
    ] {
        shop.write("other.json", text);
        let refused = shop.fails(1, &["models", "update", "--from", "other.json"]).err;
        assert!(refused.contains(words) && refused.contains("nothing was changed"), "{refused}");
        assert!(shop.ok(&["models", "show", "acme-7"]).out.contains("mine.json"));
    }
    shop.fails(2, &["models", "update"]);
    // A file that something else broke is named by every command, with both ways out.
    let path = shop.json(&["models", "update", "--from", "mine.json"])["file"].as_str().unwrap().to_owned();
    std::fs::write(shop.path().join(&path), "{}").unwrap();
    let refused = shop.fails(1, &["models"]).err;
    assert!(refused.contains("models.tsv") && refused.contains("update --built-in"), "{refused}");
    shop.ok(&["models", "update", "--built-in"]);
    shop.ok(&["models"]);
}

#[test]
fn settings_describe_single_models_of_the_catalogue_and_models_that_it_lacks() {
    let shop = Shop::new();
    shop.write(
        "larder.toml",
        "[models.catalogue.\"acme-large\"]\nwindow = 500000\ninput_limit = 372000\nmax_output = 128000\n\
         family = \"claude-opus-4-7\"\nprices = [{ input = 1, cached_input = 0.1, cache_write = 1.25, output = 8 }, \
         { above = 200000, input = 2, output = 12 }, { service = \"batch\", input = 0.5, output = 4 }]\n\
         [models.catalogue.\"claude-sonnet-4-5\"]\nwindow = 1000000\n",
    );
    assert!(shop.ok(&["models"]).out.contains("smollm2"), "the table that ships remains");
    let acme = shop.json(&["models", "show", "acme-large"]);
    assert_eq!((&acme["limits"]["window"], &acme["limits"]["input"]), (&500_000.into(), &372_000.into()));
    assert_eq!(
        (&acme["max_output"], &acme["tokenizer"], &acme["overridden"]),
        (&128_000.into(), &"claude".into(), &true.into())
    );
    let prices = acme["prices_per_million"].as_array().unwrap();
    assert_eq!(prices.len(), 3, "{prices:?}");
    assert_eq!((&prices[1]["above"], &prices[1]["cache_read"]), (&200_000.into(), &"2".into()));
    let found = shop.json(&["models", "search", "acme", "large"]);
    assert_eq!(found["models"], serde_json::json!(["acme-large"]));
    let sonnet = shop.json(&["models", "show", "openrouter/anthropic/claude-4.5-sonnet"]);
    assert_eq!((&sonnet["overridden"], &sonnet["limits"]["window"]), (&false.into(), &200_000.into()));
    for id in ["claude-sonnet-4-5-20250929", "anthropic/claude-4.5-sonnet"] {
        let sonnet = shop.json(&["models", "show", id]);
        assert_eq!((&sonnet["limits"]["window"], &sonnet["max_output"]), (&1_000_000.into(), &64_000.into()));
        assert!(sonnet["prices_per_million"].as_array().unwrap().len() >= 2, "the rest is the catalogue's");
    }
    shop.write(
        "larder.toml",
        "[models.catalogue.x]\nwidnow = 5\nfamily = \"no-such\"\nwindow = 5\ninput_limit = 6\nprices = []\n",
    );
    let refused = shop.run(&["check"]).out;
    for words in [
        "did you mean `window`?",
        "no family of models has `no-such`",
        "greater than its window",
        "no tier for short",
    ] {
        assert!(refused.contains(words), "{words}\n{refused}");
    }
}

/// R4-1.14 and R4-9.7, as a project's file asks for them.
#[test]
fn one_switch_moves_calls_to_the_alternative_and_a_thinking_budget_that_a_model_cannot_use_is_logged() {
    let shop = Shop::with_provider([support::reply_text("Lamps."), support::reply_text("Lamps.")]);
    shop.configure("", "[models.small]\nwindow = 4000\nmax_output = 500\n");
    shop.write("notes.md", "We decided to buy lamps.\n");
    let text = std::fs::read_to_string(shop.path().join("larder.toml")).unwrap();
    let (before, small) = text.split_once("[models.small]").unwrap();
    let text = format!("{before}[models.small]{}", small.replace("gpt-4o-mini", "gpt-4o"));
    let layer =
        "[models.layers]\nVOICE = { model = \"stub\", alternative = \"small\", thinking_budget = 512 }\n";
    let text = text.replace("[models.layers]\nVOICE = \"stub\"\n", layer);
    for (switch, id) in [("false", "gpt-4o-mini"), ("true", "gpt-4o")] {
        shop.write("larder.toml", format!("[models]\nuse_alternative = {switch}\n{text}"));
        let ran = shop.ok(&["-v", "run", "notes/summary", "--doc", "notes=notes.md", "--query", "What?"]);
        assert!(ran.err.contains("thinking budget ignored"), "{}", ran.err);
        let body = shop.seen().pop().unwrap().json();
        assert_eq!(body["model"], id);
        assert!(!body.to_string().contains("512"), "{body}");
    }
}
