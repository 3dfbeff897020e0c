//! `larder keys`: shown once, listed without the secret, limited, revoked.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step fails the test")]

mod support;

use larder_store::{ReserveOutcome, Spend, Store, StoreOptions};
use serde_json::json;
use support::{Shop, keys};

#[test]
fn a_key_is_shown_once_listed_and_revoked() {
    let shop = Shop::new();
    let none = shop.ok(&["keys"]);
    assert!(none.out.is_empty() && none.err.contains("larder keys create"), "{none:?}");
    let made = shop.ok(&[
        "keys",
        "create",
        "--user",
        "ada",
        "--label",
        "laptop",
        "--tokens-per-day",
        "2000000",
        "--usd-per-day",
        "2.50",
        "--yes",
    ]);
    let key = made.out.trim();
    assert!(key.starts_with("lk-") && key.len() == 64, "standard output is the key alone: {made:?}");
    assert!(made.err.contains("not be shown again") && !made.err.contains(key), "{made:?}");
    assert!(made.err.contains("gateway.openai_key_env") && made.err.contains("--user local"), "{made:?}");
    let id = &key[3..15];
    let secret = &key[16..];
    let listed = shop.ok(&["keys", "--verbose"]);
    assert!(
        listed.out.contains(id) && listed.out.contains("ada") && listed.out.contains("laptop"),
        "{listed:?}"
    );
    let budget = "0 used and 0 held of 2000000 tokens, 0 used and 0 held of 2.5 dollars today";
    assert!(listed.out.contains(budget), "{listed:?}");
    assert!(!format!("{listed:?}").contains(secret));
    let listed = shop.json(&["keys"]);
    let today = ["tokens", "usd", "held_tokens", "held_usd", "resets"];
    assert_eq!(keys(&listed[0]["today"]), today);
    assert_eq!((&listed[0]["usd_per_day"], &listed[0]["revoked"]), (&json!("2.5"), &json!(null)));
    let revoked = shop.ok(&["keys", "revoke", id]);
    assert!(revoked.out.contains("is revoked"), "{revoked:?}");
    assert!(shop.ok(&["keys"]).out.contains("revoked 20"));
    assert!(shop.json(&["keys"])[0]["revoked"].is_string());
}

#[test]
fn the_first_key_needs_agreement_because_everyone_needs_one_from_then_on() {
    let shop = Shop::new();
    shop.write("larder.toml", "[gateway]\nlisten = \"127.0.0.1:9000\"\n");
    let refused = shop.fails(1, &["keys", "create"]);
    for words in ["every request", "http://127.0.0.1:9000/sign-in", "`larder top`", "/metrics", "--yes"] {
        assert!(refused.err.contains(words), "{words}: {refused:?}");
    }
    assert!(refused.out.is_empty() && shop.json(&["keys"]).as_array().unwrap().is_empty());
    let first = shop.ok(&["keys", "create", "--yes"]);
    assert!(first.err.contains("http://127.0.0.1:9000/sign-in"), "{first:?}");
    let second = shop.ok(&["keys", "create", "--user", "ops", "--operator"]);
    assert!(shop.ok(&["keys"]).out.contains(" operator "));
    assert_eq!(
        shop.json(&["keys"]).as_array().unwrap().iter().filter(|key| key["operator"] == true).count(),
        1
    );
    assert!(!second.err.contains("first key"), "{second:?}");
}

#[test]
fn a_list_without_keys_says_who_may_call() {
    let shop = Shop::new();
    assert!(shop.ok(&["keys"]).err.contains("only programs on this machine"));
    shop.ok(&["keys", "create", "--user", "ada", "--yes"]);
    shop.ok(&["forget", "ada", "--yes"]);
    let none = shop.ok(&["keys"]);
    assert!(none.out.is_empty() && none.err.contains("every request is refused until"), "{none:?}");
    for (settings, words) in [
        ("require_keys = false\n", "only programs on this machine"),
        ("require_keys = true\n", "every request is refused until"),
    ] {
        shop.write("larder.toml", format!("[gateway]\n{settings}"));
        let none = shop.ok(&["keys"]);
        assert!(none.err.contains(words), "{settings}: {none:?}");
    }
}

#[test]
fn a_key_that_locks_no_one_out_needs_no_confirmation() {
    for settings in ["require_keys = true\n", "require_keys = false\n", "listen = \"0.0.0.0:8787\"\n"] {
        let shop = Shop::new();
        shop.write("larder.toml", format!("[gateway]\n{settings}"));
        shop.ok(&["keys", "create"]);
    }
}

#[test]
fn reserved_budget_is_shown_next_to_usage() {
    let shop = Shop::new();
    shop.ok(&["keys", "create", "--yes", "--tokens-per-day", "2000", "--usd-per-day", "2.50"]);
    let store = Store::open(&shop.path().join("home"), StoreOptions::default()).unwrap();
    let id = store.keys().list().unwrap().remove(0).id;
    let hold = |tokens, picos| match store.keys().reserve(&id, Spend { tokens, picos }).unwrap() {
        ReserveOutcome::Held(reservation) => reservation,
        ReserveOutcome::Refused(shortage) => panic!("{shortage:?}"),
    };
    let ended = hold(100, 0);
    store.keys().settle(&ended, Spend { tokens: 70, picos: 500_000_000_000 }).unwrap();
    let _under_way = hold(400, 1_000_000_000_000);
    let listed = shop.ok(&["keys"]).out;
    let budget = "70 used and 400 held of 2000 tokens, 0.5 used and 1 held of 2.5 dollars today";
    assert!(listed.contains(budget), "{listed}");
    let today = &shop.json(&["keys"])[0]["today"];
    assert_eq!((&today["tokens"], &today["held_tokens"]), (&json!(70), &json!(400)));
    assert_eq!((&today["usd"], &today["held_usd"]), (&json!("0.5"), &json!("1")));
}

#[test]
fn json_output_contains_the_key_and_its_record() {
    let shop = Shop::new();
    let made = shop.json(&["keys", "create", "--yes"]);
    let names =
        ["id", "user", "label", "tokens_per_day", "usd_per_day", "operator", "created", "revoked", "key"];
    assert_eq!(keys(&made), names);
    assert_eq!(made["user"], "local");
    assert!(made["key"].as_str().unwrap().contains(made["id"].as_str().unwrap()));
    assert!(shop.ok(&["keys"]).out.contains("no limits"));
    assert_eq!(keys(&shop.json(&["keys", "revoke", made["id"].as_str().unwrap()])), names[..8]);
}

#[test]
fn what_cannot_be_is_refused_with_its_reason() {
    let shop = Shop::new();
    for dollars in ["-1", "NaN", "2,50", "free", ""] {
        let ran = shop.fails(2, &["keys", "create", &format!("--usd-per-day={dollars}")]);
        assert!(ran.err.contains("--usd-per-day"), "{ran:?}");
    }
    let negative = shop.fails(2, &["keys", "create", "--usd-per-day", "-3"]).err;
    assert!(negative.contains("`-3` is not an amount of dollars such as"), "{negative}");
    for tokens in ["-3", "0", "NaN", "many"] {
        let ran = shop.fails(2, &["keys", "create", "--tokens-per-day", tokens]);
        assert!(ran.err.contains("--tokens-per-day") && ran.err.contains("a whole number from 1"), "{ran:?}");
    }
    assert!(shop.fails(2, &["keys", "revoke", "lk-whole-key"]).err.contains("12 digits"));
    assert!(shop.fails(1, &["keys", "revoke", "000000000000"]).err.contains("no such key"));
    let label = shop.fails(1, &["keys", "create", "--yes", "--label", "a\u{1b}[2J"]);
    assert!(label.err.contains("control character") && !label.err.contains("\u{1b}[2J"), "{label:?}");
    assert!(shop.json(&["keys"]).as_array().unwrap().is_empty());
}
