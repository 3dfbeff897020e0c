//! `larder revisions`: what was learned is listed, shown, compared and taken back.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

mod support;

use std::collections::BTreeMap;

use larder_store::{Store, StoreOptions};
use serde_json::json;
use support::Shop;

fn learn(shop: &Shop, cause: &str, values: &[(&str, Option<&str>)]) {
    let store = Store::open(&shop.path().join("home"), StoreOptions::default()).unwrap();
    let changes: BTreeMap<_, _> =
        values.iter().map(|(key, value)| ((*key).to_owned(), value.map(str::to_owned))).collect();
    store.revisions().write(cause, &changes).unwrap();
}

#[test]
fn revisions_are_listed_shown_compared_and_reverted() {
    let shop = Shop::with_provider([]);
    shop.configure("", "[policy]\nprotect_last = 3\n");
    assert!(shop.ok(&["revisions"]).err.contains("nothing has been learned"));
    assert_eq!(shop.json(&["revisions"]), json!([]));
    assert!(shop.ok(&["revisions", "show", "0"]).out.contains("revision 0: the settings alone"));
    learn(&shop, "a measurement", &[("policy.entry_cap", Some("700")), ("policy.protect_last", Some("9"))]);
    learn(&shop, "another one", &[("policy.entry_cap", None), ("policy.low_watermark", Some("0.6"))]);

    let listed = shop.ok(&["revisions"]).out;
    for words in ["a measurement", "policy.entry_cap = 700", "policy.entry_cap no longer learned"] {
        assert!(listed.contains(words), "{words}: {listed}");
    }
    let all = shop.json(&["revisions"]);
    assert_eq!((&all[1]["number"], &all[1]["cause"]), (&json!(2), &json!("another one")));
    assert_eq!(all[1]["changes"], json!({"policy.entry_cap": null, "policy.low_watermark": "0.6"}));

    let shown = shop.ok(&["revisions", "show", "2"]).out;
    assert!(shown.contains("policy.low_watermark = 0.6  (used)"), "{shown}");
    assert!(shown.contains("policy.protect_last = 9  (not used: set by ") && shown.contains("larder.toml:"));
    let shown = shop.json(&["revisions", "show", "1"]);
    assert_eq!(shown["learned"][0], json!({"key": "policy.entry_cap", "value": "700", "standing": "used"}));
    assert_eq!(shown["learned"][1]["standing"], "overridden");

    let compared = shop.ok(&["revisions", "diff", "1", "2"]).out;
    assert_eq!(compared, "policy.entry_cap: 700 -> not learned\npolicy.low_watermark: not learned -> 0.6\n");
    let compared = shop.json(&["revisions", "diff", "0", "1"]);
    assert_eq!(compared["policy.entry_cap"], json!({"from": null, "to": "700"}));

    let reverted = shop.ok(&["revisions", "revert", "1"]);
    assert!(reverted.err.contains("revision 3 learns again what revision 1 had"), "{}", reverted.err);
    assert_eq!(shop.json(&["revisions", "diff", "1", "3"]), json!({}));
    assert!(shop.ok(&["revisions", "revert", "1"]).err.contains("nothing changed"));
    assert_eq!(shop.json(&["revisions", "revert", "0"])["learned"], json!([]));
    let error = shop.fails(1, &["revisions", "show", "5"]).err;
    assert!(error.contains("revision 5: no such revision") && error.contains("0 to 4"), "{error}");
}
