//! `larder keys`: shown once, listed without the secret, limited, revoked.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod support;

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
    ]);
    let key = made.out.trim();
    assert!(key.starts_with("lk-") && key.len() == 64, "standard output is the key alone: {made:?}");
    assert!(made.err.contains("one time only") && !made.err.contains(key), "{made:?}");
    assert!(made.err.contains("gateway.openai_key_env") && made.err.contains("--user local"), "{made:?}");
    let id = &key[3..15];
    let secret = &key[16..];
    let listed = shop.ok(&["keys", "--verbose"]);
    assert!(
        listed.out.contains(id) && listed.out.contains("ada") && listed.out.contains("laptop"),
        "{listed:?}"
    );
    assert!(listed.out.contains("0 of 2000000 tokens, 0 of 2.5 dollars today"), "{listed:?}");
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
fn a_key_in_json_stands_beside_its_record() {
    let shop = Shop::new();
    let made = shop.json(&["keys", "create"]);
    let names = ["id", "user", "label", "tokens_per_day", "usd_per_day", "created", "revoked", "key"];
    assert_eq!(keys(&made), names);
    assert_eq!(made["user"], "local");
    assert!(made["key"].as_str().unwrap().contains(made["id"].as_str().unwrap()));
    assert!(shop.ok(&["keys"]).out.contains("no limits"));
    assert_eq!(keys(&shop.json(&["keys", "revoke", made["id"].as_str().unwrap()])), names[..7]);
}

#[test]
fn what_cannot_be_is_refused_with_its_reason() {
    let shop = Shop::new();
    for dollars in ["-1", "2,50", "free", ""] {
        let ran = shop.fails(2, &["keys", "create", &format!("--usd-per-day={dollars}")]);
        assert!(ran.err.contains("--usd-per-day"), "{ran:?}");
    }
    assert!(shop.fails(2, &["keys", "revoke", "lk-whole-key"]).err.contains("12 digits"));
    assert!(shop.fails(1, &["keys", "revoke", "000000000000"]).err.contains("no such key"));
    let label = shop.fails(1, &["keys", "create", "--label", "a\u{1b}[2J"]);
    assert!(label.err.contains("control character") && !label.err.contains("\u{1b}[2J"), "{label:?}");
    assert!(shop.json(&["keys"]).as_array().unwrap().is_empty());
}
