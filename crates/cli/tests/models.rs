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
    assert!(shop.fails(1, &["models", "search", "no-such-model-at-all"]).err.contains("no model"));
    let found = shop.ok(&["models", "search", "sonnet", "4-5", "us.anthropic"]).out;
    assert!(found.contains("us.anthropic.claude-sonnet-4-5-20250929-v1:0  window 200000"), "{found}");
}

#[test]
fn show_names_the_models_of_larder_toml_with_this_id() {
    let shop = Shop::with_provider([]);
    let ran = shop.ok(&["models", "show", "stub"]);
    assert!(ran.out.starts_with("gpt-4o-mini\n") && ran.out.contains("[models.stub] window"), "{}", ran.out);
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
